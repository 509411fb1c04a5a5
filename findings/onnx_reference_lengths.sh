#!/usr/bin/env bash
# ONNX: the reference's recurrent layers pass over sequence_lens without a word: they go on through the padding, and the last
# state that they give of a short sequence is the padding's.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     RNN, GRU and LSTM, a sequence of 2 in a batch of length 5: onnxruntime's last state is that of the 2 tokens alone, the
#           reference's differs by 0.1 to 2; of the sequence of 5 both agree.
# Source:   onnx/reference/ops/op_gru.py, op_rnn.py, op_lstm.py name sequence_lens, activations and clip, and use none of them.
# Advice:   compare with the reference on sequences of one length, without sequence_lens, activations and clip.
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
FLOAT, SIZE, HIDDEN = TensorProto.FLOAT, 4, 3
random = numpy.random.default_rng(0)
tokens = random.standard_normal((5, 2, SIZE)).astype(numpy.float32)  # length, batch, size


def last_states(layer, gates, tokens, lengths):
    """Of both sequences, by onnxruntime and by the reference."""
    feeds = {
        "x": tokens,
        "w": numpy.linspace(-1, 1, gates * HIDDEN * SIZE, dtype=numpy.float32).reshape(1, -1, SIZE),
        "r": numpy.linspace(1, -1, gates * HIDDEN * HIDDEN, dtype=numpy.float32).reshape(1, -1, HIDDEN),
        "lengths": numpy.array(lengths, numpy.int32),
    }
    node = helper.make_node(layer, ["x", "w", "r", "", "lengths"], ["", "last"], hidden_size=HIDDEN)
    kinds = {name: TensorProto.INT32 if name == "lengths" else FLOAT for name in feeds}
    inputs = [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in feeds.items()]
    outputs = [helper.make_tensor_value_info("last", FLOAT, [1, len(lengths), HIDDEN])]
    model = helper.make_model(
        helper.make_graph([node], "layer", inputs, outputs), opset_imports=[helper.make_opsetid("", 22)], ir_version=10
    )
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [run.run(["last"], feeds)[0][0] for run in (session, ReferenceEvaluator(model))]


changed = False
print("expected: the last state of a sequence of 2 is the same in a batch of length 5 and alone")
for layer, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    truth = last_states(layer, gates, tokens[:2, 1:], [2])[0][0]
    found = last_states(layer, gates, tokens, [5, 2])
    wrong = [float(abs(states[1] - truth).max()) for states in found]
    print(f"seen: {layer}: largest difference from it: onnxruntime {wrong[0]:.1e}, the reference {wrong[1]:.2f}")
    changed = changed or not (wrong[0] < 1e-5 < 0.05 < wrong[1] and abs(found[0][0] - found[1][0]).max() < 1e-5)
if changed:
    sys.exit("the behaviour has changed")
END
