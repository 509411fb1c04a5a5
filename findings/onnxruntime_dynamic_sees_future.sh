#!/usr/bin/env bash
# onnxruntime: dynamic quantisation lets a causal language model see the future. One scale serves all activations of a call, so
# that logits of a text's beginning depend on the tokens after it, and on the other texts of the batch, in a model without
# attention, too.
#
# Versions: onnxruntime 1.32.0, onnx 1.23.2, onnx-ir 1.1.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     the loss of the first 31 predictions, quantised dynamically: 5.5812 alone and with an ordinary token after them,
#           5.5204 with a token after them whose embedding has one large number, or beside a text of it; float32 5.5752 and
#           weights in 8 bits 5.5761 in all cases.
# Source:   onnxruntime/quantization, quantize_dynamic(): DynamicQuantizeLinear takes the least and the largest number of the
#           whole tensor. That batches change results is known and said to be expected: issue #10111 of microsoft/onnxruntime.
# Advice:   no perplexity of a whole text is that of a model that generates; quantise weights alone (MatMulNBitsQuantizer), or
#           activations by token or with fixed scales.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 onnx-ir==1.1.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

print("versions:", *(f"{name} {version(name)}" for name in ("onnxruntime", "onnx", "onnx-ir", "numpy")))
WORDS, WIDTH, LENGTH = 64, 64, 32
draw = numpy.random.default_rng(0)
weights = {"embedding": draw.standard_normal((WORDS, WIDTH)), "w1": draw.standard_normal((WIDTH, 256)) / 8,
           "w2": draw.standard_normal((256, WIDTH)) / 16, "gain": numpy.ones(WIDTH),
           "output": draw.standard_normal((WIDTH, WORDS)) / 4}
weights["embedding"][0, 3] = 300  # one feature of one token is large, as of the tokens that attention sinks in
graph = helper.make_graph(
    [helper.make_node("Gather", ["embedding", "ids"], ["x"]), helper.make_node("MatMul", ["x", "w1"], ["hidden"], "up"),
     helper.make_node("Relu", ["hidden"], ["active"]), helper.make_node("MatMul", ["active", "w2"], ["change"], "down"),
     helper.make_node("Add", ["x", "change"], ["sum"]), helper.make_node("LayerNormalization", ["sum", "gain"], ["norm"]),
     helper.make_node("MatMul", ["norm", "output"], ["logits"], "head")], "no attention",
    [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "tokens", WORDS])],
    [numpy_helper.from_array(array.astype(numpy.float32), name) for name, array in weights.items()])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), "single.onnx")
quantize_dynamic("single.onnx", "dynamic.onnx", op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8, per_channel=True)
only_weights = MatMulNBitsQuantizer(onnx.load("single.onnx"), bits=8, block_size=32, is_symmetric=True)
only_weights.process()
only_weights.model.save_model_to_file("weights.onnx")
text = draw.integers(1, WORDS, (1, LENGTH))


def loss(name, *texts):
    """The mean loss of the text's own predictions at the beginning of the first of a batch of texts."""
    session = onnxruntime.InferenceSession(name + ".onnx", providers=["CPUExecutionProvider"])
    logits = session.run(None, {"ids": numpy.concatenate(texts)})[0][0, :LENGTH - 1].astype(float)
    chances = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
    return float(-chances[numpy.arange(LENGTH - 1), text[0, 1:]].mean())


def losses(name):
    """Of the text alone, with one more token, another one more, and beside another text."""
    after = [numpy.append(text, [[token]], 1) for token in (1, 0)]
    return [round(loss(name, *texts), 4) for texts in ([text], after[:1], after[1:], [text, numpy.zeros_like(text)])]


print("expected: the loss of 31 predictions does not depend on a token after them, nor on a text beside them")
seen = {name: losses(name) for name in ("single", "weights", "dynamic")}
for name, title in (("single", "float32"), ("weights", "weights in 8 bits"), ("dynamic", "dynamic")):
    print(f"seen: {title}: alone, with a token after it, with a large token, beside a text of these: {seen[name]}")
if not (all(len(set(seen[name])) == 1 for name in ("single", "weights"))
        and all(abs(each - seen["dynamic"][0]) > 0.01 for each in seen["dynamic"][2:])):
    sys.exit("the behaviour has changed")
END
