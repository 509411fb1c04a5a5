#!/usr/bin/env bash
# jMetalPy: Hochberg's procedure, which must reject all that Holm's does, loses what is clearly different as soon as one other
# algorithm is not. Each adjusted p-value is the largest of those from its place on, where the least is meant.
#
# Versions: jmetalpy 1.9.0, statsmodels 0.15.0, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     300 sets of 20 problems, a control, a much worse algorithm and three as good as the control: Hochberg's p of the worse
#           one is below 0.05 in 0.3% of the sets, by Holm and by statsmodels in all. In the first set it is 1, the unadjusted one
#           2e-6.
# Source:   jmetal/lab/statistical_test/apv_procedures.py, hochberg(): numpy.max over the p-values from the i-th on. The formula
#           is printed so in a survey of the tests (García et al., Information Sciences 2010); Hochberg (Biometrika 1988) steps
#           up, from the largest p-value to the least.
# Advice:   statsmodels.stats.multitest.multipletests(..., method="simes-hochberg") of the unadjusted p-values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 jmetalpy==1.9.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import pandas
from jmetal.lab.statistical_test.apv_procedures import hochberg, holm
from scipy.stats import wilcoxon
from statsmodels.stats.multitest import multipletests

print("versions:", *(f"{name} {version(name)}" for name in ("jmetalpy", "statsmodels", "scipy", "numpy")))


def adjusted(random):
    """A control, a worse algorithm and three that are as good, on 20 problems: p-values of the control against the worse one."""
    table = random.normal(size=(20, 5)) + [0, 2.5, 0, 0, 0]
    plain = numpy.array([1] + [wilcoxon(table[:, 0], table[:, k]).pvalue for k in range(1, 5)])
    frame = pandas.DataFrame([plain], index=["control"], columns=["control", "worse", "a", "b", "c"])
    own = [procedure(frame, control=0).loc["control vs worse"].iloc[0] for procedure in (holm, hochberg)]
    return [plain[1], *own, multipletests(plain[1:], method="simes-hochberg")[1][0]]


random = numpy.random.default_rng(0)
sets = numpy.array([adjusted(random) for _ in range(300)], float)
names = ("unadjusted", "Holm", "Hochberg", "Hochberg by statsmodels")
print("expected: Hochberg's adjusted p-values are never above Holm's")
print("seen: the first set", {name: float(f"{value:.2g}") for name, value in zip(names, sets[0])})
shares = (sets < 0.05).mean(axis=0)
print("seen: share of 300 sets with p < 0.05", {name: round(float(share), 3) for name, share in zip(names, shares)})
above = (sets[:, 2] > sets[:, 1] + 1e-12).mean()
print(f"seen: Hochberg's p is above Holm's in {100 * above:.0f}% of the sets, by statsmodels in",
      f"{100 * (sets[:, 3] > sets[:, 1] + 1e-12).mean():.0f}%")
if not (above > 0.9 and (sets[:, 2] < 0.05).mean() < 0.1 < 0.8 < (sets[:, 3] < 0.05).mean()):
    sys.exit("the behaviour has changed")
END
