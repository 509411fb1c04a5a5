#!/usr/bin/env bash
# rliable: random_state, which "ensures reproducibility" by the documentation, is ignored. Two runs of one analysis give two
# intervals, and a comparison that touches zero is significant in one and not in the other; numpy.random.seed() decides instead.
#
# Versions: rliable 1.2.0, arch 7.2.0, scipy 1.17.1, pandas 2.3.3, numpy 2.4.6; as of 2026-11-28.
# Seen:     10 runs of 5 tasks, 2,000 bootstrap samples: ten calls with RandomState(1) give ten intervals, of which seven hold
#           zero; RandomState(1) and (2) give one after numpy.random.seed(0). The bootstrap of arch, which rliable extends,
#           repeats itself.
# Source:   rliable/library.py, update_indices() of both StratifiedBootstrap and StratifiedIndependentBootstrap: np.random.choice
#           in place of self.generator of arch; random_state is only handed to arch.
# Advice:   numpy.random.seed() before each call of get_interval_estimates() and create_performance_profile().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 arch==7.2.0 rliable==1.2.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from arch.bootstrap import IIDBootstrap
from numpy.random import RandomState
from rliable.library import get_interval_estimates

print("versions:", *(f"{name} {version(name)}" for name in ("rliable", "arch", "scipy", "pandas", "numpy")))
scores = numpy.random.default_rng(0).normal(0, 0.5, (10, 5))
scores += 0.1205 - scores.mean()


def interval(seed):
    """Ends of the interval of the mean difference."""
    ends = get_interval_estimates({"a": scores}, lambda drawn: numpy.array([drawn.mean()]), reps=2000,
                                  random_state=RandomState(seed))[1]["a"]
    return tuple(round(float(end), 6) for end in ends.ravel())


numpy.random.seed(3)
intervals = [interval(1) for _ in range(10)]
numpy.random.seed(0)
first = interval(1)
numpy.random.seed(0)
second = interval(2)
by_arch = {IIDBootstrap(scores, seed=RandomState(1)).conf_int(numpy.mean, 500, method="percentile").tobytes() for _ in range(3)}
print(f"expected: one interval from ten calls with RandomState(1); arch alone has {len(by_arch)} from three")
print(f"seen: {len(set(intervals))} intervals; lower ends", *(f"{low:.4f}" for low, _ in intervals),
      f"above zero: {sum(low > 0 for low, _ in intervals)}")
print(f"expected: RandomState(1) and RandomState(2) differ; seen after numpy.random.seed(0): {first == second and 'the same'}")
crossing = 0 < sum(low > 0 for low, _ in intervals) < 10
if not (len(by_arch) == 1 and len(set(intervals)) == 10 and first == second and crossing):
    sys.exit("the behaviour has changed")
END
