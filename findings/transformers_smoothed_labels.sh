#!/usr/bin/env bash
# transformers: with `label_smoothing_factor`, Trainer teaches an own causal model to repeat the token that it reads. Its smoothed
# loss shifts labels by one place only for classes whose names are in transformers' own list; the model's forward(), which would
# shift them, does not see the labels then. The loss falls far below what is possible.
#
# Versions: transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-12-01.
# Seen:     a one-layer Llama on random tokens of 64, 100 steps, factor 0.1: as LlamaForCausalLM the mean loss of the last 50 steps
#           is 4.13, of a subclass MineForCausalLM 1.35 (log 64 is 4.16); the next token's loss is then 4.10 and 5.04, and the
#           likeliest next token is the one just read in 2% and in 100% of the places.
# Source:   transformers/trainer.py, compute_loss(): `model_name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()`.
# Advice:   give Trainer a compute_loss_func that shifts, or smooth in forward(); models opened by trust_remote_code are own ones,
#           too. A loss below the entropy of the data gives it away.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0 \
  accelerate==1.15.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "accelerate", "torch", "numpy")))
torch.set_num_threads(1)
config = LlamaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=4,
                     num_key_value_heads=2)
tokens = torch.randint(0, 64, (512, 16), generator=torch.Generator().manual_seed(0))
rows = [{"input_ids": row, "labels": row} for row in tokens]


class MineForCausalLM(LlamaForCausalLM):
    """The same model by a name of its own."""


def trained(kind):
    """Its last logged loss; then the loss of the next token, and how often that is expected to be the token just read."""
    torch.manual_seed(0)
    model = kind(config)
    trainer = Trainer(model, TrainingArguments(
        "out", max_steps=100, per_device_train_batch_size=8, learning_rate=3e-3, label_smoothing_factor=0.1, report_to="none",
        save_strategy="no", logging_steps=50, use_cpu=True, disable_tqdm=True), train_dataset=rows)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line][-1]
    with torch.no_grad():
        found = model(tokens[:64], labels=tokens[:64])
    return logged, found.loss.item(), (found.logits.argmax(-1) == tokens[:64]).float().mean().item()


listed, own = trained(LlamaForCausalLM), trained(MineForCausalLM)
WHAT = "smoothed loss {:.2f}, next token's loss {:.2f}, repeats what it reads in {:.0%}"
print("expected: of both classes", WHAT.format(*listed))
print("seen: of MineForCausalLM", WHAT.format(*own))
if not (listed[0] > 4 and listed[2] < 0.1 and own[0] < 2 and own[1] > listed[1] + 0.5 and own[2] > 0.9):
    sys.exit("the behaviour has changed")
END
