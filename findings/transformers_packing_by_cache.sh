#!/usr/bin/env bash
# transformers: texts that stand in one row, divided by position_ids that begin again at 0 (DataCollatorWithFlattening), are kept
# apart only if the model makes no cache. use_cache is on by default, in train(), too, and then each text attends to those before
# it: the loss of an own training or evaluation loop is another one, without a word.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     a random Llama, texts of 7 and 6 tokens, largest difference of the second's logits from those of it alone, in standard
#           deviations: 4.1 by default, 1e-6 with use_cache=False; loss 4.974 and 5.065, of the texts alone 5.065.
# Source:   transformers/masking_utils.py, _preprocess_mask_arguments(): packed texts are looked for only if past_key_values is None;
#           LlamaModel.forward() makes an empty DynamicCache before. Trainer sets config.use_cache = False, and so is right.
# Advice:   use_cache=False in every call without generation, or model.config.use_cache = False, as Trainer does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from transformers import DataCollatorWithFlattening, LlamaConfig, LlamaForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 2,
        "num_key_value_heads": 2}
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(**size)).train()
for parameter in model.parameters():
    if parameter.dim() >= 2:
        torch.nn.init.normal_(parameter, 0, 0.2)
texts = [torch.randint(3, 64, (count,)).tolist() for count in (7, 6)]
row = DataCollatorWithFlattening()([{"input_ids": text} for text in texts])
row = {name: row[name] for name in ("input_ids", "position_ids", "labels")}
with torch.no_grad():
    alone = model(torch.tensor(texts[1:])).logits
    losses = [float(model(torch.tensor([text]), labels=torch.tensor([text])).loss) for text in texts]
    packed = {"default": model(**row), "use_cache=False": model(**row, use_cache=False)}
expected = (6 * losses[0] + 5 * losses[1]) / 11
seen = {name: (float((out.logits[:, 7:] - alone).abs().max() / alone.std()), float(out.loss)) for name, out in packed.items()}
print("expected: the second text has its own logits, and the loss is that of the texts alone:", round(expected, 4))
print("seen (difference of the logits, loss):", {name: (f"{gap:.2g}", round(loss, 4)) for name, (gap, loss) in seen.items()})
if not (seen["default"][0] > 0.5 and abs(seen["default"][1] - expected) > 0.01 and seen["use_cache=False"][0] < 1e-4
        and abs(seen["use_cache=False"][1] - expected) < 1e-4):
    sys.exit("the behaviour has changed")
END
