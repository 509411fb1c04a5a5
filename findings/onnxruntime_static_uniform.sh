#!/usr/bin/env bash
# onnxruntime: static quantisation (quantize_static, as it comes) of a model that adds a mask to its scores makes attention
# uniform. The range of masked scores goes down to the mask's value, so 8 bits have steps of value / 255, and all scores become
# 0. The quantised model averages the tokens that it may see; nothing is NaN, the mask still holds, and no warning comes.
#
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     causal attention over 16 tokens, outputs before and after; the error in proportion to the outputs' size: mask of -10
#           4%, -100 8%, -1000 34%, -1e4, -1e9 and the least float 79%, where the outputs are within 3% those of equal weights.
#           With the mask as Where instead of Add it is the same; with -inf all outputs are 0. Entropy and percentile
#           calibration change nothing; 16-bit activations help against -1e4, not against -1e9.
# Source:   QDQQuantizer in onnxruntime/quantization/qdq_quantizer.py quantises the inputs and outputs of Add, Where and
#           Softmax, too; MinMaxCalibrater takes the range of the masked scores. QLinearSoftmax sets the range of the weights
#           alone.
# Advice:   op_types_to_quantize=["MatMul"] or nodes_to_exclude with the mask and the softmax (4%, as of -10); or a mask of -30
#           in the exported graph. Compare losses before and after, never only greedy tokens.
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
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

print("versions:", *(f"{name} {version(name)}" for name in ("onnxruntime", "onnx", "numpy")))
TOKENS = SIZE = 16
random = numpy.random.default_rng(0)
weights = {name: (random.standard_normal((SIZE, SIZE)) / 2).astype("f") for name in ("wq", "wk", "wv")}
least = float(numpy.finfo("f").min)


def save(value, where=False):
    """Causal attention of one head; value is added to the scores of later tokens, or takes their place."""
    seen = numpy.tril(numpy.ones((TOKENS, TOKENS), bool))
    constants = {**weights, "scale": numpy.float32(SIZE**-0.5)}
    constants |= {"seen": seen, "value": numpy.float32(value)} if where else {"mask": numpy.where(seen, 0, value).astype("f")}
    steps = [("MatMul", ["x", "w" + name], name, {}) for name in "qkv"]
    steps += [("Transpose", ["k"], "turned", {"perm": [0, 2, 1]}), ("MatMul", ["q", "turned"], "products", {}),
              ("Mul", ["products", "scale"], "scores", {}),
              ("Where", ["seen", "scores", "value"], "masked", {}) if where else ("Add", ["scores", "mask"], "masked", {}),
              ("Softmax", ["masked"], "weights", {"axis": -1}), ("MatMul", ["weights", "v"], "y", {})]
    nodes = [helper.make_node(kind, inputs, [output], name=output, **options) for kind, inputs, output, options in steps]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", TOKENS, SIZE]) for name in "xy"]
    graph = helper.make_graph(nodes, "attention", ends[:1], ends[1:], [numpy_helper.from_array(numpy.asarray(array), name)
                                                                      for name, array in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, "model.onnx")


class Texts(CalibrationDataReader):
    def __init__(self):
        texts = numpy.random.default_rng(1)
        self.batches = iter([{"x": texts.standard_normal((8, TOKENS, SIZE)).astype("f")} for _ in range(8)])

    def get_next(self):
        return next(self.batches, None)


x = numpy.random.default_rng(2).standard_normal((4, TOKENS, SIZE)).astype("f")
equal = numpy.cumsum(x @ weights["wv"], 1) / numpy.arange(1, TOKENS + 1)[:, None]  # the means of what each token sees


def size(array):
    return float((array**2).mean()**0.5)


def run(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def errors(value, where=False, **options):
    """Relative errors after quantisation: of the model's outputs, and of the means of what is seen."""
    save(value, where)
    quantize_static("model.onnx", "quantised.onnx", Texts(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, **options)
    plain, quantised = run("model.onnx"), run("quantised.onnx")
    return round(size(quantised - plain) / size(plain), 3), round(size(quantised - equal) / size(equal), 3)


matmuls = errors(-1e9, op_types_to_quantize=["MatMul"])
print("expected: an error of some percent, whatever hides later tokens, as with only MatMul quantised (-1e9):", matmuls[0])
seen = {value: errors(value) for value in (-10, -100, -1e3, -1e4, -1e9, least)}
for value, (error, from_equal) in seen.items():
    print(f"seen: mask of {value:.3g}: error {error}; from the means of what is seen {from_equal}")
where, infinite = errors(-1e4, where=True), errors(-float("inf"))
print("seen: -1e4 by Where:", *where, "; -inf:", *infinite)
if not (matmuls[0] < 0.1 and seen[-10][0] < 0.1 and min(seen[each][0] for each in (-1e4, -1e9, least)) > 0.5
        and max(seen[each][1] for each in (-1e4, -1e9, least)) < 0.1 and where[0] > 0.5 > 0.1 > where[1] and infinite[0] == 1):
    sys.exit("the behaviour has changed")
END
