#!/usr/bin/env python3
"""Says whether what helps on one kind of data helps on another: mechanisms by data, with intervals.

    analysis/studies/domains.py RUN... [-o FOLDER] [--beside MECHANISM]

RUN is the folder of a run of nas-train on one kind of data, which is called as the folder is: at
least two, with the same baseline and mechanisms. FOLDER receives domains.html, domains.md with the
picture, and domains.csv, a row for each mechanism and kind of data.
--beside compares with one of the mechanisms, too, as domains.csv calls it: is more than a simpler
change does shown? beside.csv has these rows, in percent of perplexity on the test split, paired by
seed. tests.csv has the nll of every training run on that split.
"""

import argparse
import dataclasses
import itertools
import math
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis import packages

packages.require(__doc__, "numpy", "scipy")

import numpy as np

from attnas.analysis import figures, latex, statistics
from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.analysis.files import csv_text
from attnas.analysis.measures import best_counts, measure_of
from attnas.analysis.page import Bullets, Chapter, Columns, Pictures, Report
from attnas.analysis.run import Run
from attnas.analysis.statistics import Interval
from attnas.analysis.words import MINUS, NOTHING, counted, listed

FEWEST = 4  # mechanisms of which tau is told


@dataclasses.dataclass(frozen=True)
class Domain:
    """One kind of data: a run, and of each mechanism of it the difference from the baseline, by its
    name.
    """

    name: str
    run: Run
    rows: dict[str, dict]
    baseline: dict

    @property
    def hours(self) -> float:
        """Of its training runs, all together."""
        return sum(evaluation.seconds for evaluation in self.run.evaluations) / 3600.0

    @property
    def counts(self) -> float | None:
        """Validation nll of the best counts of what the baseline was trained on, where it is
        recorded.
        """
        return (best_counts(self.run.digest.get("count_models"), accuracy=False)
                or {}).get("valid_nll")

    def of_seeds(self, name: str) -> dict[int, float]:
        """Test nll of the training runs of a mechanism, or the share of wrong answers, by the
        number of the seed.
        """
        measure = measure_of(self.run.retest)
        found = {
            one.replicate: measure.value(one.values) for one in self.run.evaluations
            if one.candidate == name and one.status == "ok"
        }
        return {
            seed: 1.0 - value if measure.accuracy else math.log(value)
            for seed, value in found.items() if not math.isnan(value)
        }

    def beside(self, name: str, rival: str) -> tuple[Interval, float, int] | None:
        """The shown difference of a mechanism from another one, p and how many seeds both have;
        None of fewer than two.
        """
        own, other = self.of_seeds(name), self.of_seeds(rival)
        seeds = sorted(own.keys() & other.keys())
        if len(seeds) < 2:
            return None
        a, b = (np.array([found[seed] for seed in seeds]) for found in (own, other))
        (point, *ends), p = statistics.paired_test(a - b, statistics.rounding(a, b))
        measure = measure_of(self.run.retest)
        return Interval(measure.shown(point), *measure.interval(*ends)), p, len(seeds)

    def as_good(self) -> list[str]:
        """What does without attention and is not shown to be worse than the baseline: controls, and
        counts by their perplexity.
        """
        found = [
            row["mechanism"] for row in self.rows.values()
            if row["role"] == "control" and not (row["distinguished"] and row["difference"] > 0)
        ]
        perplexity = self.baseline.get("perplexity",
                                       math.exp(self.baseline.get("mean_nll", -math.inf)))
        return found + ["counts"] * (self.counts is not None
                                     and math.exp(self.counts) <= perplexity)


def read(path: str) -> Domain:
    """@throws BadInput  where that is no run, or one without a comparison."""
    run = Run(pathlib.Path(path))
    found = latex.rows(run)
    baseline = [row for row in found if row["role"] == "baseline"]
    rows = {
        row["candidate"]: row for row in found if row["role"] != "baseline" and row["n"] is not None
    }
    if not baseline or not rows:
        raise BadInput(f"{path}: compares nothing with its baseline, must be a run of nas-train")
    name = pathlib.Path(path).resolve()
    return Domain((name.parent if name.is_file() else name).name, run, rows, baseline[0])


