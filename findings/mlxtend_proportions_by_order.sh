#!/usr/bin/env bash
# mlxtend: the p-value of the difference of two accuracies is one-sided, for the side that the first is worse. With the better
# model first it is near 1, however much better it is; with the worse one first it is half of that of the test described.
#
# Versions: mlxtend 0.25.0, statsmodels 0.15.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     0.95 and 0.85 of 1,000: p = 1.0000 with the better first, below 1e-9 with the worse. The user guide's example, 0.84
#           and 0.92 of 100: z = -1.75, p = 0.040, significant by the guide, which itself asks for a z of 1.96; statsmodels' p is
#           0.082. Of 4,000 pairs of equal models 205 differ significantly with the first worse, none with the first better.
# Source:   mlxtend/evaluate/proportion_difference.py: p = norm.cdf(z). The documentation names no side.
# Advice:   p = 2 * min(p, 1 - p), or statsmodels.stats.proportion.proportions_ztest; for one test set mlxtend's mcnemar.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 statsmodels==0.15.0 mlxtend==0.25.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from mlxtend.evaluate import proportion_difference
from statsmodels.stats.proportion import proportions_ztest

print("versions:", *(f"{name} {version(name)}" for name in ("mlxtend", "statsmodels", "scipy", "numpy")))
p_values = {}
for first, second, count in ((0.95, 0.85, 1000), (0.85, 0.95, 1000), (0.84, 0.92, 100), (0.92, 0.84, 100)):
    expected = float(proportions_ztest([first * count, second * count], [count, count])[1])
    p_values[first, second] = float(proportion_difference(first, second, count)[1])
    print(f"{first} and {second} of {count}: expected p {expected:.2g}, seen {p_values[first, second]:.4f}")
noise = numpy.random.default_rng(0)
pairs = noise.binomial(1000, 0.9, (4000, 2)) / 1000
results = numpy.array([proportion_difference(first, second, 1000)[1] for first, second in pairs])
worse, better = (int((results[side] < 0.05).sum()) for side in (pairs[:, 0] < pairs[:, 1], pairs[:, 0] > pairs[:, 1]))
print(f"expected: of {len(pairs)} equal pairs about 100 are significant on either side")
print(f"seen: {worse} with the first worse, {better} with the first better")
if not (p_values[0.95, 0.85] > 0.9999 and p_values[0.85, 0.95] < 1e-9 and p_values[0.84, 0.92] < 0.05 < 0.9 < p_values[0.92, 0.84]
        and worse > 120 and better == 0):
    sys.exit("the behaviour has changed")
END
