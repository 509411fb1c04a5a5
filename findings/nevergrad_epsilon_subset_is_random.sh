#!/usr/bin/env bash
# Nevergrad: subset="EPS", documented as the choice by the epsilon indicator, chooses nothing. Each point's best score begins at
# 0 and is the least of it and distances that are not negative, so all candidate subsets have the score 0, and the first random
# one is returned, as by subset="random".
#
# Versions: nevergrad 1.0.12, numpy 2.4.6; as of 2026-11-28.
# Seen:     a front of 26 points, 8 asked for: for each of 200 seeds "EPS" returns what "random" returns; additive epsilon
#           indicator of both 0.18 on average, of "loss-covering" 0.11, of the best of twelve random subsets 0.10.
# Source:   nevergrad/optimization/multiobjective/core.py, ParetoFront.get_front(): best_score = ... if subset != "EPS" else 0.0.
# Advice:   subset="loss-covering", or the best of some random subsets by an indicator of one's own.
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
optimizer = nevergrad.optimizers.RandomSearch(parametrization=parameter, budget=26)
optimizer.tell(nevergrad.p.MultiobjectiveReference(), [1.1, 1.1])
for x in numpy.linspace(0, 1, 26):
    optimizer.tell(optimizer.parametrization.spawn_child(new_value=float(x)), [x, 1 - numpy.sqrt(x)])
front = numpy.array([point.losses for point in optimizer.pareto_front()])


def epsilon(subset):
    """By how much a subset must be moved so that it weakly dominates the front."""
    return float((subset[:, None] - front[None]).max(axis=2).min(axis=0).max())


def chosen(way):
    """A subset of 8 points for each of 200 seeds."""
    subsets = []
    for seed in range(200):
        optimizer.parametrization.random_state.seed(seed)
        subsets.append(numpy.array([point.losses for point in optimizer.pareto_front(8, subset=way)]))
    return subsets


drawn = {way: chosen(way) for way in ("random", "EPS", "loss-covering")}
same = {way: sum(numpy.array_equal(a, b) for a, b in zip(drawn["random"], drawn[way])) for way in ("EPS", "loss-covering")}
means = {way: round(float(numpy.mean(list(map(epsilon, subsets)))), 3) for way, subsets in drawn.items()}
generator = numpy.random.default_rng(0)
twelve = [min(epsilon(front[generator.choice(26, 8)]) for _ in range(12)) for _ in range(200)]
print(f"expected: EPS has the least epsilon indicator, as the best of twelve random subsets has {numpy.mean(twelve):.3f}")
print("seen: mean epsilon indicator", means)
print("seen: subsets of 200 that are the random ones", same)
if not (same["EPS"] == 200 and same["loss-covering"] < 60 and means["EPS"] == means["random"] > 1.3 * float(numpy.mean(twelve))):
    sys.exit("the behaviour has changed")
END
