#!/usr/bin/env bash
# jMetalPy: LIR-CMOP5 and LIR-CMOP6 have no infeasible solutions. The offset of the second objective is 7057 in place of 0.7057,
# so no solution comes near the two ellipses that forbid most of the objective space before the front. Algorithms are compared on
# an unconstrained problem, and no front lies within the published reference points.
#
# Versions: jmetalpy 1.9.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     2,000 solutions at a short distance from the front, in LIR-CMOP5 and LIR-CMOP6: all feasible, by the paper 670 and
#           604. The second objective is 7,057 or more.
# Source:   jmetal/problem/multiobjective/lircmop.py, LIRCMOP5.evaluate() and LIRCMOP6.evaluate(): "+ 7057". Paper (Fan et al.,
#           Soft Computing 2019) and PlatEMO have 0.7057 in both objectives. LIR-CMOP7 and 8 inherit this and raise an IndexError,
#           since they have room for two of their three constraints; 13 and 14 raise one, too.
# Advice:   subclass, subtract 7056.2943 from the second objective and call evaluate_constraints() again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from jmetal.problem.multiobjective.lircmop import LIRCMOP5, LIRCMOP6
from jmetal.util.constraint_handling import is_feasible

print("versions: jmetalpy", version("jmetalpy"), "numpy", version("numpy"))
ELLIPSES = {"LIR-CMOP5": [(1.6, 2, 4), (2.5, 2, 8)], "LIR-CMOP6": [(1.8, 2, 8), (2.8, 2, 8)]}


def allowed(objectives, ellipses):
    """By the paper: outside of ellipses around (c, c), turned by 45 degrees, with squared radius 0.1."""
    x, y = objectives
    u, v = (x + y) / 2**0.5, (y - x) / 2**0.5
    return all(((u - 2**0.5 * c) / a) ** 2 + (v / b) ** 2 >= 0.1 for c, a, b in ellipses)


counts, least = {}, {}
for problem in (LIRCMOP5(), LIRCMOP6()):
    random, seen, right, ends = numpy.random.default_rng(0), 0, 0, []
    for _ in range(2000):
        solution = problem.create_solution()
        share, n = random.random(), problem.number_of_variables()
        angle = 0.5 * numpy.pi * share * numpy.arange(n) / n
        ideal = numpy.where(numpy.arange(n) % 2 == 0, numpy.sin(angle), numpy.cos(angle))
        worse = numpy.sqrt(random.random(2) * 0.3 / (n // 2))
        away = ideal + numpy.where(ideal < 0.5, 1, -1) * numpy.where(numpy.arange(n) % 2 == 0, worse[0], worse[1])
        solution.variables = [float(share), *map(float, away[1:])]
        problem.evaluate(solution)
        seen += is_feasible(solution)
        ends.append(float(solution.objectives[1]))
        right += allowed((solution.objectives[0], solution.objectives[1] - 7057 + 0.7057), ELLIPSES[problem.name()])
    counts[problem.name()], least[problem.name()] = (int(seen), int(right)), round(min(ends), 2)
print("expected: second objectives from 0.7057; feasible of 2,000 near the front, by the paper:",
      {name: right for name, (_, right) in counts.items()})
print("seen: least second objective", least, "- feasible", {name: seen for name, (seen, _) in counts.items()})
if not (all(seen == 2000 and right < 1500 for seen, right in counts.values()) and min(least.values()) > 7000):
    sys.exit("the behaviour has changed")
END
