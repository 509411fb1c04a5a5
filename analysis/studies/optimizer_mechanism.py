#!/usr/bin/env python3
"""Does a mechanism's rank survive another optimiser?

    analysis/studies/optimizer_mechanism.py pilot CONFIG FOLDER
    analysis/studies/optimizer_mechanism.py train CONFIG FOLDER
    analysis/studies/optimizer_mechanism.py pack FOLDER... TABLE.csv
    analysis/studies/optimizer_mechanism.py study TABLE.csv -o FOLDER

`pilot` trains the baseline, the controls and linear attention by each optimiser, and says by which
the baseline is better than controls and linear attention another, at a rate inside those tried and
with room left. `train` trains all mechanisms by these, two or more: three or four rates by three
seeds, at either end up to two more while the best is there, then eight fresh seeds at the best rate
of each. The same command goes on. `pack` takes complete runs; `study` needs the table alone.
"""

import argparse
import csv
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain, combinations, groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np

from attnas.analysis import digest, figures
from attnas.analysis.arguments import program
from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.page import Chapter, Columns, Pictures, Report
from attnas.analysis.run import Run
from attnas.analysis.statistics import holm, paired_test, rounding
from attnas.analysis.words import duration, number
from attnas.errors import InputError
from placement_table import drawn_again, said, weights_of

RATES = {"adamw": [1e-3, 2e-3, 4e-3, 8e-3], "muon": [2e-3, 4e-3, 8e-3, 1.6e-2],
         "lion": [2.5e-4, 5e-4, 1e-3, 2e-3]}  # to begin with
GROWTH = 4.0  # of the grid at either end, by steps of 2
VANILLA, CONTROLS = "vanilla", ("2*none", "window+window=4")
MECHANISMS = (*CONTROLS, "sparsemax", "sigmoid_attn", "cosine", "rope", "output_gate", "mqa", "gdn",
              "gla", "linear")  # as nas-train takes and calls them
PILOT = (*CONTROLS, "linear")  # attention is better than controls, and linear is not attention
CHOOSING, JUDGING = range(1, 4), range(4, 12)  # seeds
OWN = {"packages": ({"adamw": [4e-3, 8e-3, 1.6e-2], "muon": [5e-3, 1e-2, 2e-2],
                     "lion": [5e-4, 1e-3, 2e-3]}, ("rope",))}  # rates, and what is left out
LEARNED = 0.05  # nats below chance
HEAD = ("task", "chance", "least", "optimizer", "mechanism", "learning_rate", "seed", "valid_nll",
        "test_nll")
Cell = dict[float, dict[int, tuple[float, float]]]  # by rate and seed: nll, NaN of what failed
Cells = dict[tuple[str, str], Cell]  # by optimiser and mechanism


# Training


def rows_of(folder: Path) -> Iterator[list]:
    """Those of the table of a run; none of one that is not complete."""
    run = Run(folder) if (folder / "results.json").is_file() else None
    trained = run and run.retest and run.retest.get("candidates")  # not of one that was stopped
    if not trained or len(run.evaluations) < len(trained) * run.retest["replicates"]:
        return
    names = {one["candidate"]: VANILLA if one["role"] == "baseline" else
             one["label"].rpartition("/")[2] for one in trained}
    guess = run.facts.get("chance") or {"nll": math.log(run.facts["unigram_perplexity"])}
    for one in run.evaluations:
        own, last = one.identity["training"], one.curve[-1]["valid"] if one.usable else {}
        nll = last["nll"] / last["tokens"] if last else math.nan
        yield [run.name, guess["nll"], run.facts.get("least_nll", 0.0),
               own.get("optimizer", "adamw"), names[one.candidate], own["learning_rate"],
               digest.seed_number(one.replicate), nll, one.values.get("test_nll", math.nan)]


def rows_in(folders: list[Path]) -> list[list]:
    """Of all runs in folders, each training once."""
    found = {tuple(row[:7]): row for folder in folders for path in sorted(folder.glob("*"))
             for row in rows_of(path)}
    return [found[key] for key in sorted(found)]


