#!/usr/bin/env bash
# ONNX: the reference joins the matrices that a loop puts out instead of stacking them. The states of a batch, (batch, size) at
# each token, come as (tokens * batch, size), and the mean over the tokens is one over all texts of the batch.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     a recurrent layer in a Loop, 6 tokens, the mean of its states added to the last state: onnxruntime's results of one
#           text alone and in a batch agree, the reference's differ by 0.9; its stacked states are (18, 4), not (6, 3, 4).
# Source:   onnx/reference/ops/op_loop.py, Loop._run(): numpy.vstack of the outputs. Vectors are stacked; numbers become a column.
# Advice:   let the body put out a vector of all states and reshape it outside; compare shapes before numbers.
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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

print("versions: onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "numpy", version("numpy"))
FLOAT, LENGTH, BATCH, SIZE = TensorProto.FLOAT, 6, 3, 4
random = numpy.random.default_rng(0)
tokens = random.standard_normal((LENGTH, BATCH, SIZE)).astype(numpy.float32)
weights = random.standard_normal((SIZE, SIZE)).astype(numpy.float32)


def value(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def run(tokens):
    """The pooled states and the shape of all states, from onnxruntime and from the reference."""
    batch = tokens.shape[1]
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["tokens", "token"], ["row"]),
            helper.make_node("MatMul", ["state", "weights"], ["turned"]),
            helper.make_node("Add", ["turned", "row"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next"]),
            helper.make_node("Identity", ["next"], ["output"]),
            helper.make_node("Identity", ["going"], ["going_on"]),
        ],
        "token",
        [value("token", TensorProto.INT64, ()), value("going", TensorProto.BOOL, ()), value("state", FLOAT, (batch, SIZE))],
        [value("going_on", TensorProto.BOOL, ()), value("next", FLOAT, (batch, SIZE)), value("output", FLOAT, (batch, SIZE))],
    )
    nodes = [
        helper.make_node("Loop", ["length", "true", "zeros"], ["last", "states"], body=body),
        helper.make_node("ReduceMean", ["states", "first"], ["mean"], keepdims=0),
        helper.make_node("Add", ["last", "mean"], ["pooled"]),
    ]
    constants = {
        "length": numpy.array(LENGTH),
        "true": numpy.array(True),
        "zeros": numpy.zeros((batch, SIZE), numpy.float32),
        "first": numpy.array([0]),
        "weights": weights,
    }
    graph = helper.make_graph(
        nodes,
        "layer",
        [value("tokens", FLOAT, tokens.shape)],
        [value("pooled", FLOAT, (batch, SIZE)), value("states", FLOAT, (LENGTH, batch, SIZE))],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [each.run(None, {"tokens": tokens}) for each in (session, ReferenceEvaluator(model))]


alone, together = run(tokens[:, :1]), run(tokens)
print(f"expected: states of {(LENGTH, BATCH, SIZE)}, and the same numbers for the first text alone and in the batch")
wrong = []
for name, one, three in zip(("onnxruntime", "the reference"), alone, together):
    wrong.append(float(abs(one[0][0] - three[0][0]).max()))
    print(f"seen: {name}: states {three[1].shape}; the first text in the batch differs by {wrong[-1]:.1g}")
same = float(abs(alone[0][0] - alone[1][0]).max())
print(f"seen: alone, the reference differs from onnxruntime by {same:.0e}")
if not (wrong[0] < 1e-5 < 0.05 < wrong[1] and same < 1e-5 and together[1][1].shape == (LENGTH * BATCH, SIZE)):
    sys.exit("the behaviour has changed")
END
