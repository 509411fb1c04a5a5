#!/usr/bin/env bash
# transformers: Mamba, Falcon-Mamba and Jamba forget the recurrent state in the cache if they are given more than one token. A long
# text that is scored in pieces with its cache has, without an error, other logits than the whole; Mamba-2 and attention go on correctly.
#
# Versions: transformers 5.23.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-27.
# Seen:     8 tokens, then 5 with the cache, largest difference from 13 at once, in standard deviations of the logits: Mamba 0.07,
#           Falcon-Mamba 0.69, Jamba 2.9, Mamba-2 and Llama 0; one token at a time 0 for all (small random models).
# Source:   transformers/models/mamba/modeling_mamba.py, MambaMixer: one new token reads the recurrent state of the cache; of more, the
#           convolution goes on, but the scan starts from zeros.
# Advice:   score whole texts at once, or pieces one token at a time; assisted generation and prefill in pieces need the same check.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.23.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import (FalconMambaConfig, FalconMambaForCausalLM, JambaConfig, JambaForCausalLM, LlamaConfig, LlamaForCausalLM,
                          Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
heads = {**size, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
models = {
    "mamba": (MambaForCausalLM, MambaConfig(**size, state_size=8)),
    "falcon_mamba": (FalconMambaForCausalLM, FalconMambaConfig(**size, state_size=8)),
    "jamba": (JambaForCausalLM, JambaConfig(**heads, mamba_d_state=8, mamba_dt_rank=4, num_experts=2, attn_layer_offset=1,
                                            attn_layer_period=2)),
    "mamba2": (Mamba2ForCausalLM, Mamba2Config(**size, state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=8)),
    "llama": (LlamaForCausalLM, LlamaConfig(**heads)),
}


@torch.no_grad()
def difference(model, ids, piece):
    """Largest difference of the logits of 8 tokens and pieces after them, by cache, from those of all tokens at once."""
    whole, out = model(ids).logits, model(ids[:, :8], use_cache=True)
    parts = [out.logits]
    for start in range(8, ids.shape[1], piece):
        name = "cache_params" if "cache_params" in out else "past_key_values"
        out = model(ids[:, start:start + piece], **{name: out[name]}, use_cache=True)
        parts.append(out.logits)
    return float((torch.cat(parts, 1) - whole).abs().max() / whole.std())


seen = {}
for name, (make, config) in models.items():
    torch.manual_seed(0)
    model = make(config).eval()
    for key, parameter in model.named_parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    ids = torch.randint(3, 64, (1, 13))
    seen[name] = tuple(round(difference(model, ids, piece), 4) for piece in (1, 5))
print("expected: pieces with a cache give the logits of the whole text: differences of 0")
print("seen (one token at a time, five at once):", seen)
if not (all(one < 1e-3 for one, _ in seen.values()) and all(seen[name][1] < 1e-3 for name in ("mamba2", "llama"))
        and all(seen[name][1] > 0.02 for name in ("mamba", "falcon_mamba", "jamba"))):
    sys.exit("the behaviour has changed")
END
