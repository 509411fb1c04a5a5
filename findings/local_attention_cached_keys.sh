#!/usr/bin/env bash
# local-attention: LocalTransformer.generate() with its cache, which is the default, is another model than the one trained. The
# cache takes the keys after their rotation, and each further token rotates them again: from the second generated token on, the
# logits are those of other positions. With dynamic position biases instead of rotary embeddings they are right.
#
# Versions: local-attention 1.11.2, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     change of the logits by the cache in standard deviations: first token 0, the next 18 between 0.68 and 5.1, with
#           dynamic position biases 0; greedy generation without a cache and with one: 23 of 30 tokens equal, else 30 (random
#           models).
# Source:   local_attention/transformer.py, LocalMHA.forward(): with a cache, q and k are rotated before torch.stack((k, v))
#           makes the next cache; without one the rotation is inside attn_fn, and the cache has the keys as they were.
# Advice:   generate(..., use_kv_cache=False), or use_dynamic_pos_bias=True; compare logits with a cache to those without.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 local-attention==1.11.2
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from local_attention import LocalTransformer

print("versions:", *(f"{name} {version(name)}" for name in ("local-attention", "torch", "numpy")))
torch.manual_seed(1)
text = torch.randint(64, (1, 24))
seen = {}
for name, options in {"rotary": {}, "dynamic bias": {"use_dynamic_pos_bias": True}}.items():
    torch.manual_seed(0)
    model = LocalTransformer(num_tokens=64, dim=32, depth=2, max_seq_len=64, local_attn_window_size=8, heads=2, dim_head=16,
                             **options).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
    changes = []
    with torch.no_grad():
        whole = model(text)
        logits, cache = model(text[:, :5], return_cache=True)
        for length in range(6, 25):
            logits, cache = model(text[:, :length], cache=cache, return_cache=True)
            changes.append(round(float((logits[:, -1] - whole[:, length - 1]).abs().max() / whole.std()), 2))
        texts = [model.generate(text[:, :5], 30, temperature=0.0, use_kv_cache=use) for use in (False, True)]
    seen[name] = changes[0], min(changes[1:]), max(changes[1:]), int((texts[0] == texts[1]).sum())
print("expected: the same logits with the cache and without, and the same tokens: (0.0, 0.0, 0.0, 30)")
print("seen (change of logits of the first token with the cache, least and largest of 18 later ones, equal tokens of 30):", seen)
if seen["dynamic bias"] != (0.0, 0.0, 0.0, 30) or seen["rotary"][0] != 0 or seen["rotary"][1] < 0.1 or seen["rotary"][3] == 30:
    sys.exit("the behaviour has changed")
END
