#!/usr/bin/env bash
# NePS: ASHA trains nearly all configurations to the end. What has been promoted is dropped before a third of the rung is counted:
# of n configurations n - 2 are promoted with eta 3, not n / 3, so each rung has two less than the one below.
#
# Versions: neural-pipeline-search 0.17.0, torch 2.15.0, pandas 2.3.3, numpy 2.4.6; as of 2026-11-28.
# Seen:     27 configurations, 1 to 27 epochs: 27, 25, 23 and 21 are trained for 1, 3, 9 and 27 epochs, 876 in all; successive
#           halving of the same library trains 27, 9, 3 and 1, 108 in all. The documentation of asha() says that the number of
#           promoted configurations decreases exponentially. moasha() and async_hb() use the same class.
# Source:   neps/optimizers/utils/brackets.py, Async.next(): k = len(lower_dropped) // eta, of the table without upper.config_ids
#           (since pull request 232).
# Advice:   successive_halving() or hyperband(); count the epochs of a run before comparing it with other searches.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 torch==2.15.0 botorch==0.12.0 gpytorch==1.13.0 seaborn==0.13.2 tensorboard==2.21.0 \
  networkx==2.8.8 portalocker==2.10.1 more-itertools==11.2.1 PyYAML==6.0.4 ifbo==0.4.1
# Without torchvision and pymoo, which are not imported.
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps neural-pipeline-search==0.17.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import random
import sys
from importlib.metadata import version

import neps
import numpy
import torch

print("versions:", *(f"{name} {version(name)}" for name in ("neural-pipeline-search", "torch", "pandas", "numpy")))


class Space(neps.PipelineSpace):
    """One hyperparameter, which is the loss, and the epochs."""

    x = neps.Float(lower=0, upper=1)
    epochs = neps.IntegerFidelity(lower=1, upper=27)


def epochs_of(algorithm, configurations=27):
    """How many configurations were trained for how many epochs until the next would be a new one."""
    numpy.random.seed(0)
    torch.manual_seed(0)
    random.seed(0)
    search, seen, counts = neps.AskAndTell(optimizer=algorithm(Space(), eta=3)), set(), {}
    while True:
        trial = search.ask()
        configuration = str(trial.metadata.id).partition("_")[0]
        if configuration not in seen and len(seen) == configurations:
            return counts
        seen.add(configuration)
        counts[trial.config["epochs"]] = counts.get(trial.config["epochs"], 0) + 1
        search.tell(trial.metadata.id, trial.config["x"])


halving, asha = epochs_of(neps.algorithms.successive_halving), epochs_of(neps.algorithms.asha)
costs = [sum(epochs * count for epochs, count in counts.items()) for counts in (halving, asha)]
print(f"expected: a third is promoted each time, as by successive halving: {halving}, {costs[0]} epochs")
print(f"seen with asha: {asha}, {costs[1]} epochs")
if not (halving == {1: 27, 3: 9, 9: 3, 27: 1} and asha == {1: 27, 3: 25, 9: 23, 27: 21}):
    sys.exit("the behaviour has changed")
END
