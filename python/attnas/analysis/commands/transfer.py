"""Says whether ranks of mechanisms transfer: does what is good in one setting stay good in another?

    analysis/transfer.py A B [--value nll|accuracy|test_nll] [--top K] [--without OPTION] [-o FOLDER]
    analysis/transfer.py A --spread N [--value nll|accuracy|test_nll] [--without OPTION]

A and B are a packed table of training runs each, or runs (folders, their store.sqlite or
results.json; several joined by commas): two tasks, two lengths of training, two sizes of the model.
Mechanisms are matched by name; those of equal similarity and normalization are one family, and the
verdict is for other families where there are several. --without leaves out the mechanisms that have an
option, as where a ranking hangs on one that fails. FOLDER receives transfer.html, transfer.md, transfer.csv,
mechanisms.csv and ranks.svg. With --spread it names N mechanisms from all over the ranking of A, a
line each, to train in a setting that costs more: nas-train takes them.
"""

import argparse
import dataclasses
import functools
import itertools
import os
import pathlib
import shlex
import shutil
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from attnas.analysis import figures, statistics, tables
from attnas.analysis.arguments import positive, program
from attnas.analysis.files import csv_text
from attnas.analysis.page import Bullets, Chapter, Code, Columns, Paragraph, Pictures, Report
from attnas.analysis.statistics import Interval
from attnas.analysis.svg import tip
from attnas.analysis.tables import MISSING, Table, TableError
from attnas.analysis.words import counted, digits, listed, p_value

FEWEST = 4  # mechanisms, below which a rank correlation has no interval
FAMILY = ("similarity", "normalization")  # genes to which most of the variance is due
FEWEST_FAMILIES = 6  # below which nothing is said of other families
REDRAWS = 2000
DIVISIONS = 126  # of replicates into halves; all there are for up to 10 replicates
RELIABLE = 0.5  # share of signal from which on a correlation is corrected for noise
ALPHA = 0.05


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two settings: n mechanisms that both have."""

    label: str
    values: np.ndarray  # (n, replicates) minimised, NaN where missing

    @functools.cached_property
    def mean(self) -> np.ndarray:
        """(n,) over the replicates that are there."""
        return np.nanmean(self.values, axis=1)

    @functools.cached_property
    def seeds(self) -> np.ndarray:
        """(n,) replicates that are there."""
        return np.isfinite(self.values).sum(axis=1)

    @functools.cached_property
    def order(self) -> np.ndarray:
        """(n,) mechanisms, the best first."""
        return np.argsort(self.mean, kind="stable")

    @functools.cached_property
    def rank(self) -> np.ndarray:
        """(n,) places, 1 the best."""
        return _places(self.mean)

    @property
    def repeated(self) -> bool:
        """Whether every mechanism has two seeds, so that its noise is known."""
        return bool(self.seeds.min() > 1)

    def redrawn(self, redraws: int, generator: np.random.Generator) -> np.ndarray:
        """(redraws, n) means with as much noise of other seeds on top of their own: the residuals of a
        mechanism's n seeds are drawn n times with replacement and scaled by sqrt(n / (n - 1)), which
        gives their mean its variance."""
        drawn = np.tile(self.mean, (redraws, 1))
        for i, n in enumerate(self.seeds):
            own = self.values[i][np.isfinite(self.values[i])] - self.mean[i]
            drawn[:, i] += np.sqrt(n / (n - 1)) * generator.choice(own, (redraws, n)).mean(axis=1)
        return drawn

    @functools.cached_property
    def halves(self) -> tuple[Interval, float] | None:
        """How alike two halves of the seeds rank the mechanisms: Kendall's tau, mean over the
        divisions; and the reliability of the means of all seeds, the share of their variance that is
        none of noise. None where fewer than four mechanisms have seeds in both halves, or all are
        equal there."""
        found = []
        for one in _divisions(self.values.shape[1]):
            sides = [self.values[:, one], np.delete(self.values, one, axis=1)]
            there = np.all([np.isfinite(side).any(axis=1) for side in sides], axis=0)
            if there.sum() < FEWEST:
                continue
            sides = [side[there] for side in sides]
            tau = statistics.kendall(*(np.nanmean(side, axis=1) for side in sides))
            if np.isnan(tau.point):
                continue
            noise = [float((1.0 / np.isfinite(side).sum(axis=1)).mean()) for side in sides]
            found.append((*tau, *noise))
        if not found:
            return None
        point, low, high, first, second = np.mean(found, axis=0)
        return Interval(point, low, high), _reliability(point, first, second,
                                                        float((1.0 / self.seeds).mean()))


def _divisions(replicates: int) -> list[list[int]]:
    """Columns of one half: all ways to divide them, or DIVISIONS ways at random."""
    half = (replicates + 1) // 2
    if replicates > 10:
        generator = np.random.default_rng(0)
        return [generator.permutation(replicates)[:half].tolist() for _ in range(DIVISIONS)]
    found = [list(one) for one in itertools.combinations(range(replicates), half)]
    return found if replicates % 2 else found[:len(found) // 2]  # the others are their complements


def _reliability(tau: float, first: float, second: float, whole: float) -> float:
    """From the tau of two halves to the share of signal in means of all seeds, in [0, 1].

        sin(pi tau / 2) = 1 / sqrt((1 + x first) (1 + x second)),   1 / (1 + x whole)

    x is the variance of noise of one seed over that of mechanisms; first, second, whole are 1 over
    the numbers of seeds. Greiner's relation of tau and the correlation holds for normal values.
    """
    rho = np.sin(np.pi * tau / 2)
    if not rho > 0:
        return 0.0
    linear, square = first + second, first * second
    x = (np.sqrt(linear**2 + 4 * square * (1 / rho**2 - 1)) - linear) / (2 * square)
    return float(1 / (1 + x * whole))


def _places(means: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, 1 the smallest; equals share the best of their places."""
    return stats.rankdata(means, method="min", axis=-1).astype(int)


