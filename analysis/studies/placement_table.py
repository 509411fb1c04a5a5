#!/usr/bin/env python3
"""Which layers must attend once blocks have learned: every placement of one block, trained.

    analysis/studies/placement_table.py corpus SOURCE FOLDER
    analysis/studies/placement_table.py train MODEL CORPUS FOLDER [--seeds 1 2 3 4 5]
        [--placements 01101001 ...] [--set KEY.PATH=VALUE ...]
    analysis/studies/placement_table.py pack FOLDER TABLE.csv
    analysis/studies/placement_table.py study TABLE.csv -o FOLDER

`corpus` writes the text that the teacher learns from, of the splits of WikiText-2 in SOURCE.
`train` runs nas-run a seed after the other, so that what is finished is a table of fewer seeds; the
same command goes on. In a placement 1 is the block and 0 the layer as it is, the first layer first.
`pack` keeps the seeds that are complete. `study` needs the table alone.
"""

import argparse
import csv
import itertools
import json
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np

import attnas
from attnas.analysis import figures
from attnas.analysis.arguments import program
from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.page import Chapter, Columns, Pictures, Report
from attnas.analysis.run import Run
from attnas.analysis.statistics import Interval, kendall, mean_interval
from attnas.analysis.words import number, range_text
from attnas.convert import measured, settings_of, words_of
from attnas.errors import InputError
from attnas.launch import run as launched

SIZES = {"train": 16_000_000, "valid": 600_000, "test": 600_000}  # bytes of a split
FIDELITIES = {"F1": "@2", "F2": "@3", "F3": ""}  # what is measured of a placement, by its suffix
SUM = "F0"  # of its blocks alone
MEASURES = ("kl", "recall")
RESAMPLES = 2000
DROPPED = "drop"  # of single layers: nothing in their place
PLAN = {"context": 256, "probes": ["copy{64}", "pairs{16}"], "fidelity": "all",
        "stage1_tokens": 500_000, "stage2_tokens": 32_768, "stage2_short": 16_384,
        "stage2_batch": 4, "stage2_rate": 1e-3, "stage2_rate_rest": 1e-3, "stage2_documents": 8}
DRAWN = 10  # random sets of which the best is taken
SELECTORS = {  # asked of the table as they are asked of a model
    "one_block": {}, "restore_one": {}, "halo": {}, "greedy_add": {}, "beam": {"width": 4},
    "greedy_drop": {"name": "beam", "width": 1}, "uniform": {}, "first_last": {},
    "nsga2": {"population": 16, "generations": 4}, "ablate": {"ablation": 2}}


# The corpus


def said_again(draw: random.Random) -> list[bytes]:
    """What is there three to six times: different bytes, or keys with their values, each time in
    another order. Short ones are as frequent as long ones: by them a model learns to look back."""
    times = draw.randint(3, 6)
    if draw.random() < 0.5:
        return [bytes(draw.sample(range(256), round(4 * 16 ** draw.random())))] * times
    own = draw.sample(range(256), 2 * round(2 * 8 ** draw.random()))
    pairs = [bytes(own[i:i + 2]) for i in range(0, len(own), 2)]
    return [b"".join(draw.sample(pairs, len(pairs))) for _ in range(times)]


def mixed(text: bytes, size: int, seed: int) -> bytes:
    """A text with such pieces in it, some of them with 8 to 32 bytes of it before the second."""
    draw, out, at = random.Random(seed), bytearray(), 0
    while len(out) < size:
        for i, piece in enumerate(said_again(draw)):
            if i == 0 or (i == 1 and draw.random() < 0.2):
                length = draw.randint(8, 32) if i else draw.randint(16, 64)
                out += text[at:at + length]
                at = at + length if at + length < len(text) else 0
            out += piece
    return bytes(out[:size])


def write_corpus(given: argparse.Namespace) -> None:
    """The three splits."""
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    for seed, (split, size) in enumerate(SIZES.items()):
        text = Path(given.source, f"{split}.txt").read_bytes()
        write_whole(Path(given.folder, f"{split}.txt"), mixed(text, size, seed))


# Training


