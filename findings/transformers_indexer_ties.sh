#!/usr/bin/env bash
# transformers: with few indexer heads, DeepSeek-V3.2 generates by another model than the one that scores. A key's index
# score is a sum of ReLUs over the heads, exactly 0 where no head is positive: for about half of the keys with one head, a
# quarter with two, a sixteenth with four. Which of them are chosen is the order of topk among equals, which depends on the
# length of the row, so that a cached token attends to other keys than the same token in the whole text. With the 64 heads
# of the original nothing is seen of it; in a search over small indexers it is.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     64 tokens, index_topk 32, tokens of the second half whose logits the cache changes: 1 head 96%, by up to 3.3
#           standard deviations, 2 heads 89%, 4 heads 23%, 8 and 64 heads none; index_topk 128 none (random models).
# Source:   transformers/models/deepseek_v32/modeling_deepseek_v32.py, DeepseekV32Indexer.forward(): relu, sum over heads,
#           topk; torch.topk does not say which of equal values it takes.
# Advice:   eight heads or more, or scores without a ReLU; compare logits with a cache to those without.
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
from transformers import DeepseekV32Config, DeepseekV32ForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
LENGTH, KEPT = 64, 32
size = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "moe_intermediate_size": 16, "num_hidden_layers": 2,
        "first_k_dense_replace": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4, "v_head_dim": 8, "max_position_embeddings": 128, "index_head_dim": 16,
        "bos_token_id": 1, "eos_token_id": 2}


@torch.no_grad()
def changes(heads, kept):
    """The part of cached tokens with other logits than in the whole text, and the largest change in standard deviations."""
    torch.manual_seed(0)
    model = DeepseekV32ForCausalLM(DeepseekV32Config(**size, index_n_heads=heads, index_topk=kept)).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
    text = torch.randint(3, 64, (8, LENGTH))
    whole, past, steps = model(text).logits, None, []
    for position in range(LENGTH):
        out = model(text[:, position:position + 1], past_key_values=past, use_cache=True)
        past = out.past_key_values
        steps.append(out.logits)
    change = (torch.cat(steps, 1) - whole).abs().amax(2)[:, KEPT:] / whole.std()
    return round(float((change > 0.01).float().mean()), 2), round(float(change.max()), 2)


seen = {(heads, kept): changes(heads, kept) for heads in (1, 2, 4, 8, 64) for kept in (KEPT, 2 * LENGTH)}
print("expected: the same logits with the cache and without: (0.0, 0.0)")
print(f"seen, by heads and tokens kept (part of the last {LENGTH - KEPT} tokens that differ, largest change):", seen)
if not (all(part > 0.1 for (heads, kept), (part, _) in seen.items() if heads <= 2 and kept == KEPT)
        and all(most < 1e-2 for (heads, kept), (_, most) in seen.items() if heads == 64 or kept > LENGTH)):
    sys.exit("the behaviour has changed")
END
