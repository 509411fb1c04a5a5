#!/usr/bin/env bash
# transformers: Mamba-2 layers clamp their step size to time_step_limit when they read a whole text, but not when they go on from
# the cache by one token. A model with a limit is another one when it generates than when it is trained or scored, without an
# error.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     logits of 8 generated tokens, largest difference from those of the whole text at once, in standard deviations: with a
#           limit of 0.05 to 0.1 Mamba-2 0.10, Granite's hybrid 0.24, Falcon-H1 0.90, Nemotron-H (from 0.05) 0.05; without one 0.
# Source:   transformers/models/mamba2/modeling_mamba2.py: dt_limit goes to mamba2_chunk_scan() alone, which clamps;
#           mamba2_selective_state_update() has no limit. Nemotron-H and Zamba2 take time_step_min, 0.001 by default, for the
#           limit.
# Advice:   leave time_step_limit at (0, inf), and time_step_min at 0 in those two, or generate with use_cache=False; compare the
#           logits of generated tokens with those of the whole text.
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
from transformers import (FalconH1Config, FalconH1ForCausalLM, GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, Mamba2Config,
                          Mamba2ForCausalLM, NemotronHConfig, NemotronHForCausalLM)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
attention = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 4}
layers = ["linear_attention", "full_attention"]
free, limited = {"time_step_limit": (0.0, float("inf"))}, {"time_step_limit": (0.05, 0.1)}


def mamba2(limit):
    """A Mamba-2 of two layers."""
    return Mamba2ForCausalLM(Mamba2Config(**size, **limit, num_hidden_layers=2, num_heads=4, head_dim=16, state_size=8,
                                          n_groups=1, chunk_size=4))


def granite(limit):
    """Granite's hybrid of one Mamba-2 layer and one of attention."""
    return GraniteMoeHybridForCausalLM(GraniteMoeHybridConfig(**size, **attention, **mamba, **limit, num_hidden_layers=2,
                                                              layer_types=layers))


def falcon(limit):
    """Falcon-H1, both in each layer."""
    return FalconH1ForCausalLM(FalconH1Config(**size, **attention, **mamba, **limit, num_hidden_layers=2, mamba_d_ssm=64))


def nemotron(limit):
    """Nemotron-H, whose limit is time_step_min."""
    return NemotronHForCausalLM(NemotronHConfig(**size, **attention, layer_types=layers, mamba_num_heads=4, mamba_head_dim=16,
                                                n_groups=1, ssm_state_size=8, chunk_size=4,
                                                time_step_min=limit["time_step_limit"][0] or 1e-9))


def difference(make, limit):
    """Of the logits of generated tokens from those of the whole text, in standard deviations."""
    torch.manual_seed(0)
    model = make(limit).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    prompt = torch.randint(3, 64, (1, 8))
    result = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False,
                            return_dict_in_generate=True, output_logits=True)
    whole = model(result.sequences, use_cache=False).logits
    return round(float((torch.stack(result.logits, 1) - whole[:, 7:15]).abs().max() / whole.std()), 4)


with torch.no_grad():
    seen = {make.__name__: (difference(make, free), difference(make, limited)) for make in (mamba2, granite, falcon, nemotron)}
print("expected: a generated token has the logits that the whole text gives it, with a limit or without: 0")
print("seen (without, with a limit):", seen)
if not all(without < 0.001 and limit > 0.01 for without, limit in seen.values()):
    sys.exit("the behaviour has changed")
END
