#!/usr/bin/env python3
"""Says what to take from a space: which options are better than the baseline's on some table and
worse on none?

    analysis/studies/take.py TABLE[:OBJECTIVE]... [-o FOLDER] [--genes GENE,GENE]

TABLE is a packed table of all mechanisms of the space, OBJECTIVE what counts there (perplexity
where none is given; where it was recorded on the test split, there). The two genes with the largest
share of the variance, or those of --genes, are looked at together, the others averaged; then the
others, averaged over everything else and on top of what is taken. FOLDER receives take.html,
take.md, take.csv and a picture for each table.
"""

import argparse
import dataclasses
import functools
import itertools
import os
import pathlib
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis import packages

packages.require(__doc__, "numpy", "scipy", "pandas")

import numpy as np
from scipy import stats

from attnas.analysis import factorial, figures, statistics, tables
from attnas.analysis.arguments import program
from attnas.analysis.factorial import Factorial
from attnas.analysis.files import csv_text
from attnas.analysis.objectives import Objective, objective
from attnas.analysis.page import Bullets, Chapter, Columns, Pictures, Report
from attnas.analysis.statistics import Interval
from attnas.analysis.tables import MISSING, TableError
from attnas.analysis.words import counted, digits, listed, p_column, p_value

ALPHA = 0.05
FEWEST_SEEDS = 2

Options = dict[str, str]  # by gene


@dataclasses.dataclass(frozen=True)
class Task:
    """A table by one objective: all mechanisms of its space. Some may have more seeds than others:
    a comparison takes those that every mechanism of it has, what is said of the whole table those
    that every mechanism has."""

    path: str
    name: str
    goal: Objective
    space: Factorial
    values: np.ndarray  # (f, s) minimised, NaN where a mechanism was not trained with a seed
    vanilla: Options
    # training runs among these, which count as the worst value of those that did not fail
    failed: int
    infinite: int  # others that ended without a finite value, which count as the same

    @functools.cached_property
    def common(self) -> np.ndarray:
        """(s,) whether every mechanism has the seed."""
        return ~np.isnan(self.values).any(axis=0)

    @property
    def seeds(self) -> int:
        """How many are common."""
        return int(self.common.sum())

    def weights(self, options: Options, instead_of: Options) -> np.ndarray:
        """(f,) of mechanisms in the mean of all combinations with some options minus that with
        others; 0 where both are the same.
        """
        difference = self.space.shares_of(options) - self.space.shares_of(instead_of)
        # what is rounding takes no part
        return np.where(np.abs(difference) > 1e-12, difference, 0.0)

    def gain(self, options: Options, instead_of: Options) -> np.ndarray:
        """(s,) how much better the mean of the one is than that of the other, in the objective's
        unit, seed by seed; NaN where a mechanism of either does not have the seed."""
        weights = self.weights(options, instead_of)
        return -weights[weights != 0] @ self.values[weights != 0]

    def test(self, options: Options, instead_of: Options,
             seeds: np.ndarray) -> tuple[Interval, float]:
        """The mean gain over some of its seeds, and p that it is none, by Student's t of pairs.

        @param seeds  (s,) mask."""
        values = self.values[self.weights(options, instead_of) != 0][:, seeds]
        return statistics.paired_test(
            self.gain(options, instead_of)[seeds], statistics.rounding(values),
            exact=self.goal.split == "")

    @functools.cached_property
    def estimate(self) -> factorial.Means:
        """Of every mechanism, what seeds do to all of them alike taken out."""
        return factorial.means(self.values[:, self.common])

    @functools.cached_property
    def spread(self) -> float:
        """Standard deviation between mechanisms; 1 where they are equal."""
        return float(self.estimate.mean.std()) or 1.0

    @functools.cached_property
    def shares(self) -> dict[tuple[str, ...], float]:
        """Of each term in the variance between combinations."""
        return factorial.shares(self.space, self.estimate)

    @functools.cached_property
    def differ(self) -> bool:
        """Whether mechanisms differ by more than their seeds do, by an F test."""
        if np.ptp(self.estimate.mean) <= statistics.rounding(self.values[:, self.common]):
            return False
        between = self.seeds * self.estimate.mean.var(ddof=1)
        noise = self.estimate.variance
        return noise == 0 or stats.f.sf(between / noise,
                                        len(self.values) - 1, self.estimate.freedom) <= ALPHA


