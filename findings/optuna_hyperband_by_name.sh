#!/usr/bin/env bash
# Optuna: with HyperbandPruner the name of a study decides what is pruned. A trial's bracket is a hash of the study's name and the
# trial's number, and a study without a name gets a random one: with every seed fixed, two runs of one script differ in which trials
# are trained to the end, and in their cost.
#
# Versions: optuna 5.0.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     30 trials, RandomSampler(seed=0), objective without noise: four runs without a name take different numbers of epochs (e.g.
#           330, 384, 368, 396); two runs named "a" the same, one named "b" another number.
# Source:   optuna/pruners/_hyperband.py, _get_bracket_id(): binascii.crc32 of study_name and number; optuna/storages/_base.py:
#           a missing name is "no-name-" and a UUID.
#           The documentation of HyperbandPruner says to specify study_name.
# Advice:   give every study a name, one for all seeds and samplers that are compared; record epochs as the cost, not trials.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 optuna==5.0.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import optuna

print("versions: optuna", version("optuna"), "numpy", version("numpy"))
optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial):
    rate = trial.suggest_float("rate", 0, 1)
    for epoch in range(1, 28):
        trial.report(rate + 1 / epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return rate


def epochs(name=None):
    """Of each of 30 trials."""
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=27, reduction_factor=3)
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner)
    study.optimize(objective, n_trials=30)
    return [trial.last_step for trial in study.trials]


unnamed, a, again, b = [epochs() for _ in range(4)], epochs("a"), epochs("a"), epochs("b")
print("expected: one seed, one run: the same epochs of every trial, whatever the study's name")
print("seen: epochs without a name", *map(sum, unnamed), "; named a, a, b:", sum(a), sum(again), sum(b))
if not (a == again and a != b and any(other != unnamed[0] for other in unnamed)):
    sys.exit("the behaviour has changed")
END