class Tau:
    """Kendall's rank correlation of two settings: its interval over mechanisms, p of the permutation
    test that their orders are unrelated, which is exact for few mechanisms, and the interval over
    families, which is without bounds for few families and None where mechanisms have none."""

    def __init__(self, a: np.ndarray, b: np.ndarray, families: np.ndarray | None = None):
        self.interval = statistics.kendall(a, b)
        self.p = float(stats.kendalltau(a, b).pvalue)
        self.families = 0 if families is None else len(np.unique(families))
        self.of_families = None
        if families is not None:
            self.of_families = (
                statistics.kendall(a, b, groups=families) if self.families >= FEWEST_FAMILIES else
                Interval(self.interval.point, np.nan, np.nan))

    @property
    def judged(self) -> Interval:
        """The interval to go by: mechanisms of a family are no independent witnesses."""
        return self.interval if self.of_families is None else self.of_families

    @property
    def sign(self) -> int:
        """0 where it is not distinguished from none."""
        if self.of_families is None:
            return int(np.sign(self.interval.point)) if self.p <= ALPHA else 0
        return int(self.of_families.low > 0) - int(self.of_families.high < 0)

    @property
    def over_mechanisms(self) -> str:
        """In words, with its p."""
        return f"{_interval(self.interval)}, {p_value(self.p)}"

    def __str__(self) -> str:
        if self.of_families is None:
            return self.over_mechanisms
        text = f"{_interval(self.of_families)} over {counted(self.families, 'family', 'families')}"
        return text + (", too few for an interval" if self.families < FEWEST_FAMILIES else "")


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Where the best mechanism of one setting stands in the other."""

    row: int
    place: Interval  # over redraws
    loss: float  # its mean minus the best mean there, minimised


class Transfer:
    """What two settings say about the same mechanisms, as numbers."""

    def __init__(self, sides: Sequence[Side], top: int, redraws: int = REDRAWS,
                 families: np.ndarray | None = None):
        self.sides = a, b = sides
        self.families = families  # (n,) the family of each mechanism
        self.size = len(a.mean)
        self.top = min(top, self.size // 2)
        self.tau = Tau(a.mean, b.mean, families)
        self.alike = _ordered_alike(a.mean, b.mean)
        self.redrawn = None
        if a.repeated and b.repeated:
            generator = np.random.default_rng(0)
            self.redrawn = [side.redrawn(redraws, generator) for side in sides]
        self.tau_of_seeds = self._tau_of_seeds()
        self.better_half = [self._better_half(side) for side in sides]
        self.between = self._between_families()
        self.within = self._within_families()
        self.overlap = self._overlap()
        self.chance = self.top**2 / self.size
        # Rounded: equal to a level is not above it.
        self.overlap_p = round(float(stats.hypergeom.sf(self.overlap.point - 1, self.size, self.top,
                                                        self.top)), 12)
        self.overlap_families_p = self._overlap_families_p()
        self.chosen = [self._chosen(0, 1), self._chosen(1, 0)]

    def _tau_of_seeds(self) -> Interval:
        """Redraws have the noise of the means twice: they lend their spread, on the scale of Fisher's
        z, to an interval around tau."""
        tau = self.tau.interval.point
        if self.redrawn is None:
            return Interval(tau, np.nan, np.nan)
        most = 1 - 1 / self.size**2  # of so few mechanisms none are known to agree wholly
        scaled = np.arctanh(np.clip([tau, *(stats.kendalltau(*pair).statistic
                                            for pair in zip(*self.redrawn))], -most, most))
        low, middle, high = np.nanquantile(scaled[1:], [0.025, 0.5, 0.975])
        return Interval(tau, min(tau, float(np.tanh(scaled[0] + low - middle))),
                        max(tau, float(np.tanh(scaled[0] + high - middle))))

    def _overlap(self) -> Interval:
        """The number of mechanisms among the best of both; redraws lend their spread, as above."""
        k = self.top
        point = _shared(*(side.order[:k] for side in self.sides))
        if self.redrawn is None:
            return Interval(point, np.nan, np.nan)
        redrawn = [_shared(*pair) for pair in zip(*(np.argsort(means)[:, :k]
                                                    for means in self.redrawn))]
        low, middle, high = np.quantile(redrawn, [0.025, 0.5, 0.975], method="nearest")
        return Interval(point, max(point + low - middle, 0), min(point + high - middle, k))

    def _overlap_families_p(self) -> float | None:
        """p that families share no more of the best than chance gives, by a one-sided t test of what
        each adds to the number shared beyond chance: of n mechanisms

            sum of (A - k / n) (B - k / n) = shared - k^2 / n

        A and B are 1 for the k best of either. At least that of a sign test, since families that all
        add the same leave no doubt to t, and that over mechanisms: being alike is no further evidence."""
        if self.families is None:
            return None
        share = self.top / self.size
        added = np.prod([np.isin(np.arange(self.size), side.order[:self.top]) - share
                         for side in self.sides], axis=0)
        added = np.bincount(np.unique(self.families, return_inverse=True)[1], added)
        k = len(added)
        if added.std() < 1e-12:
            return max(0.5**k, self.overlap_p) if added.mean() > 0 else 1.0
        return max(float(stats.ttest_1samp(added, 0, alternative="greater").pvalue), 0.5**k,
                   self.overlap_p)

    @property
    def shares(self) -> bool:
        """Whether more of the best are shared than chance gives."""
        p = self.overlap_p if self.overlap_families_p is None else self.overlap_families_p
        return p <= ALPHA

    def _better_half(self, chooser: Side) -> Tau | None:
        """Tau among the better half by one setting."""
        rows = chooser.order[:(self.size + 1) // 2]
        if len(rows) < FEWEST or any(np.ptp(side.mean[rows]) == 0 for side in self.sides):
            return None
        return Tau(*(side.mean[rows] for side in self.sides),
                   None if self.families is None else self.families[rows])

    def _between_families(self) -> Tau | None:
        """Tau of the means of families, of which each counts once."""
        if self.families is None:
            return None
        places = np.unique(self.families, return_inverse=True)[1]
        means = [np.bincount(places, side.mean) / np.bincount(places) for side in self.sides]
        return None if any(np.ptp(own) == 0 for own in means) else Tau(*means)

    def _within_families(self) -> Interval | None:
        """Mean over families of tau among the mechanisms of one, with Student's interval over families; those
        of fewer than FEWEST mechanisms, or of which all are equal on a side, are left out."""
        if self.families is None:
            return None
        found = []
        for family in np.unique(self.families):
            own = [side.mean[self.families == family] for side in self.sides]
            if len(own[0]) >= FEWEST and all(np.ptp(means) > 0 for means in own):
                found.append(float(stats.kendalltau(*own).statistic))
        return statistics.mean_interval(found) if len(found) >= FEWEST_FAMILIES else None

    def _chosen(self, chooser: int, judge: int) -> Chosen:
        row = int(self.sides[chooser].order[0])
        other = self.sides[judge]
        low, high = np.nan, np.nan
        if self.redrawn is not None:
            best = np.argmin(self.redrawn[chooser], axis=1)
            places = _places(self.redrawn[judge])[np.arange(len(best)), best]
            low, high = np.quantile(places, [0.025, 0.975], method="nearest")
        return Chosen(row, Interval(int(other.rank[row]), low, high),
                      float(other.mean[row] - other.mean.min()))

    @property
    def reliability(self) -> list[float] | None:
        """Of either side's means; None where a side has no halves."""
        halves = [side.halves for side in self.sides]
        return None if None in halves else [own[1] for own in halves]

    @property
    def ceiling(self) -> float | None:
        """The tau to expect between means so noisy of mechanisms that both settings rank alike."""
        if self.reliability is None:
            return None
        return float(2 / np.pi * np.arcsin(np.sqrt(np.prod(self.reliability))))

    @property
    def corrected(self) -> Interval | None:
        """Tau as it would be without noise: Spearman's (1904) correction for attenuation of the
        correlation that tau has for normal values; reliabilities count as known. None where noise is
        not known, or most of what a side measured."""
        if self.reliability is None or min(self.reliability) < RELIABLE:
            return None
        rho = np.sin(np.pi * np.array(self.tau.judged) / 2) / np.sqrt(np.prod(self.reliability))
        return Interval(*(float(tau) for tau in 2 / np.pi * np.arcsin(np.clip(rho, -1, 1))))


