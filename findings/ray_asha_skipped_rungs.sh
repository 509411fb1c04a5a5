#!/usr/bin/env bash
# Ray Tune: ASHA halves again at rungs that a trial has skipped. A trial is recorded at the highest rung it has passed; its next
# report is recorded at the next lower one, with the later result, and decided there. So trials that report every 20 epochs are
# cut at 20, 40, 60 and 80 epochs, though the rungs are 1, 4, 16 and 64; with tokens as the time they are cut at each report.
#
# Versions: ray 2.60.0, pandas 2.3.3, pyarrow 26.0.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     256 trials of constant losses, factor 4, 100 epochs. A report per epoch: 81, 39, 26, 22 are left after 1, 4, 16, 64.
#           A report per 20 epochs: 81, 39, 26, 22 after 20, 40, 60 and 80; with stop_last_trials=False 81 and 39 after 20 and 80.
#           A report per million tokens of 100: 81, 39, 26, 22 after 1, 2, 3 and 4 million, by False after 1, 2, 5 and 17.
#           stop_last_trials is documented as whether to end trials at max_t, no more.
# Source:   ray/tune/schedulers/async_hyperband.py, _Bracket.on_result(): where the trial is recorded already the loop over rungs
#           goes on to lower ones; it ends there only if stop_last_trials is False.
# Advice:   stop_last_trials=False, and end the training at max_t; or report as often as grace_period, and set it in time's unit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 pandas==2.3.3 pyarrow==26.0.1 'ray[tune]==2.60.0'
"$folder/venv/bin/python" -W ignore - <<'END'
import random
import sys
from importlib.metadata import version

from ray.tune.schedulers import ASHAScheduler

print("versions:", *(f"{name} {version(name)}" for name in ("ray", "pandas", "pyarrow", "numpy")))


class Trial:
    """What the scheduler reads of a trial, and its loss, which is the same at all times."""

    def __init__(self, number, loss):
        self.trial_id, self.loss = str(number), loss


def trials_left(step, most, **options):
    """How many of 256 trials are left after the times at which some are stopped."""
    scheduler = ASHAScheduler(time_attr="time", metric="loss", mode="min", max_t=most, reduction_factor=4, **options)
    numbers = random.Random(0)
    trials = [Trial(number, numbers.random()) for number in range(256)]
    for trial in trials:
        scheduler.on_trial_add(None, trial)
    counts = {}
    for time in range(step, most, step):
        left = [trial for trial in trials
                if scheduler.on_trial_result(None, trial, {"time": time, "loss": trial.loss}) == "CONTINUE"]
        if len(left) < len(trials):
            counts[time] = len(left)
        trials = left
    return counts


each = trials_left(1, 100)
seldom, once = trials_left(20, 100), trials_left(20, 100, stop_last_trials=False)
tokens, tokens_once = trials_left(10**6, 10**8), trials_left(10**6, 10**8, stop_last_trials=False)
print(f"a report per epoch, trials left after epochs: {each}")
print("a report per 20 epochs: expected cuts at 20, past rung 16, and 80, past rung 64")
print(f"seen: {seldom}; with stop_last_trials=False: {once}")
print(f"a report per million tokens, seen: {tokens}; with stop_last_trials=False: {tokens_once}")
if not (list(each) == [1, 4, 16, 64] and list(seldom) == [20, 40, 60, 80] and list(once) == [20, 80]
        and list(tokens) == [10**6 * k for k in (1, 2, 3, 4)] and list(tokens_once) == [10**6 * k for k in (1, 2, 5, 17)]):
    sys.exit("the behaviour has changed")
END
