#!/usr/bin/env bash
# moocore: the weighted hypervolume falls or rises if a dominated solution is in the set, though it covers nothing of its own. The
# plain hypervolume of the same library does not change.
#
# Versions: moocore 0.3.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     (1, 1) with one rectangle of weight 1 from (0, 0) to (6, 6): 25; with (2, 3) added: 22. 60 fronts of about six
#           solutions with the differences between two algorithms' attainment functions as weights: from the front alone all 60
#           are right, with two dominated solutions all 60 are wrong, from -0.77 to 1.16 times the right value, half below 0.93.
#           Points of the fronts that the weights come from, of which rectangles have their sides: 6 of 180 are wrong, too.
# Source:   moocore/_moocore.py, whv_rect() and total_whv_rect(), give the points as they are to rect_weighted_hv2d() in C. The
#           text of neither asks for points that do not dominate one another.
# Advice:   filter_dominated() before; compare with a sum over cells where points and rectangles share coordinates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 moocore==0.3.2
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from moocore import eafdiff, filter_dominated, hypervolume, whv_rect

print("versions: moocore", version("moocore"), "numpy", version("numpy"))
REFERENCE = numpy.array([1.5, 1.5])


def exact(points, rectangles):
    """Cell by cell between all coordinates that occur."""
    sides = [
        numpy.unique(numpy.clip(numpy.concatenate([points[:, k], rectangles[:, k], rectangles[:, k + 2]]), -9, REFERENCE[k]))
        for k in (0, 1)
    ]
    total = 0.0
    for left, right in zip(sides[0], sides[0][1:]):
        for low, high in zip(sides[1], sides[1][1:]):
            if any(x <= left and y <= low for x, y in points):
                weights = (w for a, b, c, d, w in rectangles if a <= left and b <= low and right <= c and high <= d)
                total += (right - left) * (high - low) * sum(weights)
    return total


def front(random, worse):
    share = random.random(6)
    return filter_dominated(numpy.column_stack([share, 1 - share**0.5]) + worse + 0.1 * random.random((6, 2)))


square, one = numpy.array([[0.0, 0.0, 6.0, 6.0, 1.0]]), numpy.array([[1.0, 1.0]])
two = numpy.vstack([one, [[2.0, 3.0]]])
small = [float(whv_rect(points, square, ref=6)) for points in (one, two)]
print("expected: 25 for (1, 1), with (2, 3), too, as the hypervolume:", *(float(hypervolume(each, ref=6)) for each in (one, two)))
print("seen:", *small)

ratios = {"a front": [], "the front and two dominated solutions": [], "fronts that the weights come from": []}
for seed in range(60):
    random = numpy.random.default_rng(seed)
    runs = [[front(random, worse) for _ in range(3)] for worse in (0, 0.05)]
    marked = [numpy.vstack([numpy.column_stack([x, numpy.full(len(x), k)]) for k, x in enumerate(run, 1)]) for run in runs]
    rectangles = eafdiff(*marked, rectangles=True)
    new = front(random, 0)
    groups = [[new], [numpy.vstack([new, new[:2] + 0.05])], runs[0]]
    for group, values in zip(groups, ratios.values()):
        values += [float(whv_rect(each, rectangles, ref=REFERENCE) / exact(each, rectangles)) for each in group]
print("expected: 1 times the weighted area, cell by cell")
wrong = {}
for name, values in ratios.items():
    wrong[name] = sum(abs(value - 1) > 1e-6 for value in values)
    low, middle, high = numpy.quantile(values, [0, 0.5, 1])
    print(f"seen: {name}: {wrong[name]} of {len(values)} wrong; {low:.2f} to {high:.2f}, median {middle:.2f}")
counts = [*wrong.values()]
if not (small == [25, 22] and counts[0] == 0 and counts[1] > 50 and 0 < counts[2] < 20):
    sys.exit("the behaviour has changed")
END
