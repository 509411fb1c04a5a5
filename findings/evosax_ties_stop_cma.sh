#!/usr/bin/env bash
# evosax: where candidates tie, CMA-ES gives each of them the weight of their mean rank, rounded down. The weights no longer add
# up to 1, and the step size falls as if the search had converged. On objectives with plateaus, such as an accuracy of few
# examples, a rounded latency or rounded architectures, the search stops where it began; pycma's goes on.
#
# Versions: evosax 0.3.2, jax 0.10.2, cma 4.5.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     positive weights of 10 tied candidates add up to 0.255; after 100 generations on a staircase the step size is near
#           1e-10 in 5 of 5 runs, and the error that of the start. With ranks by order and by pycma it is 0.07 to 0.5, and most
#           runs end lower.
# Source:   evosax, core/fitness_shaping.py: weights_fitness_shaping_fn indexes the weights with rankdata(), whose ties share the
#           mean rank, cut to an integer. Weights of one mid rank are near 0, so the paths of CMA-ES shrink.
# Advice:   pass a fitness_shaping_fn that ranks by argsort of argsort, or add small noise to the fitness; record the step size.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 evosax==0.3.2 cma==4.5.0
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import cma
import jax
import jax.numpy as jnp
import numpy
from evosax.algorithms import CMA_ES
from evosax.core.fitness_shaping import weights_fitness_shaping_fn

print("versions:", *(f"{name} {version(name)}" for name in ("evosax", "jax", "cma", "numpy")))
size, dims, generations, seeds = 10, 8, 100, range(1, 6)


def staircase(x):
    """Flat steps around 0; the start, 3 in each of 8 dimensions, is on the step of value 3."""
    return jnp.round(jnp.sum(x**2, -1) / 24)


def by_evosax(seed, shaping):
    search = CMA_ES(population_size=size, solution=jnp.zeros(dims), fitness_shaping_fn=shaping)
    params, key = search.default_params.replace(std_init=jnp.asarray(0.3)), jax.random.key(seed)
    state = search.init(key, jnp.full(dims, 3.0), params)
    for ask, tell in jax.random.split(key, (generations, 2)):
        x, state = search.ask(ask, state, params)
        state, _ = search.tell(tell, x, staircase(x), state, params)
    return float(state.std), float(state.best_fitness)


def by_pycma(seed):
    search = cma.CMAEvolutionStrategy([3.0] * dims, 0.3, {"popsize": size, "seed": seed, "verbose": -9, "tolflatfitness": 100})
    for _ in range(generations):
        x = search.ask()
        search.tell(x, staircase(numpy.array(x)).tolist())
    return search.sigma, search.best.f


weights = weights_fitness_shaping_fn(None, jnp.zeros(size), None, CMA_ES(size, jnp.zeros(dims)).default_params)
total = float(weights[weights > 0].sum())
by_order = lambda _, fitness, __, params: params.weights[jnp.argsort(jnp.argsort(fitness))]
shapings = {"evosax": weights_fitness_shaping_fn, "evosax, ranks by order": by_order}
runs = {name: [by_evosax(seed, shaping) for seed in seeds] for name, shaping in shapings.items()}
runs["pycma"] = [by_pycma(seed) for seed in seeds]
print("expected: positive weights that add up to 1; ties leave the step size near where it was")
print(f"seen: positive weights of {size} ties add up to {total:.3f}; (step size, best error) of each run:")
for name, results in runs.items():
    print(f"  {name}:", *(f"({step:.1e}, {error:.0f})" for step, error in results))
shrunk = all(step < 1e-6 and error == 3 for step, error in runs["evosax"])
if total > 0.5 or not shrunk or any(step < 1e-2 for name in list(runs)[1:] for step, _ in runs[name]):
    sys.exit("the behaviour has changed")
END
