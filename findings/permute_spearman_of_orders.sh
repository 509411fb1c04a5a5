#!/usr/bin/env bash
# permute: spearman_corr() correlates the orders that would sort the values, not their ranks. A proxy that ranks 50 architectures
# almost as their losses do has a coefficient of 0.2, a perfectly reversed one 0.4 in place of -1, and the p-values go with them.
#
# Versions: permute 0.2, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     50 losses and a noisy copy of them: 0.22, p = 0.13 in place of 0.85, p = 0.001; losses and accuracies (1 - loss): 0.42
#           in place of -1; the coefficient changes if both columns are listed in another order.
# Source:   permute/core.py, spearman_corr(): np.argsort() once, plus 1. It also drops plus1=False. Known upstream since 2021
#           (issue 191, pull request 192); no release has the correction.
# Advice:   scipy.stats.spearmanr, with scipy.stats.permutation_test for few architectures; or permute.core.corr of
#           scipy.stats.rankdata of both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 permute==0.2
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from permute.core import corr, spearman_corr
from scipy.stats import rankdata, spearmanr

print("versions:", *(f"{name} {version(name)}" for name in ("permute", "scipy", "numpy")))
random = numpy.random.default_rng(0)
loss = random.random(50)
proxy = loss + 0.2 * random.standard_normal(50)
shuffled = random.permutation(50)


def of(measure, first, second):
    statistic, p, _ = measure(first, second, alternative="two-sided", reps=2000, seed=1)
    return round(float(statistic), 2), round(float(p), 4)


cases = {
    "loss and proxy": (loss, proxy),
    "the same 50 in another order": (loss[shuffled], proxy[shuffled]),
    "loss and accuracy": (loss, 1 - loss),
    "loss and itself": (loss, loss),
}
changed = False
for name, (first, second) in cases.items():
    truth = round(float(spearmanr(first, second).statistic), 2)
    seen, ranked = of(spearman_corr, first, second), of(corr, rankdata(first), rankdata(second))
    print(f"{name}: expected {truth} (scipy; corr() of the ranks {ranked[0]}, p {ranked[1]}); seen {seen[0]}, p {seen[1]}")
    wrong = abs(seen[0] - truth) > 0.3
    changed = changed or ranked[0] != truth or wrong == (name == "loss and itself")
if changed:
    sys.exit("the behaviour has changed")
END
