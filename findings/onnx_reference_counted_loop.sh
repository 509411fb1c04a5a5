#!/usr/bin/env bash
# ONNX: the reference does not execute a loop that has a count and no condition, the operator's form of a plain for loop. A state
# that is updated token by token comes back as it went in.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     linear attention in a Loop over 6 tokens, without the optional condition: onnxruntime's state is the sum of all outer
#           products, the reference's is zero; with a condition that is true both agree. (If the loop also stacks outputs, the
#           reference raises a ValueError.)
# Source:   onnx/reference/ops/op_loop.py, Loop._run(): "while cond and ...", where cond is None if the input is not given; the
#           operator's text takes the missing input for true.
# Advice:   give a constant true as condition, as PyTorch's export does.
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
from onnx.reference import ReferenceEvaluator

print("versions: onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "numpy", version("numpy"))
onnxruntime.set_default_logger_severity(3)
FLOAT, LENGTH, SIZE = TensorProto.FLOAT, 6, 4
random = numpy.random.default_rng(0)
feeds = {name: random.standard_normal((LENGTH, SIZE)).astype(numpy.float32) for name in ("keys", "values")}
truth = feeds["keys"].T @ feeds["values"]


def value(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def states(condition):
    """The last state, from onnxruntime and from the reference."""
    steps = [helper.make_node("Gather", [name, "token"], [name + "_row"]) for name in feeds]
    steps += [
        helper.make_node("Unsqueeze", ["keys_row", "last"], ["column"]),
        helper.make_node("Mul", ["column", "values_row"], ["outer"]),
        helper.make_node("Add", ["state", "outer"], ["next"]),
        helper.make_node("Identity", ["going"], ["going_on"]),
    ]
    body = helper.make_graph(
        steps,
        "token",
        [value("token", TensorProto.INT64, ()), value("going", TensorProto.BOOL, ()), value("state", FLOAT, (SIZE, SIZE))],
        [value("going_on", TensorProto.BOOL, ()), value("next", FLOAT, (SIZE, SIZE))],
    )
    loop = helper.make_node("Loop", ["length", condition, "zeros"], ["last_state"], body=body)
    constants = {
        "length": numpy.array(LENGTH),
        "true": numpy.array(True),
        "zeros": numpy.zeros((SIZE, SIZE), numpy.float32),
        "last": numpy.array([-1]),
    }
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    inputs = [value(name, FLOAT, (LENGTH, SIZE)) for name in feeds]
    outputs = [value("last_state", FLOAT, (SIZE, SIZE))]
    graph = helper.make_graph([loop], "attention", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [run.run(None, feeds)[0] for run in (session, ReferenceEvaluator(model))]


changed = False
print("expected: the last state is the sum of", LENGTH, "outer products")
for name, condition in (("a condition that is true", "true"), ("no condition", "")):
    found = states(condition)
    wrong = [float(abs(state - truth).max()) for state in found]
    largest = float(abs(found[1]).max())
    print(f"seen: {name}: difference: onnxruntime {wrong[0]:.0e}, the reference {wrong[1]:.1g}; its largest number {largest:.1f}")
    changed = changed or wrong[0] > 1e-5 or (wrong[1] > 0.5 and not found[1].any()) != (condition == "")
if changed:
    sys.exit("the behaviour has changed")
END
