#!/usr/bin/env bash
# IREE: a recurrent layer of ONNX with an activation that the compiler does not know is compiled with ReLU in its place, without
# a warning. Softsign, Elu, LeakyRelu and HardSigmoid are all the same model; a GRU that was bounded grows without bound.
#
# Versions: iree-base-compiler 3.13.0, iree-base-runtime 3.13.0, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     one step from -3, -0.5, 0.5, 2: 0, 0, 0.5, 2 with Softsign (right: -0.75, -0.33, 0.33, 0.67), Elu, LeakyRelu and
#           HardSigmoid; Tanh is right. A GRU with Softsign stays under 0.81 in onnxruntime, and reaches 2.2e6 after 50 steps in
#           IREE.
# Source:   createActivationByName() in lib/Conversion/TorchOnnxToTorch/Utils.cpp of torch-mlir, which IREE brings: Sigmoid,
#           Tanh and Relu, and then llvm_unreachable(), which a release build takes for granted.
# Advice:   compare outputs with onnxruntime before timing or deploying; write the steps out in operators, of which Softsign and
#           HardSigmoid are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 \
    iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2> "$folder/log" <<'END' || { cat "$folder/log" >&2; exit 1; }
import pathlib
import subprocess
import sys
from importlib.metadata import version

import iree.runtime
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

names = "iree-base-compiler", "iree-base-runtime", "onnx", "onnxruntime", "numpy"
print("versions:", *(f"{name} {version(name)}" for name in names))
tools = pathlib.Path(sys.executable).parent


def model(kind, weight, recurrence, *activations):
    """A recurrent layer without biases."""
    size = recurrence.shape[2]
    node = helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=size, activations=activations)
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, weight.shape[2]]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [STEPS, 1, 1, size])]
    arrays = [numpy_helper.from_array(array.astype("f"), name) for array, name in ((weight, "w"), (recurrence, "r"))]
    made = helper.make_model(helper.make_graph([node], "recurrent", ends[:1], ends[1:], arrays),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def both(made, x):
    """Outputs of onnxruntime and of IREE."""
    onnx.save(made, "model.onnx")
    for command in (["iree-import-onnx", "model.onnx", "-o", "model.mlir"],
                    ["iree-compile", "model.mlir", "--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=generic",
                     "--iree-hal-local-target-device-backends=llvm-cpu", "-o", "model.vmfb"]):
        subprocess.run([tools / command[0], *command[1:]], check=True, capture_output=True)
    compiled = iree.runtime.load_vm_flatbuffer_file("model.vmfb", driver="local-sync")
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].ravel(), numpy.array(compiled.recurrent(x).to_host(), copy=True).ravel()


STEPS = 1
x = numpy.array([[[-3, -0.5, 0.5, 2]]], "f")
layers = {name: both(model("RNN", numpy.eye(4)[None], numpy.zeros((1, 4, 4)), name), x)
          for name in ("Tanh", "Softsign", "Elu", "LeakyRelu", "HardSigmoid")}
STEPS, random = 50, numpy.random.default_rng(0)
gru = model("GRU", random.normal(0, 1, (1, 24, 4)), random.normal(0, 0.7, (1, 24, 8)), "Sigmoid", "Softsign")
grown = [float(abs(output).max()) for output in both(gru, random.normal(0, 1, (STEPS, 1, 4)).astype("f"))]
print("expected: one step of an RNN from", x.ravel().tolist(), "by its activation, as in onnxruntime")
for name, (right, seen) in layers.items():
    print(f"seen: {name}: onnxruntime {right.round(2).tolist()}, IREE {seen.round(2).tolist()}")
print(f"seen: largest output of a GRU with Softsign in 50 steps: onnxruntime {grown[0]:.2f}, IREE {grown[1]:.3g}")
wrong = [numpy.allclose(seen, numpy.maximum(x.ravel(), 0)) for name, (_, seen) in layers.items() if name != "Tanh"]
if not (numpy.allclose(*layers["Tanh"], atol=1e-5) and all(wrong) and grown[0] < 1 < grown[1]):
    sys.exit("the behaviour has changed")
END