@dataclasses.dataclass(frozen=True)
class Matched:
    """The mechanisms that two tables have in common."""

    value: str
    names: list[str]
    briefs: list[str]
    failed: list[str]  # left out, since a training run of theirs came to no end
    sizes: list[int]  # of the tables
    sides: list[Side]
    families: np.ndarray | None  # (n,) the family of each; None where they have none
    without: Sequence[str] = ()  # options that were asked to be left out
    left_out: int = 0  # mechanisms of both tables that have them

    def natural(self, mean: float) -> float:
        """In the value's own sense."""
        return -mean if self.value == "accuracy" else mean

    @property
    def rest(self) -> str:
        """What was left out as asked for, in words; empty for nothing."""
        with_them = f"with {' or '.join(self.without)}"
        return f"the {counted(self.left_out, 'mechanism')} {with_them}" if self.without else ""


def matched(first: Table, second: Table, value: str, without: Sequence[str] = ()) -> Matched:
    """@throws TableError  where there is nothing to compare."""
    both_tables = (first, second)
    if first.path == second.path or first.sha256 and first.sha256 == second.sha256:
        raise TableError(f"{second.path}: holds what {first.path} does; give two settings")
    both = sorted({*first.mechanisms} & {*second.mechanisms})
    kept = ~_having(both, without)
    left_out = int((~kept).sum())
    both = [name for name, stays in zip(both, kept) if stays]
    rows = [[table.mechanisms.index(name) for name in both] for table in both_tables]
    values = [minimised(table, value)[own] for table, own in zip(both_tables, rows)]
    failed = np.any([_failed(table)[own] for table, own in zip(both_tables, rows)], axis=0)
    there = np.all([np.isfinite(each).any(axis=1) for each in values], axis=0) & ~failed
    names = [name for name, kept in zip(both, there) if kept]
    sizes = [len(table.mechanisms) for table in both_tables]
    if len(names) < FEWEST:
        raise TableError(
            f"{first.path} and {second.path}: {counted(len(names), 'mechanism')} with {value} in "
            f"both{_except(without)}, must be at least {FEWEST}; of {sizes[0]} and {sizes[1]}, named like "
            f"{first.mechanisms[0]} and {second.mechanisms[0]}")
    sides = [Side(label, each[there]) for label, each in zip(_labels(first, second), values)]
    for side in sides:
        if np.ptp(side.mean) == 0:
            raise TableError(f"{side.label}: {value} is the same for all {len(names)} mechanisms: "
                             "there is no order to compare")
    return Matched(value, names, [first.brief(name) for name in names],
                   [name for name, lost in zip(both, failed) if lost], sizes, sides,
                   _families(first.genes.loc[names]), without, left_out)


