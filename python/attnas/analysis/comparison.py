"""What repeated searches say about the algorithms that made them: numbers only, no text, no ink.

The unit is one complete search. Ground truth, where the stores hold it, judges: a table's mean over
all replicates, among them the one that answered the search.

An algorithm is judged by what its searches return, as their own records let them believe
(belief.py): with one objective the candidate believed best, with several the believed front; as
src/table/outcome.hpp does for the closing table of nas-compare. The gap of a search, minimised,
0 = nothing better exists:
  one objective       true value of the candidate - best true value of any (regret);
  several objectives  1 - hypervolume of the front's true values / hypervolume of the true front.
The same "of everything evaluated" is what someone who knows the truth would pick out of a search's
candidates: never what a search gives, and kept apart by that name.
A search whose every answer was a failure returns a failure: its penalty, or no hypervolume.
Without ground truth what was measured takes its place, and the best that any search has measured
within the budget that of the optimum.

Where a table answers in the mode `paired`, all searches that one of its replicates answers meet the
same noise: then these replicates, few as they are, are the units of all intervals and tests. Where
draws of a table answer in turn (Searches.draws), these are the units.
"""

import dataclasses
import re

import numpy as np

from . import anytime, attainment, indicators, noise, replay, statistics, stores
from .judging import Trace, judge_of

QUARTILES = (0.25, 0.5, 0.75)
NUM_TARGETS = 51
# Targets of the expected running times: the gap that is left, as a share of the start's.
ERT_SHARES = (0.5, 0.1, 0.01)
MEANINGFUL = 0.75  # probability of improvement (Bouthillier et al. 2021)
ALPHA = 0.05
BEST = 16  # mechanisms that are called the best
CERTAIN = 0.95  # probability that is called certainty
MOST_BUDGETS = 200  # points of a curve


