#!/usr/bin/env bash
# compressive-transformer-pytorch: from the second training step on keys and values are not trained. The auxiliary loss of the compressed
# memories detaches their projection in place, which switches its gradient off for good.
#
# Versions: compressive-transformer-pytorch 0.4.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     texts of 6 segments, 20 steps of Adam: to_kv of each layer changes in the first step and never again, requires_grad is False;
#           queries and all other weights go on. With texts of one segment, where nothing is compressed, all are trained.
# Source:   compressive_transformer_pytorch/compressive_transformer_pytorch.py, SelfAttention.forward(): self.to_kv.weight.detach_(), which
#           sets requires_grad of a parameter to False. Texts of one segment do not show it.
# Advice:   set requires_grad_(True) on to_kv.weight before each step, or replace the line by to_kv.weight.detach() in a functional call;
#           print which parameters have a gradient after some steps, not before the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 compressive-transformer-pytorch==0.4.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from compressive_transformer_pytorch import AutoregressiveWrapper, CompressiveTransformer

print("versions:", *(f"{name} {version(name)}" for name in ("compressive-transformer-pytorch", "torch", "numpy")))
segment = 16


def train(segments, steps=20):
    """Names of the parameters that do not change after the first step, and of those that are no longer to be trained."""
    torch.manual_seed(0)
    model = CompressiveTransformer(num_tokens=64, dim=32, seq_len=segment, depth=2, heads=2, mem_len=segment, cmem_len=4)
    wrapper, optimizer = AutoregressiveWrapper(model), torch.optim.Adam(model.parameters(), 1e-3)
    texts = torch.randint(0, 64, (4, segment * segments + 1))
    for step in range(steps):
        optimizer.zero_grad()
        for loss, auxiliary_loss, _ in wrapper(texts, return_loss=True):
            (loss + auxiliary_loss).backward()
        optimizer.step()
        if step == 0:
            first = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    used = {name for name, parameter in model.named_parameters() if parameter.grad is not None or not parameter.requires_grad}
    still = sorted(name for name, parameter in model.named_parameters() if name in used and torch.equal(parameter, first[name]))
    return still, sorted(name for name, parameter in model.named_parameters() if not parameter.requires_grad)


seen = {segments: train(segments) for segments in (1, 6)}
print("expected: all parameters that are used change in steps 2 to 20")
for segments, (still, switched_off) in seen.items():
    print(f"segments {segments}: unchanged after the first step {still}, requires_grad False {switched_off}")
keys = ["attn_layers.0.fn.fn.to_kv.weight", "attn_layers.1.fn.fn.to_kv.weight"]
if not (seen[1] == ([], []) and seen[6] == (keys, keys)):
    sys.exit("the behaviour has changed")
END
