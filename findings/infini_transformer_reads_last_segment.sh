#!/usr/bin/env bash
# infini-transformer-pytorch: generate() reads only the last segment of a prompt. What is before it never enters the compressed memory,
# which the model is for: a long prompt with another beginning gives the same text.
#
# Versions: infini-transformer-pytorch 0.2.1, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     segments of 8, prompt of 20 tokens (random model, gates half open): logits of the next token do not change, 0, with the first 16
#           tokens; with the segments given one after the other, memories passed on, they change by 2.0 standard deviations. Prompts within
#           a segment are continued rightly over later segments.
# Source:   infini_transformer_pytorch/wrapper.py, generate(): begins at the start of the prompt's last segment with past_memories=None.
# Advice:   give the model the prompt's whole segments first (return_new_memories=True), and write the loop around it oneself. The loss of
#           InfiniTransformerWrapper(text) does pass memories on, so an evaluation does not show it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 infini-transformer-pytorch==0.2.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from infini_transformer_pytorch import InfiniTransformer, InfiniTransformerWrapper

print("versions:", *(f"{name} {version(name)}" for name in ("infini-transformer-pytorch", "torch", "numpy")))
torch.manual_seed(0)
segment, tokens = 8, 64
model = InfiniTransformer(num_tokens=tokens, dim=64, depth=2, dim_head=32, heads=2).eval()
for name, parameter in model.named_parameters():
    if name.endswith("head_gates"):
        torch.nn.init.zeros_(parameter)
    elif parameter.dim() >= 2:
        torch.nn.init.normal_(parameter, 0, 0.15)
prompt = torch.randint(0, tokens, (1, 20))
other = torch.cat((torch.randint(0, tokens, (1, 16)), prompt[:, 16:]), 1)


def by_generate(text):
    """Logits from which generate() chooses the first new token."""
    logits = []
    hook = model.register_forward_hook(lambda module, inputs, output: logits.append(output.logits[:, -1]))
    InfiniTransformerWrapper(model, segment_length=segment).generate(seq_len=text.shape[1] + 1, prompt=text)
    hook.remove()
    return logits[0]


@torch.no_grad()
def by_segments(text):
    memories = None
    for part in text.split(segment, 1):
        result = model(part, past_memories=memories, return_new_memories=True)
        memories = result.past_memories
    return result.logits[:, -1]


def change(form, one, two):
    return float((form(one) - form(two)).abs().max() / form(one).std())


short = prompt[:, :6]
agree = float((by_generate(short) - by_segments(short)).abs().max())
seen = change(by_segments, prompt, other), change(by_generate, prompt, other)
print("expected: the next token depends on the prompt's first two segments, as by segments: %.2f standard deviations" % seen[0])
print("seen: generate() %.2g; for a prompt of one segment both agree to %.1g" % (seen[1], agree))
if not (seen[0] > 0.5 and seen[1] == 0 and agree < 1e-4):
    sys.exit("the behaviour has changed")
END