@dataclasses.dataclass(frozen=True)
class Curve:
    """Quartiles over searches at common budgets; inf where too few searches have a value yet."""

    x: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """All searches of one algorithm, by seed."""

    name: str
    traces: list[Trace]
    final: np.ndarray  # gap of each search at the end of the budget
    iqm: statistics.Interval  # of `final`; NaN bounds for a single search
    everything: statistics.Interval  # the same of everything evaluated; NaN without ground truth
    curves: dict[tuple[str, str], Curve]  # ("trained" | "seconds", "gap" | "believed")
    ecdf: np.ndarray  # share of (search, target) pairs, over Comparison.trainings
    running_times: np.ndarray  # expected training runs to the three targets; inf = never
    successes: np.ndarray  # share of searches that reach them
    # of each trace its draw, or in the mode `paired` the replicate that answers first; else None
    noise: np.ndarray | None

    @property
    def seeds(self) -> list[int]:
        """In the order of the traces."""
        return [trace.seed for trace in self.traces]

    def units(self, values: np.ndarray) -> np.ndarray:
        """Of an entry for each search one for each unit of intervals and tests: means over the
        searches of a draw or a replicate, or themselves."""
        if self.noise is None:
            return values
        return np.array([values[self.noise == one].mean(axis=0) for one in np.unique(self.noise)])

    def each(self, name: str) -> np.ndarray:
        """A field of all traces: "end_believed", "repeated", ..."""
        return np.array([getattr(trace, name) for trace in self.traces])

    @property
    def trainings(self) -> np.ndarray:
        """Training runs, or their steps, that each search spent."""
        return np.array([trace.trained[-1] for trace in self.traces])


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Every algorithm against every other, (k, k): entry [i, j] is i against j."""

    probability: np.ndarray  # that i is better than j, A12; with its 95 % interval
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray  # Holm-adjusted over all pairs; 1 on the diagonal; nan with one search each
    tests: set[str]  # names of the tests used


@dataclasses.dataclass(frozen=True)
class Against:
    """Every algorithm against the reference: probabilities of improvement, an entry each, with 95 %
    intervals that hold the table's own noise beside that of the searches; None for the reference.

    A table's truth is a mean of few training runs. Its replicates are drawn again within each
    mechanism (`replay.redrawn_means`) and what the recorded searches returned is judged anew.
    What that leaves out: on another table searches would have seen, and chosen, something else;
    replicates of different mechanisms count as independent; it is one task and one space.
    """

    # IQM of what is returned behind what this table calls the best; of the reference, too
    gaps: list[statistics.Interval]
    returned: list[statistics.Interval | None]
    unseen: list[statistics.Interval | None]  # by the replicates that a search has not seen


@dataclasses.dataclass(frozen=True)
class OverDraws:
    """An algorithm against the reference on draws of the table's seeds: P(better) within a draw, by
    replicates that its searches did not see. With 95 % intervals: of the mean over draws, and
    prediction intervals of another draw."""

    mean: statistics.Interval
    another: statistics.Interval  # what is true of it
    measured: statistics.Interval  # what as many searches as were made of each draw would say of it
    # share of held-out draws within `measured` as the other half of the draws gives it
    covered: float


@dataclasses.dataclass(frozen=True)
class Friedman:
    """Ranks over searches with common seeds."""

    statistic: float
    p: float
    mean_ranks: np.ndarray
    groups: list[list[int]]  # algorithms that are not distinguished
    units: int  # that were ranked: seeds, replicates or draws
    nemenyi: float  # critical difference, for comparability only


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Everything found. Algorithms are in order of the interquartile mean of their final gaps."""

    searches: stores.Searches
    budget: int
    reference: int | None  # number of the algorithm the others are compared with
    algorithms: list[Algorithm]
    trainings: np.ndarray  # budgets of the ECDF
    targets: np.ndarray  # gaps, the last one 0
    start: float  # median gap after the first ask (of the reference)
    pairs: Pairs
    friedman: Friedman | None  # None where algorithms have no common seeds
    against: Against | None  # None without a reference, or where the table's runs are not known
    # How well other replicates rank the best by one (noise.agreement_among_best); one objective.
    agreement: list[float]
    # of each algorithm, None of the reference; None without draws or reference
    over_draws: list[OverDraws | None] | None
    # Of what was returned on draws, the share of which a judge has seen nothing but other searches
    # have, and that of which it was all seen by the search itself (replay.Unseen); None without
    # draws.
    spared: tuple[float, float] | None

    @property
    def met_best(self) -> float:
        """Share of the reference's searches that have begun one of the best (BEST) mechanisms.
        Which these are is taken as exact.
        """
        best = _best(self.searches.candidates.truth, BEST)
        name = self.algorithms[self.reference].name
        return float(np.mean([
            np.isin(search.candidates, best).any() for search in self.searches.searches
            if search.algorithm == name]))

    @property
    def fruitless(self) -> dict[str, int]:
        """Searches without a usable answer, by algorithm; they return a failure."""
        names = [search.algorithm for search in self.searches.searches
                 if not np.isfinite(search.believed).all(axis=1).any()]
        return {name: names.count(name) for name in names}

    def improvement(self, i: int, of: str) -> statistics.Interval:
        """That algorithm i is better than the reference by a field of the traces, where both have
        one: "end_unseen", "everything". Over searches."""
        found = _improvement(self.algorithms[i], self.algorithms[self.reference],
                             lambda a: a.each(of))
        return found or statistics.Interval(np.nan, np.nan, np.nan)

    @property
    def noises(self) -> int:
        """Draws or replicates that are the units of intervals and tests; 0 where searches are."""
        found = [a.noise for a in self.algorithms if a.noise is not None]
        return len(np.unique(np.concatenate(found))) if found else 0

    @property
    def retested(self) -> bool:
        """Whether searches are runs with a re-test on fresh seeds."""
        return any(search.retested for search in self.searches.searches)

    @property
    def several(self) -> bool:
        """Whether there are several objectives."""
        return len(self.searches.objectives) > 1

    @property
    def true(self) -> bool:
        """Whether ground truth judges."""
        return self.searches.candidates.truth is not None

    def optimism(self, algorithm: Algorithm) -> np.ndarray:
        """How much better its result looked to each search than what it had to expect of it: the
        winner's luck. Positive: it looked too good. NaN without ground truth."""
        expected = algorithm.each("end_expected")
        expected = np.where(np.isnan(expected), algorithm.each("end_true"), expected)
        luck = expected - algorithm.each("end_believed")  # values are minimised, volumes are not
        return -luck if self.several else luck

    def mean_optimism(self, algorithm: Algorithm) -> statistics.Interval:
        """Its mean over the units of intervals and tests."""
        return statistics.mean_interval(algorithm.units(self.optimism(algorithm)))


