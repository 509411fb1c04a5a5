"""The confirmatory claims of this repository: one family, at most six, p by Holm over all of them.

    analysis/claims.py analysis/results/claims.json -o FOLDER

The file lists claims: what each says ("claim"), the results.json of the run that tests it ("run", beside
the file), whose mechanism ("label", as that run's re-test has it) is compared with what ("against":
"baseline" or "control"). A claim is tested by the paired t-test of that re-test, of test nll over equal
seeds. Writes claims.md and claims.csv. Everything else is exploratory.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.statistics import holm

MOST = 6
COLUMNS = ("claim", "difference", "low", "high", "n", "p", "p_holm", "confirmed")


def read(path: Path) -> Any:
    """A file of JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


def tested(claim: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A claim's difference as a share of test perplexity, its interval, n and p."""
    path = folder / claim["run"]
    candidates = (read(path).get("retest") or {}).get("candidates") or []
    labels = [one["label"] for one in candidates]
    if claim["label"] not in labels:
        raise BadInput(f"{path}: no re-test of {claim['label']}, known: {', '.join(labels)}")
    contrast = candidates[labels.index(claim["label"])].get(f"against_{claim['against']}")
    if not contrast:
        raise BadInput(f"{path}: {claim['label']} is not compared with the {claim['against']}")
    return {"claim": claim["claim"], "n": contrast["n"], "p": contrast["p"],
            **{name: math.expm1(contrast[name]) for name in ("difference", "low", "high")}}


def family(claims: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """All claims, corrected together. One that expects something is confirmed where p by Holm is below
    0.05 and the difference has the sign that is expected ("lower" or "higher")."""
    if not 1 <= len(claims) <= MOST:
        raise BadInput(f"{len(claims)} claims, must be 1 to {MOST}: a family that grows proves less of each")
    rows = [tested(claim, folder) for claim in claims]
    for claim, row, p in zip(claims, rows, holm([row["p"] for row in rows])):
        sign = {"lower": -1, "higher": 1}[claim["expects"]]
        row["p_holm"] = float(p)
        row["confirmed"] = "yes" if p < 0.05 and sign * row["difference"] > 0 else "no"
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The claims for people."""
    lines = ["# Confirmatory claims", "",
             f"Paired t-tests of test perplexity over equal seeds; p by Holm over all {len(rows)}. Everything else in "
             "this repository is exploratory.", "",
             "| claim | difference (95 %) | n | p (Holm) | |", "|---|--:|--:|--:|---|"]
    for row in rows:
        difference, low, high = (f"{100 * row[name]:+.1f}" for name in ("difference", "low", "high"))
        p = "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
        lines.append(f"| {row['claim']} | {difference} % ({low} to {high}) | {row['n']} | {p} | "
                     f"{'confirmed' if row['confirmed'] == 'yes' else 'not confirmed'} |")
    return "\n".join(lines) + "\n"


@program
def main(words: list[str]) -> None:
    """Reads the claims, tests them, writes both files."""
    parser = argparse.ArgumentParser(description="tests the confirmatory claims as one family")
    parser.add_argument("claims", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args(words)
    rows = family(read(arguments.claims), arguments.claims.parent)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_whole(arguments.output / "claims.md", table(rows).encode())
    write_whole(arguments.output / "claims.csv",
                csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)).encode())
