#!/usr/bin/env bash
# PyTorch's FlopCounterMode, transformers: the experts of a mixture cost nothing. By default transformers computes them by
# grouped_mm, which the counter has no formula for; of the same model with "eager" or "batched_mm" experts it counts them.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     Mixtral and Qwen3-MoE, 2 layers, 2 of 8 experts, 64 tokens, of which the experts' products are 25,165,824 FLOPs
#           forward: by default 5,898,240, with the backward pass 18,743,296; eager 31,064,064 and 94,240,768; experts eight
#           times as wide change the default's count by nothing.
# Source:   torch/utils/flop_counter.py: flop_registry has no formula for grouped_mm, and what it lacks counts 0; transformers'
#           get_correct_experts_implementation() in modeling_utils.py prefers "grouped_mm".
# Advice:   model.set_experts_implementation("eager") while FLOPs are counted; compare no mixture with a dense model by a count
#           that was made with the default.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>"$folder/log.txt" <<'END' || { cat "$folder/log.txt" >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, MixtralConfig, Qwen3MoeConfig

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
WIDTH, EXPERT, LAYERS, CHOSEN, TOKENS = 64, 256, 2, 2, 64
shape = dict(vocab_size=64, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2,
             num_experts_per_tok=CHOSEN, max_position_embeddings=TOKENS)
kinds = {"Mixtral": lambda width: MixtralConfig(num_local_experts=8, intermediate_size=width, **shape),
         "Qwen3-MoE": lambda width: Qwen3MoeConfig(num_experts=8, moe_intermediate_size=width, head_dim=16, **shape)}
due = 2 * TOKENS * CHOSEN * 3 * WIDTH * EXPERT * LAYERS


def counted(configuration, experts=None):
    """FLOPs of a forward pass, and of one with its backward pass."""
    model = AutoModelForCausalLM.from_config(configuration)
    if experts:
        model.set_experts_implementation(experts)
    text = torch.randint(0, 64, (1, TOKENS))
    with FlopCounterMode(display=False) as forward, torch.no_grad():
        model(input_ids=text)
    with FlopCounterMode(display=False) as both:
        model(input_ids=text, labels=text).loss.backward()
    return forward.get_total_flops(), both.get_total_flops()


for name, configuration in kinds.items():
    usual, wide = counted(configuration(EXPERT)), counted(configuration(8 * EXPERT))
    eager, batched = (counted(configuration(EXPERT), experts) for experts in ("eager", "batched_mm"))
    print(f"expected: {name}: (forward, with backward) as with eager experts: {eager}; their part is {due, 3 * due}")
    print(f"seen: {name}: by default {usual}, with experts eight times as wide {wide}")
    if not (batched == eager and usual == wide and [eager[i] - usual[i] for i in range(2)] == [due, 3 * due]):
        sys.exit("the behaviour has changed")
END
