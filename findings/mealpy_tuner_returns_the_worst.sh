#!/usr/bin/env bash
# mealpy: Tuner returns the worst hyperparameters if the objective is maximised. Ranks of the means, 1 for the largest, are ranked
# once more from the largest, so the last of them has rank 1; resolve() then optimises with it.
#
# Versions: mealpy 3.0.3, pandas 2.3.3, numpy 1.26.0; as of 2026-11-28.
# Seen:     PSO on a sphere of 10 dimensions, 2 or 40 epochs, 10 or 40 particles: minimised, Tuner chooses 40 and 40 with a mean
#           of 0.02; maximised, the negative sphere, 2 and 10 with -120, where 40 and 40 has -0.06. No seeds: the means vary.
# Source:   mealpy/tuner.py, Tuner.execute(): rank_mean and rank_mean_std both with ascending=False for "max"; best_params is the
#           row of the smallest rank_mean_std. Ties of the mean go to the larger standard deviation, too.
# Advice:   minimise the negative objective, or take the row with the best trial_mean from the exported table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==1.26.0 scipy==1.15.3 pandas==2.3.3 matplotlib==3.10.9 mealpy==3.0.3
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from mealpy import PSO, FloatVar, Tuner

print("versions:", *(f"{name} {version(name)}" for name in ("mealpy", "pandas", "numpy")))


def tune(direction, sign):
    """The chosen hyperparameters and the mean fitness of each setting."""
    problem = {"bounds": FloatVar(lb=(-10.0,) * 10, ub=(10.0,) * 10), "minmax": direction, "log_to": None,
               "obj_func": lambda solution: sign * float(numpy.sum(solution**2))}
    tuner = Tuner(PSO.OriginalPSO(), {"epoch": [2, 40], "pop_size": [10, 40]})
    tuner.execute(problem=problem, n_trials=5, verbose=False)
    means = {tuple(row.params.values()): round(float(row.trial_mean), 2) for row in tuner.df_fit.itertuples()}
    return tuple(tuner.best_params.values()), round(float(tuner.best_score), 2), means


least, least_score, least_means = tune("min", 1)
most, most_score, most_means = tune("max", -1)
print(f"minimised, means of (epochs, population) {least_means}: chosen {least} with {least_score}")
print(f"maximised, the negative: {most_means}: expected {max(most_means, key=most_means.get)}; seen {most} with {most_score}")
if not (least == min(least_means, key=least_means.get) and most == min(most_means, key=most_means.get)):
    sys.exit("the behaviour has changed")
END
