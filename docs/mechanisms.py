#!/usr/bin/env python3
"""mechanisms.py: writes mechanisms.svg beside it, the picture of the README, from analysis/results/take/take.csv."""

import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from attnas.analysis import figures  # noqa: E402

# Rows of the file by list and choice, and what the picture calls them.
ROWS = {("choice", "additive sparsemax"): "additive + sparsemax", ("choice", "dot sparsemax"): "sparsemax",
        ("choice", "cosine softmax"): "cosine", ("choice", "additive softmax"): "additive",
        ("averaged", "highway"): "highway gate", ("averaged", "output_gate"): "output gate"}


def picture():
    """The text of the file."""
    with open(ROOT / "analysis" / "results" / "take" / "take.csv", encoding="utf-8") as file:
        found = {(row["list"], row["choice"]): [float(row[key]) for key in ("gain", "low", "high", "p_holm")]
                 for row in csv.DictReader(file) if row["table"] == "text"}
    rows = [figures.Row(name, "c0" if found[key][3] < 0.05 else "plain", *found[key][:3]) for key, name in ROWS.items()]
    return figures.intervals("Which of these ideas helps? Text, at equal training", "",
                             "test perplexity saved, with its 95 % interval", rows, [(0.0, "vanilla attention")]).file()


if __name__ == "__main__":
    (pathlib.Path(__file__).parent / "mechanisms.svg").write_text(picture(), encoding="utf-8")
