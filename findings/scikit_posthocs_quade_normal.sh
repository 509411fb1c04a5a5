#!/usr/bin/env bash
# scikit-posthocs: posthoc_quade(dist="normal") finds differences between equal algorithms in a fifth to a quarter of all cases.
# Its variance is that of as many problems as there are results, not as there are problems.
#
# Versions: scikit-posthocs 0.17.1, scipy 1.17.1, statsmodels 0.15.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     no difference, 20 problems, 1,000 tables: p < 0.05 for one pair in 26% with 3 algorithms, 21% with 6; dist="t": 5%.
# Source:   scikit_posthocs/_posthocs.py, posthoc_quade(): n = b * k in the denominator, where Quade's statistic has n = b, the
#           number of blocks; with n = b three algorithms give 5%.
# Advice:   leave dist at "t".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0 scikit-posthocs==0.17.1
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from scikit_posthocs import posthoc_quade
from scipy.stats import norm, rankdata

print("versions:", *(f"{name} {version(name)}" for name in ("scikit-posthocs", "scipy", "statsmodels", "pandas", "numpy")))
noise = numpy.random.default_rng(0)
problems, tables = 20, 1000


def by_hand(table):
    """Of the first pair, with the variance of the weighted mean ranks under the null hypothesis."""
    count, kinds = table.shape
    weights = rankdata(numpy.ptp(table, axis=1))
    means = (weights[:, None] * rankdata(table, axis=1)).sum(axis=0) / weights.sum()
    variance = (weights**2).sum() / weights.sum() ** 2 * kinds * (kinds + 1) / 6
    return 2 * norm.sf(abs(means[0] - means[1]) / variance**0.5)


shares = {}
for kinds in (3, 6):
    p_values = []
    for _ in range(tables):
        table = noise.standard_normal((problems, 1)) + noise.standard_normal((problems, kinds))
        normal, student = [posthoc_quade(table, dist=dist).to_numpy()[0, 1] for dist in ("normal", "t")]
        p_values.append((normal, student, by_hand(table)))
    shares[kinds] = (numpy.array(p_values) < 0.05).mean(axis=0).round(3).tolist()
print("expected: without any difference p < 0.05 in 5 % of the tables")
for kinds, (normal, student, hand) in shares.items():
    print(f'seen: {kinds} algorithms: dist="normal" {normal:.1%}, dist="t" {student:.1%}, normal by hand {hand:.1%}')
if not all(normal > 0.15 and student < 0.08 and hand < 0.08 for normal, student, hand in shares.values()):
    sys.exit("the behaviour has changed")
END
