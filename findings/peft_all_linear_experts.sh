#!/usr/bin/env bash
# PEFT, transformers: target_modules="all-linear" adapts the experts of some mixtures and leaves those of others out, without a
# warning. With transformers 5 the experts of a layer are two stacked parameters instead of linear layers; PEFT finds them by the
# model's name in a table of renamed checkpoints. Qwen3-MoE is in it, Qwen2-MoE, with the same experts, is not.
#
# Versions: peft 0.21.2, transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     adapters in the experts of two layers, and the experts' share of all weights: Mixtral 4 (82%), Qwen3-MoE 4 (53%),
#           OLMoE 4 (82%); Qwen2-MoE 0 (47%), gpt-oss 0 (80%), Jamba 0 (52%), Granite's mixture 0 (82%), LFM2's mixture 0 (56%).
# Source:   peft/utils/transformers_weight_conversion.py, _convert_peft_config_moe(): looks the model's type up in
#           _MODEL_TO_CONVERSION_PATTERN of transformers, made for checkpoints of other layouts ("qwen2_moe" is a value there, no
#           key). Pull request 3232 meant "all-linear" to include the experts.
# Advice:   name them: target_parameters=["experts.gate_up_proj", "experts.down_proj"] (Granite, JetMoE: other names); check which
#           parameters have "lora_" in their names before adapted mixtures are compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 transformers==5.24.0 accelerate==1.15.0 peft==0.21.2
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, CONFIG_MAPPING

print("versions:", *(f"{name} {version(name)}" for name in ("peft", "transformers", "accelerate", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "head_dim": 8, "num_experts_per_tok": 2, "pad_token_id": 0, "bos_token_id": None,
        "eos_token_id": None}
small = {"moe_intermediate_size": 16}
models = {
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"num_experts": 4, **small},
    "olmoe": {"num_experts": 4},
    "qwen2_moe": {"num_experts": 4, **small, "shared_expert_intermediate_size": 16},
    "gpt_oss": {"num_local_experts": 4},
    "jamba": {"num_experts": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 4},
    "granitemoe": {"num_local_experts": 4},
    "lfm2_moe": {"num_experts": 4, **small, "layer_types": ["conv", "full_attention"], "num_dense_layers": 0},
}


def adapters(name, **options):
    """The experts' share of all weights, the number of adapters in experts, and of all adapters."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[name](**size, **models[name]))
    weights = {key: p.numel() for key, p in model.named_parameters()}
    stacked = {key for key, p in model.named_parameters() if p.dim() == 3 and "conv" not in key}
    share = sum(weights[key] for key in stacked) / sum(weights.values())
    model = get_peft_model(model, LoraConfig(r=4, **options))
    made = [key for key, _ in model.named_parameters() if "lora_A" in key]
    places = {key.rsplit(".", 1)[0].removeprefix("model.") for key in stacked}
    return round(share, 2), sum(any(place in key for place in places) for key in made), len(made)


seen = {name: adapters(name, target_modules="all-linear") for name in models}
named = adapters("qwen2_moe", target_modules="all-linear", target_parameters=["experts.gate_up_proj", "experts.down_proj"])
print("expected: all mixtures have adapters in their experts, or none has, as these are no linear layers")
print("seen (share of the weights in experts, adapters in experts, all):", seen)
print("      qwen2_moe with target_parameters:", named)
adapted = ("mixtral", "qwen3_moe", "olmoe")
if not (all((found == 4) if name in adapted else (found == 0) for name, (_, found, _) in seen.items()) and named[1] == 4):
    sys.exit("the behaviour has changed")
END
