#!/usr/bin/env bash
# onnxruntime: the optimizer for Transformers (onnxruntime.transformers) fuses attention whatever its scale is, and the fused
# operator divides by the square root of the head's size. A model that divides by the size itself (muP), or by nothing, answers
# with other numbers, without a warning.
#
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     heads of size 8; the largest difference after the optimization, of outputs up to 3: divided by sqrt(8) 0, by 8 1.03,
#           by 1 0.56. Optimized, all three are the same model. A session's own optimizations (ORT_ENABLE_ALL) change nothing.
# Source:   FusionAttention in onnxruntime/transformers/fusion_attention.py: Div or Mul before the softmax is matched by its name
#           and removed; its constant is not read, and create_attention_node() is called without scale, which it has.
# Advice:   compare outputs before and after optimize_model(); for another scale, disable_attention in FusionOptions, or multiply
#           the query's weights and bias by sqrt(size) / divisor and divide by sqrt(size) in the graph.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 sympy==1.14.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2> "$folder/log" <<'END' || { cat "$folder/log" >&2; exit 1; }
import sys
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.transformers import optimizer

print("versions:", *(f"{name} {version(name)}" for name in ("onnxruntime", "onnx", "numpy")))
HEADS, SIZE = 4, 8
WIDTH = HEADS * SIZE


def block(divisor):
    """Attention with a residual and two normalizations, as in BERT, whose scores are divided by divisor."""
    random = numpy.random.default_rng(1)
    weights = {"divisor": numpy.float32(divisor), "one": numpy.ones(WIDTH, "f"), "zero": numpy.zeros(WIDTH, "f"),
               "split": numpy.array([0, 0, HEADS, SIZE]), "join": numpy.array([0, 0, WIDTH])}
    nodes = []

    def add(kind, inputs, output, **options):
        nodes.append(helper.make_node(kind, inputs, [output], **options))

    add("LayerNormalization", ["x", "one", "zero"], "h", epsilon=1e-5)
    for name in "qkvo":
        weights["w" + name] = random.normal(0, 0.5, (WIDTH, WIDTH)).astype("f")
        weights["b" + name] = random.normal(0, 0.1, WIDTH).astype("f")
    for name in "qkv":
        add("MatMul", ["h", "w" + name], "product " + name)
        add("Add", ["b" + name, "product " + name], "sum " + name)
        add("Reshape", ["sum " + name, "split"], "heads " + name)
        add("Transpose", ["heads " + name], name, perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])
    add("MatMul", ["q", "k"], "scores")
    add("Div", ["scores", "divisor"], "scaled")
    add("Softmax", ["scaled"], "weights", axis=-1)
    add("MatMul", ["weights", "v"], "values")
    add("Transpose", ["values"], "turned", perm=[0, 2, 1, 3])
    add("Reshape", ["turned", "join"], "joined")
    add("MatMul", ["joined", "wo"], "projected")
    add("Add", ["bo", "projected"], "attention")
    add("Add", ["attention", "h"], "residual")
    add("LayerNormalization", ["residual", "one", "zero"], "y", epsilon=1e-5)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "tokens", WIDTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "block", ends[:1], ends[1:], [numpy_helper.from_array(numpy.asarray(value), name)
                                                                  for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


feeds = {"x": numpy.random.default_rng(0).standard_normal((2, 6, WIDTH)).astype("f")}


def run(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


changes, own, fused = [], [], []
for divisor in SIZE**0.5, SIZE, 1:
    model = block(divisor)
    plain, reference = run(model), ReferenceEvaluator(model).run(None, feeds)[0]
    own.append(float(abs(plain - reference).max()))
    optimized = optimizer.optimize_model(model, model_type="bert", num_heads=HEADS, hidden_size=WIDTH, opt_level=0)
    if optimized.get_fused_operator_statistics()["Attention"] != 1:
        sys.exit("the behaviour has changed: attention is not fused")
    fused.append(run(optimized.model))
    changes.append(float(abs(fused[-1] - plain).max()))
print("expected: the optimized block computes the same; largest differences near 0, as between the session and the reference:",
      [round(value, 5) for value in own])
print("seen: divided by the root of the size, by the size, by 1:", [round(value, 2) for value in changes])
print("seen: between the three optimized blocks:", [round(float(abs(each - fused[0]).max()), 5) for each in fused])
if not (max(own) < 1e-4 and changes[0] < 1e-4 and min(changes[1:]) > 0.3 and abs(fused[1] - fused[0]).max() < 1e-4):
    sys.exit("the behaviour has changed")
END
