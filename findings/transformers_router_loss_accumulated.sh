#!/usr/bin/env bash
# transformers: if Trainer accumulates gradients over k batches, a mixture's router loss counts k times. The language model's loss
# is a share of all tokens of the k batches, so Trainer no longer divides by k; the router loss, added by the model to each of
# them, is a mean of its own batch. One effective batch size thus means as many models as there are ways to split it.
#
# Versions: transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     a Mixtral, one step on 16 texts at once and in 2, 4, 8 batches: the router loss has 1, 2.0, 4.0, 7.7 times its share
#           in the step of the routers, and 1, 2, 4, 8 times in the logged loss. Without router loss the steps are equal.
# Source:   transformers/trainer.py, training_step(): no division by the steps of accumulation if the model takes
#           num_items_in_batch; models/mixtral/modeling_mixtral.py: loss += router_aux_loss_coef * aux_loss. Issue 48690 upstream
#           is about the same factor by processes.
# Advice:   divide router_aux_loss_coef by gradient_accumulation_steps; compare runs only with equal ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 transformers==5.24.0 accelerate==1.15.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import MixtralConfig, MixtralForCausalLM, PrinterCallback, Trainer, TrainingArguments

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "accelerate", "torch", "numpy")))
texts = torch.randint(3, 64, (16, 32), generator=torch.Generator().manual_seed(0))
data = [{"input_ids": text, "labels": text} for text in texts]


def step(size, accumulated, coefficient):
    """One step of plain gradient descent on all 16 texts: the change of the routers, the logged loss."""
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
        num_local_experts=4, output_router_logits=True, router_aux_loss_coef=coefficient, pad_token_id=0, bos_token_id=None,
        eos_token_id=None))
    routers = [p for name, p in model.named_parameters() if ".gate." in name]
    before = torch.cat([p.detach().clone().flatten() for p in routers])
    arguments = TrainingArguments("out", per_device_train_batch_size=size, gradient_accumulation_steps=accumulated, max_steps=1,
                                  optim="sgd", learning_rate=1.0, lr_scheduler_type="constant", max_grad_norm=0, use_cpu=True,
                                  logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True)
    trainer = Trainer(model, arguments, train_dataset=data)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return torch.cat([p.detach().flatten() for p in routers]) - before, float(trainer.state.log_history[0]["loss"])


seen, plain = {}, {}
for size, accumulated in ((16, 1), (8, 2), (4, 4), (2, 8)):
    without, loss_without = step(size, accumulated, 0.0)
    change, loss = step(size, accumulated, 0.02)
    plain[accumulated] = without
    seen[accumulated] = change - without, loss - loss_without
whole, logged = seen[1]
ratios = {k: (round(float(change @ whole / (whole @ whole)), 2), round(value / logged, 2)) for k, (change, value) in seen.items()}
same = max(float((p - plain[1]).norm() / plain[1].norm()) for p in plain.values())
print("expected: 16 texts at once or in k batches give one step: share of the router loss 1 for every k")
print("seen: its share of the routers' step, of the logged loss, by k:", ratios)
print("      largest relative difference of steps without router loss:", f"{same:.0e}")
if not (same < 1e-3 and all(0.8 * k < part < 1.2 * k and 0.9 * k < loss < 1.1 * k for k, (part, loss) in ratios.items())):
    sys.exit("the behaviour has changed")
END
