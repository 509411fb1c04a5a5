#!/usr/bin/env bash
# SciPy: Somers' D of few architectures has p-values that are far too small, unlike Kendall's tau, the same number without ties.
# Of all orders in which a proxy without any relation can put five architectures, one in five has p < 0.05.
#
# Versions: scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     all 120 orders of five: p below 0.05 in 20%, below 0.001 in 13%, Kendall's in 2% and none; random orders of 8 and 12:
#           below 0.05 in 13% and 11%, below 0.001 in 2%; 1 3 2 5 4: p = 0.0008, Kendall's 0.23.
# Source:   scipy/stats/_hypotests.py, _somers_d(): a normal approximation whose variance is estimated from the table, and is near
#           0 where the order is nearly perfect or reversed. The documentation says that the approximation is asymptotic, and
#           that Kendall's hypothesis is a more specific one; it has no word on sizes.
# Advice:   report Kendall's p-value with Somers' D, as the documentation allows; or permutation_test() of pairings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'END'
import itertools
import sys
from importlib.metadata import version

import numpy
from scipy.stats import kendalltau, somersd

print("versions: scipy", version("scipy"), "numpy", version("numpy"))
LEVELS = 0.05, 0.01, 0.001
random = numpy.random.default_rng(0)


def shares(values):
    return [float(numpy.mean(numpy.array(values) < level)) for level in LEVELS]


one = [test(range(5), [0, 2, 1, 4, 3]) for test in (kendalltau, somersd)]
print(f"expected: for 1 3 2 5 4 the same coefficient and p as Kendall's: {one[0].statistic:.1f}, {one[0].pvalue:.2g}")
print(f"seen: {one[1].statistic:.1f}, {one[1].pvalue:.1g}")
print("expected: p below 0.05, 0.01 and 0.001 in at most that share of all orders")
found = {}
for count, orders in (
    (5, list(itertools.permutations(range(5)))),
    (8, [random.permutation(8) for _ in range(1000)]),
    (12, [random.permutation(12) for _ in range(500)]),
):
    somers, kendall = (shares([test(range(count), order).pvalue for order in orders]) for test in (somersd, kendalltau))
    found[count] = somers, kendall
    texts = (" ".join(f"{share:.3f}" for share in each) for each in found[count])
    print(f"seen: {len(orders)} orders of {count}: Somers' D", "; Kendall ".join(texts))
if not (abs(one[0].statistic - one[1].statistic) < 1e-9 and one[1].pvalue < one[0].pvalue / 50
        and found[5][0][0] > 0.15 and found[5][0][2] > 0.05 and found[12][0][2] > 0.005
        and all(kendall[0] < 0.08 for _, kendall in found.values())):
    sys.exit("the behaviour has changed")
END
