#!/usr/bin/env bash
# x-transformers: a causal Decoder with attn_orthog_projected_values=True sees later tokens: logits of a token change with those after
# it, so that the loss of a language model with this option comes out wrong.
#
# Versions: x-transformers 2.31.10, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     logits of 8 tokens alone and of the same 8 before 5 others, largest difference in standard deviations: with the option 0.83,
#           without 0 (random model of two layers).
# Source:   found by running; the option's code is in x_transformers/x_transformers.py, Attention.forward(), orthog_projected_values.
# Advice:   test each option of a causal model: logits of a beginning must not change with what follows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 x-transformers==2.31.10
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from x_transformers import Decoder, TransformerWrapper

print("versions:", *(f"{name} {version(name)}" for name in ("x-transformers", "torch", "numpy")))
seen = []
for options in ({}, {"attn_orthog_projected_values": True}):
    torch.manual_seed(0)
    model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=16,
                                                                                  **options)).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    ids = torch.randint(1, 64, (2, 13))
    with torch.no_grad():
        whole, start = model(ids), model(ids[:, :8])
    seen.append(float((whole[:, :8] - start).abs().max() / whole.std()))
print("expected: a causal decoder's logits do not depend on later tokens: 0 and 0")
print("seen: without the option %.2g, with it %.2g" % tuple(seen))
if not (seen[0] < 1e-4 and seen[1] > 0.1):
    sys.exit("the behaviour has changed")
END
