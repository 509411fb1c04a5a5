#!/usr/bin/env bash
# PyTorch: a Transformer layer with an attention bias (ALiBi, relative positions) is another one in evaluation: wherever the bias is not 0,
# the fast path masks. With ALiBi, which is 0 on the diagonal, each token attends to itself alone; the numbers look ordinary.
#
# Versions: torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     nn.TransformerEncoder(Layer), eval(), no_grad(): ALiBi's outputs are those of a mask of all other tokens, 0 apart; with
#           gradients recorded they are right. Biases of 1e-9 do the same; a bias without zeros gives NaN. A warning speaks of speed.
# Source:   torch/nn/modules/transformer.py, TransformerEncoderLayer.forward(): hands the bias to torch._transformer_encoder_layer_fwd,
#           which converts it to bool. nn.MultiheadAttention refuses its fast path for such masks. Upstream: issue 118628 of pytorch,
#           open since 2024, about the NaN.
# Advice:   torch.backends.mha.set_fastpath_enabled(False) before any evaluation with a bias.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch import nn

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "numpy")))
torch.manual_seed(0)
tokens = 16
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
x = torch.randn(8, tokens, 32)
distance = (torch.arange(tokens)[:, None] - torch.arange(tokens)).abs().float()
later = torch.ones(tokens, tokens).triu(1).bool()
biases = {"ALiBi": -0.1 * distance, "ALiBi, causal": (-0.1 * distance).masked_fill(later, -torch.inf),
          "1e-9 beside the diagonal": 1e-9 * (distance > 0), "1 everywhere": torch.ones(tokens, tokens)}
with torch.no_grad():
    alone = encoder(x, mask=distance > 0)


def distances(bias):
    """Of the fast path from what the bias says, as computed while gradients are recorded, and from attention to oneself only."""
    right = encoder(x, mask=bias).detach()
    with torch.no_grad():
        fast = encoder(x, mask=bias)
        torch.backends.mha.set_fastpath_enabled(False)
        slow = encoder(x, mask=bias)
        torch.backends.mha.set_fastpath_enabled(True)
    assert torch.allclose(right, slow, atol=1e-5)
    return float((fast - right).norm() / right.norm()), float((fast - alone).norm() / alone.norm())


seen = {name: distances(bias) for name, bias in biases.items()}
print("expected: without gradients the outputs are the same, relative difference 0, and far from attention to oneself only")
for name, (right, only) in seen.items():
    print(f"{name}: difference from the right outputs {right:.2g}, from attention to oneself only {only:.2g}")
if not (all(seen[name][0] > 0.2 and seen[name][1] < 1e-5 for name in list(biases)[:3])
        and seen["1 everywhere"][0] != seen["1 everywhere"][0]):
    sys.exit("the behaviour has changed")
END
