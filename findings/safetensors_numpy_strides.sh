#!/usr/bin/env bash
# safetensors: save_file() for NumPy writes the wrong numbers of an array that is not contiguous, without an error. A transposed
# weight comes back with its elements in another order, of every second row come the first ones.
#
# Versions: safetensors 0.8.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     [[0, 3], [1, 4], [2, 5]] -> [[0, 1], [2, 3], [4, 5]]; [0, 2, 4] -> [0, 1, 2].
# Source:   documentation of safetensors.numpy.save_file: tensors "need to be contiguous and dense"; that of PyTorch checks it and
#           raises ValueError, that of NumPy does not.
# Advice:   numpy.ascontiguousarray() for every array; weights that change layout between frameworks (x.T) are the usual case.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 safetensors==0.8.0
cd "$folder"
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import numpy
from safetensors.numpy import load_file, save_file

print("versions: safetensors", version("safetensors"), "numpy", version("numpy"))
weight = numpy.arange(6.0).reshape(2, 3).T
every_second = numpy.arange(6.0)[::2]
save_file({"weight": weight, "every_second": every_second}, "weights.safetensors")
loaded = load_file("weights.safetensors")
print("expected:", weight.tolist(), every_second.tolist(), "or an error")
print("seen:", loaded["weight"].tolist(), loaded["every_second"].tolist())
if not (loaded["weight"].tolist() == [[0, 1], [2, 3], [4, 5]] and loaded["every_second"].tolist() == [0, 1, 2]):
    sys.exit("the behaviour has changed")
END
