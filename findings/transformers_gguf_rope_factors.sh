#!/usr/bin/env bash
# transformers, GGUF: a Llama 3.1, 3.2 or 3.3 read from GGUF has the positions of Llama 3.0. Its file holds the factors that
# stretch rotary frequencies in a tensor, rope_freqs.weight; that is passed over without a word, and the configuration says
# rope_type "default". Logits of long texts are far from the model's.
#
# Versions: transformers 5.24.0, accelerate 1.15.0, gguf 0.19.0, torch 2.15.0, numpy 2.4.6; as of 2026-12-01.
# Seen:     random Llama with rope_type "llama3", written as llama.cpp writes it: at tokens 9, 129, 1,025 and 2,048 logits of up
#           to 3 are wrong by up to 0.04, 0.98, 1.85 and 1.43; they are exactly those of the same weights without the factors.
# Source:   transformers/integrations/ggml.py and modeling_gguf_pytorch_utils.py: of "llama" freq_base is read, and neither
#           rope_freqs nor rope.scaling.*. llama.cpp's converter writes rope_freqs where config.json has rope_type "llama3".
# Advice:   give from_pretrained a configuration with the rope_parameters of the model's own config.json, or read the original;
#           look for rope_freqs.weight in the file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check accelerate==1.15.0 gguf==0.19.0 numpy==2.4.6 torch==2.15.0 transformers==5.24.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import copy
import sys
from importlib.metadata import version

import gguf
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "accelerate", "gguf", "torch", "numpy")))
torch.manual_seed(0)
PLAIN = {"rope_type": "default", "rope_theta": 500000.0}
config = LlamaConfig(vocab_size=64, hidden_size=64, num_hidden_layers=2, intermediate_size=64, num_attention_heads=2,
                     num_key_value_heads=2, max_position_embeddings=8192, rope_parameters={
                         **PLAIN, "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 512})
model = LlamaForCausalLM(config).eval()
for parameter in model.parameters():
    if parameter.dim() > 1:
        torch.nn.init.normal_(parameter, 0, 0.15)
unscaled = copy.deepcopy(config)
unscaled.rope_parameters = PLAIN
without = LlamaForCausalLM(unscaled).eval()
without.load_state_dict(model.state_dict())

writer = gguf.GGUFWriter("model.gguf", "llama")
writer.add_context_length(8192)
writer.add_embedding_length(64)
writer.add_block_count(2)
writer.add_feed_forward_length(64)
writer.add_head_count(2)
writer.add_head_count_kv(2)
writer.add_layer_norm_rms_eps(config.rms_norm_eps)
writer.add_rope_freq_base(500000.0)
writer.add_rope_dimension_count(32)
writer.add_vocab_size(64)
writer.add_tokenizer_model("gpt2")
writer.add_token_list([f"t{i}" for i in range(64)])
writer.add_token_types([1] * 64)
writer.add_token_merges([])
names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
for name, tensor in model.state_dict().items():
    if "q_proj" in name or "k_proj" in name:  # pairs of a rotation are neighbours in GGUF
        tensor = tensor.reshape(2, 2, 16, 64).transpose(1, 2).reshape(64, 64)
    writer.add_tensor(names.get_name(name, (".weight",)), tensor.contiguous().numpy())
writer.add_tensor("rope_freqs.weight", (without.model.rotary_emb.inv_freq / model.model.rotary_emb.inv_freq).numpy())
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

read = AutoModelForCausalLM.from_pretrained(".", gguf_file="model.gguf", dtype=torch.float32).eval()
ids = torch.randint(0, 64, (1, 2048))
with torch.no_grad():
    wanted, found, plain = (kind(ids).logits[0] for kind in (model, read, without))
wrong = {place + 1: round((found - wanted)[place].abs().max().item(), 2) for place in (8, 128, 1024, 2047)}
print("expected: logits of the model, whose frequencies the file has, or a refusal")
print("seen: largest differences by token", wrong, "rope_type", read.config.rope_parameters["rope_type"])
print("seen: differences from the model without factors", (found - plain).abs().max().item())
if not (wrong[1025] > 0.5 and (found - plain).abs().max() < 1e-4):
    sys.exit("the behaviour has changed")
END
