#!/usr/bin/env bash
# OpenVINO: which numbers a model gives depends on the processor. Where it has bfloat16 units, a float32 model is computed in bfloat16.
#
# Versions: openvino 2026.4.1, onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     on an x86-64 server of 2022 with AVX-512 BF16 logits differ from ONNX Runtime's by 0.02 (their standard deviation is 1.2), and
#           by 0.000003 with INFERENCE_PRECISION_HINT f32. Without such units there is nothing to see, and the script says so.
# Source:   run; the hint's value of a model that was compiled without one is bfloat16.
# Advice:   set the hint to f32 wherever losses of models or devices are compared; a perplexity "by OpenVINO" names no precision.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1
"$folder/venv/bin/python" - "$folder/model.onnx" <<'END'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

print("versions:", *(f"{name} {version(name)}" for name in ("openvino", "onnxruntime", "onnx", "numpy")))
TOKENS, WIDTH, WORDS = 64, 256, 1000
draw = np.random.default_rng(0).standard_normal


def weights(name, *shape):
    return numpy_helper.from_array((draw(shape) / np.sqrt(shape[0])).astype(np.float32), name)


onnx.save(helper.make_model(helper.make_graph(
    [helper.make_node("MatMul", ["x", "w1"], ["hidden"]), helper.make_node("Relu", ["hidden"], ["positive"]),
     helper.make_node("MatMul", ["positive", "w2"], ["added"]), helper.make_node("Add", ["x", "added"], ["sum"]),
     helper.make_node("MatMul", ["sum", "o"], ["logits"])], "model",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [TOKENS, WIDTH])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [TOKENS, WORDS])],
    [weights("w1", WIDTH, 4 * WIDTH), weights("w2", 4 * WIDTH, WIDTH), weights("o", WIDTH, WORDS)]),
    opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[1])
x = draw((TOKENS, WIDTH)).astype(np.float32)
runtime = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
core = openvino.Core()
if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
    print("seen: this processor has no bfloat16 units, so that the default is float32 here")
    sys.exit()
print("expected: a float32 model is computed in float32")
off = {}
for name, settings in (("by default", {}), ("with the hint f32", {"INFERENCE_PRECISION_HINT": "f32"})):
    model = core.compile_model(sys.argv[1], "CPU", settings)
    off[name] = np.abs(model(x)[0] - runtime).max()
    print(f"seen: {name}: {model.get_property('INFERENCE_PRECISION_HINT')}, largest difference from ONNX Runtime {off[name]:.2g}, "
          f"standard deviation of the logits {runtime.std():.2g}")
if off["by default"] < 1e-3 or off["with the hint f32"] > 1e-4:
    sys.exit("the behaviour has changed")
END
