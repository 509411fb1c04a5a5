#!/usr/bin/env bash
# pygmo: an objective that is equal for the whole front makes every inner crowding distance NaN, and NSGA-II's selection then
# drops the extreme points instead of keeping them.
#
# Versions: pygmo 2.20.0, numpy 2.4.6 (Python 3.11 and later); as of 2026-11-27.
# Seen:     crowding [inf nan nan inf]; select_best_N_mo(front, 2) = [1, 2]. Without the constant objective: [0, 3].
# Source:   pagmo2, src/utils/multi_objective.cpp: crowding_distance() divides by the objective's range, here 0 / 0, and
#           select_best_N_mo() sorts by greater_than_f() of detail/custom_comparisons.hpp, to which NaN is greater than inf.
# Advice:   leave objectives that are constant in the population out (the same cache size, the same number of parameters), or add
#           a negligible tie-breaker, before a front goes to pagmo's NSGA-II or to crowding_distance().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pygmo==2.20.0
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import numpy
import pygmo

print("versions: pygmo", version("pygmo"), "numpy", version("numpy"))
front = [[0.0, 3.0], [1.0, 2.0], [2.0, 1.0], [3.0, 0.0]]
with_constant = [point + [7.0] for point in front]
distances = pygmo.crowding_distance(with_constant)
plain = sorted(int(i) for i in pygmo.select_best_N_mo(front, 2))
chosen = sorted(int(i) for i in pygmo.select_best_N_mo(with_constant, 2))
print("expected: a constant objective adds nothing: finite inner distances; 0 and 3 are kept, as without it:", plain)
print("seen: distances", distances, "kept", chosen)
if not (plain == [0, 3] and numpy.isnan(distances[1:3]).all() and chosen == [1, 2]):
    sys.exit("the behaviour has changed")
END
