#!/usr/bin/env bash
# vector-quantize-pytorch: with cosine similarity a mask, even one that masks nothing, makes the commitment loss another one: unit codes are
# compared with the inputs as they are, not with the normalised ones, so that the loss is about the squared length of the inputs.
#
# Versions: vector-quantize-pytorch 1.32.0, einops 0.8.2, einx 0.4.3, torch-einops-utils 0.2.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     inputs of 16 channels, entries of a standard deviation of 3: commitment loss 0.0614 without a mask (as computed by hand), 9.33
#           with a mask of all True, or with lens. It pulls all inputs to length 1 (gradient along the input; none without a mask). Without
#           cosine similarity both are the same. Quantised values and indices do not differ.
# Source:   vector_quantize_pytorch/vector_quantize_pytorch.py, VectorQuantize.forward(): the masked loss takes orig_input, the other one x,
#           which is normalised (with a smaller codebook_dim, or several heads, orig_input has another shape: an error).
# Advice:   compute the commitment loss from the returned values, or normalise the inputs before the layer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2 einx==0.4.3 \
    torch-einops-utils==0.2.0 vector-quantize-pytorch==1.32.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch.nn.functional import normalize
from vector_quantize_pytorch import VectorQuantize

print("versions:", *(f"{name} {version(name)}" for name in ("vector-quantize-pytorch", "einops", "einx", "torch", "numpy")))
masks = {"none": {}, "mask of all True": {"mask": torch.ones(2, 10, dtype=torch.bool)}, "lens": {"lens": torch.tensor([10, 10])}}
seen = {}
for cosine in (False, True):
    for name, arguments in masks.items():
        torch.manual_seed(0)
        layer = VectorQuantize(dim=16, codebook_size=32, use_cosine_sim=cosine)
        x = (torch.randn(2, 10, 16) * 3).requires_grad_()
        codes = layer.codebook.clone()
        _, indices, loss = layer(x, **arguments)
        gradient, = torch.autograd.grad(loss.sum(), x)
        along = float((gradient * normalize(x, dim=-1)).sum(-1).abs().mean() / gradient.norm(dim=-1).mean())
        compared = normalize(x, dim=-1) if cosine else x
        by_hand = float((codes[indices] - compared).square().mean())
        seen[cosine, name] = round(float(loss.sum()), 4), round(by_hand, 4), round(along, 3)
print("expected: a mask that masks nothing changes nothing; the loss is the one computed by hand")
for (cosine, name), (loss, by_hand, along) in seen.items():
    print(f"cosine similarity {cosine}, {name}: loss {loss}, by hand {by_hand}, share of the gradient along the input {along}")
if not (all(abs(seen[key][0] - seen[key][1]) < 1e-3 for key in seen if not key[0] or key[1] == "none")
        and all(seen[True, name][0] > 50 * seen[True, "none"][0] for name in ("mask of all True", "lens"))):
    sys.exit("the behaviour has changed")
END
