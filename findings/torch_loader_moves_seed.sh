#!/usr/bin/env bash
# PyTorch: to go through a DataLoader moves the global random generator, even without shuffling and without workers. A validation pass
# thus changes the dropout of all training steps after it: two runs with one seed that evaluate at other intervals part.
#
# Versions: torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     a linear layer and dropout, trained for 6 steps after manual_seed(0): other weights with a validation pass after step 3
#           than without; the same weights if the loader has a generator of its own.
# Source:   torch/utils/data/dataloader.py, _BaseDataLoaderIter: every iterator draws a base seed for workers, from the global
#           generator unless generator= is given.
# Advice:   DataLoader(..., generator=torch.Generator()) for every loader that only evaluates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch.utils.data import DataLoader, TensorDataset

print("versions: torch", version("torch"), "numpy", version("numpy"))
validation = TensorDataset(torch.ones(8, 4))


def trained(loader=None):
    """The weights after 6 steps, with a validation pass after the third if there is a loader."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        model.train()
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        optimizer.step()
        if step == 2 and loader:
            model.eval()
            with torch.no_grad():
                for (batch,) in loader:
                    model(batch)
    return model[0].weight.detach()


plain, again = trained(), trained()
evaluated = trained(DataLoader(validation, batch_size=4))
own = trained(DataLoader(validation, batch_size=4, generator=torch.Generator()))
print("expected: evaluation in order, without dropout, changes no weight:", torch.equal(plain, again))
print("seen: equal weights with a validation pass:", torch.equal(plain, evaluated),
      "; by a loader with a generator:", torch.equal(plain, own))
if not (torch.equal(plain, again) and torch.equal(plain, own) and not torch.equal(plain, evaluated)):
    sys.exit("the behaviour has changed")
END
