#!/usr/bin/env bash
# jMetalPy: in its DTLZ problems with equality constraints what satisfies a constraint is infeasible and what violates it is
# feasible. The constraint is stored as a violation, positive if violated; the library takes negative values for violations.
#
# Versions: jmetalpy 1.9.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     of Eq1_DTLZ1, Eq1_DTLZ2 and their inverted versions, all random solutions off the circle are feasible, all on it
#           infeasible. None of 100 solutions of NSGA-II satisfies the constraint, and the library calls all feasible.
# Source:   jmetal/problem/multiobjective/eqdtlz.py, constraints of all eight problems: |distance^2 - r^2| - 1e-4 with the sign of
#           the authors' code; jmetal/util/constraint_handling.py counts values below 0 as violated.
# Advice:   subclass and change the signs of solution.constraints.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import logging
import random
import sys
from importlib.metadata import version

import numpy
from jmetal.algorithm.multiobjective.nsgaii import NSGAII
from jmetal.operator.crossover import SBXCrossover
from jmetal.operator.mutation import PolynomialMutation
from jmetal.problem.multiobjective import constrained, eqdtlz
from jmetal.util.constraint_handling import is_feasible
from jmetal.util.termination_criterion import StoppingByEvaluations

logging.disable(logging.CRITICAL)
print("versions: jmetalpy", version("jmetalpy"), "numpy", version("numpy"))


def feasible(problem, variables):
    solution = problem.create_solution()
    solution.variables = list(map(float, variables))
    problem.evaluate(solution)
    return bool(is_feasible(solution))


ordinary = [feasible(constrained.Srinivas(), x) for x in ((-2.5, 2.5), (20, 20))]
generator, drawn, curve = numpy.random.default_rng(0), {}, {}
for name in ("Eq1_DTLZ1", "Eq1_IDTLZ1", "Eq1_DTLZ2", "Eq1_IDTLZ2"):
    problem = getattr(eqdtlz, name)()
    points = generator.random((500, problem.number_of_variables()))
    away = numpy.abs(((points[:, :2] - 0.5) ** 2).sum(axis=1) - 0.4**2) > 1e-3
    drawn[name] = sum(feasible(problem, x) for x in points[away]) / away.sum().item()
    angle = 2 * numpy.pi * generator.random(len(points))
    points[:, :2] = 0.5 + 0.4 * numpy.column_stack([numpy.cos(angle), numpy.sin(angle)])
    curve[name] = sum(feasible(problem, x) for x in points) / len(points)
random.seed(1)
numpy.random.seed(1)
problem = eqdtlz.Eq1_DTLZ2()
search = NSGAII(problem, population_size=100, offspring_population_size=100, mutation=PolynomialMutation(1 / 12, 20),
                crossover=SBXCrossover(0.9, 20), termination_criterion=StoppingByEvaluations(10000))
search.run()
distances = [abs((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2 - 0.16) for x in (s.variables for s in search.result())]
kept = sum(distance <= 1e-4 for distance in distances)
print("expected: feasible on the circle alone; of Srinivas' problem, (-2.5, 2.5) feasible, (20, 20) not:", ordinary)
print("seen: share feasible off the circle", drawn)
print("seen: share feasible on the circle", curve)
print(f"seen: of {len(distances)} solutions that NSGA-II returns for Eq1_DTLZ2, {kept} satisfy the constraint,",
      f"median error {numpy.median(distances):.2g}; the library calls {sum(map(is_feasible, search.result()))} feasible")
if not (ordinary == [True, False] and min(drawn.values()) == 1 and max(curve.values()) == 0 and kept == 0):
    sys.exit("the behaviour has changed")
END
