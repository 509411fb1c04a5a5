#!/usr/bin/env bash
# Polars: a DataFrame of records (dictionaries or tuples) takes its types from the first 100. A column of whole numbers until
# then has its later fractions cut off, without an error even with strict=True: an accuracy that was 0 for 100 records stays 0
# for ever.
#
# Versions: polars 2.1.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     100 records of 0, then 0.25, 0.75, 0.97: the last three are 0; after 99 records they are right. Losses of 4, then
#           3.97, 3.5 and 3.02, become 3. The same values given by columns raise a TypeError.
# Source:   documentation of polars.from_dicts: infer_schema_length=100; strict=True should refuse a value of another type, but
#           AnyValueBuffer in polars-core/src/frame/row/av_buffer.rs converts it. Issue #23152 of pola-rs/polars is related.
# Advice:   infer_schema_length=None, or schema_overrides={"accuracy": polars.Float64}. In logs write 0.0, not 0 (as JavaScript
#           and C++'s streams do).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0 numpy==2.4.6 pandas==3.1.1
"$folder/venv/bin/python" - <<'END'
import json
import sys
from importlib.metadata import version

import pandas
import polars

print("versions: polars", version("polars"), "pandas", version("pandas"), "numpy", version("numpy"))


def log(whole, count, *later):
    """Records as json.loads gives them for the lines of a log."""
    lines = [f'{{"step": {step}, "value": {value}}}' for step, value in enumerate([whole] * count + list(later))]
    return [json.loads(line) for line in lines]


def read(records, **options):
    return polars.DataFrame(records, strict=True, **options)["value"].to_list()[-3:]


accuracy, losses = log(0, 100, 0.25, 0.75, 0.97), log(4, 100, 3.97, 3.5, 3.02)
right = pandas.DataFrame(accuracy)["value"].tolist()[-3:]
tuples = polars.DataFrame([(record["value"],) for record in accuracy], schema=["value"], orient="row")["value"].to_list()[-3:]
short, whole = read(log(0, 99, 0.25, 0.75, 0.97)), read(accuracy, infer_schema_length=None)
try:
    columns = str(polars.DataFrame({"value": [record["value"] for record in accuracy]}))
except TypeError:
    columns = "TypeError"
seen = read(accuracy)
print("expected: as pandas has them:", right, "and Polars after 99 records:", short, "; or an error, as by columns:", columns)
print("seen: accuracy", seen, "from tuples", tuples, "losses", read(losses), "; with infer_schema_length=None", whole)
if not (seen == tuples == [0, 0, 0] and read(losses) == [3, 3, 3] and short == whole == right and columns == "TypeError"):
    sys.exit("the behaviour has changed")
END
