#!/usr/bin/env python3
"""Compares mixers that were trained at several learning rates, each at the best of its own.

    analysis/studies/mixers.py front RUN RUN... [--against state_bytes] [--value accuracy]
    [--searched NAME]... [-o FOLDER] analysis/studies/mixers.py survival RUN RUN... [-o FOLDER]

RUN are runs of nas-train (folders, their store.sqlite or results.json) of the same mechanisms with
the same seeds, which differ in the learning rate. A rate is chosen for each seed by the row's other
seeds on the validation split; judged is the test split. Runs that go on count with what they have.

front: the value (accuracy or perplexity) against a size (state_bytes, flops, parameters or a
measured one such as decode_latency), with the front over all rows and its interval; mechanisms
named by --searched are marked as found by a search. survival: whether and how soon placements solve
a task, of runs that each have the rows whose own rate is theirs (or of survival.csv); what has not
is censored. FOLDER receives KIND.html, KIND.md, KIND.csv and pictures. scripts/mixers makes the
runs.
"""

import argparse
import dataclasses
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis import packages

packages.require(__doc__, "numpy", "scipy", "pandas")

import numpy as np

from attnas.analysis import mixer_figures, statistics, survival, tuned
from attnas.analysis.arguments import program
from attnas.analysis.files import csv_text
from attnas.analysis.mixer_figures import Front, Point
from attnas.analysis.page import Bullets, Chapter, Columns, Paragraph, Pictures, Report
from attnas.analysis.statistics import Interval
from attnas.analysis.tables import TableError
from attnas.analysis.tuned import Row, Tuned
from attnas.analysis.words import counted, digits, listed, p_value

RESAMPLES = 2000
SOLVED = 0.99
LEVEL = 0.05


def _text(interval: Interval) -> str:
    point, low, high = (digits(float(value)) for value in interval)
    return f"{point} ({low} to {high})" if np.isfinite(interval.low) else point


def _listed(labels: Sequence[str]) -> str:
    return listed(labels, 40) if labels else "none"


def kind(row: Row) -> str:
    """Which of mixer_figures.KINDS it is, by the mixers of its layers."""
    return kind_of(row.label)


def kind_of(label: str) -> str:
    """The same of a label."""
    mixers = {re.split(r"[{+]", layer)[0] for layer in label.split("/")}
    if len(mixers) > 1:
        return "hybrid"
    mixer = mixers.pop()
    if mixer in ("conv", "none"):
        return "convolution, none"
    if mixer in ("attn", "swa"):
        return "attention"
    return "recurrent, erases" if mixer in ("deltanet", "gdn", "gdn2",
                                            "kda") or "update=delta" in label else "recurrent, adds"


def front_of(found: Tuned, rows: Sequence[Row], sizes: np.ndarray) -> Front:
    """The best mean among rows that are no larger, at each size; its interval by drawing each row's
    seeds again.
    """
    generator = np.random.default_rng(0)
    x = np.unique(sizes)
    judged = [found.better * found.own(row) for row in rows]
    means = np.array([values.mean() for values in judged])
    drawn = np.stack([values[generator.integers(len(values), size=(RESAMPLES, len(values)))].mean(
        axis=1) for values in judged], axis=1)
    best = np.array([means[sizes <= size].max() for size in x])
    ends = np.array([np.quantile(drawn[:, sizes <= size].max(axis=1), (0.025, 0.975))
                     for size in x])
    low, high = np.sort(found.better * ends, axis=1).T
    return Front(x, found.better * best, low, high)


def against_baseline(found: Tuned) -> dict[str, tuple[Interval, float]]:
    """Of each other row the difference to the baseline, paired by seeds, and its p by Holm over the
    rows.
    """
    vanilla = found.row(found.baseline)
    if vanilla is None:
        return {}
    base = found.own(vanilla)
    tests = {}
    for row in found.rows:
        n = min(row.seeds, vanilla.seeds)
        own = found.own(row)
        if row is not vanilla and np.isfinite(own[:n]).all() and np.isfinite(base[:n]).all():
            tests[row.name] = statistics.paired_test(own[:n] - base[:n],
                                                     statistics.rounding(own[:n], base[:n]))
    corrected = statistics.holm([p for _, p in tests.values()]) if tests else []
    return {name: (interval, float(p))
            for (name, (interval, _)), p in zip(tests.items(), corrected)}


