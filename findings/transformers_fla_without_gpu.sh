#!/usr/bin/env bash
# transformers: once flash-linear-attention is installed, hybrids run on no machine without a GPU. Qwen3-Next and others take its Triton
# kernels in place of their own PyTorch code wherever the package can be imported, and ask for no device.
#
# Versions: transformers 5.24.0, flash-linear-attention 0.6.0, torch 2.15.0; as of 2026-11-29.
# Seen:     a Qwen3-Next of two layers gives logits on a processor; with the package RuntimeError: 0 active drivers ([]).
# Source:   transformers/integrations/hub_kernels.py, use_kernel_func_from_hub_with_fallback(): it imports the package when the model's
#           file is read. utils/import_utils.py has a check for CUDA, which is not asked here.
# Advice:   keep the package in an environment of its own; a warning recommends it: "install flash-linear-attention for the optimized
#           kernel".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0 transformers==5.24.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/fla" \
  flash-linear-attention==0.6.0 fla-core==0.6.0 einops==0.8.2
cd "$folder"
cat > hybrid.py <<'END'
import torch
from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

config = Qwen3NextConfig(
    vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
    linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=16, linear_value_head_dim=16, num_experts=2,
    num_experts_per_tok=1, moe_intermediate_size=16, shared_expert_intermediate_size=16, layer_types=["linear_attention", "full_attention"])
try:
    print("logits", tuple(Qwen3NextForCausalLM(config)(torch.arange(8)[None]).logits.shape))
except RuntimeError as error:
    print("RuntimeError:", str(error).splitlines()[0])
END
echo "versions: transformers 5.24.0, flash-linear-attention 0.6.0, torch 2.15.0"
echo "expected: logits (1, 8, 64), with the package or without"
export HF_HUB_OFFLINE=1 CUDA_VISIBLE_DEVICES=
without=$("$folder/venv/bin/python" -W ignore hybrid.py 2>log.txt) || { cat log.txt >&2; exit 1; }
beside=$(PYTHONPATH=$folder/fla "$folder/venv/bin/python" -W ignore hybrid.py 2>log.txt) || { cat log.txt >&2; exit 1; }
echo "seen: without: $without"
echo "seen: with: $beside"
[ "$without" = "logits (1, 8, 64)" ] && [[ $beside == "RuntimeError: 0 active drivers"* ]] || { echo "the behaviour has changed"; exit 1; }
