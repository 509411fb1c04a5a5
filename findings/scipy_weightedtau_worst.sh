#!/usr/bin/env bash
# SciPy: weightedtau() weighs the largest values most. Given losses, it is about the order of the worst architectures: a predictor that
# confuses the ten best of fifty has a higher coefficient than one that confuses the ten worst.
#
# Versions: scipy 1.17.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     losses: the ten best in reverse order 0.98, the ten worst 0.76; of the same numbers negated 0.76 and 0.98;
#           kendalltau is 0.93 in all four cases.
# Source:   documentation of scipy.stats.weightedtau, parameter "rank": by default elements with larger values have a higher rank, and
#           rank 0 is the most important.
# Advice:   negate losses, perplexities and latencies on both sides, or give rank=; say which end was weighed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import numpy
from scipy.stats import kendalltau, weightedtau

print("versions: scipy", version("scipy"), "numpy", version("numpy"))
loss = numpy.sort(numpy.random.default_rng(0).random(50))  # the best architecture first
best_confused, worst_confused = loss.copy(), loss.copy()
best_confused[:10] = loss[:10][::-1]
worst_confused[-10:] = loss[-10:][::-1]


def taus(sign, measure):
    return [round(float(measure(sign * loss, sign * predicted).statistic), 2) for predicted in (best_confused, worst_confused)]


losses, negated, plain = taus(1, weightedtau), taus(-1, weightedtau), taus(1, kendalltau) + taus(-1, kendalltau)
print("expected: the best weigh most: the predictor that confuses the best is the worse one, as with negated losses:", *negated)
print("seen: best confused, worst confused:", *losses, "; kendalltau", *plain)
if not (losses[0] > losses[1] + 0.1 and negated == losses[::-1] and len(set(plain)) == 1):
    sys.exit("the behaviour has changed")
END
