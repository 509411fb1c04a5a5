#!/usr/bin/env python3
"""Says what to take from a space: which options are better than the baseline's on some table and worse on none?

    analysis/take.py TABLE[:OBJECTIVE]... [-o FOLDER] [--genes GENE,GENE]

TABLE is a packed table of all mechanisms of the space, OBJECTIVE what counts there (perplexity where none is given; of the test
split where that was scored). The two genes that decide most, or those of --genes, are looked at together, the others averaged; then
the others on top of what is best. FOLDER receives take.html, take.md, take.csv and a picture for each table.
"""

import argparse
import dataclasses
import functools
import itertools
import os
import pathlib
import shlex
import sys
from collections.abc import Callable, Sequence

from nas_analysis import packages

if __name__ == "__main__":
    packages.require(__doc__, "numpy", "scipy", "pandas")

import numpy as np
from scipy import stats

from nas_analysis import factorial, figures, statistics, tables
from nas_analysis.digest import BadInput
from nas_analysis.factorial import Factorial
from nas_analysis.files import csv_text
from nas_analysis.objectives import Objective, objective
from nas_analysis.page import Bullets, Chapter, Code, Columns, Pictures, Report
from nas_analysis.statistics import Interval
from nas_analysis.tables import TableError
from nas_analysis.words import counted, digits, listed, p_value, percent

ALPHA = 0.05
FEWEST_SEEDS = 2

Options = dict[str, str]  # by gene


@dataclasses.dataclass(frozen=True)
class Task:
    """A table by one objective: all mechanisms of its space."""

    path: str
    name: str
    goal: Objective
    space: Factorial
    values: np.ndarray  # (f, r) minimised, NaN where missing; some seeds are common to all mechanisms
    vanilla: Options

    @property
    def seeds(self) -> int:
        """Those that all mechanisms have."""
        return int(np.isfinite(self.values).all(axis=0).sum())

    def gain(self, options: Options, instead_of: Options) -> np.ndarray:
        """(n,) how much better the mean of all combinations with these options is, in the objective's unit, for each of the seeds
        that all of these have."""
        weights = self.space.shares_of(instead_of) - self.space.shares_of(options)
        compared = self.values[weights != 0]
        return weights[weights != 0] @ compared[:, np.isfinite(compared).all(axis=0)]

    @functools.cached_property
    def estimate(self) -> factorial.Means:
        """Of every mechanism, what seeds do to all of them alike taken out."""
        return factorial.means(self.values)

    @functools.cached_property
    def spread(self) -> float:
        """Standard deviation between mechanisms; 1 where they are equal."""
        return float(self.estimate.mean.std()) or 1.0

    @functools.cached_property
    def shares(self) -> dict[tuple[str, ...], float]:
        """Of each term in the variance between combinations."""
        return factorial.shares(self.space, self.estimate)


def read(argument: str) -> Task:
    """@param argument  TABLE or TABLE:OBJECTIVE
    @throws BadInput  where that is no table of all combinations with two seeds and a baseline."""
    path, colon, name = argument.rpartition(":")
    if not colon or os.path.exists(argument):
        path, name = argument, "perplexity"
    table = tables.load([path])
    goal = objective(table, name, None)
    numbers = [gene for gene in table.genes.columns if table.schema.is_number(gene)]
    space = Factorial(table.genes.drop(columns=numbers), table.schema)
    if not space.complete or any(table.genes[gene].nunique() > 1 for gene in numbers):
        raise TableError(f"{path}: must have every combination of its options once")
    values = goal.minimised
    common = np.isfinite(values).all(axis=0)
    if common.sum() < FEWEST_SEEDS:
        raise TableError(f"{path}: {counted(int(common.sum()), 'seed')} with a {goal.title} of every mechanism, must be at least "
                         f"{FEWEST_SEEDS}")
    vanilla = table.vanilla(table.mechanisms)
    if vanilla is None:
        raise TableError(f"{path}: does not have the baseline")
    options = {gene: table.genes.at[vanilla, gene] for gene in space.options}
    return Task(path, pathlib.Path(path).stem, goal, space, values, options)


@dataclasses.dataclass(frozen=True)
class Choice:
    """Options that replace others, on every task."""

    options: Options  # those that replace
    gains: list[Interval]  # a task each, over seeds
    p: list[float]  # of no gain, by Holm over all choices and tasks that are looked at together

    @property
    def name(self) -> str:
        return " ".join(self.options.values())

    def better(self, task: int) -> bool:
        return self.p[task] <= ALPHA and self.gains[task].point > 0

    def worse(self, task: int) -> bool:
        return self.p[task] <= ALPHA and self.gains[task].point < 0


