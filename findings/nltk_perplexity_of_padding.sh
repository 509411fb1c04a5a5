#!/usr/bin/env bash
# NLTK: the perplexity of padded n-grams falls with n, even of noise: pad_both_ends() ends a text with n - 1 symbols, and each
# but the first is predicted with certainty. An n-gram baseline of longer n looks better although it predicts words worse.
#
# Versions: nltk 3.10.4; as of 2026-11-28.
# Seen:     texts of 5 to 15 words, drawn evenly from 8; perplexity by n = 2, 3, 4, 5: as the documentation pads 8.9, 7.4, 6.8,
#           6.8; of the words and one end each 8.9, 8.9, 9.5, 10.3. No model of this source can be below 7.9.
# Source:   nltk.lm.preprocessing.pad_both_ends(n) adds n - 1 symbols on each side, as the paddings of a language model's context;
#           LanguageModel.perplexity() counts all n-grams that it gets.
# Advice:   of ngrams(pad_both_ends(text, n=n), n) keep the first len(text) + 1, and train alike; other tools (KenLM, SRILM)
#           predict one end of a text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nltk==3.10.4
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import random
import sys
from importlib.metadata import version

from nltk.lm import Laplace
from nltk.lm.preprocessing import pad_both_ends, padded_everygram_pipeline
from nltk.util import ngrams

print("versions: nltk", version("nltk"))
random.seed(0)
WORDS = [f"word{number}" for number in range(8)]


def texts(count):
    return [[random.choice(WORDS) for _ in range(random.randint(5, 15))] for _ in range(count)]


train, test = texts(3000), texts(500)
seen, words = {}, {}
for n in (2, 3, 4, 5):
    model = Laplace(n)
    model.fit(*padded_everygram_pipeline(n, train))
    grams = [list(ngrams(pad_both_ends(text, n=n), n)) for text in test]
    seen[n] = model.perplexity([gram for each in grams for gram in each])
    words[n] = model.perplexity([gram for each, text in zip(grams, test) for gram in each[:len(text) + 1]])
# The best that can be known: each word costs log 8, and the length (11 possible ones) log 11 for a text and its end.
lengths = [len(text) for text in test]
least = math.exp((sum(lengths) * math.log(8) + len(lengths) * math.log(11)) / (sum(lengths) + len(lengths)))
print(f"expected: no perplexity below {least:.2f}, the best of any model of this source")
for n in seen:
    print(f"seen: n={n}: padded n-grams {seen[n]:.2f}; words and one end each {words[n]:.2f}")
if not (seen[2] > least > max(seen[n] for n in (3, 4, 5)) and seen[3] > seen[4] > seen[5]
        and words[2] < words[4] < words[5] and min(words.values()) > least):
    sys.exit("the behaviour has changed")
END
