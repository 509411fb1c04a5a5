#!/usr/bin/env bash
# datasets, PyArrow, Polars: a column that the first records lack is left out of the table, without a word. Of a training log
# with a validation loss every 150 steps, six ways to read it keep no validation loss at all; pandas and pyarrow.json keep all.
#
# Versions: datasets 5.2.0, pyarrow 26.0.1, polars 2.1.0, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     600 records: Dataset.from_list, from_generator, Table.from_pylist, polars.DataFrame and read_ndjson: step and loss;
#           pandas, pyarrow.json, Dataset.from_json: with the four validation losses. Dataset.map() adds no column that the
#           first result lacks.
# Source:   the first record decides: documentation of from_list and from_pylist; write_examples_on_file() in
#           datasets/arrow_writer.py. Polars: the first 100, infer_schema_length; issue #23190 of pola-rs/polars.
# Advice:   give every record all keys (None where there is no value); Polars: infer_schema_length=None; PyArrow: schema=.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 \
    datasets==5.2.0
cd "$folder"
HF_HOME="$folder/hf" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" - <<'END'
import json
import pathlib
import sys
from importlib.metadata import version

import datasets
import pandas
import polars
import pyarrow
import pyarrow.json

print("versions:", *(f"{name} {version(name)}" for name in ("datasets", "pyarrow", "polars", "pandas", "numpy")))
datasets.disable_progress_bars()
steps = range(1, 601)
records = [{"step": step, "loss": 2.0} | ({"validation": 2.1} if step % 150 == 0 else {}) for step in steps]
pathlib.Path("log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def generate():
    yield from records


def validation(record):
    return {"validation": 2.1} if record["step"] % 150 == 0 else {}


columns = {
    "pandas.DataFrame": list(pandas.DataFrame(records).columns),
    "pyarrow.json": pyarrow.json.read_json("log.jsonl").column_names,
    "Dataset.from_json": datasets.Dataset.from_json("log.jsonl").column_names,
    "polars, all": polars.read_ndjson("log.jsonl", infer_schema_length=None).columns,
    "Table.from_pylist": pyarrow.Table.from_pylist(records).column_names,
    "Dataset.from_list": datasets.Dataset.from_list(records).column_names,
    "Dataset.from_generator": datasets.Dataset.from_generator(generate).column_names,
    "Dataset.map": datasets.Dataset.from_dict({"step": list(steps)}).map(validation).column_names,
    "polars.DataFrame": polars.DataFrame(records).columns,
    "polars.read_ndjson": polars.read_ndjson("log.jsonl").columns}
keep = [name for name, names in columns.items() if "validation" in names]
lose = [name for name in columns if name not in keep]
print("expected: all keep the validation losses or refuse the log, as keep:", ", ".join(keep))
print("seen: without them:", ", ".join(lose))
if (len(keep), len(lose)) != (4, 6) or lose != list(columns)[4:]:
    sys.exit("the behaviour has changed")
END