def read(argument: str) -> Task:
    """@param argument  TABLE or TABLE:OBJECTIVE
    @throws BadInput  where that is no table of all combinations with two seeds and a baseline."""
    path, colon, name = argument.rpartition(":")
    if not colon or os.path.exists(argument):
        path, name = argument, "perplexity"
    table = tables.load([path])
    goal = objective(table, name, None)
    numbers = [gene for gene in table.genes.columns if table.schema.is_number(gene)]
    if varying := [gene for gene in numbers if table.genes[gene].nunique() > 1]:
        raise TableError(f"{path}: {varying[0]} is a number of several values, must be one: means "
                         f"are over options")
    space = Factorial(table.genes.drop(columns=numbers), table.schema)
    if not space.options:
        raise TableError(f"{path}: its mechanisms differ in no gene of a space")
    if not space.complete:
        raise TableError(f"{path}: must have every combination of its options once")
    values = goal.minimised
    there = table.status != MISSING if values.shape[1] == table.replicates else np.ones(
        values.shape, bool)
    common = int(there.all(axis=0).sum())
    if common < FEWEST_SEEDS:
        raise TableError(f"{path}: {counted(common, 'seed')} with a {goal.title} of every "
                         f"mechanism, must be at least {FEWEST_SEEDS}")
    ended = np.isfinite(values)
    failed = there & ~table.usable
    values = np.where(there & ~ended, values[there & ended].max(), np.where(there, values, np.nan))
    vanilla = table.baseline()
    options = {gene: table.genes.at[vanilla, gene] for gene in space.options}
    return Task(path,
                pathlib.Path(path).stem, goal, space, values, options, int(failed.sum()),
                int((there & ~ended & ~failed).sum()))


def read_all(arguments: Sequence[str]) -> list[Task]:
    """Tasks with names of their own: those of their files, and where they share one, its objective.

    @throws BadInput  where tasks have no names of their own, or not the same space and baseline."""
    tasks = [read(argument) for argument in arguments]
    times = Counter(task.name for task in tasks)
    tasks = [
        dataclasses.replace(task, name=f"{task.name} {task.goal.name}")
        if times[task.name] > 1 else task for task in tasks
    ]
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):
        raise TableError(f"the tables are {listed(names)}, must be files of different names, or "
                         f"of different objectives")
    for task in tasks[1:]:
        if (task.space.options, task.vanilla) != (tasks[0].space.options, tasks[0].vanilla):
            raise TableError(f"{task.path}: has not the options and the baseline of "
                             f"{tasks[0].path}")
    return tasks


@dataclasses.dataclass
class Choice:
    """Options that replace others, on every task."""

    name: str
    options: Options  # those that replace
    gains: list[Interval]  # a task each, over the seeds that every mechanism of both sides has
    n: list[int]  # of these seeds
    common: list[Interval]  # the same gains over the seeds that every mechanism of the table has
    raw: list[float]  # p of no gain, by Student's t of pairs
    # the same by Holm over everything that is tested
    p: list[float] = dataclasses.field(default_factory=list)

    @property
    def better(self) -> list[int]:
        """Numbers of the tasks."""
        return [
            i for i, (gain, p) in enumerate(zip(self.gains, self.p))
            if p <= ALPHA and gain.point > 0
        ]

    @property
    def worse(self) -> list[int]:
        return [
            i for i, (gain, p) in enumerate(zip(self.gains, self.p))
            if p <= ALPHA and gain.point < 0
        ]


