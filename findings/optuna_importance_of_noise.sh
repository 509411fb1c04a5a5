#!/usr/bin/env bash
# Optuna: importances of parameters add up to 1 even if none has any effect. On an objective that is pure noise, one of three
# parameters is called the cause of about half of it, by the default evaluator and by fANOVA, not always the same one.
#
# Versions: optuna 5.0.0, scikit-learn 1.8.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     of pure noise, 60 trials, seeds 0 to 3: largest importance by PED-ANOVA 0.43 to 0.53, by fANOVA 0.39 to 0.61.
# Source:   documentation of optuna.importance.get_param_importances: values are normalized by default; normalize=False is a
#           choice. What remains in a node of fANOVA's trees or of PED-ANOVA's densities without any effect is chance.
# Advice:   say what importances are of shuffled values beside those of the study, or use replicates and an analysis of variance
#           with a residual: "normalization decides 50 %" may be noise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0 optuna==5.0.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import optuna

print("versions: optuna", version("optuna"), "scikit-learn", version("scikit-learn"), "numpy", version("numpy"))
optuna.logging.set_verbosity(optuna.logging.ERROR)
largest = {"default": [], "fANOVA": []}
for seed in range(4):
    noise = numpy.random.default_rng(seed)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))

    def objective(trial):
        for name in ("similarity", "normalization", "gating"):
            trial.suggest_categorical(name, [0, 1, 2])
        return noise.standard_normal()

    study.optimize(objective, n_trials=60)
    for name, evaluator in (("default", None), ("fANOVA", optuna.importance.FanovaImportanceEvaluator(seed=0))):
        importances = optuna.importance.get_param_importances(study, evaluator=evaluator)
        if abs(sum(importances.values()) - 1) > 1e-6:
            sys.exit("the behaviour has changed: importances do not add up to 1")
        largest[name].append((max(importances, key=importances.get), round(float(max(importances.values())), 2)))
print("expected: of pure noise every importance is near 0")
print("seen: the most important of four studies of noise:", largest)
if not all(value > 1 / 3 for of in largest.values() for _, value in of):
    sys.exit("the behaviour has changed")
END
