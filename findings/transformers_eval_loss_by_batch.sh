#!/usr/bin/env bash
# transformers: eval_loss of a Trainer depends on the batch size where sequences have different lengths. It is a mean over batches of
# means over tokens, so that tokens of short sequences count more the smaller the batches are; a perplexity made of it does, too.
#
# Versions: transformers 5.23.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     one model, 8 sequences of 2 to 30 tokens: eval_loss 4.905, 5.618, 5.622 for batches of 1, 2 and 8; 5.622 per token.
# Source:   transformers/trainer.py, evaluation_loop(): the loss of a batch is repeated for each of its sequences, then all are averaged.
# Advice:   sum the losses and the targets, in compute_metrics or a loop of one's own; or pack texts to one length.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 accelerate==1.15.0 transformers==5.23.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "accelerate", "torch", "numpy")))
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                     num_attention_heads=2, num_key_value_heads=2)).eval()
for parameter in model.parameters():
    if parameter.dim() >= 2:
        torch.nn.init.normal_(parameter, 0, 0.3)
short, data = torch.full((3,), 5), []  # short sequences are one token repeated
for length in (2, 30, 3, 25, 2, 28, 3, 20):
    ids = torch.randint(3, 64, (length,)) if length > 3 else short[:length]
    data.append({"input_ids": ids, "labels": ids})


def padded(rows):
    longest = max(len(row["input_ids"]) for row in rows)

    def pad(row, value):
        return torch.cat([row, torch.full((longest - len(row),), value)])

    return {"input_ids": torch.stack([pad(row["input_ids"], 0) for row in rows]),
            "labels": torch.stack([pad(row["labels"], -100) for row in rows]),
            "attention_mask": torch.stack([pad(torch.ones_like(row["input_ids"]), 0) for row in rows])}


with torch.no_grad():
    targets = [len(row["labels"]) - 1 for row in data]
    per_token = sum(float(model(**padded([row])).loss) * count for row, count in zip(data, targets)) / sum(targets)
losses = []
for batch in (1, 2, 8):
    arguments = TrainingArguments("out", per_device_eval_batch_size=batch, report_to=[], use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model, arguments, data_collator=padded, eval_dataset=data)
    trainer.log = lambda *_: None
    losses.append(round(trainer.evaluate()["eval_loss"], 3))
print("expected: the batch size changes the speed alone: eval_loss is the loss per token,", round(per_token, 3))
print("seen: eval_loss with batches of 1, 2 and 8:", *losses)
if not (max(losses) - min(losses) > 0.3 and abs(losses[2] - per_token) < 0.01):
    sys.exit("the behaviour has changed")
END
