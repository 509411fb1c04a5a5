#!/usr/bin/env bash
# transformers 5: from_pretrained() loses what a model's __init__ puts into buffers that are not saved. Slopes of ALiBi, rotary
# tables and masks come back as whatever was in memory, without a warning.
#
# Versions: transformers 5.23.0, torch 2.15.0, safetensors 0.8.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     slopes [0.5, 0.25, 0.125, 0.0625] before saving, arbitrary numbers (often near 0) after loading; equal weights.
# Source:   issue 48892 of huggingface/transformers: models are built on the device "meta", then buffers are allocated empty; only
#           _init_weights() fills them again.
# Advice:   in own architectures register such buffers as persistent, or compute them in _init_weights() or in forward(); compare
#           the logits of a model before saving and after loading.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 safetensors==0.8.0 transformers==5.23.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import PreTrainedConfig, PreTrainedModel

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "safetensors", "numpy")))


class Config(PreTrainedConfig):
    model_type = "slopes"


class Model(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("slopes", torch.tensor([0.5, 0.25, 0.125, 0.0625]), persistent=False)
        self.post_init()


model = Model(Config())
model.save_pretrained("saved")
loaded = Model.from_pretrained("saved")
same = torch.equal(model.slopes, loaded.slopes)
print("expected: the slopes that __init__ sets,", model.slopes.tolist())
print("seen: equal slopes:", same, "equal weights:", torch.equal(model.linear.weight, loaded.linear.weight))
if same or not torch.equal(model.linear.weight, loaded.linear.weight):
    sys.exit("the behaviour has changed")
END
