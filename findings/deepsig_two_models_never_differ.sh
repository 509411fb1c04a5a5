#!/usr/bin/env bash
# deep-significance: multi_aso() with its default correction never finds one of two models better, however far apart they are;
# with more models the correction becomes smaller instead of larger.
#
# Versions: deepsig 1.2.8, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     scores near 1 and near 0.9: aso() 0.10, "better"; multi_aso() of the two 1 (NaN if no score overlaps), 0.10 without
#           the correction. In another case it is 0.41 for one comparison, 0.49 for 2 and 0.42 for 45, and should be 0.77.
# Source:   deepsig/aso.py: confidence_level += (1 - confidence_level) / num_comparisons, for one comparison 0.95 + 0.05 = 1,
#           whose normal quantile is infinite, and for 45 of them 0.951. Bonferroni's is 1 - 0.05 / 45 = 0.9989.
# Advice:   pass use_bonferroni=False with confidence_level=1 - 0.05 / comparisons, and the same to aso().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 deepsig==1.2.8
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from deepsig import aso, multi_aso

print("versions:", *(f"{name} {version(name)}" for name in ("deepsig", "scipy", "numpy")))
options = {"seed": 1, "show_progress": False, "num_bootstrap_iterations": 300}
noise = numpy.random.default_rng(3)
better, worse = noise.normal(1, 0.08, 10), noise.normal(0.9, 0.08, 10)
one = float(aso(better, worse, **options))
two = float(multi_aso({"better": better, "worse": worse}, **options)[0, 1])
without = float(multi_aso({"better": better, "worse": worse}, use_bonferroni=False, **options)[0, 1])
noise = numpy.random.default_rng(2)
first, second = noise.normal(0.6, 1, 30), noise.normal(0, 1, 30)
by_count = {count: round(float(aso(first, second, num_comparisons=count, **options)), 3) for count in (1, 2, 5, 45)}
right = round(float(aso(first, second, confidence_level=1 - 0.05 / 45, **options)), 3)
print(f"expected: below 0.5, the first is better: aso() {one:.2f}, multi_aso() without correction {without:.2f}")
print(f"seen: multi_aso() of the same two models {two:.2f}")
print(f"expected: more comparisons, a larger value; 45 of them with confidence_level=1 - 0.05 / 45: {right}")
print("seen: by the number of comparisons:", by_count)
falls = by_count[2] > by_count[5] > by_count[45] >= by_count[1]
if not (one < 0.3 and without < 0.3 and not two < 0.5 and falls and right > 0.6):
    sys.exit("the behaviour has changed")
END
