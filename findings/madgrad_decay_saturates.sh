#!/usr/bin/env bash
# timm, pytorch_optimizer: MADGRAD's decoupled weight decay hardly decays. With momentum, each step averages the decayed weights with
# ones counted from those of the start, x0, which are never decayed. So a weight shrinks by some 9 × rate × decay (momentum 0.9) once,
# not by rate × decay each step, and what the gradient asks for is learnt as if there were no decay.
#
# Versions: timm 1.0.31, pytorch_optimizer 4.1.0, torch 2.15.0, numpy 2.4.6; as of 2026-12-01.
# Seen:     1,000 steps without gradient, rate 0.01: of weights AdamW leaves 0.37 with decay 0.1 and 0.00004 with 1; MADGRAD 0.99 and
#           0.92 (timm), 0.99 and 0.91 (pytorch_optimizer). A regression whose weights are 3: AdamW with decay 1 and 10 learns 0.88 and
#           0.09, MADGRAD 3 each time. In timm without momentum 0.37 and 0.00004 are left, as by AdamW.
# Source:   timm/optim/madgrad.py (madgradw), pytorch_optimizer/optimizer/madgrad.py: p × (1 - rate × decay), and then the average of p
#           and x0 - s / rms, in which s sums gradients and x0 is a copy of the first weights.
# Advice:   compare decays by the norms of the weights they lead to, not by their values. timm's file is loaded by its path: the package
#           needs torchvision.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 pytorch_optimizer==4.1.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps timm==1.0.31
"$folder/venv/bin/python" -W ignore - <<'END'
import importlib.util
import sys
from importlib.metadata import distribution, version

import pytorch_optimizer
import torch

print("versions:", *(f"{name} {version(name)}" for name in ("timm", "pytorch_optimizer", "torch", "numpy")))
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("madgrad", distribution("timm").locate_file("timm/optim/madgrad.py"))
timm_madgrad = importlib.util.module_from_spec(spec)
spec.loader.exec_module(timm_madgrad)
optimizers = {
    "AdamW": lambda p, decay: torch.optim.AdamW(p, lr=0.01, weight_decay=decay),
    "timm": lambda p, decay: timm_madgrad.MADGRAD(p, lr=0.01, weight_decay=decay, decoupled_decay=True),
    "timm, no momentum": lambda p, decay: timm_madgrad.MADGRAD(p, 0.01, momentum=0, weight_decay=decay, decoupled_decay=True),
    "pytorch_optimizer": lambda p, decay: pytorch_optimizer.MADGRAD(p, lr=0.01, weight_decay=decay, weight_decouple=True)}


def left(build, decay, steps=1000):
    """What is left of a weight of 1 that has no gradient."""
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = build([weight], decay)
    for _ in range(steps):
        weight.grad = torch.zeros_like(weight)
        optimizer.step()
    return float(weight.detach().mean())


def learnt(build, decay, steps=2000):
    """Mean weight of a regression whose weights start at 0 and are 3 without decay."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.zeros(8))
    optimizer = build([weight], decay)
    for _ in range(steps):
        inputs = torch.randn(32, 8, generator=generator)
        optimizer.zero_grad()
        (inputs @ (weight - 3)).square().mean().backward()
        optimizer.step()
    return float(weight.detach().mean())


lefts = {name: {decay: left(build, decay) for decay in (0.1, 1.0)} for name, build in optimizers.items()}
learns = {name: {decay: round(learnt(build, decay), 2) for decay in (0.0, 1.0, 10.0)} for name, build in optimizers.items()}
print("expected: decoupled decay leaves (1 - 0.01 × decay)^1000 of a weight without gradient, 0.37 and 0.00004")
for name, values in lefts.items():
    print(f"seen: {name:18} " + ", ".join(f"decay {decay}: {value:.5f}" for decay, value in values.items()), "of it; learnt:", learns[name])
if not (lefts["AdamW"][1.0] < 1e-4 and lefts["timm, no momentum"][1.0] < 1e-4
        and all(lefts[name][1.0] > 0.9 and learns[name][1.0] > 2.9 for name in ("timm", "pytorch_optimizer"))
        and learns["AdamW"][1.0] < 1):
    sys.exit("the behaviour has changed")
END
