#!/usr/bin/env bash
# tinygrad: in ONNX's Attention with fewer heads of keys than of queries, query heads attend to other heads than ONNX says: the
# heads of keys are repeated as 0, 1, 0, 1 instead of 0, 0, 1, 1. A model with grouped queries answers with other numbers.
#
# Versions: tinygrad 0.14.0, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     four heads of queries, two of keys, all values of them 10 and 20: onnxruntime and ONNX's reference give 10, 10, 20,
#           20, tinygrad 10, 20, 10, 20. With one head of keys, or as many as of queries, all agree.
# Source:   attention_onnx() in tinygrad/nn/onnx.py repeats the whole block of heads (Tensor.repeat). ONNX's own definition did
#           so, too, at first (opset 23, corrected in place: onnx pull request 7274).
# Advice:   repeat keys and values in the graph (Unsqueeze, Expand, Reshape) before Attention, and compare with onnxruntime.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 tinygrad==0.14.0
cd "$folder"
env -u PYTHON DEV=PYTHON CACHELEVEL=0 "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

print("versions:", *(f"{name} {version(name)}" for name in ("tinygrad", "onnx", "onnxruntime", "numpy")))
HEADS, TOKENS, SIZE = 4, 3, 8


def answers(groups):
    """The first number of each head of queries where all values of a head of keys are 10, 20 and so on."""
    shapes = {"q": [1, HEADS, TOKENS, SIZE], "k": [1, groups, TOKENS, SIZE], "v": [1, groups, TOKENS, SIZE]}
    random = numpy.random.default_rng(0)
    feeds = {name: random.standard_normal(shape).astype("f") for name, shape in shapes.items()}
    feeds["v"][:] = 10 * numpy.arange(1, groups + 1).reshape(1, groups, 1, 1)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes["q"])
    graph = helper.make_graph([helper.make_node("Attention", ["q", "k", "v"], ["y"])], "attention", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "attention.onnx")
    session = onnxruntime.InferenceSession("attention.onnx", providers=["CPUExecutionProvider"])
    given = {name: Tensor(value) for name, value in feeds.items()}
    results = (session.run(None, feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0],
               OnnxRunner("attention.onnx")(given)["y"].numpy())
    return [[round(float(number)) for number in result[0, :, 0, 0]] for result in results]


seen = {groups: answers(groups) for groups in (1, 2, 4)}
print("expected: onnxruntime, ONNX's reference and tinygrad agree")
for groups, (session, reference, other) in seen.items():
    print(f"seen: {groups} heads of keys: onnxruntime {session}, reference {reference}, tinygrad {other}")
if not (all(session == reference for session, reference, _ in seen.values()) and seen[1][0] == seen[1][2]
        and seen[4][0] == seen[4][2] and seen[2][0] == [10, 10, 20, 20] and seen[2][2] == [10, 20, 10, 20]):
    sys.exit("the behaviour has changed")
END
