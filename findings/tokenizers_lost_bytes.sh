#!/usr/bin/env bash
# tokenizers: what a BPE vocabulary lacks is dropped, without an error or an unknown token. A byte-level BPE is lossless only if its
# trainer is given all 256 bytes, which is not the default: of a text with a letter that training had not, the letter is gone, and a
# loss per token or per byte is one of less text.
#
# Versions: tokenizers 0.23.3; as of 2026-11-27.
# Seen:     trained on English: "Zürich 1896" becomes "rich"; with initial_alphabet it comes back whole. WordLevel without an
#           unknown token refuses such text.
# Source:   tokenizers/src/models/bpe/model.rs, merge_word(): a character without an id is left out where there is neither unk_token
#           nor byte_fallback; BpeTrainer's initial_alphabet is empty unless given.
# Advice:   BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet()); compare decode(encode(text)) with the text, on held-out
#           data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

print("versions: tokenizers", version("tokenizers"))
english, other = ["the rich get richer, the quick brown fox jumps over the lazy dog"] * 10, "Zürich 1896"


def trained(model, trainer):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train_from_iterator(english, trainer)
    return tokenizer


def round_trip(**options):
    tokenizer = trained(models.BPE(), trainers.BpeTrainer(vocab_size=300, show_progress=False, **options))
    return tokenizer.decode(tokenizer.encode(other).ids)


default, whole = round_trip(), round_trip(initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
try:
    words = str(trained(models.WordLevel(), trainers.WordLevelTrainer(show_progress=False)).encode(other).tokens)
except Exception as error:
    words = str(error)
print("expected: a byte-level tokenizer gives every text back, as with initial_alphabet:", whole, "; or an error, as WordLevel:", words)
print("seen:", repr(default))
if not (default.strip() == "rich" and whole == other and "UNK" in words):
    sys.exit("the behaviour has changed")
END
