#!/usr/bin/env bash
# transformers: the loss of a text depends on the side of its padding. Padded on the left, its first token counts as one more
# target, predicted from the padding before it, although the padding's labels are -100 and the mask is given; what stands there is
# neither a prediction nor the same for "eager" and "sdpa". Logits of the text are equal in all cases.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     random Llama, loss of a text of 6 tokens beside one of 16: alone and padded on the right 4.017 (5 targets), padded on
#           the left 4.618 with eager and 4.475 with sdpa (6 targets).
# Source:   transformers/loss/loss_utils.py, ForCausalLMLoss(): labels are shifted by one place, so that the last padding's logits
#           meet the first token; DataCollatorForLanguageModeling masks the padding's own labels alone.
# Advice:   pad on the right for training and for losses, or set the label of each row's first token to -100, too.
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
from tokenizers import Tokenizer, models
from transformers import DataCollatorForLanguageModeling, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
words = Tokenizer(models.WordLevel({"[PAD]": 0, **{f"w{i}": i for i in range(1, 64)}}, unk_token="[PAD]"))
config = LlamaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_attention_heads=4,
                     num_key_value_heads=2, pad_token_id=0, bos_token_id=None, eos_token_id=None)
torch.manual_seed(1)
short, long = torch.randint(3, 64, (6,)).tolist(), torch.randint(3, 64, (16,)).tolist()


def model_of(attention):
    """The same model with each kind of attention."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.2)
    model.set_attn_implementation(attention)
    return model


def padded_loss(side, attention):
    """The loss of the short text as a collator pads it on a side beside the long one, and the number of its targets."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", padding_side=side)
    batch = DataCollatorForLanguageModeling(tokenizer, mlm=False)([{"input_ids": ids} for ids in (short, long)])
    row = {name: rows[:1] for name, rows in batch.items()}
    with torch.no_grad():
        return round(float(model_of(attention)(**row).loss), 4), int((row["labels"][:, 1:] != -100).sum())


with torch.no_grad():
    alone = round(float(model_of("sdpa")(torch.tensor([short]), labels=torch.tensor([short])).loss), 4), len(short) - 1
seen = {(side, attention): padded_loss(side, attention) for side in ("right", "left") for attention in ("eager", "sdpa")}
print("expected: the loss of the text alone and its number of targets, with any padding:", alone)
print("seen:", seen)
if not (all(abs(seen["right", attention][0] - alone[0]) < 0.001 and abs(seen["left", attention][0] - alone[0]) > 0.01
            and seen["left", attention][1] == len(short) for attention in ("eager", "sdpa"))
        and abs(seen["left", "eager"][0] - seen["left", "sdpa"][0]) > 0.01):
    sys.exit("the behaviour has changed")
END
