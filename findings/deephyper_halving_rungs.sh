#!/usr/bin/env bash
# DeepHyper: SuccessiveHalvingStopper has other rungs than its documentation says. Documented are min_steps, min_steps * 3,
# min_steps * 9; it decides at min_steps - 1 plus 1, 3, 9, 27. Trials stop after two epochs more that should have 20 more.
#
# Versions: deephyper 0.13.2, ConfigSpace 1.2.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     min_steps 10, reduction_factor 3, 200 trials: 133 end after 10 epochs, 44 after 12, 13 after 18, 2 after 36, 8 after
#           90; none after 30.
# Source:   deephyper/stopper/_asha_stopper.py, _compute_halting_budget(); the schedule is in the docstring of the class. With
#           min_steps=1, the default, both agree.
# Advice:   record budgets in units of the first rung with min_steps=1; do not compare with ASHA of other libraries.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 ConfigSpace==1.2.2 pymoo==0.6.2 deephyper==0.13.2
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - "$folder" <<'END'
import sys
from importlib.metadata import version

from deephyper.evaluator import Evaluator
from deephyper.hpo import HpProblem, RandomSearch
from deephyper.stopper import SuccessiveHalvingStopper

print("versions:", *(f"{name} {version(name)}" for name in ("deephyper", "ConfigSpace", "numpy")))


async def train(job):
    """An accuracy that grows towards the trial's own limit."""
    for epoch in range(1, 91):
        accuracy = job.parameters["limit"] * (1 - 0.97**epoch)
        job.record(epoch, accuracy)
        if job.stopped():
            break
    return {"objective": accuracy, "metadata": {"epochs": epoch}}


problem = HpProblem()
problem.add_hyperparameter((0.5, 1.0), "limit")
stopper = SuccessiveHalvingStopper(max_steps=90, min_steps=10, reduction_factor=3)
search = RandomSearch(problem, random_state=1, log_dir=sys.argv[1], stopper=stopper)
table = search.search(Evaluator.create(train, method="serial", method_kwargs={"num_workers": 1}), max_evals=200)
epochs = table["m:epochs"].astype(int)
ends = {int(end): int(count) for end, count in epochs.value_counts().sort_index().items()}
print("expected from the documentation: trials end after 10, 30 or 90 epochs (10 * 3**k)")
print(f"seen: epochs and trials {ends}")
if not (set(ends) <= {10, 12, 18, 36, 90} and 12 in ends and 18 in ends and 30 not in ends):
    sys.exit("the behaviour has changed")
END
