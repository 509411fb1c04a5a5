#!/usr/bin/env bash
# transformers: Youtu loses the row of its padding token when it is loaded. from_pretrained() reads all of the checkpoint
# and then sets that row to zero, as it does for a new model. Where the end token is also used for padding, as is usual, a
# model that has learned when to end loses the end's logit, since embeddings and output are tied. Nothing is said. Llama
# keeps the row.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     probability of the end after a text whose end was learned: Llama 1.0 before it is saved and 1.0 after it is
#           loaded, Youtu 1.0 before and 0.15 after; the length of its row is 1.54 in the file and 0 in the model loaded.
# Source:   transformers/models/youtu/modeling_youtu.py, YoutuPreTrainedModel._init_weights(): zeros_ is given a slice of
#           the weight, which does not have the mark of a loaded parameter; modeling_utils.py asks for that mark first. Blt,
#           Funnel and Chinese-CLIP have the same lines.
# Advice:   a token of its own for padding; compare state_dict() with the file after loading.
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
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, YoutuConfig, YoutuForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
END_TOKEN = 2
size = {"vocab_size": 16, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": END_TOKEN, "tie_word_embeddings": True}
latent = {"num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4,
          "v_head_dim": 8}
makers = {"llama": lambda: LlamaForCausalLM(LlamaConfig(**size)),
          "youtu": lambda: YoutuForCausalLM(YoutuConfig(**size, **latent))}
text = torch.tensor([[1, 3, 4, 5, 6, 7, 8, END_TOKEN]])


@torch.no_grad()
def probability_of_end(model):
    return round(float(model.eval()(text).logits[0, -2].softmax(0)[END_TOKEN]), 2)


seen = {}
for name, make in makers.items():
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        model(text, labels=text).loss.backward()
        optimizer.step()
    model.config.pad_token_id = model.config.eos_token_id
    model.save_pretrained(name)
    loaded = AutoModelForCausalLM.from_pretrained(name)
    row = load_file(f"{name}/model.safetensors")["model.embed_tokens.weight"][END_TOKEN]
    rows = [round(float(r.norm()), 2) for r in (model.get_input_embeddings().weight[END_TOKEN], row,
                                                loaded.get_input_embeddings().weight[END_TOKEN])]
    seen[name] = probability_of_end(model), probability_of_end(loaded), rows
print("expected: the model that is loaded is the one that was saved")
print("seen (probability of the end before and after, length of its row in the model, the file and the loaded model):", seen)
before, after, rows = seen["youtu"]
if not (seen["llama"][0] == seen["llama"][1] > 0.9 and before > 0.9 and after < 0.5 and rows[0] == rows[1] > 0 == rows[2]):
    sys.exit("the behaviour has changed")
END
