#!/usr/bin/env bash
# PyTorch: Muon goes on moving a weight whose gradient has become 0, at full speed and for some 470 steps: orthogonalisation undoes the
# decay of the momentum. An expert of a mixture that gets no tokens for a while unlearns what it knew.
#
# Versions: torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     ten gradients, then zeros: later steps add up to 469 times the tenth one, AdamW's to 10, SGD's (momentum 0.95) to 19. Two
#           linear experts, the second without tokens from step 200 on: its error is 0.0013 at step 200, 0.8 at 250 and 23 at 600;
#           with AdamW 0. Where the gradient is None (an expert that is not called at all), it stands still.
# Source:   torch/optim/_muon.py: the momentum, 0.95^t of what it was, is divided by its norm (1e-7 or more) before the step. An expert
#           called with no rows, or in one batched product, has a gradient of zeros, as any unused weight has in JAX.
# Advice:   set the gradients of experts without tokens to None before the step.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "numpy")))
torch.set_num_threads(1)
optimizers = {"Muon": lambda parameters: torch.optim.Muon(parameters, lr=0.02, weight_decay=0),
              "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0),
              "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.95)}


def way_after(build, steps=600):
    """How far a weight goes after its tenth and last gradient, in lengths of the tenth step."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(32, 16, generator=generator) * 0.1)
    optimizer, lengths = build([weight]), []
    for step in range(steps):
        weight.grad = torch.randn(32, 16, generator=generator) + 1 if step < 10 else torch.zeros_like(weight)
        before = weight.detach().clone()
        optimizer.step()
        lengths.append(float((weight.detach() - before).norm()))
    return round(sum(lengths[10:]) / lengths[9], 1)


def idle_expert(build, skip=False):
    """Errors of the second of two experts, which has no tokens from step 200 on, at some steps."""
    torch.manual_seed(0)
    experts = torch.nn.ModuleList(torch.nn.Linear(32, 32, bias=False) for _ in range(2))
    targets = torch.randn(2, 32, 32) / 32 ** 0.5
    optimizer, errors, test = build(experts.parameters()), {}, torch.randn(512, 32)
    for step in range(601):
        if step in (200, 250, 600):
            with torch.no_grad():
                errors[step] = round(float((experts[1](test) - test @ targets[1].T).square().mean()), 4)
        tokens, route = torch.randn(64, 32), torch.randint(0, 2, (64,)) * (step < 200)
        optimizer.zero_grad()
        for number, expert in enumerate(experts):
            mine = tokens[route == number]
            if len(mine) or not skip:
                ((expert(mine) - mine @ targets[number].T).square().sum() / 64 / 32).backward()
        optimizer.step()
    return errors


way = {name: way_after(build) for name, build in optimizers.items()}
errors = {name: idle_expert(optimizers[name]) for name in ("Muon", "AdamW")}
errors["Muon, idle expert not called"] = idle_expert(optimizers["Muon"], skip=True)
print("expected: without gradients a weight stands still within some ten steps; an expert without tokens keeps what it knows")
print("seen: way after the last gradient, in steps:", way)
print("error of the expert without tokens from step 200 on, by step:", errors)
if not (way["Muon"] > 200 and way["AdamW"] < 20 and errors["Muon"][600] > 100 * errors["Muon"][200]
        and errors["AdamW"][600] < 0.01 and errors["Muon, idle expert not called"][600] < 0.01):
    sys.exit("the behaviour has changed")
END