def _having(mechanisms: Sequence[str], options: Sequence[str]) -> np.ndarray:
    """(m,): whether a name "dot|softmax|none|fixed|bias|0" has one of the options.

    @throws TableError  for an option that no mechanism has.
    """
    fields = [name.split("|") for name in mechanisms]
    by_gene = sorted({(gene, option) for own in fields for gene, option in enumerate(own)})
    there = [*dict.fromkeys(option for _, option in by_gene)]
    for option in options:
        if there and option not in there:
            raise TableError(f"--without {option}, must be an option of the mechanisms: "
                             f"{listed(there, 50)}")
    return np.array([not {*own}.isdisjoint(options) for own in fields], dtype=bool)


def _except(options: Sequence[str]) -> str:
    return f" and without {' or '.join(options)}" if options else ""


def _families(genes: pd.DataFrame) -> np.ndarray | None:
    """(n,) of each mechanism the family by its name. None where names are not of such genes, where
    there are few families, or where each has one member, so that it says what mechanisms do."""
    fields = [name.split("|") for name in genes.index]
    columns = list(genes.columns)
    if not {*FAMILY} <= {*columns} or any(len(own) != len(columns) for own in fields):
        return None
    places = [columns.index(gene) for gene in FAMILY]
    families = np.array(["|".join(own[place] for place in places) for own in fields])
    return families if FEWEST_FAMILIES <= len(np.unique(families)) < len(families) else None


