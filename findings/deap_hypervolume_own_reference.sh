#!/usr/bin/env bash
# DEAP: without a reference point, the hypervolume of a front is measured from the worst value of that front itself, plus 1. It
# does not fall where all points get worse, rises with a bad point, and is small for a point that dominates the whole front.
#
# Versions: deap 1.4.4, moocore 0.3.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     (1, 3), (2, 2), (3, 1) minimised: 6; all of it worse by 10: 6; the point (1, 1) alone: 1; with (50, 0.9) added: 147.1.
#           With ref=[60, 60] they are 3478, 2398, 3481 and 3479, as moocore's.
# Source:   deap/benchmarks/tools.py, hypervolume(front, ref=None): without ref it is the front's worst of each objective plus 1.
# Advice:   always give ref, one for all fronts, runs and generations that are compared, and beyond the worst value of any; the
#           same for deap.tools.indicator.hypervolume.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 deap==1.4.4 moocore==0.3.2
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import moocore
from deap import base, creator
from deap.benchmarks.tools import hypervolume

print("versions: deap", version("deap"), "moocore", version("moocore"), "numpy", version("numpy"))
creator.create("Minimised", base.Fitness, weights=(-1.0, -1.0))
creator.create("Architecture", list, fitness=creator.Minimised)
REFERENCE = [60, 60]


def individuals(points):
    result = []
    for point in points:
        one = creator.Architecture()
        one.fitness.values = point
        result.append(one)
    return result


first = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]
fronts = {
    "front": first,
    "worse by 10": [(x + 10, y + 10) for x, y in first],
    "one point that dominates all": [(1.0, 1.0)],
    "one poor point more": [*first, (50.0, 0.9)],
}
default = [round(hypervolume(individuals(points)), 4) for points in fronts.values()]
common = [round(hypervolume(individuals(points), ref=REFERENCE), 4) for points in fronts.values()]
checked = [round(moocore.hypervolume(points, ref=REFERENCE), 4) for points in fronts.values()]
print("expected: a larger number is a better front, as with one reference:", dict(zip(fronts, common)), "moocore", checked)
print("seen:", dict(zip(fronts, default)))
front, worse, best, more = default
if not (front == worse and best < front and more > 20 * front and common == checked and common[1] < common[0] < common[2]):
    sys.exit("the behaviour has changed")
END
