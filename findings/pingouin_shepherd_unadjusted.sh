#!/usr/bin/env bash
# pingouin: the p-value of Shepherd's pi, "adjusted" by its documentation, is not. Points that lie off are removed, the rest is
# tested as if they had never been there, and the doubling that makes up for it is commented out: two to four times as much noise
# is significant as stated, and one in nine sets of eight points without a correlation has a perfect one with p = 0.
#
# Versions: pingouin 0.7.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     400 pairs of independent scores of 8 architectures, 2.9 removed on average: 19% significant at 5%, 45 perfect; of 15,
#           1.5 removed: 10%. Doubled 14% and 7%; by Spearman's test of all points 5% and 6%.
# Source:   pingouin/correlation.py, shepherd(): "pval *= 2" is a comment; corr() passes on what it returns.
# Advice:   double the p-value and look at the column of outliers; with few points use method="spearman".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 pingouin==0.7.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import pingouin

print("versions:", *(f"{name} {version(name)}" for name in ("pingouin", "scipy", "numpy")))
noise = numpy.random.default_rng(0)
numpy.random.seed(0)
shares = {}
for count in (8, 15):
    found, doubled, plain, removed, perfect = 0, 0, 0, 0, 0
    for _ in range(400):
        estimates, accuracies = noise.normal(size=(2, count))
        result = pingouin.corr(estimates, accuracies, method="shepherd").iloc[0]
        found += result["p_val"] < 0.05
        doubled += 2 * result["p_val"] < 0.05
        plain += pingouin.corr(estimates, accuracies, method="spearman").iloc[0]["p_val"] < 0.05
        removed += result.get("outliers", 0)
        perfect += abs(result["r"]) > 0.999 and result["p_val"] < 1e-6
    shares[count] = found / 400, doubled / 400, plain / 400, perfect
    print(f"{count} points without a correlation, {removed / 400:.1f} removed on average; expected: 5% significant; seen:",
          f"{found / 400:.0%}, doubled {doubled / 400:.0%}, Spearman's {plain / 400:.0%}; {perfect} of 400 are perfect, p = 0")
if not (shares[8][0] > 0.1 and shares[15][0] > 0.08 and shares[15][1] < shares[15][0] and shares[15][2] < 0.08
        and shares[8][3] > 10):
    sys.exit("the behaviour has changed")
END
