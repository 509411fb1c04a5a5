#!/usr/bin/env bash
# Keras 3: an optimiser with use_ema and gradient_accumulation_steps=k takes the weights into their average at each of the k calls
# that make one update, not once per update. The average forgets k times as fast: ema_momentum 0.9 acts as 0.9 ** k. At equal
# momentum, the averaged weights of two batch sizes that are reached by accumulation are no longer the same experiment.
#
# Versions: keras 3.15.1, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     ten updates by SGD, which add 1 each: weights 10; their average 4.487, with k = 4 7.442.
# Source:   keras, backend/jax/optimizer.py (and optimizers/base_optimizer.py): the average is updated outside the condition
#           that tells updates from accumulation; the text says that the frequency of averages counts updates.
# Advice:   ema_momentum=momentum ** (1 / k), or average the weights in a callback once per update.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 keras==3.15.1
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import keras
import numpy

print("versions:", *(f"{name} {version(name)}" for name in ("keras", "jax", "numpy")))


def averaged(steps, momentum=0.9):
    """The weight after ten updates, each of `steps` equal gradients, and what it becomes at the end of the training."""
    weight = keras.Variable(numpy.float32(0))
    accumulation = steps if steps > 1 else None
    optimizer = keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=momentum, gradient_accumulation_steps=accumulation)
    for _ in range(10 * steps):
        optimizer.apply([numpy.float32(-1)], [weight])
    last = float(weight.value)
    optimizer.finalize_variable_values([weight])
    return last, round(float(weight.value), 3)


one, four = averaged(1), averaged(4)
print("expected: the same weights and the same average, since the ten updates are the same")
print("seen (weight, average): without accumulation", one, "over 4 steps", four)
if one[0] != 10 or four[0] != 10 or abs(one[1] - 4.487) > 0.01 or abs(four[1] - 7.442) > 0.01:
    sys.exit("the behaviour has changed")
END
