#!/usr/bin/env bash
# SMAC, DEHB, Optuna: Hyperband from 1 to 243 epochs with eta 3 never trains for 1 epoch, or has a bracket too few, because the
# quotient of two rounded logarithms is 4.999... and is cut to 4; from 1 to 81 nothing is missing. DEHB also turns 1 to 100 with
# eta 10 into 10 and 100: the cheapest candidate costs ten times what was asked.
#
# Versions: smac 2.4.1, DEHB 0.1.1, optuna 5.0.0, ConfigSpace 1.2.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     lowest budgets for 1 to 27, 81, 243: SMAC 1, 1, 3; DEHB 1, 1, 3; brackets by Optuna 4, 5, 5 where its documentation's
#           formula has 4, 5, 6. For 3 to 729 SMAC and DEHB 9, Optuna 5. For 1 to 100 with eta 10 DEHB 10; SMAC 1 and Optuna 3
#           brackets, as they should.
# Source:   smac/intensifier/successive_halving.py, _get_max_iterations(): floor(log(max / min) / log(eta)); dehb/optimizers/
#           dehb.py, _pre_compute_fidelity_spacing(): the quotient of min / max cut towards 0; optuna/pruners/_hyperband.py:
#           floor(math.log(max / min, eta)), known there (pull request 6835, closed). neps/optimizers/utils/brackets.py computes
#           as SMAC does (not run here).
# Advice:   ask for a little less than the power: min_budget=0.999 with real budgets, or 1 to 244; print the budgets used.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 ConfigSpace==1.2.2 smac==2.4.1 DEHB==0.1.1 optuna==5.0.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END' 2>"$folder/log"
import sys
from importlib.metadata import version

import optuna
from ConfigSpace import ConfigurationSpace
from dehb import DEHB
from smac import MultiFidelityFacade, Scenario
from smac.intensifier import Hyperband

print("versions:", *(f"{name} {version(name)}" for name in ("smac", "DEHB", "optuna", "ConfigSpace", "numpy")))
optuna.logging.set_verbosity(optuna.logging.ERROR)


def lowest_by_smac(least, most, eta):
    budgets = []

    def train(config, seed=0, budget=0.0):
        budgets.append(budget)
        return config["x"]

    scenario = Scenario(ConfigurationSpace({"x": (0.0, 1.0)}), min_budget=least, max_budget=most, n_trials=12, deterministic=True)
    MultiFidelityFacade(scenario, train, intensifier=Hyperband(scenario, eta=eta), overwrite=True, logging_level=50).optimize()
    return min(budgets)


def lowest_by_dehb(least, most, eta):
    search = DEHB(f=None, dimensions=1, min_fidelity=least, max_fidelity=most, eta=eta, n_workers=1, output_path="dehb")
    return min(search.ask()["fidelity"] for _ in range(12))


def brackets_by_optuna(least, most, eta):
    study = optuna.create_study(study_name="a", pruner=optuna.pruners.HyperbandPruner(least, most, eta))
    brackets = set()
    for number in range(300):
        trial = study.ask()
        trial.report(0.0, least)
        trial.should_prune()
        study.tell(trial, 0.0)
        brackets.add(study.pruner._get_bracket_id(study, trial._get_latest_trial()))
    return len(brackets)


seen = {}
for power, (least, most, eta) in ((3, (1, 27, 3)), (4, (1, 81, 3)), (5, (1, 243, 3)), (5, (3, 729, 3)), (2, (1, 100, 10))):
    row = float(lowest_by_smac(least, most, eta)), float(lowest_by_dehb(least, most, eta)), brackets_by_optuna(least, most, eta)
    seen[most] = row
    print(f"{least} to {most}, eta {eta}: expected: lowest budget {least}, {power + 1} brackets;",
          f"seen: lowest of SMAC {row[0]:g}, of DEHB {row[1]:g}; brackets of Optuna {row[2]}")
right = seen[27] == (1, 1, 4) and seen[81] == (1, 1, 5)
if not (right and seen[243] == (3, 3, 5) and seen[729] == (9, 9, 5) and seen[100] == (1, 10, 3)):
    sys.exit("the behaviour has changed")
END
