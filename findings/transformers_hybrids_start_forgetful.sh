#!/usr/bin/env bash
# transformers: four hybrids start training with state space layers that forget within a few tokens. Mamba and Mamba-2 draw their
# step sizes between 0.001 and 0.1, so that a new layer remembers tens to hundreds of tokens. Bamba, Granite's hybrid and
# Falcon-H1 begin with softplus(1) = 1.3, Jamba with softplus(0) = 0.7. Trained from a configuration, the same layer differs by
# its host.
#
# Versions: transformers 5.24.0, torch 2.15.0, numpy 2.4.6, PyTorch implementation on the CPU; as of 2026-11-28.
# Seen:     influence of a token on a new layer's output 15 and 30 tokens later, as parts of that 5 tokens later: Mamba 0.5 and
#           0.2, Mamba-2 0.8 and 0.3, Zamba2 0.2 and 0.1, Nemotron-H 0.4 and 0.1; Jamba 9e-4 and 4e-8, Bamba 7e-6 and 1e-14,
#           Granite's hybrid 6e-7 and 4e-15, Falcon-H1 1e-6 and 0.
# Source:   transformers/models/{bamba,granitemoehybrid,falcon_h1}: _init_weights() sets dt_bias to 1; jamba: dt_proj is
#           initialised as any linear layer, its bias as 0; mamba, mamba2, zamba2 and nemotron_h invert softplus for a random
#           step. fla had the same start and changed it (pull request 739 there, with learning curves).
# Advice:   set dt_bias (Jamba: dt_proj.bias) of a new model to dt + log(-expm1(-dt)), dt log-uniform in 0.001 to 0.1, before
#           training; do not compare hybrids with Mamba-2 from scratch otherwise. Downloaded weights are not concerned.
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

torch.set_num_threads(1)
print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "torch", "numpy")))
size = {"vocab_size": 64, "hidden_size": 64, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
hybrid = {**size, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
mamba = {"mamba_n_heads": 16, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 8}
layers = {
    "mamba": lambda: t.MambaModel(t.MambaConfig(**size, num_hidden_layers=1)).layers[0].mixer,
    "mamba2": lambda: t.Mamba2Model(t.Mamba2Config(**size, num_hidden_layers=1, num_heads=16, head_dim=8, state_size=8,
                                                   n_groups=1)).layers[0].mixer,
    "zamba2": lambda: t.Zamba2Model(t.Zamba2Config(**hybrid, num_hidden_layers=2, layers_block_type=["mamba", "hybrid"],
                                                   n_mamba_heads=16, mamba_headdim=8, mamba_ngroups=1,
                                                   mamba_d_state=8)).layers[0].mamba,
    "nemotron_h": lambda: t.NemotronHModel(t.NemotronHConfig(
        **hybrid, num_hidden_layers=2, layer_types=["linear_attention", "full_attention"], mamba_num_heads=16, mamba_head_dim=8,
        n_groups=1, ssm_state_size=8)).layers[0].mixer,
    "jamba": lambda: t.JambaModel(t.JambaConfig(**hybrid, num_hidden_layers=1, num_experts=1)).layers[0].mamba,
    "bamba": lambda: t.BambaModel(t.BambaConfig(**hybrid, **mamba, num_hidden_layers=1)).layers[0].mamba,
    "granite": lambda: t.GraniteMoeHybridModel(t.GraniteMoeHybridConfig(
        **hybrid, **mamba, num_hidden_layers=1, layer_types=["linear_attention"])).layers[0].mamba,
    "falcon_h1": lambda: t.FalconH1Model(t.FalconH1Config(**hybrid, **mamba, num_hidden_layers=1,
                                                          mamba_d_ssm=128)).layers[0].mamba,
}


def kept(make):
    """The influence of a token 15 and 30 tokens ago on the layer's output, as parts of that of one 5 tokens ago; 5 layers."""
    sizes = torch.zeros(64)
    for seed in range(5):
        torch.manual_seed(seed)
        layer = make().eval()
        x = torch.randn(1, 64, 64, requires_grad=True)
        y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        sizes += torch.autograd.grad((y[0, -1] * torch.randn(64)).sum(), x)[0][0].norm(dim=-1)
    return [float(sizes[-1 - ago] / sizes[-6]) for ago in (15, 30)]


seen = {name: kept(make) for name, make in layers.items()}
print("expected: one layer, one memory: the hybrids' new layers keep as much as those of Mamba and Mamba-2")
print("seen: kept of the influence 5 tokens ago after 10 and 25 more:")
for name, parts in seen.items():
    print("     ", name, " ".join(f"{part:.0e}" for part in parts))
forgets = ("jamba", "bamba", "granite", "falcon_h1")
if not all((parts[1] < 1e-5) if name in forgets else (parts[1] > 1e-2) for name, parts in seen.items()):
    sys.exit("the behaviour has changed")
END
