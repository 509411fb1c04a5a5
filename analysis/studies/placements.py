#!/usr/bin/env python3
"""Which selector of layers to take, judged on other documents than those it chose by.

    analysis/studies/placements.py RUN... [--cache 50%] [--documents 16] -o FOLDER [KEY.PATH=VALUE]

RUN is a run of problem convert by one selector or algorithm, all of one model. Of each the
placement of least loss within the budget is measured again on held-out documents and probes, with
layers at equal distances, the first and last, and random sets; all are compared with the first
run's. KEY.PATH=VALUE are settings of the run that measures.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np

from attnas import convert
from attnas.analysis import figures
from attnas.analysis.arguments import program
from attnas.analysis.files import csv_text
from attnas.analysis.page import Chapter, Columns, Pictures, Report
from attnas.analysis.run import Run
from attnas.analysis.statistics import holm
from attnas.analysis.words import number
from attnas.judge.sequential import ALPHA, Paired, compare

HEAD = ["selector", "measured", "full", "cache", "KL", "recall", "KL and recall",
        "more than the first", "p (Holm)"]


def chosen_by(runs: dict[str, Run], cache: float) -> dict[str, tuple[str, ...]]:
    """By label the placement that each run chose, and those that nobody searched for, with as many
    full layers as the choice of the first run has."""
    made = {label: convert.words_of(convert.chosen(convert.measured(run), cache))
            for label, run in runs.items()}
    plain = convert.controls_of(next(iter(made.values())))
    return made | {label: tuple(own) for label, own in plain.items()
                   if label not in convert.CONTROLS and "first tokens" not in label}


def said_of(one: Paired) -> str:
    """A mean and its interval."""
    return f"{number(one.mean)} ({number(one.low)} to {number(one.high)})"


def study(given: argparse.Namespace) -> tuple[list[str], list[list[str]], list[figures.Row]]:
    """Sentences, rows of the table and of the picture."""
    runs = {Path(folder).name: Run(folder) for folder in given.runs}
    asked = chosen_by(runs, convert.share_of(given.cache))
    config = next(iter(runs.values())).config
    blocks = list(dict.fromkeys(word for words in asked.values() for word in ("full", *words)))
    facts = next(iter(runs.values())).facts
    choices = [blocks if len(own) > 1 else own for own in facts["choices"]]
    convert.measure_again(
        {"name": "held_out", "data": config["data"], "objectives": ["loss", "cache_share"],
         "problem": {**config["problem"], "blocks": blocks[1:], "split": "test"}}, choices,
        dict.fromkeys(asked.values()), given.documents, Path(given.output, "held_out"),
        convert.settings_of(given.settings))
    found = convert.measured(Run(Path(given.output, "held_out")))
    held = {convert.words_of(name): own for name, own in found.items()}
    loss = {label: np.array(held[words]["loss"]) for label, words in asked.items()}
    order = sorted(loss, key=lambda label: loss[label].mean())
    first, zero = next(iter(runs)), np.zeros(given.documents)
    behind = {label: compare(loss[label], loss[first]) for label in order if label != first}
    p = dict(zip(behind, holm([one.p for one in behind.values()])))
    rows, dots = [], []
    for label in order:
        own, full = held[asked[label]], asked[label].count("full")
        means = [compare(np.array(own[key]), zero) for key in ("kl", "recall", "loss")]
        spent = str(sum(one.usable for one in runs[label].evaluations)) if label in runs else ""
        rows.append([label, spent, str(full), f"{100 * own['cache_share'][0]:.0f} %",
                     *map(said_of, means), said_of(behind[label]) if label in behind else "",
                     f"{p[label]:.3g}" if label in p else ""])
        dots.append(figures.Row(label, "c0" if label in runs else "reference", means[2].mean,
                                means[2].low, means[2].high))
    said = [f"On {given.documents} held-out documents the choice of {first} costs "
            f"{next(row for row in rows if row[0] == first)[6]} nats of KL and recall."]
    shown = {"Better": lambda one: one.mean < 0, "Worse": lambda one: one.mean > 0}
    for word, is_so in shown.items():
        found = [f"{label} ({said_of(one)})" for label, one in behind.items()
                 if p[label] <= ALPHA and is_so(one)]
        said += [f"{word}: {', '.join(found)}."] if found else []
    if level := [label for label in behind if p[label] > ALPHA]:
        said.append(f"Neither is shown of {', '.join(level)}.")
    return said, rows, dots


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="placements.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", metavar="RUN | KEY.PATH=VALUE")
    parser.add_argument("--cache", default="50%")
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("-o", "--output", required=True)
    given = parser.parse_intermixed_args(arguments)
    given.settings = [word for word in given.words if "=" in word]
    given.runs = [word for word in given.words if "=" not in word]
    said, rows, dots = study(given)
    picture = figures.intervals("KL and recall on held-out documents", "Choices of equal cache; "
                                "95 % intervals over documents.", "nats", dots)
    report = Report.of_findings(
        "Which selector of layers?", said,
        [Chapter("choices", "Choices",
                 [Pictures({"placements.svg": picture}), Columns(HEAD, rows)])],
        f"analysis/studies/placements.py {' '.join(arguments)}")
    beside = {"placements.csv": csv_text(HEAD, rows)}
    print(*said, report.write(Path(given.output), "placements", beside), sep="\n")


if __name__ == "__main__":
    sys.exit(program(main)(sys.argv[1:]))
