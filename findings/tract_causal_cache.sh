#!/usr/bin/env bash
# tract: causal Attention with a cache sees the cache's beginning. A generated token attends to the first cached token alone,
# the next one to the first two, as though the queries stood at the start of the text.
#
# Versions: tract 0.23.9, onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     values 1 to 5, alike scores, so that each query gets the mean of what it sees: of all five at once 1, 1.5, 2, 2.5, 3
#           everywhere; of the last two after three cached ones 2.5 and 3 by onnxruntime and the reference, 1 and 1.5 by tract;
#           of one token after four cached ones 3 and 1. The cache that comes out is right.
# Source:   run; the mask is anchored at the first key. ONNX's text left it open until an erratum (issue #8054 of onnx), its
#           reference and onnxruntime shift it by past_key's length; tinygrad had the same (pull request #15949).
# Advice:   for tract, export the mask as attn_mask (numbers, not booleans) and leave is_causal out of models with a cache;
#           compare token by token with the whole text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9
"$folder/venv/bin/python" -W ignore - "$folder/model.onnx" <<'END'
import sys
from importlib.metadata import version

import numpy
import onnx
import onnxruntime
import tract
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("versions:", *(f"{name} {version(name)}" for name in ("tract", "onnxruntime", "onnx", "numpy")))
TOKENS, WIDTH = 5, 4


def values(first, last):
    """The values of tokens, their numbers."""
    return numpy.repeat(numpy.arange(first, last + 1, dtype=numpy.float32), WIDTH).reshape(1, 1, -1, WIDTH)


def attention(cached, masked=False):
    """The outputs of the tokens after the cached ones, by three runtimes; all scores are alike."""
    new = values(cached + 1, TOKENS)
    feeds = {"q": numpy.zeros_like(new), "k": numpy.zeros_like(new), "v": new}
    if masked:
        feeds["mask"] = numpy.where(numpy.tri(TOKENS - cached, TOKENS, cached), 0, -1e9).astype(numpy.float32)
    if cached:
        feeds |= {"past_k": numpy.zeros_like(values(1, cached)), "past_v": values(1, cached)}
    places = ["q", "k", "v", "mask" if masked else "", *(["past_k", "past_v"] if cached else [])]
    node = helper.make_node("Attention", places, ["y", *(["keys", "values"] if cached else [])], is_causal=int(not masked))
    model = helper.make_model(helper.make_graph(
        [node], "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in feeds.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "heads", name, "size"]) for name in node.output]),
        opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sys.argv[1])
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    runnable = tract.onnx().load(sys.argv[1]).into_model().into_runnable()
    outputs = session.run(None, feeds), ReferenceEvaluator(model).run(None, feeds), [
        each.to_numpy() for each in runnable.run(list(feeds.values()))]
    if cached and not all(numpy.array_equal(each[2], values(1, TOKENS)) for each in outputs):
        sys.exit("the behaviour of the cache has changed")
    return [each[0][0, 0, :, 0].round(3).tolist() for each in outputs]


print("expected: the same with and without a cache, by onnxruntime, the reference and tract")
seen = {name: attention(*how) for name, how in {
    "all tokens": (0,), "two after three": (3,), "one after four": (4,), "two after three, by attn_mask": (3, True)}.items()}
for name, each in seen.items():
    print(f"seen: {name}:", each)
if not (seen["all tokens"] == [[1, 1.5, 2, 2.5, 3]] * 3 and seen["two after three"] == [[2.5, 3], [2.5, 3], [1, 1.5]]
        and seen["one after four"] == [[3], [3], [1]] and seen["two after three, by attn_mask"] == [[2.5, 3]] * 3):
    sys.exit("the behaviour has changed")
END