def compare(searches: stores.Searches, budget: int, reference: str | None = None,
            resamples: int = 50_000) -> Comparison:
    """Compares the algorithms of searches at a budget of training runs.

    @param reference  name of the algorithm that the others are compared with; None = random
        search, or nothing if there is none.
    @param resamples  of the bootstrap.
    @throws StoreError  where a search asked for nothing within the budget, no search
        has a usable answer, or the reference is unknown.
    """
    searches = dataclasses.replace(searches, searches=[_cut(search, budget)
                                                       for search in searches.searches])
    if not any(np.isfinite(search.believed).any() for search in searches.searches):
        raise stores.StoreError("no search has a usable answer: all failed or were stopped early")
    by_name: dict[str, list[stores.Search]] = {}
    for search in searches.searches:
        by_name.setdefault(search.algorithm, []).append(search)
    names = list(by_name)
    reference_name = find(reference or "random_search", names, required=reference is not None)
    judge = judge_of(searches)
    traces = {name: sorted((judge(search) for search in group), key=lambda trace: trace.seed)
              for name, group in by_name.items()}

    first = traces[reference_name] if reference_name else sum(traces.values(), [])
    start = float(np.median([trace.gap[0] for trace in first]))
    targets = _targets(start, _smallest_gap(searches))
    trainings = _whole_budgets(budget)
    seconds = max(np.median([trace.seconds[-1] for trace in group]) for group in traces.values())
    grids = {"trained": trainings}
    if seconds > 0:
        grids["seconds"] = np.linspace(0, seconds, MOST_BUDGETS)
    finals = {name: np.array([trace.gap[-1] for trace in group]) for name, group in traces.items()}
    noises = {name: _noise(searches, group) for name, group in by_name.items()}
    means = _iqms(finals, noises, resamples)
    everything = {name: np.array([trace.everything for trace in group])
                  for name, group in traces.items()}
    if searches.candidates.truth is None:
        of_everything = dict.fromkeys(names, statistics.Interval(np.nan, np.nan, np.nan))
    else:
        of_everything = _iqms(everything, noises, resamples)
    order = sorted(names, key=lambda name: (float(means[name].point), finals[name].mean(), name))
    algorithms = []
    for name in order:
        hits = np.array([trace.hits(targets) for trace in traces[name]])
        times, successes = _running_times(traces[name], start)
        algorithms.append(Algorithm(
            name, traces[name], finals[name], means[name], of_everything[name],
            {(spent, what): _curve(traces[name], spent, what, grid)
             for spent, grid in grids.items() for what in ("gap", "believed")},
            anytime.ecdf(hits, trainings), times, successes, noises[name]))
    pairs = _pairs(algorithms, searches.draws is not None)
    place = order.index(reference_name) if reference_name else None
    return Comparison(searches, budget, place, algorithms, trainings, targets, start, pairs,
                      _friedman(algorithms, pairs), *_against(searches, algorithms, place),
                      _over_draws(searches, algorithms, place), _spared(searches, algorithms))


def _over_draws(searches: stores.Searches, algorithms: list[Algorithm],
                reference: int | None) -> list[OverDraws | None] | None:
    if searches.draws is None or reference is None:
        return None
    judged = [a.each("end_unseen") for a in algorithms]
    # the training runs behind the truth are not known
    if not all(np.isfinite(values).all() for values in judged):
        judged = [a.final for a in algorithms]
    return [None if i == reference else _against_on_draws(a, algorithms[reference], judged[i],
                                                          judged[reference])
            for i, a in enumerate(algorithms)]


def _against_on_draws(a: Algorithm, b: Algorithm, of_a: np.ndarray,
                      of_b: np.ndarray) -> OverDraws | None:
    """None where the two have no seed in common."""
    _, rows, columns = np.intersect1d(a.seeds, b.seeds, return_indices=True)
    if not len(rows):
        return None
    each, variances = statistics.improvement_by_group(of_a[rows], of_b[columns], a.noise[rows])
    mean = statistics.clustered_improvement(of_a[rows], of_b[columns], a.noise[rows],
                                            b.noise[columns])[0]
    return OverDraws(mean, *statistics.another_group(each, variances),
                     statistics.held_out_coverage(each))


