#!/usr/bin/env bash
# PyTorch: nn.MultiheadAttention on a sequence that is padding only gives finite numbers or NaN, depending on whether gradients
# are recorded: of the same layer in eval mode and the same input NaN under torch.no_grad() alone.
#
# Versions: torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-27.
# Seen:     need_weights=False: with gradients finite, under no_grad nan; need_weights=True: nan in both.
# Source:   torch/nn/modules/activation.py: without gradients the "fast path" _native_multi_head_attention has a softmax of -inf
#           alone; with them torch/nn/functional.py calls scaled_dot_product_attention, which gives 0 for such rows.
# Advice:   leave sequences without tokens out of the batch, or unmask one key of them; one NaN row spoils a mean over the batch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch

print("versions: torch", version("torch"), "numpy", version("numpy"))
torch.manual_seed(0)
layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
x, padding = torch.randn(1, 4, 8), torch.ones(1, 4, dtype=torch.bool)


def finite(need_weights):
    return bool(layer(x, x, x, key_padding_mask=padding, need_weights=need_weights)[0].isfinite().all())


recorded = finite(False), finite(True)
with torch.no_grad():
    inference = finite(False), finite(True)
print("expected: no_grad and need_weights change no output: finite in all four, or in none")
print("seen: finite without weights, with weights:", recorded, "under no_grad:", inference)
if not (recorded == (True, False) and inference == (False, False)):
    sys.exit("the behaviour has changed")
END
