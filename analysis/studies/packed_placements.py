#!/usr/bin/env python3
"""A table of placements as nas-compare and nas-run read it (problem: tabular_choices).

    analysis/studies/packed_placements.py placements.csv placements.table

What placement_table.py packs becomes a file of SQLite (docs/files.md): of each placement and seed
`kl`, `recall` and their sum `loss` after stage 2, the same at the fidelities before as `loss_F1`,
and `full`, its layers that are as they were. Its terms are recorded as those of any table
(docs/how-to/publish-a-table.md).
"""

import argparse
import csv
import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis.arguments import program
from attnas.data import packing
from attnas.data.records import Evaluation
from attnas.errors import InputError

BLOCK = "gdn{4,1}"  # that a 1 is; a 0 is the layer as it was
LAST = "F3"  # after all of stage 2
FIDELITIES = ("F0", "F1", "F2", LAST)
MOST = 12.0  # nats, that a copying model of bytes may lose of KL and recall
FACTS = {"corpus_description": "WikiText-2 with repeats, and lists of keys and values",
         "training": {"stage1_bytes": 500_000, "stage2_bytes": 32_768, "stage2_rate": 1e-3}}


def values_of(row: dict[str, str]) -> dict[str, float]:
    """What was measured of a row's placement."""
    found = {"full": float(row["placement"].count("0"))}
    for fidelity in FIDELITIES:
        suffix = "" if fidelity == LAST else f"_{fidelity}"
        kl, recall = (float(row[f"{measure}_{fidelity}"]) for measure in ("kl", "recall"))
        found |= {f"kl{suffix}": kl, f"recall{suffix}": recall, f"loss{suffix}": kl + recall}
    return found


def content_of(path: Path) -> packing.Content:
    """Of the rows, and of the teacher in the folder beside them.

    @throws InputError where the rows are no placements of as many layers.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if len({len(row.get("placement", "")) for row in rows}) != 1 or "kl_F3" not in rows[0]:
        raise InputError(f"{path}: must be a table of placement_table.py pack, of a row or more")
    seeds = sorted({int(row["seed"]) for row in rows})
    layers, cells = len(rows[0]["placement"]), []
    for row in rows:
        name = "|".join(BLOCK if digit == "1" else "full" for digit in row["placement"])
        seed = seeds.index(int(row["seed"]))
        cells.append(Evaluation("", name, seed, "ok", "", {}, [], values_of(row), {}))
    largest = {name: MOST for name in cells[0].values} | {"full": float(layers)}
    teacher = json.loads(Path(path.parent, "teacher", "config.json").read_bytes())
    facts = FACTS | {
        "device": "cpu", "model": {**teacher["model"], "layers": layers},
        "semantics": teacher["semantics"], "corpus_hash": teacher["data"]["hash"],
        "space": [{"name": f"layer_{i}", "options": ["full", BLOCK]} for i in range(layers)],
        "objectives": [{"name": name, "unit": "1" if name == "full" else "nat", "most": most}
                       for name, most in largest.items()]}
    source = {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
              "cells": len(cells), "environments": []}
    return packing.Content(path.stem, {"problem": "convert", "seeds": seeds}, facts, [source],
                           cells)


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="packed_placements.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("table", type=Path)
    given = parser.parse_args(arguments)
    content = content_of(given.csv)
    packing.write(content, given.table)
    print(f"{given.table}: {len(content.cells)} cells of {content.sources[0]['sha256'][:12]}")


if __name__ == "__main__":
    sys.exit(program(main)(sys.argv[1:]))