_ALIKE = re.compile(r"(?:model\{([^{}]*)\}/)?(\d+\*)?(\w+)(?:\{([^{}]*)\})?(\+\w+(?:\{[^{}]*\})?)?")


def changed(label: str, baseline: str) -> str:
    """What a name of a model whose layers are alike says that the baseline's does not, "no" before
    what it leaves out, a number with its gene, a choice by itself; other names, and those of
    another number of layers or feed-forward layer, stay."""
    own, other = (_ALIKE.fullmatch(name) for name in (label, baseline))
    if own is None or other is None or (own[2], own[5]) != (other[2], other[5]):
        return label

    def genes(found: re.Match) -> list[str]:
        return [gene for group in (found[1], found[4]) for gene in (group or "").split(",") if gene]

    words = [own[3]] if own[3] != other[3] else []
    words += [gene for gene in genes(own) if gene not in genes(other)]
    if own[3] == other[3]:
        named = {gene.split("=")[0] for gene in words}
        words += [
            f"no {gene.split('=')[-1]}" for gene in genes(other)
            if gene not in genes(own) and gene.split("=")[0] not in named
        ]
    return " + ".join(re.sub(r"^\w+=(?!\d)", "", word) for word in words) or label


class Table:
    """Mechanisms by kinds of data. What is missing in one of them is missing in its column."""

    def __init__(self, domains: Sequence[Domain]):
        """@throws BadInput  where there are fewer than two, of equal names, or with another
        baseline.
        """
        if len(domains) < 2:
            raise BadInput(f"{counted(len(domains), 'run')} given, must be at least 2, of "
                           f"different data")
        names = [domain.name for domain in domains]
        if len(set(names)) < len(names):
            raise BadInput(f"runs are called {listed(names)}, must have folders of different names")
        for domain in domains[1:]:
            if domain.baseline["candidate"] != domains[0].baseline["candidate"]:
                raise BadInput(f"{domain.name}: baseline {domain.baseline['mechanism']}, must be "
                               f"{domains[0].baseline['mechanism']}, that of {domains[0].name}")
        self.domains = list(domains)
        self.baseline = domains[0].run.label(domains[0].baseline["candidate"])
        every = dict.fromkeys(name for domain in domains for name in domain.rows)
        self.controls = [name for name in every if self._role(name) == "control"]
        self.mechanisms = [name for name in every if self._role(name) != "control"]

    def _role(self, name: str) -> str:
        return next(domain.rows[name]["role"] for domain in self.domains if name in domain.rows)

    def brief(self, name: str) -> str:
        """A mechanism as what it changes in the baseline, a control by its name."""
        domain = next(domain for domain in self.domains if name in domain.rows)
        return changed(domain.run.brief(name), self.baseline)

    def called(self, brief: str) -> str:
        """The mechanism that is called so. @throws BadInput  where none is."""
        named = {self.brief(name): name for name in self.mechanisms}
        if brief not in named:
            raise BadInput(f"--beside {brief}, must be one of {listed(list(named), 99)}")
        return named[brief]

    def besides(self, rival: str) -> list[tuple[str, Domain, Interval, float, int]]:
        """Of each other mechanism and kind of data, its difference from a rival, p and the number
        of seeds.
        """
        found = [(name, domain, domain.beside(name, rival)) for name in self.mechanisms
                 if name != rival for domain in self.domains]
        return [(name, domain, *one) for name, domain, one in found if one is not None]

    def sides(self, name: str) -> tuple[list[str], list[str]]:
        """The kinds of data on which a mechanism is shown to be better, and worse."""
        shown = [(domain.name, domain.rows[name]["difference"]) for domain in self.domains
                 if name in domain.rows and domain.rows[name]["distinguished"]]
        return [name for name, value in shown
                if value < 0], [name for name, value in shown if value > 0]

    def tau(self, first: Domain, second: Domain) -> Interval | None:
        """Kendall's, of the mechanisms' differences on two kinds of data, for other mechanisms like
        these.

        @return None of fewer than FEWEST."""
        shared = [name for name in self.mechanisms if name in first.rows and name in second.rows]
        if len(shared) < FEWEST:
            return None
        return statistics.kendall(*([domain.rows[name]["difference"] for name in shared]
                                    for domain in (first, second)))

    def taus(self) -> list[tuple[Domain, Domain, Interval]]:
        """Of each pair of kinds of data that has one."""
        found = [(a, b, self.tau(a, b)) for a, b in itertools.combinations(self.domains, 2)]
        return [(a, b, tau) for a, b, tau in found if tau is not None and not math.isnan(tau.point)]


