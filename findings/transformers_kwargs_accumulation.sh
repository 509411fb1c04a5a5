#!/usr/bin/env bash
# transformers: whether an own model's forward() ends in **kwargs decides by how much Trainer multiplies its gradient. With it
# Trainer takes for granted that the loss is divided by num_items_in_batch, which it passes, and leaves the mean over accumulated
# batches to the model: one that ignores what it gets has gradients as many times too large as batches are accumulated, without a
# warning.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, accelerate 1.15.0, on the CPU; as of 2026-11-28.
# Seen:     a bigram model, one step of SGD over 8 rows, its length at once | in 4 batches of 2: without **kwargs 0.1186 | 0.1186,
#           with it 0.1186 | 0.4745, with it and accepts_loss_kwargs = False 0.1186 | 0.1186.
# Source:   transformers/trainer.py: model_accepts_loss_kwargs is guessed from the signature; if true, training_step() does not
#           divide by gradient_accumulation_steps.
# Advice:   set accepts_loss_kwargs = False in an own model's class, or divide the sum of losses by num_items_in_batch if it is
#           given; compare one step of accumulated batches with one of the whole batch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0 accelerate==1.15.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PrinterCallback, Trainer, TrainingArguments

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy", "accelerate")))


class Plain(PreTrainedModel):
    """A bigram model whose loss is the mean over the tokens of its batch."""

    config_class = PreTrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.table = torch.nn.Embedding(16, 16)
        self.post_init()

    def forward(self, input_ids, labels=None):
        logits = self.table(input_ids)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


class Tolerant(Plain):
    """The same, which ignores other arguments."""

    def forward(self, input_ids, labels=None, **kwargs):
        return super().forward(input_ids, labels)


class Declared(Tolerant):
    """The same, which says so."""

    accepts_loss_kwargs = False


torch.manual_seed(1)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(16, (8, 9))]


def step(make, accumulated):
    """The length of one step of SGD at learning rate 1 over all rows, without clipping, in so many batches."""
    torch.manual_seed(0)
    model = make(PreTrainedConfig())
    before = model.table.weight.detach().clone()
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=8 // accumulated, gradient_accumulation_steps=accumulated, max_steps=1,
        optim="sgd", learning_rate=1.0, lr_scheduler_type="constant", max_grad_norm=0.0, report_to=[], use_cpu=True,
        disable_tqdm=True, save_strategy="no")
    trainer = Trainer(model, arguments, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return round(float((model.table.weight.detach() - before).norm()), 4)


seen = {make.__name__: (step(make, 1), step(make, 4)) for make in (Plain, Tolerant, Declared)}
print("expected: the step over 8 rows is the same at once and in 4 batches of 2, with **kwargs or without")
print("seen (at once, accumulated):", seen)
ratios = {name: round(accumulated / once, 2) for name, (once, accumulated) in seen.items()}
if ratios != {"Plain": 1.0, "Tolerant": 4.0, "Declared": 1.0}:
    sys.exit(f"the behaviour has changed: {ratios}")
END
