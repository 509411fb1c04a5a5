#!/usr/bin/env python3
"""The confirmatory claims of this repository: one family, at most six, p by Holm over all of them.

    analysis/studies/claims.py analysis/studies/records/claims.json [RUN...] -o FOLDER

A claim says ("claim") that a mechanism ("mechanism", its canonical name) has a lower test
perplexity on a task ("task", the name of its configuration) than the best of others ("against").
Each of them has the learning rate that is best for it by the mean validation nll of the seeds
called "tuning", of at least three; of several others the best by the same seeds is the rival. Both
are then judged by the paired t-test of test nll over the seeds called "judging", which chose
nothing. Nothing is confirmed against a rival whose best rate is an end of those tried. A claim
without "tuning" is one at one learning rate, and says so. In Holm's correction a difference of the
wrong sign has p 1. FOLDER/trainings.csv has the training runs, a line each, with the commit of
their build; RUNs are added to it: of nas-train (folders or their results.json), whose seeds are
called by the run's seed, and records of nas-data gates, whose seeds are called so, too, and "42
tuning" those that tune. Writes claims.md and claims.csv there. Everything else is exploratory.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis import packages

packages.require(__doc__, "numpy", "scipy")

import numpy as np

from attnas.analysis import digest, statistics, tables
from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.words import p_column

MOST = 6
FEWEST_RATES = 3
DIFFERENCE = ("difference", "low", "high")
COLUMNS = ("claim", "rate", "rival", "rival_rate", "open_rate", *DIFFERENCE, "n", "p", "p_holm",
           "confirmed")
TRAINING = ("task", "seeds", "learning_rate", "mechanism", "replicate", "valid_nll", "test_nll",
            "revision")
# task, seeds, rate, mechanism -> replicate -> validation and test nll
Trainings = dict[tuple, dict[int, tuple[float, float]]]


def lines_of(run: str) -> list[list[str]]:
    """Those of trainings.csv of a run; infinite nll where a training run failed."""
    path = Path(run)
    if path.suffix == ".json" and "gates" in (record := read(path)):
        return _lines_of_gates(record)
    own, record = tables.load([run]), digest.read(run)
    if any("learning_rate" in one for one in (record.get("retest") or {}).get("candidates", [])):
        raise BadInput(f"{run}: its rows have rates of their own, must be one (retest.tune=false)")
    if np.isnan(own.test_nll[own.usable]).any():
        raise BadInput(f"{run}: the test split was not scored, must be (training.score_test)")
    return [[own.facts["name"], str(own.facts["run_seed"]),
             f"{own.facts['training']['learning_rate']:g}", name, str(number),
             *(repr(float(value[i, k])) if own.usable[i, k] else "inf"
               for value in (own.valid_nll[..., -1], own.test_nll)),
             record["environment"]["revision"]]
            for i, name in enumerate(own.mechanisms) for k, number in enumerate(own.numbers)
            if own.status[i, k] != tables.MISSING]


def _lines_of_gates(record: dict[str, Any]) -> list[list[str]]:
    """The same of a record of gates, whose seeds that judge are those of nas-train; test nll is not
    known of those that tune.
    """
    found, seed = [], str(record["identity"]["run_seed"])
    for model in record["models"]:
        sets = [(f"{seed} tuning", 0, one["learning_rate"], one["valid_nll"],
                 [math.nan] * len(one["valid_nll"])) for one in model["tuning"]]
        judged = seed, digest.FIRST_HELD_OUT, *(
            model[key] for key in ("learning_rate", "valid_nll", "test_nll"))
        for seeds, first, rate, *nll in (*sets, judged):
            found += [[record["config"]["name"], seeds, f"{rate:g}", model["candidate"],
                       str(first + k), *("inf" if value is None else repr(value) for value in pair),
                       record["revision"]] for k, pair in enumerate(zip(*nll))]
    return found


def read(path: Path) -> Any:
    """A file of JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error


def added(path: Path, runs: list[str]) -> list[list[str]]:
    """The lines of a file, where it is there, and those of runs in the place of what they train
    anew.
    """
    known: dict[tuple, list[str]] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            head, *lines = csv.reader(file)
        if tuple(head) != TRAINING:
            raise BadInput(f"{path}: its columns are {', '.join(head)}, must be "
                           f"{', '.join(TRAINING)}")
        known = {tuple(line[:5]): line for line in lines}
    known |= {tuple(line[:5]): line for run in runs for line in lines_of(run)}
    return [known[key] for key in sorted(known)]


def grouped(lines: list[list[str]]) -> Trainings:
    """By all but the replicate."""
    found: Trainings = defaultdict(dict)
    for task, seeds, rate, mechanism, replicate, valid, test, _ in lines:
        found[task, seeds, float(rate), mechanism][int(replicate)] = float(valid), float(test)
    return found


