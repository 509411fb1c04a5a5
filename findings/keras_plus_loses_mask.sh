#!/usr/bin/env bash
# Keras 3: the mask of Embedding(mask_zero=True) does not survive arithmetic. With x = x + layer(x), the usual way to write a
# residual block, the layers after it take padding for text: attention, recurrent layers and pooling. layers.Add()([x, y]) keeps
# the mask, but only if both have one, which learned positions have not. Nothing is said in either case.
#
# Versions: keras 3.15.1, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     difference of a text's outputs with and without two padding tokens, for attention, LSTM and pooling: by layers.Add 0;
#           by + 0.01 to 0.02; by layers.Add with positions 0.02 to 0.03. No warning.
# Source:   keras, ops/operation.py: operations that are not layers know nothing of masks; layers/merging/base_merge.py: no mask
#           if one of the inputs has none; layers warn if they lose a mask, operations do not.
# Advice:   layers.Add for residual sums, positions by a layer with supports_masking = True, or masks by hand; test that padding
#           does not change the outputs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 keras==3.15.1
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'END'
import sys
import warnings
from importlib.metadata import version

import keras
import numpy
from keras import layers

print("versions:", *(f"{name} {version(name)}" for name in ("keras", "jax", "numpy")))
sums = {
    "layers.Add": lambda x, y, positions: layers.Add()([x, y]),
    "+": lambda x, y, positions: x + y,
    "layers.Add with positions": lambda x, y, positions: layers.Add()([x, positions]),
}


def effect_of_padding(add):
    """The largest difference of what attention, LSTM and pooling make of a text alone, and of the text with padding."""
    keras.utils.set_random_seed(0)
    tokens = keras.Input((None,), dtype="int32")
    x = layers.Embedding(10, 8, mask_zero=True)(tokens)
    x = add(x, layers.Dense(8)(x), layers.Embedding(10, 8)(keras.ops.cumsum(keras.ops.ones_like(tokens), axis=1)))
    attention = layers.MultiHeadAttention(2, 4)(x, x)[:, 0]
    model = keras.Model(tokens, [attention, layers.LSTM(8)(x), layers.GlobalAveragePooling1D()(x)])
    text, padded = numpy.array([[1, 2, 3]]), numpy.array([[1, 2, 3, 0, 0]])
    pairs = zip(model.predict(text, verbose=0), model.predict(padded, verbose=0))
    return [round(float(numpy.abs(a - b).max()), 4) for a, b in pairs]


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    seen = {name: effect_of_padding(add) for name, add in sums.items()}
print("expected: padding that is masked changes nothing, however the sum is written, or a warning")
print("seen: effect on attention, LSTM, pooling:", seen, "; warnings of masks:", sum("mask" in str(w.message) for w in caught))
lost = all(effect > 1e-3 for name in ("+", "layers.Add with positions") for effect in seen[name])
if max(seen["layers.Add"]) > 1e-5 or not lost or any("mask" in str(w.message) for w in caught):
    sys.exit("the behaviour has changed")
END
