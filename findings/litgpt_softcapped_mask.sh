#!/usr/bin/env bash
# litgpt: Gemma 2 with a cache reads its prompt without a causal mask: tokens attend to all later ones of the prompt. Its
# attention scores are capped, and to capped ones the mask is added; with a cache the mask is one of true and false, so what
# should be visible gets 1 more, and what should not is visible. Generated texts continue a prompt that was read in both
# directions.
#
# Versions: litgpt 0.5.13, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     12 tokens, change of the logits by the cache in standard deviations: each by 1.13 or more; the last token changes
#           each before it by 0.33 or more; of 12 tokens generated greedily 2 are the right ones. Without caps 0, 0 and 12
#           (random models).
# Source:   litgpt/model.py, CausalSelfAttention.scaled_dot_product_attention(): scores + mask, with a mask of
#           build_mask_cache(). Known as issue 1672 of Lightning-AI/litgpt, of 2024, open, with a repair in pull request 2235,
#           also open.
# Advice:   feed the prompt token by token, or score without a cache; compare a cached prompt's logits with those of
#           model(tokens).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 litgpt==0.5.13
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from litgpt import GPT, Config
from litgpt.generate.base import generate

print("versions:", *(f"{name} {version(name)}" for name in ("litgpt", "torch", "numpy")))
small = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_query_groups": 2, "head_size": 8, "intermediate_size": 64,
         "padded_vocab_size": 64, "vocab_size": 64, "block_size": 64, "sliding_window_size": 64}
seen = {}
for name, options in {"Gemma 2": {}, "without caps": {"attention_logit_softcapping": None}}.items():
    torch.manual_seed(0)
    model = GPT(Config.from_name("Gemma-2-2b", **small, sliding_window_indices=[0, 1], **options)).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
    text = torch.randint(64, (1, 12))
    other = text.clone()
    other[0, -1] += 1 - 2 * (other[0, -1] > 32)
    positions = torch.arange(12)
    model.max_seq_length = 24
    with torch.no_grad():
        whole = model(text)
        model.set_kv_cache(1)
        cached = [model(tokens, positions, input_pos_maxp1=12) for tokens in (text, other)]
        tokens = generate(model, text[0], 24, temperature=0.0)
        model.clear_kv_cache()
        expected = text
        while expected.shape[1] < 24:
            expected = torch.cat((expected, model(expected)[:, -1:].argmax(2)), 1)
    changes = [round(float((a - b)[:, :11].abs().amax(2).min() / whole.std()), 2) for a, b in ((whole, cached[0]), cached)]
    seen[name] = *changes, int((tokens == expected[0])[12:].sum())
print("expected: a cache changes no logits, the prompt's last token none before it, and greedy decoding is the same: (0, 0, 12)")
print("seen (least change of 11 tokens' logits by the cache, by the last token, in deviations, equal tokens of 12):", seen)
capped, plain = seen.values()
if plain != (0.0, 0.0, 12) or min(capped[:2]) < 0.05 or capped[2] > 9:
    sys.exit("the behaviour has changed")
END