def own_rate(claim: dict[str, Any], mechanism: str,
             trainings: Trainings) -> tuple[float, float, bool]:
    """The rate of a mechanism, the mean validation nll that it has there over the seeds that tune,
    and whether it is an end of the rates tried. Without such seeds the one rate of the seeds that
    judge."""
    called = claim.get("tuning", claim["judging"])
    cells = {key[2]: own for key, own in trainings.items()
             if (key[0], key[1], key[3]) == (claim["task"], called, mechanism)}
    rates = sorted(cells)
    if "tuning" not in claim:
        if len(rates) != 1:
            raise BadInput(f"{claim['task']}: {mechanism} has {len(rates)} rates with the seeds "
                           f"{called}, must have one")
        return rates[0], 0.0, False
    seeds = {tuple(sorted(own)) for own in cells.values()}
    if len(rates) < FEWEST_RATES or len(seeds) > 1:
        raise BadInput(f"{claim['task']}: {mechanism} is tuned at {len(rates)} rates with "
                       f"{len(seeds)} sets of seeds, must be at "
                       f"least {FEWEST_RATES} with the same seeds")
    mean = {rate: float(np.mean([valid for valid, _ in cells[rate].values()])) for rate in rates}
    best = min(rates, key=mean.__getitem__)
    return best, mean[best], best in (rates[0], rates[-1])


def tested(claim: dict[str, Any], trainings: Trainings) -> dict[str, Any]:
    """A claim's difference as a share of test perplexity, its interval, n and p, with the rates."""
    rate, *_ = own_rate(claim, claim["mechanism"], trainings)
    rivals = {name: own_rate(claim, name, trainings) for name in claim["against"]}
    rival = min(rivals, key=lambda name: rivals[name][1])
    own, other = ({number: test for number, (_, test) in trainings.get(
        (claim["task"], claim["judging"], at, name), {}).items()}
        for name, at in ((claim["mechanism"], rate), (rival, rivals[rival][0])))
    seeds = sorted(own.keys() & other.keys())
    if len(seeds) < 2:
        raise BadInput(f"{claim['task']}: {len(seeds)} seeds {claim['judging']} judge "
                       f"{claim['mechanism']} at {rate:g} and {rival} at "
                       f"{rivals[rival][0]:g}, must be at least 2")
    a, b = (np.array([found[seed] for seed in seeds]) for found in (own, other))
    if not np.isfinite([a, b]).all():
        raise BadInput(f"{claim['task']}: a training run that judges failed")
    interval, p = statistics.paired_test(a - b, statistics.rounding(a, b))
    text = claim["claim"] if "tuning" in claim else f"At one learning rate: {claim['claim']}"
    return {"claim": text, "rate": rate, "rival": rival, "rival_rate": rivals[rival][0],
            "open_rate": rivals[rival][2], "n": len(seeds), "p": p,
            **{name: math.expm1(value) for name, value in zip(DIFFERENCE, interval)}}


def family(claims: list[dict[str, Any]], trainings: Trainings) -> list[dict[str, Any]]:
    """All claims, corrected together. One is confirmed where p by Holm is below 0.05; that of a
    wrong sign is 1, and that of a rival that may do better at a rate beyond those tried."""
    if not 1 <= len(claims) <= MOST:
        raise BadInput(f"{len(claims)} claims, must be 1 to {MOST}: a family that grows proves "
                       f"less of each")
    rows = [tested(claim, trainings) for claim in claims]
    directed = [row["p"] if row["difference"] < 0 and not row["open_rate"] else 1.0 for row in rows]
    return [row | {"p_holm": float(p), "confirmed": "yes" if p < 0.05 else "no"}
            for row, p in zip(rows, statistics.holm(directed))]


def table(rows: list[dict[str, Any]]) -> str:
    """The claims for people."""
    lines = [
        "# Confirmatory claims", "",
        f"Paired t-tests of test perplexity over equal seeds; p by Holm over all {len(rows)}, as 1 "
        "where the difference has the other sign. Rates: of the mechanism and of what it is "
        "compared with, each the best for it on seeds that do not judge. Everything else in this "
        "repository is exploratory.", "",
        "| claim | rates | difference (95 %) | n | p | p (Holm) | |",
        "|---|---|--:|--:|--:|--:|---|"]
    for row in rows:
        difference, low, high = (f"{100 * row[name]:+.1f}" for name in DIFFERENCE)
        lines.append(
            f"| {row['claim']} | {row['rate']:g}, "
            f"{row['rival_rate']:g}{' (end)' if row['open_rate'] else ''} | {difference} % ({low} "
            f"to {high}) | {row['n']} | {p_column(row['p'])} | {p_column(row['p_holm'])} | "
            + ("stands" if row["confirmed"] == "yes" else "falls" if row["p"] < 0.05
               else "not shown") + " |")
    return "\n".join(lines) + "\n"


@program
def main(words: list[str]) -> None:
    """Reads the claims, tests them, writes the files."""
    parser = argparse.ArgumentParser(description="tests the confirmatory claims as one family")
    parser.add_argument("claims", type=Path)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    options = parser.parse_args(words)
    claims, lines = read(options.claims), added(options.output / "trainings.csv", options.runs)
    options.output.mkdir(parents=True, exist_ok=True)
    write_whole(options.output / "trainings.csv", csv_text(TRAINING, lines).encode())
    rows = family(claims, grouped(lines))
    write_whole(options.output / "claims.md", table(rows).encode())
    write_whole(options.output / "claims.csv",
                csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)).encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
