#!/usr/bin/env bash
# transformers: pipeline("text-generation") glues the first new word to the prompt. What was generated is decoded alone, and decoders of
# words and of SentencePiece's pieces (Metaspace, as of Llama 2) leave out the blank before a text's first word.
#
# Versions: transformers 5.24.0, tokenizers 0.23.3, torch 2.15.0; as of 2026-11-29.
# Seen:     of ids that decode as a whole to "the cat sat" the pipeline makes "the catsat", with WordLevel and with Metaspace;
#           with ByteLevel, whose tokens have their blanks, "the cat sat".
# Source:   transformers/pipelines/text_generation.py, postprocess(): it decodes sequence[prompt_token_length:] and appends that to the
#           prompt; earlier versions cut the decoded whole behind the decoded prompt.
# Advice:   decode the whole sequence; or give a tokenizer of words a decoder that puts a blank before each, the first, too:
#           Replace(Regex(r"\A(?=\S)"), " "). Scores of answers, such as exact match, strip both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.15.0 transformers==5.24.0 tokenizers==0.23.3
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

print("versions:", *(f"{name} {version(name)}" for name in ("transformers", "tokenizers", "torch")))
print("expected: the cat sat, as the ids of the whole decode to")
FORMS = {"WordLevel": (["<unk>", "the", "cat", "sat"], pre_tokenizers.WhitespaceSplit(), None),
         "Metaspace": (["<unk>", "\u2581the", "\u2581cat", "\u2581sat"], pre_tokenizers.Metaspace(), decoders.Metaspace()),
         "ByteLevel": (["<unk>", "the", "\u0120cat", "\u0120sat"], pre_tokenizers.ByteLevel(add_prefix_space=False),
                       decoders.ByteLevel())}
seen = {}
for name, (words, split, decoder) in FORMS.items():
    own = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    own.pre_tokenizer = split
    if decoder is not None:
        own.decoder = decoder
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=own)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=4, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)).eval()
    with torch.no_grad():  # whatever comes before: sat
        model.lm_head.weight.zero_()
    model.generation_config.suppress_tokens = [0, 1, 2]
    write = transformers.pipeline("text-generation", model, tokenizer=tokenizer)
    seen[name] = write("the cat", max_new_tokens=1, do_sample=False)[0]["generated_text"]
    print(f"seen: {name}: {seen[name]}; the whole: {tokenizer.decode([1, 2, 3])}")
if seen != {"WordLevel": "the catsat", "Metaspace": "the catsat", "ByteLevel": "the cat sat"}:
    sys.exit("the behaviour has changed")
END
