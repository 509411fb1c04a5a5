#!/usr/bin/env bash
# PyTorch: flex_attention that is not compiled does not read the list of blocks of a BlockMask, only its function. With
# blocks that are chosen, as in block-sparse attention (MoBA, NSA), by BlockMask.from_kv_blocks() and a causal function, it
# is full causal attention; torch.compile makes it the sparse one. The warning that is given speaks of memory, not of
# another result. Masks from create_block_mask() are not affected: there the function says all.
#
# Versions: torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     four blocks of 128, each sees itself and the first: eager is equal to full causal attention and off by 0.55 from
#           the sparse one, compiled the other way round; with the choice in the function as well, both are the sparse one.
# Source:   torch/_higher_order_ops/flex_attention.py, math_attention(): of the block mask only mask_mod, its last element,
#           is used.
# Advice:   put the choice of blocks into mask_mod, too (a table that is looked up by q_idx // size and kv_idx // size);
#           compare with to_dense() times the mask on a short text. A compiler of C++ is needed for the compiled form here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "numpy")))
LENGTH, SIZE = 512, 128
torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, LENGTH, 16) for _ in range(3))
chosen = torch.eye(LENGTH // SIZE, dtype=torch.bool)
chosen[:, 0] = True
counts = chosen.sum(1).int()[None, None]
blocks = torch.argsort(chosen.int(), dim=1, descending=True, stable=True).int()[None, None]
position = torch.arange(LENGTH)
causal = position[:, None] >= position
sparse = causal & chosen[position[:, None] // SIZE, position // SIZE]


def table(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & chosen[q_idx // SIZE, kv_idx // SIZE]


attention = torch.nn.functional.scaled_dot_product_attention
expected = {"sparse": attention(q, k, v, attn_mask=sparse), "full": attention(q, k, v, attn_mask=causal)}
functions = {"causal": lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, "causal and chosen": table}
seen = {}
for name, function in functions.items():
    mask = BlockMask.from_kv_blocks(counts, blocks, BLOCK_SIZE=SIZE, mask_mod=function)
    if not torch.equal(mask.to_dense()[0, 0].bool(), chosen):
        sys.exit("the mask does not have the blocks chosen")
    for form, run in (("eager", flex_attention), ("compiled", torch.compile(flex_attention))):
        with torch.no_grad():
            out = run(q, k, v, block_mask=mask)
        seen[form, name] = {kind: round(float((out - other).abs().max()), 2) for kind, other in expected.items()}
print("expected: attention to the chosen blocks in each case: 0 from the sparse one, not from full causal attention")
print("seen (largest difference):", seen)
right = [differences["sparse"] == 0 < differences["full"] for differences in seen.values()]
if right != [False, True, True, True] or seen["eager", "causal"]["full"] != 0:
    sys.exit("the behaviour has changed")
END