def cells_of(rows: list[list]) -> Cells:
    """The trainings of a task."""
    found: Cells = {}
    for _, _, _, optimizer, mechanism, rate, seed, *nll in rows:
        found.setdefault((optimizer, mechanism), {}).setdefault(rate, {})[seed] = tuple(nll)
    return found


def tried(cell: Cell) -> list[float]:
    """Rates that have all seeds that choose."""
    return sorted(rate for rate, own in cell.items() if set(CHOOSING) <= set(own))


def best_rate(cell: Cell, seeds: list[int] | range = CHOOSING) -> float:
    """Of least mean validation nll by these; one where a seed failed only if all are such."""
    means = {rate: float(np.mean([cell[rate][seed][0] for seed in seeds])) for rate in tried(cell)}
    return min(means, key=lambda rate: math.inf if math.isnan(means[rate]) else means[rate])


class Trainings:
    """Runs of nas-train in a folder, one after the other."""

    def __init__(self, config: str, folder: Path, mechanisms: tuple[str, ...]):
        self.rates, left_out = OWN.get(Path(config).stem, (RATES, ()))
        self.config, self.folder = config, folder
        self.mechanisms = tuple(one for one in mechanisms if one not in left_out)

    def run(self, name: str, optimizer: str, own: list[str], seeds: range, *settings: str) -> None:
        """One of them, unless it is complete."""
        path, count, began = self.folder / name, len(seeds) * (len(own) + 1), time.monotonic()
        earlier = self.folder / f"pilot_{name}"
        if not [*rows_of(path)]:
            command = [
                digest.program("nas-train") or "nas-train", *own, self.config, *settings,
                f"training.optimizer={optimizer}", f"retest.first_seed={seeds[0] - 1}",
                f"--seeds={len(seeds)}", "controls=false", f"evaluation.array={len(CHOOSING)}",
                "evaluation.workers=1", "evaluation.device=cpu", "--no-report", "-q",
                f"--output={path}", *([f"--reuse={earlier}"] if earlier.is_dir() else [])]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                raise SystemExit(done.returncode)  # nas-train has said why
        print(f"{time.strftime('%d %H:%M')} {name}: {count} trained in "
              f"{duration(time.monotonic() - began)}", flush=True)

    def tune(self, prefix: str) -> None:
        """The rates that each begins with, and those beyond an end while some are best there."""
        wanted = {(optimizer, rate): [*self.mechanisms]
                  for optimizer, rates in self.rates.items() for rate in rates}
        asked = set()
        while wanted:
            asked |= wanted.keys()
            for (optimizer, rate), own in wanted.items():
                self.run(f"{prefix}{optimizer}_{rate:g}", optimizer, own, CHOOSING,
                         f"training.learning_rate={rate!r}", "retest.tune=false")
            wanted = {key: own for key, own in self.beyond().items() if key not in asked}

    def beyond(self) -> dict[tuple[str, float], list[str]]:
        """Rates to be tried, and what is best beside them but does not guess; vanilla comes too."""
        wanted: dict[tuple[str, float], list[str]] = {}
        rows = [row for row in rows_in([self.folder]) if row[3] in self.rates]
        for (optimizer, mechanism), cell in cells_of(rows).items():
            best, rates, grid = best_rate(cell), tried(cell), self.rates[optimizer]
            rate = best * 2 if best == rates[-1] else best / 2 if best == rates[0] else math.inf
            guesses = min(nll for nll, _ in cell[best].values()) > rows[0][1] - LEARNED
            if not guesses and grid[0] / GROWTH <= rate <= grid[-1] * GROWTH:
                wanted.setdefault((optimizer, rate), []).extend({mechanism} & {*self.mechanisms})
        return {key: own or [*self.mechanisms[:1]] for key, own in wanted.items()}

    def judge(self) -> None:
        """Fresh seeds of all, each at its own best rate."""
        cells = cells_of(rows_in([self.folder]))
        for optimizer in self.rates:
            rates = [f"{name} {best_rate(cells[optimizer, name])!r}" for name in self.mechanisms]
            rates.append(f"baseline {best_rate(cells[optimizer, VANILLA])!r}")
            self.run(f"{optimizer}_judged", optimizer, [*self.mechanisms], JUDGING,
                     f"rates={json.dumps(rates)}", "retest.tune=true")


