#!/usr/bin/env bash
# pandas: DataFrame.to_json() keeps ten decimals, not ten digits. A p-value of 3e-12 becomes exactly 0, a learning rate of
# 1.23456789e-05 loses half of its digits, and read_json() brings back what was written.
#
# Versions: pandas 3.1.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     3e-12 -> 0.0; 1.23456789e-05 -> 1.23457e-05; a CSV file of the same frame returns both exactly.
# Source:   documentation of pandas.DataFrame.to_json: double_precision is the number of decimal places, 10 unless given, at most
#           15.
# Advice:   write tables of results as CSV or Parquet, or with json.dumps(frame.to_dict("list")), which are exact.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pandas==3.1.1
"$folder/venv/bin/python" - <<'END'
import io
import sys
from importlib.metadata import version

import pandas

print("versions: pandas", version("pandas"), "numpy", version("numpy"))
values = [3e-12, 1.23456789e-05]
frame = pandas.DataFrame({"value": values})
by_json = pandas.read_json(io.StringIO(frame.to_json()))["value"].tolist()
by_csv = pandas.read_csv(io.StringIO(frame.to_csv()))["value"].tolist()
print("expected: the numbers come back, as from CSV:", by_csv)
print("seen: from JSON", by_json)
if not (by_csv == values and by_json[0] == 0.0 and by_json[1] != values[1]):
    sys.exit("the behaviour has changed")
END
