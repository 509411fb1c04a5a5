#!/usr/bin/env bash
# transformers: Trainer's weight decay shrinks the time scales of recurrent layers and other vectors that no norm or bias is. It
# spares parameters by their names alone: those with "bias", "layernorm", "norm" or "_norm". Mamba's A_log and D, which its
# authors exempt, the attention sinks of gpt-oss and the last norm of Mamba, named norm_f, are decayed; Llama's norms are not.
#
# Versions: transformers 5.24.0, accelerate 1.15.0, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     decayed vectors: Mamba-2 A_log, D, norm_f.weight; Bamba A_log, D; RWKV time_decay, time_first; gpt-oss sinks; Llama
#           none. After 1,000 steps of the decay alone (AdamW, 0.01 times 0.1) Mamba-2's 16 rates of forgetting, 1 to 16, are 1 to
#           2.77, the weights of its last norm 0.37.
# Source:   transformers/trainer.py, get_decay_parameter_names(): a list of patterns, whatever the dimension; the models set no
#           mark.
# Advice:   with weight_decay > 0 give Trainer an optimizer of two groups of your own (optimizers=(optimizer, None)), decayed only
#           if p.dim() >= 2 and the name is not A_log; print the names of both groups before recurrent mixers are compared with
#           attention. Name vectors of an own model ..._norm or ..._bias.
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
import transformers as t

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "accelerate", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "pad_token_id": 0, "bos_token_id": None,
        "eos_token_id": None}
heads = {**size, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
mamba = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8}
models = {
    "llama": t.LlamaForCausalLM(t.LlamaConfig(**heads)),
    "mamba2": t.Mamba2ForCausalLM(t.Mamba2Config(**size, num_heads=16, head_dim=4, state_size=8, n_groups=1)),
    "bamba": t.BambaForCausalLM(t.BambaConfig(**heads, **mamba)),
    "rwkv": t.RwkvForCausalLM(t.RwkvConfig(**{**size, "attention_hidden_size": 32})),
    "gpt_oss": t.GptOssForCausalLM(t.GptOssConfig(**heads, head_dim=8, num_local_experts=4, num_experts_per_tok=2)),
}


def optimizer(model):
    arguments = t.TrainingArguments("out", weight_decay=0.1, learning_rate=0.01, use_cpu=True, report_to=[])
    return t.Trainer(model, arguments, train_dataset=[]).create_optimizer()


def decayed_vectors(model):
    """The last parts of the names of parameters of one dimension in the decayed group."""
    names = {id(p): name for name, p in model.named_parameters()}
    groups = optimizer(model).param_groups
    return sorted({".".join(names[id(p)].split(".")[-2:]) for group in groups if group["weight_decay"]
                   for p in group["params"] if p.dim() == 1})


seen = {name: decayed_vectors(model) for name, model in models.items()}
model = models["mamba2"]
rates = model.backbone.layers[0].mixer.A_log
before = rates.detach().exp()
steps = optimizer(model)
for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
for _ in range(1000):
    steps.step()
after = rates.detach().exp()
scale = float(model.backbone.norm_f.weight[0].detach())
print("expected: only matrices are decayed, as in Mamba's own training: []")
print("seen:", seen)
print(f"      decay alone, 1000 steps: rates {before.min():.2f} to {before.max():.2f} become {after.min():.2f} to",
      f"{after.max():.2f}, weights of the last norm {scale:.2f}")
wanted = {"mamba2": {"mixer.A_log", "mixer.D", "norm_f.weight"}, "gpt_oss": {"self_attn.sinks"}, "llama": set()}
if not (all(set(seen[name]) == parts for name, parts in wanted.items()) and after.max() < 0.5 * before.max() and scale < 0.5):
    sys.exit("the behaviour has changed")
END
