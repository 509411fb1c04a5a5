#!/usr/bin/env bash
# torch.onnx.export: an `if` on the length of a sequence is decided once, by the example, although the length is declared
# dynamic, even with a range that holds lengths of both branches. The graph takes every length and computes the branch of the
# example for all, without an error at export or at run time.
#
# Versions: torch 2.15.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.31.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     a model that doubles sequences longer than 6: of ones of length 5 PyTorch gives 1, the graphs of Dim.DYNAMIC and of
#           Dim("length", min=1) give 2; torch.export.export refuses the second, and the program of the first refuses 5.
# Source:   torch.export narrows Dim.DYNAMIC to the branch's lengths (here 7 and more) and checks them when its program is called;
#           an ONNX input has a name for a dimension and no range, so that the check is lost on the way.
# Advice:   windows, chunks and shortcuts by length are such branches. Call torch.export.export with ranges first, which fails;
#           compare the graph with the model on both sides of every threshold.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import onnxruntime
import torch

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "onnx", "onnxscript", "onnxruntime", "numpy")))


class Branch(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] > 6 else x * 1


example, short = torch.ones(1, 8), torch.ones(1, 5)


def by_onnx(length):
    """The shape that the exported graph asks for, and what it makes of ones of length 5."""
    torch.onnx.export(Branch(), (example,), "branch.onnx", dynamo=True, verbose=False, dynamic_shapes=({1: length},))
    session = onnxruntime.InferenceSession("branch.onnx", providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    return given.shape, session.run(None, {given.name: short.numpy()})[0][0, 0].item()


def refused(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


dynamic, ranged = torch.export.Dim.DYNAMIC, torch.export.Dim("length", min=1)
model, graph, graph_of_range = Branch()(short)[0, 0].item(), by_onnx(dynamic), by_onnx(ranged)
program = torch.export.export(Branch(), (example,), dynamic_shapes=({1: dynamic},)).module()
errors = (refused(lambda: program(short)),
          refused(lambda: torch.export.export(Branch(), (example,), dynamic_shapes=({1: ranged},))))
print("expected: the same as PyTorch for length 5,", model, ", or an error, as torch.export has in both cases:", *errors)
print("seen: the graphs give", *graph, "and", *graph_of_range)
if not (model == 1 and graph[1] == graph_of_range[1] == 2 and isinstance(graph[0][1], str) and "nothing" not in errors):
    sys.exit("the behaviour has changed")
END
