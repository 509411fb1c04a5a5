#!/usr/bin/env bash
# pygmo: of three objectives, the hypervolume contributions of points that share a value are wrong, and so is the point that
# contributes least. Values are shared wherever objectives are counts: parameters, layers, bytes of a cache.
#
# Versions: pygmo 2.20.0, moocore 0.3.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     (4, 2, 3), (4, 4, 0), (0, 0, 4) with reference 7: contributions 6, 27, 120; the hypervolume falls by 6, 27, 102. Of
#           fronts of 3 to 8 integer points below 8 about one in 20 has a wrong one; pygmo.hvwfg() makes none.
# Source:   pagmo2, src/utils/hv_algos/hv_hv3d.cpp: hv3d::contributions(), the default of three objectives, sorts by the third
#           alone and compares by > where a neighbour's value may be equal; hypervolume.compute() is right.
# Advice:   pass the algorithm: contributions(reference, pygmo.hvwfg()), least_contributor and greatest_contributor the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pygmo==2.20.0 moocore==0.3.2
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import moocore
import numpy
import pygmo

print("versions: pygmo", version("pygmo"), "moocore", version("moocore"), "numpy", version("numpy"))


def losses(points, reference):
    """By how much the hypervolume falls without each point."""
    whole = moocore.hypervolume(points, ref=reference)
    return [whole - moocore.hypervolume(numpy.delete(points, i, 0), ref=reference) for i in range(len(points))]


front = numpy.array([[4.0, 2.0, 3.0], [4.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
reference = [7.0] * 3
default = pygmo.hypervolume(front).contributions(reference).tolist()
by_wfg = pygmo.hypervolume(front).contributions(reference, pygmo.hvwfg()).tolist()
expected = losses(front, reference)
numbers = numpy.random.default_rng(0)
fronts = wrong = least = wrong_wfg = 0
while fronts < 1000:
    points = numbers.integers(0, 8, size=(numbers.integers(3, 9), 3)).astype(float)
    if not moocore.is_nondominated(points, keep_weakly=False).all():
        continue
    fronts += 1
    volume, true = pygmo.hypervolume(points), losses(points, [9.0] * 3)
    wrong += not numpy.allclose(volume.contributions([9.0] * 3), true)
    wrong_wfg += not numpy.allclose(volume.contributions([9.0] * 3, pygmo.hvwfg()), true)
    least += true[volume.least_contributor([9.0] * 3)] > min(true) + 1e-9
print("expected: what the hypervolume falls by without a point:", [float(value) for value in expected], "hvwfg:", by_wfg)
print("seen:", default, f"; of {fronts} fronts {wrong} have wrong contributions, {least} a wrong least one; hvwfg: {wrong_wfg}")
if not (by_wfg == expected and default[2] > expected[2] and wrong > 10 and least > 0 and wrong_wfg == 0):
    sys.exit("the behaviour has changed")
END