class Study:
    """Everything that is found out, before words are made of it."""

    def __init__(self, tasks: Sequence[Task], genes: Sequence[str] | None = None):
        """@throws TableError  where there are no such genes."""
        self.tasks = tasks
        space, self.vanilla = tasks[0].space, tasks[0].vanilla
        known = list(space.options)
        if genes is None:
            genes = max(itertools.combinations(known, min(2, len(known))),
                        key=lambda pair: min(self.explained(pair)))
        if unknown := [gene for gene in genes if gene not in known]:
            raise TableError(f"--genes: {unknown[0]!r} is not one of {', '.join(known)}")
        self.genes = list(dict.fromkeys(genes))
        self.others = [gene for gene in known if gene not in self.genes]
        self.plain = {gene: self.vanilla[gene] for gene in self.genes}
        cells = [
            dict(zip(self.genes, options))
            for options in itertools.product(*(space.options[gene] for gene in self.genes))
        ]
        self.cells = self._choices([(" ".join(cell.values()), cell, self.plain) for cell in cells])
        swaps = [(gene, option) for gene in self.others for option in space.options[gene]]
        self.averaged = self._choices([(option, {gene: option}, {gene: self.vanilla[gene]})
                                       for gene, option in swaps])
        self.on_top: list[Choice] = []
        self.alone: list[Choice] = []
        self._correct()
        self.cells.sort(key=lambda cell: (-self.least(
            cell), sum(self.plain[gene] != option for gene, option in cell.options.items())))
        shown = [cell for cell in self.cells if cell.better and not cell.worse]
        gaining = [cell for cell in self.cells if self.least(cell) > 0]
        self.shown = shown[0] if shown else None
        self.closest = next(iter(shown or gaining), None)
        base = self.closest.options if self.closest else self.plain
        self.on_top = self._choices([(option, {**base, gene: option},
                                      {**base, gene: self.vanilla[gene]})
                                     for gene, option in swaps])
        if self.others:
            self.alone = self._choices([(" ".join(base.values()), {**self.vanilla,
                                                                   **base}, self.vanilla)])
        self._correct()  # what was chosen is tested beside all that it was chosen from
        if self.shown and not self.shown.better:
            self.shown = None

    @property
    def lists(self) -> dict[str, list[Choice]]:
        """All that is tested, by the names of take.csv."""
        return {
            "choice": self.cells, "averaged": self.averaged, "on_top": self.on_top,
            "alone": self.alone
        }

    def _choices(self, swaps: Sequence[tuple[str, Options, Options]]) -> list[Choice]:
        """Of names, options and those that they replace each that replaces anything, once: several
        combinations may be one function.
        """
        found: dict[bytes, Choice] = {}
        for name, options, replaced in swaps:
            weights = self.tasks[0].weights(options, replaced)
            key = np.round(weights, 12).tobytes()
            if key in found or not weights.any():
                continue
            there = [~np.isnan(task.gain(options, replaced)) for task in self.tasks]
            gains, raw = zip(*(task.test(options, replaced, seeds)
                               for task, seeds in zip(self.tasks, there)))
            common = [task.test(options, replaced, task.common)[0] for task in self.tasks]
            found[key] = Choice(name, options, [*gains], [int(seeds.sum()) for seeds in there],
                                common, [*raw])
        return list(found.values())

    def _correct(self) -> None:
        every = [choice for found in self.lists.values() for choice in found]
        adjusted = statistics.holm([p for choice in every
                                    for p in choice.raw]).reshape(len(every), len(self.tasks))
        for choice, p in zip(every, adjusted):
            choice.p = [float(value) for value in p]

    def explained(self, genes: Sequence[str]) -> list[float]:
        """Share of the variance that genes and their interactions have, on each task."""
        return [
            min(
                max(sum(share for term, share in task.shares.items()
                        if set(term) <= set(genes)), 0.0), 1.0) for task in self.tasks
        ]

    def least(self, choice: Choice) -> float:
        """The smallest of its sizes."""
        return round(min(self.sizes(choice)), 9)  # some are equal but for rounding

    def sizes(self, choice: Choice) -> list[float]:
        """Gains in standard deviations between the task's mechanisms."""
        return [gain.point / task.spread for gain, task in zip(choice.gains, self.tasks)]

    @property
    def uneven(self) -> bool:
        """Whether some comparison has more seeds than all mechanisms of its table."""
        return any(n > task.seeds for found in self.lists.values() for choice in found
                   for n, task in zip(choice.n, self.tasks))

    def named(self, numbers: Sequence[int]) -> str:
        return listed([self.tasks[i].name for i in numbers])


def _gain(interval: Interval) -> str:
    signs = [("+" if value > 0 else "") + digits(value) for value in interval]
    return f"{signs[0]} [{signs[1]}, {signs[2]}]".replace("-", "\u2212")


def _certainty(choice: Choice, i: int) -> str:
    """On the task of this number. Beside every interval that is told: one may exclude 0 without
    being significant among all of them.
    """
    return f"{counted(choice.n[i], 'seed')}, {p_value(choice.p[i])} by Holm"


def _gains(study: Study, choice: Choice) -> str:
    return listed([f"{_gain(gain)} on {task.name} ({_certainty(choice, i)})"
                   for i, (gain, task) in enumerate(zip(choice.gains, study.tasks))])


def _share(share: float) -> str:
    return "more than 99 %" if 0.99 < share < 1.0 else f"{100 * share:.0f} %"