def _percent(value: float) -> str:
    if abs(value) >= 1000:
        return f"{'+' if value > 0 else MINUS}{abs(value):.0g}"
    return f"{value:+.1f}".replace("-", MINUS)


def _interval(row: dict) -> str:
    return f"{_percent(row['percent_low'])} to {_percent(row['percent_high'])}"


def verdict(table: Table) -> list[str]:
    """The findings in sentences."""
    better, worse, both, neither = [], [], [], []
    for name in table.mechanisms:
        up, down = table.sides(name)
        kind = both if up and down else better if up else worse if down else neither
        told = [f"better on {listed(up, 9)}"] if up else []
        told += [f"worse on {listed(down, 9)}"] if down else []
        kind.append(f"{table.brief(name)} ({' and '.join(told)})" if told else table.brief(name))
    names = listed([domain.name for domain in table.domains], 9)
    rates = "At one learning rate" if any(
        latex.one_rate(domain.run) for domain in table.domains) else "Each at its own learning rate"
    items = [f"{rates}: {counted(len(table.mechanisms), 'mechanism')} beside {table.baseline} on "
             f"{counted(len(table.domains), 'kind')} of data: {names}."]
    for words, found in (("Better on some and shown to be worse on none", better), ("Better on "
                                                                                    "some and "
                                                                                    "worse on "
                                                                                    "others", both),
                         ("Worse on some and shown to be better on none", worse),
                         ("Not shown to differ on any", neither)):
        items.append(f"{words}: {listed(found, 99) if found else 'none'}.")
    if table.controls:
        as_good = {domain.name: domain.as_good() for domain in table.domains}
        ahead = [name for name, found in as_good.items() if not found] or ["none"]
        told = "; ".join(f"{listed(found, 9)} on {name}" for name, found in as_good.items()
                         if found)
        items.insert(1, f"The baseline is shown to be ahead of all that does without attention, "
                        f"or with little of it, on {listed(ahead, 9)}."
                        + (f" Not shown to be worse than it: {told}. There differences say little "
                           f"of attention." if told else ""))
    if taus := table.taus():
        values = [tau.point for _, _, tau in taus]
        clear = [tau for _, _, tau in taus if tau.low > 0]
        items.append(f"Of {counted(len(taus), 'pair')} of kinds of data {len(clear)} rank the "
                     f"mechanisms alike beyond chance; Kendall's tau is {min(values):.2f} to "
                     f"{max(values):.2f}, on average {np.mean(values):.2f}.")
    hours = sum(domain.hours for domain in table.domains)
    trained = sum(sum(one.trained for one in domain.run.evaluations) for domain in table.domains)
    items.append(f"{counted(trained, 'training run')} took {hours:.1f} core-hours.")
    return items


def heat(table: Table) -> figures.Figure:
    """The picture."""
    rows = [*table.mechanisms, *table.controls]
    cells = [[_cell(domain, name) for domain in table.domains] for name in rows]
    return figures.heat(
        f"Change of test perplexity against {table.baseline}, %",
        "Blue: lower perplexity than the baseline's, which is better; orange: higher. The deeper, "
        "the larger, up to 20 %. Below, intervals of 95 %, each for itself. No colour and =: no "
        "difference shown, p by Holm over the mechanisms of a column above 0.05. Rows below the "
        "gap are controls: the baseline without a mixer, or that sees a few tokens "
        "only.", [table.brief(name) for name in rows], [domain.name for domain in table.domains],
        cells, len(table.mechanisms))


def _cell(domain: Domain, name: str) -> figures.Cell | None:
    row = domain.rows.get(name)
    if row is None:
        return None
    return figures.Cell(row["percent"], _percent(row["percent"]), _interval(row),
                        bool(row["distinguished"]))


