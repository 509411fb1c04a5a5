#!/usr/bin/env bash
# jMetalPy: UF1, UF2, UF3 and UF7 do not depend on their second variable, and UF9 has many local fronts that the problem has not.
# So five of the ten problems of CEC 2009 have other values than in pygmo and Platypus, which agree in all.
#
# Versions: jmetalpy 1.9.0, pygmo 2.20.0, Platypus-Opt 1.4.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     largest differences in 100 random solutions with 30 variables: 0.39 in UF1, 1.0 in UF2, 0.31 in UF3, 0.38 in UF7, 12
#           in UF9. A second variable from -1 to 1 changes nothing in UF1, UF2, UF3 and UF7.
# Source:   jmetal/problem/multiobjective/uf.py: loops from the third variable on ("range(2, n)" counts from 0) in UF1, UF2, UF3
#           and UF7; UF9 sums the distances of UF10, with a cosine, in place of their squares. The variables of UF3 may be -1.
# Advice:   pygmo's cec2009 or Platypus for these problems.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pygmo==2.20.0 Platypus-Opt==1.4.1 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import platypus
import pygmo
from jmetal.problem.multiobjective import uf

print("versions:", *(f"{name} {version(name)}" for name in ("jmetalpy", "pygmo", "Platypus-Opt", "numpy")))
random = numpy.random.default_rng(0)
other, agree, unused, bounds, errors = [], [], [], [], {}
for number in range(1, 11):
    own = getattr(uf, f"UF{number}")()
    second, third = pygmo.problem(pygmo.cec2009(prob_id=number, dim=30)), getattr(platypus, f"UF{number}")(30)
    low, high = map(numpy.array, second.get_bounds())

    def values(x):
        """By jMetalPy, pygmo and Platypus."""
        solution, plain = own.create_solution(), platypus.Solution(third)
        solution.variables, plain.variables[:] = list(map(float, x)), list(map(float, x))
        own.evaluate(solution)
        plain.evaluate()
        return [numpy.array(list(each), float) for each in (solution.objectives, second.fitness(x), plain.objectives)]

    drawn = [values(x) for x in low + (high - low) * random.random((100, 30))]
    moved = numpy.tile(low + (high - low) * random.random(30), (20, 1))
    moved[:, 1] = numpy.linspace(low[1], high[1], 20)
    moves = [numpy.ptp([values(x)[k] for x in moved], axis=0).max() > 0 for k in range(3)]
    if all(numpy.allclose(b, c) for _, b, c in drawn):
        agree.append(number)
    if not all(numpy.allclose(a, b) for a, b, _ in drawn):
        other.append(number)
        errors[number] = round(float(max(numpy.abs(a - b).max() for a, b, _ in drawn)), 2)
    if not moves[0] and moves[1] and moves[2]:
        unused.append(number)
    if not numpy.allclose(own.lower_bound, low):
        bounds.append(number)
print("expected: the same values for the same variables; pygmo and Platypus agree in", agree)
print("seen: jMetalPy has other values in", other, "- largest difference", errors)
print("seen: the second variable has no effect in jMetalPy alone in", unused, "- other bounds in", bounds)
if not (agree == [*range(1, 11)] and other == [1, 2, 3, 7, 9] and unused == [1, 2, 3, 7] and bounds == [3]):
    sys.exit("the behaviour has changed")
END
