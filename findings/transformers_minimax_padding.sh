#!/usr/bin/env bash
# transformers: a MiniMax whose first layer is lightning attention generates another text for a prompt if the batch has a longer one.
# With padding on the left and its attention mask the first token is right, those after it are not; without an error.
#
# Versions: transformers 5.23.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-27.
# Seen:     largest difference of the logits from those of the prompt alone, in their standard deviations: 0, 1.4, 1.8, 3.0 for
#           four tokens of a small random model; 0 where softmax attention is the first layer, and for
#           Llama.
# Source:   transformers/models/minimax/modeling_minimax.py, MiniMaxCache: get_seq_length() is that of layer 0, which is a linear one
#           and has no keys: 0 whatever was read, so that masks of further tokens are those of a text that begins anew.
# Advice:   generate from prompts of one length, or one at a time; give position_ids where the cache is used by hand.
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
from transformers import LlamaConfig, LlamaForCausalLM, MiniMaxConfig, MiniMaxForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
experts = {"block_size": 8, "num_local_experts": 2, "num_experts_per_tok": 1}
kinds = ["linear_attention", "full_attention"]
models = {"minimax": (MiniMaxForCausalLM, MiniMaxConfig(**size, **experts, layer_types=kinds)),
          "softmax first": (MiniMaxForCausalLM, MiniMaxConfig(**size, **experts, layer_types=kinds[::-1])),
          "llama": (LlamaForCausalLM, LlamaConfig(**size))}


@torch.no_grad()
def differences(make, config):
    """Of the logits of four generated tokens, in a padded batch and alone."""
    torch.manual_seed(0)
    model = make(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    long, short = torch.randint(3, 64, (1, 13)), torch.randint(3, 64, (1, 6))
    batch = torch.cat([long, torch.nn.functional.pad(short, (7, 0))])
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "output_logits": True, "return_dict_in_generate": True}
    padded = model.generate(batch, attention_mask=(batch != 0).long(), **options).logits
    alone = model.generate(short, attention_mask=torch.ones_like(short), **options).logits
    return [round(float((a[1] - b[0]).abs().max() / b.std()), 3) for a, b in zip(padded, alone)]


seen = {name: differences(*model) for name, model in models.items()}
print("expected: a masked prompt has the text that it has alone: differences of 0")
print("seen:", seen)
if not (max(seen["llama"] + seen["softmax first"]) < 1e-3 and seen["minimax"][0] < 1e-3 and min(seen["minimax"][1:]) > 0.1):
    sys.exit("the behaviour has changed")
END
