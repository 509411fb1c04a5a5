#!/usr/bin/env bash
# ONNX: the lengths of a padded batch, given to Attention as nonpad_kv_seqlen, do more than hide the padding. With is_causal they
# also move the causal mask by each sequence's padding: its first tokens see nothing, the others too little.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     three tokens of 1, 2 and 3, one place of padding, causal means: by a mask 1, 1.5, 2; by the length 0, 1, 1.5, while
#           the place of padding gets 2. onnxruntime and the reference agree.
# Source:   onnx's text on Attention-24: key j is seen by query i where j <= i + nonpad_kv_seqlen - number of queries. The lengths
#           are those of a cache that ends with the last query. Before onnx 1.23 the reference took them for padding alone.
# Advice:   a prompt padded on the right needs attn_mask; nonpad_kv_seqlen is for a cache whose last valid keys are the queries'
#           own. State the version of the runtime, too: the same model means something else by an older one.
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
# One sequence of three tokens in a batch of length four. Equal scores: each query gets the mean of the values that it sees.
alike = numpy.zeros((1, 1, 4, 8), numpy.float32)
value = numpy.broadcast_to(numpy.float32([1, 2, 3, 9])[:, None], (1, 1, 4, 8)).copy()
hidden = numpy.array([[True, True, True, False]] * 4)  # the keys that are no padding
FLOAT, shape = TensorProto.FLOAT, ["batch", "heads", "length", "size"]


def attention(name, kind, data):
    """The first number of each output, by onnxruntime and by the reference, with one more input."""
    places = {"mask": ["mask"], "lengths": ["", "", "", "lengths"]}[name]
    node = helper.make_node("Attention", ["q", "k", "v", *places], ["y"], is_causal=1)
    inputs = [helper.make_tensor_value_info(each, FLOAT, shape) for each in "qkv"]
    inputs.append(helper.make_tensor_value_info(name, kind, data.shape))
    graph = helper.make_graph([node], "attention", inputs, [helper.make_tensor_value_info("y", FLOAT, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    onnx.checker.check_model(model)
    feeds = {"q": alike, "k": alike, "v": value, name: data}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [run.run(None, feeds)[0][0, 0, :, 0].round(4).tolist() for run in (session, ReferenceEvaluator(model))]


masked = attention("mask", TensorProto.BOOL, hidden)
by_length = attention("lengths", TensorProto.INT64, numpy.array([3]))
print("expected: the three tokens' outputs are the same by a mask and by their number, 1, 1.5 and 2")
print("seen: mask", masked[0], "number", by_length[0], "; by the reference: mask", masked[1], "number", by_length[1])
if not (masked == [[1, 1.5, 2, 2]] * 2 and by_length == [[0, 1, 1.5, 2]] * 2):
    sys.exit("the behaviour has changed")
END
