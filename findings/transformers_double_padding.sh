#!/usr/bin/env bash
# transformers: in double precision, a model whose attention is "eager" turns a left-padded text into NaN, all of it; greedy
# generation then continues with token 0, without an error. In single precision, and with "sdpa", the same model and batch are
# right. Checks of gradients and references take double precision, and attention weights (output_attentions) need "eager".
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     random Llama and Qwen3, 13 tokens after 4 of padding: eager in float64 NaN in all logits, new tokens 0, 0, 0, 0,
#           without padding none; float32 and sdpa finite, with equal tokens.
# Source:   transformers/masking_utils.py, eager_mask(): a masked place is the lowest finite number of the model's type; the
#           softmax of models/llama/modeling_llama.py is taken in float32, where float64's lowest is -infinity. A query that is
#           padding sees nothing else: 0 / 0; in the next layer its NaN value times weight 0 is NaN for every token.
# Advice:   attn_implementation="sdpa" or padding on the right in double precision. The softmax is in single precision all the
#           same: a double model is no double reference where attention is eager.
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
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
models = {"llama": (LlamaForCausalLM, LlamaConfig(**size)), "qwen3": (Qwen3ForCausalLM, Qwen3Config(**size))}
torch.manual_seed(1)
text = torch.randint(3, 64, (1, 13))
padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), text], 1)


def result(name, dtype, attention):
    """The share of NaN in the text's logits, padded and alone, and the new tokens after the padded text."""
    torch.manual_seed(0)
    make, config = models[name]
    model = make(config).to(dtype).eval()
    model.set_attn_implementation(attention)
    mask = (padded != 0).long()
    with torch.no_grad():
        shares = [float(logits.isnan().float().mean()) for logits in (model(padded, attention_mask=mask).logits[:, 4:],
                                                                      model(text).logits)]
    new = model.generate(padded, attention_mask=mask, max_new_tokens=4, do_sample=False, pad_token_id=0)[0, 17:].tolist()
    return *shares, new


seen = {(name, str(dtype)[6:], attention): result(name, dtype, attention) for name in models
        for dtype in (torch.float32, torch.float64) for attention in ("eager", "sdpa")}
print("expected: no NaN, and the same tokens in both precisions")
for case, outcome in seen.items():
    print("seen (NaN padded, NaN alone, new tokens):", *case, outcome)
if not all(outcome[:2] == ((1.0, 0.0) if case[1:] == ("float64", "eager") else (0.0, 0.0))
           and (outcome[2] == [0, 0, 0, 0]) == (outcome[0] == 1.0) for case, outcome in seen.items()):
    sys.exit("the behaviour has changed")
END
