#!/usr/bin/env bash
# ONNX: a query that may see no key has output 0 in PyTorch's attention. The graph that torch.onnx.export writes of it by default
# gives the plain mean of all values, masked ones included, for a boolean mask, and NaN for a mask of 0 and -inf.
#
# Versions: torch 2.15.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.31.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     masked query: PyTorch 0 and 0; ONNX 1.5 (the mean of values 0 to 3) and nan. By opset 23 a boolean
#           mask gives 0.
# Source:   onnxscript, function_libs/torch_lib/ops/nn.py: below opset 23 a boolean mask is added as the lowest finite number, so
#           that a wholly masked row is uniform, and the graph's test for NaN never holds; a float mask has no such test.
# Advice:   export with opset_version=23 where masks are boolean, or let every query see itself; compare the graph with the model
#           on padded input, not only on full sequences.
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


class Attention(torch.nn.Module):
    def forward(self, q, k, v, mask):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


torch.manual_seed(0)
q, k = torch.randn(1, 1, 4, 8), torch.randn(1, 1, 4, 8)
v = torch.arange(4.0).view(1, 1, 4, 1).expand(1, 1, 4, 8).contiguous()
visible = torch.ones(4, 4, dtype=torch.bool).tril()
visible[2] = False  # the third query sees nothing


def by_onnx(mask, **options):
    """The first number of the third query's output, by PyTorch and by the exported graph."""
    inputs = (q, k, v, mask)
    torch.onnx.export(Attention(), inputs, "attention.onnx", dynamo=True, verbose=False, **options)
    session = onnxruntime.InferenceSession("attention.onnx", providers=["CPUExecutionProvider"])
    out = session.run(None, {i.name: value.numpy() for i, value in zip(session.get_inputs(), inputs)})[0]
    return Attention()(*inputs)[0, 0, 2, 0].item(), float(out[0, 0, 2, 0])


boolean, added = by_onnx(visible), by_onnx(torch.zeros(4, 4).masked_fill(~visible, float("-inf")))
newer = by_onnx(visible, opset_version=23)
print("expected: the graph computes what the model does: 0")
print("seen (PyTorch, ONNX): boolean mask", boolean, "mask of -inf", added, "boolean mask by opset 23", newer)
if not (boolean[0] == added[0] == newer[0] == newer[1] == 0 and abs(boolean[1] - 1.5) < 1e-5 and added[1] != added[1]):
    sys.exit("the behaviour has changed")
END
