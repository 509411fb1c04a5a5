#!/usr/bin/env bash
# performer-pytorch: one token with a large key makes the attention of all tokens uniform, in causal models also that of the tokens before it:
# an epsilon is added to features that were divided by the maximum over the whole text.
#
# Versions: performer-pytorch 1.1.4, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     causal, 64 tokens, heads of 16 channels, 1,024 random features; the key of the last token is multiplied by 1, 4 and 8. Outputs of
#           tokens 9 to 63: distance from the exact attention, in distances of the mean of the values from it: 0.40, 0.94, 1.00 (0.05 from the
#           mean itself). The same estimate without the epsilon stays at 0.42.
# Source:   performer_pytorch/performer_pytorch.py, softmax_kernel(): exp(x - |k|^2 / 2 - maximum) + 1e-4; the maximum is over all tokens of
#           the text, and of x without - |k|^2 / 2, so that all features may be far below the epsilon, also those of the large key.
# Advice:   use generalized_attention=True (ReLU features) in causal models, or normalise the keys; watch the share of the epsilon.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 performer-pytorch==1.1.4
"$folder/venv/bin/python" -W ignore - <<'END'
import contextlib
import io
import sys
from importlib.metadata import version

import torch
from performer_pytorch import FastAttention
from torch.nn.functional import scaled_dot_product_attention

print("versions:", *(f"{name} {version(name)}" for name in ("performer-pytorch", "torch", "numpy")))
length, size = 64, 16
torch.manual_seed(0)
with contextlib.redirect_stdout(io.StringIO()):  # it says that it found no CUDA code
    layer = FastAttention(dim_heads=size, nb_features=1024, causal=True).double()
q, k, v = (torch.randn(4, 8, length, size, dtype=torch.float64) * scale for scale in (0.6, 0.6, 1))
features = layer.projection_matrix.double().T
before = slice(8, length - 1)
exact = scaled_dot_product_attention(q, k, v, is_causal=True)[..., before, :]
mean = (v.cumsum(-2) / torch.arange(1, length + 1)[:, None])[..., before, :]


def without_epsilon(k):
    """The estimate in double precision, each text divided by the largest feature of it."""
    logits = [x * size ** -0.25 @ features - (x * size ** -0.25).square().sum(-1, keepdim=True) / 2 for x in (q, k)]
    phi_q, phi_k = (torch.exp(x - x.amax((-1, -2), keepdim=True)) for x in logits)
    weights = (phi_q @ phi_k.transpose(-1, -2)).tril()
    return (weights / weights.sum(-1, keepdim=True) @ v)[..., before, :]


seen = {}
for factor in (1, 4, 8):
    large = torch.cat([k[..., :-1, :], k[..., -1:, :] * factor], dim=-2)
    outputs = layer(q, large, v)[..., before, :]
    values = (outputs - exact, without_epsilon(large) - exact, outputs - mean)
    seen[factor] = [round(float(value.norm() / (mean - exact).norm()), 3) for value in values]
print("expected: the last key changes nothing of the tokens before it")
for factor, (error, free, flat) in seen.items():
    print(f"last key x {factor}: distance from exact attention {error}, without epsilon {free}; from the mean {flat}")
if not (seen[1][0] < 0.7 and seen[8][0] > 0.9 and seen[8][2] < 0.1 and abs(seen[1][1] - seen[8][1]) < 0.01):
    sys.exit("the behaviour has changed")
END
