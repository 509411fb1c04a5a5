#!/usr/bin/env bash
# ONNX: the reference's LpNormalization with p=1 divides by the sum of the numbers, not of their sizes. Negative rows change their
# signs, and rows whose numbers add up to 0 become 0. A model with weights normalized by their L1 norm looks wrong beside it.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     1, 2, -1: onnxruntime 0.25, 0.5, -0.25, the reference 0.5, 1, -0.5; -1, -2, -1: -0.25, -0.5, -0.25 and 0.25, 0.5,
#           0.25; 3, -1, -2: 0.5, -0.17, -0.33 and 0, 0, 0. With p=2 both agree.
# Source:   LpNormalization in onnx/reference/ops/op_lp_normalization.py adds powers of x, not of |x|; the operator's text says
#           input / Lp_norm(input, axis).
# Advice:   for p=1 compare with ReduceL1 and Div, which the reference computes correctly, or with onnxruntime.
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

print("versions:", *(f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "numpy")))
rows = numpy.array([[1, 2, -1], [-1, -2, -1], [3, -1, -2], [1, 2, 1]], numpy.float32)


def rounded(numbers):
    return [[round(float(number), 2) for number in row] for row in numbers]


def normalized(*nodes):
    """The rows, normalized by onnxruntime and by the reference."""
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, rows.shape)] for name in "xy")
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    model = helper.make_model(helper.make_graph(nodes, "norm", inputs, outputs, [axis] if len(nodes) > 1 else []),
                              opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [rounded(run.run(None, {"x": rows})[0]) for run in (session, ReferenceEvaluator(model))]


ones = normalized(helper.make_node("LpNormalization", ["x"], ["y"], axis=1, p=1))
twos = normalized(helper.make_node("LpNormalization", ["x"], ["y"], axis=1, p=2))
steps = normalized(helper.make_node("ReduceL1", ["x", "axis"], ["norm"]), helper.make_node("Div", ["x", "norm"], ["y"]))
want = rounded(rows / abs(rows).sum(1, keepdims=True))
print("rows:", rows.tolist())
print("expected: sizes add up to 1, signs stay:", want)
print("seen: p=1: onnxruntime", ones[0])
print("seen: p=1: reference", ones[1])
print("seen: ReduceL1 and Div in both, and p=2, agree:", steps[0] == steps[1] == want and twos[0] == twos[1])
if not (ones[0] == want == steps[0] == steps[1] and twos[0] == twos[1]
        and ones[1] == [[0.5, 1, -0.5], [0.25, 0.5, 0.25], [0, 0, 0], [0.25, 0.5, 0.25]]):
    sys.exit("the behaviour has changed")
END
