#!/usr/bin/env bash
# PEFT, transformers: adapters on Jamba's dt_proj, which "all-linear" includes, are made, counted as trainable and never used: the
# Mamba layer multiplies by dt_proj.weight itself. They get no gradient. With init_lora_weights="olora" or "pissa", which move a
# part of the weight into the adapter, that part is lost: the adapted model is another one before its first step, without a
# warning.
#
# Versions: peft 0.21.2, transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     a Jamba of one Mamba layer and one of attention, largest change of a logit by new adapters: 0 by default, 3.56
#           standard deviations with olora, 2.81 with pissa, 0 once merged or without dt_proj; dt_proj has no gradient in any
#           case. Granite's hybrid: 0, and all have gradients.
# Source:   transformers/models/jamba/modeling_jamba.py, JambaMambaMixer.forward(): self.dt_proj.weight @ time_step (calls dt_proj
#           for quantised models alone); PEFT's adapters act when the layer is called. PEFT refuses such layers of Mamba,
#           Falcon-H1 and Nemotron-H by a list of names (out_proj, conv1d) on which dt_proj and Jamba are not.
# Advice:   exclude_modules=["dt_proj"] for Jamba; before training compare the adapted model's logits with the plain one's, and
#           after a backward pass list the adapters whose lora_B has no gradient.
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
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, JambaConfig, JambaForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("peft", "transformers", "accelerate", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
text = torch.randint(3, 64, (2, 24), generator=torch.Generator().manual_seed(0))


def jamba():
    """One Mamba layer, one of attention."""
    return JambaForCausalLM(JambaConfig(**size, attn_layer_period=2, attn_layer_offset=1, num_experts=1, mamba_d_state=8,
                                        mamba_dt_rank=4))


def granite():
    """One Mamba-2 layer, one of attention."""
    return GraniteMoeHybridForCausalLM(GraniteMoeHybridConfig(
        **size, layer_types=["linear_attention", "full_attention"], mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1,
        mamba_d_state=8, mamba_chunk_size=8))


def adapted(make, start, **options):
    """The largest change of a logit by new adapters, in standard deviations, without and with merging, and adapters without
    gradient."""
    torch.manual_seed(0)
    model = make().eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    plain = model(text, use_cache=False).logits.detach()
    model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=start, **options)).eval()
    logits = model(input_ids=text, use_cache=False).logits
    logits.square().sum().backward()
    unused = sorted({name.split(".")[-4] for name, p in model.named_parameters()
                     if "lora_B" in name and (p.grad is None or not p.grad.any())})
    model.merge_adapter()
    merged = model(input_ids=text, use_cache=False).logits
    return [round(float((x - plain).abs().max().detach() / plain.std()), 3) for x in (logits, merged)] + [unused]


seen = {(make.__name__, str(start)): adapted(make, start) for make in (jamba, granite) for start in (True, "olora", "pissa")}
without = adapted(jamba, "olora", exclude_modules=["dt_proj"])
print("expected: new adapters change no logit, and each gets a gradient: [0, 0, []]")
print("seen (change, change once merged, adapters without gradient):", seen)
print("      Jamba without dt_proj, olora:", without)
if not (all((change > 0.1) == (model == "jamba" and start != "True") and merged < 0.01
            and unused == (["dt_proj"] if model == "jamba" else []) for (model, start), (change, merged, unused) in seen.items())
        and without[0] < 0.01 and not without[2]):
    sys.exit("the behaviour has changed")
END
