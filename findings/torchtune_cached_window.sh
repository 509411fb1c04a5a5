#!/usr/bin/env bash
# torchtune: Gemma 2, decoded token by token with its cache, attends in local layers to the first tokens of the text, not to the
# last ones. The window is cut from the mask by the rows of what is given now; a single token is row 0, and so sees the positions
# 0 to window - 1, neither itself nor its neighbours once the text is longer than the window. Without a cache the window is
# right.
#
# Versions: torchtune 0.6.1, torchao 0.15.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     window 8, change of the logits by the cache in standard deviations: first 8 tokens 0, the 16 after them between 0.84
#           and 3.35; window 64: 0 (random models).
# Source:   torchtune/models/gemma2/_attention.py, Gemma2Attention.forward(): triu and tril of ones_like(mask), whose rows are
#           those of the tokens given, not positions.
# Advice:   score and generate without a cache, or in texts no longer than the window.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 torchtune==0.6.1 torchao==0.15.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from torchtune.models.gemma2 import gemma2

print("versions:", *(f"{name} {version(name)}" for name in ("torchtune", "torchao", "torch", "numpy")))
torch.manual_seed(1)
text = torch.randint(64, (1, 24))
mask, positions = torch.ones(1, 32, 32, dtype=torch.bool).tril(), torch.arange(24)[None]
seen = {}
for window in (64, 8):
    torch.manual_seed(0)
    model = gemma2(vocab_size=64, num_layers=2, num_heads=4, head_dim=8, num_kv_heads=2, embed_dim=32, intermediate_dim=64,
                   max_seq_len=64, sliding_window_size=window, query_pre_attn_scalar=8).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
    with torch.no_grad():
        whole = model(text)
        model.setup_caches(batch_size=1, dtype=torch.float32, decoder_max_seq_len=32)
        steps = [slice(0, 4), *(slice(end - 1, end) for end in range(5, 25))]
        cached = torch.cat([model(text[:, s], mask=mask[:, s], input_pos=positions[:, s]) for s in steps], 1)
    changes = (cached - whole).abs().amax(2)[0] / whole.std()
    seen[window] = round(float(changes[:8].max()), 2), round(float(changes[8:].min()), 2), round(float(changes[8:].max()), 2)
print("expected: the same logits with the cache and without: (0.0, 0.0, 0.0)")
print("seen by window (change of logits in standard deviations: largest of 8 tokens, least and largest of 16 later ones):", seen)
if seen[64] != (0.0, 0.0, 0.0) or seen[8][0] != 0 or seen[8][1] < 0.1:
    sys.exit("the behaviour has changed")
END
