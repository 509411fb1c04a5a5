#!/usr/bin/env bash
# h-transformer-1d: the hierarchical attention is no weighted mean: where all values are 1 its output is 1.5, 3 or 8, the more the longer the
# text, and near and far tokens have no common scale.
#
# Versions: h-transformer-1d 0.1.9, einops 0.8.2, rotary-embedding-torch 0.9.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     values of 1, blocks of 16: mean output of 64, 128, 256, 512 tokens 1.0, 1.5, 2.5, 4.2; of the last token of the causal layer 1.7,
#           2.8, 4.7, 7.7. With keys of which one, beside the query, has a score of 20 and all others have 0, it gets a weight of 0.03 in
#           place of 1.
# Source:   h_transformer_1d/h_transformer_1d.py, calculate_Y_and_A() of both layers: values are summed as the levels get coarser, but the
#           weights (A) count each coarse key once; each level divides by exp(its own maximum), which is not undone when levels are added.
# Advice:   do not use it for comparisons with exact attention; test any approximation with values of 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2 \
    rotary-embedding-torch==0.9.1 h-transformer-1d==0.1.9
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from h_transformer_1d.h_transformer_1d import CausalHAttention1D, HAttention1D

print("versions:", *(f"{name} {version(name)}" for name in ("h-transformer-1d", "einops", "torch", "numpy")))
size, block = 16, 16


def attention(causal, queries, keys, values):
    """Outputs of the layer for one head, of which queries, keys and values are given columns of the input."""
    options = {"max_seq_len": len(queries)} if causal else {}
    kind = CausalHAttention1D if causal else HAttention1D
    layer = kind(3 * size, heads=1, dim_head=size, block_size=block, **options).double()
    with torch.no_grad():
        layer.to_qkv.weight.copy_(torch.eye(3 * size))
        layer.to_out.weight.copy_(torch.eye(3 * size, size))
        layer.to_out.bias.zero_()
        return layer(torch.cat([queries, keys, values], dim=1)[None])[0, :, :size]


torch.manual_seed(0)
ones = {}
for length in (64, 128, 256, 512):
    queries, keys = torch.randn(2, length, size, dtype=torch.float64)
    for causal in (False, True):
        output = attention(causal, queries, keys, torch.ones_like(keys))
        ones[length, causal] = round(float(output[-1, 0] if causal else output.mean()), 2)
length, query, key = 128, 40, 41
queries, keys, values = torch.zeros(3, length, size, dtype=torch.float64)
queries[query, 0], keys[key, 0], values[key, 0] = 20 * size ** 0.5, 1, 1
weight = round(float(attention(False, queries, keys, values)[query, 0]), 2)
print("expected: the mean of values of 1 is 1; a key whose score is 20 above that of 127 others has a weight of 1")
for (length, causal), value in ones.items():
    print(f"{length} tokens, {'causal, last token' if causal else 'not causal, mean'}: {value}")
print("weight of the key with the score of 20:", weight)
if not (ones[64, False] == 1 and ones[512, False] > 3 and ones[512, True] > 5 and weight < 0.5):
    sys.exit("the behaviour has changed")
END
