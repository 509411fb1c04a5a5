#!/usr/bin/env bash
# transformers: SmolLM3 has windows although use_sliding_window is false, where layer_types say sliding_attention: the mask of eager and
# sdpa reads sliding_window alone. The layers themselves read all three keys and would give flash attention no window (by reading):
# the same config.json is another model there. Qwen3 fails with the same keys.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-30.
# Seen:     40 tokens, window 4, two layers: logits differ by 5.689 from those of a model without windows, by 0 from those with
#           use_sliding_window=True, with eager and sdpa; the layers' own sliding_window is None. Qwen3: TypeError.
# Source:   models/smollm3/modeling_smollm3.py: SmolLM3Attention sets sliding_window only if use_sliding_window, SmolLM3Model makes the
#           sliding mask wherever layer_types has sliding_attention; configuration_qwen3.py clears sliding_window, SmolLM3's does not.
# Advice:   write layer_types of full_attention, or sliding_window null, where no window is meant; compare logits beyond the window.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM, SmolLM3Config, SmolLM3ForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None, "head_dim": 8}
windows = {"sliding_window": 4, "layer_types": ["sliding_attention"] * 2}
tokens = torch.arange(1, 41)[None]


def logits(make, config, implementation):
    torch.manual_seed(0)
    config._attn_implementation = implementation
    model = make(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    with torch.no_grad():
        return model(tokens).logits, model.model.layers[0].self_attn.sliding_window


full, _ = logits(SmolLM3ForCausalLM, SmolLM3Config(**size), "sdpa")
opened, _ = logits(SmolLM3ForCausalLM, SmolLM3Config(**size, **windows, use_sliding_window=True), "sdpa")
seen = {}
for implementation in ("eager", "sdpa"):
    closed, window = logits(SmolLM3ForCausalLM, SmolLM3Config(**size, **windows, use_sliding_window=False), implementation)
    seen[implementation] = [round(float((closed - other).abs().max()), 3) for other in (full, opened)]
    print(f"smollm3, use_sliding_window=False, {implementation}: largest difference of logits from a model without windows "
          f"{seen[implementation][0]}, from one with use_sliding_window=True {seen[implementation][1]}; its layers' window {window}")
try:
    logits(Qwen3ForCausalLM, Qwen3Config(**size, **windows, use_sliding_window=False), "sdpa")
    said = ""
except (TypeError, ValueError) as error:
    said = f"{type(error).__name__}: {error}"
print("qwen3, the same keys:", said or "computed")
print("expected: with use_sliding_window=False no windows")
if window is not None or not said or not all(of_full > 0.1 and of_open < 1e-4 for of_full, of_open in seen.values()):
    sys.exit("the behaviour has changed")
END
