#!/usr/bin/env bash
# OpenVINO, tract: sliding-window attention becomes full attention. Both read ONNX's Attention of operator set 25, whose windows
# are new, and leave left_window_size and right_window_size out without a word.
#
# Versions: openvino 2026.4.1, tract 0.23.9, onnx 1.23.2, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     values 1 to 6, alike scores, causal, a window of the token and one before it: 1, 1.5, 2.5, 3.5, 4.5, 5.5 by the
#           reference; 1, 1.5, 2, 2.5, 3, 3.5, the means of all before, by OpenVINO and tract.
# Source:   run; ONNX's text on Attention-25. A runtime need not know a new operator set, but such a model is neither refused
#           nor computed.
# Advice:   export the window as attn_mask, or with operator set 24, and compare texts that are longer than the window.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 openvino==2026.4.1 tract==0.23.9
"$folder/venv/bin/python" -W ignore - "$folder/model.onnx" <<'END'
import sys
from importlib.metadata import version

import numpy
import onnx
import openvino
import tract
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

print("versions:", *(f"{name} {version(name)}" for name in ("openvino", "tract", "onnx", "numpy")))
TOKENS, WIDTH = 6, 4
value = numpy.repeat(numpy.arange(1, TOKENS + 1, dtype=numpy.float32), WIDTH).reshape(1, 1, TOKENS, WIDTH)
feeds = {"q": numpy.zeros_like(value), "k": numpy.zeros_like(value), "v": value}
shape = [1, 1, TOKENS, WIDTH]


def outputs(**window):
    """The mean of what each token sees, by the reference, OpenVINO and tract; all scores are alike."""
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Attention", list(feeds), ["y"], is_causal=1, **window)], "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in feeds],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, sys.argv[1])
    compiled = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    runnable = tract.onnx().load(sys.argv[1]).into_model().into_runnable()
    every = (ReferenceEvaluator(model).run(None, feeds)[0], compiled(feeds)[0], runnable.run(list(feeds.values()))[0].to_numpy())
    return [each[0, 0, :, 0].astype(float).round(3).tolist() for each in every]


full, windowed = outputs(), outputs(left_window_size=1, right_window_size=0)
print("expected: by OpenVINO and tract as by the reference:", windowed[0])
print("seen: OpenVINO", windowed[1], "tract", windowed[2])
if not (full == [[1, 1.5, 2, 2.5, 3, 3.5]] * 3 and windowed == [[1, 1.5, 2.5, 3.5, 4.5, 5.5], full[1], full[2]]):
    sys.exit("the behaviour has changed")
END
