#!/usr/bin/env bash
# Optuna: the default pruner never stops a run that diverges after a good start, not even one that reports nothing but NaN from
# then on. It looks at a run's best value so far, not at its last one, and passes over NaN.
#
# Versions: optuna 5.0.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     after six runs that end at 3.1, one of 4.9, 2.9 and then NaN trains all 20 epochs, as does one of 4.9, 2.9 and then
#           1e4; NaN from the first epoch on is stopped there. SuccessiveHalvingPruner stops both at its next rung, epoch 4.
# Source:   optuna/pruners/_percentile.py: MedianPruner, what create_study() takes, compares the smallest of a trial's values over
#           all steps, by nanmin, with the median at this step. The documentation says "best intermediate result".
# Advice:   raise optuna.TrialPruned where a loss is not finite; for what diverges to large numbers add
#           ThresholdPruner(upper=...), or take a pruner that looks at the last value.
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
optuna.logging.set_verbosity(optuna.logging.CRITICAL)
EPOCHS = 20
steady = [5 - 0.1 * epoch for epoch in range(EPOCHS)]
curves = {
    "NaN after two epochs": [4.9, 2.9] + [float("nan")] * 18,
    "1e4 after two epochs": [4.9, 2.9] + [1e4] * 18,
    "NaN from the start": [float("nan")] * 20,
}


def epochs_trained(last, **options):
    """Of the last of seven runs: the others are alike, and steady."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)

    def objective(trial):
        curve = last if trial.number == 6 else steady
        for epoch, loss in enumerate(curve, 1):
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return curve[-1]

    study.optimize(objective, n_trials=7)
    return len(study.trials[-1].intermediate_values)


trained = {name: epochs_trained(curve) for name, curve in curves.items()}
halving = {name: epochs_trained(curve, pruner=optuna.pruners.SuccessiveHalvingPruner()) for name, curve in curves.items()}
print("expected: a run that has diverged is stopped at once")
print("seen: epochs of", EPOCHS, "that it trains, default pruner:", trained, "; successive halving:", halving)
first, second, third = trained.values()
if not (first == second == EPOCHS and third == 1 and max(halving.values()) < EPOCHS):
    sys.exit("the behaviour has changed")
END