def _failed(table: Table) -> np.ndarray:
    """(m,): whether a training run of a mechanism failed."""
    return (~table.usable & (table.status != MISSING)).any(axis=1)


def minimised(table: Table, value: str) -> np.ndarray:
    """(m, r) of the cells that were trained to the end, smaller is better.

    @throws TableError  where nothing is recorded of it.
    """
    values = {"nll": table.valid_nll[..., -1], "accuracy": -table.valid_accuracy[..., -1],
              "test_nll": table.test_nll}[value]
    values = np.where(table.usable, values, np.nan)
    if not np.isfinite(values).any():
        why = ": the test split was not scored" if value == "test_nll" else ""
        raise TableError(f"{table.path}: no training run has a {value}{why}")
    return values


def spread(table: Table, value: str, count: int, without: Sequence[str] = ()) -> list[str]:
    """Mechanisms at even distances of the ranking, the best first, the worst last.

    @throws TableError  where the table has fewer that were trained to the end with all seeds.
    """
    values = minimised(table, value)
    whole = np.isfinite(values).any(axis=1) & ~_failed(table) & ~_having(table.mechanisms, without)
    if not 2 <= count <= whole.sum():
        raise TableError(f"--spread {count}, must be in [2, {whole.sum()}]: the mechanisms of {table.path} without a "
                         f"failure{_except(without)}")
    order = np.flatnonzero(whole)[np.argsort(np.nanmean(values[whole], axis=1), kind="stable")]
    return [table.mechanisms[row] for row in order[np.linspace(0, len(order) - 1, count).round().astype(int)]]


def _labels(first: Table, second: Table) -> list[str]:
    """Names to call the two by: their own, else their files'."""
    paths = [first.path, second.path]
    for names in ([table.facts.get("name") for table in (first, second)],
                  [pathlib.Path(path).stem for path in paths]):
        if all(names) and names[0] != names[1]:
            return names
    return paths


def _shared(a: np.ndarray, b: np.ndarray) -> int:
    return len({*a.tolist()} & {*b.tolist()})


def _ordered_alike(a: np.ndarray, b: np.ndarray) -> float:
    """Share of the pairs without ties that both order alike."""
    upper = np.triu_indices(len(a), 1)
    signs = (np.sign(np.subtract.outer(a, a)) * np.sign(np.subtract.outer(b, b)))[upper]
    return float((signs > 0).sum() / max((signs != 0).sum(), 1))


def _interval(interval: Interval | None, form=lambda value: f"{value:.2f}") -> str:
    if interval is None or np.isnan(interval.point):
        return "not known"
    text = form(interval.point)
    return (text if np.isnan(interval.low) else
            f"{text} [{form(interval.low)}, {form(interval.high)}]").replace("-", "\u2212")


def _whole(value: float) -> str:
    return f"{value:.0f}"


def guidance(found: Transfer) -> str:
    """In a sentence: may one setting guide a search on the other?"""
    a, b = (side.label for side in found.sides)
    words = [_guides(found, guide) for guide in (0, 1)]
    alike = (f"{100 * found.alike:.0f} % of all pairs of mechanisms are ordered alike (Kendall's tau "
             f"{found.tau})")
    shared = (f"of the {found.top} best of either {found.overlap.point} are shared, "
              f"{'more' if found.shares else 'not clearly more'} than chance gives "
              f"({found.chance:.1f})")
    halves = "; ".join(f"in the better half of {side.label} tau is {tau}"
                       for side, tau in zip(found.sides, found.better_half) if tau)
    facts = "; ".join(filter(None, [alike, halves, shared])) + "."
    if words[0] == words[1]:
        return f"{a} {words[0].format(b)}, and the other way round: {facts}"
    return f"{a} {words[0].format(b)}; {b} {words[1].format(a)}: {facts}"


