#!/usr/bin/env bash
# PyTorch: scaled_dot_product_attention with is_causal=True and a scale of 0 or below is NaN on the CPU in all rows but the last.
# A scale of 0 is the plain causal average, a baseline; a negative one prefers what is unlike. With a mask in place of is_causal,
# or without flash attention, both are right. In half precision a negative scale gives finite numbers instead, and wrong ones.
#
# Versions: torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     64 tokens, scale 0 or -0.25: 98% of the rows are NaN by is_causal in float32, and with 0 in bfloat16; with -0.25 in
#           bfloat16 none is, and the largest error is 1.98 with values of deviation 1 (that path depends on the processor). By a
#           mask or by the math kernel: right. With 0.25 all are.
# Source:   aten/src/ATen/native/cpu/FlashAttentionKernel.cpp: later keys are set to -inf before the scores are scaled, so that
#           they become NaN or +inf. The math kernel was made right for negative scales (pull request 105202).
# Advice:   keep the scale positive and multiply the queries by its sign; for a causal average use cumsum, or a mask in place of
#           is_causal. Try a new mixer once under sdpa_kernel(SDPBackend.MATH).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

print("versions: torch", version("torch"), "numpy", version("numpy"))


def compare(dtype, scale, length=64):
    """The part of rows with NaN, and the largest error of finite numbers: by is_causal, by a mask, and by the math kernel."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, length, 16).to(dtype) for _ in range(3))
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    scores = (q.double() @ k.double().mT * scale).masked_fill(~mask, -torch.inf)
    right = scores.softmax(-1) @ v.double()
    with sdpa_kernel(SDPBackend.MATH):
        math = attention(q, k, v, is_causal=True, scale=scale)
    found = attention(q, k, v, is_causal=True, scale=scale), attention(q, k, v, attn_mask=mask, scale=scale), math
    return [(round(float(y.isnan().any(-1).float().mean()), 2), round(float((y.double() - right).nan_to_num(0).abs().max()), 2))
            for y in found]


seen = {(str(dtype).removeprefix("torch."), scale): compare(dtype, scale)
        for dtype in (torch.float32, torch.bfloat16) for scale in (0.25, 0.0, -0.25)}
print("expected: no NaN, no errors but of rounding: (0, 0)")
print("seen (NaN, error) by is_causal, by a mask, by the math kernel:")
for key, values in seen.items():
    print("     ", *key, values)
if not (all(nan == 0 and error < 0.05 for values in seen.values() for nan, error in values[1:])
        and seen["float32", 0.0][0][0] > 0.9 and seen["float32", -0.25][0][0] > 0.9 and seen["bfloat16", 0.0][0][0] > 0.9
        and seen["bfloat16", -0.25][0] > (0, 1.0) and seen["float32", 0.25][0] == (0, 0)):
    sys.exit("the behaviour has changed")
END
