#!/usr/bin/env bash
# MNN: a recurrent layer with ONNX's direction="reverse" reads the text forwards. The conversion succeeds without a warning, and
# the outputs are those of the forward layer. The backward half of a bidirectional layer is right.
#
# Versions: MNN 3.6.1, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     GRU, RNN and LSTM: forward and bidirectional layers as by onnxruntime, to 1e-6; the reverse ones differ by up to
#           1.6, and are MNN's forward ones exactly.
# Source:   MNN, tools/converter/source/optimizer/onnxextra/OnnxSequenceGRUMerge.cpp: the attribute is compared with
#           "bidirectional" alone. Without --useOriginRNNImpl GRU and RNN read forwards, too.
# Advice:   reverse the text before and after a forward layer in the graph (ReverseSequence, or Slice with step -1), or
#           use a bidirectional layer's second half. The program calls what the command mnnconvert calls.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 MNN==3.6.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END'
import subprocess
import sys
from importlib.metadata import version

import MNN
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("versions:", *(f"{name} {version(name)}" for name in ("MNN", "onnx", "onnxruntime", "numpy")))
TOKENS, BATCH, INPUTS, WIDTH = 6, 2, 3, 4
KINDS = {"GRU": (3, {"linear_before_reset": 1}), "RNN": (1, {}), "LSTM": (4, {})}
x = numpy.random.default_rng(0).standard_normal((TOKENS, BATCH, INPUTS)).astype("f")


def outputs(kind, direction):
    """What onnxruntime and MNN compute for a recurrent layer of random weights."""
    gates, options = KINDS[kind]
    directions, random = 2 if direction == "bidirectional" else 1, numpy.random.default_rng(1)
    weights = {name: random.standard_normal((directions, gates * WIDTH, columns)).astype("f")
               for name, columns in (("w", INPUTS), ("r", WIDTH))}
    weights["b"] = random.standard_normal((directions, 2 * gates * WIDTH)).astype("f")
    node = helper.make_node(kind, ["x", *weights], ["y"], hidden_size=WIDTH, direction=direction, **options)
    graph = helper.make_graph(
        [node], "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [TOKENS, directions, BATCH, WIDTH])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "layer.onnx")
    session = onnxruntime.InferenceSession("layer.onnx", providers=["CPUExecutionProvider"])
    command = [sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)"]
    subprocess.run([*command, "-f", "ONNX", "--modelFile", "layer.onnx",
                    "--MNNModel", "layer.mnn", "--bizCode", "layer", "--useOriginRNNImpl"], check=True, stdout=subprocess.DEVNULL)
    module, F = MNN.nn.load_module_from_file("layer.mnn", ["x"], ["y"]), MNN.expr
    return session.run(None, {"x": x})[0], numpy.array(
        F.convert(module.forward([F.const(x, list(x.shape), F.NCHW)])[0], F.NCHW).read())


def difference(a, b):
    return float(abs(a - b).max())


print("expected: MNN's outputs are onnxruntime's, to 1e-6")
changed = False
for kind in KINDS:
    results = {direction: outputs(kind, direction) for direction in ("forward", "bidirectional", "reverse")}
    far = {direction: difference(*both) for direction, both in results.items()}
    same = difference(results["reverse"][1], results["forward"][1])
    print(f"seen: {kind}: largest differences:", {direction: f"{value:.1e}" for direction, value in far.items()})
    print(f"seen: {kind}: MNN's reverse and MNN's forward layer: {same:.1e}")
    changed |= not (max(far["forward"], far["bidirectional"]) < 1e-4 and far["reverse"] > 0.1 and same == 0)
if changed:
    sys.exit("the behaviour has changed")
END
