#!/usr/bin/env bash
# KerasTuner: BayesianOptimization proposes integers above their range. hp.Int(sampling="log") without a step maps the unit
# interval to [minimum, maximum + 1), as random numbers are below 1; the acquisition's optimum often is 1, which is maximum + 1.
# If large values are good, nearly all proposals after the random ones are beyond the range, and so is the best one.
#
# Versions: keras-tuner 1.4.8, keras 3.15.1, scikit-learn 1.9.1, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     units from 32 to 512, 12 trials of a loss that falls with them, half of them random: 5 or 6 of the other 6 are 513
#           units with each of three seeds, and 513 is the best of each. With sampling="linear" or a step none is above 512.
# Source:   keras_tuner/src/engine/hyperparameters/hp_types/int_hp.py, Int.prob_to_value(): its comment says that probabilities
#           are below 1; keras_tuner/src/tuners/bayesian.py, _get_hp_bounds(): bounds [0, 1] for L-BFGS-B, with both ends.
# Advice:   step=2 or another factor with sampling="log", linear integers, or min(hp.Int(...), maximum) in the model.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 jax==0.10.2 jaxlib==0.10.2 keras==3.15.1 six==1.17.0 keras-tuner==1.4.8
KERAS_BACKEND=jax JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - "$folder" <<'END'
import sys
from importlib.metadata import version

import keras_tuner

print("versions:", *(f"{name} {version(name)}" for name in ("keras-tuner", "keras", "scikit-learn", "scipy", "numpy")))


class Tuner(keras_tuner.BayesianOptimization):
    """Searches for units and a rate without a model; larger is better, up to the end of the range."""

    def run_trial(self, trial, sampling, step, **options):
        hp = trial.hyperparameters
        units = hp.Int("units", 32, 512, sampling=sampling, step=step)
        proposed.append(units)
        return abs(hp.Float("rate", 1e-4, 1e-1, sampling="log") - 1e-2) - units / 512


def above(seed, sampling, step):
    """The number of proposals above 512, and the best one."""
    proposed.clear()
    tuner = Tuner(max_trials=12, seed=seed, directory=sys.argv[1], project_name=f"{seed} {sampling} {step}")
    tuner.search(sampling, step, verbose=0)
    return sum(units > 512 for units in proposed), tuner.get_best_hyperparameters()[0]["units"]


proposed = []
seen = {(sampling, step): [above(seed, sampling, step) for seed in range(seeds)]
        for sampling, step, seeds in (("log", None, 3), ("log", 2, 1), ("linear", None, 1))}
print("expected: no proposal above 512, the best at most 512")
for (sampling, step), counts in seen.items():
    print(f"seen with {sampling}, step {step}: (proposals of 12 above 512, best) by seed {counts}")
if not (all(count > 2 and best == 513 for count, best in seen["log", None])
        and all(count == 0 and best <= 512 for kind in (("log", 2), ("linear", None)) for count, best in seen[kind])):
    sys.exit("the behaviour has changed")
END
