#!/usr/bin/env bash
# transformers: beam search gives MiniMax's and RecurrentGemma's recurrent states to other beams than they belong to. Attention's
# keys and values move with their text, the states of linear layers stay where they were; the texts found and their scores are
# those of mixed-up texts, without an error. Granite's hybrid and Llama are right.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     two prompts, four beams of 8 new tokens each, sums of log-probabilities by the search, largest difference from those
#           of the texts found: MiniMax 2.57, RecurrentGemma 1.05, with use_cache=False 0; Granite and Llama 0 in both.
# Source:   transformers/generation/utils.py calls reorder_cache(); in models/minimax/modeling_minimax.py MiniMaxCache inherits it
#           and so moves its attention layers alone, not linear_cache; RecurrentGemma's states are in the model, which no one
#           moves.
# Advice:   use_cache=False with beams of these two; of any model with states of its own, score what a search returns once more.
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
from transformers import (GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, LlamaConfig, LlamaForCausalLM, MiniMaxConfig,
                          MiniMaxForCausalLM, RecurrentGemmaConfig, RecurrentGemmaForCausalLM)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 4}
models = {
    "minimax": (MiniMaxForCausalLM, MiniMaxConfig(**size, num_hidden_layers=2, head_dim=8, num_local_experts=4,
                                                  layer_types=["full_attention", "linear_attention"])),
    "recurrent_gemma": (RecurrentGemmaForCausalLM, RecurrentGemmaConfig(**size, num_hidden_layers=3, lru_width=32,
                                                                       attention_window_size=64)),
    "granite": (GraniteMoeHybridForCausalLM, GraniteMoeHybridConfig(**size, **mamba, num_hidden_layers=2,
                                                                   layer_types=["linear_attention", "full_attention"])),
    "llama": (LlamaForCausalLM, LlamaConfig(**size, num_hidden_layers=2)),
}
torch.manual_seed(1)
prompts = torch.randint(3, 64, (2, 8))


def difference(model, use_cache):
    """Of the scores of a search from the log-probabilities of the texts it found."""
    found = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=8, do_sample=False, num_beams=4,
                           num_return_sequences=4, length_penalty=0.0, use_cache=use_cache, return_dict_in_generate=True,
                           output_scores=True)
    logs = model(found.sequences, use_cache=False).logits[:, 7:-1].log_softmax(-1)
    return round(float((logs.gather(-1, found.sequences[:, 8:, None]).sum((1, 2)) - found.sequences_scores).abs().max()), 3)


seen = {}
for name, (make, config) in models.items():
    torch.manual_seed(0)
    model = make(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    with torch.no_grad():
        seen[name] = difference(model, True), difference(model, False)
print("expected: the score of a beam without a length penalty is its text's log-probability: difference 0")
print("seen (with, without a cache):", seen)
if not all(without < 0.001 and (cached > 0.1) == (name in ("minimax", "recurrent_gemma"))
           for name, (cached, without) in seen.items()):
    sys.exit("the behaviour has changed")
END
