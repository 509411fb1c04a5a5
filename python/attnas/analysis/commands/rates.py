"""Says who only likes the learning rate: do mechanisms keep their ranks if each has the best of several?

    analysis/rates.py TABLE --names N
    analysis/rates.py TABLE RUN RUN... [-o FOLDER]

TABLE is a packed table of training runs at one rate. With --names it names its N best mechanisms and N others at random,
a line each: nas-train takes them, and adds its baseline. RUN are runs (folders, their store.sqlite or results.json) of the same mechanisms with
the same seeds, which differ in the rate alone, that of the table among them. FOLDER receives rates.html, rates.md, rates.csv and
rates.svg.
"""

import argparse
import dataclasses
import pathlib
import shlex
from collections.abc import Sequence

import numpy as np

from attnas.analysis import figures, statistics, tables
from attnas.analysis.arguments import positive, program
from attnas.analysis.files import csv_text
from attnas.analysis.page import Bullets, Chapter, Columns, Paragraph, Pictures, Report
from attnas.analysis.statistics import Interval
from attnas.analysis.svg import tip
from attnas.analysis.tables import Table, TableError
from attnas.analysis.words import counted, digits, listed

FEWEST_SEEDS = 2  # one to choose by, one to judge by
SHUFFLE = 1  # seed of the mechanisms that are drawn


def order(table: Table) -> np.ndarray:
    """Rows of a table's mechanisms that were trained to the end without a failure, the best first by the mean validation nll of the
    seeds that all have.

    @throws TableError  where there are none.
    """
    usable = table.usable[:, :table.drawn]
    whole = np.flatnonzero(usable.all(axis=1))
    if not len(whole):
        raise TableError(f"{table.path}: no mechanism has all of its seeds")
    return whole[np.argsort(table.valid_nll[whole, :table.drawn, -1].mean(axis=1), kind="stable")]


def named(table: Table, count: int) -> list[str]:
    """The best mechanisms and as many others, which were drawn; without the baseline, which is trained beside them anyway.

    @throws TableError  where there are not so many.
    """
    vanilla = table.baseline()
    ranked = [table.mechanisms[row] for row in order(table) if table.mechanisms[row] != vanilla]
    if 2 * count > len(ranked):
        raise TableError(f"--names {count}, must be at most {len(ranked) // 2} for {table.path}")
    drawn = np.random.default_rng(SHUFFLE).choice(np.arange(count, len(ranked)), count, replace=False)
    return [*ranked[:count], *(ranked[i] for i in sorted(drawn))]


@dataclasses.dataclass(frozen=True)
class Rates:
    """m mechanisms, each trained at k rates with the same n seeds."""

    names: list[str]
    briefs: list[str]
    rates: list[float]  # ascending
    own: int  # which of these the table has
    numbers: tuple[int, ...]  # (n,) of the seeds' replicates
    valid: np.ndarray  # (m, k, n) nll of the validation split, what a rate is chosen by; all infinite where a seed failed
    judged: np.ndarray  # (m, k, n) nll of the test split, else of the validation split; infinite where it failed
    best: np.ndarray  # (m,) whether it is one of the table's best
    vanilla: int  # row

    @property
    def seeds(self) -> int:
        return len(self.numbers)

    @property
    def at_own(self) -> np.ndarray:
        """(m, n) at the table's rate."""
        return self.judged[:, self.own]

    @property
    def tuned(self) -> np.ndarray:
        """(m, n): each seed at the rate that the mechanism's other seeds do best with, so that no luck of a seed chooses what it is
        judged by."""
        found = np.empty_like(self.at_own)
        for seed in range(self.seeds):
            chosen = np.delete(self.valid, seed, axis=2).mean(axis=2).argmin(axis=1)
            found[:, seed] = self.judged[np.arange(len(found)), chosen, seed]
        return found

    @property
    def favourite(self) -> np.ndarray:
        """(m,) the rate with the best mean of all seeds."""
        return self.valid.mean(axis=2).argmin(axis=1)

    @property
    def others(self) -> np.ndarray:
        """(m,) the mechanisms that were drawn."""
        return ~self.best & (np.arange(len(self.names)) != self.vanilla)


