#!/usr/bin/env bash
# jMetalPy: in the real-world problems RE41, RE42 and RE61 the last objective, the sum of the constraints' violations, is the sum
# of what is left until they are violated. What is far from any violation is worst, what violates all of them has the best value,
# 0. In the other problems of the suite, RE22 to RE36, it is right.
#
# Versions: jmetalpy 1.9.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     2,000 random solutions of RE61, of which 1,837 are feasible: 62,648 or more for these, the least, 5,097, for one with
#           a violation of 37,777. RE42 is never below 497,003. RE41 has 5.92 or more for 361 feasible solutions, and 21 different
#           values for 2,000.
# Source:   jmetal/problem/multiobjective/re.py, RE41, RE42 and RE61: max(0, g) of constraints g >= 0, where the suite (Tanabe and
#           Ishibuchi 2020, reproblem.py) sums -g of those below 0. RE41 rounds its seven continuous variables to integers, too.
# Advice:   compute the violations oneself; do not compare fronts with the suite's reference fronts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pymoo==0.6.2 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from jmetal.problem.multiobjective.re import RE41, RE42, RE61
from pymoo.problems.multi.carside import Carside

print("versions:", *(f"{name} {version(name)}" for name in ("jmetalpy", "pymoo", "numpy")))
# The seven constraints of RE61, a + b / (x1 x2) + c x3 <= limit; the sixth has b x1 x2.
RE61_ROWS = numpy.array([
    (-0.08, 0.00139, 4.94, 1), (-0.0986, 0.000306, 1.082, 1), (4051.02, 12.307, 49408.24, 50000),
    (-696.71, 2.098, 8046.33, 16000), (-705.04, 2.138, 7883.39, 10000), (-136.54, 0.417, 1721.26, 2000),
    (-54.48, 0.164, 631.13, 550)])


def violation_61(x):
    product = numpy.full(7, 1 / (x[0] * x[1]))
    product[5] = x[0] * x[1]
    a, b, c, limit = RE61_ROWS.T
    return numpy.maximum(0, a + b * product + c * x[2] - limit).sum()


def last(problem, x):
    solution = problem.create_solution()
    solution.variables = list(map(float, x))
    problem.evaluate(solution)
    return float(solution.objectives[-1])


def drawn(problem):
    low, high = numpy.array(problem.lower_bound), numpy.array(problem.upper_bound)
    return low + (high - low) * numpy.random.default_rng(0).random((2000, len(low)))


points = drawn(RE61())
seen, right = numpy.array([last(RE61(), x) for x in points]), numpy.array([violation_61(x) for x in points])
best = seen.argmin()
print("expected: RE61: 0 for each of the", int((right == 0).sum()), "feasible ones of 2,000 random solutions")
print(f"seen: RE61: {seen[right == 0].min():.0f} to {seen[right == 0].max():.0f} for them; the least, {seen[best]:.0f},",
      f"for one with a violation of {right[best]:.0f}")
side, points = Carside(), drawn(RE41())
fine = numpy.maximum(0, side.evaluate(points, return_values_of=["G"])).sum(axis=1) == 0
values = numpy.array([last(RE41(), x) for x in points])
different = len(numpy.unique(values.round(9)))
print(f"seen: RE41: {values[fine].min():.2f} or more for the {int(fine.sum())} solutions that are feasible in pymoo;",
      f"the 2,000 have {different} different values")
ship = [last(RE42(), x) for x in drawn(RE42())]
print(f"seen: RE42: never below {min(ship):.0f}, the tonnage left to its limit of 500,000")
if not ((right == 0).sum() > 100 and seen[right == 0].min() > 0 and right[best] > 0 and min(ship) > 3e5
        and values[fine].min() > 0):
    sys.exit("the behaviour has changed")
END
