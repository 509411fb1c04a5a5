"""Shows runs that differ in their settings side by side: a row for each value, a picture, a table.

    analysis/sweep.py RUN... [-o FOLDER]

RUN are runs of the same objectives (folders, their store.sqlite or results.json), or a folder of
runs, as nas-run --multirun makes it. FOLDER receives sweep.html, sweep.md, sweep.csv and the
picture as .svg. Runs that differ in their seed alone share a row; analysis/compare.py compares
algorithms, with tests.
"""

import argparse
import math
import pathlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnas.analysis import figures, statistics
from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput, flat
from attnas.analysis.files import csv_text
from attnas.analysis.page import Chapter, Columns, Paragraph, Pictures, Report
from attnas.analysis.run import Run
from attnas.analysis.words import NOTHING, counted, digits, joined

NOT_SETTINGS = ("seed", "name")  # what tells runs apart without being compared


@dataclass(frozen=True)
class Value:
    """What runs of one value of each setting found: numbers of one run each."""

    settings: tuple[str, ...]
    runs: list[Run]

    def best(self, objective: int) -> list[float]:
        """What each run returns; of a front its best by the objective."""
        return [found for run in self.runs if math.isfinite(found := _best(run, objective))]

    def baseline(self, objective: int) -> list[float]:
        """The baseline of each run."""
        return [run.baseline.values[objective] for run in self.runs
                if run.baseline and math.isfinite(run.baseline.values[objective])]


def _best(run: Run, objective: int) -> float:
    found = [
        each.values[objective] for each in run.comparable if math.isfinite(each.values[objective])
    ] if run.several else [each.values[0] for each in run.comparable[:1]]
    if not found:
        return math.nan
    return max(found) if run.objectives[objective].maximise else min(found)


def differing(configs: Sequence[Mapping[str, str]]) -> list[str]:
    """The settings that are not the same in all."""
    paths = dict.fromkeys(path for config in configs for path in config)
    return [
        path for path in paths
        if path not in NOT_SETTINGS and len({config.get(path) for config in configs}) > 1
    ]


def grouped(runs: Sequence[Run]) -> tuple[list[str], list[Value]]:
    """What differs, and the runs of each value, in the order in which they are given.

    @throws BadInput  where the runs have not the same objectives.
    """
    names = [objective.name for objective in runs[0].objectives]
    for run in runs:
        if [objective.name for objective in run.objectives] != names:
            raise BadInput(f"{run.name}: objectives {joined([o.name for o in run.objectives])}, "
                           f"must be {joined(names)} as in the first run")
    configs = [flat(run.config) for run in runs]
    paths = differing(configs)
    by_value: dict[tuple[str, ...], list[Run]] = {}
    for run, config in zip(runs, configs):
        by_value.setdefault(tuple(config.get(path, NOTHING) for path in paths), []).append(run)
    return paths, [Value(settings, own) for settings, own in by_value.items()]


def _mean(values: list[float]) -> str:
    if not values:
        return NOTHING
    interval = statistics.mean_interval(np.array(values)) if len(values) > 1 else None
    point = digits(float(np.mean(values)))
    return f"{point} [{digits(interval.low)}, {digits(interval.high)}]" if interval else point


def name_of(paths: list[str], value: Value) -> str:
    """A value in a picture."""
    return ", ".join(f"{path.rpartition('.')[2]}={own}"
                     for path, own in zip(paths, value.settings)) or "all"


def picture(paths: list[str], values: list[Value], objective: int) -> figures.Figure | None:
    """What runs of each value return by one objective; the baseline in grey."""
    goal = values[0].runs[0].objectives[objective]
    rows = []
    for value in values:
        for what, style, found in ((name_of(paths, value), "c0", value.best(objective)),
                                   ("its baseline", "other", value.baseline(objective))):
            if not found:
                continue
            interval = statistics.mean_interval(np.array(found)) if len(found) > 1 else None
            low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
            rows.append(figures.Row(what, style, float(np.mean(found)), low, high))
    if not rows:
        return None
    return figures.intervals(f"Best {goal.quantity} of each value",
                             "Blue: what a run returns, as its search believes; grey: its "
                             "baseline. Bars: 95 % intervals over seeds.",
                             goal.quantity, rows)


