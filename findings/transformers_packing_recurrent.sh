#!/usr/bin/env bash
# transformers: DataCollatorWithFlattening and Trainer keep the texts of a row apart in attention, but not in the recurrent and
# convolutional layers of hybrid models: without seq_idx their state goes on into the next text, without a word. The loss of an
# evaluation then depends on which texts share a row.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, accelerate 1.15.0, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     random models, texts of 7, 9, 6 and 10 tokens, Trainer's eval_loss in one row | one by one: LFM2 4.802 | 4.727,
#           Granite's hybrid 4.656 | 4.620, OLMo's hybrid 4.967 | 4.707, Llama 4.517 | 4.517.
#           collator(return_seq_idx=True) stops with an error here: packing needs the kernels of causal-conv1d and mamba-ssm.
# Source:   transformers/data/data_collator.py: return_seq_idx is False unless given; the mixers look at seq_idx alone, the attention
#           mask is made of position_ids (masking_utils.py).
# Advice:   compare the loss of a packed row with that of its texts alone before training; batches with padding are right here.
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
from transformers import (DataCollatorWithFlattening, GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, Lfm2Config,
                          Lfm2ForCausalLM, LlamaConfig, LlamaForCausalLM, OlmoHybridConfig, OlmoHybridForCausalLM,
                          PrinterCallback, Trainer, TrainingArguments)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
        "num_key_value_heads": 2}
mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_chunk_size": 8}
delta = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16}
layers, ends = ["linear_attention", "full_attention"], {"pad_token_id": 0, "eos_token_id": 2}
models = {
    "llama": (LlamaForCausalLM, LlamaConfig(**size)),
    "lfm2": (Lfm2ForCausalLM, Lfm2Config(**size, layer_types=["conv", "full_attention"])),
    "granite": (GraniteMoeHybridForCausalLM, GraniteMoeHybridConfig(**size, **mamba, layer_types=layers)),
    "olmo": (OlmoHybridForCausalLM, OlmoHybridConfig(**size, **delta, **ends, layer_types=layers)),
}
torch.manual_seed(1)
texts = [{"input_ids": torch.randint(3, 64, (count,)).tolist()} for count in (7, 9, 6, 10)]


def loss_of(model, rows):
    """Trainer's loss of an evaluation with as many texts in a row, weighted by predicted tokens."""
    total = 0.0
    for start in range(0, len(texts), rows):
        part = texts[start:start + rows]
        arguments = TrainingArguments(output_dir="out", per_device_eval_batch_size=rows, report_to=[], use_cpu=True, disable_tqdm=True)
        trainer = Trainer(model, arguments, data_collator=DataCollatorWithFlattening(), eval_dataset=part)
        trainer.remove_callback(PrinterCallback)
        total += trainer.evaluate()["eval_loss"] * sum(len(text["input_ids"]) - 1 for text in part)
    return total / sum(len(text["input_ids"]) - 1 for text in texts)


seen = {}
for name, (make, config) in models.items():
    torch.manual_seed(0)
    model = make(config)
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    seen[name] = (round(loss_of(model, 4), 3), round(loss_of(model, 1), 3))
print("expected: texts kept apart have the same loss in one row as alone")
print("seen (loss in one row, alone):", {name: seen[name] for name in models})
if not (abs(seen["llama"][0] - seen["llama"][1]) < 0.002
        and all(abs(packed - alone) > 0.01 for name, (packed, alone) in seen.items() if name != "llama")):
    sys.exit("the behaviour has changed")
END
