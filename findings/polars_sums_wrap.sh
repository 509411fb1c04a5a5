#!/usr/bin/env bash
# Polars: lengths of texts and lists are 32-bit numbers, and their sum is one, too. Beyond 4 GiB of text or 4.29 billion tokens
# it starts again at 0, without a warning: bits per byte come out many times too large.
#
# Versions: polars 2.1.0, pyarrow 26.0.1; as of 2026-11-28.
# Seen:     4300 texts of 1 MB: len_bytes().sum() is 5032704 bytes, not 4.3e9, also by group, in cum_sum() and in SQL; the mean
#           is right. 1 bit per byte is reported as 854. PyArrow's sum is right.
# Source:   documentation of polars.Expr.sum: 8 and 16 bits are widened before summing; 32 bits are not, and str.len_bytes(),
#           str.len_chars(), list.len() and polars.len() are UInt32. Issue #17340 of pola-rs/polars.
# Advice:   .cast(polars.Int64) before sum(); compare with mean() * height.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0 pyarrow==26.0.1
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import polars
import pyarrow.compute

print("versions: polars", version("polars"), "pyarrow", version("pyarrow"))
million, texts = 1_000_000, 4300
corpus = polars.DataFrame({"text": polars.Series(["x" * million]).new_from_index(0, texts)})  # all share one text in memory
corpus = corpus.with_columns(source=polars.lit("books"))
length = polars.col("text").str.len_bytes()
sums = {"select": corpus.select(length.sum()).item(), "group_by": corpus.group_by("source").agg(length.sum())["text"].item(),
        "cum_sum": corpus.select(length.cum_sum().last()).item(),
        "SQL": polars.SQLContext(corpus=corpus).execute("SELECT sum(octet_length(text)) FROM corpus").collect().item(),
        "UInt32": polars.DataFrame({"length": [3_000_000_000, 3_000_000_000]}, schema={"length": polars.UInt32}).sum().item()}
true, mean = texts * million, corpus.select(length.mean()).item() * corpus.height
widened = corpus.select(length.cast(polars.Int64).sum()).item()
arrow = pyarrow.compute.sum(corpus.select(length)["text"].to_arrow()).as_py()
bits = float(true)  # a model that needs one bit for each byte
print("expected:", true, "bytes, by the mean:", mean, ", a cast:", widened, ", PyArrow:", arrow, "; bits per byte", bits / true)
print("seen:", sums, "; bits per byte", round(bits / sums["select"], 1))
wrapped = [total % 2**32 for total in (true, true, true, true, 6_000_000_000)]
if not (list(sums.values()) == wrapped and widened == arrow == mean == true):
    sys.exit("the behaviour has changed")
END