def pilot(given: argparse.Namespace) -> None:
    """By which optimisers the gates hold."""
    folder, held, passed = Path(given.folder), [], []
    Trainings(given.config, folder, PILOT).tune("pilot_")
    rows = rows_in([folder])
    cells, least = cells_of(rows), rows[0][2]
    for one in RATES:
        own, *others = (np.array([cell[best_rate(cell)][seed][0] for seed in CHOOSING])
                        for cell in (cells[one, name] for name in (VANILLA, *PILOT)))
        best, rates = best_rate(cells[one, VANILLA]), tried(cells[one, VANILLA])
        gates = [
            (f"{one}: room", bool(own.mean() - least > math.log(1.05)),
             f"{own.mean():.3f} nats of {least:.3f}; seeds differ by {own.std(ddof=1):.3f}"),
            (f"{one}: best rate inside", rates[0] < best < rates[-1],
             f"{best:g} of {rates[0]:g} to {rates[-1]:g}")]
        for name, other in zip(PILOT, others, strict=True):
            interval, p = paired_test(own - other, rounding(own, other))
            gates.append((f"{one}: {'better' if name in CONTROLS else 'other'} than {name}",
                          bool(interval.high < 0 or (name not in CONTROLS and p < 0.05)),
                          f"{said(interval)} nats, p {p:.2g}"))
        passed, held = passed + [one] * all(is_so for _, is_so, _ in gates), held + gates
    words = [f"{gate}: {'passed' if is_so else 'FAILED'}, {of}" for gate, is_so, of in held]
    write_whole(folder / "pilot.json", json.dumps(
        {"passed": len(passed) > 1, "optimizers": passed, "gates": words}, indent=1).encode())
    print(*words, sep="\n")


def train(given: argparse.Namespace) -> None:
    """All of it, by the optimisers that have passed."""
    found = Path(given.folder, "pilot.json")
    record = json.loads(found.read_bytes()) if found.is_file() else {"passed": False}
    if not record["passed"]:
        raise InputError(f"{found}: must say that the pilot has passed")
    own = Trainings(given.config, found.parent, MECHANISMS)
    own.rates = {one: own.rates[one] for one in record["optimizers"]}
    own.tune("")
    own.judge()


def pack(given: argparse.Namespace) -> None:
    """A table of what is complete."""
    rows = rows_in([*map(Path, given.folders)])
    write_whole(Path(given.table), csv_text(HEAD, rows).encode())
    print(f"{given.table}: {len(rows)} trainings")


# The study


def judged(cells: Cells, chance: float, rates: dict[str, list[float]] = RATES
           ) -> tuple[list[str], list[str], np.ndarray, bool]:
    """Optimisers that have all mechanisms at all rates to begin with, mechanisms, test nll of both
    by seed (chance of what failed or is worse), and whether the seeds are fresh; else those that
    choose judge, each at the rate that the others choose."""
    names = [name for name in (VANILLA, *MECHANISMS) if any(name in key for key in cells)]
    optimizers = [one for one in RATES if all(
        set(rates[one]) <= set(tried(cells.get((one, name), {}))) for name in names)]
    own = [cells[one, name] for one in optimizers for name in names]
    if fresh := all(set(JUDGING) <= set(cell[best_rate(cell)]) for cell in own):
        loss = [[cell[best_rate(cell)][seed][1] for seed in JUDGING] for cell in own]
    else:
        loss = [[cell[best_rate(cell, [one for one in CHOOSING if one != seed])][seed][1]
                 for seed in CHOOSING] for cell in own]
    shape = len(optimizers), len(names), len(JUDGING if fresh else CHOOSING)
    return optimizers, names, np.fmin(loss, chance).reshape(shape), fresh


def shares(loss: np.ndarray) -> list[np.ndarray]:
    """Shares of the variance of pairs that mechanisms, optimisers, and both together make, with
    intervals over seeds: of products of the effects of different seeds, to which noise adds
    nothing."""
    whole, sums = loss - loss.mean(axis=(0, 1)), []
    first, second = (whole.mean(axis=axis, keepdims=True) + 0 * whole for axis in (0, 1))
    weights = weights_of(loss.shape[2])
    for part in (first, second, whole - first - second):
        part = part.reshape(-1, loss.shape[2]).T
        sums.append(((weights @ part) ** 2 - weights**2 @ part**2).sum(axis=1))
    return [drawn_again(own / sum(sums)) for own in sums]


