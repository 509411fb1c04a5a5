#!/usr/bin/env bash
# transformers: the router loss of mixtures counts the tokens of all layers together. If each layer sends all of its tokens to one
# expert, but every layer to another one, the loss is at its minimum, that of perfect balance, and training by it leaves three of
# four experts idle. The equations of the Switch Transformer that its documentation cites are for one layer.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     four layers, each with one expert of four for all tokens: loss 1.00, the mean of the layers' own losses 3.92. After
#           200 steps of the routers on it, loss 1.00, own 2.80, still one expert for all tokens in each layer; after 200 steps on
#           the mean of the layers' own losses the most used expert has 25 to 29% of the tokens.
# Source:   transformers/models/mixtral/modeling_mixtral.py, load_balancing_loss_func(): adds up the layers' counts and
#           probabilities before it multiplies them; Jamba, OLMoE, Qwen's and Granite's mixtures have the same function. Upstream:
#           issues 28255 and 31464, closed.
# Advice:   call it for each layer, load_balancing_loss_func((logits,), ...), and train on the mean; report the use of experts by
#           layer, not the loss.
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
from transformers import MixtralConfig, MixtralForCausalLM
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
torch.set_num_threads(1)
text = torch.randint(3, 64, (16, 64), generator=torch.Generator().manual_seed(1))


def losses(model):
    """The router loss as the library computes it and the mean of the layers' own; the largest share of an expert by layer."""
    logits = model(text).router_logits
    own = sum(load_balancing_loss_func((x,), 4, 1) for x in logits) / len(logits)
    shares = [round(float(x.argmax(-1).bincount(minlength=4).max() / len(x)), 2) for x in logits]
    return load_balancing_loss_func(logits, 4, 1), own, shares


def trained(by_layer):
    """A mixture of four layers, each with an expert of its own for all tokens, before and after 200 steps on the router loss."""
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=4,
        num_local_experts=4, num_experts_per_tok=1, output_router_logits=True, pad_token_id=0, bos_token_id=None,
        eos_token_id=None))
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0, 1)[:, 0] = 10
        for i, layer in enumerate(model.model.layers):
            layer.mlp.gate.weight.normal_(0, 0.02)[i, 0] = 1
    optimizer = torch.optim.Adam([p for name, p in model.named_parameters() if ".gate." in name], lr=0.01)
    rows = []
    for i in range(201):
        pooled, own, shares = losses(model)
        if i in (0, 200):
            rows.append((round(float(pooled), 3), round(float(own), 3), shares))
        optimizer.zero_grad()
        (own if by_layer else pooled).backward()
        optimizer.step()
    return rows


(start, library), (_, by_layer) = trained(False), trained(True)
print("expected: a loss of 4, its largest value, if each layer uses one expert of four, and near 1 and 0.25 each after training")
print("seen: loss, mean of the layers' own, largest share of an expert by layer: at first", start)
print("      trained by the library's loss", library)
print("      trained by the mean of the layers' own", by_layer)
if not (start[0] < 1.05 and start[1] > 3.5 and min(library[2]) > 0.9 and max(by_layer[2]) < 0.6):
    sys.exit("the behaviour has changed")
END