def _spared(searches: stores.Searches, algorithms: list[Algorithm]) -> tuple[float, float] | None:
    unseen = replay.unseen(searches) if searches.draws else None
    if unseen is None:
        return None
    left = [unseen.left(trace.seed, one, seen) for a in algorithms for trace in a.traces
            for one, seen in zip(trace.chosen, trace.seen)]
    return left.count("others") / len(left), left.count("none") / len(left)


def _noise(searches: stores.Searches, of: list[stores.Search]) -> np.ndarray | None:
    """Algorithm.noise of an algorithm's searches, by seed."""
    if searches.draws is not None:
        return np.array([search.draw for search in sorted(of, key=lambda search: search.seed)])
    if any((source.table or {}).get("mode") != "paired" for source in searches.sources):
        return None
    return np.array([replay.replay_order(search.seed, "", search.replicates)[0]
                     for search in sorted(of, key=lambda search: search.seed)])


def _iqms(scores: dict[str, np.ndarray], noises: dict[str, np.ndarray | None],
          resamples: int) -> dict[str, statistics.Interval]:
    """Interquartile means of gaps by algorithm; NaN bounds for a single search."""
    found = {}
    apart = {name: each for name, each in scores.items() if noises[name] is None}
    if apart:
        found = statistics.stratified_bootstrap(apart, statistics.iqm, resamples)
    for name in scores.keys() - apart.keys():
        mean = statistics.clustered_iqm(scores[name], noises[name])
        found[name] = mean._replace(low=np.maximum(mean.low, 0.0))  # no gap is less
    return {name: each if len(scores[name]) > 1 else statistics.Interval(each.point, np.nan, np.nan)
            for name, each in found.items()}


def find(name: str, names: list[str], required: bool = True) -> str | None:
    """The algorithm that a name means: case, blanks, "-" and "_" do not matter.

    @throws StoreError  where it is required and not there.
    """
    def plain(text):
        return re.sub(r"[\s_-]+", "", text).lower()

    for candidate in names:
        if plain(candidate) == plain(name):
            return candidate
    if required:
        raise stores.StoreError(f"algorithm {name!r} is in no store; there are "
                                f"{', '.join(sorted(names))}")
    return None


def _cut(search: stores.Search, budget: int) -> stores.Search:
    """The asks that the budget paid for, and their share of the search's own time. A search of no
    larger budget is whole: what it trains beyond it, as PASHA its answer, it cannot do without."""
    if 0 < search.budget <= budget:
        return search
    kept = int(np.searchsorted(search.trained, budget, side="right"))
    if kept == 0:
        raise stores.StoreError(f"{search.algorithm}, seed {search.seed}: its first ask cost "
                                f"{search.trained[0]} trainings, the budget is {budget}")
    return dataclasses.replace(search, candidates=search.candidates[:kept],
                               trained=search.trained[:kept], charged=search.charged[:kept],
                               seconds=search.seconds[:kept], believed=search.believed[:kept],
                               truth=None if search.truth is None else search.truth[:kept],
                               search_seconds=search.search_seconds * kept / len(search.trained))


def _smallest_gap(searches: stores.Searches) -> float:
    """The least that a search for one objective can stay behind; 0 where that is not known."""
    truth = searches.candidates.truth
    if truth is None or len(searches.objectives) > 1:
        return 0.0
    behind = truth[:, 0] - truth.min()
    return float(np.min(behind[behind > 0], initial=np.inf))


def _targets(start: float, finest: float) -> np.ndarray:
    """Logarithmic from the start's gap to a thousandth of it, or to the finest; and 0."""
    if start <= 0 or finest >= start:
        return np.zeros(1)
    return np.append(np.geomspace(start, max(start / 1000, finest), NUM_TARGETS - 1), 0.0)


def _whole_budgets(budget: int) -> np.ndarray:
    return np.unique(np.linspace(0, budget, min(budget, MOST_BUDGETS) + 1).round().astype(int))


def _curve(traces: list[Trace], spent: str, what: str, grid: np.ndarray) -> Curve:
    values = np.array([anytime.at_budgets(getattr(trace, spent), getattr(trace, what), grid)
                       for trace in traces])
    # As np.median has it: the mean of the two values beside a quartile that falls between them.
    # NumPy's own quantiles make NaN of inf - inf, where nothing is reached yet.
    ordered = np.sort(np.where(np.isnan(values), np.inf, values), axis=0)
    places = len(ordered) * np.array(QUARTILES)
    below, above = np.ceil(places).astype(int) - 1, np.floor(places).astype(int)
    return Curve(grid, *(ordered[below] + ordered[above]) / 2)


