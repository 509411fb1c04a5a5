#!/usr/bin/env bash
# ONNX: the version converter takes a softmax over an axis that is not the last one to an opset under 13 as it is, where the
# same axis means something else: all axes from it on are normalised together. Linear attention, whose keys are normalised over
# the tokens, becomes another model, which the checker accepts. Upwards the converter adds the nodes that are needed.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     linear attention over 6 tokens, keys of size 8: each feature's weights add up to 1 in opset 17 and to 0.125 on
#           average in opset 12; the output is an eighth of what it was. LogSoftmax is converted in the same way. From 12 to 17
#           nothing changes.
# Source:   onnx/version_converter/adapters/softmax_13_12.h (since onnx 1.18) changes a negative axis to a positive one, and no
#           more; softmax_12_13.h adds Flatten and Reshape. Softmax-11's text: the input is coerced into 2D at axis.
# Advice:   compare outputs before and after convert_version(); for an old runtime, export with the normalised axis as the last
#           one (Einsum before and after), which both versions read alike.
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
from onnx import TensorProto, helper, version_converter

print("versions: onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "numpy", version("numpy"))
TOKENS, SIZE = 6, 8
random = numpy.random.default_rng(0)
feeds = {name: random.standard_normal((2, TOKENS, SIZE)).astype("f") for name in "qkv"}


def attention(opset, *keys):
    """Linear attention, softmax(q) (softmax over tokens(k)^T v), whose keys are normalised by the given nodes."""
    nodes = [helper.make_node("Softmax", ["q"], ["queries"], axis=-1), *keys,
             helper.make_node("Einsum", ["keys", "v"], ["state"], equation="btk,btv->bkv"),
             helper.make_node("Einsum", ["queries", "state"], ["y"], equation="btk,bkv->btv")]
    shape = ["batch", TOKENS, SIZE]
    ends = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("q", "k", "v", "keys", "y")}
    graph = helper.make_graph(nodes, "linear", [ends[name] for name in "qkv"], [ends["keys"], ends["y"]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def run(model):
    onnx.checker.check_model(model, full_check=True)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def change(model, opset):
    """The mean sum of a feature's weights, and the output's norm in proportion to the model's, after conversion."""
    (_, before), (keys, after) = run(model), run(version_converter.convert_version(model, opset))
    return round(float(keys.sum(1).mean()), 3), round(float((after**2).sum()**0.5 / (before**2).sum()**0.5), 3)


plain = helper.make_node("Softmax", ["k"], ["keys"], axis=1)
turned = [helper.make_node("Einsum", ["k"], ["k turned"], equation="btk->bkt"),
          helper.make_node("Softmax", ["k turned"], ["softmax"], axis=-1),
          helper.make_node("Einsum", ["softmax"], ["keys"], equation="bkt->btk")]
down, last, flat = change(attention(17, plain), 12), change(attention(17, *turned), 12), change(attention(12, plain), 17)
print("expected: weights add up to 1, outputs stay (1, 1), as with the tokens on the last axis:", *last)
print("seen: from opset 17 to 12:", *down, "; a model of opset 12, with that meaning, to 17:", *flat)
if not (last == (1, 1) and down == (round(1 / SIZE, 3), down[1]) and down[1] < 0.3 and flat == (round(1 / SIZE, 3), 1)):
    sys.exit("the behaviour has changed")
END
