#!/usr/bin/env bash
# Optax: inject_hyperparams takes a mask that is a function for a schedule. It calls the mask with the count of steps instead of
# the parameters; the usual mask, true for what has more than one dimension, answers False for a number, and that switches weight
# decay off for all parameters. No error, no warning: adamw without weight decay.
#
# Versions: optax 0.2.8, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     first step without gradients, learning rate 0.1, weight decay 0.5: the kernel moves by -0.05, injected by 0.
# Source:   optax, schedules/_inject.py: every callable argument is a schedule unless static_args names it, which the text says;
#           its result, False, is a valid mask of the whole tree.
# Advice:   inject_hyperparams(optax.adamw, static_args="mask"), or give the mask as a tree; test a step without gradients.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 optax==0.2.8
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import optax

print("versions:", *(f"{name} {version(name)}" for name in ("optax", "jax", "numpy")))
params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
gradients = jax.tree.map(jnp.zeros_like, params)


def is_matrix(tree):
    return jax.tree.map(lambda leaf: leaf.ndim > 1, tree)


def decay(make, mask=is_matrix):
    """What weight decay alone does to the first number of the kernel and of the bias."""
    optimizer = make(learning_rate=0.1, weight_decay=0.5, mask=mask)
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    return tuple(round(float(updates[name].ravel()[0]), 6) + 0.0 for name in ("kernel", "bias"))


plain, injected = decay(optax.adamw), decay(optax.inject_hyperparams(optax.adamw))
static = decay(optax.inject_hyperparams(optax.adamw, static_args="mask"))
tree = decay(optax.inject_hyperparams(optax.adamw), is_matrix(params))
print("expected: the kernel moves by -0.1 * 0.5 = -0.05, the bias by 0, with injected hyperparameters, too")
print("seen: (kernel, bias): adamw", plain, "injected", injected, "; with static_args", static, "with a tree as mask", tree)
if not plain == static == tree == (-0.05, 0) or injected != (0, 0):
    sys.exit("the behaviour has changed")
END
