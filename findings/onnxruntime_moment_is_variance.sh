#!/usr/bin/env bash
# onnxruntime: a normalisation over the last axis that divides by the root of the fourth moment, or of any other, is computed as a
# layer norm, which divides by the root of the variance. The exponent is not looked at, not even if it is an input of the model.
# Without a bias the same layer is computed as written.
#
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     (x - mean) / sqrt(mean((x - mean) ** p) + 1e-5) * scale + bias with the default optimisations, p of 4 and 6, from a
#           constant and from an input: the result is that of p = 2, 2.5 and 3.2 from the formula at most, with basic
#           optimisations, too; without optimisations, or without these fusions, it is right.
# Source:   onnxruntime/core/optimizer/layer_norm_fusion.cc, LayerNormFusion: it takes any Pow before the second mean. The one for
#           RMS norm in the same file leaves other powers alone, as was seen for 3 and 4.
# Advice:   disabled_optimizers=["LayerNormFusionL1", "LayerNormFusionL2"] for the session (both), or ORT_DISABLE_ALL; compare
#           each new normalisation's export with its formula.
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
from onnx import TensorProto, helper, numpy_helper

print("versions: onnxruntime", version("onnxruntime"), "onnx", version("onnx"), "numpy", version("numpy"))
SIZE, EPSILON = 16, 1e-5
FUSIONS = "LayerNormFusionL1", "LayerNormFusionL2"
random = numpy.random.default_rng(0)
tokens = (3 * random.standard_normal((2, 5, SIZE))).astype(numpy.float32)
scale, bias = (random.standard_normal(SIZE).astype(numpy.float32) for _ in range(2))


def truth(power, with_bias=True):
    centred = tokens - tokens.mean(-1, keepdims=True)
    normed = centred / numpy.sqrt((centred**power).mean(-1, keepdims=True) + EPSILON) * scale
    return normed + bias if with_bias else normed


def found(power, level, as_input=False, with_bias=True, without=()):
    constants = {"axes": numpy.array([-1]), "epsilon": numpy.float32(EPSILON), "scale": scale}
    feeds = {"tokens": tokens}
    (feeds if as_input else constants)["power"] = numpy.array(power, numpy.float32)
    nodes = [
        helper.make_node("ReduceMean", ["tokens", "axes"], ["mean"]),
        helper.make_node("Sub", ["tokens", "mean"], ["centred"]),
        helper.make_node("Pow", ["centred", "power"], ["powers"]),
        helper.make_node("ReduceMean", ["powers", "axes"], ["moment"]),
        helper.make_node("Add", ["moment", "epsilon"], ["positive"]),
        helper.make_node("Sqrt", ["positive"], ["root"]),
        helper.make_node("Div", ["centred", "root"], ["normed"]),
        helper.make_node("Mul", ["normed", "scale"], ["scaled" if with_bias else "y"]),
    ]
    if with_bias:
        nodes.append(helper.make_node("Add", ["scaled", "bias"], ["y"]))
        constants["bias"] = bias
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in feeds.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, tokens.shape)]
    weights = [numpy_helper.from_array(numpy.asarray(value), name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "norm", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 20)], ir_version=10
    )
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, "ORT_" + level)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=[*without]
    )
    return session.run(None, feeds)[0]


def distance(one, other):
    return float(abs(one - other).max())


changed = False
print("expected: the numbers of the formula, with optimisations (the default) and without")
for power in (2, 4, 6):
    for as_input in (False, True):
        plain, basic, default = (found(power, level, as_input) for level in ("DISABLE_ALL", "ENABLE_BASIC", "ENABLE_ALL"))
        right = [distance(value, truth(power)) for value in (plain, basic, default)]
        print(
            f"seen: power {power}, {'an input' if as_input else 'a constant'}: difference from the formula: without"
            f" {right[0]:.0e}, basic {right[1]:.0e}, default {right[2]:.2g}, from power 2 {distance(default, truth(2)):.0e}"
        )
        changed = changed or right[0] > 1e-4 or distance(default, truth(2)) > 1e-4 or (min(right[1:]) > 0.5) != (power > 2)
no_bias = distance(found(4, "ENABLE_ALL", with_bias=False), truth(4, with_bias=False))
no_fusion = distance(found(4, "ENABLE_ALL", without=FUSIONS), truth(4))
print(f"seen: power 4, default: without a bias {no_bias:.0e}, without the fusion {no_fusion:.0e}")
if changed or max(no_bias, no_fusion) > 1e-4:
    sys.exit("the behaviour has changed")
END
