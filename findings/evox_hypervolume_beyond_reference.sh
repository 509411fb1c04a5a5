#!/usr/bin/env bash
# EvoX: hv() takes the distances to the reference point without their sign. A solution beyond it, worse in all objectives, counts
# as if it were as far on the better side: the worse, the larger the hypervolume. A random population of DTLZ1 has a hypervolume
# of millions, the converged one less than 1, and below 1 is all that is possible.
#
# Versions: evox 1.4.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     reference (1, 1): (0.5, 0.5) has 0.25, with the dominated (3, 3) beside it 4, (3, 3) alone 4; (0.2, 5), of which
#           nothing is within, 3.2; exact values 0.25, 0.25, 0 and 0. NSGA-II on DTLZ1, reference (1, 1, 1): 4e6 at the beginning,
#           0.97 after 150 generations; without what is beyond the reference 0 and 0.97.
# Source:   evox/metrics/hv.py, hv(): points = torch.abs(objs - ref); the docstring names no condition for objs.
# Advice:   hv(objs[(objs < ref).all(dim=1)], ref), and 0 where nothing is left; or moocore's or pygmo's exact hypervolume.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 evox==1.4.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from evox.algorithms import NSGA2
from evox.metrics import hv
from evox.problems.numerical import DTLZ1
from evox.workflows import StdWorkflow

print("versions:", *(f"{name} {version(name)}" for name in ("evox", "torch", "numpy")))
torch.manual_seed(0)


def exact(points):
    """The area of two objectives that is dominated within (1, 1)."""
    area, height = 0.0, 1.0
    for x, y in sorted(points):
        if x < 1 and y < height:
            area, height = area + (1 - x) * (height - y), y
    return area


def within(points, reference):
    """EvoX's hypervolume of what is better than the reference."""
    kept = points[(points < reference).all(dim=1)]
    return round(float(hv(kept, reference)), 2) if len(kept) else 0.0


fronts = [(0.5, 0.5)], [(0.5, 0.5), (3.0, 3.0)], [(3.0, 3.0)], [(0.2, 5.0)]
seen = [round(float(hv(torch.tensor(points), torch.ones(2))), 2) for points in fronts]
print("expected:", {str(points): exact(points) for points in fronts})
print("seen:    ", dict(zip(map(str, fronts), seen)))
reference = torch.ones(3)
algorithm = NSGA2(pop_size=100, n_objs=3, lb=torch.zeros(7), ub=torch.ones(7))
workflow = StdWorkflow(algorithm, DTLZ1(d=7, m=3))
workflow.init_step()
first, first_within = float(hv(algorithm.fit, reference)), within(algorithm.fit, reference)
for _ in range(150):
    workflow.step()
last, last_within = float(hv(algorithm.fit, reference)), within(algorithm.fit, reference)
print("expected of NSGA-II on DTLZ1: 0 at first, then at most 1; of what is within the reference:", first_within, last_within)
print(f"seen: {first:.2g} at first, {last:.2f} at last")
if not (seen[0] == 0.25 and abs(seen[1] - 4) < 0.1 and abs(seen[2] - 4) < 0.1 and seen[3] > 3 and first > 1e5 and last < 1
        and first_within == 0 and last_within > 0.9):
    sys.exit("the behaviour has changed")
END
