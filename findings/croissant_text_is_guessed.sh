#!/usr/bin/env bash
# mlcroissant: a CSV column that the metadata declare as text is first read as whatever it looks like. The name 007 arrives as 7,
# the digest 12e4 as 120000.0, and the option None as missing.
#
# Versions: mlcroissant 1.1.1, pandas 3.1.1, numpy 2.4.6; as of 2026-11-27.
# Seen:     "007" -> b'7', "12e4" -> b'120000.0', "None" -> None (names otherwise come as bytes).
# Source:   mlcroissant/_src/operation_graph/operations/read.py calls pandas.read_csv without types; field.py converts afterwards.
# Advice:   in tables that are published with Croissant metadata, no name, digest or option should look like a number or be one of
#           pandas' words for missing values (None, null, NA, nan): prefix identifiers with a letter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pandas==3.1.1 mlcroissant==1.1.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END'
import hashlib
import json
import logging
import pathlib
import sys
from importlib.metadata import version

logging.disable(logging.WARNING)
import mlcroissant as mlc

print("versions: mlcroissant", version("mlcroissant"), "pandas", version("pandas"), "numpy", version("numpy"))


def as_read(*names):
    """What a text field has of a CSV file with these names in a column."""
    table = pathlib.Path("table.csv")
    table.write_text("name,seed\n" + "".join(f"{name},1\n" for name in names))
    file = mlc.FileObject(id="table.csv", name="table.csv", content_url="table.csv", encoding_formats=["text/csv"],
                          sha256=hashlib.sha256(table.read_bytes()).hexdigest())
    source = mlc.Source(file_object="table.csv", extract=mlc.Extract(column="name"))
    field = mlc.Field(id="rows/name", name="name", data_types=[mlc.DataType.TEXT], source=source)
    metadata = mlc.Metadata(name="table", description="names", url="https://example.com", license="MIT", version="1.0.0",
                            cite_as="none", date_published="2026-01-01", distribution=[file],
                            record_sets=[mlc.RecordSet(id="rows", name="rows", fields=[field])])
    pathlib.Path("croissant.json").write_text(json.dumps(metadata.to_json(), default=str))
    return [row["rows/name"] for row in mlc.Dataset(jsonld="croissant.json").records("rows")]


seen = as_read("007", "012"), as_read("12e4", "34e5"), as_read("softmax", "None")
print("expected: text as it stands in the file: 007 and 012, 12e4 and 34e5, softmax and None")
print("seen:", *seen)
if seen != ([b"7", b"12"], [b"120000.0", b"3400000.0"], [b"softmax", None]):
    sys.exit("the behaviour has changed")
END
