#!/usr/bin/env bash
# BoFire: its Ackley benchmark is not Ackley's function: the waves are missing, so there is one local minimum, and the domain asks
# to maximise it, so what is called the optimum is the worst point of all.
#
# Versions: bofire 0.5.0, botorch 0.18.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     (0.5, 0.5) has 1.90, by BoTorch 4.25. On the line from 0 to 20 there are no local minima but the first point, by
#           BoTorch 21. All of 1,000 random points are better than the optimum of get_optima() by the benchmark's own objective.
# Source:   bofire/benchmarks/single.py, Ackley._f(): the factor 2 pi of the cosine is called c, and overwritten by the zeros of
#           c, the category's shift. The docstring says "negated version"; nothing negates it for MaximizeObjective.
# Advice:   BoTorch's Ackley(negate=True).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 botorch==0.18.1 bofire==0.5.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import pandas
import torch
from bofire.benchmarks.api import Ackley
from bofire.data_models.objectives.api import MaximizeObjective
from botorch.test_functions import Ackley as Reference

print("versions:", *(f"{name} {version(name)}" for name in ("bofire", "botorch", "torch", "numpy")))
benchmark, reference = Ackley(dim=2), Reference(dim=2)


def both(points):
    """By BoFire and by BoTorch."""
    return (benchmark.f(pandas.DataFrame(points, columns=["x_1", "x_2"]))["y"].to_numpy(),
            reference(torch.tensor(points, dtype=torch.float64)).numpy())


def minima(values):
    """Local minima along a line, its first point included."""
    padded = numpy.concatenate([[numpy.inf], values])
    return int(((padded[1:-1] < padded[:-2]) & (padded[1:-1] < padded[2:])).sum())


half = [float(values[0]) for values in both(numpy.array([[0.5, 0.5]]))]
line = numpy.repeat(numpy.linspace(0, 20.5, 2051)[:, None], 2, axis=1)
counts = [minima(values) for values in both(line)]
optimum = benchmark.get_optima()
objective = benchmark.domain.outputs[0].objective
points = numpy.random.default_rng(0).uniform(-32.768, 32.768, (1000, 2))
declared = objective(numpy.array([benchmark.f(optimum)["y"].iloc[0]]), None)[0]
better = int((objective(both(points)[0], None) > declared).sum())
print(f"expected: {half[1]:.2f} at (0.5, 0.5), {counts[1]} local minima along a line, none better than the optimum")
print(f"seen: {half[0]:.2f} at (0.5, 0.5), {counts[0]} local minimum along a line;", type(objective).__name__, "and optimum",
      optimum.iloc[0].tolist(), f"of which {better} of 1,000 random points are better")
if not (half[0] < 2 < half[1] and counts == [1, 21] and isinstance(objective, MaximizeObjective) and better == 1000):
    sys.exit("the behaviour has changed")
END
