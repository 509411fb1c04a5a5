#!/usr/bin/env bash
# Accelerate, Lightning: where the batches of an epoch are no multiple of the accumulated ones, the last step of each epoch has
# a fraction of the gradient: the losses of the batches that are left are divided by the full number. In small epochs, as of a
# search's short trainings, that is a good part of all steps.
#
# Versions: accelerate 1.15.0, lightning 2.6.6, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     each batch's gradient is 1; 10 batches, 4 accumulated: gradients of the steps 1, 1, 0.5 by both; 9 batches, 8
#           accumulated: 1, 0.125.
# Source:   Accelerator.backward() divides by gradient_accumulation_steps, and accumulate() steps at the end of the loader, too;
#           Lightning divides by accumulate_grad_batches and steps on the last batch (issue 19987 of pytorch-lightning).
# Advice:   drop the batches that are left, or choose a divisor; transformers' Trainer divides by what it has.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 accelerate==1.15.0 lightning==2.6.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2> "$folder/log" <<'END' || { cat "$folder/log" >&2; exit 1; }
import sys
from importlib.metadata import version

import lightning
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

print("versions:", *(f"{name} {version(name)}" for name in ("accelerate", "lightning", "torch", "numpy")))


def layer():
    return torch.nn.Linear(1, 1, bias=False)


def loader(batches):
    return DataLoader([torch.ones(1)] * batches, batch_size=1)


def by_accelerate(batches, accumulated):
    accelerator, model, steps = Accelerator(gradient_accumulation_steps=accumulated, cpu=True), layer(), []
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), loader(batches))
    for batch in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).mean())
            if accelerator.sync_gradients:
                steps.append(round(float(model.weight.grad), 3))
            optimizer.step()
            optimizer.zero_grad()
    return steps


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.steps = layer(), []

    def training_step(self, batch):
        return self.layer(batch).mean()

    def on_before_optimizer_step(self, optimizer):
        self.steps.append(round(float(self.layer.weight.grad), 3))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def by_lightning(batches, accumulated):
    module, quiet = Module(), {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, accumulate_grad_batches=accumulated, enable_model_summary=False, **quiet)
    trainer.fit(module, loader(batches))
    return module.steps


seen = {case: (by_accelerate(*case), by_lightning(*case)) for case in ((8, 4), (10, 4), (9, 8))}
print("expected: each batch's gradient is 1, so the average of each step's is, too")
for (batches, accumulated), (one, other) in seen.items():
    print(f"seen: {batches} batches, {accumulated} accumulated: Accelerate {one}, Lightning {other}")
if list(seen.values()) != [([1, 1],) * 2, ([1, 1, 0.5],) * 2, ([1, 0.125],) * 2]:
    sys.exit("the behaviour has changed")
END
