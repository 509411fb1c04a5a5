#!/usr/bin/env bash
# PyTorch: a cosine schedule that has reached its end cannot be made longer. CosineAnnealingLR computes each rate from the last
# one, so that after T_max steps the rate is 0 and stays exactly 0 for a larger T_max, while training goes on without learning.
#
# Versions: torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     T_max 4, after 4 steps T_max = 8: rates 0, 0, 0, 0, 0; by the documented closed form 0.5, 0.309, 0.146, 0.038, 0.
#           Left at T_max 4 the rate rises again, to 1 at step 8.
# Source:   torch/optim/lr_scheduler.py, CosineAnnealingLR.get_lr(): the last rate times a quotient of cosines; the closed form is
#           for the start only.
# Advice:   where training may be continued, use LambdaLR with the closed form; a new CosineAnnealingLR with last_epoch goes on
#           from 0 as well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import sys
from importlib.metadata import version

import torch

print("versions: torch", version("torch"), "numpy", version("numpy"))


def rates(longer):
    """Those of steps 4 to 8, where T_max is 8 from step 4 on, or stays 4."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    seen = []
    for step in range(9):
        if step == 4 and longer:
            schedule.T_max = 8
        if step >= 4:
            seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return seen


closed = [(1 + math.cos(math.pi * step / 8)) / 2 for step in range(4, 9)]
extended, left = rates(True), rates(False)
print("expected:", [round(rate, 3) for rate in closed], "from step 5 on at the latest")
print("seen:", extended, "and, with T_max left at 4,", [round(rate, 3) for rate in left])
if not (max(extended) < 1e-12 and abs(left[-1] - 1) < 1e-9):
    sys.exit("the behaviour has changed")
END
