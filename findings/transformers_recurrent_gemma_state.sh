#!/usr/bin/env bash
# transformers: RecurrentGemma keeps its recurrent state in the model, not in the cache. Answers that are scored one after another
# from copies of the cache of one prompt, as for multiple choice, each begin with the state of the answer before: the second one's
# logits depend on the first.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     an answer of 5 tokens after a prompt of 8, token by token from a copy of the cache, largest difference from both at once, in
#           standard deviations of the logits: as the first answer 0, as the second 0.64.
# Source:   transformers/models/recurrent_gemma/modeling_recurrent_gemma.py: self.recurrent_states and self.conv1d_state are
#           attributes of layers; past_key_values has attention's keys and values alone.
# Advice:   score prompt and answer together, each time from the beginning; do not interleave texts with one model.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import copy
import sys
from importlib.metadata import version

import torch
from transformers import DynamicCache, RecurrentGemmaConfig, RecurrentGemmaForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
torch.manual_seed(0)
model = RecurrentGemmaForCausalLM(RecurrentGemmaConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=2, num_key_value_heads=2, head_dim=16,
    lru_width=32, attention_window_size=16)).eval()
for parameter in model.parameters():
    if parameter.dim() >= 2:
        torch.nn.init.normal_(parameter, 0, 0.2)
prompt, first, second = (torch.randint(3, 64, (1, count)) for count in (8, 5, 5))


@torch.no_grad()
def scored(cache, answer):
    """Logits of an answer, token by token, from a copy of the prompt's cache."""
    cache = copy.deepcopy(cache)
    return torch.cat([model(answer[:, at:at + 1], past_key_values=cache, position_ids=torch.tensor([[8 + at]]), use_cache=True).logits
                      for at in range(answer.shape[1])], 1)


seen = []
for before in ([], [first]):
    with torch.no_grad():
        whole = model(torch.cat([prompt, second], 1), use_cache=False).logits[:, 8:]
        cache = DynamicCache(config=model.config)
        model(prompt, past_key_values=cache, use_cache=True)
    for answer in before:
        scored(cache, answer)
    seen.append(float((scored(cache, second) - whole).abs().max() / whole.std()))
print("expected: an answer has the same logits whether it is scored first or second: 0 and 0")
print("seen: first %.2g, second %.2g" % tuple(seen))
if not (seen[0] < 1e-4 and seen[1] > 0.1):
    sys.exit("the behaviour has changed")
END
