#!/usr/bin/env bash
# GGUF: of small weights, Q8_0 keeps less than Q4_0. A block's scale is a 127th of its largest weight, as a half-precision number;
# weights of 1e-6, as those of adapters early in training, become 0, where Q4_0 and Q5_0 are nearly as exact as ever.
#
# Versions: gguf 0.19.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     relative errors of normal weights with a standard deviation of 1e-2, 1e-5, 3e-6 and 1e-6: Q8_0 0.005, 0.094,
#           0.215 and 0.999, Q5_0 0.043, 0.044, 0.058 and 0.123, Q4_0 0.086, 0.086, 0.088 and 0.106; 99% of Q8_0's last are 0.
# Source:   gguf/quants.py, Q8_0.quantize_blocks(): the largest size over 127 as float16, whose smallest step is 6e-8; the
#           format stores it so. Q4_0 divides by 8, Q5_0 by 16.
# Advice:   BF16 or F32 for adapters and other small tensors; fold a constant scale (alpha / rank, a residual's multiplier) into
#           the weights before the conversion; look at the largest weight per block, not only at the number of bits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 gguf==0.19.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

print("versions: gguf", version("gguf"), "numpy", version("numpy"))
normal = numpy.random.default_rng(0).standard_normal((64, 256))
SCALES = 1e-2, 1e-5, 3e-6, 1e-6


def kept(name, scale):
    kind = GGMLQuantizationType[name]
    weights = (scale * normal).astype(numpy.float32)
    back = dequantize(quantize(weights, kind), kind)
    error = numpy.linalg.norm((back - weights).astype(float)) / numpy.linalg.norm(weights.astype(float))
    return float(error), float(numpy.mean(back == 0))


found = {name: [kept(name, scale) for scale in SCALES] for name in ("BF16", "Q8_0", "Q5_0", "Q4_0")}
print("expected: the more bits, the smaller the error; standard deviations of the weights:", *SCALES)
for name, values in found.items():
    errors, zeros = (" ".join(f"{value:.3f}" for value in column) for column in zip(*values))
    print(f"seen: {name}: relative errors {errors}; shares of zeros {zeros}")
eight, four = ([error for error, _ in found[name]] for name in ("Q8_0", "Q4_0"))
if not (eight[0] < four[0] / 10 and all(eight[k] > four[k] for k in (1, 2, 3)) and found["Q8_0"][3][1] > 0.9 and four[3] < 0.2):
    sys.exit("the behaviour has changed")
END
