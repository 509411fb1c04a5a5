#!/usr/bin/env bash
# Optax: schedule_free keeps its sum of weights in the lowest precision of any parameter. One bfloat16 leaf, even an idle one, is
# enough: after some 300 steps the sum stops growing, and the average that is evaluated, of float32 parameters, too, becomes
# a moving one, of some 300 steps. With a float16 leaf and a learning rate of 1e-4 each weight (the rate squared) is 0:
# the evaluated parameters stay where they began, while the trained ones move.
#
# Versions: optax 0.2.8, jax 0.10.2, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     four noisy float32 parameters on their way from 0 to 1 and an idle leaf, 3000 steps: sum of weights 0.3 without or
#           with a float32 leaf, 0.031 with a bfloat16 one, 0.25 with float16 (rate 0.01). Evaluated mean at rate 1e-4: 0.049 with
#           float32, 0.085 with bfloat16, 0.000 with float16; the sequence z, which the average is of, is near 0.1 in all cases.
# Source:   optax/contrib/_schedule_free.py, schedule_free(): params_dtype = optax.tree.dtype(params, "lowest") for weight_sum
#           and max_lr; state_dtype concerns z alone. Prodigy, D-Adaptation and others choose their scalars' precision so, too.
# Advice:   float32 copies of all parameters for the optimizer (cast for the forward pass), or a mask (optax.partition) for
#           those of lower precision; look at weight_sum: it should grow by the squared rate at each step.
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


def trained(rate, dtype, steps=3000):
    """The sum of weights and the means of the evaluated and of the trained parameters."""
    optimizer = optax.contrib.schedule_free_adamw(rate)
    parameters = {"w": jnp.zeros(4)} | ({} if dtype is None else {"idle": jnp.zeros(2, dtype)})

    def step(carry, key):
        parameters, state = carry
        gradients = jax.tree.map(jnp.zeros_like, parameters)
        gradients["w"] = parameters["w"] - 1 + 3 * jax.random.normal(key, (4,))
        updates, state = optimizer.update(gradients, state, parameters)
        return (optax.apply_updates(parameters, updates), state), None

    keys = jax.random.split(jax.random.key(0), steps)
    (parameters, state), _ = jax.lax.scan(step, (parameters, optimizer.init(parameters)), keys)
    evaluated = optax.contrib.schedule_free_eval_params(state, parameters)["w"]
    return float(f"{float(state.weight_sum):.4g}"), round(float(evaluated.mean()), 3), round(float(state.z["w"].mean()), 3)


seen = {(rate, name): trained(rate, getattr(jnp, name) if name != "none" else None)
        for rate in (1e-2, 1e-4) for name in ("none", "float32", "bfloat16", "float16")}
print("expected: an idle leaf changes nothing, whatever its type")
for (rate, name), (total, evaluated, z) in seen.items():
    print(f"seen: rate {rate}, leaf {name}: sum of weights {total}, mean evaluated {evaluated}, mean of z {z}")
if not (seen[1e-2, "none"] == seen[1e-2, "float32"] and seen[1e-2, "bfloat16"][0] < 0.05 < 0.29 < seen[1e-2, "none"][0]
        and seen[1e-4, "float16"][0] == 0 and abs(seen[1e-4, "float16"][1]) < 1e-3 < 0.04 < seen[1e-4, "none"][1]):
    sys.exit("the behaviour has changed")
END
