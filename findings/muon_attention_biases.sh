#!/usr/bin/env bash
# Optax, Keras: Muon is for matrices, and both libraries take the parameters of two dimensions for those. In the attention layers
# of Flax and Keras the projections have three (model, heads, size of a head), their biases two. So Muon orthogonalises the
# biases, and Adam trains the weights, at a tenth of the learning rate in Keras. PyTorch's attention has matrices.
#
# Versions: optax 0.2.8, flax 0.12.8, keras 3.15.1, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     query, key, value: kernels by Adam, biases by Muon, in both; out: kernel by Adam. Optax's Muon also takes embeddings.
# Source:   optax, contrib/_muon.py: 'muon' if x.ndim == 2 else 'adam'; keras, optimizers/muon.py: _should_use_adamw tests
#           len(variable.shape) != 2.
# Advice:   Optax: pass muon_weight_dimension_numbers, with MuonDimensionNumbers((0,), (1, 2)) for query, key and value,
#           ((0, 1), (2,)) for out, and None for the rest. Keras: projections by Dense and a reshape, and exclude_layers=["bias"].
#           Compare mixers by Muon only after a look at what it trains.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 flax==0.12.8 optax==0.2.8 keras==3.15.1
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import flax.linen as nn
import jax
import jax.numpy as jnp
import keras
import numpy
import optax

print("versions:", *(f"{name} {version(name)}" for name in ("optax", "flax", "keras", "jax", "numpy")))


def trained_by(change):
    """Adam's first step has one size in all entries, a matrix that Muon orthogonalised has not."""
    sizes = numpy.abs(numpy.asarray(change))
    return "Adam" if sizes.max() - sizes.min() < 0.01 * sizes.max() else "Muon"


def gradient(shape):
    return numpy.random.default_rng(0).uniform(1, 2, shape).astype("float32")


x = jnp.ones((1, 5, 8))
params = nn.MultiHeadDotProductAttention(num_heads=2).init(jax.random.key(0), x, x)["params"]
gradients = jax.tree.map(lambda p: gradient(p.shape), params)
optimizer = optax.contrib.muon(0.01)
updates = optimizer.update(gradients, optimizer.init(params), params)[0]
by_optax = {f"{name} {part}": trained_by(u) for name, parts in updates.items() for part, u in parts.items() if u.ndim > 1}

layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
layer.build(x.shape, x.shape)
variables = [v for v in layer.trainable_variables if len(v.shape) > 1]
before = [v.numpy() for v in variables]
keras.optimizers.Muon(0.01, weight_decay=None, adam_weight_decay=None).apply([gradient(v.shape) for v in variables], variables)
by_keras = {" ".join(v.path.split("/")[-2:]): trained_by(v.numpy() - b) for v, b in zip(variables, before)}

print("expected: Muon for the kernels of query, key, value and out, none for the biases")
print("seen: optax", by_optax)
print("      keras", by_keras)
for seen in (by_optax, by_keras):
    if any((what == "Muon") != ("bias" in name) for name, what in seen.items()) or len(seen) != 7:
        sys.exit("the behaviour has changed")
END
