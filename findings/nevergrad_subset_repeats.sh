#!/usr/bin/env bash
# Nevergrad: a subset of the Pareto front has points twice. pareto_front(k) draws with replacement, whatever the way of choosing
# (random, loss-covering, domain-covering, hypervolume): of 20 candidates that are to be trained in full, a fourth
# are repeats, and the hypervolume of the chosen ones is below that of 20 different points.
#
# Versions: nevergrad 1.0.12, numpy 2.4.6; as of 2026-11-28.
# Seen:     a front of 26 points, 20 asked for: 14 different ones on average if random, 15 to 16 by the other ways, never 20.
#           Mean hypervolume of the random ones 0.819, of 20 different random points 0.842.
# Source:   nevergrad/optimization/multiobjective/core.py, ParetoFront.get_front(): RandomState.choice(..., size) without
#           replace=False; documented as a subset of the front with the given maximum size.
# Advice:   pareto_front() without a size, and a choice of one's own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pandas==3.1.1 nevergrad==1.0.12
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import nevergrad
import numpy

print("versions:", *(f"{name} {version(name)}" for name in ("nevergrad", "numpy")))
parameter = nevergrad.p.Scalar(lower=0, upper=1)
optimizer = nevergrad.optimizers.OnePlusOne(parametrization=parameter, budget=26)
optimizer.tell(nevergrad.p.MultiobjectiveReference(), [1.1, 1.1])
for x in numpy.linspace(0, 1, 26):
    optimizer.tell(optimizer.parametrization.spawn_child(new_value=float(x)), [x, 1 - numpy.sqrt(x)])
front = [tuple(map(float, point.losses)) for point in optimizer.pareto_front()]


def volume(points):
    """The area that points of two objectives dominate within (1.1, 1.1)."""
    area, height = 0.0, 1.1
    for x, y in sorted(set(points)):
        area, height = area + (1.1 - x) * (height - y), y
    return area


def subsets(way):
    """Subsets of up to 20 points, each as losses."""
    optimizer.parametrization.random_state.seed(0)
    return [[tuple(map(float, point.losses)) for point in optimizer.pareto_front(20, subset=way)]
            for _ in range(200 if way == "random" else 10)]


drawn = {way: subsets(way) for way in ("random", "loss-covering", "domain-covering", "hypervolume")}
different = {way: round(float(numpy.mean([len(set(subset)) for subset in all_])), 1) for way, all_ in drawn.items()}
most = max(len(set(subset)) for all_ in drawn.values() for subset in all_)
generator = numpy.random.default_rng(0)
ideal = [volume([front[i] for i in generator.choice(len(front), 20, replace=False)]) for _ in range(200)]
volumes = round(float(numpy.mean(list(map(volume, drawn["random"])))), 4), round(float(numpy.mean(ideal)), 4)
print(f"expected: 20 different points of a front of {len(front)}")
print(f"seen: different points, mean {different}, most {most}")
print(f"seen: mean hypervolume of random subsets {volumes[0]}, of 20 different random points {volumes[1]}")
if not (len(front) == 26 and max(different.values()) < 16 and most < 20 and volumes[0] < volumes[1]):
    sys.exit("the behaviour has changed")
END