def choices(tasks: Sequence[Task], pairs: Sequence[tuple[Options, Options]], shown: Sequence[str]) -> list[Choice]:
    """@param pairs  options, and those that they replace.
    @param shown  genes whose options name a choice."""
    gains = [[task.gain(*pair) for task in tasks] for pair in pairs]
    raw = [float(stats.ttest_1samp(gain, 0.0).pvalue) if np.ptp(gain) > 1e-12 * np.abs(gain).max() else float(not gain.any())
           for gain in itertools.chain(*gains)]
    p = statistics.holm(raw).reshape(len(pairs), len(tasks)) if pairs else []
    return [Choice({gene: options[gene] for gene in shown if gene in options}, [statistics.mean_interval(gain) for gain in own],
                   [float(one) for one in ps]) for (options, _), own, ps in zip(pairs, gains, p)]


class Study:
    """Everything that is found out, before words are made of it."""

    def __init__(self, tasks: Sequence[Task], genes: Sequence[str] | None = None):
        """@throws TableError  where tasks have not the same space and baseline."""
        self.tasks = tasks
        first = tasks[0]
        for task in tasks[1:]:
            if (task.space.options, task.vanilla) != (first.space.options, first.vanilla):
                raise TableError(f"{task.path}: has not the options and the baseline of {first.path}")
        all_genes = list(first.space.options)
        if genes is None:
            genes = max(itertools.combinations(all_genes, min(2, len(all_genes))), key=lambda pair: min(self.explained(pair)))
        if unknown := [gene for gene in genes if gene not in all_genes]:
            raise TableError(f"--genes {','.join(genes)}: {unknown[0]} is not one of {', '.join(all_genes)}")
        self.genes = list(dict.fromkeys(genes))
        self.others = [gene for gene in all_genes if gene not in self.genes]
        plain = {gene: first.vanilla[gene] for gene in self.genes}
        cells = [dict(zip(self.genes, options)) for options in itertools.product(*(first.space.options[gene] for gene in self.genes))]
        found = choices(tasks, [(cell, plain) for cell in cells if cell != plain], self.genes)
        self.cells = sorted(found, key=lambda cell: (-self.least(cell), sum(
            option != plain[gene] for gene, option in cell.options.items())))  # of equals what changes less
        self.plain = plain
        kept = [cell for cell in self.cells if self.least(cell) > 0]
        self.taken = kept[0] if kept else None
        base = self.taken.options if self.taken else plain
        self.on_top = choices(tasks, [({**base, gene: option}, {**base, gene: first.vanilla[gene]}) for gene in self.others
                                      for option in first.space.options[gene] if option != first.vanilla[gene]], self.others)
        alone = {**first.vanilla, **base}
        self.alone = choices(tasks, [(alone, first.vanilla)], all_genes)[0] if self.taken else None

    def explained(self, genes: Sequence[str]) -> list[float]:
        """Share of the variance that genes and their interactions have, on each task."""
        return [sum(share for term, share in task.shares.items() if set(term) <= set(genes)) for task in self.tasks]

    def least(self, choice: Choice) -> float:
        """The gain where it is least, in standard deviations between the task's mechanisms."""
        return round(min(gain.point / task.spread for gain, task in zip(choice.gains, self.tasks)), 9)  # equal but for rounding


def _gain(interval: Interval) -> str:
    signs = [("+" if value > 0 else "") + digits(value) for value in interval]
    return f"{signs[0]} [{signs[1]}, {signs[2]}]".replace("-", "\u2212")


def _gains(study: Study, choice: Choice) -> str:
    return listed([f"{_gain(gain)} on {task.name} ({p_value(p)} by Holm)"
                   for gain, task, p in zip(choice.gains, study.tasks, choice.p)])


def _where(study: Study, is_so: Callable[[int], bool]) -> str:
    return listed([task.name for i, task in enumerate(study.tasks) if is_so(i)])


def verdict(study: Study) -> list[str]:
    """The findings in sentences, what matters first."""
    count = range(len(study.tasks))
    plain = " ".join(study.plain.values())
    shares = listed([f"{percent(share)} on {task.name}" for share, task in zip(study.explained(study.genes), study.tasks)])
    items = [f"{listed(study.genes).capitalize()} decide: of the variance between mechanisms they have {shares}."]
    if study.taken is None:
        items.append(f"Keep {plain}: whatever replaces it is worse on some table.")
    else:
        found = (f"Take {study.taken.name} instead of {plain}" if any(map(study.taken.better, count)) else
                 f"Nothing is shown to be better than {plain} on some table and worse on none. What comes closest is {study.taken.name}")
        items.append(f"{found}: of {counted(len(study.cells), 'choice')} it gains most where it gains least. The others averaged, its "
                     f"gains are {_gains(study, study.taken)}.")
        items.append(f"In the baseline, nothing else changed, they are {_gains(study, study.alone)}.")
    both = [cell for cell in study.cells if any(map(cell.better, count)) and any(map(cell.worse, count))]
    items += [f"{cell.name} is better on {_where(study, cell.better)} and worse on {_where(study, cell.worse)}: its gains are "
              f"{_gains(study, cell)}." for cell in both]
    lost = [cell for cell in study.cells if any(map(cell.worse, count))]
    everywhere = [cell for cell in lost if all(map(cell.worse, count))]
    items.append(f"Worse than {plain} beyond noise are {len(lost)} of {len(study.cells)} on some table and {len(everywhere)} on all.")
    if alike := [cell.name for cell in study.cells if not any(p <= ALPHA for p in cell.p)]:
        items.append(f"Not told apart from {plain} on any table: {listed(alike)}.")
    if study.on_top:
        told = [choice.name for choice in study.on_top if any(p <= ALPHA for p in choice.p)]
        base = study.taken.name if study.taken else plain
        items.append(f"On top of {base}, {listed(study.others)} change " + (
            "nothing beyond noise: " if not told else f"something, by {listed(told)}; ")
            + "the largest gain is " + _extreme(study, max) + ", the largest loss " + _extreme(study, min) + ".")
    return items


