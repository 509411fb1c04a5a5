#!/usr/bin/env bash
# statsmodels: with one missing p-value, multipletests(method="fdr_bh") rejects hypotheses although it says that all corrected
# p-values are NaN; method="holm" counts the missing one as a test, so that the others are corrected for one too many.
#
# Versions: statsmodels 0.15.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     fdr_bh: rejected [True, True, False, False], corrected [nan, nan, nan, nan];
#           holm: corrected 0.04, 0.06, nan, 0.08; without the NaN 0.03, 0.04, 0.04.
# Source:   statsmodels/stats/multitest.py has no treatment of NaN: numpy sorts it last, comparisons with it are false, running
#           minima carry it to all.
# Advice:   a comparison that could not be tested (both mechanisms constant, one seed) gives NaN: drop it before the correction
#           and say how many were tested.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from statsmodels.stats.multitest import multipletests

print("versions: statsmodels", version("statsmodels"), "scipy", version("scipy"), "numpy", version("numpy"))
p = [0.01, 0.02, numpy.nan, 0.04]
rejected, fdr = multipletests(p, method="fdr_bh")[:2]
holm = multipletests(p, method="holm")[1]
tested = multipletests([0.01, 0.02, 0.04], method="holm")[1]
print("expected: NaN is refused, or left out: a p-value for what is rejected; Holm's of 3 tests", tested.round(4).tolist())
print("seen: fdr_bh rejects", rejected.tolist(), "with corrected p-values", fdr.tolist(), "; holm", holm.round(4).tolist())
if not (rejected.any() and numpy.isnan(fdr).all() and numpy.allclose(holm, [0.04, 0.06, numpy.nan, 0.08], equal_nan=True)):
    sys.exit("the behaviour has changed")
END
