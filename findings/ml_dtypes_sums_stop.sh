#!/usr/bin/env bash
# ml_dtypes: NumPy adds bfloat16 numbers up in bfloat16, where a sum no longer grows once an element is half a unit in its last
# place. The standard deviation of standard normal weights is 0.2, the mean of a thousand ones 0.26.
#
# Versions: ml_dtypes 0.6.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     std of 100000 standard normal numbers 0.205, mean of 1000 ones 0.256, their sum 256 (in float8_e4m3fn 16); the mean
#           of float16 is right.
# Source:   numpy/_core/_methods.py, _mean(), asks for float32 only where the type is float16; the addition of ml_dtypes rounds
#           after each number, without pairwise sums.
# Advice:   .astype("float32") first, or dtype="float32" in mean(), std() and sum(): weights and activations of PyTorch, JAX and
#           safetensors reach NumPy in this type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import ml_dtypes
import numpy

print("versions: ml_dtypes", version("ml_dtypes"), "numpy", version("numpy"))
weights, ones = numpy.random.default_rng(0).standard_normal(100_000).astype("float32"), numpy.ones(1000)


def measures(kind):
    found = weights.astype(kind).std(), ones.astype(kind).mean(), ones.astype(kind).sum()
    return [round(float(value), 3) for value in found]


brain, single, half = measures(ml_dtypes.bfloat16), measures("float32"), ones.astype("float16").mean()
asked = weights.astype(ml_dtypes.bfloat16).std(dtype="float32")
print("expected: std 1, mean 1, sum 1000, as of float32:", *single, "; mean of float16:", half)
print("seen: bfloat16", *brain, "; float8_e4m3fn: a sum of", ones.astype(ml_dtypes.float8_e4m3fn).sum(),
      "; std of bfloat16 with dtype=float32:", round(float(asked), 3))
if not (brain[0] < 0.5 and brain[1:] == [0.256, 256] and single[1:] == [1, 1000] and half == 1 and abs(asked - 1) < 0.01):
    sys.exit("the behaviour has changed")
END
