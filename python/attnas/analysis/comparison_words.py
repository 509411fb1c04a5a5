"""How the numbers of a comparison are named and shown."""

import numpy as np

from . import comparison, figures, statistics
from .comparison import ALPHA, MEANINGFUL, Algorithm, Comparison
from .words import digits


class Words:
    """How the numbers of a comparison are named and shown."""

    def __init__(self, result: Comparison, shown: list[str]):
        self.result = result
        self.units = (
            "draws" if result.searches.draws else "replicates" if result.noises else "searches")
        self.spent = "trainings" if result.searches.by == "trainings" else "trainings' steps"
        goal = result.searches.objectives[0]
        self.goal = goal
        if result.several:
            self.gap = "true hypervolume" if result.true else "hypervolume"
            self.believed = "believed hypervolume"
            self.whole = ("of the front that a search returns, 1 = the whole true front"
                          if result.true else "1 = the front of all searches together")
        else:
            self.gap = (f"regret in {goal.quantity}" if result.true
                        else f"{goal.quantity} {'below' if goal.maximise else 'above'} the best "
                             f"seen")
            self.believed = f"believed {goal.quantity}"
            self.whole = ("true value of what a search returns minus the best in the table"
                          if result.true else "the best of any search minus the best measured "
                                              "value" if goal.maximise
                          else "best measured value minus the best of any search")
        self.reference = (None if result.reference is None
                          else result.algorithms[result.reference].name)
        self.shown = shown
        self.styles = styles([algorithm.name for algorithm in result.algorithms],
                              self.reference, shown)

    def quality(self, gap):
        """A gap as it is shown: several objectives show the hypervolume reached."""
        return 1.0 - gap if self.result.several else gap

    def interval(self, gap: statistics.Interval) -> statistics.Interval:
        """The same of an interval."""
        ends = sorted((self.quality(gap.low), self.quality(gap.high)))
        return statistics.Interval(self.quality(gap.point), *ends)

    def value(self, believed):
        """A believed or true value of an incumbent in the objective's own sense."""
        return believed if self.result.several else self.goal.natural(believed)

    def unseen(self, values):
        """Traces' `end_unseen` as they are shown."""
        return self.quality(values) if self.result.several else self.goal.natural(values)

    def verdict(self, i: int, j: int) -> str:
        """Algorithm i against j, in words."""
        pairs = self.result.pairs
        probability = pairs.probability[i, j]
        if np.isnan(pairs.p[i, j]):
            return "one search: no test"
        if pairs.p[i, j] > ALPHA or probability == 0.5:
            return NOT_DISTINGUISHED
        return _side(probability)

    def finding(self, interval: statistics.Interval | None) -> str:
        """The same of a probability of improvement by its interval."""
        if interval is None or np.isnan(interval.low):
            return ""
        return _side(interval.point) if interval.low > 0.5 or interval.high < 0.5 \
            else NOT_DISTINGUISHED


NOT_DISTINGUISHED = "not distinguished"


def _side(probability: float) -> str:
    side = "better" if probability > 0.5 else "worse"
    return f"meaningfully {side}" if max(probability, 1 - probability) >= MEANINGFUL else side


def styles(names: list[str], reference: str | None, shown: list[str]) -> dict[str, str]:
    """Colours for the named algorithms, the best ones and the last; the others stay grey."""
    others = [name for name in names if name != reference]
    wanted = [*others[:1], *shown, *others[1:3], *others[-1:], *others[3:]]
    chosen = [name for name in dict.fromkeys(wanted) if name != reference]
    styles = dict.fromkeys(names, "other")
    for i, name in enumerate(chosen[:figures.NUM_COLOURS]):
        styles[name] = f"c{i}"
    if reference:
        styles[reference] = "reference"
    return styles


def bracketed(interval) -> str:
    """ "0.5 [0.4, 0.6]", without brackets where no bounds are known."""
    point, low, high = map(digits, interval)
    return f"{point} [{low}, {high}]" if np.isfinite(interval[1]) else point


def share_text(value: float) -> str:
    return f"{100 * value:.0f} %"


def is_certain(result: Comparison) -> bool:
    return result.met_best >= comparison.CERTAIN


def knows_unseen(result: Comparison) -> bool:
    return any(np.isfinite(algorithm.each("end_unseen")).any() for algorithm in result.algorithms)


def unseen_mean(algorithm: Algorithm, words: Words) -> tuple[float, int]:
    """Mean of what was returned by what the searches have not seen, and of how many."""
    values = algorithm.each("end_unseen")
    values = words.unseen(values[np.isfinite(values)])
    return float(values.mean()) if len(values) else np.nan, len(values)


def unseen_improvement(result: Comparison, i: int) -> statistics.Interval:
    """Of an algorithm over the reference there; with the table's noise where that is known."""
    found = result.against.unseen[i] if result.against else None
    return found or result.improvement(i, "end_unseen")


def improvement(result: Comparison, i: int) -> statistics.Interval:
    """Of algorithm i over the reference, with the table's noise where that is known."""
    found = result.against.returned[i] if result.against else None
    pairs, j = result.pairs, result.reference
    return found or statistics.Interval(pairs.probability[i, j], pairs.low[i, j], pairs.high[i, j])
