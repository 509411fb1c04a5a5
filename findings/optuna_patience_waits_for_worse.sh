#!/usr/bin/env bash
# Optuna: PatientPruner never stops a trial that stands still. By its documentation it prunes if the improvement is less than a
# threshold, min_delta; it prunes if the values get worse by more than min_delta: a larger threshold stops later, or never.
#
# Versions: optuna 5.0.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     patience 3, losses that stand still from step 10: not stopped in 200 steps, whatever min_delta. Losses that rise by
#           1e-4 a step from there: stopped at step 14, with min_delta=0.001 at step 24, with 0.01 at step 114.
# Source:   optuna/pruners/_patient.py, prune(): the best before + min_delta < the best after; known as optuna issue 3835. Early
#           stopping elsewhere stops unless the best after is below the best before - min_delta.
# Advice:   stop in the training loop, or report a loss to which a little is added with each step.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 optuna==5.0.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import optuna

print("versions:", *(f"{name} {version(name)}" for name in ("optuna", "numpy")))
optuna.logging.set_verbosity(optuna.logging.ERROR)


def stopped_at(loss, **options):
    """The step at which a trial with these losses is stopped, None if it is not in 200."""
    study = optuna.create_study(pruner=optuna.pruners.PatientPruner(None, patience=3, **options))
    trial = study.ask()
    for step in range(200):
        trial.report(loss(step), step)
        if trial.should_prune():
            return step
    return None


curves = {"constant": lambda step: 0.5,
          "falls until step 10, then stands": lambda step: max(0.5, 1 - 0.05 * step),
          "falls until step 10, then rises slowly": lambda step: max(0.5, 1 - 0.05 * step) + 1e-4 * max(0, step - 10)}
seen = [[stopped_at(curve, min_delta=delta) for delta in (0, 0.001, 0.01)] for curve in curves.values()]
print("expected: each is stopped some four steps after its last improvement, with a larger min_delta not later than with 0")
for name, steps in zip(curves, seen):
    print(f"seen, {name}: stopped at step {steps[0]}, with min_delta=0.001 at {steps[1]}, with 0.01 at {steps[2]}")
if not (seen[:2] == [[None] * 3] * 2 and 12 <= seen[2][0] < seen[2][1] - 5 < seen[2][2] - 50):
    sys.exit("the behaviour has changed")
END
