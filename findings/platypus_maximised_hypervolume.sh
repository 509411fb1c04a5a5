#!/usr/bin/env bash
# Platypus: the hypervolume of maximised objectives drops solutions that are better than the reference set's best, and multiplies
# negative sides of those worse than its worst: a better front has 0, and a bad solution takes away from a good one.
#
# Versions: Platypus-Opt 1.4.1; as of 2026-11-28.
# Seen:     reference set (0, 1), (0.5, 0.5), (1, 0), both objectives maximised: the solution (0.8, 0.8) has 0.64; (1.1, 1.1),
#           which dominates it and the whole set, 0; (0.5, 0.5) 0.25, and with (-0.5, 0.9) beside it 0.05; (-0.5, -0.5) 0.25, too.
#           The same solutions as minimised ones, 1 - f: 0.64, 1, 0.25, 0.25 and 0.
# Source:   platypus/indicators.py, Hypervolume.calculate() keeps normalised objectives of at most 1, which are the better side of
#           a maximised objective; invert() clips minimised objectives alone.
# Advice:   minimise the negative objective; then the reference set's range counts as documented.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check Platypus-Opt==1.4.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

from platypus import Direction, Hypervolume, Problem, Real, Solution

print("versions: Platypus-Opt", version("Platypus-Opt"))


def hypervolume(front, direction):
    """Of a front of two objectives in [0, 1] by the reference set."""
    problem = Problem(1, 2)
    problem.types[:] = Real(0, 1)
    problem.directions[:] = direction

    def solutions(points):
        result = []
        for point in points:
            solution = Solution(problem)
            solution.objectives[:] = point if direction == Direction.MAXIMIZE else [1 - value for value in point]
            solution.constraint_violation, solution.feasible, solution.evaluated = 0.0, True, True
            result.append(solution)
        return result

    return round(Hypervolume(solutions([(0, 1), (0.5, 0.5), (1, 0)])).calculate(solutions(front)), 4)


fronts = [[(0.8, 0.8)], [(1.1, 1.1)], [(0.5, 0.5)], [(0.5, 0.5), (-0.5, 0.9)], [(-0.5, -0.5)]]
minimised = [hypervolume(front, Direction.MINIMIZE) for front in fronts]
maximised = [hypervolume(front, Direction.MAXIMIZE) for front in fronts]
print("expected of", *fronts, "the same as of the mirrored minimised problem:", minimised)
print("seen:", maximised)
if not (minimised == [0.64, 1, 0.25, 0.25, 0] and maximised == [0.64, 0, 0.25, 0.05, 0.25]):
    sys.exit("the behaviour has changed")
END
