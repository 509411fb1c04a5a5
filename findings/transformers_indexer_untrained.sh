#!/usr/bin/env bash
# transformers: the indexer of DeepSeek-V3.2 never learns. What chooses the tokens that attention sees has no gradient, so a
# model that is trained from scratch, with a task that needs a far token or not, keeps the choice of its random weights; all
# of its parameters say that they need gradients, and nothing is said. Adapters on "all-linear" that PEFT puts there stay at
# zero, too. The same in GLM with DSA, AXK2, HYV4, dots3 and DeepSeek-V4.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     300 steps of AdamW, a text of 32 whose last token is its first one again: all 10 parameters of the indexers are
#           as they were, and no others. Loss with index_topk 64: 0.0, with 4: 2.37 (a guess has 2.56).
# Source:   transformers/models/deepseek_v32/modeling_deepseek_v32.py, DeepseekV32Indexer.forward(): torch.no_grad, and what
#           it returns are indices; the loss of the paper that trains it (divergence from the attention weights) is not
#           there. Pull request 48863 of transformers is to add it.
# Advice:   index_topk at least as long as the text (then it is dense attention), a fixed indexer by intention, or a loss of
#           your own; look for parameters whose grad is None after the first step.
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
LENGTH = 32
size = {"vocab_size": 16, "hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 16, "num_hidden_layers": 2,
        "first_k_dense_replace": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8, "v_head_dim": 16, "max_position_embeddings": 64, "index_n_heads": 8, "index_head_dim": 16,
        "bos_token_id": 1, "eos_token_id": 2}


def texts(count):
    """Tokens at random; the last one is the first one again."""
    ids = torch.randint(3, 16, (count, LENGTH))
    ids[:, -1] = ids[:, 0]
    return ids


def loss(model, ids):
    return torch.nn.functional.cross_entropy(model(ids[:, :-1], use_cache=False).logits[:, -1], ids[:, -1])


seen = {}
for kept in (64, 4):
    torch.manual_seed(0)
    model = DeepseekV32ForCausalLM(DeepseekV32Config(**size, index_topk=kept))
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        loss(model, texts(64)).backward()
        optimizer.step()
    idle = [name for name, parameter in model.named_parameters() if torch.equal(parameter, start[name])]
    with torch.no_grad():
        final = round(float(loss(model.eval(), texts(512))), 2)
    seen[kept] = final, len(idle), all(".indexer." in name for name in idle), sum(".indexer." in name for name in start)
print("expected: all parameters that need gradients are trained; the loss of a guess is 2.56")
print("seen, by index_topk (loss of the last token, parameters unchanged by 300 steps of AdamW, are all of them the indexer's, "
      "how many it has):", seen)
if not all(idle == count > 0 and only for _, idle, only, count in seen.values()):
    sys.exit("the behaviour has changed")
END
