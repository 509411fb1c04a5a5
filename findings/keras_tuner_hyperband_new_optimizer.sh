#!/usr/bin/env bash
# KerasTuner: a model that Hyperband promotes goes on with its weights and its number of epochs, but with a new optimizer. The
# schedule of its learning rate begins again at each rung, warm-up and all, and Adam's moments are lost. A cosine schedule for all
# epochs never comes to its end, except in the bracket without promotions, with whose models the promoted ones are compared.
#
# Versions: keras-tuner 1.4.8, keras 3.15.1, jax 0.10.2, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     9 epochs of 10 steps, factor 3, cosine from 0.01 to 0 over 90 steps. Steps of the optimizer at the beginning of the
#           last epoch: 80 in the bracket without promotions, 50 in the others; learning rate then 0.0003 and 0.0041. A model
#           promoted at epochs 1 and 3 begins with step 0 and rate 0.01 three times.
# Source:   keras_tuner/src/tuners/hyperband.py, Hyperband._build_hypermodel(): load_weights() into an optimizer that is not yet
#           built; Keras skips its variables, with a warning of their number.
# Advice:   schedules by epoch (keras.callbacks.LearningRateScheduler), which see initial_epoch; model.optimizer.build(
#           model.trainable_variables) in the model's function, after compile(), so that the variables are loaded.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 keras==3.15.1 six==1.17.0 keras-tuner==1.4.8
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - "$folder" <<'END'
import sys
from importlib.metadata import version

import keras
import keras_tuner
import numpy

print("versions:", *(f"{name} {version(name)}" for name in ("keras-tuner", "keras", "jax", "numpy")))
inputs = numpy.random.default_rng(0).normal(size=(40, 4)).astype("float32")
targets = inputs @ numpy.array([[1], [2], [3], [4]], "float32")


class Watch(keras.callbacks.Callback):
    """Notes the epoch, the optimizer's steps and the learning rate at the beginning of each epoch."""

    def __deepcopy__(self, memory):
        return self

    def on_epoch_begin(self, epoch, logs=None):
        optimizer = self.model.optimizer
        begun.append((epoch, int(optimizer.iterations.value), round(float(optimizer.learning_rate), 4)))


def model_of(built):
    """A linear model and Adam with a cosine schedule, with its variables from the beginning or not."""

    def build(hp):
        hp.Float("unused", 0, 1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 90)), "mse")
        if built:
            model.optimizer.build(model.trainable_variables)
        return model

    return build


def epochs_seen(built):
    """What is noted in all trials of a search."""
    keras.utils.set_random_seed(0)
    begun.clear()
    tuner = keras_tuner.Hyperband(model_of(built), objective="loss", max_epochs=9, factor=3, seed=0,
                                  directory=sys.argv[1], project_name=str(built))
    tuner.search(inputs, targets, batch_size=4, verbose=0, callbacks=[Watch()])
    return list(begun)


begun = []
seen = epochs_seen(False)
fixed = epochs_seen(True)
last = sorted({(steps, rate) for epoch, steps, rate in seen if epoch == 8})
promoted = sorted({(epoch, steps, rate) for epoch, steps, rate in seen if epoch in (1, 3) and steps != 10 * epoch})
print("expected: 10 steps of the optimizer for each epoch before, so 80 at the last of 9, where the rate is 0.0003")
print("seen: (steps, rate) at the last epoch", last)
print("      (epoch, steps, rate) of promoted models", promoted)
print("with an optimizer built at once:", all(steps == 10 * epoch for epoch, steps, _ in fixed))
if not (last == [(50, 0.0041), (80, 0.0003)] and promoted == [(1, 0, 0.01), (3, 0, 0.01)]
        and all(steps == 10 * epoch for epoch, steps, _ in fixed)):
    sys.exit("the behaviour has changed")
END