def _guides(found: Transfer, guide: int) -> str:
    """What may be said of one setting as a guide to the other, {}."""
    sign, seeds = found.tau.sign, found.tau_of_seeds
    if sign == 0 or not min(sign * seeds.low, sign * seeds.high) > 0:  # NaN: the noise is not known
        return "does not guide a search on {} beyond noise"
    if sign < 0:
        return "misleads a search on {} beyond noise"
    half = found.better_half[guide]
    if found.shares or half is not None and half.sign > 0:
        return "may guide a search on {}"
    return "may say what a search on {} can leave out, but not beyond noise what is best there"


def verdict(common: Matched, found: Transfer) -> list[str]:
    """The findings in sentences, what matters first."""
    a, b = found.sides
    items = [guidance(found),
             f"Compared are {len(common.names)} mechanisms that {a.label} ({common.sizes[0]}, "
             f"{_seeds(a)}) and {b.label} ({common.sizes[1]}, {_seeds(b)}) both have, by the mean "
             f"{common.value} of their seeds" + (f"; left out are {common.rest}." if common.rest else ".")]
    if found.families is not None:
        items[-1] += (f" Those of equal {' and '.join(FAMILY)} are one family, and intervals over families "
                      "are for other families like these.")
    if found.ceiling is not None:
        corrected = found.corrected
        items.append(
            f"Two halves of its own seeds agree by tau {_interval(a.halves[0])} in {a.label} and "
            f"{_interval(b.halves[0])} in {b.label}. With noise like that, settings that rank alike "
            f"would show tau {found.ceiling:.2f}; " + (
                f"corrected for it, tau is {_interval(corrected)}." if corrected else
                f"tau is not corrected for it, since noise is more than half of what "
                f"{_listed_sides(found)} measured."))
    for side, other, chosen in ((a, b, found.chosen[0]), (b, a, found.chosen[1])):
        items.append(
            f"The best of {side.label}, {common.briefs[chosen.row]}, has place "
            f"{_interval(chosen.place, _whole)} of {len(common.names)} in {other.label}, "
            f"{digits(chosen.loss)} in {common.value} behind the best there.")
    single = [side.label for side in (a, b) if not side.repeated]
    if single:
        items.append(f"Not every mechanism of {listed(single)} has two seeds: how far other seeds "
                     "would rank otherwise is not known.")
    tied = [side.label for side in (a, b)
            if side.mean[side.order[found.top - 1]] == side.mean[side.order[found.top]]]
    if tied:
        items.append(f"In {listed(tied)} mechanisms of equal mean stand on both sides of place "
                     f"{found.top}: which of them count as best is arbitrary.")
    if common.failed:
        items.append(f"Left out, since a training run failed in one of the two: "
                     f"{listed(common.failed)}.")
    return items


def _seeds(side: Side) -> str:
    low, high = side.seeds.min(), side.seeds.max()
    return f"{counted(low, 'seed')} each" if low == high else f"{low} to {high} seeds"


def _listed_sides(found: Transfer) -> str:
    return listed([side.label for side, share in zip(found.sides, found.reliability)
                   if share < RELIABLE])


def numbers(found: Transfer) -> Chapter:
    """The table of measures, with what each interval leaves out."""
    a, b = (side.label for side in found.sides)
    halves = [side.halves[0] if side.halves else None for side in found.sides]
    clustered = found.families is not None
    over = ", interval over families" if clustered else ""
    p_of_shared = f"as many or more with {p_value(found.overlap_p)}"
    if clustered:
        p_of_shared += f" (over families {p_value(found.overlap_families_p)})"
    rows = [
        *([["tau, interval over families", str(found.tau)]] if clustered else []),
        ["tau, interval over mechanisms", found.tau.over_mechanisms],
        *([["tau of the means of families", str(found.between or "not known")],
           ["tau within a family, mean over families", _interval(found.within)]] if clustered else []),
        ["tau, interval over seeds", _interval(found.tau_of_seeds)],
        [f"tau of two halves of the seeds of {a}", _interval(halves[0])],
        [f"tau of two halves of the seeds of {b}", _interval(halves[1])],
        ["tau to expect where both rank alike",
         "not known" if found.ceiling is None else f"{found.ceiling:.2f}"],
        [f"tau, corrected for noise{over}", _interval(found.corrected)],
        *itertools.chain.from_iterable(
            _rows_of_half(f"tau in the better half of {label}", half, clustered)
            for label, half in zip((a, b), found.better_half)),
        [f"of the {found.top} best of either, shared", _interval(found.overlap, _whole)],
        ["the same by chance", f"{found.chance:.2f}, {p_of_shared}"],
        [f"place in {b} of the best of {a}", _interval(found.chosen[0].place, _whole)],
        [f"place in {a} of the best of {b}", _interval(found.chosen[1].place, _whole)]]
    return Chapter("numbers", "In numbers", [Columns(["", "value [95 %]"], rows), Bullets([
        "Intervals are of 95 %, each for itself. p is that of a permutation test; for few mechanisms "
        "it is exact, and intervals over mechanisms are wide.",
        *(_notes_on_families(found) if clustered else []),
        "Over mechanisms: for other mechanisms like these, each with as many seeds; so are those of "
        "halves of seeds. Here and in p they count as independent, though they share options, so that "
        "both are too sure.",
        "Over seeds: for these very mechanisms with as many other seeds, redrawn within each; it "
        "says nothing of other mechanisms. Intervals of counts and places are of this kind. Either "
        "kind leaves out what one seed does to many mechanisms alike.",
        "Halves have half of the seeds and agree less than all of them would; the tau to expect "
        "counts with all.",
        "The correction is a hint: it holds for jointly normal values, and takes the reliabilities, "
        "which are estimates, as known.",
        "The better half is chosen by the mean of one setting, noise included."])])


