#!/usr/bin/env bash
# OpenVINO: a model's bfloat16 output is read as float16 in Python, bit by bit: 1, 2, 3 and -0.5 are 1.875, 2, 2.125 and -1.75.
# A float16 input of a bfloat16 model is taken the same way.
#
# Versions: openvino 2026.4.1, onnx 1.23.2, ml_dtypes 0.6.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     of a Cast to bfloat16 those numbers, dtype float16, without a warning; logits of an output layer in bfloat16, -3.36,
#           -3.66, 1.00 and 3.77, are -2.17, -2.21, 1.88 and 2.22. An input of float16, 1, 2, 3, -0.5, arrives as 0.0078, 2, 32
#           and -0.00003; one of ml_dtypes.bfloat16 arrives rightly.
# Source:   run; the output's element_type is bfloat16, and NumPy has none of its own. The documentation of Tensor.data names
#           other types.
# Advice:   end the model with a Cast to float32, or output.view(ml_dtypes.bfloat16); give inputs as ml_dtypes.bfloat16 arrays.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 ml_dtypes==0.6.0 onnx==1.23.2 openvino==2026.4.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import ml_dtypes
import numpy
import onnx
import openvino
from onnx import TensorProto, helper, numpy_helper

print("versions:", *(f"{name} {version(name)}" for name in ("openvino", "onnx", "ml_dtypes", "numpy")))
FLOAT, BRAIN = TensorProto.FLOAT, TensorProto.BFLOAT16
core = openvino.Core()


def compiled(kind, taken, given, weights=(), **attributes):
    """A model of one operator from one type to another."""
    model = helper.make_model(helper.make_graph(
        [helper.make_node(kind, ["x", *(name for name, _ in weights)], ["y"], **attributes)], kind,
        [helper.make_tensor_value_info("x", taken, ["tokens", 4])],
        [helper.make_tensor_value_info("y", given, ["tokens", "words"])],
        [numpy_helper.from_array(array, name) for name, array in weights]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


numbers = numpy.float32([[1, 2, 3, -0.5]])
out = compiled("Cast", FLOAT, BRAIN, to=BRAIN)(numbers)[0]
into = compiled("Cast", BRAIN, FLOAT, to=FLOAT)
half, brain = (into(numbers.astype(kind))[0] for kind in (numpy.float16, ml_dtypes.bfloat16))
weights = numpy.random.default_rng(0).standard_normal((4, 8)).astype(ml_dtypes.bfloat16)
logits = compiled("MatMul", BRAIN, BRAIN, [("w", weights)])(numbers.astype(ml_dtypes.bfloat16))[0]
exact = numbers @ weights.astype(numpy.float32)
print("expected:", numbers.tolist(), "as output, and as input of either type; logits", exact.astype(float).round(2).tolist())
print("seen: output", out.dtype, out.tolist(), "and by view(bfloat16)", out.view(ml_dtypes.bfloat16).tolist())
print("seen: input of float16", half.astype(float).round(5).tolist(), "of bfloat16", brain.tolist())
print("seen: logits", logits.astype(float).round(2).tolist())
if not (out.dtype == numpy.float16 and out.tolist() == [[1.875, 2, 2.125, -1.75]] and (brain == numbers).all()
        and (out.view(ml_dtypes.bfloat16) == numbers).all() and half[0, 2] == 32
        and numpy.allclose(logits.view(ml_dtypes.bfloat16).astype(float), exact, rtol=0.02, atol=0.02)):
    sys.exit("the behaviour has changed")
END
