#!/usr/bin/env bash
# BoTorch: the feasible spheres of C2DTLZ2 are larger than its radius, the more so the more objectives. The squared radius is
# subtracted from every term of a sum instead of once: solutions count as feasible that violate the constraint.
#
# Versions: botorch 0.18.1, torch 2.15.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     20,000 solutions near the front, radius 0.2: feasible by pymoo and by BoTorch, with 2 objectives 10,206 and 12,276,
#           with 3 4,236 and 8,399, with 5 2,757 and 7,895. BoTorch's numbers are those of spheres at the corners with a squared
#           radius M - 1 times, and in the middle M times, as large.
# Source:   botorch/test_functions/multi_objective.py, C2DTLZ2._evaluate_slack_true(): "- self._r**2" inside both sums.
# Advice:   compute the slack from the objectives; do not compare hypervolumes of C2DTLZ2 with other libraries' or papers'.
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
from botorch.test_functions.multi_objective import C2DTLZ2
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "pymoo", "numpy")))


def inside(values, corner, middle):
    """Within the spheres of these squared radii around the corners or the middle of the front."""
    count = values.shape[1]
    to_corners = [((values - numpy.eye(count)[i]) ** 2).sum(axis=1) for i in range(count)]
    return (numpy.min(to_corners, axis=0) <= corner) | (((values - count**-0.5) ** 2).sum(axis=1) <= middle)


generator = torch.Generator().manual_seed(0)
kept = True
for count in (2, 3, 5):
    problem, other = C2DTLZ2(dim=8, num_objectives=count), get_problem("c2dtlz2", n_var=8, n_obj=count, r=0.2)
    solutions = torch.rand(20000, 8, dtype=torch.float64, generator=generator)
    solutions[:, count - 1:] = 0.45 + 0.1 * solutions[:, count - 1:]
    values, violations = other.evaluate(solutions.numpy(), return_values_of=["F", "G"])
    by_pymoo, by_botorch = violations[:, 0] <= 0, problem.is_feasible(solutions).numpy()
    once = numpy.array_equal(inside(values, 0.04, 0.04), by_pymoo)
    often = numpy.array_equal(inside(values, 0.04 * (count - 1), 0.04 * count), by_botorch)
    print(f"{count} objectives: expected feasible: {by_pymoo.sum()}; seen: {by_botorch.sum()};",
          f"pymoo has the stated spheres: {once}, BoTorch those with the radius once a term: {often}")
    kept &= once and often and by_botorch.sum() > 1.1 * by_pymoo.sum() and numpy.allclose(problem(solutions).numpy(), values)
if not kept:
    sys.exit("the behaviour has changed")
END