def _rows_of_half(what: str, half: Tau | None, clustered: bool) -> list[list[str]]:
    if not clustered or half is None:
        return [[what, str(half or "not known")]]
    return [[f"{what}, interval over families", str(half)],
            [f"{what}, interval over mechanisms", half.over_mechanisms]]


def _notes_on_families(found: Transfer) -> list[str]:
    return [
        f"Over families, mechanisms of equal {' and '.join(FAMILY)}: for other families like the "
        f"{found.tau.families} here. The verdict goes by it. It is, as that over mechanisms, Student's of "
        "the jackknife on the scale of Fisher's z; this one leaves out a family at a time and has one "
        f"degree of freedom fewer than families. Below {FEWEST_FAMILIES} families there is none. Families "
        "that share one of their two options count as independent, so that it is still rather too sure.",
        "p over families of the number shared is that of a t test of what each family adds to it beyond "
        "chance, or p over mechanisms where that is larger."]


def ranks(common: Matched, found: Transfer) -> Chapter:
    """A picture of all mechanisms, and the best ones by name."""
    a, b = found.sides
    best = [{*side.order[:found.top].tolist()} for side in found.sides]
    styles = [(f"best {found.top} of both", "c2"), (f"of {a.label}", "c0"), (f"of {b.label}", "c1")]

    def style(row: int) -> str:
        return {(True, True): "c2", (True, False): "c0", (False, True): "c1"}.get(
            (row in best[0], row in best[1]), "other")

    dots = [figures.Dot(float(a.rank[i]), float(b.rank[i]), style(i), tip(
        common.briefs[i], *(f"{side.label}: place {side.rank[i]}, {common.value} "
                           f"{digits(common.natural(side.mean[i]))}" for side in found.sides)))
            for i in range(len(common.names))]
    picture = figures.scatter(
        "Ranks in both", f"A dot for each mechanism, by its mean {common.value}; place 1 is the "
        f"best. Ranks that transfer lie on the diagonal.", f"place in {a.label}",
        f"place in {b.label}", dots, styles, (0.0, len(common.names) + 1.0))
    shown = sorted(best[0] | best[1], key=lambda i: a.rank[i] + b.rank[i])
    rows = [[common.briefs[i], *itertools.chain.from_iterable(
        (str(side.rank[i]), digits(common.natural(side.mean[i]))) for side in found.sides)]
            for i in shown]
    return Chapter("ranks", "Mechanism by mechanism", [
        Pictures({"ranks.svg": picture}),
        Paragraph(f"The {found.top} best of either:"),
        Columns(["mechanism", f"place in {a.label}", common.value, f"place in {b.label}",
                 common.value], rows)])


def making(tables_read: Sequence[Table], common: Matched, command: str) -> Chapter:
    """What all this was made from, and how to make it again."""
    items = []
    for table in tables_read:
        facts = [f"{key} {table.facts[key]}" for key in ("corpus", "semantics", "numerical_mode",
                                                         "run_seed") if key in table.facts]
        items.append(", ".join([table.path, f"{int(table.steps[-1])} steps", *facts,
                                *([f"SHA-256 {table.sha256}"] if table.sha256 else [])]))
    if common.rest:
        items.append(f"left out: {common.rest}")
    return Chapter("making", "How this was made", [Bullets(items), Code(command)])


