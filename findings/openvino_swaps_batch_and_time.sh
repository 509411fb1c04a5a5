#!/usr/bin/env bash
# OpenVINO: recurrent layers with the batch first take the batch for time. The attribute layout=1 of ONNX's GRU, LSTM and RNN is
# left out without a word, so that each text's states go on into the next text of the batch.
#
# Versions: openvino 2026.4.1, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     three texts of five tokens, one of them changed: outputs of the other two change by 0.78 (GRU), 0.84 (LSTM) and 1.81
#           (RNN), by the reference not at all; all states have the shape (3, 1, 5, size) instead of (3, 5, 1, size), the last
#           one (1, 5, size) instead of (3, 1, size).
# Source:   run; onnxruntime 1.32.0 refuses such a model.
# Advice:   export with layout=0 and transpose around the layer; check that a text's output is the same alone and in a batch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 openvino==2026.4.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

print("versions:", *(f"{name} {version(name)}" for name in ("openvino", "onnx", "numpy")))
TEXTS, TOKENS, WIDTH, SIZE = 3, 5, 4, 6
draw = numpy.random.default_rng(0).standard_normal


def made(kind, gates):
    """A recurrent layer over a batch of texts, batch first."""
    weights = {"w": draw((1, gates * SIZE, WIDTH)), "r": draw((1, gates * SIZE, SIZE))}
    model = helper.make_model(helper.make_graph(
        [helper.make_node(kind, ["x", "w", "r"], ["y", "last"], hidden_size=SIZE, layout=1)], kind,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["texts", "tokens", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["texts", "tokens", 1, SIZE]),
         helper.make_tensor_value_info("last", TensorProto.FLOAT, ["texts", 1, SIZE])],
        [numpy_helper.from_array(array.astype(numpy.float32), name) for name, array in weights.items()]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return ReferenceEvaluator(model), compiled


x = draw((TEXTS, TOKENS, WIDTH)).astype(numpy.float32)
changed = x.copy()
changed[0] += 1  # the other two texts are the same
ok = True
for kind, gates in (("GRU", 3), ("LSTM", 4), ("RNN", 1)):
    reference, compiled = made(kind, gates)
    want, wanted = (reference.run(None, {"x": each}) for each in (x, changed))
    got, gotten = ([compiled(each)[output] for output in compiled.outputs] for each in (x, changed))
    shapes = [[array.shape for array in each] for each in (want, got)]
    moved = float(abs(got[0].reshape(TEXTS, TOKENS, SIZE)[1:] - gotten[0].reshape(TEXTS, TOKENS, SIZE)[1:]).max())
    print(f"expected: {kind}: shapes of all states and of the last {shapes[0]}; other texts change by",
          float(abs(want[0][1:] - wanted[0][1:]).max()), "with the first")
    print(f"seen: {kind}: {shapes[1]}, other texts change by {moved:.2f}; at its first token the first text's states agree:",
          numpy.allclose(got[0][0, 0, 0], want[0][0, 0, 0], atol=1e-5))
    ok &= shapes[1] == [(TEXTS, 1, TOKENS, SIZE), (1, TOKENS, SIZE)] and moved > 0.01 and (want[0][1:] == wanted[0][1:]).all()
if not ok:
    sys.exit("the behaviour has changed")
END
