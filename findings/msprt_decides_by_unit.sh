#!/usr/bin/env bash
# msprt: what the sequential test decides, and after how many pairs, depends on the unit. The same scores are different in percent,
# and after 400 pairs still not as shares between 0 and 1, with sigma in the same unit each time.
#
# Versions: msprt 0.1.2, scipy 1.17.1, numpy 1.26.4; as of 2026-11-29.
# Seen:     20 experiments, 400 pairs each, a difference of a fifth of the deviation: 3 decided for a difference as shares, 9 in
#           percent or hundredths of a percent; mixtures of 9 and of half a deviation. Without a
#           difference 0 as shares, 2 in the others.
# Source:   msprt/msprt_.py, calculate_mixture_variance(): b divides by sqrt(truncation * sigma ** 2), where sqrt(truncation)
#           would have no unit; what it calls a variance is squared again in the likelihood ratio. It is rounded to two decimals.
# Advice:   divide the scores by their deviation and give sigma=1.0, so that all metrics have one mixture; warmup_observations is
#           100 pairs unless given, in which nothing is decided.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==1.26.4 scipy==1.17.1 msprt==0.1.2
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from msprt import msprt

print("versions:", *(f"{name} {version(name)}" for name in ("msprt", "scipy", "numpy")))
EXPERIMENTS, PAIRS, DEVIATION, EFFECT = 20, 400, 0.02, 0.004


def decided(unit, effect):
    """Pairs after which each experiment is decided for a difference; PAIRS where it is not."""
    pairs = []
    for seed in range(EXPERIMENTS):
        noise = numpy.random.default_rng(seed).standard_normal((2, PAIRS)) * DEVIATION
        better, base = unit * (0.70 + effect + noise[0]), unit * (0.70 + noise[1])
        pairs.append(msprt(x=better, y=base, sigma=unit * DEVIATION, warmup_observations=1).n_rejection)
    return numpy.array(pairs)


print("expected: the same accuracies are decided alike as shares, in percent and in hundredths of a percent")
counts, none = {}, {}
for name, unit in (("share", 1.0), ("percent", 100.0), ("hundredths of a percent", 10000.0)):
    with_effect, without = decided(unit, EFFECT), decided(unit, 0.0)
    counts[name], none[name] = int((with_effect < PAIRS).sum()), int((without < PAIRS).sum())
    mixture = msprt.calculate_mixture_variance(0.05, unit * DEVIATION, 200) / (unit * DEVIATION)
    print(f"seen: {name}: mixture of {mixture:.2f} deviations; {counts[name]} of {EXPERIMENTS} differ, first ones after",
          *sorted(with_effect)[:3], f"pairs; without a difference {none[name]}")
if not (counts["share"] <= 5 < 7 <= counts["percent"] == counts["hundredths of a percent"] and max(none.values()) <= 3):
    sys.exit("the behaviour has changed")
END
