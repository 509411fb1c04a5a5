#!/usr/bin/env bash
# pymoo: the Pareto front of WFG2 consists mostly of dominated points, and of others at each run. By IGD to it the true front is
# rated worse than itself with dominated points added.
#
# Versions: pymoo 0.6.2, moocore 0.3.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     two objectives: 57 of the front's 100 points are dominated by others of it (three objectives: about 33 of 136). IGD
#           of the non-dominated ones of 20,000 points is 0.15 to 0.21, of all 20,000 it is about 0.001. Two calls differ.
# Source:   pymoo/problems/many/wfg.py, WFG._calc_pareto_front(): per reference direction the nearest image of random optimal
#           positions; WFG2's front has gaps, and no step filters what is dominated. The generator has no seed.
# Advice:   front[moocore.is_nondominated(front)] of problem.evaluate(problem.pareto_set(n_points=20000)), made once and saved.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pymoo==0.6.2 moocore==0.3.2
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import moocore
import numpy
from pymoo.indicators.igd import IGD
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("pymoo", "moocore", "numpy")))
dominated = {}
for objectives in (2, 3):
    problem = get_problem("wfg2", n_var=10, n_obj=objectives)
    front = problem.pareto_front()
    kept = moocore.is_nondominated(front, keep_weakly=True)
    dominated[objectives] = int((~kept).sum())
    print(f"expected: no point is dominated; seen with {objectives} objectives: {dominated[objectives]} of {len(front)}")
problem = get_problem("wfg2", n_var=10, n_obj=2)
front = problem.pareto_front()
again = get_problem("wfg2", n_var=10, n_obj=2).pareto_front()
values = problem.evaluate(problem.pareto_set(n_points=20000))
best = values[moocore.is_nondominated(values)]
distance, distance_of_best = float(IGD(front)(values)), float(IGD(front)(best))
print(f"expected: IGD of the true front ({len(best)} points of it) is near 0; two fronts of one problem are the same")
print(f"seen: {distance_of_best:.4f}, and {distance:.4f} with {len(values) - len(best)} dominated points added;",
      "the fronts are the same:", numpy.array_equal(front, again))
if not (dominated[2] > 30 and dominated[3] > 10 and distance_of_best > 0.1 > 10 * distance
        and not numpy.array_equal(front, again)):
    sys.exit("the behaviour has changed")
END
