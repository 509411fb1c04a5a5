#!/usr/bin/env bash
# transformers: with dynamic RoPE scaling, the loss of a text depends on the texts that the model saw before. The frequencies are
# stretched for the longest text so far and stay so for shorter ones; only a text strictly shorter than the original length sets
# them back. A curve of loss by length is another one from short to long than from long to short.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     a Llama of 32 positions, dynamic scaling by 2, losses of the first 32, 40, 48, 64, 128 tokens of one text: 5.725,
#           5.569, 5.528, 5.577, 5.727 from short to long; 5.849, 5.729, 5.556, 5.508, 5.727 from long to short. Even the 32
#           tokens that fit have another loss; after a text of 31 tokens they have the first one again. "linear" and "yarn": no
#           difference.
# Source:   transformers/modeling_rope_utils.py, dynamic_frequency_update(): recomputed only if seq_len > max_seq_len_cached, set
#           back only if seq_len < original_max_seq_len. Kept for speed (issues 25104, 27226 and pull request 27227 upstream).
# Advice:   evaluate in order of length, or reset by a text of fewer tokens than max_position_embeddings before each measurement;
#           report perplexities by length with "yarn" or "linear" scaling, which do not depend on what came before.
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
from transformers import LlamaConfig, LlamaForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
torch.manual_seed(0)
text = torch.randint(3, 64, (1, 128))
lengths = [32, 40, 48, 64, 128]


def losses(kind, order):
    """The loss of the first tokens of the text by their number, evaluated in this order by one model."""
    rope = {"rope_type": kind, "factor": 2.0, "rope_theta": 10000.0}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = 32
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
                         num_hidden_layers=2, max_position_embeddings=32, rope_parameters=rope, pad_token_id=0,
                         bos_token_id=None, eos_token_id=None)
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() >= 2:
            torch.nn.init.normal_(parameter, 0, 0.3)
    with torch.no_grad():
        return {n: round(float(model(text[:, :n], labels=text[:, :n], use_cache=False).loss), 3) for n in order}


def by_length(seen):
    return [seen[n] for n in lengths]


up = {kind: by_length(losses(kind, lengths)) for kind in ("dynamic", "linear", "yarn")}
down = {kind: by_length(losses(kind, lengths[::-1])) for kind in up}
reset = losses("dynamic", [128, 31, 32])[32]
print("expected: the loss of a text does not depend on the texts before it")
print("seen: lengths", lengths)
for kind in up:
    print("     ", kind, "from short to long", up[kind], "; from long to short", down[kind])
print("      dynamic, 32 tokens after 128 and 31:", reset)
if not (up["linear"] == down["linear"] and up["yarn"] == down["yarn"] and up["dynamic"][-1] == down["dynamic"][-1]
        and all(abs(a - b) > 0.01 for a, b in zip(up["dynamic"][:-1], down["dynamic"])) and reset == up["dynamic"][0]):
    sys.exit("the behaviour has changed")
END
