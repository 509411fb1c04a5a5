#!/usr/bin/env bash
# transformers: Bamba takes tokens that go on from its cache to stand at position 0 again, unless position_ids are given. A loop that
# decodes or scores with past_key_values, as is usual, has other logits, without an error; the same loop is right for Llama and for
# Granite's hybrid, which look up how much the cache holds. generate() gives positions, and so hides it.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     8 tokens, then 5 with the cache, largest difference from the logits of 13 at once, in standard deviations: Bamba 0.56,
#           with position_ids 0; Granite's hybrid and Llama 0 in both.
# Source:   transformers/models/bamba/modeling_bamba.py, BambaModel.forward(): position_ids = torch.arange(hidden_states.shape[1]),
#           where LlamaModel adds past_key_values.get_seq_length().
# Advice:   give position_ids in every call with a cache.
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
from transformers import (BambaConfig, BambaForCausalLM, GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, LlamaConfig,
                          LlamaForCausalLM)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
        "num_key_value_heads": 2}
size |= {"max_position_embeddings": 64}
mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 8}
models = {
    "bamba": (BambaForCausalLM, BambaConfig(**size, **mamba, attn_layer_indices=[1])),
    "granite": (GraniteMoeHybridForCausalLM, GraniteMoeHybridConfig(**size, **mamba, layer_types=["linear_attention", "full_attention"],
                                                                    position_embedding_type="rope")),
    "llama": (LlamaForCausalLM, LlamaConfig(**size)),
}
seen = {}
for name, (make, config) in models.items():
    torch.manual_seed(0)
    model = make(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    ids = torch.randint(3, 64, (1, 13))
    seen[name] = []
    for options in ({}, {"position_ids": torch.arange(8, 13)[None]}):
        with torch.no_grad():
            whole = model(ids).logits
            cache = model(ids[:, :8], use_cache=True).past_key_values
            rest = model(ids[:, 8:], past_key_values=cache, **options).logits
        seen[name].append(round(float((rest - whole[:, 8:]).abs().max() / whole.std()), 4))
print("expected: 0 for all, with position_ids and without")
print("seen (without, with position_ids):", seen)
if not (seen["bamba"][0] > 0.05 and seen["bamba"][1] < 1e-3 and max(seen["granite"] + seen["llama"]) < 1e-3):
    sys.exit("the behaviour has changed")
END