def frame_sentences(found: Tuned) -> list[str]:
    """What was trained, whether the task tells anything, and what the tuning leaves open."""
    items = [f"{counted(len(found.rows), 'row')} at {counted(len(found.rates), 'learning rate')} "
             f"({', '.join(f'{rate:g}' for rate in found.rates)}), {_seeds(found)} each: as many "
             "trials for every row. Intervals are Student's, of 95 %, for other seeds."]
    vanilla = found.row(found.baseline)
    if vanilla is not None:
        items.append(f"The baseline, {vanilla.label}, has a test {found.value} of "
                     f"{_text(found.mean(vanilla))}.")
    controls = [row for row in found.rows if kind(row) == "convolution, none"]
    if controls:
        items.append("Without the thing: " + ", ".join(f"{row.label} {_text(found.mean(row))}"
                                                       for row in controls) + ".")
    edges = [row.label for row in found.rows if found.at_an_end(row)]
    if edges:
        items.append(f"Best at an end of the rates tried, so that they may do better beyond: "
                     f"{_listed(edges)}.")
    if found.value == "accuracy":
        split = [f"{row.label} {int((found.own(row) >= SOLVED).sum())} of "
                 f"{row.seeds}" for row in found.rows
                 if 0 < (found.own(row) >= SOLVED).sum() < row.seeds]
        if split:
            items.append(f"Some seeds reach {SOLVED} and others do not, so that means say little: "
                         f"{_listed(split)}.")
    if found.left_out:
        items.append(f"Left out, with fewer than {tuned.FEWEST_SEEDS} seeds at every rate yet: "
                     f"{_listed(found.left_out)}.")
    return items


def rows_table(found: Tuned, size: str | None) -> Columns:
    """Row by row."""
    tests = against_baseline(found)
    unit = {"state_bytes": "state, bytes"}
    head = [
        "row", *([unit.get(size, size)] if size else []), "parameters", f"test {found.value} "
        f"[95 %]", "n", *([f"reach {SOLVED} [95 %]"] if found.value == "accuracy" else []),
        "best rate", "to the baseline", "p (Holm)"
    ]
    order = sorted(range(len(found.rows)),
                   key=lambda i: -found.better * float(found.own(found.rows[i]).mean()))
    rows = []
    for i in order:
        row = found.rows[i]
        difference, p = tests.get(row.name, (None, None))
        reached = [survival.share_text(int(
            (found.own(row) >= SOLVED).sum()), row.seeds)] if found.value == "accuracy" else []
        rows.append([
            row.label, *([digits(row.sizes.get(size, np.nan))] if size else []),
            digits(row.sizes.get("parameters", np.nan)),
            _text(found.mean(row)),
            str(row.seeds), *reached,
            f"{found.rates[found.favourite(row)]:g}" + (" (end)" if found.at_an_end(row) else ""),
            _text(difference) if difference else "-",
            p_value(p) if p is not None else "-"
        ])
    return Columns(head, rows)


def trials(found: Tuned) -> str:
    """A line for each training run: row, label, rate, seed, valid, test."""
    return csv_text(
        ["mechanism", "label", "rate", "seed", "valid", "test"],
        ([row.name, row.label, f"{rate:g}", seed + 1, row.valid[k, seed], row.test[k, seed]]
         for row in found.rows for k, rate in enumerate(found.rates) for seed in range(row.seeds)))


def front_page(options: argparse.Namespace,
               command: str) -> tuple[list[str], Report, dict[str, str]]:
    found = tuned.read(options.runs, options.value)
    lacking = [row.label for row in found.rows if options.against not in row.sizes]
    if lacking:
        raise TableError(f"{options.runs[0]}: {lacking[0]} has no {options.against}; it has "
                         f"{listed(sorted(found.rows[0].sizes), 20)}")
    if missing := [name for name in options.searched if found.row(name) is None]:
        raise TableError(f"--searched {missing[0]}: no row has this name")
    found, searched = _numbered(found, options.searched, options.against)
    sizes = np.array([row.sizes[options.against] for row in found.rows])
    kept = sizes[sizes > 0]
    # where what is 0 stands on the logarithmic axis
    least = float(kept.min()) / 4 if len(kept) else 1.0
    kinds = ["found by a search" if row.name in options.searched else kind(row)
             for row in found.rows]
    points = [
        Point(row.label, row.name if marked == "found by a search" else row.family, marked,
              max(float(size), least), found.mean(row))
        for row, marked, size in zip(found.rows, kinds, sizes)
    ]
    front = front_of(found, found.rows, sizes)
    sentences = [
        *searched_sentences(found, options.searched, options.against),
        *_front_sentences(found, options.against, front), *frame_sentences(found)
    ]
    picture = mixer_figures.against_size(
        f"{found.value.capitalize()} against {options.against.replace('_', ' ')}",
        f"Means of {_seeds(found)} on the test split, each row at the best of "
        f"{counted(len(found.rates), 'learning rate')}, with Student's intervals of 95 %. Steps: "
        "the best of all rows that are no larger; its band, of 95 %, is over seeds." +
        (f" At the left end stands what has no {options.against.replace('_', ' ')}." if
         (sizes == 0).any() else ""), options.against.replace("_", " "), found.value, points,
        dataclasses.replace(front, x=np.maximum(front.x, least)), tuned.VALUES[found.value])
    chapter = Chapter("rows", "Row by row", [
        Pictures({"front.svg": picture}),
        Paragraph(f"By the mean test {found.value}:"),
        rows_table(found, options.against),
        Bullets(["to the baseline: mean of pairs of equal seeds; p of t tests by Holm over rows.",
                 "The front takes the best of many means, which flatters it a little.",
                 *(f"{short}: {label}" for short, label in searched.items())])
    ])
    title = f"{found.value.capitalize()} against {options.against.replace('_', ' ')}"
    return sentences, Report.of_findings(title, sentences, [chapter],
                                         command), {"front.csv": trials(found)}