def _running_times(traces: list[Trace], start: float) -> tuple[np.ndarray, np.ndarray]:
    hits = np.array([trace.hits(start * np.array(ERT_SHARES)) for trace in traces])
    return anytime.expected_running_time(hits, [trace.trained[-1] for trace in traces])


def _pairs(algorithms: list[Algorithm], drawn: bool) -> Pairs:
    k = len(algorithms)
    probability, low, high = np.full((k, k), 0.5), np.full((k, k), np.nan), np.full((k, k), np.nan)
    p = np.ones((k, k))
    rows, columns = np.triu_indices(k, 1)
    tests = set()
    for i, j in zip(rows, columns):
        a, b = algorithms[i], algorithms[j]
        if a.noise is not None:
            effect, p[i, j] = statistics.clustered_improvement(a.final, b.final, a.noise, b.noise)
            tests.add(f"Student's t test over the {'draws' if drawn else 'replicates'} that "
                      f"answered")
        else:
            effect, p[i, j] = statistics.vargha_delaney(a.final,
                                                        b.final), _p_of_searches(a, b, tests)
        probability[i, j], low[i, j], high[i, j] = effect
        probability[j, i], low[j, i], high[j, i] = 1 - effect.point, 1 - effect.high, 1 - effect.low
    tested = ~np.isnan(p[rows, columns])
    rows, columns = rows[tested], columns[tested]
    p[rows, columns] = statistics.holm(p[rows, columns])
    lower = np.tril_indices(k, -1)
    p[lower] = p.T[lower]
    return Pairs(probability, low, high, p, tests)


def _p_of_searches(a: Algorithm, b: Algorithm, tests: set[str]) -> float:
    """That the two return alike, where searches are the units; nan with one search. 1 where the
    ranks of the differences speak for one and the probability of improvement for the other, as may
    be where one wins often and loses by much: neither is better then.

    @param tests  receives the test's name.
    """
    if min(len(a.final), len(b.final)) < 2:
        return np.nan
    if a.seeds == b.seeds:
        tests.add("Wilcoxon's signed-rank test, paired by seed")
        sides = statistics.signed_rank_sum(
            a.final, b.final) * (statistics.vargha_delaney(a.final, b.final).point - 0.5)
        return statistics.wilcoxon(a.final, b.final) if sides <= 0.0 else 1.0
    tests.add("Mann and Whitney's U test, since seeds differ")
    return statistics.mann_whitney(a.final, b.final)


def _improvement(a: Algorithm, b: Algorithm, of, shared: float = 0.0) -> statistics.Interval | None:
    """That a is better than b by what `of` takes of each, (searches,), where it is a number; None
    where there is none.
    """
    there = [np.isfinite(of(each)) for each in (a, b)]
    values = [of(each)[mask] for each, mask in zip((a, b), there)]
    if not all(map(len, values)):
        return None
    if a.noise is None:
        return statistics.probability_of_improvement(*values, shared=shared)
    noise = [each.noise[mask] for each, mask in zip((a, b), there)]
    return statistics.clustered_improvement(*values, *noise, shared)[0]


def _against(searches: stores.Searches, algorithms: list[Algorithm],
             reference: int | None) -> tuple[Against | None, list[float]]:
    cells = replay.true_cells(searches)
    if cells is None:
        return None, []
    agreement = noise.agreement_among_best(cells[..., 0]) if cells.shape[2] == 1 else []
    if reference is None or cells.shape[2] > 2 or searches.draws:
        return None, agreement
    redrawn = _Redrawn(searches, cells)
    returned = [[redrawn.score(trace.chosen) for trace in a.traces if trace.chosen]
                   for a in algorithms]
    best = redrawn.score(tuple(_best(searches.candidates.truth, 1).tolist()))
    gaps = [redrawn.gap(a, scores, best) for a, scores in zip(algorithms, returned)]
    unseen = replay.unseen(searches)
    others = [[
        redrawn.score(trace.chosen, unseen.cells(trace.seed, trace.chosen, trace.seen))
        for trace in a.traces if trace.chosen and np.isfinite(trace.end_unseen)
    ] if unseen else [] for a in algorithms]

    def intervals(scores, of):
        return [
            None if i == reference else _improvement(a, algorithms[reference], of,
                                                     redrawn.variance(scores[i], scores[reference]))
            for i, a in enumerate(algorithms)
        ]

    return Against(gaps, intervals(returned, lambda a: a.final),
                   intervals(others, lambda a: a.each("end_unseen"))), agreement