def verdict(study: Study) -> list[str]:
    """The findings in sentences, what matters first. "Better" and "worse" are said of what Holm
    leaves.
    """
    plain, genes = " ".join(study.plain.values()), listed(study.genes)
    have = "have" if len(study.genes) > 1 else "has"
    shares = listed([
        f"{_share(share)} on {task.name}"
        for share, task in zip(study.explained(study.genes), study.tasks)
    ])
    items = [f"At one learning rate for all: of the variance between mechanisms {genes} {have} "
             f"{shares}, {'their interactions included' if have == 'have' else 'alone'}."]
    if alike := [task.name for task in study.tasks if not task.differ]:
        items.append(f"Mechanisms do not differ beyond the noise of their seeds on "
                     f"{listed(alike)}: there is nothing to choose from.")
    averaged = " Averaged over the other genes," if study.others else ""
    if study.shown:
        items.append(f"Take {study.shown.name} instead of {plain}: better on "
                     f"{study.named(study.shown.better)}, shown to be worse on none."
                     f"{averaged or ' There,'} its gains are {_gains(study, study.shown)}.")
    else:
        items.append(f"Nothing is shown to be better than {plain} on some table and not to be "
                     f"worse on another.")
        if study.closest:
            gaining = sum(study.least(cell) > 0 for cell in study.cells)
            items.append(f"Of {counted(len(study.cells), 'choice')} {gaining} "
                         f"{'has' if gaining == 1 else 'have'} a mean gain on every table; "
                         f"the smallest one is largest for "
                         f"{study.closest.name}.{averaged or ' There,'} its gains are "
                         f"{_gains(study, study.closest)}.")
        else:
            items.append("No choice has a mean gain on every table.")
    items += [f"In the baseline, nothing else changed, {choice.name} gains "
              f"{_gains(study, choice)}." for choice in study.alone
              if study.closest]
    items += [f"{cell.name} is better on {study.named(cell.better)} and worse on "
              f"{study.named(cell.worse)}: its gains are "
              f"{_gains(study, cell)}." for cell in study.cells if cell.better and cell.worse]
    lost = [cell for cell in study.cells if cell.worse]
    items.append(f"Worse than {plain} are {len(lost)} of {counted(len(study.cells), 'choice')} on "
                 f"some table and "
                 f"{sum(len(cell.worse) == len(study.tasks) for cell in lost)} on all.")
    for title, found in (("Averaged over everything else", study.averaged),
                         (f"On top of "
                          f"{study.closest.name if study.closest else plain}", study.on_top)):
        if not found:
            continue
        told = [f"{choice.name} is {word} on {study.named(where)}" for choice in found
                for word, where in (("better", choice.better), ("worse", choice.worse)) if where]
        items.append(f"{title}, {'these' if told else 'none'} of {counted(len(found), 'option')} "
                     f"of {listed(study.others)} "
                     + (f"count: {listed(told)}; " if told else "is shown to change anything; ")
                     + f"{_extremes(study, found)}.")
    items += [f"{counted(n, 'training run')} of {task.path} {what} and "
              f"{'counts' if n == 1 else 'count'} as the worst that did not."
              for task in study.tasks
              for n, what in ((task.failed, "failed"), (task.infinite, f"ended without a finite "
                                                                       f"{task.goal.title}")) if n]
    return items


def _extremes(study: Study, found: Sequence[Choice]) -> str:
    """The largest gain and the largest loss; the largest and the smallest of one of these where
    there is none of the other.
    """
    sizes = [(size, choice, i) for choice in found for i, size in enumerate(study.sizes(choice))]
    best, worst = (most(sizes, key=lambda one: one[0]) for most in (max, min))

    def told(one: tuple[float, Choice, int]) -> str:
        _, choice, i = one
        return (
            f"{_gain(choice.gains[i])} by {choice.name} on {study.tasks[i].name} "
            f"({_certainty(choice, i)})")

    if len(sizes) == 1:
        return f"its gain is {told(best)}"
    if best[0] <= 0 > worst[0]:
        return f"the largest loss is {told(worst)}, the smallest {told(best)}"
    return (
        f"the largest gain is {told(best)}, the {'largest loss' if worst[0] < 0 else 'smallest'} "
        f"{told(worst)}")