def _numbered(found: Tuned, names: Sequence[str], against: str) -> tuple[Tuned, dict[str, str]]:
    """With short labels for models of some names, whose own are long: "found 1" is the smallest;
    and what these stand for.
    """
    chosen = [row for row in found.rows if row.name in names and row.name != found.baseline]
    rows = sorted(chosen, key=lambda row: row.sizes[against])
    short = {row.name: f"found {place}" for place, row in enumerate(rows, 1)}
    relabelled = [
        dataclasses.replace(row, label=short.get(row.name, row.label)) for row in found.rows
    ]
    return dataclasses.replace(found, rows=relabelled), {short[row.name]: row.label for row in rows}


def _seeds(found: Tuned) -> str:
    seeds = sorted({row.seeds for row in found.rows})
    return counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"


def _front_sentences(found: Tuned, against: str, front: Front) -> list[str]:
    tests = against_baseline(found)
    vanilla = found.row(found.baseline)
    on_front = [
        row.label for row in found.rows
        if found.own(row).mean() == front.best[np.flatnonzero(front.x == row.sizes[against])[0]]
    ]
    by_size = {row.label: row.sizes[against] for row in found.rows}
    items = [f"On the front of test {found.value} and {against.replace('_', ' ')} lie, from the "
             f"smallest: "
             + _listed(sorted(on_front, key=by_size.__getitem__)) + "."]
    if vanilla is None:
        return items
    smaller = [
        row for row in found.rows
        if row.sizes[against] < vanilla.sizes[against] and row.name in tests
    ]
    equal = [row for row in smaller if tests[row.name][1] >= LEVEL]
    worse = [
        row for row in smaller
        if tests[row.name][1] < LEVEL and found.better * tests[row.name][0].point < 0
    ]
    items.append(f"Of {counted(len(smaller), 'row')} with less {against.replace('_', ' ')} than "
                 f"the baseline {len(worse)} are worse beyond noise; not shown to differ: "
                 f"{_listed([row.label for row in equal])}.")
    return items


def searched_sentences(found: Tuned, names: Sequence[str], against: str) -> list[str]:
    """Of models that a search found: which are cycles, and whether they are better than the best
    other row that is no larger.
    """
    if not names:
        return []
    periods = [tuned.period(name) for name in names]
    depth = len(tuned.layers_of(names[0]))
    cycles = sum(1 < one < depth for one in periods)
    items = [f"Of {counted(len(names), 'model')} found by a search {periods.count(1)} have equal "
             f"layers, {cycles} are cycles of fewer than their {depth} layers, "
             f"{len(names) - cycles - periods.count(1)} are neither."]
    tests = {}
    for row in (row for row in found.rows if row.name in names):
        rivals = [
            one for one in found.rows
            if one.name not in names and one.sizes[against] <= row.sizes[against]
        ]
        if not rivals:
            continue
        rival = max(rivals, key=lambda one: found.better * found.own(one).mean())
        n = min(row.seeds, rival.seeds)
        own, other = found.own(row)[:n], found.own(rival)[:n]
        if np.isfinite(own).all() and np.isfinite(other).all():
            tests[row.label] = (rival.label, *statistics.paired_test(
                own - other, statistics.rounding(own, other)))
    corrected = statistics.holm([p for _, _, p in tests.values()]) if tests else []
    return items + [f"{label} against {rival}, the best other row that has no more "
                    f"{against.replace('_', ' ')}: "
                    f"{_text(difference)} in test {found.value}, {p_value(float(p))} by Holm."
                    for (label, (rival, difference, _)), p in zip(tests.items(), corrected)]


PAGES = {"front": front_page, "survival": survival.page_of}


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="mixers.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(PAGES))
    parser.add_argument("runs", metavar="RUN", nargs="+")
    parser.add_argument("--value", choices=sorted(tuned.VALUES), default="accuracy")
    parser.add_argument("--against", default="state_bytes", metavar="SIZE")
    parser.add_argument("--searched", action="append", default=[], metavar="NAME")
    parser.add_argument("-o", "--output", metavar="FOLDER")
    options = parser.parse_args(arguments)
    sentences, page, beside = PAGES[options.kind](options, f"analysis/studies/mixers.py "
                                                           f"{shlex.join(arguments)}")
    written = page.write(pathlib.Path(options.output or options.kind), options.kind, beside)
    print("\n".join([*sentences, written]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