def taus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kendall's tau of (..., n) and (..., n) without ties."""
    a, b = (np.sign(one[..., :, None] - one[..., None, :]) for one in (a, b))
    return (a * b).sum(axis=(-1, -2)) / (a.shape[-1] * (a.shape[-1] - 1))


def of_halves(a: np.ndarray, b: np.ndarray) -> float:
    """Mean tau of half the seeds of a with the other seeds of b; (mechanisms, seeds) each."""
    seeds, found = set(range(a.shape[1])), []
    for half in combinations(seeds, len(seeds) // 2):
        other = [*seeds - set(half)]
        found += [taus(x[:, half].mean(axis=1), y[:, other].mean(axis=1)) for x, y in
                  ((a, b), (b, a))]
    return float(np.mean(found))


def orders(loss: np.ndarray) -> np.ndarray:
    """(optimisers, pairs of mechanisms): the sign of a difference that is shown, p by Holm over
    all."""
    pairs = [*combinations(range(loss.shape[1]), 2)]
    found = [paired_test(own[i] - own[j], rounding(own)) for own in loss for i, j in pairs]
    shown = np.array(holm([p for _, p in found])) < 0.05
    return (shown * np.sign([one.point for one, _ in found])).reshape(len(loss), len(pairs))


def failures(cells: Cells, key: tuple[str, str], chance: float) -> str:
    """How many trainings of a pair diverged, at any rate, and how many did not learn: ended beyond
    half way from the best of the mechanism to chance, where that is apart."""
    every = [[nll for own in cell.values() for nll, _ in own.values()] for pair, cell in
             cells.items() if pair[1] == key[1]]
    best, own = np.nanmin(np.concatenate(every)), np.array(
        [nll for cell in cells[key].values() for nll, _ in cell.values()])
    slow = (own > (best + chance) / 2).sum() if best < chance - LEARNED else "-"
    return f"{np.isnan(own).sum()}, {slow} of {len(own)}"


def chapters_of(task: str, rows: list[list]) -> tuple[str, list[Chapter], dict]:
    """What is said of a task, its tables and pictures, and means of test nll, seeds drawn again."""
    cells, chance = cells_of(rows), rows[0][1]
    optimizers, names, loss, fresh = judged(cells, chance, OWN.get(task, (RATES,))[0])
    if len(optimizers) < 2:
        raise InputError(f"{task}: {len(optimizers)} optimisers have all mechanisms at all rates, "
                         "must be 2 or more")
    inner = [i for i, name in enumerate(names) if name not in CONTROLS]
    weights = weights_of(loss.shape[2])
    means = np.einsum("rs,oms->rom", weights / weights.sum(axis=1, keepdims=True), loss)
    ranks = means.argsort(axis=2).argsort(axis=2) + 1
    low, high = np.quantile(ranks[1:], [0.025, 0.975], axis=0)
    shown = orders(loss[:, inner])
    agreed = [[f"{optimizers[i]}, {optimizers[j]}",
               said(drawn_again(taus(means[:, i, inner], means[:, j, inner]))),
               *(number(of_halves(loss[a, inner], loss[b, inner]))
                 for a, b in ((i, j), (i, i), (j, j))),
               f"{(shown[i] * shown[j] < 0).sum()} of {shown.shape[1]}"]
              for i, j in combinations(range(len(optimizers)), 2)]
    among = {"all": loss, "without controls": loss[:, inner]} | {
        f"of these {optimizers[i]} and {optimizers[j]}": loss[[i, j]][:, inner]
        for i, j in combinations(range(len(optimizers)), 2)}
    parts = [[of, *(said(100 * one) for one in shares(own))] for of, own in among.items()]
    _, mechanism, optimizer, both = parts[1]
    spoken = (
        f"{task}: of the variance between {len(inner)} mechanisms by {len(optimizers)} optimisers, "
        f"each pair at its own rate, {both} % is interaction, {mechanism} % the mechanism, "
        f"{optimizer} % the optimiser; tau between orders is " + "; ".join(
            f"{tau} ({pair}; {of} pairs shown in opposite order)" for pair, tau, *_, of in agreed)
        + f". {loss.shape[2]} seeds judge, " + (
            "which chose nothing." if fresh else "each at the rate that the others choose."))
    table = [[name, *chain(*(
        [f"{best_rate(cell):g}" + " (end)" * (best_rate(cell) in (tried(cell)[0], tried(cell)[-1])),
         f"{loss[o, m].mean():.4f}", f"{ranks[0, o, m]} ({low[o, m]:.0f} to {high[o, m]:.0f})",
         failures(cells, (one, name), chance)]
        for o, one in enumerate(optimizers) for cell in [cells[one, name]]))]
        for m, name in enumerate(names)]
    pictures = {f"{task}_{one}.svg": figures.intervals(
        f"Ranks under {one}", f"On {task}, in the order under {optimizers[0]}; 95 % intervals over "
        f"{loss.shape[2]} seeds.", "rank", [figures.Row(
            names[m], f"c{o}" if m in inner else "reference", float(ranks[0, o, m]), low[o, m],
            high[o, m]) for m in means[0, 0].argsort()], x_range=(0.5, len(names) + 0.5))
        for o, one in enumerate(optimizers)}
    columns = [f"{one}: {of}" for one in optimizers for of in (
        "rate", "test nll", "rank", "diverged, not learned")]
    return spoken, [
        Chapter(f"{task}_ranks", f"Ranks on {task}",
                [Pictures(pictures), Columns(["mechanism", *columns], table)]),
        Chapter(f"{task}_agreement", f"Agreement on {task}, without controls", [Columns(
            ["optimisers", "tau", "tau of halves of the seeds", "of the first with itself",
             "of the second with itself", "pairs shown in opposite order"], agreed)]),
        Chapter(f"{task}_shares", f"Shares of variance on {task}", [Columns(
            ["of", "mechanism, %", "optimiser, %", "interaction, %"], parts)])], {
                one: {names[m]: means[:, o, m] for m in inner} for o, one in enumerate(optimizers)}


def between(one: dict, other: dict) -> list[list[str]]:
    """By optimiser the tau between the orders on two tasks of the mechanisms of both."""
    found = []
    for optimizer in filter(other.get, one):
        names = [name for name in one[optimizer] if name in other[optimizer]]
        a, b = (np.array([own[optimizer][name] for name in names]).T for own in (one, other))
        found.append([optimizer, str(len(names)), said(drawn_again(taus(a[:len(b)], b[:len(a)])))])
    return found


def study(given: argparse.Namespace) -> None:
    """Sentences, tables and pictures, written."""
    with open(given.table, encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    if tuple(head) != HEAD:
        raise InputError(f"{given.table}: its columns must be {', '.join(HEAD)}")
    rows = [[task, float(chance), float(least), *names, float(rate), int(seed),
             *(float(nll or "nan") for nll in (valid, test))]
            for task, chance, least, *names, rate, seed, valid, test in lines]
    spoken, parts, means = zip(*(chapters_of(task, [*own]) for task, own in
                                 groupby(rows, lambda row: row[0])))
    tasks = [Chapter("tasks", "Agreement between tasks", [Columns(
        ["optimiser", "mechanisms", "tau"], between(*means))])] if len(means) == 2 else []
    report = Report.of_findings(
        "Does a mechanism's rank survive another optimiser?", spoken, [*chain(*parts), *tasks],
        f"analysis/studies/optimizer_mechanism.py study {given.table} -o {given.output}")
    print(*spoken, report.write(Path(given.output), "optimizer_mechanism"), sep="\n")


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="optimizer_mechanism.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for call, words in {pilot: ["config", "folder"], train: ["config", "folder"],
                        pack: ["folders", "table"], study: ["table"]}.items():
        own = commands.add_parser(call.__name__)
        own.set_defaults(call=call)
        for word in words:
            own.add_argument(word, **({"nargs": "+"} if word == "folders" else {}))
    own.add_argument("-o", "--output", required=True)
    given = parser.parse_args(arguments)
    given.call(given)


if __name__ == "__main__":
    sys.exit(program(main)(sys.argv[1:]))
