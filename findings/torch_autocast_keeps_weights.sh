#!/usr/bin/env bash
# PyTorch: within one autocast region the weights of the first forward pass are used for all that follow. Autocast keeps its
# bfloat16 copy of each weight until the region ends and does not see that the weight was changed in place. If checkpoints,
# averaged weights or steps of training are evaluated one after another inside one `with torch.autocast(...)`, all of them get the
# result of the first, without a warning.
#
# Versions: torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     losses of five random models, loaded one after another into one: 2.3289, 2.3195, 2.3931, 2.3068, 2.3267 with a region
#           for each; five times 2.3289 within one region, with gradients and without. 20 steps of Adam within one region: the
#           reported loss stays at 2.3289; with a region a step it falls to 1.1638.
# Source:   aten/src/ATen/autocast_mode.cpp, cached_cast(): a leaf that requires gradients is cast once and looked up as
#           a tensor; load_state_dict() and optimizers write into the same tensors. Modules under torch.no_grad() are kept, too.
# Advice:   one region for each forward pass, or torch.autocast(..., cache_enabled=False), or torch.clear_autocast_cache() after
#           each change of the weights. Models whose parameters do not require gradients are not concerned.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch

print("versions: torch", version("torch"), "numpy", version("numpy"))
torch.manual_seed(0)
x, y = torch.randn(64, 16), torch.randint(0, 10, (64,))


def make(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def loss(model):
    return torch.nn.functional.cross_entropy(model(x).float(), y)


def region(**options):
    return torch.autocast("cpu", dtype=torch.bfloat16, **options)


checkpoints = [make(seed).state_dict() for seed in range(5)]


def each():
    """The losses of the checkpoints with a region for each."""
    model, losses = make(0), []
    for checkpoint in checkpoints:
        model.load_state_dict(checkpoint)
        with region(), torch.no_grad():
            losses.append(round(float(loss(model)), 4))
    return losses


def together(gradients, **options):
    """The losses of the checkpoints within one region."""
    model, losses = make(0), []
    with region(**options), torch.set_grad_enabled(gradients):
        for checkpoint in checkpoints:
            model.load_state_dict(checkpoint)
            losses.append(round(float(loss(model)), 4))
    return losses


def trained(one_region):
    """The last of 20 training losses."""
    model = make(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with region() if one_region else torch.enable_grad():
        for _ in range(20):
            optimizer.zero_grad()
            if one_region:
                value = loss(model)
            else:
                with region():
                    value = loss(model)
            value.backward()
            optimizer.step()
    return round(float(value), 4)


apart, without, with_gradients = each(), together(False), together(True)
uncached = together(False, cache_enabled=False)
steps = trained(False), trained(True)
print("expected: each checkpoint has its own loss:", apart)
print("seen: within one region", without, "; with gradients", with_gradients, "; cache_enabled=False", uncached)
print("      loss after 20 steps: a region a step", steps[0], "; one region", steps[1])
if not (len(set(apart)) == 5 and set(without) == set(with_gradients) == {apart[0]} and uncached == apart
        and steps[1] == apart[0] > steps[0] + 0.1):
    sys.exit("the behaviour has changed")
END
