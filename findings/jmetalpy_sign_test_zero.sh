#!/usr/bin/env bash
# jMetalPy: the p-value of its sign test leaves out the result that was seen. Five wins of five have p = 0, and every other p is
# that of one win more.
#
# Versions: jmetalpy 1.9.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     5 wins of 5: p = 0 (exact test: 0.0625); 8 of 10: 0.021 (0.109). Of 2,000 pairs of equal algorithms on 10 problems 11%
#           have p < 0.05, by the exact test 3%.
# Source:   jmetal/lab/statistical_test/functions.py, sign_test(): 1 - binom.cdf(k), the probability of more than k wins, where k
#           wins or more are meant. Ties stay in the number of pairs.
# Advice:   use scipy.stats.binomtest(wins, wins + losses).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from jmetal.lab.statistical_test.functions import sign_test
from scipy.stats import binomtest

print("versions: jmetalpy", version("jmetalpy"), "scipy", version("scipy"), "numpy", version("numpy"))


def p_values(differences):
    """By jMetalPy and by the exact test."""
    table = numpy.column_stack([numpy.zeros(len(differences)), differences])
    wins = int((differences > 0).sum())
    return float(sign_test(table).loc["p-value", "Results"]), float(binomtest(wins, len(differences)).pvalue)


cases = {(5, 5): None, (8, 10): None, (9, 10): None, (10, 10): None}
for wins, count in cases:
    cases[wins, count] = p_values(numpy.array([1.0] * wins + [-1.0] * (count - wins)))
noise = numpy.random.default_rng(0)
rates = numpy.mean([numpy.array(p_values(noise.standard_normal(10))) < 0.05 for _ in range(2000)], axis=0).round(3).tolist()
print("expected: p of the exact test, and at most 5 % below 0.05 where there is no difference")
for (wins, count), (seen, exact) in cases.items():
    print(f"seen: {wins} wins of {count}: p {seen:.4f}, exact {exact:.4f}")
print("seen: share below 0.05 without any difference:", rates[0], "exact", rates[1])
if not (cases[5, 5][0] == 0 and cases[8, 10][0] < 0.05 < cases[8, 10][1] and rates[0] > 0.08 and rates[1] < 0.05):
    sys.exit("the behaviour has changed")
END
