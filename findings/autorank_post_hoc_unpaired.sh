#!/usr/bin/env bash
# autorank: of three or more normal algorithms the first test knows which results are of the same data set, the second does not.
# An algorithm that is better on nearly all data sets is then "not significantly different", since the data sets differ.
#
# Versions: autorank 1.3.0, statsmodels 0.15.0, scipy 1.17.1, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     accuracies on 20 data sets of unlike difficulty, B above A and C above B by about 0.01: repeated measures ANOVA
#           p = 7e-14, paired t-tests below 1e-4; post hoc "no significant differences" among all three.
# Source:   autorank/_util.py, rank_multiple_normal_homoscedastic(): AnovaRM with the rows as subjects, but then MultiComparison
#           .tukeyhsd(), for independent groups, of all results; its intervals hold the spread between data sets.
# Advice:   use paired tests with a correction (scipy.stats.ttest_rel), or pass force_mode="nonparametric", which ranks within
#           rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0 baycomp==1.0.3 autorank==1.3.0
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import contextlib
import io
import sys
from importlib.metadata import version

import numpy
import pandas
from autorank import autorank, create_report
from scipy.stats import ttest_rel

print("versions:", *(f"{name} {version(name)}" for name in ("autorank", "statsmodels", "scipy", "pandas", "numpy")))
noise = numpy.random.default_rng(0)
difficulty = noise.normal(0.7, 0.1, 20)
table = pandas.DataFrame({name: difficulty + 0.01 * i + noise.normal(0, 0.005, 20) for i, name in enumerate("ABC")})


def analyse(**options):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        result = autorank(table, **options)
        create_report(result)
    return result, [line for line in text.getvalue().splitlines() if "All other differences" in line or "all differences" in line]


paired, (said,) = analyse()
by_ranks, said_by_ranks = analyse(force_mode="nonparametric")
p_values = {f"{a}{b}": float(ttest_rel(table[a], table[b]).pvalue) for a, b in ("AB", "AC", "BC")}
print("expected: differences on nearly all data sets, paired t-tests:", {pair: f"{p:.0e}" for pair, p in p_values.items()})
print(f"seen: {paired.omnibus}, p = {paired.pvalue:.0e}; post hoc {paired.posthoc}: {said.strip()}")
print("seen: with force_mode='nonparametric':", *said_by_ranks)
none = "within the following groups: A, B, and C" in said or "within the following groups: C, B, and A" in said
if not (paired.pvalue < 1e-10 and max(p_values.values()) < 1e-3 and paired.posthoc == "tukeyhsd" and none):
    sys.exit("the behaviour has changed")
END
