#!/usr/bin/env bash
# transformers: Inkling with a static cache is another model. Its attention has biases by distance, and with a static cache
# the distances are too large by the number of tokens given: each generated token is taken to be one further away from all
# others than it is, itself included, and those of a prompt in pieces by a piece. A dynamic cache, and the first piece, are
# right.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     largest change of the logits in standard deviations, first 8 tokens 0; the 16 after them one by one 2.6, in two
#           pieces 2.73; with a dynamic cache 0. Greedy generation gives 5 of 40 tokens as without a cache, a dynamic cache
#           all (random model).
# Source:   transformers/models/inkling/modeling_inkling.py, InklingAttention.forward(): the position is read before the
#           cache is updated, but for a static layer it is the tensor that the update adds to, and it is used afterwards.
# Advice:   the dynamic cache; compare logits with each cache to those without.
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
from transformers import DynamicCache, InklingForCausalLM, InklingTextConfig, StaticCache

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
config = InklingTextConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                           head_dim=8, layer_types=["hybrid"] * 2, mlp_layer_types=["dense"] * 2, intermediate_size=64,
                           rel_extent=32, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
torch.manual_seed(0)
model = InklingForCausalLM(config).eval()
for parameter in model.parameters():
    if parameter.dim() > 1:
        torch.nn.init.normal_(parameter, 0, 0.2)
text = torch.randint(3, 64, (1, 24))


@torch.no_grad()
def change(cache, sizes):
    """Largest change of the logits by the cache, of the first piece and of the others, in standard deviations."""
    whole, end, changes = model(text).logits, 0, []
    for size in sizes:
        piece = model(text[:, end:end + size], past_key_values=cache, use_cache=True).logits
        changes.append(float((piece - whole[:, end:end + size]).abs().max() / whole.std()))
        end += size
    return round(changes[0], 2), round(max(changes[1:]), 2)


seen = {}
for sizes in ([8] + [1] * 16, [8] * 3):
    for cache in (DynamicCache(config=config), StaticCache(config=config, max_cache_len=32)):
        seen[type(cache).__name__, f"8, then {len(sizes) - 1} times {sizes[1]}"] = change(cache, sizes)
options = {"max_new_tokens": 40, "do_sample": False, "eos_token_id": None}
texts = [model.generate(text[:, :8], **options, **more) for more in
         ({"use_cache": False}, {}, {"cache_implementation": "static", "disable_compile": True})]
equal = [int((texts[0] == other)[:, 8:].sum()) for other in texts[1:]]
print("expected: the logits of the whole text with each cache: (0.0, 0.0); 40 of 40 tokens as without a cache")
print("seen (first piece, later ones):", seen, "; tokens as without a cache, dynamic and static:", equal)
if not (equal[0] == 40 > equal[1] and all(first < 1e-2 and (later > 0.1) == (cache == "StaticCache")
                                          for (cache, _), (first, later) in seen.items())):
    sys.exit("the behaviour has changed")
END
