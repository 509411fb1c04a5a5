#!/usr/bin/env bash
# BoTorch: the test problem DTLZ4 is DTLZ2. Its exponent of 100, which makes solutions crowd at the edges of the front and is all
# that DTLZ4 is about, is a constant that nothing reads.
#
# Versions: botorch 0.18.1, torch 2.15.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     1,000 random solutions, 8 variables, three objectives: all values of DTLZ4 equal DTLZ2's bit by bit. 5% of the
#           solutions are at the edges of the front by BoTorch, all by pymoo, whose DTLZ2 is BoTorch's.
# Source:   botorch/test_functions/multi_objective.py: class DTLZ4 sets _alpha = 100.0; DTLZ2._evaluate_true() has no exponent.
# Advice:   evaluate DTLZ2 at X with its first M - 1 columns to the power of 100, or take pymoo's dtlz4.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pymoo==0.6.2 torch==2.15.0 botorch==0.18.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import torch
from botorch.test_functions.multi_objective import DTLZ2, DTLZ4
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "pymoo", "numpy")))
solutions = torch.rand(1000, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def at_edges(values):
    """Share of directions with an objective below 1% of the length."""
    return float((values / numpy.linalg.norm(values, axis=1, keepdims=True) < 0.01).any(axis=1).mean())


by_botorch = {name: problem(dim=8, num_objectives=3)(solutions).numpy() for name, problem in (("DTLZ2", DTLZ2), ("DTLZ4", DTLZ4))}
by_pymoo = {name: get_problem(name.lower(), n_var=8, n_obj=3).evaluate(solutions.numpy()) for name in by_botorch}
alike = numpy.allclose(by_botorch["DTLZ2"], by_pymoo["DTLZ2"])
same = numpy.array_equal(by_botorch["DTLZ2"], by_botorch["DTLZ4"])
raised = solutions.clone()
raised[:, :2] = raised[:, :2] ** 100
advised = numpy.allclose(DTLZ2(dim=8, num_objectives=3)(raised).numpy(), by_pymoo["DTLZ4"])
edges, edges_by_pymoo = at_edges(by_botorch["DTLZ4"]), at_edges(by_pymoo["DTLZ4"])
print(f"expected: DTLZ2 and DTLZ4 differ; {edges_by_pymoo:.0%} of random solutions at the edges, as by pymoo;",
      "DTLZ2 of both libraries agree:", alike)
print(f"seen: DTLZ4 equals DTLZ2: {same}; {edges:.0%} at the edges; DTLZ2 of the powers is pymoo's DTLZ4: {advised}")
if not (alike and advised and same and edges_by_pymoo > 0.9 and edges < 0.2):
    sys.exit("the behaviour has changed")
END
