#!/usr/bin/env bash
# memory-compressed-attention: with an input_mask, even one that masks nothing, no token attends to any other: what is left is the null key.
# Only padding attends to the text.
#
# Versions: memory-compressed-attention 0.0.7, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     12 tokens, a mask of all True: outputs of all tokens are alike and do not change with the text (without the mask they do); with a
#           mask of 9 True and 3 False, those of the 9 are alike, too, and those of the 3 masked ones change with the text.
# Source:   memory_compressed_attention/memory_compressed_attention.py, forward(): allowed where mask_q < mask_k, which is False for two
#           True, where both are needed.
# Advice:   do not give input_mask; cut the padding, or put it at the end of causal texts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 memory-compressed-attention==0.0.7
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from memory_compressed_attention import MemoryCompressedAttention

print("versions:", *(f"{name} {version(name)}" for name in ("memory-compressed-attention", "torch", "numpy")))
torch.manual_seed(0)
length, padding = 12, 3
layer = MemoryCompressedAttention(dim=32, heads=2, causal=False, compression_factor=3).eval()
first, second = torch.randn(2, 1, length, 32)
padded = (torch.arange(length) < length - padding)[None]
seen = {}
with torch.no_grad():
    for name, mask in (("none", None), ("all True", torch.ones_like(padded)), ("9 True, 3 False", padded)):
        outputs = [layer(x, input_mask=mask)[0] for x in (first, second)]
        text, rest = slice(0, length - padding), slice(length - padding, length)
        change = (outputs[0] - outputs[1]).norm(dim=-1)
        spread = float((outputs[0][text] - outputs[0][:1]).norm(dim=-1).max())
        seen[name] = [round(value, 4) for value in (float(change[text].max()), spread, float(change[rest].min()))]
print("expected: a mask of all True changes nothing; outputs of the text depend on it")
for name, (change, spread, rest) in seen.items():
    print(f"mask {name}: first 9 tokens change with the text by {change}, differ by {spread}; last 3 change by {rest}")
partly = seen["9 True, 3 False"]
if not (seen["none"][0] > 0.1 and seen["all True"] == [0, 0, 0] and partly[:2] == [0, 0] and partly[2] > 0.1):
    sys.exit("the behaviour has changed")
END
