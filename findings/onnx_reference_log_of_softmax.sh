#!/usr/bin/env bash
# ONNX: the reference's log-softmax is the logarithm of the softmax. In half precision each token of a probability below 3e-8 has
# minus infinity, and the cross-entropy of an ordinary batch is infinite; in float32 it is so from 104 nats on.
#
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     float16 logits of 1,000 tokens with a standard deviation of 4: onnxruntime's largest error is 0.01; of the reference's
#           22% are -inf, the finite ones are up to 1.3 off, and its SoftmaxCrossEntropyLoss is infinite in place of 14.1.
#           float32, a logit 132 below the largest: -inf in place of -132.
# Source:   onnx/reference/ops/op_log_softmax.py, numpy.log of Softmax; op_softmax_cross_entropy_loss.py takes the logarithm of
#           the quotient, too. The operator's function body in the standard subtracts the logarithm of the sum.
# Advice:   compare log-probabilities and losses with the reference in float64, or expand the operator to its function body
#           (onnx.inliner.inline_selected_functions with inline_schema_functions=True).
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
from onnx.inliner import inline_selected_functions
from onnx.reference import ReferenceEvaluator

print("versions: onnx", version("onnx"), "onnxruntime", version("onnxruntime"), "numpy", version("numpy"))
random = numpy.random.default_rng(0)
logits = (4 * random.standard_normal((64, 1000))).astype(numpy.float16)
targets = random.integers(0, 1000, 64)


def run(operator, logits, targets=None):
    """By onnxruntime, by the reference, and by the reference from the operator's function body."""
    kind = helper.np_dtype_to_tensor_dtype(logits.dtype)
    inputs = [helper.make_tensor_value_info("logits", kind, logits.shape)]
    feeds = {"logits": logits}
    if targets is not None:
        inputs.append(helper.make_tensor_value_info("targets", TensorProto.INT64, targets.shape))
        feeds["targets"] = targets
    node = helper.make_node(operator, list(feeds), ["y"])
    shape = logits.shape if targets is None else ()
    graph = helper.make_graph([node], "loss", inputs, [helper.make_tensor_value_info("y", kind, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    body = inline_selected_functions(model, [("", "LogSoftmax")], inline_schema_functions=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [each.run(None, feeds)[0].astype(float) for each in (session, ReferenceEvaluator(model), ReferenceEvaluator(body))]


exact = logits.astype(float)
exact -= numpy.log(numpy.exp(exact).sum(1, keepdims=True))
found = run("LogSoftmax", logits)
infinite = [float(numpy.isinf(values).mean()) for values in found]
wrong = [float(abs(values - exact)[numpy.isfinite(values)].max()) for values in found]
names = "onnxruntime", "the reference", "its function body"
print(f"expected: log-probabilities from {exact.min():.1f} on, and a loss of {-exact[range(64), targets].mean():.2f}, all finite")
for name, share, error in zip(names, infinite, wrong):
    print(f"seen: float16, {name}: {share:.2f} infinite, largest error of the others {error:.2f}")
losses = [float(loss) for loss in run("SoftmaxCrossEntropyLoss", logits, targets)[:2]]
print("seen: float16, loss:", *(f"{name} {loss:.2f}" for name, loss in zip(names, losses)))
single = [float(values[0, 1]) for values in run("LogSoftmax", numpy.array([[12, -120]], numpy.float32))]
print("seen: float32, 132 below:", *(f"{name} {value:.0f}" for name, value in zip(names, single)))
if not (infinite[0] == infinite[2] == 0 and infinite[1] > 0.1 and max(wrong[0], wrong[2]) < 0.05 and numpy.isfinite(losses[0])
        and numpy.isinf(losses[1]) and single == [-132, -numpy.inf, -132]):
    sys.exit("the behaviour has changed")
END
