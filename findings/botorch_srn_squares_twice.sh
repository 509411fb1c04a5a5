#!/usr/bin/env bash
# BoTorch: SRN squares its variables twice in the first constraint. The circle of radius 15 becomes a patch of width 3.9, the true
# front's solutions are infeasible, and the first objective is moved by 1. With its reference point each front has hypervolume 0.
#
# Versions: botorch 0.18.1, torch 2.15.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     20,000 random solutions: 3,203 feasible by pymoo, 43 by BoTorch; of 50 Pareto-optimal ones five; hypervolume 0.0.
# Source:   botorch/test_functions/multi_objective.py, SRN._evaluate_slack_true(): X.pow(2) is squared once more;
#           _evaluate_true() subtracts 2 from both variables, where SRN has 2 and 1; _ref_point is (0, 0), the first objective at
#           least 2. BNH has the same reference point, and hypervolume 0, too.
# Advice:   take SRN (pymoo's "srn") from elsewhere and choose a reference point, such as (250, 50).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pymoo==0.6.2 torch==2.15.0 botorch==0.18.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import torch
from botorch.test_functions.multi_objective import SRN
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "pymoo", "numpy")))
problem, other = SRN(negate=True), get_problem("srn")
solutions = 40 * torch.rand(20000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 20
values, violations = other.evaluate(solutions.numpy(), return_values_of=["F", "G"])
by_pymoo, by_botorch = (violations <= 0).all(axis=1), problem.is_feasible(solutions).numpy()
x, y = solutions.numpy().T
twice = (x**4 + y**4 <= 225) & (x - 3 * y + 10 <= 0)
line = numpy.column_stack([numpy.full(50, -2.5), numpy.linspace(2.5, 14.7, 50)])
on_front = [int((other.evaluate(line, return_values_of="G") <= 0).all(axis=1).sum()),
            int(problem.is_feasible(torch.tensor(line)).sum())]
moved = numpy.allclose(-problem(solutions).numpy()[:, 0] - values[:, 0], (y - 2) ** 2 - (y - 1) ** 2)
feasible = problem(solutions)[problem.is_feasible(solutions)]
volume = Hypervolume(problem.ref_point).compute(feasible[is_non_dominated(feasible)])
print(f"expected feasible of 20,000: {by_pymoo.sum()}, as by pymoo; seen: {by_botorch.sum()}, those with fourth powers:",
      numpy.array_equal(twice, by_botorch))
print(f"expected feasible of 50 Pareto-optimal solutions: {on_front[0]}; seen: {on_front[1]}; first objective is moved: {moved}")
print(f"expected: a hypervolume above 0 by the problem's own reference point; seen: {volume}")
if not (numpy.array_equal(twice, by_botorch) and 10 * by_botorch.sum() < by_pymoo.sum() and on_front[0] == 50 and moved
        and on_front[1] < 10 and volume == 0):
    sys.exit("the behaviour has changed")
END
