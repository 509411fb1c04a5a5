#!/usr/bin/env bash
# mlx-lm: with max_kv_size, the four first tokens are kept in the cache for good, as attention sinks. Only tokens that are
# given one at a time see them. Within a longer piece, each further token sees one of them less, and in a prompt of one
# piece those beyond the window see none, so that the prompt is read by one model and its continuation by another, and the
# logits of a text depend on the size of the pieces.
#
# Versions: mlx-lm 0.32.2, mlx 0.32.4, transformers 5.24.0, numpy 2.4.6, on the CPU of Linux; as of 2026-11-28.
# Seen:     one layer, 48 tokens, max_kv_size 16, last 24 tokens: pieces of 8, 12 and 48 change the logits by 2.9 to 3.1
#           standard deviations from single tokens; other first tokens change them by 2.7 one by one, by 0 in one piece.
#           Without max_kv_size the pieces change nothing, and other first tokens 1.7.
# Source:   mlx_lm/models/cache.py, RotatingKVCache.make_mask(): for more than one token it is create_causal_mask() with the
#           window, which knows nothing of keep; for one token there is no mask. Issue 1631 of mlx-lm is about other places
#           where the kept tokens are dropped.
# Advice:   prefill_step_size=1 where sinks matter, or a max_kv_size that is longer than the prompt. Models with their own
#           make_cache(), Llama among them, ignore max_kv_size.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 'mlx[cpu]==0.32.4' mlx-lm==0.32.2 \
    transformers==5.24.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.models.qwen2 import Model, ModelArgs

print("versions:", *(f"{name} {version(name)}" for name in ("mlx-lm", "mlx", "transformers", "numpy")))
LENGTH, WINDOW = 48, 16
mx.random.seed(0)
model = Model(ModelArgs(model_type="qwen2", hidden_size=32, num_hidden_layers=1, intermediate_size=64, num_attention_heads=4,
                        num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=64, tie_word_embeddings=False))
model.update(tree_map(lambda p: mx.random.normal(p.shape) * 0.2 if p.ndim > 1 else p, model.parameters()))
text = mx.random.randint(3, 64, (1, LENGTH))


def logits(piece, text=text, **options):
    cache = make_prompt_cache(model, **options)
    return mx.concatenate([model(text[:, start:start + piece], cache=cache) for start in range(0, LENGTH, piece)], axis=1)


def change(a, b):
    """The largest change of the logits of the last 24 tokens, in standard deviations."""
    return round(float(mx.abs(a - b)[:, -24:].max() / mx.std(a)), 2)


other = mx.concatenate([(text[:, :4] - 3 + 30) % 61 + 3, text[:, 4:]], axis=1)
seen = {}
for name, options in {"whole cache": {}, f"max_kv_size={WINDOW}": {"max_kv_size": WINDOW}}.items():
    steps = logits(1, **options)
    seen[name] = {}
    for piece in (1, 8, 12, LENGTH):
        out = logits(piece, **options)
        seen[name][piece] = change(steps, out), change(out, logits(piece, other, **options))
print("expected: the same logits by any pieces, and the first four tokens matter to later ones")
print("seen, by size of the pieces (change from pieces of one token, change by other first tokens):", seen)
whole, limited = seen.values()
if not (all(pieces < 0.01 < first for pieces, first in whole.values()) and limited[1][1] > 0.1
        and all(limited[piece][0] > 0.1 for piece in (8, 12, LENGTH)) and limited[LENGTH][1] == 0):
    sys.exit("the behaviour has changed")
END
