#!/usr/bin/env bash
# feedback-transformer-pytorch: memories have no order. The learned bias takes every memory's distance for 0, so that of 32 biases only the
# first are ever used, and a token reads the same from its past in any order.
#
# Versions: feedback-transformer-pytorch 0.0.11, torch 2.15.0, einops 0.8.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     64 tokens, one at a time (seq_len=1, as in the paper) or two (the default): biases 0, or 0 and 1, of 32 get a gradient.
#           One at a time, logits of the next token with 63 memories in reverse order: the same to 1e-6.
# Source:   feedback_transformer_pytorch/feedback_transformer_pytorch.py, RelativePositionBias.forward(): numbers queries and keys from 0
#           each, though the keys begin with the memory; what is "later" has the bias of distance 0.
#           memorizing-transformers-pytorch 0.4.1 numbers its XL memories in the same way (read, not run).
# Advice:   number the queries from j - i on; check a relative bias by the rows that get a gradient.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 einops==0.8.2
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check feedback-transformer-pytorch==0.0.11
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from feedback_transformer_pytorch import FeedbackTransformer

print("versions:", *(f"{name} {version(name)}" for name in ("feedback-transformer-pytorch", "torch", "einops", "numpy")))
ids = torch.randint(0, 64, (4, 65), generator=torch.Generator().manual_seed(0))


def build(at_once):
    torch.manual_seed(0)
    model = FeedbackTransformer(num_tokens=64, dim=32, depth=2, seq_len=at_once, mem_len=64, heads=2, dim_head=16)
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    return model


def trained(at_once):
    """Numbers of the biases that get a gradient."""
    model = build(at_once)
    torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    gradient = model.pos_emb.relative_attention_bias.weight.grad
    return [number for number in range(len(gradient)) if bool(gradient[number].abs().max() > 0)]


model = build(1).eval()
with torch.no_grad():
    _, (keys, values) = model(ids[:, :63], return_memory=True)
    forwards, backwards = model(ids[:, 63:64], memory=(keys, values)), model(ids[:, 63:64], memory=(keys.flip(1), values.flip(1)))
biases = len(model.pos_emb.relative_attention_bias.weight)
seen = {at_once: trained(at_once) for at_once in (1, 2)}
order = float((forwards - backwards).abs().max() / forwards.std())
print(f"expected: with 64 tokens most of {biases} biases are trained, and the order of memories counts")
print("seen: trained biases, by tokens at a time:", seen, "change of logits if the memory is reversed: %.1g" % order)
if not (seen == {1: [0], 2: [0, 1]} and order < 1e-4):
    sys.exit("the behaviour has changed")
END
