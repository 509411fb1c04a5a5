#!/usr/bin/env bash
# Lightning's StochasticWeightAveraging throws the last epoch away where a model has no batch normalisation, as Transformers: it is trained,
# but not averaged. If averaging starts in the last epoch, the result is the model before that epoch.
#
# Versions: lightning 2.6.6, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     a weight that grows by 1 in each of 10 epochs. Averaged from epoch 10 on: 9 in place of 10; from epoch 8 on: 8, the mean of
#           7, 8 and 9, in place of 9. With a BatchNorm1d beside it, which nothing depends on: 10 and 9. PyTorch's AveragedModel,
#           updated at the end of the same epochs: 10 and 9.
# Source:   lightning/pytorch/callbacks/stochastic_weight_avg.py, on_train_epoch_start(): averages before an epoch is trained. With batch
#           normalisation an epoch is added to update its statistics, and the weights after the last one enter at its start.
# Advice:   use WeightAveraging with a should_update() of the epoch's index (epoch_idx), which averages after training.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 lightning==2.6.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, StochasticWeightAveraging
from torch.optim.swa_utils import AveragedModel

print("versions:", *(f"{name} {version(name)}" for name in ("lightning", "torch", "numpy")))
epochs = 10


class Growing(pl.LightningModule):
    """One weight, which grows by the learning rate in each step."""

    def __init__(self, batch_norm):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.norm = torch.nn.BatchNorm1d(1) if batch_norm else torch.nn.Identity()

    def training_step(self, batch, index):
        return 0 * self.norm(batch[0]).sum() - self.weight.sum()

    def configure_optimizers(self):
        return torch.optim.SGD([self.weight], lr=1.0)


class AtEnds(Callback):
    """The same average by PyTorch: after each epoch from a first one (1 is the first) on."""

    def __init__(self, first):
        self.first, self.average = first, None

    def on_train_epoch_end(self, trainer, module):
        if self.first <= trainer.current_epoch + 1 <= epochs:
            self.average = self.average or AveragedModel(module)
            self.average.update_parameters(module)


def train(batch_norm, first):
    model, ends = Growing(batch_norm), AtEnds(first)
    averaging = StochasticWeightAveraging(swa_lrs=1.0, swa_epoch_start=first, annealing_epochs=1)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4, 1)), batch_size=4)
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, callbacks=[averaging, ends])
    trainer.fit(model, batches)
    return float(model.weight), float(ends.average.module.weight)


seen = {(first, batch_norm): train(batch_norm, first) for first in (10, 8) for batch_norm in (False, True)}
print("expected: the weight after epoch 10 is 10, the mean after epochs 8 to 10 is 9; batch normalisation changes nothing")
for (first, batch_norm), (lightning, pytorch) in seen.items():
    print(f"from epoch {first} on, {'with' if batch_norm else 'without'} batch normalisation:",
          f"Lightning {lightning:g}, PyTorch {pytorch:g}")
if [value for pair in seen.values() for value in pair] != [9, 10, 10, 10, 8, 9, 9, 9]:
    sys.exit("the behaviour has changed")
END
