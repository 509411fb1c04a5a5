#!/usr/bin/env bash
# Syne Tune: MOASHA with its default priority stops trials that are better than all others in every objective. The indices of the
# sorted trials are taken for ranks: whether a trial stops is decided by which one is last in that order.
#
# Versions: syne-tune 0.16.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     points (3, 3), (1, 1), (2, 2): priorities 1, 2, 0, so the best point is last; they should be 2, 0, 1. Of 500 sets of
#           nine trials whose ninth dominates all, MOASHA stops it in 249; with LinearScalarizationPriority in none.
# Source:   optimizer/schedulers/multiobjective/multiobjective_priority.py: NonDominatedPriority returns nondominated_sort(), the
#           order, where __call__ says a priority of each sample; asha.py, Bracket.on_result() compares it as such. In
#           non_dominated_priority.py compute_epsilon_net() returns ranks, which are used as an order.
# Advice:   pass multiobjective_priority=LinearScalarizationPriority() with scaled objectives, or a class whose priority_unsafe()
#           returns argsort of argsort.
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
from datetime import datetime
from importlib.metadata import version

import numpy

logging.disable(logging.WARNING)
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import uniform
from syne_tune.optimizer.scheduler import SchedulerDecision
from syne_tune.optimizer.schedulers.multiobjective.moasha import MOASHA
from syne_tune.optimizer.schedulers.multiobjective.multiobjective_priority import (
    LinearScalarizationPriority,
    NonDominatedPriority,
)

print("versions: syne-tune", version("syne-tune"), "pandas", version("pandas"), "numpy", version("numpy"))
METRICS = ["loss", "latency"]


class Ranks(NonDominatedPriority):
    """The order as ranks."""

    def priority_unsafe(self, objectives):
        return numpy.argsort(super().priority_unsafe(objectives))


def last_is_stopped(points, priority):
    """Whether MOASHA stops the last of the trials, each of which reports once."""
    scheduler = MOASHA({"x": uniform(0, 1)}, metrics=METRICS, time_attr="epoch", max_t=9, multiobjective_priority=priority)
    for number, point in enumerate(points):
        trial = Trial(number, {"x": 0.5}, datetime.now())
        scheduler.on_trial_add(trial)
        decision = scheduler.on_trial_result(trial, {"epoch": 1, **dict(zip(METRICS, point.tolist()))})
    return decision == SchedulerDecision.STOP


three = NonDominatedPriority()(numpy.array([[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]])).tolist()
priorities = {"default": None, "by ranks": Ranks(), "linear": LinearScalarizationPriority()}
stopped = dict.fromkeys(priorities, 0)
for seed in range(500):
    points = numpy.random.default_rng(seed).random((9, 2)) + 1
    points[-1] = 0.5
    for name, priority in priorities.items():
        stopped[name] += last_is_stopped(points, priority)
print("expected: (1, 1) is before (2, 2) and (3, 3): priorities [2, 0, 1]; a trial that dominates all others goes on")
print(f"seen: priorities {three}; of 500 such trials are stopped:", stopped)
if not (three == [1, 2, 0] and stopped["default"] > 100 and stopped["linear"] == 0):
    sys.exit("the behaviour has changed")
END
