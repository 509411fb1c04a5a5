#!/usr/bin/env bash
# onnxruntime.transformers: conversion to half precision counts positions in half precision, too. With rotary embeddings, tokens
# after the 2,048th share a position with a neighbour, after the 8,192nd with seven, and after the 65,519th all scores are NaN.
#
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     attention scores of eight equal tokens, which depend on distances alone: in float32 the same from position 0 to
#           65,530; converted, right from 0, partly equal from 2,049, of two values from 8,192, of one from 65,500, NaN from
#           65,530.
# Source:   onnxruntime/transformers/float16.py, convert_float_to_float16(): a Cast of int64 positions to FLOAT becomes one to
#           FLOAT16, and the product with the frequencies is taken in it; Range and CumSum are kept in float32 by default, Cast
#           is not. With all these nodes in node_block_list it is the same: between two of them a number still passes through
#           half precision. OpenVINO's GPU plugin had the same (pull requests #25883, #33214 and #34716 of openvino).
# Advice:   export tables of cosines and sines that positions are looked up in, which convert well; compare long texts, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from copy import deepcopy
from importlib.metadata import version

import numpy
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper
from onnxruntime.transformers.float16 import convert_float_to_float16

print("versions:", *(f"{name} {version(name)}" for name in ("onnxruntime", "onnx", "numpy")))
onnxruntime.set_default_logger_severity(3)
SIZE, TOKENS = 64, 8
starts = (0, 2049, 8192, 65500, 65530)
frequencies = (10000.0 ** (-numpy.arange(0, SIZE, 2) / SIZE)).astype(numpy.float32)
angles = numpy.arange(starts[-1] + TOKENS)[:, None] * frequencies


def made(table):
    """A model of the scores of rotated queries and keys: a token's halves are turned by its position times the frequencies."""
    nodes = []

    def node(kind, inputs, outputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, outputs, name=f"{kind}_{len(nodes)}", **attributes))

    if table:
        weights = {"cosines": numpy.cos(angles), "sines": numpy.sin(angles)}
        node("Gather", ["cosines", "positions"], ["cos"])
        node("Gather", ["sines", "positions"], ["sin"])
    else:
        weights = {"frequencies": frequencies}
        node("Cast", ["positions"], ["real"], to=TensorProto.FLOAT)
        node("Unsqueeze", ["real", "axis"], ["column"])
        node("Mul", ["column", "frequencies"], ["angles"])
        node("Cos", ["angles"], ["cos"])
        node("Sin", ["angles"], ["sin"])
    rotary = [each.name for each in nodes]
    node("Split", ["x"], ["first", "second"], axis=1, num_outputs=2)
    for new, one, other, sign in (("left", "first", "second", "Sub"), ("right", "second", "first", "Add")):
        node("Mul", [one, "cos"], [new + "_cos"])
        node("Mul", [other, "sin"], [new + "_sin"])
        node(sign, [new + "_cos", new + "_sin"], [new])
    node("Concat", ["left", "right"], ["query"], axis=1)
    node("Transpose", ["query"], ["key"], perm=[1, 0])
    node("MatMul", ["query", "key"], ["scores"])
    model = helper.make_model(helper.make_graph(
        nodes, "scores",
        [helper.make_tensor_value_info("positions", TensorProto.INT64, ["tokens"]),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", SIZE])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["tokens", "tokens"])],
        [numpy_helper.from_array(numpy.array([1]), "axis"),
         *(numpy_helper.from_array(array.astype(numpy.float32), name) for name, array in weights.items())]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    checker.check_model(model, full_check=True)
    return model, rotary


x = numpy.repeat(numpy.random.default_rng(0).standard_normal((1, SIZE)), TOKENS, 0).astype(numpy.float32) / 3


def scores(model):
    """What the last of eight equal tokens gives to each of them, from several positions on."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [session.run(None, {"positions": numpy.arange(start, start + TOKENS), "x": x})[0][-1].round(2) for start in starts]


single, rotary = made(table=False)
full = scores(single)
half = scores(convert_float_to_float16(deepcopy(single), keep_io_types=True))
blocked = scores(convert_float_to_float16(deepcopy(single), keep_io_types=True, node_block_list=rotary))
looked_up = scores(convert_float_to_float16(made(table=True)[0], keep_io_types=True))
print("expected: the same scores from each position on, as in float32:", full[0], "and, converted, of a table:", looked_up[4])
for start, row, kept in zip(starts, half, blocked):
    print(f"seen: from {start}: {row}; with these nodes blocked: {kept}")
values = [[len(set(row.tolist())) for row in rows[2:4]] for rows in (half, blocked)]
if not (all(numpy.allclose(row, full[0], atol=0.03) for row in full + looked_up + half[:1])
        and values == [[2, 1]] * 2 and abs(half[1] - full[1]).max() > 0.1
        and all(numpy.isnan(rows[4]).all() for rows in (half, blocked))):
    sys.exit("the behaviour has changed")
END