def _extreme(study: Study, most) -> str:
    sizes = [(gain.point / task.spread, choice.name, gain, task.name)
             for choice in study.on_top for gain, task in zip(choice.gains, study.tasks)]
    _, name, gain, task = most(sizes, key=lambda size: size[0])
    return f"{name}'s {_gain(gain)} on {task}"


def numbers(study: Study) -> list[Chapter]:
    """Choice by choice."""
    head = ["", *itertools.chain(*((f"{task.name}: gain in {task.goal.title} [95 %]", "p (Holm)") for task in study.tasks))]

    def rows(found: Sequence[Choice]) -> list[list[str]]:
        return [[choice.name, *itertools.chain(*((_gain(gain), "< 0.001" if p < 0.001 else f"{p:.3f}")
                                                 for gain, p in zip(choice.gains, choice.p)))] for choice in found]

    pictures = {}
    for i, task in enumerate(study.tasks):
        pictures[f"{task.name}.svg"] = figures.intervals(
            f"Gain over the baseline: {task.name}", "Means over all other options, and 95 % over seeds; to the right is better.",
            f"gain in {task.goal.title}",
            [figures.Row(cell.name, "c0" if cell is study.taken else "plain", *cell.gains[i]) for cell in study.cells],
            [(0.0, " ".join(study.plain.values()))])
    seeds = listed([f"{task.seeds} on {task.name}" for task in study.tasks])
    taken = study.taken.name if study.taken else " ".join(study.plain.values())
    return [
        Chapter("choices", f"{' and '.join(study.genes).capitalize()}, the others averaged", [
            Pictures(pictures), Columns(head, rows(study.cells))]),
        Chapter("others", f"The others, on top of {taken}", [Columns(head, rows(study.on_top))] if study.on_top else []),
        Chapter("reading", "How to read this", [Bullets([
            f"Above 0 is better. Intervals are Student's, of 95 %, each for itself, over the seeds that all of the compared mechanisms "
            f"have (all mechanisms: {seeds}); p by Holm over all rows and tables of a list.",
            "They are for these very tables: what they leave out is the choice of tasks, sizes, lengths of training and learning rates.",
            "What is taken was chosen by these very numbers, which flatters it."])])]


def summary(study: Study) -> str:
    """take.csv: a row for each list, choice and table, unrounded."""
    lists = {"choice": study.cells, "alone": [study.alone] if study.alone else [], "on_top": study.on_top}
    return csv_text(["list", "choice", "table", "gain", "low", "high", "p_holm"],
                    ([title, choice.name, task.name, *gain, p] for title, found in lists.items() for choice in found
                     for task, gain, p in zip(study.tasks, choice.gains, choice.p)))


def main(arguments: list[str]) -> int:
    """The program; returns its exit code: 2 for bad input, and then nothing is written."""
    parser = argparse.ArgumentParser(prog="take.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", metavar="TABLE[:OBJECTIVE]", nargs="+")
    parser.add_argument("--genes", metavar="GENE,GENE", type=lambda text: text.split(","))
    parser.add_argument("-o", "--output", default="take", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        study = Study([read(argument) for argument in options.tables], options.genes)
        names = [task.name for task in study.tasks]
        if len(set(names)) < len(names):
            raise TableError(f"the tables are called {listed(names)}, must have names of their own")
        sentences = verdict(study)
        page = Report("What to take?", [Chapter("verdict", "Verdict", [Bullets(sentences)]), *numbers(study),
                                        Chapter("making", "How this was made", [Code(f"analysis/take.py {shlex.join(arguments)}")])])
        written = page.write(pathlib.Path(options.output), "take", {"take.csv": summary(study)})
    except BadInput as error:
        print(f"take.py: {error}", file=sys.stderr)
        return 2
    print("\n".join([*sentences, written]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