def read(table: Table, runs: Sequence[str]) -> Rates:
    """@throws BadInput  where runs are not what is asked for."""
    loaded = sorted((tables.load([run]) for run in runs), key=_rate)
    rates = [_rate(one) for one in loaded]
    if len(rates) < 2 or len(set(rates)) < len(rates):
        raise TableError(f"the runs have the rates {', '.join(f'{rate:g}' for rate in rates)}, must be at least two, each once")
    if _rate(table) not in rates:
        raise TableError(f"no run has the rate of {table.path}, {_rate(table):g}")
    for one in loaded:
        for key in ("corpus_hash", "model", "numerical_mode", "results_version", "semantics"):
            if one.facts.get(key) != table.facts.get(key):
                raise TableError(f"{one.path}: {key} is {one.facts.get(key)}, must be that of {table.path}, {table.facts.get(key)}")
        if _training(one) != _training(table):
            raise TableError(f"{one.path}: differs from {table.path} in training beside the rate")
    first = loaded[0]
    rows = [row for row, name in enumerate(first.mechanisms) if "|" in name]  # controls are in no table
    for one in loaded[1:]:
        if one.mechanisms != first.mechanisms or one.numbers != first.numbers:
            raise TableError(f"{one.path}: has not the mechanisms and seeds of {first.path}")
        if one.facts.get("run_seed") != first.facts.get("run_seed"):
            raise TableError(f"{one.path}: its seeds are others than those of {first.path}")
    if {*first.numbers} & {*table.numbers} and first.facts.get("run_seed") == table.facts.get("run_seed"):
        raise TableError(f"{first.path}: its seeds are those of {table.path}, by which the best were chosen; nas-train's are others")
    if len(first.numbers) < FEWEST_SEEDS:
        raise TableError(f"{first.path}: {counted(len(first.numbers), 'seed')}, must be at least {FEWEST_SEEDS}")
    names = [first.mechanisms[row] for row in rows]
    ranked = [table.mechanisms[row] for row in order(table)]
    vanilla = table.baseline()
    if missing := [name for name in (vanilla, *names) if name not in ranked or name not in names]:
        raise TableError(f"{first.path}: {listed(missing)}: must be in the runs and in {table.path}")
    own = rates.index(_rate(table))
    cells = np.zeros(loaded[own].usable.shape, bool)
    cells[rows] = True
    if troubles := loaded[own].troubles(cells):
        raise TableError(f"{loaded[own].path}: {listed(troubles)}: at the table's rate all must be trained to the end")
    usable = np.stack([one.usable[rows] for one in loaded], axis=1)
    valid = np.stack([one.valid_nll[rows, ..., -1] for one in loaded], axis=1)
    test = np.stack([one.test_nll[rows] for one in loaded], axis=1)
    judged = np.where(usable, valid if np.isnan(test[usable]).any() else test, np.inf)
    valid = np.where(usable.all(axis=2, keepdims=True), valid, np.inf)
    places = {name: place for place, name in enumerate(name for name in ranked if name != vanilla)}
    count = (len(names) - 1) // 2
    best = np.array([name != vanilla and places[name] < count for name in names])
    if not 1 <= best.sum() == count or len(names) != 2 * count + 1:
        raise TableError(f"{first.path}: {len(names)} mechanisms, {best.sum()} of them the table's best; must be those of --names and the "
                         "baseline")
    return Rates(names, [first.brief(name) for name in names], rates, own, first.numbers, valid, judged, best, names.index(vanilla))


def _rate(table: Table) -> float:
    rate = table.facts.get("training", {}).get("learning_rate")
    if rate is None:
        raise TableError(f"{table.path}: does not say its learning rate")
    return float(rate)


def _training(table: Table) -> dict:
    return {key: value for key, value in table.facts["training"].items() if key != "learning_rate"}


def _over_seeds(values: np.ndarray) -> Interval:
    """Of the mean of mechanisms' rows (m, n), for other seeds."""
    return statistics.mean_interval(values.mean(axis=0))


def _text(interval: Interval) -> str:
    return f"{interval.point:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]".replace("-", "\u2212")


