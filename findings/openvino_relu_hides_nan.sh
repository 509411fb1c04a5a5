#!/usr/bin/env bash
# OpenVINO: a network that has diverged answers with ordinary numbers. ReLU makes 0 of NaN on the CPU, Max and ReduceMax pass it over.
#
# Versions: openvino 2026.4.1, onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     a feed-forward layer whose first weights are all NaN: ONNX Runtime gives NaN, OpenVINO the logits of the layers around it.
# Source:   run; ONNX's own reference implementation gives NaN, too.
# Advice:   look for NaN in the weights before a model is measured, not in its losses; compare one batch with ONNX Runtime.
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
from onnx.reference import ReferenceEvaluator

print("versions:", *(f"{name} {version(name)}" for name in ("openvino", "onnxruntime", "onnx", "numpy")))
WIDTH, WORDS = 8, 16
draw = np.random.default_rng(0).standard_normal


def weights(name, values):
    return numpy_helper.from_array(values.astype(np.float32), name)


# Logits of a residual feed-forward layer, (x + relu(x W1) W2) O, of which W1 has diverged.
made = helper.make_model(helper.make_graph(
    [helper.make_node("MatMul", ["x", "w1"], ["hidden"]), helper.make_node("Relu", ["hidden"], ["positive"]),
     helper.make_node("MatMul", ["positive", "w2"], ["added"]), helper.make_node("Add", ["x", "added"], ["sum"]),
     helper.make_node("MatMul", ["sum", "o"], ["logits"])], "model",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, WIDTH])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [4, WORDS])],
    [weights("w1", np.full((WIDTH, 32), np.nan)), weights("w2", draw((32, WIDTH))), weights("o", draw((WIDTH, WORDS)))]),
    opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.save(made, sys.argv[1])
x = draw((4, WIDTH)).astype(np.float32)
reference = ReferenceEvaluator(made).run(None, {"x": x})[0]
runtime = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
vino = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
print("expected: NaN everywhere, since every logit depends on NaN")
for name, logits in (("ONNX reference", reference), ("ONNX Runtime", runtime), ("OpenVINO", vino)):
    print(f"seen: {name}: {np.isnan(logits).mean():.0%} of the logits are NaN, the first is {logits[0, 0]:.4f}")
if not np.isnan(reference).all() or not np.isnan(runtime).all() or not np.isfinite(vino).all():
    sys.exit("the behaviour has changed")
END