def numbers(table: Table) -> list[Chapter]:
    """The picture, and in figures what it shows."""
    head = ["", *(domain.name for domain in table.domains)]

    def cell(domain: Domain, name: str) -> str:
        row = domain.rows.get(name)
        if row is None:
            return NOTHING
        return (
            f"{_percent(row['percent'])} [{_interval(row)}]{'' if row['distinguished'] else ' ='}")

    every = [*table.mechanisms, *table.controls]
    rows = [[table.brief(name), *(cell(domain, name) for domain in table.domains)]
            for name in every]
    facts = [[
        "perplexity of the baseline",
        *(f"{domain.baseline['test_perplexity']:.3f}" for domain in table.domains)
    ],
             [
                 "perplexity of counts",
                 *(NOTHING if domain.counts is None else f"{math.exp(domain.counts):.3f}"
                   for domain in table.domains)
             ],
             [
                 "seeds",
                 *(str(max(row["n"] for row in domain.rows.values())) for domain in table.domains)
             ], ["core-hours", *(f"{domain.hours:.2f}" for domain in table.domains)]]
    pairs = [[f"{a.name}, {b.name}", f"{tau.point:.2f}", f"{tau.low:.2f} to {tau.high:.2f}"]
             for a, b, tau in table.taus()]
    return [
        Chapter("heat", "Mechanisms by data", [Pictures({"heat.svg": heat(table)})]),
        Chapter("numbers", "In figures",
                [Columns(head, rows), Columns(head, facts)]),
        Chapter("pairs", "Do they rank mechanisms alike?",
                [Columns(["", "Kendall's tau", "95 %"], pairs)] if pairs else []),
        Chapter("reading", "How to read this", [
            Bullets([
                "Changes are of perplexity per token of the test split; tokens differ from one "
                "kind of data to another, so that sizes do, too. Of pictures whose class is asked "
                "for, it is the perplexity of the class.",
                "Counts: of up to six tokens of what the baseline was trained on. Their perplexity "
                "is of the validation split.",
                "=: no difference is shown by a paired t-test, which is not that there is none. "
                "The interval says how large it may be.",
                "Tau's interval is for other mechanisms like these, which count as independent.",
                "All have one model and one length of training; at one learning rate for all, a "
                "mechanism that learns faster at it may not be ahead at its own."
            ])
        ])
    ]


def summary(table: Table) -> str:
    """domains.csv, unrounded."""
    columns = ("difference", "low", "high", "percent", "percent_low", "percent_high", "p", "p_holm",
               "n", "distinguished", "test_perplexity")
    return csv_text(["mechanism", "candidate", "role", "domain", *columns],
                    ([
                        table.brief(name), name, domain.rows[name]["role"], domain.name,
                        *(domain.rows[name][key] for key in columns)
                    ] for name in [*table.mechanisms, *table.controls]
                     for domain in table.domains if name in domain.rows))


def tests(table: Table) -> str:
    """tests.csv: of every training run its test nll, or the share of wrong answers."""
    return csv_text(["domain", "candidate", "replicate", "test"],
                    ([domain.name, name, replicate, value] for domain in table.domains
                     for name in [domain.baseline["candidate"], *table.mechanisms, *table.controls]
                     for replicate, value in sorted(domain.of_seeds(name).items())))


def beside(table: Table, rival: str) -> str:
    """beside.csv, unrounded."""
    return csv_text(["mechanism", "domain", "candidate", "percent", "low", "high", "p", "n"],
                    ([table.brief(name), domain.name, name, *shown, p, n]
                     for name, domain, shown, p, n in table.besides(rival)))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="domains.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN", nargs="+")
    parser.add_argument("-o", "--output", default="domains", metavar="FOLDER")
    parser.add_argument("--beside", metavar="MECHANISM")
    options = parser.parse_args(arguments)
    table = Table([read(path) for path in options.runs])
    sentences = verdict(table)
    files = {"domains.csv": summary(table), "tests.csv": tests(table)}
    if options.beside is not None:
        files["beside.csv"] = beside(table, table.called(options.beside))
    page = Report.of_findings("Does it help elsewhere?", sentences, numbers(table),
                              f"analysis/studies/domains.py {shlex.join(arguments)}")
    written = page.write(pathlib.Path(options.output), "domains", files)
    print("\n".join([*sentences, written]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
