#!/usr/bin/env bash
# transformers: gpt-oss, AFMoE and OPT never keep packed texts apart. Trainer with DataCollatorWithFlattening (packing without
# padding) trains and evaluates them on texts that see those before them in the row, without a word; the same row is right for
# Llama. These are attention alone, and no cache is used.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, accelerate 1.15.0, on the CPU; as of 2026-11-28.
# Seen:     random models, texts of 7, 9, 6 and 10 tokens, Trainer's eval_loss in one row | one by one: gpt-oss 4.790 | 4.960,
#           AFMoE 4.730 | 4.599, OPT 4.673 | 4.694, Llama 4.988 | 4.988.
# Source:   transformers/models/gpt_oss/modeling_gpt_oss.py and models/afmoe/modeling_afmoe.py: mask_kwargs has no position_ids,
#           from which masking_utils.py would find the texts; OPT's call of create_causal_mask() has none, either.
# Advice:   compare the loss of a packed row with that of its texts alone before training; else batches with padding on the right.
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
from transformers import (AfmoeConfig, AfmoeForCausalLM, DataCollatorWithFlattening, GptOssConfig, GptOssForCausalLM, LlamaConfig,
                          LlamaForCausalLM, OPTConfig, OPTForCausalLM, PrinterCallback, Trainer, TrainingArguments)

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy", "accelerate")))
ends = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": 0,
        "bos_token_id": None, "eos_token_id": None}
size = {**ends, "intermediate_size": 64, "num_key_value_heads": 2, "head_dim": 8}
models = {
    "llama": (LlamaForCausalLM, LlamaConfig(**size)),
    "gpt_oss": (GptOssForCausalLM, GptOssConfig(**size, num_local_experts=4, num_experts_per_tok=2)),
    "afmoe": (AfmoeForCausalLM, AfmoeConfig(**size, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                            layer_types=["sliding_attention", "full_attention"])),
    "opt": (OPTForCausalLM, OPTConfig(**ends, ffn_dim=64, word_embed_proj_dim=32)),
}
torch.manual_seed(1)
texts = [{"input_ids": torch.randint(3, 64, (count,)).tolist()} for count in (7, 9, 6, 10)]


def loss_of(model, rows):
    """Trainer's loss of an evaluation with as many texts in a row, weighted by predicted tokens."""
    total = 0.0
    for start in range(0, len(texts), rows):
        part = texts[start:start + rows]
        arguments = TrainingArguments(output_dir="out", per_device_eval_batch_size=rows, report_to=[], use_cpu=True,
                                      disable_tqdm=True)
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
    seen[name] = round(loss_of(model, 4), 3), round(loss_of(model, 1), 3)
print("expected: texts kept apart have the same loss in one row as alone")
print("seen (loss in one row, alone):", seen)
if not all((abs(packed - alone) < 0.002) == (name == "llama") for name, (packed, alone) in seen.items()):
    sys.exit("the behaviour has changed")
END
