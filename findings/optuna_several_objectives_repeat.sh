#!/usr/bin/env bash
# Optuna: for several objectives, the default sampler asks again for candidates that it has already measured: of 300 trials in a
# space of 16,777,216 architectures more than a quarter are exact repeats. Since 5.0 that sampler is TPE. It draws each choice near
# those of the good trials, and does not look whether the whole was there before.
#
# Versions: optuna 5.0.0, numpy 2.4.6; as of 2026-12-01.
# Seen:     12 choices of 4 options, two objectives that are sums over choices: repeats among trials 1 to 100, 101 to 200 and 201
#           to 300: 25, 28 and 36 (seed 0), 23, 21 and 32 (seed 1); with multivariate=True 17 and 16 of 300. Of NSGA-II, the default
#           before, 69 of 1,000 are repeats.
# Source:   optuna/samplers/_tpe/sampler.py: the best of n_ei_candidates (24) draws from the good trials' distribution, for each
#           parameter alone: multivariate TPE is the default for one objective only.
# Advice:   TPESampler(multivariate=True); where trainings are deterministic, look up a trial's parameters among the finished ones
#           and tell their values. Compare samplers by numbers of different candidates.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 optuna==5.0.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import optuna

print("versions:", *(f"{name} {version(name)}" for name in ("optuna", "numpy")))
optuna.logging.set_verbosity(optuna.logging.ERROR)


def objectives(trial):
    """A sum to be small against the squared distances from the largest options."""
    options = [trial.suggest_categorical(f"layer{i}", [0, 1, 2, 3]) for i in range(12)]
    return sum(options), sum((3 - option) ** 2 for option in options)


def repeats(seed):
    """The sampler, and how many of each 100 trials were there before."""
    study = optuna.create_study(directions=["minimize", "minimize"])
    study.sampler = type(study.sampler)(seed=seed)
    study.optimize(objectives, n_trials=300)
    seen, again = set(), []
    for trial in study.trials:
        key = tuple(sorted(trial.params.items()))
        again.append(key in seen)
        seen.add(key)
    return type(study.sampler).__name__, [sum(again[i:i + 100]) for i in (0, 100, 200)]


print("expected: few of 300 candidates of a space of", f"{4**12:,}", "are there twice")
found = [repeats(seed) for seed in (0, 1)]
print("seen: repeats in each 100 trials:", *(f"{name} {counts}" for name, counts in found))
if not all(name == "TPESampler" and sum(counts) > 50 for name, counts in found):
    sys.exit("the behaviour has changed")
END
