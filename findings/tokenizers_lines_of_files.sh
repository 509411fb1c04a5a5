#!/usr/bin/env bash
# tokenizers: train(files) takes every line for a text of its own, train_from_iterator takes texts as they are given. A
# vocabulary from files has no piece with a line's end before indentation or an empty line, and of source code it needs 7% more
# tokens.
#
# Versions: tokenizers 0.23.3; as of 2026-11-28.
# Seen:     Python's sources, byte-level BPE of 2000 pieces: 0 instead of 29 pieces go beyond a line's end; the same tokens as
#           training on the lines.
# Source:   tokenizers/src/tokenizer/mod.rs, train_from_files(): lines_with_ending() of each file.
# Advice:   train_from_iterator with the texts that the model will be given; compare bits per byte, not losses per token.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3
"$folder/venv/bin/python" - <<'END'
import pathlib
import random
import sys
from importlib.metadata import version

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

print("versions: tokenizers", version("tokenizers"))
folder = pathlib.Path(random.__file__).parent
files, held_out = sorted(folder.glob("[a-d]*.py")), [path.read_text() for path in sorted(folder.glob("[e-i]*.py"))]
texts = [path.read_text() for path in files]


def trained(start):
    """Tokens of the held-out texts, and pieces that go beyond a line's end, of a tokenizer after start(tokenizer, trainer)."""
    tokenizer, alphabet = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel.alphabet()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    start(tokenizer, trainers.BpeTrainer(vocab_size=2000, show_progress=False, initial_alphabet=alphabet))
    beyond = sum("\u010a" in piece[:-1] for piece in tokenizer.get_vocab())  # the letter that stands for a line's end
    return sum(len(tokenizer.encode(text).ids) for text in held_out), beyond


whole = trained(lambda tokenizer, trainer: tokenizer.train_from_iterator(texts, trainer))
from_files = trained(lambda tokenizer, trainer: tokenizer.train([str(path) for path in files], trainer))
lines = trained(lambda tokenizer, trainer: tokenizer.train_from_iterator(
    (line for text in texts for line in text.splitlines(keepends=True)), trainer))
print("expected: the same files give the same tokenizer: tokens and pieces beyond a line's end, of the texts:", *whole)
ratio = round(from_files[0] / whole[0], 3)
print("seen: of the files", *from_files, "; of the texts' lines", *lines, "; tokens in proportion", ratio)
if not (ratio > 1.03 and from_files[1] == 0 < whole[1] and abs(from_files[0] / lines[0] - 1) < 0.01):
    sys.exit("the behaviour has changed")
END
