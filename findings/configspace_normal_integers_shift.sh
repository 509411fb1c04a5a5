#!/usr/bin/env bash
# ConfigSpace: a normal distribution of integers is drawn wider than sigma, and shifted from mu towards the nearer end. With few
# values, such as layers or heads, the neighbour on that side is drawn several times as often as the other one; pdf_values(),
# by which priors are weighed, are those of another distribution.
#
# Versions: ConfigSpace 1.2.2, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     2 to 5 layers, mu 3, sigma 0.4: a rounded normal has 11%, 79%, 11%, 0%, pdf_values 4%, 92%, 4%, 0%; drawn are 26%,
#           63%, 11%, 0%, a mean of 2.84. 1 to 10, mu 5, sigma 2: standard deviation 2.06, not 1.92; 1 to 100 is nearly right.
# Source:   ConfigSpace/hyperparameters/normal_integer.py: mu and sigma are placed on [0, 1] with the ends at 0 and 1, but
#           distributions.py, DiscretizedContinuousScipyDistribution, cuts [0, 1] into as many equal bins as there are values.
# Advice:   few values: a Categorical or Ordinal with weights from scipy.stats.norm; otherwise look at a histogram of draws.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 ConfigSpace==1.2.2
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from ConfigSpace import NormalIntegerHyperparameter
from scipy.stats import norm

print("versions:", *(f"{name} {version(name)}" for name in ("ConfigSpace", "scipy", "numpy")))
seen = {}
for low, high, mean, deviation in ((2, 5, 3, 0.4), (1, 6, 2, 0.5), (1, 10, 5, 2), (1, 100, 50, 10)):
    parameter = NormalIntegerHyperparameter("layers", mu=mean, sigma=deviation, lower=low, upper=high)
    values = numpy.arange(low, high + 1)
    rounded = norm.cdf(values + 0.5, mean, deviation) - norm.cdf(values - 0.5, mean, deviation)
    rounded /= rounded.sum()
    density = parameter.pdf_values(values)
    draws = numpy.asarray(parameter.sample_value(100000, seed=numpy.random.RandomState(0)))
    drawn = numpy.array([(draws == value).mean() for value in values])
    expected_deviation = float(((values - rounded @ values) ** 2 @ rounded) ** 0.5)
    print(f"{low} to {high}, mu {mean}, sigma {deviation}: expected: mean {rounded @ values:.2f},",
          f"deviation {expected_deviation:.2f}; seen: {draws.mean():.2f}, {draws.std():.2f}")
    if high < 10:
        for name, shares in (("expected", rounded), ("pdf_values", density / density.sum()), ("seen", drawn)):
            print(f"    {name}:", *(f"{share:.0%}" for share in shares))
    seen[high] = drawn, float(draws.std()) / expected_deviation
shares = seen[5][0]
if not (shares[0] > 2 * shares[2] > 0.1 and seen[6][0][0] > 3 * seen[6][0][2] and seen[10][1] > 1.05 > seen[100][1]):
    sys.exit("the behaviour has changed")
END
