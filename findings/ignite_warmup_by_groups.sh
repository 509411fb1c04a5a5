#!/usr/bin/env bash
# Ignite: whether a step-by-step schedule of PyTorch (ExponentialLR, StepLR) returns to its own learning rate after
# create_lr_scheduler_with_warmup() depends on the number of parameter groups. With one group it does, as documented, if
# warmup_end_value is another rate. With two, as for weight decay of some weights only, it goes on from warmup_end_value: all
# later rates are off by that factor, and groups with rates of their own (layer-wise decay) have one and the same, silently.
#
# Versions: pytorch-ignite 0.5.5, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     rate 1, five steps of warm-up from 0 to 0.5, then ExponentialLR(0.9): one group 0.5, 1.0, 0.9, 0.81; two equal groups
#           0.5, 0.45, 0.405, 0.365 in both. Rates 1 and 0.1, warm-up to 1, alone: 1.0, 0.9, 0.81 and 1.0, 0.1, 0.09; as two
#           groups: 1.0, 0.9, 0.81 in both. Without warmup_end_value groups are as alone. CosineAnnealingLR loses one step only.
# Source:   ignite/handlers/param_scheduler.py, create_lr_scheduler_with_warmup(): the loop over groups wraps lr_scheduler and
#           stores the wrapper under the same name, so isinstance(lr_scheduler, PyTorchLRScheduler) is true for the first group
#           alone; the later ones lack the step back to the initial rate, and the last one's length is taken for all.
# Advice:   leave warmup_end_value out, or PyTorch's LinearLR and SequentialLR; print the rates of all groups.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 pytorch-ignite==0.5.5
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from ignite.engine import Engine, Events
from ignite.handlers import create_lr_scheduler_with_warmup

print("versions:", *(f"{name} {version(name)}" for name in ("pytorch-ignite", "torch", "numpy")))
schedules = {
    "ExponentialLR": lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
    "StepLR": lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
    "CosineAnnealingLR": lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20),
}


def rates(initial, end, make):
    """The last rate of five of warm-up and the three after it, of each group."""
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in initial]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    scheduler = create_lr_scheduler_with_warmup(make(optimizer), warmup_start_value=0.0, warmup_duration=5, warmup_end_value=end)
    seen = []
    trainer = Engine(lambda engine, batch: seen.append([round(group["lr"], 3) for group in optimizer.param_groups]))
    trainer.add_event_handler(Events.ITERATION_STARTED, scheduler)
    trainer.run(range(8), 1)
    return [list(column) for column in zip(*seen[4:])]


right = []
print("expected: a group's rates do not depend on the other groups")
for name, make in schedules.items():
    for initial, end in (((1.0, 1.0), 0.5), ((1.0, 0.1), 1.0), ((1.0, 0.1), None)):
        alone, together = [rates([lr], end, make)[0] for lr in initial], rates(initial, end, make)
        print(f"seen: {name}, rates {initial}, warm-up to {end}: alone {alone}, together {together}")
        if end is None:
            right.append(alone == together)
        elif name != "CosineAnnealingLR":
            right.append(abs(together[-1][-1] - alone[-1][-1]) > 0.4 * alone[-1][-1])
if not all(right):
    sys.exit("the behaviour has changed")
END
