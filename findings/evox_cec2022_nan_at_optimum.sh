#!/usr/bin/env bash
# EvoX: the four composition functions of CEC 2022, F9 to F12, are NaN exactly at their optimum, and at the centres of their other
# components. A search in float32 that arrives there loses the solution, or has NaN as its best value; a test that evaluates the
# known optimum finds NaN.
#
# Versions: evox 1.4.0, minionpy 1.9.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     minionpy has 2300, 2400, 2600 and 2700 at the optima, EvoX NaN, and these values 1e-9 beside them. A population with
#           the optimum has NaN as its least value.
# Source:   evox/problems/numerical/cec2022.py, cf_cal(): the weight of a centre is set to infinity there; divided by the sum of
#           the weights this is NaN. The competition's code has a large finite number.
# Advice:   torch.nan_to_num(values, nan=optimum), or minionpy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 evox==1.4.0 minionpy==1.9.1
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import sys
from importlib.metadata import version

import minionpy
import torch
from evox.problems.numerical import CEC2022

print("versions:", *(f"{name} {version(name)}" for name in ("evox", "minionpy", "torch", "numpy")))
torch.set_default_dtype(torch.float64)
at, near, other, centres, best = {}, {}, {}, {}, {}
for number in range(1, 13):
    problem = CEC2022(number, 10)
    shifts = problem.OShift.reshape(-1, 10).double()
    optimum = shifts[0]
    third = minionpy.CEC2022Functions(function_number=number, dimension=10)
    at[number] = round(float(problem.evaluate(optimum[None])), 3)
    near[number] = round(float(problem.evaluate(optimum[None] + 1e-9)), 3)
    other[number] = round(float(third([optimum.tolist()])[0]), 3)
    if number > 8:
        values = problem.evaluate(shifts)
        centres[number] = int(values.isnan().sum())
        best[number] = float(problem.evaluate(torch.stack([optimum, optimum + 1, optimum + 2])).min())
print("expected: at the optimum (minionpy)", other)
print("seen: at the optimum", at)
print("seen: 1e-9 beside it", near)
print("seen: number of centres with NaN", centres, "- least value of a population with the optimum", best)
nan = [number for number, value in at.items() if math.isnan(value)]
if not (nan == [9, 10, 11, 12] and not any(map(math.isnan, [*near.values(), *other.values()]))):
    sys.exit("the behaviour has changed")
END