def table(paths: list[str], values: list[Value]) -> Columns:
    """A row for each value."""
    last = [path.rpartition(".")[2] for path in paths]
    head = [*((last if len(set(last)) == len(last) else paths) or ["setting"]), "runs"]
    objectives = values[0].runs[0].objectives
    for goal in objectives:
        head += [f"best {goal.quantity}", "baseline"]
    rows = [[
        *(value.settings or ("all", )),
        str(len(value.runs)), *(text for i in range(len(objectives))
                                for text in (_mean(value.best(i)), _mean(value.baseline(i))))
    ] for value in values]
    return Columns(head, rows)


def csv_of(paths: list[str], values: list[Value]) -> str:
    """A line for each run and objective."""
    rows = [[
        *value.settings,
        run.config.get("seed"), goal.name,
        _best(run, i), run.baseline.values[i] if run.baseline else None,
        run.comparable[0].name if run.comparable else ""
    ] for value in values for run in value.runs for i, goal in enumerate(run.objectives)]
    return csv_text([*paths, "seed", "objective", "best", "baseline", "candidate"], rows)


def sentences(paths: list[str], values: list[Value]) -> list[str]:
    """What the page is, before its numbers."""
    runs = sum(len(value.runs) for value in values)
    if not paths:
        return [f"{counted(runs, 'run')} with the same settings, which differ in their seeds."]
    items = [f"{counted(runs, 'run')}; {counted(len(values), 'value')} of {joined(paths)}."]
    apart = [
        path for path in paths
        if path.split(".")[0] in ("data", "evaluation", "objectives", "problem", "semantics")
    ]
    if apart:
        items.append(f"A score means something else where {joined(apart)} "
                     f"{'differs' if len(apart) == 1 else 'differ'}: compare a run with "
                     "its own baseline.")
    single = " One run of a value says little: seed=1..5 makes several." if min(
        len(value.runs) for value in values) == 1 else ""
    items.append(f"What a search returns looks better than it is; a re-test judges what it "
                 f"found.{single}")
    return items


def report(runs: Sequence[Run], command: str) -> tuple[Report, str]:
    """The page, and its numbers as CSV."""
    paths, values = grouped(runs)
    drawn = {
        f"{goal.name}.svg": found for i, goal in enumerate(runs[0].objectives)
        if (found := picture(paths, values, i))
    }
    return Report.of_findings(
        f"{runs[0].name}: {joined(paths) or 'seeds'}", sentences(paths, values), [
            Chapter("values", "Values", [
                table(paths, values),
                Paragraph("Means over seeds, with 95 % intervals where there are several.")
            ]),
            Chapter("pictures", "Pictures", [Pictures(drawn)] if drawn else [])
        ], command), csv_of(paths, values)


def runs_of(path: pathlib.Path) -> list[pathlib.Path]:
    """A run, or those in a folder of runs: numbers in their names count as such."""
    def is_run(folder: pathlib.Path) -> bool:
        return any((folder / name).is_file() for name in ("store.sqlite", "results.json"))

    if not path.is_dir() or is_run(path):
        return [path]
    found = [folder for folder in path.iterdir() if folder.is_dir() and is_run(folder)]
    return sorted(
        found, key=lambda folder: [(float(part), "") if i % 2 else (0.0, part)
                                   for i, part in enumerate(
                                       re.split(r"(\d+(?:\.\d+)?)", folder.name))]) or [path]


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="sweep.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("-o", "--output", metavar="FOLDER", default=".")
    options = parser.parse_args(arguments)
    runs = [Run(run) for given in options.runs for run in runs_of(pathlib.Path(given))]
    page, numbers = report(runs, f"analysis/sweep.py {shlex.join(arguments)}")
    print(page.write(pathlib.Path(options.output), "sweep", {"sweep.csv": numbers}))