def verdict(found: Rates) -> list[str]:
    """The findings in sentences, what matters first."""
    tau = statistics.kendall(found.at_own.mean(axis=1), found.tuned.mean(axis=1))
    liked = [f"{(found.favourite == k).sum()} at {rate:g}" for k, rate in enumerate(found.rates)]
    gain = found.at_own - found.tuned
    lead = [values[found.others].mean(axis=0) - values[found.best].mean(axis=0) for values in (found.at_own, found.tuned)]
    winner = int(found.tuned.mean(axis=1).argmin())
    items = [
        f"With a rate of its own, chosen for each seed by the other ones, the {found.best.sum()} best mechanisms of the table gain "
        f"{_text(_over_seeds(gain[found.best]))} nats, the {found.others.sum()} drawn ones {_text(_over_seeds(gain[found.others]))}, "
        f"the baseline {_text(_over_seeds(gain[[found.vanilla]]))}.",
        f"The best are ahead of the drawn ones by {_text(statistics.mean_interval(lead[0]))} at the table's rate, "
        f"{found.rates[found.own]:g}, and by {_text(statistics.mean_interval(lead[1]))} with rates of their own.",
        f"Both ways rank the {len(found.names)} mechanisms alike by Kendall's tau {tau.point:.2f} [{tau.low:.2f}, {tau.high:.2f}].",
        f"By the mean of all seeds {listed(liked)} do best.",
        f"With rates of their own {found.briefs[winner]} is first"
        + ("." if winner == found.vanilla else
           f", better than the baseline by {_text(_over_seeds(found.tuned[[found.vanilla]] - found.tuned[[winner]]))}, which "
           "flatters it, since these seeds also chose it.")]
    for k, rate in enumerate(found.rates):
        if lost := [brief for brief, values in zip(found.briefs, found.valid[:, k]) if np.isinf(values).any()]:
            items.append(f"Not trained to the end with every seed at {rate:g}, so that this rate is not theirs: {listed(lost)}.")
    edges = [rate for k, rate in enumerate(found.rates) if k in (0, len(found.rates) - 1) and (found.favourite == k).any()]
    if edges:
        items.append(f"Some do best at an end of the rates tried, {listed([f'{rate:g}' for rate in edges])}: what is beyond is not known.")
    return items


def numbers(found: Rates) -> Chapter:
    """Mechanism by mechanism."""
    kinds = np.where(found.best, "best", np.where(found.others, "drawn", "baseline"))
    by = np.argsort(found.at_own.mean(axis=1), kind="stable")
    rows = [[found.briefs[i], str(kinds[i]), *(digits(value) for value in found.judged[i].mean(axis=1)),
             digits(float(found.tuned[i].mean())), f"{found.rates[found.favourite[i]]:g}"] for i in by]
    dots = [figures.Dot(float(found.at_own[i].mean()), float(found.tuned[i].mean()),
                        {"best": "c0", "drawn": "c1", "baseline": "c2"}[str(kinds[i])],
                        tip(found.briefs[i], f"best rate {found.rates[found.favourite[i]]:g}")) for i in by]
    values = np.concatenate([found.at_own.mean(axis=1), found.tuned.mean(axis=1)])
    margin = 0.04 * float(np.ptp(values)) or 0.01
    picture = figures.scatter(
        "One rate for all, or each its own", "A dot for each mechanism by its mean nll; what gains by a rate of its own lies below the "
        "diagonal.", f"nll at {found.rates[found.own]:g}", "nll at its own rate", dots,
        [("best of the table", "c0"), ("drawn", "c1"), ("baseline", "c2")],
        (float(values.min()) - margin, float(values.max()) + margin))
    return Chapter("mechanisms", "Mechanism by mechanism", [
        Pictures({"rates.svg": picture}),
        Paragraph(f"Mean nll in nats over {counted(found.seeds, 'seed')}:"),
        Columns(["mechanism", "", *(f"at {rate:g}" for rate in found.rates), "own rate", "best rate"], rows),
        Bullets(["Intervals are Student's, of 95 %, for other seeds and these very mechanisms; few seeds make them wide. Each seed "
                 "helps to choose the rate of the others, which they leave out.",
                 "The best are the table's, of other seeds, so that their lead here is none of luck."])])


def summary(found: Rates) -> str:
    """rates.csv: a row for each mechanism, rate and seed."""
    rows = []
    for i, name in enumerate(found.names):
        group = "best" if found.best[i] else "baseline" if i == found.vanilla else "drawn"
        for k, rate in enumerate(found.rates):
            for seed, number in enumerate(found.numbers):
                rows.append([name, group, rate, number, found.valid[i, k, seed], found.judged[i, k, seed]])
    return csv_text(["mechanism", "group", "rate", "seed", "valid_nll", "judged_nll"], rows)


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="rates.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("runs", metavar="RUN", nargs="*")
    parser.add_argument("--names", type=positive, metavar="N", help="name mechanisms to train at several rates")
    parser.add_argument("-o", "--output", default="rates", metavar="FOLDER")
    options = parser.parse_args(arguments)
    if bool(options.runs) == (options.names is not None):
        parser.error("runs must be given, or --names")
    table = tables.load([options.table])
    if options.names:
        print("\n".join(named(table, options.names)))
        return
    found = read(table, options.runs)
    sentences = verdict(found)
    page = Report.of_findings("Who only likes the rate?", sentences, [numbers(found)], f"analysis/rates.py {shlex.join(arguments)}")
    written = page.write(pathlib.Path(options.output), "rates", {"rates.csv": summary(found)})
    print("\n".join([*sentences, written]))
