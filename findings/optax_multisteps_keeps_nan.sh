#!/usr/bin/env bash
# Optax: MultiSteps never forgets a NaN. After an update its accumulator is multiplied by 0, and 0 times NaN is NaN: after one bad
# micro-batch every later mean is NaN. If zero_nans() is in the wrapped optimizer, all later gradients become 0: training goes on
# with finite weights, without a message, and learns nothing more; AdamW's decay shrinks them. With apply_if_finite() in it the
# weights stand still until its limit of errors is reached, then they are NaN.
#
# Versions: optax 0.2.8, jax 0.10.2, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     a weight on its way from 1 to 5, 400 micro-batches in steps of 4, the 9th NaN. End with zero_nans in MultiSteps: 1.85
#           (5.02 without the NaN), with AdamW 0.71 (4.22); apply_if_finite(1000) in it 1.20, apply_if_finite(5) NaN. Outside of
#           MultiSteps: 5.02 in each case, with skip_not_finite, too.
# Source:   optax/transforms/_accumulation.py, MultiSteps.update(): acc_grads = (1 - emit) * acc_grads. For zero_nans() see
#           google-deepmind/optax, issue 828 (closed).
# Advice:   should_skip_update_fn=optax.skip_not_finite, or zero_nans() and apply_if_finite() around MultiSteps; watch acc_grads.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 optax==0.2.8
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'END'
import math
import sys
from importlib.metadata import version

import jax
import jax.numpy as jnp
import optax

print("versions:", *(f"{name} {version(name)}" for name in ("optax", "jax", "numpy")))


def accumulated(optimizer, **options):
    return optax.MultiSteps(optimizer, 4, **options).gradient_transformation()


optimizers = {
    "zero_nans inside": accumulated(optax.chain(optax.zero_nans(), optax.adam(0.1))),
    "zero_nans inside, AdamW": accumulated(optax.chain(optax.zero_nans(), optax.adamw(0.1, weight_decay=0.1))),
    "apply_if_finite(1000) inside": accumulated(optax.apply_if_finite(optax.adam(0.1), 1000)),
    "apply_if_finite(5) inside": accumulated(optax.apply_if_finite(optax.adam(0.1), 5)),
    "zero_nans outside": optax.chain(optax.zero_nans(), accumulated(optax.adam(0.1))),
    "apply_if_finite(5) outside": optax.apply_if_finite(accumulated(optax.adam(0.1)), 5),
    "skip_not_finite": accumulated(optax.adam(0.1), should_skip_update_fn=optax.skip_not_finite),
}


def trained(optimizer, bad, steps=400):
    """Where a weight is that should go from 1 to 5."""

    def step(carry, index):
        weight, state = carry
        gradient = (weight - 5) * jnp.where(index == bad, jnp.nan, 1)
        update, state = optimizer.update(gradient, state, weight)
        return (optax.apply_updates(weight, update), state), None

    weight = jnp.array(1.0)
    (weight, _), _ = jax.lax.scan(step, (weight, optimizer.init(weight)), jnp.arange(steps))
    return round(float(weight), 2)


seen = {name: (trained(optimizer, -1), trained(optimizer, 8)) for name, optimizer in optimizers.items()}
print("expected: a single bad micro-batch of 400 is skipped, the weight arrives near 5 (AdamW: 4.2)")
print("seen (without NaN, with one):", seen)
lost = [with_nan for name, (_, with_nan) in seen.items() if "inside" in name]
if not (all(math.isnan(x) or x < 2 for x in lost)
        and all(abs(with_nan - 5) < 0.1 for name, (_, with_nan) in seen.items() if "inside" not in name)):
    sys.exit("the behaviour has changed")
END
