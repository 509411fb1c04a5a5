#!/usr/bin/env bash
# Syne Tune: MOASHA and the evolution for several objectives take a random_seed and do not draw from it. A search that is repeated
# with its recorded seed proposes other configurations.
#
# Versions: syne-tune 0.16.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     random_seed=1 twice: MOASHA first proposes a dropout of 0.42, then of 0.0001; MultiObjectiveRegularizedEvolution
#           differs, too; AsynchronousSuccessiveHalving, of one objective, does not. After numpy.random.seed(1) none does.
# Source:   optimizer/schedulers/multiobjective/moasha.py: suggest() calls sample() without a generator, and so does
#           sample_random_config(config_space, rng) of optimizer/schedulers/searchers/regularized_evolution.py.
# Advice:   call numpy.random.seed() before each search, one search a process, and record that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 pandas==3.1.1 dill==0.4.1 sortedcontainers==2.4.0 tqdm==4.70.1 psutil==7.2.2
# Without what the other schedulers need.
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps syne-tune==0.16.0
"$folder/venv/bin/python" -W ignore - <<'END'
import logging
import sys
from importlib.metadata import version

import numpy

logging.disable(logging.WARNING)
from syne_tune.config_space import uniform
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving
from syne_tune.optimizer.schedulers.multiobjective import MultiObjectiveRegularizedEvolution
from syne_tune.optimizer.schedulers.multiobjective.moasha import MOASHA

print("versions: syne-tune", version("syne-tune"), "pandas", version("pandas"), "numpy", version("numpy"))
SPACE = {"dropout": uniform(0, 1)}
OF_ONE = {"metric": "loss", "time_attr": "epoch", "random_seed": 1}
searches = {
    "AsynchronousSuccessiveHalving": lambda: AsynchronousSuccessiveHalving(SPACE, **OF_ONE),
    "MOASHA": lambda: MOASHA(SPACE, metrics=["loss", "latency"], time_attr="epoch", random_seed=1),
    "MultiObjectiveRegularizedEvolution": lambda: MultiObjectiveRegularizedEvolution(SPACE, random_seed=1),
}


def first(make):
    """The first two proposals."""
    search = make()
    proposals = [search.suggest() for _ in range(2)]
    return [round(float(getattr(each, "config", each)["dropout"]), 4) for each in proposals]


print("expected: the same seed, the same proposals")
repeats, repeats_by_global = {}, {}
for name, make in searches.items():
    one, two = first(make), first(make)
    repeats[name] = one == two
    by_global = []
    for _ in range(2):
        numpy.random.seed(1)
        by_global.append(first(make))
    repeats_by_global[name] = by_global[0] == by_global[1]
    print(f"seen: {name}: {one} {two} the same: {repeats[name]}; after numpy.random.seed(1): {repeats_by_global[name]}")
if list(repeats.values()) != [True, False, False] or not all(repeats_by_global.values()):
    sys.exit("the behaviour has changed")
END
