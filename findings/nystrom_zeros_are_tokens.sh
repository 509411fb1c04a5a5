#!/usr/bin/env bash
# nystrom-attention: a text that is no multiple of the number of landmarks is filled up with zeros, which take part in the attention. The
# output of a short text is a fraction of what it should be, and a mask of all True changes it.
#
# Versions: nystrom-attention 0.0.14, einops 0.8.2, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     64 landmarks: the output of a text of 10 tokens is 0.16 of the exact attention's (each token is a landmark here, so that only the
#           iterated inverse is inexact), of 32 tokens 0.5, of 64 tokens 1.0, of 65 tokens 0.47. With a mask of all True: 1.0, 1.0, 1.0 and
#           0.95; errors of 10 tokens: 0.85 without, 0.03 with the mask. The default is 256 landmarks.
# Source:   nystrom_attention/nystrom_attention.py, NystromAttention.forward(): pads on the left; padding is masked only if a mask is given.
# Advice:   always give a mask, of all True where nothing is padded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2 nystrom-attention==0.0.14
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from nystrom_attention import NystromAttention
from torch.nn.functional import scaled_dot_product_attention

print("versions:", *(f"{name} {version(name)}" for name in ("nystrom-attention", "einops", "torch", "numpy")))
torch.manual_seed(0)
heads, size = 2, 32
layer = NystromAttention(dim=64, dim_head=size, heads=heads, num_landmarks=64, residual=False).double().eval()
seen = {}
with torch.no_grad():
    for length in (10, 32, 64, 65, 128):
        x = torch.randn(4, length, 64, dtype=torch.float64)
        q, k, v = (part.view(4, length, heads, size).transpose(1, 2) for part in layer.to_qkv(x).chunk(3, dim=-1))
        bias = layer.to_out(torch.zeros_like(x))
        exact = layer.to_out(scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(4, length, -1)) - bias
        for masked in (False, True):
            output = layer(x, mask=torch.ones(4, length, dtype=torch.bool) if masked else None) - bias
            seen[length, masked] = [round(float(value.norm() / exact.norm()), 2) for value in (output, output - exact)]
print("expected: the norm is about that of the exact attention (1 below); a mask of all True changes nothing")
for (length, masked), (ratio, error) in seen.items():
    print(f"length {length}, {'mask of all True' if masked else 'no mask'}: norm of the output {ratio}, of its error {error}")
if not (seen[10, False][0] < 0.3 and seen[10, True][0] > 0.9 and seen[64, False] == seen[64, True]
        and seen[65, False][0] < 0.7 < 0.8 < seen[65, True][0]):
    sys.exit("the behaviour has changed")
END
