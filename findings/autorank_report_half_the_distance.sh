#!/usr/bin/env bash
# autorank: create_report() calls two algorithms different if their means differ by half of what Tukey's test asks for. The same
# report says that they differ if their intervals do not overlap, and here the intervals do overlap.
#
# Versions: autorank 1.3.0, statsmodels 0.15.0, scipy 1.17.1, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     four algorithms, three of them equal, 20 results each, 30 tables: the report calls two equal ones different in 9 of
#           them, up to p = 0.55 by Tukey's test; the intervals of the same results, and SciPy's tukey_hsd at 5%, part them in 2.
# Source:   autorank/_util.py, get_sorted_rank_groups(): the critical difference is (ci_upper - ci_lower) / 2, half of one
#           interval; two intervals overlap up to twice that.
# Advice:   read result.rankdf: means differ where ci_lower of one is above ci_upper of the other; or scipy.stats.tukey_hsd.
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
from scipy.stats import tukey_hsd

print("versions:", *(f"{name} {version(name)}" for name in ("autorank", "statsmodels", "scipy", "pandas", "numpy")))
EQUAL, PAIRS = ["rope", "alibi", "learned"], [(0, 1), (0, 2), (1, 2)]
noise = numpy.random.default_rng(0)
tables, parted, apart, by_scipy, largest = 0, 0, 0, 0, 0.0
while tables < 30:
    table = pandas.DataFrame({name: noise.normal(3 * (name == "none"), 1, 20) for name in [*EQUAL, "none"]})
    with contextlib.redirect_stdout(io.StringIO()) as text:
        result = autorank(table)
        create_report(result)
    if result.posthoc != "tukeyhsd":
        continue
    tables += 1
    said = text.getvalue().split("within the following groups: ")
    groups = said[1].split(". All other")[0].split(";") if len(said) > 1 else []
    rows = result.rankdf
    p_values = tukey_hsd(*table.to_numpy().T).pvalue
    said_different = [p_values[i, j] for i, j in PAIRS if not any(EQUAL[i] in group and EQUAL[j] in group for group in groups)]
    parted += bool(said_different)
    largest = max([largest, *said_different])
    by_scipy += any(p_values[i, j] < 0.05 for i, j in PAIRS)
    apart += rows.loc[EQUAL, "ci_lower"].max() > rows.loc[EQUAL, "ci_upper"].min()
print(f"expected: of {tables} tables two of the equal algorithms are called different in one or two")
print(f"seen: by the report in {parted}, largest p of such a pair by Tukey's test {largest:.2f}")
print(f"seen: by the intervals of the same results in {apart}, by tukey_hsd in {by_scipy}")
if not (parted > 5 and largest > 0.2 and apart < 4 and by_scipy < 4):
    sys.exit("the behaviour has changed")
END
