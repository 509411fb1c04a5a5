#!/usr/bin/env bash
# x-transformers: two options are lost while generating with the cache, which is the default. shift_tokens=1 mixes in the token
# before; with a cache a layer has the last token alone, and mixes in zeros. attn_data_dependent_alibi, the forget gates of the
# Forgetting Transformer, takes differences between the tokens that it has; from one token these are 0, and nothing is forgotten.
# The loss is right in training and evaluation, which are in parallel; what is sampled comes from another model.
#
# Versions: x-transformers 2.31.10, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     change of the logits of 8 tokens by the cache in standard deviations: shift_tokens 2.31 to 3.35, forget gates (with
#           bias 0) 2.14 to 4.2, neither 0; greedy generation: 15, 11 and 80 of 80 tokens equal (random models of two layers).
# Source:   x_transformers/x_transformers.py: ShiftTokens.forward() and DataDependentAlibi.forward() get the tokens after the
#           cached ones only, and keep nothing; TransformerWrapper.can_cache_kv is true all the same.
# Advice:   generate(..., cache_kv=False) with these options; compare logits with a cache to those without for each option of a
#           search.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 x-transformers==2.31.10
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

print("versions:", *(f"{name} {version(name)}" for name in ("x-transformers", "torch", "numpy")))
torch.manual_seed(1)
text = torch.randint(64, (4, 13))
seen = {}
every = {"neither": {}, "shift_tokens": {"shift_tokens": 1}, "forget gates": {"attn_data_dependent_alibi": True}}
for name, options in every.items():
    torch.manual_seed(0)
    model = TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=16,
                                                                                  **options)).eval()
    for parameter_name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
        elif "to_forget_gates" in parameter_name:
            torch.nn.init.zeros_(parameter)
    changes = []
    with torch.no_grad():
        whole = model(text)
        _, cache = model(text[:, :5], return_intermediates=True)
        for end in range(6, 14):
            logits, cache = model(text[:, :end], cache=cache, return_intermediates=True)
            changes.append(float((logits[:, -1] - whole[:, end - 1]).abs().max() / whole.std()))
    wrapped = AutoregressiveWrapper(model)
    texts = [wrapped.generate(text[:, :5], 20, temperature=0.0, cache_kv=cached) for cached in (False, True)]
    seen[name] = model.can_cache_kv, round(min(changes), 2), round(max(changes), 2), int((texts[0] == texts[1]).sum())
print("expected: the same logits with the cache and without, and the same tokens: (True, 0.0, 0.0, 80)")
print("seen (can_cache_kv, least and largest change of 8 tokens' logits in standard deviations, equal tokens of 80):", seen)
plain, *others = seen.values()
if plain != (True, 0.0, 0.0, 80) or any(not can or least < 0.1 or equal > 75 for can, least, _, equal in others):
    sys.exit("the behaviour has changed")
END