class _Redrawn:
    """What searches returned, judged by the truth of many tables that could have been recorded
    in place of the one that was."""

    TABLES = 1000

    def __init__(self, searches: stores.Searches, cells: np.ndarray):
        self._searches, self._cells = searches, cells
        self._reference = np.full(cells.shape[2], searches.reference_point)
        # The same for all candidates: what a seed does to all of them alike leaves their gaps.
        self._draws = np.random.default_rng(0).integers(cells.shape[1],
                                                        size=(self.TABLES, 20 * cells.shape[1]))
        self._means: dict[tuple, np.ndarray] = {}
        self._scores: dict[tuple, int] = {}
        self._values: list[np.ndarray] = []

    def score(self, chosen: tuple[int, ...],
              allowed: tuple[tuple[int, ...], ...] | None = None) -> int:
        """The number of the scores (minimised, one for each table) of what a search returned.

        @param allowed  the replicates of each that count; None = all.
        """
        key = (chosen, allowed)
        if key not in self._scores:
            means = np.stack([
                self._redrawn(one, cells)
                for one, cells in zip(chosen, allowed or [None] * len(chosen))
            ], axis=1)
            self._scores[key] = len(self._values)
            self._values.append(means[:, 0, 0] if len(self._reference) == 1 else
                                -indicators.planar_hypervolumes(self._searches.scaled(means),
                                                                self._reference))
        return self._scores[key]

    def variance(self, of: list[int], reference: list[int]) -> float:
        """Over the tables, of the probability that a score is better than one of the reference's,
        ties half."""
        if not of or not reference:
            return 0.0
        used = np.unique([*of, *reference])
        values = np.stack([self._values[i] for i in used])  # (scores, tables)
        weights, weights_of_reference = (
            np.bincount(np.searchsorted(used, group), minlength=len(used)) / len(group)
            for group in (of, reference))
        found = []
        for column in values.T:
            order = np.argsort(column)
            below = np.append(0.0, np.cumsum(weights_of_reference[order]))
            ends = [below[np.searchsorted(column[order], column, side)]
                    for side in ("left", "right")]
            found.append(weights @ (1.0 - (ends[0] + ends[1]) / 2.0))
        return float(np.var(found, ddof=1))

    def gap(self, algorithm: Algorithm, scores: list[int], best: int) -> statistics.Interval:
        """Interquartile mean of an algorithm's gaps to the mechanisms that this very table calls
        the best, with an interval over searches and tables: each resample draws a table, and
        searches with replacement. Their quantiles are moved to where their mean is the point, since
        an interquartile mean of values with more noise is another one. Where replicates are the
        units, resamples draw tables alone, and the interval over replicates is added in squares.

        @param scores  of those of its searches that handed something over, in their order.   @param
            best  score of the best.
        """
        def gaps_of(values):
            return values - self._values[best] if len(
                self._reference) == 1 else 1.0 - values / self._values[best]

        rows = iter(scores)
        gaps = np.array([gaps_of(self._values[next(rows)]) if trace.chosen else np.full(
            self.TABLES, trace.gap[-1]) for trace in algorithm.traces])
        if len(gaps) < 2:
            return statistics.Interval(algorithm.iqm.point, np.nan, np.nan)
        point = algorithm.iqm.point
        if algorithm.noise is None:
            draws = np.random.default_rng(0).integers(len(gaps), size=(self.TABLES, len(gaps)))
            gaps = gaps[draws, np.arange(self.TABLES)[:, None]].T
        means = statistics.iqm(gaps.T[..., None])
        low, high = np.quantile(means - means.mean(), (0.025, 0.975))
        if algorithm.noise is not None:
            low = max(-np.hypot(low, point - algorithm.iqm.low), -point)  # no gap is less than 0
            high = np.hypot(high, algorithm.iqm.high - point)
        return statistics.Interval(point, point + low, point + high)

    def _redrawn(self, candidate: int, allowed: tuple[int, ...] | None) -> np.ndarray:
        key = (candidate, allowed)
        if key not in self._means:
            values = self._cells[candidate]
            mask = np.isfinite(values).all(axis=1)
            if allowed is not None:
                mask &= np.isin(np.arange(len(values)), allowed)
            self._means[key] = replay.redrawn_means(values, mask, self._draws)
        return self._means[key]


