#!/usr/bin/env bash
# litgpt: a prompt longer than the window of a sliding-window model is refused with a cache, with the advice to give it in chunks
# no longer than the window. The advice is wrong: from the second chunk on, tokens see later ones of their chunk and miss earlier
# ones of the window, whose places in the cache these have taken. A prompt read so gives other
# logits and other texts.
#
# Versions: litgpt 0.5.13, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     window 8, 12 tokens, change of the logits by the cache in standard deviations: in chunks of 8 and 4 the last four by
#           2.03, 1.6, 0.77, 0.34; the other 8, or all if these four come one by one, by 0. Token 12 changes those of tokens 9 to
#           11 by 1.85, 0.92, 0.9 (random model in the form of Gemma 3).
# Source:   litgpt/model.py, KVCache.forward() writes the chunk at input_pos % window before attention, which then reads all that
#           is there: the mask is a row of the causal mask by position, cut to the window's length, all true beyond it. Issue
#           2182 and pull request 2215 of Lightning-AI/litgpt brought the message.
# Advice:   give what goes beyond the window token by token, or score without a cache.
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

print("versions:", *(f"{name} {version(name)}" for name in ("litgpt", "torch", "numpy")))
torch.manual_seed(0)
model = GPT(Config.from_name("Gemma-3-1b-it", n_layer=2, n_embd=32, n_head=4, n_query_groups=2, head_size=8, intermediate_size=64,
                             padded_vocab_size=64, vocab_size=64, block_size=64, sliding_window_size=8,
                             sliding_window_indices=[1, 1], rope_indices=[1, 1])).eval()
for parameter in model.parameters():
    if parameter.dim() > 1:
        torch.nn.init.normal_(parameter, 0, 0.2)
text = torch.randint(64, (1, 12))
other = text.clone()
other[0, -1] += 1 - 2 * (other[0, -1] > 32)


@torch.no_grad()
def logits(tokens, chunks):
    """With a cache, by chunks of these lengths; at once without one if there are none."""
    if not chunks:
        return model(tokens)[0]
    model.set_kv_cache(1)
    parts = torch.arange(tokens.shape[1]).split(chunks)
    return torch.cat([model(tokens[:, part], part, input_pos_maxp1=int(part[-1]) + 1) for part in parts], 1)[0]


def change(a, b):
    return [round(float(difference), 2) for difference in (a - b).abs().amax(1) / whole.std()]


model.max_seq_length = 12
whole = logits(text, [])
try:
    logits(text, [12])
except ValueError as error:
    print("12 tokens at once:", error)
seen = {str(chunks): change(logits(text, chunks), whole) for chunks in ([8, 4], [4, 4, 4], [8, 1, 1, 1, 1])}
future = change(logits(text, [8, 4]), logits(other, [8, 4]))[8:11]
print("expected: the logits without a cache, and those of three tokens do not change with the fourth: all 0")
print("seen: change of each token's logits in standard deviations, by chunks:", seen)
print("      of tokens 9 to 11 by token 12, in chunks of 8 and 4:", future)
right = seen.pop("[8, 1, 1, 1, 1]")
if any(right) or any(any(c[:8]) or min(c[8:]) < 0.1 for c in seen.values()) or min(future) < 0.1:
    sys.exit("the behaviour has changed")
END
