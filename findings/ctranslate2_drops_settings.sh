#!/usr/bin/env bash
# CTranslate2: a converted model may be another one. What the converter does not know of a configuration, such as Llama's
# activation, GPT-2's epsilon and scaling of attention, or Gemma-2's soft caps and windows, is left out without a word; the
# usual values count.
#
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     small random models, largest difference of logits (up to 3, 4 and 5) between transformers and CTranslate2: as by
#           default 0; Llama with GELU 0.57, with ReLU 1.17, with RoPE stretched from 16 positions 1.96; GPT-2 with an epsilon
#           of 0.1 0.45, with unscaled attention 0.33; Gemma-2 with windows, another scalar or soft caps 4.5 to 5.9.
#           CTranslate2's logits are those of the same weights with usual settings.
# Source:   ctranslate2/converters/transformers.py: LlamaLoader always sets SWISH and no original length, GPT2Loader no epsilon
#           and no scaling, Gemma2Loader no caps, no windows, no query_pre_attn_scalar.
# Advice:   compare logits of one batch with the trained model after each conversion, forward_batch() gives them; a search's own
#           variant of a known architecture is not what is converted just because conversion succeeds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 transformers==5.24.0 \
    ctranslate2==4.8.5
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
import tempfile
from importlib.metadata import version

import ctranslate2
import numpy
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models
from transformers import (Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          PreTrainedTokenizerFast)

print("versions:", *(f"{name} {version(name)}" for name in ("ctranslate2", "transformers", "torch", "numpy")))
WORDS = 64
words = Tokenizer(models.WordLevel({"<unk>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, WORDS)}}, unk_token="<unk>"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
text = numpy.random.default_rng(0).integers(4, WORDS, 40)
shape = dict(vocab_size=WORDS, bos_token_id=1, eos_token_id=2)
llama = shape | dict(hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
                     max_position_embeddings=128, rope_parameters=dict(rope_type="default", rope_theta=500.0))
gemma = llama | dict(head_dim=8, pad_token_id=0, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
gpt2 = shape | dict(n_embd=32, n_layer=2, n_head=4, n_positions=128)
stretched = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                 original_max_position_embeddings=16)


def logits(kind, configuration):
    """Logits of the text, by transformers and by CTranslate2, of a model with the same random weights each time."""
    torch.manual_seed(0)
    model = kind(configuration).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, *((0, 0.15) if parameter.dim() >= 2 else (0.8, 0.3)))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        converted = TransformersConverter(folder).convert(folder + "/converted")
        generator = ctranslate2.Generator(converted, device="cpu")
        return (model(torch.tensor(text[None])).logits.numpy(),
                numpy.array(generator.forward_batch([[f"w{i}" for i in text]])))


def apart(one, other):
    return float(abs(one - other).max())


cases = {"Llama": (LlamaForCausalLM, LlamaConfig, llama, [
             ("GELU", dict(hidden_act="gelu")), ("ReLU", dict(hidden_act="relu")),
             ("stretched", dict(rope_parameters=stretched))]),
         "GPT-2": (GPT2LMHeadModel, GPT2Config, gpt2, [
             ("epsilon", dict(layer_norm_epsilon=0.1)), ("unscaled", dict(scale_attn_weights=False))]),
         "Gemma-2": (Gemma2ForCausalLM, Gemma2Config, gemma | dict(query_pre_attn_scalar=8, sliding_window=64,
                                                                   attn_logit_softcapping=None, final_logit_softcapping=None), [
             ("windows", dict(sliding_window=8)), ("scalar", dict(query_pre_attn_scalar=64)),
             ("caps", dict(attn_logit_softcapping=1.0, final_logit_softcapping=3.0))])}
print("expected: no difference to transformers' logits, or that conversion refuses the model")
usual, differ, same = [], [], []
for name, (kind, configuration, settings, changes) in cases.items():
    ours, theirs = logits(kind, configuration(**settings))
    usual.append(apart(ours, theirs))
    print(f"seen: {name}, usual settings, logits up to {abs(ours).max():.1f}: difference {usual[-1]:.2f}")
    for change, changed in changes:
        want, got = logits(kind, configuration(**settings | changed))
        differ.append(apart(want, got))
        same.append(apart(got, theirs))
        print(f"seen: {name}, {change}: difference {differ[-1]:.2f}, to its own logits with usual settings {same[-1]:.2f}")
if not (max(usual) < 0.001 and min(differ) > 0.1 and max(same) < 0.001):
    sys.exit("the behaviour has changed")
END
