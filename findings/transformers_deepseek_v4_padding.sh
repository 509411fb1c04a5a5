#!/usr/bin/env bash
# transformers: DeepSeek-V4 reads padding. Its compressed attention sums blocks of tokens up, padding included, whatever the
# attention mask and position_ids say: a prompt beside a longer one has other logits and another continuation, without an error.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     24 tokens after 3 and 8 of padding, largest difference of their logits from those of the text alone, in standard
#           deviations: layers of blocks of 8 (heavily compressed) 1.3 and 2.5, of blocks of 4 with selection 3.0 and 3.6, sliding
#           windows 0; with padding on the right 0. Of 12 new tokens 4 and 4, 1 and 2, 12 and 12 are equal (small random models).
# Source:   transformers/models/deepseek_v4/modeling_deepseek_v4.py: the compressors take hidden states and positions, no mask;
#           blocks are counted from the row's start, so that padding also moves their borders.
# Advice:   batches of prompts of one length, or padding on the right, whose logits are right; compare a padded prompt with it
#           alone.
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
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
torch.manual_seed(1)
text = torch.randint(3, 64, (1, 24))
blocks = {"heavily_compressed_attention": 8, "compressed_sparse_attention": 4}


def model_of(kind):
    """A small random model with layers of one kind."""
    torch.manual_seed(0)
    model = DeepseekV4ForCausalLM(DeepseekV4Config(
        vocab_size=64, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=16,
        q_lora_rank=16, moe_intermediate_size=32, n_routed_experts=4, num_experts_per_tok=2, sliding_window=8,
        layer_types=[kind] * 3, compress_rates=blocks, pad_token_id=0, bos_token_id=None, eos_token_id=None)).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    return model


def outcome(kind, left, right):
    """Largest difference of the text's logits from those of it alone, in standard deviations, and equal ones of 12 new tokens."""
    model = model_of(kind)
    padded = torch.nn.functional.pad(text, (left, right))
    mask = (padded != 0).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        alone = model(text, use_cache=False).logits
        logits = model(padded, attention_mask=mask, position_ids=positions, use_cache=False).logits[:, left:left + 24]
    new = [model.generate(rows, attention_mask=(rows != 0).long(), max_new_tokens=12, do_sample=False)[0, -12:]
           for rows in ((text, padded) if left else (text, text))]
    return round(float((logits - alone).abs().max() / alone.std()), 2), int((new[0] == new[1]).sum())


seen = {(kind, left, right): outcome(kind, left, right) for kind in ("sliding_attention", *blocks)
        for left, right in ((0, 8), (3, 0), (8, 0))}
print("expected: logits differ by 0 and 12 of 12 new tokens are equal with any padding")
for case, result in seen.items():
    print("seen (kind of layers, padding left, right):", *case, result)
if not all((result[0] > 0.1 and result[1] < 12) if kind in blocks and left else result == (0.0, 12)
           for (kind, left, _), result in seen.items()):
    sys.exit("the behaviour has changed")
END
