#!/usr/bin/env bash
# Polars: NaN is greater than every number where rows are compared, and is ignored where a maximum is taken. A ranking of
# mechanisms by accuracy begins with the one whose training diverged, while max() of the same column is the true best.
#
# Versions: polars 2.1.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     max() 0.91, but top_k(1) and sort(descending=True) give the diverged one, and accuracy > 0.9 keeps it; pandas
#           nlargest(1) and query() give the one with 0.91 alone.
# Source:   user guide of Polars, "Missing data": NaN is a value, ordered above all others; max and min skip it.
# Advice:   fill_nan(None) directly after reading: null rows leave filters and come last in rankings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 polars==2.1.0 pandas==3.1.1
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import pandas
import polars

print("versions: polars", version("polars"), "pandas", version("pandas"), "numpy", version("numpy"))
columns = {"mechanism": ["softmax", "diverged", "sparsemax"], "accuracy": [0.91, float("nan"), 0.88]}
table, frame = polars.DataFrame(columns), pandas.DataFrame(columns)
best = table["accuracy"].max()
first = table.top_k(1, by="accuracy")["mechanism"].to_list()
sorted_first = table.sort("accuracy", descending=True)["mechanism"][0]
kept = table.filter(polars.col("accuracy") > 0.9)["mechanism"].to_list()
in_pandas = frame.nlargest(1, "accuracy").mechanism.tolist(), frame.query("accuracy > 0.9").mechanism.tolist()
print("expected: the row of the maximum is the first by accuracy, as in pandas:", *in_pandas)
print("seen: max", best, "top_k", first, "sort", sorted_first, "filter", kept)
if not (best == 0.91 and first == ["diverged"] and sorted_first == "diverged" and kept == ["softmax", "diverged"]
        and in_pandas == (["softmax"], ["softmax"])):
    sys.exit("the behaviour has changed")
END
