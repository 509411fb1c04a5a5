#!/usr/bin/env bash
# KerasHub: beam search does not end a beam at its end token. The beam goes on, and what follows the end counts in its score,
# until all beams of all prompts have an end token or the length is reached. The most likely text, which has ended, loses against
# less likely ones that have not; which text is returned depends on the maximal length.
#
# Versions: keras-hub 0.32.0, keras 3.15.1, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     a bigram model, two beams. "a end" has probability 0.54, the next best text that ends 0.05. It is returned with
#           length 3 alone; with 4 it is "b b b" (0.32, without an end), with 16 fifteen times b (0.09). If the model lets only
#           the end follow an end: "a end" with each length.
# Source:   keras_hub/src/samplers/beam_sampler.py, BeamSampler.__call__(): body() adds the log probability of each beam's next
#           token, whether it has ended or not; cond() stops only if every beam has an end token.
# Advice:   let next() give the end token all probability after an end token; cut texts at their first end.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 keras==3.15.1 regex tokenizers sentencepiece
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps keras-hub==0.32.0
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import jax.numpy as jnp
import numpy
from keras_hub.samplers import BeamSampler

print("versions:", *(f"{name} {version(name)}" for name in ("keras-hub", "keras", "jax", "numpy")))
start, end, a, b, e, f = range(6)
names = "start", "end", "a", "b", "e", "f"
bigrams = {start: {a: 0.6, b: 0.4}, a: {end: 0.9, a: 0.1}, b: {b: 0.9, end: 0.1}, e: {e: 0.5, f: 0.5}, f: {e: 0.5, f: 0.5}}


def search(length, after):
    """The text that is returned, cut after its first end, and its probability, if `after` follows an end."""
    table = numpy.zeros((6, 6))
    for last, following in (bigrams | {end: after}).items():
        for token, p in following.items():
            table[last, token] = p
    logits = jnp.log(jnp.array(table, "float32") + 1e-9)
    texts = numpy.full((1, length), start, "int32")
    given = numpy.zeros_like(texts, bool)
    given[:, 0] = True
    best = BeamSampler(num_beams=2)(lambda prompt, cache, index: (logits[prompt[:, index - 1]], None, cache),
                                    jnp.array(texts), index=1, mask=jnp.array(given), stop_token_ids=[end])
    text = numpy.array(best)[0].tolist()
    text = text[:text.index(end) + 1] if end in text else text
    p = numpy.prod([table[x, y] for x, y in zip(text, text[1:])])
    return " ".join(names[token] for token in text[1:]), round(float(p), 2)


open_end, fixed_end = {e: 0.5, f: 0.5}, {end: 1}
by_length = {length: search(length, open_end) for length in (3, 4, 6, 16)}
fixed = {length: search(length, fixed_end) for length in (3, 4, 6, 16)}
print("expected: 'a end' (0.54) whatever the length, as no text that ends is more likely")
print("seen, by length:", by_length)
print("      if the model lets only the end follow an end:", fixed)
if not (all(text == ("a end", 0.54) for text in fixed.values()) and by_length[3] == ("a end", 0.54)
        and all(by_length[length][0].startswith("b b") and by_length[length][1] < 0.54 for length in (4, 6, 16))):
    sys.exit("the behaviour has changed")
END
