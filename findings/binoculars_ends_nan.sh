#!/usr/bin/env bash
# binoculars: Clopper and Pearson's interval of runs that all solve a task, or all fail, has no end on that side: NaN in place of 1, or of
# 0. Whoever compares it with a bound (is at least 0.9 of it possible?) gets False, whatever the bound.
#
# Versions: binoculars 0.1.3, scipy 1.17.1, numpy 2.4.6; as of 2026-11-29.
# Seen:     0 of 20: nan to 0.168; 20 of 20: 0.832 to nan; 19 of 20 and 1 of 20 as SciPy has them.
# Source:   beta.ppf() with a parameter of 0, which is no beta distribution; the exact interval ends at 0 and 1 there by definition.
# Advice:   scipy.stats.binomtest(k, n).proportion_ci(), or statsmodels' proportion_confint(method="beta").
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 binoculars==0.1.3
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import sys
from importlib.metadata import version

from binoculars import binomial_confidence
from scipy.stats import binomtest

print("versions:", *(f"{name} {version(name)}" for name in ("binoculars", "scipy", "numpy")))
changed = False
for count in (0, 1, 19, 20):
    truth = binomtest(count, 20).proportion_ci()
    low, high = (float(end) for end in binomial_confidence(count / 20, 20, method="clopper-pearson"))
    print(f"{count} of 20: expected {truth.low:.3f} to {truth.high:.3f}; seen {low:.3f} to {high:.3f}")
    inner = (abs(low - truth.low) < 1e-3 or count == 0) and (abs(high - truth.high) < 1e-3 or count == 20)
    changed = changed or not inner or math.isnan(low) != (count == 0) or math.isnan(high) != (count == 20)
if changed:
    sys.exit("the behaviour has changed")
END
