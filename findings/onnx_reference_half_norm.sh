#!/usr/bin/env bash
# ONNX: the reference's LayerNormalization of half-precision numbers is 0 everywhere once their squares add up to more than 65504,
# which takes a standard deviation of 4 at a width of 4096. A model that is compared with it looks wrong, or a wrong one right.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     normal numbers of standard deviation 3 and 5: onnxruntime's outputs have standard deviation 1 and 1, the reference's 1
#           and 0; both take stash_type = 1, which is the default.
# Source:   onnx/reference/ops/op_layer_normalization.py adds in the numbers' own type; the operator's text says that the first
#           stage works in float32 for stash_type = 1.
# Advice:   run ReferenceEvaluator on float32 copies of inputs and weights, and check half precision against those.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("versions: onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "numpy", version("numpy"))
WIDTH, HALF = 4096, TensorProto.FLOAT16
node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], stash_type=1)
inputs = [helper.make_tensor_value_info("x", HALF, ["tokens", WIDTH]), helper.make_tensor_value_info("scale", HALF, [WIDTH])]
graph = helper.make_graph([node], "norm", inputs, [helper.make_tensor_value_info("y", HALF, ["tokens", WIDTH])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
normal = numpy.random.default_rng(0).standard_normal((2, WIDTH))


def deviations(spread):
    """Standard deviation of the outputs, by onnxruntime and by the reference."""
    feeds = {"x": (spread * normal).astype(numpy.float16), "scale": numpy.ones(WIDTH, numpy.float16)}
    return [round(float(run.run(None, feeds)[0].astype(float).std()), 2) for run in (session, ReferenceEvaluator(model))]


small, large = deviations(3), deviations(5)
print("expected: normalized outputs have standard deviation 1, by the reference above all")
print("seen (onnxruntime, reference): inputs of standard deviation 3:", small, "; of 5:", large)
if not (small == [1, 1] and large == [1, 0]):
    sys.exit("the behaviour has changed")
END