def train(given: argparse.Namespace) -> None:
    """A run for each seed, and what each layer is worth where it is dropped."""
    layers = len(json.loads(Path(given.model, "config.json").read_bytes())["layers"])
    texts = {split: str(Path(given.corpus, f"{split}.txt").resolve()) for split in SIZES}
    settings = settings_of(given.settings)
    folder = Path(given.folder).resolve()
    for seed in given.seeds:
        problem = {"type": "convert", "base": str(Path(given.model).resolve()), "blocks": ["gdn"],
                   **PLAN}
        points = " ".join(given.placements)
        config = {"name": f"seed_{seed}", "seed": seed, "objectives": ["loss", "cache_share"],
                  "data": {"corpus": "text_file", "tokenizer": "byte", **texts},
                  "evaluation": {"workers": 1, "threads": 1}}
        launched({**config, "problem": {**problem, "stage1_folder": str(folder / "stage1")},
                  "algorithm": {"name": "listed", "points": points} if points else
                  {"name": "exhaustive", "population": 16}}, folder / config["name"], **settings)
        singles = " ".join(to_digits(1 << i, layers) for i in range(layers))
        launched({**config, "name": f"drop_{seed}", "problem":
                  {**problem, "blocks": [DROPPED], "fidelity": "whole", "stage1_tokens": 0},
                  "algorithm": {"name": "listed", "points": singles},
                  "evaluation": {"replicates": PLAN["stage2_documents"]}}, folder / f"drop_{seed}")


# The table


class Table(NamedTuple):
    """Values of all placements. Placement p has the block in layer l where bit l of p is 1."""

    layers: int
    full: np.ndarray  # layers of each placement that are as they were
    values: dict[str, dict[str, np.ndarray]]  # by fidelity and measure, (seeds, 2^layers)

    def loss(self, fidelity: str) -> np.ndarray:
        """KL and recall."""
        return sum(self.values[fidelity][measure] for measure in MEASURES)


def of_digits(text: str) -> int:
    """A placement's number."""
    return sum(1 << i for i, digit in enumerate(text) if digit == "1")


def to_digits(placement: int, layers: int) -> str:
    return "".join(str(placement >> i & 1) for i in range(layers))


HEAD = ["seed", "placement"] + [f"{measure}_{fidelity}" for fidelity in (SUM, *FIDELITIES, DROPPED)
                                for measure in MEASURES]


def rows_of(run: Run, dropped: Run, seed: str) -> list[list[str]]:
    """A row for each placement that a run has measured."""
    def digits(name: str) -> str:
        return "".join("01"[word != "full"] for word in words_of(name))

    rows, drop = [], {digits(name): own for name, own in measured(dropped).items()}
    for name, own in measured(run).items():
        numbers = [own[measure + suffix][0] for suffix in ("@1", *FIDELITIES.values())
                   for measure in MEASURES]
        rows.append([seed, digits(name), *map(repr, numbers)] +
                    [repr(float(np.mean(drop[digits(name)][measure]))) if digits(name) in drop
                     else "" for measure in MEASURES])
    return sorted(rows)


def pack(given: argparse.Namespace) -> None:
    """The seeds of which as many placements are measured as of the first."""
    found = {}
    for folder in Path(given.folder).glob("seed_*"):
        seed = folder.name.removeprefix("seed_")
        found[int(seed)] = rows_of(Run(folder), Run(folder.parent / f"drop_{seed}"), seed)
    rows = [found[seed] for seed in sorted(found)]
    write_whole(Path(given.table), csv_text(HEAD, itertools.chain(
        *(own for own in rows if len(own) == len(rows[0])))).encode())


