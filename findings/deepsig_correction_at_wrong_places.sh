#!/usr/bin/env bash
# deep-significance: the correction for several hypotheses hands the corrected p-values to the wrong hypotheses. The smallest p is
# often that of another one afterwards.
#
# Versions: deepsig 1.2.8, statsmodels 0.15.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     p = 0.03, 0.001, 0.02: corrected 0.04, 0.03, 0.003. Times 1, 3 and 2 they are 0.03, 0.003, 0.04. Of 1,000 lists of
#           five p-values 78% have a value at another place, 60% the smallest.
# Source:   deepsig/correction.py, bonferroni_correction(): sorted values are indexed by the order that sorted them, not by its
#           inverse. The steps are Holm's (issue 2 of Kaleidophon/deep-significance), without the running maximum.
# Advice:   use statsmodels.stats.multitest.multipletests(p_values, method="holm"), or "bonferroni".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0 deepsig==1.2.8
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from deepsig import bonferroni_correction
from statsmodels.stats.multitest import multipletests

print("versions:", *(f"{name} {version(name)}" for name in ("deepsig", "statsmodels", "scipy", "numpy")))


def steps(p_values):
    """What deepsig computes, each value at its own hypothesis: p times the number of those that are not smaller."""
    return numpy.minimum(1, p_values * [(p_values >= p).sum() for p in p_values])


p_values = numpy.array([0.03, 0.001, 0.02])
seen, expected = bonferroni_correction(p_values), steps(p_values)
holm = multipletests(p_values, method="holm")[1]
numbers = numpy.random.default_rng(0)
lists = numbers.random((1000, 5)) / 5
elsewhere = numpy.mean([not numpy.allclose(bonferroni_correction(each), steps(each)) for each in lists])
same_values = all(numpy.allclose(numpy.sort(bonferroni_correction(each)), numpy.sort(steps(each))) for each in lists)
lost = numpy.mean([bonferroni_correction(each).argmin() != steps(each).argmin() for each in lists])
print("expected: for", p_values.tolist(), "the values", expected.round(4).tolist(), "or, by Holm,", holm.round(4).tolist())
print("seen:", seen.round(4).tolist(), f"; of 1,000 lists of five {elsewhere:.0%} have a value at another place,", end=" ")
print(f"{lost:.0%} the smallest; as sets they agree: {same_values}")
if not (seen.argmin() == 2 and p_values.argmin() == 1 and same_values and elsewhere > 0.5 and lost > 0.2):
    sys.exit("the behaviour has changed")
END