def _friedman(algorithms: list[Algorithm], pairs: Pairs) -> Friedman | None:
    seeds = algorithms[0].seeds
    if len(algorithms) < 2 or len(seeds) < 2 or any(a.seeds != seeds for a in algorithms):
        return None
    finals = algorithms[0].units(np.stack([algorithm.final for algorithm in algorithms], axis=1))
    if len(finals) < 2:
        return None
    found = statistics.friedman(finals)
    return Friedman(found.statistic, found.p, found.mean_ranks,
                    statistics.cliques(found.mean_ranks, pairs.p, ALPHA), len(finals),
                    statistics.critical_difference(len(algorithms), len(finals), ALPHA))


def _best(truth: np.ndarray, count: int) -> np.ndarray:
    """Rows of the `count` best, of several objectives of the front."""
    return np.argsort(truth[:,
                            0], kind="stable")[:count] if truth.shape[1] == 1 else np.flatnonzero(
                                indicators.non_dominated(truth))


@dataclasses.dataclass(frozen=True)
class Pruned:
    """What becomes of the best mechanisms that the searches of an algorithm begin to train."""

    begun: float  # mean number of the best that a search begins
    # of these, that which is not trained to the end; over searches; NaN where none is begun
    share: statistics.Interval


def pruned(result: Comparison) -> list[Pruned]:
    """Of each algorithm, where ground truth judges: of the best (BEST) mechanisms, of several
    objectives of the true front. Which these are is taken as exact."""
    best = _best(result.searches.candidates.truth, BEST)
    counts: dict[str, list[tuple[int, int]]] = {}
    for search in result.searches.searches:
        begun = np.intersect1d(search.candidates, best)
        ended = np.intersect1d(search.candidates[np.isfinite(search.believed).all(axis=1)], best)
        counts.setdefault(search.algorithm, []).append((len(begun), len(begun) - len(ended)))
    found = []
    for algorithm in result.algorithms:
        begun, lost = np.array(counts[algorithm.name]).T
        if algorithm.noise is not None:
            found.append(Pruned(float(begun.mean()), _lost(begun, lost, algorithm.noise)))
            continue
        draws = np.random.default_rng(0).integers(len(begun), size=(2000, len(begun)))
        with np.errstate(invalid="ignore"):
            shares = lost[draws].sum(axis=1) / begun[draws].sum(axis=1)
        ends = np.nanquantile(shares,
                              (0.025, 0.975)) if begun.any() and len(begun) > 1 else (np.nan,
                                                                                      np.nan)
        found.append(
            Pruned(float(begun.mean()),
                   statistics.Interval(lost.sum() / begun.sum() if begun.any() else np.nan, *ends)))
    return found


def _lost(begun: np.ndarray, lost: np.ndarray, noise: np.ndarray) -> statistics.Interval:
    """Share of what was begun that was lost, with Student's interval over replicates."""
    sums = np.array([(lost[noise == one].sum(), begun[noise == one].sum())
                     for one in np.unique(noise)])
    if not sums[:, 1].any():
        return statistics.Interval(np.nan, np.nan, np.nan)
    each = statistics.mean_interval(sums[sums[:, 1] > 0, 0] / sums[sums[:, 1] > 0, 1])
    return statistics.Interval(each.point, np.maximum(each.low, 0.0), np.minimum(each.high, 1.0))


def surfaces(algorithm: Algorithm) -> list[np.ndarray]:
    """Corners of what a quarter, half and three quarters of the searches attain; two objectives."""
    fronts = [trace.front for trace in algorithm.traces]
    return [attainment.attainment_surface(fronts, share) for share in QUARTILES]


def surface_difference(a: Algorithm, b: Algorithm) -> attainment.Rectangles:
    """Where a attains more often (positive) or less often than b; two objectives."""
    return attainment.attainment_difference([trace.front for trace in a.traces],
                                            [trace.front for trace in b.traces])
