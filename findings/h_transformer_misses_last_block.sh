#!/usr/bin/env bash
# h-transformer-1d: in a causal language model every second block of a text never sees the block right before it, whatever the depth, and the
# first token of each block sees itself alone.
#
# Versions: h-transformer-1d 0.1.9, einops 0.8.2, rotary-embedding-torch 0.9.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     4 layers, 64 tokens in blocks of 16: replacing a block changes no prediction of the next one for blocks 2 and 4; replacing all
#           tokens before it changes nothing of the first token of blocks 2, 3 and 4.
# Source:   h_transformer_1d/h_transformer_1d.py, CausalHAttention1D: the finest level is used for the diagonal only (HAttention1D has it
#           twice), the next one sees pairs of blocks; a coarse query is used by the last of its tokens only (self.mask).
# Advice:   shift_tokens=True lets one token through; measure which earlier tokens a prediction depends on.
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
from h_transformer_1d import HTransformer1D

print("versions:", *(f"{name} {version(name)}" for name in ("h-transformer-1d", "einops", "torch", "numpy")))
length, block = 64, 16
torch.set_num_threads(1)
torch.manual_seed(0)
model = HTransformer1D(num_tokens=64, dim=32, depth=4, causal=True, max_seq_len=length, heads=2, dim_head=16,
                       block_size=block).eval()
text = torch.randint(0, 64, (1, length))


def changes(start, end, positions):
    """Which of the predictions change when the tokens from start to end are replaced."""
    other = text.clone()
    other[:, start:end] = (other[:, start:end] + torch.randint(1, 64, (1, end - start))) % 64
    with torch.no_grad():
        difference = (model(other) - model(text))[0, positions].abs().amax(-1)
    return int((difference > 1e-5).sum())


blocks = range(block, length, block)
following = {start // block + 1: changes(start - block, start, slice(start, start + block)) for start in blocks}
first = {start // block + 1: changes(0, start, slice(start, start + 1)) for start in blocks}
print(f"expected: all {block} predictions of a block depend on the block before, its first one on the text before")
print("seen: predictions that depend on the block before, by block:", following)
print("first predictions of blocks that depend on the text before:", first)
if not (following[2] == following[4] == 0 < following[3] and not any(first.values())):
    sys.exit("the behaviour has changed")
END
