#!/usr/bin/env python3
"""mechanisms.py [RESULTS.json]: writes mechanisms.svg beside it, the picture of the README, from analysis/results/ideas/ideas.csv.

Of a file it takes the rows first: what the README's first question, `nas-train swiglu mqa quickstart --until 3%`, leaves in its run's folder.
"""

import csv
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from attnas.analysis import figures  # noqa: E402

FILE = ROOT / "analysis" / "results" / "ideas" / "ideas.csv"
NAMES = {"additive+sparsemax": "additive + sparsemax", "highway": "highway gate", "output_gate": "output gate", "swiglu": "SwiGLU",
         "mqa": "one head of keys"}


def take(results):
    """Writes the rows of a run: the least possible perplexity, then differences of test nll from the baseline, paired by seed."""
    run = json.loads(pathlib.Path(results).read_text(encoding="utf-8"))
    least = re.search(r"least possible perplexity ([\d.]+)", run["facts"]["corpus_description"])[1]
    with open(FILE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("role", "name", "n", "learning_rate", "test_perplexity", "difference", "low", "high", "p_holm"))
        writer.writerow(("least", "", "", "", least, "", "", "", ""))
        for row in run["retest"]["candidates"]:
            name = "vanilla attention" if row["role"] == "baseline" else row["label"]
            against = row["against_baseline"] or {key: 0.0 for key in ("difference", "low", "high")} | {"p_holm": ""}
            writer.writerow((row["role"], name, row["test"]["n"], row["learning_rate"], f"{row['test']['mean']:.4f}",
                             *(f"{against[key]:.5f}" for key in ("difference", "low", "high")), against["p_holm"]))


def picture():
    """The text of the file."""
    with open(FILE, encoding="utf-8") as file:
        least, *rows = csv.DictReader(file)
    vanilla = next(float(row["test_perplexity"]) for row in rows if row["role"] == "baseline")
    style = {"listed": "c0", "baseline": "reference", "control": "plain"}
    shown = sorted((figures.Row(NAMES.get(row["name"], row["name"]), style[row["role"]],
                                *(vanilla * math.exp(float(row[key])) for key in ("difference", "low", "high"))) for row in rows),
                   key=lambda row: row.point)
    return figures.intervals("Which of these ideas helps? Each at its best rate", "",
                             "test perplexity, with its 95 % interval; a guess: 16", shown, [(float(least["test_perplexity"]), "least possible")]).file()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        FILE.parent.mkdir(exist_ok=True)
        take(sys.argv[1])
    (pathlib.Path(__file__).parent / "mechanisms.svg").write_text(picture(), encoding="utf-8")
