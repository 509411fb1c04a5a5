#!/usr/bin/env bash
# tokenizers: cl100k's published expression, in a tokenizer.json, joins any number of digits; tiktoken cuts after three.
# A model that was trained with one reader's ids gets others from the other, wherever four digits follow each other, without a word.
#
# Versions: tokenizers 0.23.3, tiktoken 0.14.0; as of 2026-11-29.
# Seen:     "1234567" by \p{N}{1,3}+: tiktoken 123|456|7, tokenizers 1234567; by \p{N}{1,3}: both 123|456|7.
# Source:   the regular expressions of tokenizers are Oniguruma's with Ruby's syntax, where ?+, *+ and ++ are possessive, but
#           {n,m}+ is {n,m} repeated (doc/RE, "possessive"; tiktoken's engine, fancy-regex, has it possessive).
# Advice:   write \p{N}{1,3} into a tokenizer.json: it means the same to both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3 tiktoken==0.14.0
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import tiktoken
from tokenizers import Regex, pre_tokenizers

print("versions:", *(f"{name} {version(name)}" for name in ("tokenizers", "tiktoken")))
TEXT = "1234567"
PIECES = {TEXT[a:b].encode() for a in range(7) for b in range(a + 2, 8)}  # whatever is cut out is one token
RANKS = {token: rank for rank, token in enumerate([*(bytes([i]) for i in range(256)), *sorted(PIECES, key=len)])}


def of_tiktoken(pattern):
    made = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=RANKS, special_tokens={})
    return [made.decode([i]) for i in made.encode(TEXT)]


def of_tokenizers(pattern):
    return [piece for piece, _ in pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(TEXT)]


cut = ["123", "456", "7"]
seen = {(pattern, read.__name__): read(pattern) for pattern in (r"\p{N}{1,3}+", r"\p{N}{1,3}") for read in (of_tiktoken, of_tokenizers)}
print("expected: 123|456|7 by both readers of both expressions")
for (pattern, reader), pieces in seen.items():
    print(f"seen:     {pattern:12} {reader:14} {'|'.join(pieces)}")
sys.exit([pieces == cut for pieces in seen.values()] != [True, False, True, True])
END
