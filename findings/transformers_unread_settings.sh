#!/usr/bin/env bash
# transformers: some settings of a configuration are read by nothing. A dropout of 0.5, another epsilon or another activation can
# be set, saved and reported, and the model is bit for bit the one without it. A search over such a setting finds that it does not
# matter.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     no bit of the logits, in training mode with one seed, changes by: MPT resid_pdrop or emb_pdrop 0.5, Phi-3 embd_pdrop
#           0.5, Nemotron-H hidden_dropout 0.5, Falcon (rotary) attention_dropout 0.5, Llama 4 router_jitter_noise 0.5, BioGPT
#           layer_norm_eps 1, gpt-oss hidden_act tanh. Llama's attention_dropout, rms_norm_eps and hidden_act change them all.
# Source:   transformers/models: none of these names is read in modeling_mpt.py (which uses attn_pdrop for all), modeling_phi3.py
#           and so on; BioGPT makes nn.LayerNorm(embed_dim), with 1e-5 instead of its 1e-12; modeling_falcon.py drops attention
#           with ALiBi only, as a comment there wonders.
# Advice:   before a search over a setting, compare the logits of two models with other values of it and the same weights, in
#           training mode; give other programs the epsilon of the modules, not of the configuration.
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
import transformers as t

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
ids = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
size = {**ids, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
wide = {**size, "intermediate_size": 64, "num_key_value_heads": 2}
nemotron = {"layer_types": ["linear_attention", "full_attention"], "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 1,
            "ssm_state_size": 8, "chunk_size": 8}
experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8}
still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "activation_dropout": 0.0, "layerdrop": 0.0}


def mpt(**change):
    return t.MptForCausalLM(t.MptConfig(vocab_size=64, d_model=32, n_heads=4, n_layers=2, **change))


def phi3(**change):
    return t.Phi3ForCausalLM(t.Phi3Config(**wide, **change))


def nemotron_h(**change):
    return t.NemotronHForCausalLM(t.NemotronHConfig(**wide, **nemotron, **change))


def falcon(**change):
    return t.FalconForCausalLM(t.FalconConfig(**size, **change))


def llama4(**change):
    return t.Llama4ForCausalLM(t.Llama4TextConfig(**wide, **experts, intermediate_size_mlp=64, **change))


def biogpt(**change):
    return t.BioGptForCausalLM(t.BioGptConfig(**{**size, **still, **change}, intermediate_size=64))


def gpt_oss(**change):
    return t.GptOssForCausalLM(t.GptOssConfig(**wide, **experts, **change))


def llama(**change):
    return t.LlamaForCausalLM(t.LlamaConfig(**wide, **change))


def changes(make, **change):
    """Whether a setting changes a bit of the logits in training mode, with the same weights and seed."""
    torch.manual_seed(0)
    plain = make()
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.normal_(0, 0.2)
    changed = make(**change)
    changed.load_state_dict(plain.state_dict())
    text = torch.randint(3, 64, (2, 16), generator=torch.Generator().manual_seed(0))
    logits = []
    for model in (plain, changed):
        torch.manual_seed(1)
        with torch.no_grad():
            logits.append(model.train()(text, use_cache=False).logits)
    return not torch.equal(*logits)


unread = [(mpt, "resid_pdrop", 0.5), (mpt, "emb_pdrop", 0.5), (phi3, "embd_pdrop", 0.5), (nemotron_h, "hidden_dropout", 0.5),
          (falcon, "attention_dropout", 0.5), (llama4, "router_jitter_noise", 0.5), (biogpt, "layer_norm_eps", 1.0),
          (gpt_oss, "hidden_act", "tanh")]
read = [(llama, "attention_dropout", 0.5), (llama, "rms_norm_eps", 1.0), (llama, "hidden_act", "tanh"),
        (biogpt, "hidden_dropout_prob", 0.5)]
seen = {f"{make.__name__} {key}={value}": changes(make, **{key: value}) for make, key, value in unread + read}
print("expected: each setting changes the logits: True")
print("seen:", seen)
if list(seen.values()) != [False] * len(unread) + [True] * len(read):
    sys.exit("the behaviour has changed")
END
