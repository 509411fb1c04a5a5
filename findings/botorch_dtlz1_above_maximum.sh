#!/usr/bin/env bash
# BoTorch: the maximum hypervolume of DTLZ1 is that of the front's corners alone: what lies below the front is taken for a cube,
# not a simplex. A further optimal solution exceeds the maximum; the log of the difference, the usual curve, is then NaN.
#
# Versions: botorch 0.18.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     2 objectives: max_hv 159999.75, as of the two corners; with the middle of the front 159999.8125; right is 159999.875.
#           3 objectives: max_hv 63999999.875, as of the three corners; with the middle 63999999.91; right is 63999999.979.
# Source:   botorch/test_functions/multi_objective.py, DTLZ1._max_hv: _ref_val**M - 1 / 2**M; the simplex has 1 / 2**M / M!.
#           openbox/benchmark/objective_functions/synthetic.py of OpenBox 0.9.0 has the same line.
# Advice:   _ref_val**M - 0.5**M / factorial(M).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 torch==2.15.0 botorch==0.18.1
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import sys
from importlib.metadata import version

import torch
from botorch.test_functions.multi_objective import DTLZ1
from botorch.utils.multi_objective.hypervolume import Hypervolume

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "numpy")))
kept = True
for count, corners in ((2, [[1], [0]]), (3, [[1, 1], [1, 0], [0, 0]])):
    problem = DTLZ1(dim=count + 4, num_objectives=count, negate=True)
    middle = [[1 - 1 / count, 0.5][:count - 1]]
    optimal = torch.full((count + 1, problem.dim), 0.5, dtype=torch.float64)
    optimal[:, :count - 1] = torch.tensor(corners + middle, dtype=torch.float64)
    values = problem(optimal)
    volume = Hypervolume(problem.ref_point)
    of_corners, of_all = volume.compute(values[:count]), volume.compute(values)
    regret = torch.tensor(problem.max_hv - of_all, dtype=torch.float64).log10().item()
    right = 400**count - 0.5**count / math.factorial(count)
    print(f"{count} objectives: expected: corners and middle of the front stay below the maximum, {problem.max_hv!r}; seen:",
          f"corners {of_corners!r}, with the middle {of_all!r}, log10 of the difference {regret}; right is {right!r}")
    kept &= of_corners == problem.max_hv < of_all < right and math.isnan(regret)
if not kept:
    sys.exit("the behaviour has changed")
END
