#!/usr/bin/env bash
# transformers: RWKV generates another text for a prompt as soon as a second prompt is in the batch. From the second new token on,
# a row's token stands once beside each row's last token, and what comes of the last row's is read: no error, although the logits of
# one token have the shape batch x batch x vocabulary.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     three prompts of 8 tokens without padding, 7 new tokens after the first: of 21, none is as for each prompt alone; with
#           use_cache=False all are. Logits of one token with the state have the shape (3, 3, 64).
# Source:   transformers/models/rwkv/modeling_rwkv.py: shifted = state[1][:, :, layer] is (batch, width), beside (batch, 1, width), in
#           the time mix and in the channel mix; and generation takes logits[:, -1].
# Advice:   one prompt at a time, or use_cache=False. Whole texts in a batch (scoring) are right.
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
from transformers import RwkvConfig, RwkvForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
torch.manual_seed(0)
model = RwkvForCausalLM(RwkvConfig(vocab_size=64, hidden_size=32, attention_hidden_size=32, num_hidden_layers=2,
                                   intermediate_size=64, context_length=64, eos_token_id=None)).eval()
for parameter in model.parameters():
    if parameter.dim() >= 2:
        torch.nn.init.normal_(parameter, 0, 0.2)
prompts = torch.randint(3, 64, (3, 8))


def continued(rows, **options):
    """The new tokens after the first, chosen greedily."""
    return model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=8, do_sample=False, pad_token_id=0,
                          **options)[:, 9:]


with torch.no_grad():
    shape = tuple(model(prompts[:, -1:], state=model(prompts, use_cache=True).state).logits.shape)
alone = torch.cat([continued(prompts[row:row + 1]) for row in range(3)])
together = int((continued(prompts) == alone).sum())
uncached = int((continued(prompts, use_cache=False) == alone).sum())
print("expected: 21 of 21 tokens as for each prompt alone, logits of one token of shape (3, 1, 64)")
print("seen: in a batch", together, "of", alone.numel(), "without a cache", uncached, "shape", shape)
if not (together < 15 and uncached == alone.numel() and shape == (3, 3, 64)):
    sys.exit("the behaviour has changed")
END
