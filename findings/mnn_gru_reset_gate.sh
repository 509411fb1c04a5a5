#!/usr/bin/env bash
# MNN: a GRU of ONNX's default kind (linear_before_reset=0, the kind of the paper) is computed as the other one, which PyTorch
# has. The conversion succeeds without a warning; every output after the first step differs.
#
# Versions: MNN 3.6.1, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     largest difference to onnxruntime: linear_before_reset=0 1.0, =1 below 1e-6; MNN's first is what onnxruntime gives
#           for linear_before_reset=1. Converted with --useOriginRNNImpl, both are right.
# Source:   the converter's default writes a GRU as a loop (it prints "use While to compute GRU") whose reset gate comes after the
#           product with the state; the option keeps a fused operator, which has the attribute. With biases it is wrong, too.
# Advice:   convert with --useOriginRNNImpl, and compare outputs. The program calls what the command mnnconvert calls.
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
random = numpy.random.default_rng(0)
x = random.standard_normal((TOKENS, BATCH, INPUTS)).astype("f")
WEIGHTS = {name: random.standard_normal(shape).astype("f") for name, shape in {
    "w": (1, 3 * WIDTH, INPUTS), "r": (1, 3 * WIDTH, WIDTH)}.items()}


def save(after):
    node = helper.make_node("GRU", ["x", *WEIGHTS], ["y"], hidden_size=WIDTH, linear_before_reset=after)
    graph = helper.make_graph(
        [node], "gru", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [TOKENS, 1, BATCH, WIDTH])],
        [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "gru.onnx")


def by_onnxruntime():
    return onnxruntime.InferenceSession("gru.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def by_mnn(*options):
    command = [sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)"]
    subprocess.run([*command, "-f", "ONNX", "--modelFile", "gru.onnx",
                    "--MNNModel", "gru.mnn", "--bizCode", "gru", *options], check=True, stdout=subprocess.DEVNULL)
    module, F = MNN.nn.load_module_from_file("gru.mnn", ["x"], ["y"]), MNN.expr
    return numpy.array(F.convert(module.forward([F.const(x, list(x.shape), F.NCHW)])[0], F.NCHW).read())


results = {}
for after in 0, 1:
    save(after)
    results[after] = by_onnxruntime(), by_mnn(), by_mnn("--useOriginRNNImpl")


def difference(a, b):
    return float(abs(a - b).max())


seen = {after: [difference(want, got) for got in gots] for after, (want, *gots) in results.items()}
other = difference(results[0][1], results[1][0])
print("expected: MNN's outputs are onnxruntime's")
for after, (default, option) in seen.items():
    print(f"seen: linear_before_reset={after}: largest difference {default:.1e}; with --useOriginRNNImpl {option:.1e}")
print(f"seen: MNN for 0 and onnxruntime for 1: {other:.1e}")
if not (seen[0][0] > 0.1 and max(seen[0][1], *seen[1]) < 1e-4 and other < 1e-4):
    sys.exit("the behaviour has changed")
END
