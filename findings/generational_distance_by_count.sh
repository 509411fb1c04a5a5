#!/usr/bin/env bash
# Platypus, pymoo: "generational distance" means two things. pymoo's is the mean distance of points to the reference front.
# Platypus divides the root of the sum of squares by the count: more points of the same quality are "nearer", and ranks change.
#
# Versions: Platypus-Opt 1.4.1, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     10 points at distance 0.14 of the front: pymoo 0.14, Platypus 0.045; 1000 points at 0.28: 0.28 and 0.0089.
# Source:   platypus/indicators.py, GenerationalDistance, d = 2 as first defined; for IGD its default is d = 1, the mean.
#           pymoo/indicators/distance_indicator.py: the mean.
# Advice:   GenerationalDistance(front, d=1) is the mean; say which definition a number follows, compare no numbers across
#           libraries, and with d = 2 none of fronts of different sizes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pymoo==0.6.2 Platypus-Opt==1.4.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from platypus import GenerationalDistance, Problem, Real, Solution
from pymoo.indicators.gd import GD

print("versions:", *(f"{name} {version(name)}" for name in ("Platypus-Opt", "pymoo", "numpy")))
problem = Problem(1, 2)
problem.types[:] = Real(0, 1)


def line(count, distance):
    """Points of the front x + y = 1, moved away from it."""
    first = numpy.linspace(0.2, 0.8, count) if distance else numpy.linspace(0, 1, count)
    return numpy.column_stack([first, 1 - first]) + distance / numpy.sqrt(2)


def solutions(points):
    result = []
    for point in points.tolist():
        solution = Solution(problem)
        solution.objectives[:] = point
        solution.constraint_violation, solution.feasible, solution.evaluated = 0.0, True, True
        result.append(solution)
    return result


front = line(2001, 0)


def distances(points, **options):
    """By pymoo and by Platypus."""
    platypus = GenerationalDistance(solutions(front), **options).calculate(solutions(points))
    return round(float(GD(front)(points)), 4), round(float(platypus), 4)


few, many = line(10, 0.14), line(1000, 0.28)
near, far, near_mean, far_mean = distances(few), distances(many), distances(few, d=1), distances(many, d=1)
print("expected: 10 points at distance 0.14 are nearer than 1000 at 0.28; with d=1 both libraries agree:", near_mean, far_mean)
print("seen (pymoo, Platypus): 10 points at 0.14:", near, "; 1000 points at 0.28:", far)
if not (near[0] < far[0] and near[1] > far[1] and near_mean[0] == near_mean[1] and far_mean[0] == far_mean[1]):
    sys.exit("the behaviour has changed")
END
