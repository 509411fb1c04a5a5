#!/usr/bin/env bash
# onnxslim: random numbers become constants, and independent ones the same. Noise of a fixed shape is drawn once and kept, and
# two draws for the same input, as of two noisy layers or two dropouts of Monte Carlo dropout, are merged into one.
#
# Versions: onnxslim 0.1.98, onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     as made, two runs have other noise, and the difference of two draws has a standard deviation of about 1.4 (normal
#           noise, and dropout at 0.5); slimmed, the noise of all runs is the same, and both differences are 0.
# Source:   onnxslim/core/optimization/subexpression_elimination.py compares operators, attributes and inputs, and folding of
#           constants asks whether all inputs are known; neither knows an operator that is random.
# Advice:   give noise to the model as an input; do not slim what draws numbers, or compare two runs of it. onnxscript.optimizer
#           0.7.2 leaves random operators alone, but merges two dropouts in training mode.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 onnxslim==0.1.98
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from copy import deepcopy
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper

print("versions:", *(f"{name} {version(name)}" for name in ("onnxslim", "onnxruntime", "onnx", "numpy")))
onnxruntime.set_default_logger_severity(3)
WIDTH = 1000
given = {"rate": numpy.float32(0.5), "training": numpy.array(True)}
x = numpy.ones((1, WIDTH), numpy.float32)


def made(*nodes):
    """A model of one input, x, and one output, y."""
    used = {name for _, inputs, *_ in nodes for name in inputs}
    model = helper.make_model(helper.make_graph(
        [helper.make_node(kind, inputs, [output], f"{kind}_{output}", **others) for kind, inputs, output, others in nodes],
        "noise", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", WIDTH])],
        [numpy_helper.from_array(numpy.asarray(array), name) for name, array in given.items() if name in used]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def runs(model):
    """Two outputs of the model, one after the other."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [session.run(None, {"x": x})[0] for _ in range(2)]


dropped = ["x", "rate", "training"]
noisy = made(("RandomNormal", [], "noise", {"shape": [WIDTH]}), ("Add", ["x", "noise"], "y", {}))
apart = ("Sub", ["one", "two"], "y", {})
pairs = {"noise": made(("RandomNormalLike", ["x"], "one", {}), ("RandomNormalLike", ["x"], "two", {}), apart),
         "dropout": made(("Dropout", dropped, "one", {}), ("Dropout", dropped, "two", {}), apart)}
ok = True
for name, optimise in (("as made", deepcopy), ("slimmed", lambda model: onnxslim.slim(deepcopy(model)))):
    first, second = runs(optimise(noisy))
    spread = {kind: round(float(runs(optimise(pair))[0].std()), 2) for kind, pair in pairs.items()}
    frozen, slimmed = bool((first == second).all()), name == "slimmed"
    print("seen:" if slimmed else "expected:", f"{name}: the noise of two runs is {'the same' if frozen else 'another'};",
          "standard deviation of the difference of two draws:", spread)
    ok &= frozen == slimmed and all((each == 0) == slimmed for each in spread.values())
if not ok:
    sys.exit("the behaviour has changed")
END
