#!/usr/bin/env bash
# DeepHyper: MedianStopper compares a trial's first epoch with the last ones of earlier trials. While fewer than min_competing
# have reported, a trial stays at its first rung, and each epoch overwrites its value there. The trials after them stop at once.
#
# Versions: deephyper 0.13.2, ConfigSpace 1.2.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     accuracies that grow for 20 epochs, min_competing 10 (the default): nine trials run for 20, the next eleven stop after
#           one, among them the best of all 40. With min_competing=0 that one runs for 20.
# Source:   deephyper/stopper/_median_stopper.py, stop(): "return False" for too few competitors, before self._rung += 1;
#           observe() then stores the next epoch's objective as _completed_rung_0, too.
# Advice:   min_competing=0, with which the rungs move on from the first trial.
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
from deephyper.stopper import MedianStopper

print("versions:", *(f"{name} {version(name)}" for name in ("deephyper", "ConfigSpace", "numpy")))


async def train(job):
    """An accuracy that grows towards the trial's own limit."""
    for epoch in range(1, 21):
        accuracy = job.parameters["limit"] * (1 - 0.8**epoch)
        job.record(epoch, accuracy)
        if job.stopped():
            break
    return {"objective": accuracy, "metadata": {"epochs": epoch}}


def search(competing):
    """Limits and epochs of 40 trials, in their order."""
    problem = HpProblem()
    problem.add_hyperparameter((0.5, 1.0), "limit")
    stopper = MedianStopper(max_steps=20, min_competing=competing)
    random = RandomSearch(problem, random_state=1, log_dir=f"{sys.argv[1]}/{competing}", stopper=stopper)
    table = random.search(Evaluator.create(train, method="serial", method_kwargs={"num_workers": 1}), max_evals=40)
    table = table.sort_values("job_id", key=lambda ids: ids.astype(int))
    return table["p:limit"].to_numpy(), table["m:epochs"].to_numpy().tolist()


limits, epochs = search(10)
same, with_rungs = search(0)
best = int(limits.argmax())
print(f"expected: the best of all 40 trials, trial {best + 1} with a limit of {limits[best]:.2f}, is trained for 20 epochs")
print(f"seen: {epochs[best]} epoch; trials 1 to 9: {epochs[:9]}, 10 to 20: {epochs[9:20]}; with min_competing=0:",
      f"{with_rungs[best]} epochs, 10 to 20: {with_rungs[9:20]}")
if not (epochs[:20] == [20] * 9 + [1] * 11 and 9 <= best < 20 and with_rungs[best] == 20 and (same == limits).all()):
    sys.exit("the behaviour has changed")
END
