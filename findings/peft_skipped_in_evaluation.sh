#!/usr/bin/env bash
# PEFT and PyTorch: adapters on the feed-forward layers of nn.TransformerEncoderLayer are trained, and left out in
# evaluation. The layer's fast path, which eval() switches on, reads the weights of linear1 and linear2 and does not call
# them, so that LoRA on them is as if it were not there: the loss of training falls, that of evaluation is the base model's.
# It holds with gradients switched on, too, since the base's weights are frozen. Merging brings the adapters back.
#
# Versions: peft 0.21.2, torch 2.15.0, transformers 5.24.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     200 steps, no dropout: loss before training 1.954; after it 0.24 in train(), 1.954 in eval() with gradients and
#           without; in eval() without the fast path, or merged, 0.24.
# Source:   torch/nn/modules/transformer.py, TransformerEncoderLayer.forward(): self.linear1.weight goes to
#           torch._transformer_encoder_layer_fwd; peft/tuners/lora/layer.py: weight is that of the base layer. A question
#           about attention in the same place is in PEFT's issue 761.
# Advice:   torch.backends.mha.set_fastpath_enabled(False) whenever layers are replaced or wrapped, or merge_adapter()
#           before evaluation; compare the outputs of train() without dropout and eval().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0 peft==0.21.2 \
    accelerate==1.15.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from peft import LoraConfig, get_peft_model

print("versions:", *(f"{name} {version(name)}" for name in ("peft", "torch", "transformers", "numpy")))
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
model = get_peft_model(torch.nn.TransformerEncoder(layer, 2), LoraConfig(r=8, target_modules=["linear1", "linear2"]))
x, y = torch.randn(8, 10, 32), torch.randn(8, 10, 32)


def loss():
    return torch.nn.functional.mse_loss(model(x), y)


def measured():
    """The loss in train(), in eval(), and in eval() without gradients."""
    losses = [(mode() and loss()).item() for mode in (model.train, model.eval)]
    with torch.no_grad():
        return [round(value, 3) for value in (*losses, loss().item())]


seen = {"before training": measured()}
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), 1e-2)
model.train()
for _ in range(200):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()
seen["after training"] = measured()
torch.backends.mha.set_fastpath_enabled(False)
seen["without the fast path"] = measured()
torch.backends.mha.set_fastpath_enabled(True)
model.merge_adapter()
seen["merged"] = measured()
print("expected: without dropout, one loss in train(), in eval(), and without gradients")
print("seen:", seen)
base = seen["before training"][0]
if not (max(seen["after training"][1:]) == min(seen["after training"][1:]) == base and seen["after training"][0] < 0.8 * base
        and max(seen["without the fast path"] + seen["merged"]) < 0.8 * base):
    sys.exit("the behaviour has changed")
END