def summary(found: Transfer) -> str:
    """transfer.csv: a row for each number, unrounded."""
    nothing = Interval(np.nan, np.nan, np.nan)
    halves = [side.halves[0] if side.halves else nothing for side in found.sides]
    reliability = found.reliability or (np.nan, np.nan)
    halves_of = [tau.interval if tau else nothing for tau in found.better_half]
    families_of_halves = [tau.of_families if tau else nothing for tau in found.better_half]
    rows = {
        "mechanisms": found.size, "families": found.tau.families,
        "tau_families": found.tau.of_families, "tau_mechanisms": found.tau.interval, "tau_p": found.tau.p,
        "tau_between_families": found.between and found.between.interval,
        "tau_between_families_p": found.between and found.between.p, "tau_within_families": found.within,
        "tau_seeds": found.tau_of_seeds, "tau_corrected": found.corrected,
        "tau_ceiling": found.ceiling, "ordered_alike": found.alike,
        "halves_a": halves[0], "halves_b": halves[1], "reliability_a": reliability[0],
        "reliability_b": reliability[1], "better_half_a": halves_of[0],
        "better_half_b": halves_of[1], "better_half_families_a": families_of_halves[0],
        "better_half_families_b": families_of_halves[1], "top": found.top, "overlap": found.overlap,
        "overlap_chance": found.chance, "overlap_p": found.overlap_p,
        "overlap_families_p": found.overlap_families_p,
        "best_of_a_in_b": found.chosen[0].place, "best_of_b_in_a": found.chosen[1].place,
        "loss_of_best_of_a_in_b": found.chosen[0].loss,
        "loss_of_best_of_b_in_a": found.chosen[1].loss}
    filled = {name: Interval(value, np.nan, np.nan) if isinstance(value, (int, float)) else
              value or nothing for name, value in rows.items()}
    return csv_text(["name", "value", "low", "high"],
                    ([name, *map(_short, value)] for name, value in filled.items()))


def of_mechanisms(common: Matched) -> str:
    """mechanisms.csv: a row for each mechanism; `a` and `b` as on the command line."""
    columns = [(common.natural(side.mean), side.seeds, side.rank) for side in common.sides]
    return csv_text(["mechanism", *(f"{side}_{what}" for side in "ab" for what in
                                    (common.value, "seeds", "place"))],
                    ([name, *(_short(values[i]) for side in columns for values in side)]
                     for i, name in enumerate(common.names)))


def _short(value: float) -> float:
    """Counts without decimals."""
    return int(value) if np.isfinite(value) and value == int(value) else float(value)


def _load(text: str) -> Table:
    return tables.load([text] if os.path.exists(text) else text.split(","))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="transfer.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="A")
    parser.add_argument("second", metavar="B", nargs="?")
    parser.add_argument("--spread", type=positive, metavar="N",
                        help="name mechanisms from all over the ranking of A instead")
    parser.add_argument("--value", default="nll", choices=["nll", "accuracy", "test_nll"],
                        help="by which mechanisms are ranked; nll and accuracy are those of the "
                        "validation split (default: %(default)s)")
    parser.add_argument("--top", type=positive, default=10, metavar="K",
                        help="how many count as best, at most half of the mechanisms "
                        "(default: %(default)s)")
    parser.add_argument("--without", action="append", default=[], metavar="OPTION",
                        help="leave out mechanisms with this option in their name, as additive is; may "
                        "be given several times")
    parser.add_argument("-o", "--output", default="transfer", metavar="FOLDER")
    options = parser.parse_args(arguments)
    without = [*dict.fromkeys(options.without)]
    if (options.second is None) == (options.spread is None):
        parser.error("two settings must be given, or one and --spread")
    if options.spread:
        print("\n".join(spread(_load(options.first), options.value, options.spread, without)))
        return
    read = [_load(text) for text in (options.first, options.second)]
    common = matched(*read, options.value, without)
    found = Transfer(common.sides, options.top, families=common.families)
    sentences = verdict(common, found)
    page = Report(" and ".join(side.label for side in found.sides)
                  + (f", without {' or '.join(without)}" if without else "") + ": do ranks transfer?", [
        Chapter("verdict", "Verdict", [Bullets(sentences)]), numbers(found),
        ranks(common, found),
        making(read, common, f"analysis/transfer.py {shlex.join(arguments)}")])
    written = page.write(pathlib.Path(options.output), "transfer",
                         {"transfer.csv": summary(found), "mechanisms.csv": of_mechanisms(common)})
    width = min(shutil.get_terminal_size().columns, 100)
    for sentence in sentences:
        print(textwrap.fill(sentence.replace(" %", "\u00a0%"), width, break_long_words=False,
                            break_on_hyphens=False))
    print(written)
