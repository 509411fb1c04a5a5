"""Whether ranks of mechanisms hold in another setting: agreement, its interval, and what is chosen
by it.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from . import statistics
from .statistics import Interval
from .tables import MISSING, Table, TableError
from .words import counted, listed, p_value

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
        """(redraws, n) means with as much noise of other seeds on top of their own: the residuals
        of a mechanism's n seeds are drawn n times with replacement and scaled by sqrt(n / (n - 1)),
        which gives their mean its variance."""
        drawn = np.tile(self.mean, (redraws, 1))
        for i, n in enumerate(self.seeds):
            own = self.values[i][np.isfinite(self.values[i])] - self.mean[i]
            drawn[:, i] += np.sqrt(n / (n - 1)) * generator.choice(own, (redraws, n)).mean(axis=1)
        return drawn

    @functools.cached_property
    def halves(self) -> tuple[Interval, float] | None:
        """How alike two halves of the seeds rank the mechanisms: Kendall's tau, mean over the
        divisions; and the reliability of the means of all seeds, the share of their variance that
        is none of noise. None where fewer than four mechanisms have seeds in both halves, or all
        are equal there."""
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
    """Kendall's rank correlation of two settings: its interval over mechanisms, p of the
    permutation test that their orders are unrelated, which is exact for few mechanisms, and the
    interval over families, which is without bounds for few families and None where mechanisms have
    none."""

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
        return f"{bracketed(self.interval)}, {p_value(self.p)}"

    def __str__(self) -> str:
        if self.of_families is None:
            return self.over_mechanisms
        text = f"{bracketed(self.of_families)} over {counted(self.families, 'family', 'families')}"
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
        """Redraws have the noise of the means twice: they lend their spread, on the scale of
        Fisher's z, to an interval around tau."""
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
        """p that families share no more of the best than chance gives, by a one-sided t test of
        what each adds to the number shared beyond chance: of n mechanisms

            sum of (A - k / n) (B - k / n) = shared - k^2 / n

        A and B are 1 for the k best of either. At least that of a sign test, since families that
        all add the same leave no doubt to t, and that over mechanisms: being alike is no further
        evidence."""
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
        """Mean over families of tau among the mechanisms of one, with Student's interval over
        families; those of fewer than FEWEST mechanisms, or of which all are equal on a side, are
        left out."""
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
        correlation that tau has for normal values; reliabilities count as known. None where noise
        is not known, or most of what a side measured."""
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
            f"both{_except(without)}, must be at least {FEWEST}; of {sizes[0]} and {sizes[1]}, "
            f"named like {first.mechanisms[0]} and {second.mechanisms[0]}")
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
        raise TableError(f"--spread {count}, must be in [2, {whole.sum()}]: the mechanisms of "
                         f"{table.path} without a failure{_except(without)}")
    order = np.flatnonzero(whole)[np.argsort(np.nanmean(values[whole], axis=1), kind="stable")]
    return [
        table.mechanisms[row]
        for row in order[np.linspace(0,
                                     len(order) - 1, count).round().astype(int)]
    ]


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


def bracketed(interval: Interval | None, form=lambda value: f"{value:.2f}") -> str:
    if interval is None or np.isnan(interval.point):
        return "not known"
    text = form(interval.point)
    return (text if np.isnan(interval.low) else
            f"{text} [{form(interval.low)}, {form(interval.high)}]").replace("-", "\u2212")
