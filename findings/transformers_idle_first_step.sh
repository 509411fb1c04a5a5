#!/usr/bin/env bash
# transformers: with a schedule that warms up, the first training step has learning rate 0. One batch is read, its gradient is
# computed, and no weight moves; of 10 steps with a warm-up of 1, a tenth of the budget trains nothing.
#
# Versions: transformers 5.23.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     rates 0, 1, ... of get_linear_schedule_with_warmup and get_cosine_schedule_with_warmup, 1 of 6 steps for warm-up;
#           weights bitwise equal after the first step of AdamW.
# Source:   transformers/optimization.py: the factor is step / num_warmup_steps with steps counted from 0.
# Advice:   count one step more, or take torch's LinearLR with start_factor = 1 / warm-up steps; say in comparisons at few steps
#           which rates the first and the last step have.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.23.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from transformers import get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))


def rates(make):
    """The rate of each of 6 steps, and whether the first one changed the weight."""
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.AdamW([weight], lr=1.0, weight_decay=0.1)
    schedule = make(optimizer, num_warmup_steps=1, num_training_steps=6)
    used, moved = [], False
    for step in range(6):
        used.append(round(optimizer.param_groups[0]["lr"], 3))
        weight.grad = torch.ones(4)
        optimizer.step()
        schedule.step()
        moved = moved or (step == 0 and not torch.equal(weight, torch.ones(4)))
    return used, moved


linear, cosine = rates(get_linear_schedule_with_warmup), rates(get_cosine_schedule_with_warmup)
print("expected: each of 6 training steps trains: a rate above 0")
print("seen (rates, first step moves the weight): linear", *linear, "cosine", *cosine)
if not (linear[0][0] == cosine[0][0] == 0 and not linear[1] and not cosine[1] and linear[0][1] == 1):
    sys.exit("the behaviour has changed")
END