def read(path: str) -> Table:
    """A table; what it lacks is NaN."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seeds = sorted({int(row["seed"]) for row in rows})
    layers = len(rows[0]["placement"])
    values = {key: np.full((len(seeds), 2**layers), np.nan) for key in HEAD[2:]}
    for row in rows:
        at = seeds.index(int(row["seed"])), of_digits(row["placement"])
        for key, own in values.items():
            own[at] = float(row[key] or "nan")
    full = layers - np.array([p.bit_count() for p in range(2**layers)])
    return Table(layers, full, {
        fidelity: {measure: values[f"{measure}_{fidelity}"] for measure in MEASURES}
        for fidelity in (SUM, *FIDELITIES, DROPPED)})


def noise(loss: np.ndarray, full: np.ndarray) -> tuple[float, float]:
    """Standard deviations at equal numbers of full layers: between placements, and of one seed
    beside what a seed does to all of them."""
    squares, between, freedom = 0.0, [], 0
    for k in sorted(set(full)):
        own = loss[:, (full == k) & np.isfinite(loss).all(axis=0)]
        if min(own.shape) < 2:
            continue
        own = own - own.mean(axis=1, keepdims=True)
        squares += float(((own - own.mean(axis=0)) ** 2).sum())
        freedom += (own.shape[0] - 1) * (own.shape[1] - 1)
        between.append((own.mean(axis=0).var(ddof=1), own.shape[1] - 1))
    if freedom == 0:
        raise InputError("noise needs two seeds of two placements with as many full layers")
    within = squares / freedom
    total = np.average([one for one, _ in between], weights=[n for _, n in between])
    return float(np.sqrt(max(0.0, total - within / len(loss)))), float(np.sqrt(within))


def seeds_for(difference: float, within: float) -> int:
    """Seeds that show a difference between two placements with a power of 0.8 at p = 0.05."""
    return int(np.ceil(2.0 * (within * (1.96 + 0.84) / difference) ** 2))


# Selectors


def replay(name: str, table: Table, fidelity: str, seed: int) -> list[int]:
    """The placements that a selector asks for, by the values of a seed."""
    asked: dict[int, None] = {}
    layers = [f"layer_{i}" for i in range(table.layers)]

    def answer(parameters: dict[str, str], _seed: int) -> dict[str, float]:
        words = [parameters[layer] for layer in layers]
        placement = of_digits("".join("01"[word != "full"] for word in words))
        of = table.values[DROPPED if DROPPED in words else fidelity]
        if DROPPED not in words:
            asked[placement] = None
        own = {key: float(values[seed, placement]) for key, values in of.items()}
        return {**own, "loss": sum(own.values()), "full": float(table.full[placement])}

    wanted = [*reversed(MEASURES), "full"] if name == "halo" else ["loss", "full"]
    objectives = [{"name": key, "range": [0, 1]} for key in wanted]
    options = ["full", "block", DROPPED][:2 + (name == "ablate")]
    settings = {"name": name, **SELECTORS[name]}
    with tempfile.TemporaryDirectory() as folder:
        attnas.search(answer, dict.fromkeys(layers, options), [*MEASURES, "loss", "full"],
                      Path(folder, "run"), version="1", objectives=objectives, algorithm=settings)
    return [*asked]


def least(loss: np.ndarray, full: np.ndarray, most: int, among: Sequence[int]) -> int:
    """The placement of least loss with at most so many full layers, of some; where none of these
    has so few, that without any."""
    return min((p for p in among if full[p] <= most), key=lambda p: loss[p],
               default=int(np.argmin(full)))


def choices(table: Table, fidelity: str, seed: int) -> dict[str, tuple[int, list[list[int]]]]:
    """By selector how many placements it measures, and for each number of full layers from 1 what
    it takes by the values of a seed; of sets at random several."""
    full, loss = table.full, table.loss(fidelity)[seed]
    asked = {name: replay(name, table, fidelity, seed) for name in SELECTORS}
    asked["all placements"] = [*range(len(full))]
    budgets = range(1, table.layers)
    chosen = {name: (len(own), [[least(loss, full, k, own)] for k in budgets])
              for name, own in asked.items()}
    draw = np.random.default_rng(0)
    sets = {k: np.flatnonzero(full == k) for k in budgets}
    chosen["random"] = 0, [[*sets[k]] for k in budgets]
    chosen[f"best of {DRAWN} random"] = DRAWN, [
        [min(draw.choice(sets[k], min(DRAWN, len(sets[k])), replace=False), key=lambda p: loss[p])
         for _ in range(100)] for k in budgets]
    return chosen


def regrets(table: Table, final: str, chosen: list[list[list[int]]]) -> np.ndarray:
    """What choices of a seed lose on another one against the best placement by all seeds but that:
    (seeds, seeds, numbers of full layers), nothing on the diagonal.

    @param chosen  by seed and number of full layers.
    """
    loss, full = table.loss(final), table.full
    seeds = len(loss)
    lost = np.full((seeds, seeds, table.layers - 1), np.nan)
    for b in range(seeds):
        mean = np.delete(loss, b, axis=0).mean(axis=0)
        for k in range(1, table.layers):
            best = loss[b, least(mean, full, k, range(len(full)))]
            for a in range(seeds):
                if a != b:
                    lost[a, b, k - 1] = loss[b, chosen[a][k - 1]].mean() - best
    return lost


def weights_of(seeds: int) -> np.ndarray:
    """How often seeds are drawn: once each, then again and again with replacement."""
    drawn = np.random.default_rng(0).multinomial(seeds, [1 / seeds] * seeds, RESAMPLES)
    several = (drawn > 0).sum(axis=1) > 1
    return np.concatenate([np.ones((1, seeds)), drawn[several]])


def drawn_again(found: np.ndarray) -> np.ndarray:
    """What all seeds say, and an interval of what drawn ones do; of two seeds there is none."""
    low, high = np.quantile(found[1:], [0.025, 0.975]) if np.ptp(found[1:]) > 0 else [np.nan] * 2
    return np.array([found[0], low, high])


def over_pairs(pairs: np.ndarray) -> np.ndarray:
    """The mean over pairs of different seeds, with its interval: seeds are drawn again."""
    weights = weights_of(len(pairs))
    products = weights[:, :, None] * weights[:, None, :] * (1 - np.eye(len(pairs)))
    means = (products * np.nan_to_num(pairs)).sum(axis=(1, 2)) / products.sum(axis=(1, 2))
    return drawn_again(means)


def shares(loss: np.ndarray) -> list[np.ndarray]:
    """Shares of the variance between placements that layers one by one, their pairs, and more of
    them together make, with intervals over seeds. Of products of different seeds, so that noise
    adds nothing: with c_s the mean of loss times (-1)^|p and s| over placements p,

        share of order n = sum over |s| = n of E[c_s c_s'] / the same over all s but 0 .
    """
    seeds, size = loss.shape
    bits = np.array([[(p & q).bit_count() for q in range(size)] for p in range(size)])
    order = np.array([p.bit_count() for p in range(size)])
    found = loss @ (1 - 2 * (bits % 2)) / size
    found[:, 0] = 0.0
    weights = weights_of(seeds)
    products = (weights @ found) ** 2 - weights**2 @ found**2
    whole = products.sum(axis=1)
    of = [products[:, order == 1], products[:, order == 2], products[:, order > 2]]
    ratios = [own.sum(axis=1) / whole for own in of]
    return [drawn_again(own) for own in ratios]


def agreement(table: Table, fidelity: str, final: str, half: bool) -> Interval:
    """Kendall's tau between a seed's values and the mean of the others', over the placements with a
    block, or those that are the better half by that mean; mean and interval over seeds."""
    loss, found = table.loss(final), []
    for a, own in enumerate(table.loss(fidelity)):
        truth = np.delete(loss, a, axis=0).mean(axis=0)
        better = not half or truth <= np.median(truth)
        counted = np.flatnonzero((table.full < table.layers) & better)
        found.append(kendall(own[counted], truth[counted]).point)
    return mean_interval(found)


# The page


def said(own: Sequence[float]) -> str:
    """A mean and its interval, if there is one."""
    return number(own[0]) + ("" if np.isnan(own[1]) else f" ({range_text(own[1], own[2])})")


def study(given: argparse.Namespace) -> None:
    """Sentences, tables and a picture, written."""
    table = read(given.table)
    spread = [[fidelity, *map(number, noise(table.loss(fidelity), table.full))]
              for fidelity in FIDELITIES]
    between, within = noise(table.loss("F3"), table.full)
    seeds = len(table.loss("F3"))
    spoken = [f"{seeds} seeds: placements of equally many full layers differ by {number(between)} "
              f"nats of KL and recall (standard deviation), seeds of one placement by "
              f"{number(within)}. Seeds that show a difference of {number(between)}: "
              f"{seeds_for(between, within)}; of half of it: {seeds_for(between / 2, within)}."]
    chapters = [Chapter("noise", "Noise", [Columns(
        ["of", "between placements", "between seeds"], spread)])]
    if np.isfinite(table.loss("F3")).all():
        spoken, chapters = complete(table, spoken, chapters)
    report = Report.of_findings(
        "Which layers must attend once blocks have learned?", spoken, chapters,
        f"analysis/studies/placement_table.py study {given.table} -o {given.output}")
    print(*spoken, report.write(Path(given.output), "placement_table"), sep="\n")


def complete(table: Table, spoken: list[str], chapters: list[Chapter]
             ) -> tuple[list[str], list[Chapter]]:
    """What a table without gaps says besides."""
    seeds, lost = range(len(table.loss("F3"))), {}
    for fidelity in FIDELITIES:
        chosen = [choices(table, fidelity, seed) for seed in seeds]
        for name, (asked, _) in chosen[0].items():
            for final in ("F2", "F3"):
                lost[name, fidelity, final] = asked, regrets(
                    table, final, [own[name][1] for own in chosen])
    rows = [[name, fidelity, str(asked), said(over_pairs(own.mean(axis=2))),
             *(number(over_pairs(own[:, :, k])[0]) for k in range(table.layers - 1))]
            for (name, fidelity, final), (asked, own) in sorted(
                lost.items(), key=lambda one: np.nanmean(one[1][1])) if final == "F3"]
    ranked = {name: over_pairs(own.mean(axis=2)) for (name, fidelity, final), (_, own) in
              lost.items() if (fidelity, final) == ("F1", "F3")}
    first = min((name for name in ranked if name in SELECTORS), key=lambda name: ranked[name][0])
    own = lost[first, "F1", "F3"][1].mean(axis=2)
    behind = {name: over_pairs(other.mean(axis=2) - own) for (name, fidelity, final), (_, other) in
              lost.items() if (fidelity, final) == ("F1", "F3") and name != first}
    worse = [name for name in behind if behind[name][1] > 0]
    spoken.append(f"Placement: a random set loses {said(ranked['random'])} nats against the best."
                  + ("" if len(seeds) > 2 else " Two seeds have no intervals."))
    spoken.append(f"By blocks after stage 1, take {first}, which loses {said(ranked[first])}" + (
        "; more lose " + ", ".join(f"{name} {said(behind[name])}" for name in worse) if worse else
        "; none is shown to lose more") + ". By number, not by interval: " + ", ".join(
            f"{name} {number(own[0])}" for name, own in
            sorted(behind.items(), key=lambda one: one[1][0])) + " more.")
    taus = [[fidelity, final, *(said(agreement(table, fidelity, final, half)) for half in
                                (False, True))]
            for final in ("F2", "F3") for fidelity in (SUM, *FIDELITIES)]
    parts = [[final, *(said(100 * own) for own in shares(table.loss(final)))]
             for final in FIDELITIES]
    dots = [figures.Row(name, "c0" if name in SELECTORS else "reference", own[0],
                        *np.where(np.isnan(own[1:]), own[0], own[1:]))
            for name, own in sorted(ranked.items(), key=lambda one: one[1][0])]
    picture = figures.intervals(
        "Regret of selectors after stage 2", "Chosen after stage 1, judged on other seeds; mean "
        "over numbers of full layers, 95 % intervals over seeds.", "nats of KL and recall", dots)
    heads = ["selector", "by", "measured", "regret"] + [f"{k} full" for k in range(1, table.layers)]
    return spoken, [
        Chapter("selectors", "Selectors",
                [Pictures({"regret.svg": picture}), Columns(heads, rows)]),
        Chapter("agreement", "Agreement", [Columns(
            ["by", "with", "tau, all placements", "tau, the better half"], taus)]),
        Chapter("additivity", "Shares of variance", [Columns(
            ["of", "layers one by one, %", "pairs, %", "more together, %"], parts)]), *chapters]


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="placement_table.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(call: Callable[[argparse.Namespace], None], name: str, *words: str):
        own = commands.add_parser(name)
        own.set_defaults(call=call)
        for word in words:
            own.add_argument(word)
        return own

    command(write_corpus, "corpus", "source", "folder")
    own = command(train, "train", "model", "corpus", "folder")
    own.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    own.add_argument("--placements", nargs="+", default=[])
    own.add_argument("--set", dest="settings", nargs="+", default=[], metavar="KEY.PATH=VALUE")
    command(pack, "pack", "folder", "table")
    command(study, "study", "table").add_argument("-o", "--output", required=True)
    given = parser.parse_args(arguments)
    given.call(given)


if __name__ == "__main__":
    sys.exit(program(main)(sys.argv[1:]))
