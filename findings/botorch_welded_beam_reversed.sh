#!/usr/bin/env bash
# BoTorch: the constraints of the multi-objective WeldedBeam are reversed. Where the library says that positive slack is feasible,
# this problem's slack is positive if a constraint is violated: what it calls feasible is beams that break in every way.
#
# Versions: botorch 0.18.1, torch 2.15.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     100,000 random beams: feasible 31,913 by pymoo, from which the problem is taken, 535 by BoTorch, none by both; the
#           slack is pymoo's violation, number by number. The 535 violate all four constraints. OSY agrees.
# Source:   botorch/test_functions/multi_objective.py, WeldedBeam._evaluate_slack_true(): pymoo's g1 to g4, feasible below 0, are
#           returned as they are; WeldedBeamSO in synthetic.py negates them, OSY is rewritten.
# Advice:   turn the sign of evaluate_slack(X) and do not use is_feasible(X) for this problem.
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
from botorch.test_functions.multi_objective import OSY, WeldedBeam
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "pymoo", "numpy")))
agree = {}
for name, problem, other in (("OSY", OSY(), get_problem("osy")), ("WeldedBeam", WeldedBeam(), get_problem("welded_beam"))):
    low, high = problem.bounds.double()
    draws = torch.rand(100000, problem.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    solutions = low + (high - low) * draws
    values, violations = other.evaluate(solutions.numpy(), return_values_of=["F", "G"])
    expected, seen = (violations <= 0).all(axis=1), problem.is_feasible(solutions).numpy()
    same = numpy.allclose(problem(solutions).numpy(), values)
    agree[name] = int((expected & seen).sum()), int(expected.sum()), int(seen.sum())
    print(f"{name}: the objectives agree: {same}; expected feasible: {agree[name][1]};",
          f"seen: {agree[name][2]}, by both {agree[name][0]}")
slack = problem.evaluate_slack(solutions).numpy()
is_violation = numpy.allclose(slack, violations)
broken = int((violations[seen] >= 0).all(axis=1).sum())
print(f"expected: positive slack is feasible; seen: the slack of WeldedBeam is its violation: {is_violation};",
      f"of {agree['WeldedBeam'][2]} 'feasible' beams {broken} violate all four constraints")
if not (agree["OSY"][0] == agree["OSY"][1] == agree["OSY"][2] > 0 and is_violation and agree["WeldedBeam"][0] == 0
        and agree["WeldedBeam"][1] > 10000 and broken == agree["WeldedBeam"][2] > 0):
    sys.exit("the behaviour has changed")
END
