"""What the components of a table's mechanisms are worth: its winners, each with one component
replaced, and its noise.
"""

import dataclasses

import numpy as np

from . import factorial, noise, statistics
from .digest import limits
from .factorial import Factorial
from .objectives import Objective, objective
from .tables import Table, TableError
from .words import joined

ALPHA = 0.05
WINNERS = 5
UNEVEN = 0.3  # rank correlation of noise and value from which on a reader is warned
DROPOUT = "attention_dropout"  # of which tables have one value
MOST_LISTED = 2000  # combinations of which it is said which ones are missing


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A mechanism with one component replaced by the baseline's."""

    gene: str
    option: str  # of the baseline
    difference: statistics.Interval | None  # how much worse; None: that was not recorded


@dataclasses.dataclass(frozen=True)
class Winner:
    """One of the best mechanisms, by the mean over its replicates."""

    row: int
    mean: float  # minimised
    against: statistics.Interval | None  # the baseline's value minus its own, seeds paired
    ablations: list[Ablation]


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of the way from the baseline to a winner."""

    gene: str
    option: str
    mean: float  # minimised
    gain: statistics.Interval  # over the step before


class Study:
    """Everything that is found out, before words are made of it."""

    def __init__(self, table: Table, goal: Objective, baseline: str | None):
        self.table, self.goal = table, goal
        self.left_out = ""
        rows = self._rows()
        self.names = [table.mechanisms[i] for i in rows]
        self.briefs = [table.brief(name) for name in self.names]
        self.values = goal.minimised[rows]
        self.rows = rows
        genes = table.genes.iloc[rows]
        numbers = [gene for gene in genes.columns if table.schema.is_number(gene)]
        self.factorial = Factorial(genes.drop(columns=numbers), table.schema)
        self.options = [dict(zip(genes.columns, row)) for row in genes.itertuples(index=False)]
        if len(rows) < 2 or not self.factorial.options:
            raise TableError(f"{table.path}: {len(rows)} of {len(table.mechanisms)} mechanisms "
                             f"have a {goal.title}, and these differ in no gene of a space")
        self.estimate = factorial.means(self.values)
        # Further seeds are those of the best mechanisms. What is said over all of them is of the
        # seeds that these have in common.
        common = noise.common_seeds(self.values)
        self.common = common if np.isfinite(self.values[:, common]).any(
            axis=1).all() else np.full_like(common, True)
        self.balanced = factorial.means(self.values[:, self.common])
        self.exact = self.factorial.complete
        self.effects = (factorial.decompose(self.factorial, self.balanced) if self.exact else [])
        self.numbers = [gene for gene in numbers if genes[gene].nunique() > 1]  # that vary
        self.squares = None if self.exact else factorial.least_squares(
            self.factorial, self.balanced.mean,
            {gene: genes[gene].astype(float).to_numpy() for gene in self.numbers})
        self.baseline = self._baseline(baseline)
        self.winners = self._winners()
        self.path, self.path_note = self._path()
        self.held_out = self._held_out()
        self.noise = noise.noise(self.values, goal.maximise)
        self.rungs = self._ladder()
        self.splits = self._splits()

    def _rows(self) -> np.ndarray:
        """The mechanisms that are analysed: those of the most frequent attention dropout where they
        are all combinations, otherwise all."""
        rows = np.flatnonzero(np.isfinite(self.goal.values).any(axis=1))
        if DROPOUT not in self.table.genes or any(
                self.table.schema.is_number(gene) for gene in set(self.table.genes) - {DROPOUT}):
            return rows
        dropouts = self.table.genes[DROPOUT].iloc[rows]
        if dropouts.nunique() < 2:
            return rows
        usual = dropouts.mode()[0]
        chosen = rows[(dropouts == usual).to_numpy()]
        if not Factorial(self.table.genes.iloc[chosen].drop(columns=DROPOUT),
                         self.table.schema).complete:
            return rows
        self.left_out = (f"{len(rows) - len(chosen)} mechanisms with another attention dropout "
                         f"than {usual} are left out.")
        return chosen

    def _baseline(self, name: str | None) -> int | None:
        if name is not None:
            if name not in self.names:
                raise TableError(f"--baseline {name}: not among the {len(self.names)} mechanisms "
                                 f"of {self.table.path}; their names are like {self.names[0]}")
            return self.names.index(name)
        vanilla = self.table.vanilla(self.names)
        return None if vanilla is None else self.names.index(vanilla)

    def paired(self, worse: int, better: int) -> statistics.Interval:
        """Mean over common seeds of the difference of two mechanisms, with Student's interval."""
        differences = self.values[worse] - self.values[better]
        differences = differences[np.isfinite(differences)]
        if not len(differences):
            point = float(self.estimate.mean[worse] - self.estimate.mean[better])
            return statistics.Interval(point, np.nan, np.nan)
        return self._gain(differences)

    def _gain(self, differences) -> statistics.Interval:
        """Their mean, and of what is rounding nothing."""
        if len(differences) < 2:
            return statistics.mean_interval(differences)
        return statistics.paired_test(np.asarray(differences),
                                      statistics.rounding(self.values[np.isfinite(self.values)]))[0]

    def _winners(self) -> list[Winner]:
        best = np.argsort(self.estimate.mean, kind="stable")[:WINNERS]
        return [Winner(int(row), float(self.estimate.mean[row]),
                       None if self.baseline in (None, row) else self.paired(self.baseline, row),
                       self._ablations(int(row))) for row in best]

    def _ablations(self, row: int) -> list[Ablation]:
        if self.baseline is None:
            return []
        own, plain = self.options[row], self.options[self.baseline]
        whole = _filled(own, plain)  # as far as leaving one out lets others have an effect
        ablations = []
        for gene in self.factorial.options:
            if own[gene] == plain[gene] or None in (own[gene], plain[gene]):
                continue
            other = self.factorial.find({**whole, gene: plain[gene]})
            ablations.append(Ablation(gene, plain[gene],
                                      None if other is None else self.paired(other, row)))
        return ablations

    def _path(self) -> tuple[list[Step], str]:
        """From the baseline to the best mechanism, at each step the component that helps most."""
        if self.baseline is None or self.winners[0].row == self.baseline:
            return [], ""
        goal = self.options[self.winners[0].row]
        now = _filled(self.options[self.baseline], goal)
        at, path = self.baseline, []
        while True:
            reachable = {gene: self.factorial.find({**now, gene: goal[gene]})
                         for gene in self.factorial.options if goal[gene] not in (None, now[gene])}
            known = {gene: row for gene, row in reachable.items() if row is not None}
            if not known:
                left = sorted(reachable)
                return path, (f"The way ends here: no mechanism was recorded with "
                              f"{joined(left)} changed." if left else "")
            gene = min(known, key=lambda gene: self.estimate.mean[known[gene]])
            row = known[gene]
            if row != at:
                path.append(Step(gene, goal[gene], float(self.estimate.mean[row]),
                                 self.paired(at, row)))
            now[gene], at = goal[gene], row

    def _held_out(self) -> statistics.Interval | None:
        """What the best of all but one common seed gains over the baseline in the seed left out."""
        values = self.values[:, self.common]
        if self.baseline is None or values.shape[1] < 2:
            return None
        gains = []
        for seed in range(values.shape[1]):
            others = np.delete(values, seed, axis=1)
            there = np.isfinite(values[:, seed]) & np.isfinite(others).all(axis=1)
            if not there[self.baseline]:
                return None
            candidates = np.flatnonzero(there)
            best = candidates[others[candidates].mean(axis=1).argmin()]
            gains.append(values[self.baseline, seed] - values[best, seed])
        return self._gain(gains)

    def _ladder(self) -> list[noise.Rung]:
        if self.goal.name not in ("perplexity", "nll", "accuracy"):
            return []
        curve = (-self.table.valid_accuracy if self.goal.name == "accuracy"
                 else self.table.valid_nll)
        return noise.ladder(self.table.steps, curve[self.rows],
                            self.table.curve_seconds[self.rows], self.values)

    def _splits(self) -> noise.Splits | None:
        try:
            sides = [objective(self.table, self.goal.name, side).minimised[self.rows]
                     for side in ("valid", "test")]
        except TableError:
            return None
        return noise.splits(*sides) if sides[0].shape == sides[1].shape else None

    def option_mean(self, gene: str, option: str) -> statistics.Interval:
        """Mean of an option, the other genes averaged, in the objective's own sense."""
        if self.exact:
            weights = self.factorial.shares_of({gene: option})
            per_seed = weights @ (self.balanced.mean[:, None] + self.balanced.noise)
            interval = statistics.mean_interval(per_seed)
        else:
            interval = self.squares.option_means[gene, option]
        ends = sorted(self.goal.natural(end) for end in interval[1:])
        return statistics.Interval(self.goal.natural(interval.point),
                                   *ends).within(*limits(self.goal.name))


def _filled(options: dict, others: dict) -> dict:
    """Options, and of genes that are not applicable those of others."""
    return {gene: others[gene] if option is None else option for gene, option in options.items()}