def numbers(study: Study) -> list[Chapter]:
    """Choice by choice."""
    head = [
        "", *itertools.chain(*((f"{task.name}: gain in {task.goal.title} [95 %]", "n", "p (Holm)")
                               for task in study.tasks))
    ]

    def columns(found: Sequence[Choice]) -> list[Columns]:
        return [
            Columns(head, [[
                choice.name, *itertools.chain(*(
                    (_gain(gain), str(n), p_column(p))
                    for gain, n, p in zip(choice.gains, choice.n, choice.p)))
            ] for choice in found])
        ] if found else []

    plain = " ".join(study.plain.values())
    several = (
        f"the worst of their gains on {listed([task.name for task in study.tasks])}, in standard "
        f"deviations between mechanisms")
    below = ("Means over all other options, and 95 % over seeds; to the right is better. Rows are "
             f"sorted by {several if len(study.tasks) > 1 else 'gain'}. An interval that excludes "
             "0 need not be significant: see p in the table.")
    pictures = {}
    for i, task in enumerate(study.tasks):
        pictures[re.sub(r"[^\w-]", "_", task.name) + ".svg"] = figures.intervals(
            f"Gain over {plain}: {task.name}", below, f"gain in {task.goal.title}", [
                figures.Row(cell.name, "c0" if cell is study.closest else "plain", *cell.gains[i])
                for cell in study.cells
            ], [(0.0, plain)])
    taken = study.closest.name if study.closest else plain
    rest = f", averaged over {listed(study.others)}" if study.others else ""
    return [
        Chapter("choices", f"{listed(study.genes).capitalize()} instead of {plain}{rest}",
                [Pictures(pictures), *columns(study.cells)]),
        Chapter("alone", f"{taken} in the baseline", columns(study.alone)),
        Chapter("averaged", "The others, averaged over everything else", columns(study.averaged)),
        Chapter("others", f"The others on top of {taken}", columns(study.on_top)),
        Chapter("reading", "How to read this", [
            Bullets([
                "Above 0 is better. Intervals are Student's, of 95 %, each for itself, over the n "
                "seeds that every mechanism of both sides has; p is of Student's test of pairs, by "
                f"Holm over all {sum(map(len, study.lists.values())) * len(study.tasks)} "
                "comparisons of this page. With few seeds both hang on the normal distribution of "
                "what seeds change.", *_about_seeds(study),
                "What is not shown is not shown to be nothing: intervals say how large it may be.",
                "What they leave out is the choice of tasks, sizes, lengths of training and "
                "learning rates.",
                "What is first among the choices was chosen by these very numbers, which flatters "
                "it."
            ])
        ])
    ]


def _about_seeds(study: Study) -> list[str]:
    """Where comparisons differ in them: why that matters, and what is first by those that no result
    has chosen.
    """
    if not study.uneven:
        return []
    seeds = listed([f"{task.seeds} on {task.name}" for task in study.tasks])
    told = ["n differs because mechanisms that looked better by their first seeds were given more. "
            "They looked better by luck too, which flatters both sides of a comparison, and not "
            f"always alike. The seeds that every mechanism has were chosen by no result ({seeds}): "
            "shares of the variance are by these alone, and so is gain_common in take.csv, for "
            "every comparison."]
    first = [(study.closest, "")] if study.closest else []
    for choice, where in first + [(choice, " in the baseline") for choice in study.alone]:
        if gains := [f"{_gain(gain)} on {task.name} instead of {_gain(own)}" for gain, own, n, task
                     in zip(choice.common, choice.gains, choice.n, study.tasks) if n > task.seeds]:
            told.append(f"By these seeds {choice.name}{where} gains {listed(gains)}.")
    return told


def summary(study: Study) -> str:
    """take.csv: a row for each list, choice and table, unrounded."""
    return csv_text([
        "list", "choice", "table", "n", "gain", "low", "high", "p", "p_holm", "gain_common",
        "low_common", "high_common"
    ], ([title, choice.name, task.name, n, *gain, raw, p, *common]
        for title, found in study.lists.items() for choice in found for task, n, gain, raw, p,
        common in zip(study.tasks, choice.n, choice.gains, choice.raw, choice.p, choice.common)))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="take.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", metavar="TABLE[:OBJECTIVE]", nargs="+")
    parser.add_argument("--genes", metavar="GENE,GENE", type=lambda text: text.split(","))
    parser.add_argument("-o", "--output", default="take", metavar="FOLDER")
    options = parser.parse_args(arguments)
    study = Study(read_all(options.tables), options.genes)
    sentences = verdict(study)
    page = Report.of_findings("What to take?", sentences, numbers(study),
                              f"analysis/studies/take.py {shlex.join(arguments)}")
    written = page.write(pathlib.Path(options.output), "take", {"take.csv": summary(study)})
    print("\n".join([*sentences, written]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
