"""What would be lost if training runs were pruned at rungs, by replaying a table in which all of
them were trained to the end: successive halving (one bracket, as large as the budget allows) and
ASHA (one training run at a time) with random proposals, and full length beside them."""

from __future__ import annotations

import bisect
import copy
import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from attnas.analysis.indicators import hypervolume, non_dominated
from attnas.analysis.replay import derive_seed, shuffled
from attnas.analysis.schema import schema
from attnas.command_line import counted, did_you_mean, printable, shortest, wrapped
from attnas.data.info import rank_correlation
from attnas.data.packing import cells_of, common_replicates
from attnas.data.records import Evaluation
from attnas.errors import InputError
from attnas.table import Table

TOP = 16
BUDGETS = (10, 20, 40, 60, 93)
METHODS = ("full length", "successive halving", "asha")
COLUMNS = 80
SEVERAL = ("divergence_rate", "seed_sd")  # objectives that take several training runs
#: Objectives that a single training run decides, in minimisation form, from a validation and the
#: bytes of a token.
TRAINED = {
    "accuracy": lambda valid, seconds, bytes_: -valid["correct"] / valid["tokens"],
    "bits_per_byte": lambda valid, seconds, bytes_: valid["nll"] / valid["tokens"] / math.log(2)
    / bytes_ if bytes_ > 0.0 and valid["unknown_tokens"] == 0 else math.nan,
    "mean_nll": lambda valid, seconds, bytes_: valid["nll"] / valid["tokens"],
    "perplexity": lambda valid, seconds, bytes_: math.exp(valid["nll"] / valid["tokens"]),
    "published_perplexity": lambda valid, seconds, bytes_: math.exp(
        valid["batch_mean_nll"] / valid["batches"]),
    "train_seconds": lambda valid, seconds, bytes_: seconds,
}


@dataclasses.dataclass
class Options:
    """What is audited."""

    rungs: list[int]  # steps of the table's curves, ascending; the last one is the end
    eta: float | None = None  # of every rung; else the next rung's steps by its own
    objectives: Sequence[str] = ("perplexity",)
    searches: int = 1000
    promote: str = "crowding"  # or epsilon_net


@dataclasses.dataclass
class Agreement:
    """How a rung ranks the mechanisms by an objective, against their order at the end with the same
    seeds: means over the replicates."""

    objective: str
    step: int
    correlation: float  # Spearman's
    low: float  # its 95 % interval over mechanisms, of one replicate
    high: float
    overlap: float  # share of the best 16 at the end, by all objectives, that are the best 16 here
    noise: float  # what seeds do to a difference of two mechanisms


@dataclasses.dataclass
class Replayed:
    """Searches that have paid for as many steps as `budget` whole training runs; each sees one
    replicate of all mechanisms, in a random order that is the same for every method."""

    method: str
    budget: int
    started: float  # mean numbers of candidates
    finished: float
    saved: float  # share of the steps that the started would have taken
    top_3: tuple[int, int]  # how many were pruned of how many started, over all searches
    top_16: tuple[int, int]
    front: tuple[int, int]
    regret: tuple[float, float]  # of what a search returns, mean and standard error
    fresh_regret: tuple[float, float]  # the same by the means over the other replicates


@dataclasses.dataclass
class Audit:
    """All of it."""

    table: str
    mechanisms: int
    replicates: int
    options: Options
    eta: list[float]  # of each rung but the last
    agreement: list[Agreement]  # by step and objective, of those that training decides
    between_seeds: list[Agreement]  # the same between the ends with different seeds
    replayed: list[Replayed]

    @property
    def first_trusted_step(self) -> int | None:
        """The first at which as many of the best 16 are found as two seeds have in common at the
        end; nothing if only the end is, or the table has one replicate."""
        least = self.between_seeds[0].overlap
        found = next((one.step for one in self.agreement if one.overlap >= least), None)
        return found if found != self.agreement[-1].step else None


def audit(table: Table, options: Options) -> Audit:
    """Deterministic. @throws InputError  naming the option, or a cell that is missing."""
    cells = cells_of(table)
    replicates = common_replicates(cells)
    _check(table, replicates, options)
    courses = _courses(table, cells, replicates, options.objectives)
    eta = [options.eta or after / rung for rung, after in itertools.pairwise(options.rungs)]
    found = Audit(table.name, len(table.mechanisms), replicates, options, eta, [], [], [])
    trained = [i for i, key in enumerate(options.objectives) if _is_trained(key)]
    ends = courses[options.rungs[-1]]
    pairs = list(itertools.combinations(range(replicates), 2))
    for step in table.steps:
        found.agreement += _agreement(options, step, trained, courses[step], [
            (courses[step][r], ends[r]) for r in range(replicates)])
    found.between_seeds = _agreement(options, table.steps[-1], trained, ends,
                                     [(ends[a], ends[b]) for a, b in pairs])
    found.replayed = _replay(courses, found)
    return found


def _check(table: Table, replicates: int, options: Options) -> None:
    steps, rungs = table.steps, options.rungs
    if not steps:
        raise InputError("none of the table's training runs has a curve")
    if len(rungs) < 2 or sorted(set(rungs)) != rungs or rungs[-1] != steps[-1] \
            or not set(rungs) <= set(steps):
        raise InputError(f"--rungs {', '.join(map(str, rungs))}, must be two or more of "
                         f"{', '.join(map(str, steps))}, ascending, the last one {steps[-1]}")
    if options.eta is not None and not 1.0 < options.eta < math.inf:
        raise InputError(f"--eta {shortest(options.eta)}, must be finite and greater than 1")
    if options.searches < 1:
        raise InputError(f"--seeds {options.searches}, must be at least 1")
    for name, runs in table.runs.items():
        for replicate in range(replicates):
            if replicate not in runs:
                raise InputError(f"the table has no replicate {replicate} of {name}, must have "
                                 "every cell")
    _check_objectives(table, options.objectives)


def _check_objectives(table: Table, keys: Sequence[str]) -> None:
    sources = schema(table.facts.get("schema")).sources
    known = sorted({*TRAINED, "peak_memory", *SEVERAL, *sources})
    recorded = {name for runs in table.runs.values() for run in runs.values()
                for name in run.values}
    for key in keys:
        if key not in known:
            raise InputError(f"unknown objective '{key}', known: {', '.join(known)}"
                             + did_you_mean(key, known))
        if not _is_trained(key) and sources.get(key) != "analytic":
            raise InputError(f"--objectives {key}, must be one that a single training run has")
        if not _is_trained(key) and key not in recorded:
            raise InputError(f"--objectives {key}: the table does not have it, recorded: "
                             f"{', '.join(sorted(recorded))}")
    if not any(map(_is_trained, keys)):
        raise InputError(f"--objectives {', '.join(keys)}: all are known before training, must "
                         "have one that is not")


def _is_trained(key: str) -> bool:
    return key in TRAINED or key == "peak_memory"


def _courses(table: Table, cells: dict[tuple[str, int], Evaluation], replicates: int,
             objectives: Sequence[str]) -> dict[int, np.ndarray]:
    """By step what training runs had come to there, (replicates, mechanisms, objectives) minimised,
    NaN where they did not come so far."""
    shape = (replicates, len(table.mechanisms), len(objectives))
    courses = {step: np.full(shape, np.nan) for step in table.steps}
    maximised = schema(table.facts.get("schema")).maximised
    bytes_ = float(table.facts.get("bytes_per_token", 0.0))
    for row, replicate in itertools.product(range(shape[1]), range(replicates)):
        cell = cells[table.mechanisms[row], replicate]
        for point in cell.curve:
            is_end = cell.status == "ok" and point is cell.curve[-1]
            found = [_value(key, cell, point, is_end, bytes_) * (-1 if key in maximised and not
                                                                _is_trained(key) else 1)
                     for key in objectives]
            if _is_known(point) and all(map(math.isfinite, found)):
                courses[point["step"]][replicate, row] = found
    return courses


def _is_known(point: dict) -> bool:
    return all(math.isfinite(float(one)) for one in (point["train_nll"], point["valid"]["nll"]))


def _value(key: str, cell: Evaluation, point: dict, is_end: bool, bytes_: float) -> float:
    """An objective of a training run that ends at a point of its curve, minimised."""
    if key == "peak_memory":
        return float(cell.measured["peak_bytes"])
    if key not in TRAINED:
        return float(cell.values[key])
    if is_end and key == "train_seconds":
        return float(cell.measured[key])
    if is_end and key in cell.values:  # as recorded
        return float(cell.values[key]) * (-1 if key == "accuracy" else 1)
    try:
        return TRAINED[key](point["valid"], float(point["seconds"]), bytes_)
    except OverflowError:
        return math.inf


class _Rung:
    """Candidates that have come to a rung, in the order in which they may go on: by their front; in
    a front by its spread, each objective scaled to its range there; of equal points all but the
    first after the other points of the front; ties by number. With one objective: by its value."""

    def __init__(self, points: np.ndarray, promote: str):
        """@param points  of all candidates that may come, by number; NaN of those that do not."""
        self.points, self._promote = points, promote
        self._single = points.shape[1] == 1
        if not self._single:
            smaller = (points[:, None] <= points[None]).all(axis=2)
            self._dominates = smaller & ~smaller.T
        self._empty()

    def _empty(self) -> None:
        self.arrived: list[int] = []
        self._order: list[tuple[float, int]] = []  # of one objective
        self._waiting: list[tuple[float, int]] = []  # of these, those that were not promoted
        self._promoted = np.zeros(len(self.points), dtype=bool)
        self._dominators = np.zeros(len(self.points), dtype=int)
        # Nobody's turn has come at this count; what this front dominates changes nothing of that.
        self._settled, self._last = 0, np.zeros(0, dtype=int)

    def begin(self) -> _Rung:
        """The same rung of another search."""
        rung = copy.copy(self)
        rung._empty()
        return rung

    def arrive(self, number: int) -> None:
        """A candidate comes; one without a point does not."""
        first = self.points[number, 0]
        if math.isnan(first):
            return
        self.arrived.append(number)
        if self._single:
            bisect.insort(self._order, (first, number))
            bisect.insort(self._waiting, (first, number))
        else:
            self._dominators += self._dominates[number]
            if not self._dominates[self._last, number].any():
                self._settled = 0

    def best(self, count: int) -> list[int]:
        """The first ones of the order."""
        if self._single:
            return [number for _, number in self._order[:count]]
        return list(itertools.islice(self._ordered(), count))

    def promote_next(self, eta: float) -> int | None:
        """The best one that was not promoted yet among the floor(n / eta) best."""
        count = num_promoted(len(self.arrived), eta)
        if self._single:
            if not self._waiting or bisect.bisect_left(self._order, self._waiting[0]) >= count:
                return None
            return self._waiting.pop(0)[1]
        if count == self._settled:
            return None
        left = count
        for front in self._fronts():
            if left < len(front) or not self._promoted[front].all():
                for one in itertools.islice(self._spread(front), left):
                    if not self._promoted[one]:
                        self._promoted[one] = True
                        self._settled = 0
                        return one
            left -= len(front)
            if left <= 0:
                self._settled, self._last = count, front
                break
        return None

    def _fronts(self) -> Iterator[np.ndarray]:
        left, dominators = np.zeros(len(self.points), dtype=bool), self._dominators.copy()
        left[self.arrived] = True
        while left.any():
            front = np.flatnonzero(left & (dominators == 0))
            yield front
            left[front] = False
            dominators -= self._dominates[front].sum(axis=0)

    def _ordered(self) -> Iterator[int]:
        return itertools.chain.from_iterable(map(self._spread, self._fronts()))

    def _spread(self, front: np.ndarray) -> Iterator[int]:
        points = self.points[front]
        order = np.lexsort(points.T[::-1])
        front, points = front[order], points[order]
        again = np.zeros(len(front), dtype=bool)  # which are in the order of their numbers
        again[1:] = (points[1:] == points[:-1]).all(axis=1)
        scaled, firsts = points[~again], front[~again]
        least = scaled.min(axis=0)
        width = scaled.max(axis=0) - least
        scaled = (scaled - least) / np.where(width > 0.0, width, 1.0)
        spread = _crowding(scaled[:, width > 0.0]) if self._promote == "crowding" else _net(scaled)
        yield from firsts[np.lexsort((firsts, -spread))].tolist()
        yield from sorted(front[again].tolist())


def _crowding(points: np.ndarray) -> np.ndarray:
    """Crowding distance of NSGA-II by the objectives in which scaled points differ."""
    if len(points) <= 2:
        return np.full(len(points), np.inf)
    distances = np.zeros(len(points))
    if points.shape[1] < 2:
        return distances
    for column in points.T:
        order = np.argsort(column, kind="stable")
        distances[order[1:-1]] += column[order[2:]] - column[order[:-2]]
        distances[order[[0, -1]]] = np.inf
    return distances


def _net(points: np.ndarray) -> np.ndarray:
    """The best by the first objective, then whichever is farthest from those before: the larger,
    the sooner."""
    nearest, priority = np.full(len(points), np.inf), np.empty(len(points))
    for taken in range(len(points)):
        chosen = int(nearest.argmax())
        priority[chosen] = -taken
        nearest = np.minimum(nearest, ((points - points[chosen]) ** 2).sum(axis=1))
        nearest[chosen] = -1.0
    return priority


def num_promoted(n: int, eta: float) -> int:
    """How many of n candidates that reached a rung may go on: floor(n / eta)."""
    return int(n / eta * (1.0 + 1e-12))  # 35 by 700 / 300 is 15, in doubles a little less


def _num_halved(n: int, eta: float) -> int:
    return max(num_promoted(n, eta), min(n, 1))


def _ranked(points: np.ndarray, promote: str) -> list[int]:
    """Mechanisms that have an outcome, the best first."""
    rung = _Rung(points, promote)
    for number in range(len(points)):
        rung.arrive(number)
    return rung.best(len(points))


def _agreement(options: Options, step: int, trained: list[int], here: np.ndarray,
               several: list[tuple[np.ndarray, np.ndarray]]) -> list[Agreement]:
    """How alike mechanisms are ordered by pairs of outcomes, by each objective that training
    decides. @param here  (replicates, mechanisms, objectives) at the step."""
    overlaps, common = [], []
    for a, b in several:
        both = ~np.isnan(a[:, 0]) & ~np.isnan(b[:, 0])
        a, b = (np.where(both[:, None], side, np.nan) for side in (a, b))
        best = [set(_ranked(side, options.promote)[:TOP]) for side in (a, b)]
        overlaps.append(len(best[0] & best[1]) / min(TOP, both.sum()) if both.any() else math.nan)
        common.append((a[both], b[both]))
    found = []
    for i in trained:
        r = _mean([rank_correlation(a[:, i], b[:, i]) for a, b in common])
        low, high = _interval(r, min((len(a) for a, _ in common), default=0))
        found.append(Agreement(options.objectives[i], step, r, low, high, _mean(overlaps),
                               _noise(here[:, :, i])))
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _interval(r: float, n: int) -> tuple[float, float]:
    """95 % interval of a rank correlation over n pairs, by Fisher's z (Bonett & Wright 2000); of
    equal or opposite orders as of those in which two neighbours are exchanged."""
    if math.isnan(r):
        return r, r
    if n <= 3:
        return -1.0, 1.0
    half = 1.959963984540054 * math.sqrt((1.0 + r * r / 2.0) / (n - 3.0))
    most = 1.0 - 12.0 / (n * (n * n - 1.0))
    z = math.atanh(min(max(r, -most), most))
    return -1.0 if r <= -most else math.tanh(z - half), 1.0 if r >= most else math.tanh(z + half)


def _noise(values: np.ndarray) -> float:
    """1.48 times the median distance of the differences between two replicates from their median,
    over all mechanisms and pairs. @param values  (replicates, mechanisms)."""
    distances = []
    for a, b in itertools.combinations(values, 2):
        differences = (a - b)[np.isfinite(a - b)]
        if len(differences):  # whose median is what the seeds do to all alike
            distances.append(np.abs(differences - np.median(differences)))
    return float(1.4826 * np.median(np.concatenate(distances))) if distances else math.nan


class _Worth:
    """What mechanisms are worth at the end."""

    def __init__(self, points: np.ndarray):
        """@param points  (mechanisms, objectives), NaN of those without."""
        known = points[~np.isnan(points[:, 0])]
        self._any = len(known) > 0
        if not self._any:
            return
        self._points = np.where(np.isnan(points), known.max(axis=0), points)
        self.front = known[non_dominated(known)]
        self._low, width = self.front.min(axis=0), np.ptp(self.front, axis=0)
        self._width = np.where(width > 0, width, 1.0)
        self._single = points.shape[1] == 1
        self._best = self._low[0] if self._single else self._volume(self.front)

    def regret(self, mechanisms: Sequence[int]) -> float:
        """One objective: the value beyond the least of all; several: the share of the front's
        hypervolume that is missing, the reference a tenth beyond its range."""
        if not len(mechanisms) or not self._any:
            return math.nan
        points = self._points[mechanisms]
        return float(points[0, 0] - self._best if self._single else
                     1.0 - self._volume(points) / self._best)

    def _volume(self, points: np.ndarray) -> float:
        return hypervolume((points - self._low) / self._width, [1.1] * points.shape[1])


class _Judge:
    """What searches that see one replicate are judged by."""

    def __init__(self, ends: np.ndarray, replicate: int, promote: str):
        own = ends[replicate]
        others = np.delete(ends, replicate, axis=0)
        known = ~np.isnan(others)
        with np.errstate(invalid="ignore"):
            fresh = np.where(known, others, 0.0).sum(axis=0) / known.sum(axis=0)
        self.ends, self.own, self.fresh = own, _Worth(own), _Worth(fresh)
        ranking = _ranked(own, promote)
        front = {number for number in ranking
                 if (self.own.front == own[number]).all(axis=1).any()}
        self.among = [set(ranking[:3]), set(ranking[:TOP]), front]


@dataclasses.dataclass
class _State:
    """How far a search has come: mechanisms in the order of their asks, and steps paid."""

    started: list[int]
    finished: list[int]
    paid: int = 0


class _Search:
    """A search of one replicate of a table, in one order."""

    def __init__(self, rungs: list[_Rung], audit_: Audit, order: list[int]):
        """@param rungs  nobody has come to yet."""
        steps = audit_.options.rungs
        self._rungs, self._eta, self._order, self._full = rungs, audit_.eta, order, steps[-1]
        self._costs = [after - before for before, after in itertools.pairwise([0, *steps])]

    def full_length(self, budget: int) -> _State:
        started = self._order[:budget // self._full]
        points = self._rungs[-1].points
        return _State(started, [one for one in started if not math.isnan(points[one, 0])],
                      len(started) * self._full)

    def _bracket_cost(self, n: int) -> int:
        """Steps of a bracket that begins with n candidates, none of which fails."""
        steps = n * self._costs[0]
        for eta, cost in zip(self._eta, self._costs[1:]):
            n = _num_halved(n, eta)
            steps += n * cost
        return steps

    def successive_halving(self, budget: int) -> _State:
        n = bisect.bisect_right(range(1, len(self._order) + 1), budget, key=self._bracket_cost)
        state = _State(self._order[:n], [])
        group = state.started
        for k, (rung, cost) in enumerate(zip(self._rungs, self._costs)):
            rung = rung.begin()
            for one in group:
                rung.arrive(one)
            state.paid += len(group) * cost
            if k < len(self._eta):
                group = rung.best(_num_halved(len(rung.arrived), self._eta[k]))
        state.finished = rung.arrived
        return state

    def asha(self, budgets: list[int]) -> list[_State]:
        """@param budgets  ascending.   @return the state when each of them was used up."""
        states: list[_State] = []
        rungs, state = [rung.begin() for rung in self._rungs], _State([], [])
        changed = [False] * len(rungs)
        while len(states) < len(budgets):
            chosen, at = self._next(rungs, changed)
            ends = chosen is None and len(state.started) == len(self._order)
            while len(states) < len(budgets) and (
                    ends or state.paid + self._costs[at] > budgets[len(states)]):
                states.append(_State(list(state.started), list(rungs[-1].arrived), state.paid))
            if ends:
                break
            if chosen is None:
                chosen = self._order[len(state.started)]
                state.started.append(chosen)
            state.paid += self._costs[at]
            rungs[at].arrive(chosen)
            changed[at] = True
        return states

    def _next(self, rungs: list[_Rung], changed: list[bool]) -> tuple[int | None, int]:
        """Who goes on, and to which rung; None: a new one, to the first."""
        for at in range(len(rungs) - 1, 0, -1):
            if changed[at - 1]:  # else nothing has arrived since the last look
                chosen = rungs[at - 1].promote_next(self._eta[at - 1])
                if chosen is not None:
                    return chosen, at
                changed[at - 1] = False
        return None, 0


class _Tally:
    """Adds up the searches of one method that end with one budget."""

    def __init__(self):
        self._sums, self._pruned = np.zeros(3), np.zeros((3, 2), dtype=int)
        self._regrets: list[tuple[float, float]] = []

    def add(self, state: _State, judge: _Judge, full: int) -> None:
        """One search."""
        started, finished = set(state.started), set(state.finished)
        for pruned, among in zip(self._pruned, judge.among):
            pruned += (len(among & started - finished), len(among & started))
        whole = len(started) * full
        self._sums += (len(started), len(finished), 1.0 - state.paid / whole if whole else 0.0)
        numbers = np.array(state.finished, dtype=int)
        returned = numbers[non_dominated(judge.ends[numbers])] if len(numbers) else numbers
        self._regrets.append((judge.own.regret(returned), judge.fresh.regret(returned)))

    def result(self, method: str, budget: int) -> Replayed:
        """All of them."""
        n = len(self._regrets)
        regrets = np.array(self._regrets)
        errors = regrets.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else [math.inf] * 2
        own, fresh = ((float(mean), float(error)) for mean, error in
                      zip(regrets.mean(axis=0), errors))
        return Replayed(method, budget, *(self._sums / n).tolist(),
                        *(tuple(pruned) for pruned in self._pruned.tolist()), own, fresh)


def _replay(courses: dict[int, np.ndarray], audit_: Audit) -> list[Replayed]:
    options, full = audit_.options, audit_.options.rungs[-1]
    trainings = [one for one in BUDGETS if one <= audit_.mechanisms] or [audit_.mechanisms]
    budgets = [one * full for one in trainings]
    judges = [_Judge(courses[full], r, options.promote) for r in range(audit_.replicates)]
    rungs = [[_Rung(courses[step][r], options.promote) for step in options.rungs]
             for r in range(audit_.replicates)]
    tallies = [[_Tally() for _ in METHODS] for _ in budgets]
    for search in range(options.searches):
        r = search % audit_.replicates
        order = shuffled(range(audit_.mechanisms), derive_seed(0, 0, "rung audit", search))
        one = _Search(rungs[r], audit_, order)
        for budget, state, tally in zip(budgets, one.asha(budgets), tallies):
            for own, made in zip(tally, (one.full_length(budget), one.successive_halving(budget),
                                         state)):
                own.add(made, judges[r], full)
    return [own.result(method, budget) for budget, tally in zip(trainings, tallies)
            for method, own in zip(METHODS, tally)]


def _share(pruned: tuple[int, int]) -> float:
    return pruned[0] / pruned[1] if pruned[1] else math.nan


def _rounded(value: float, digits: int, unit: str = "") -> str:
    if math.isnan(value):
        return "-"
    return shortest(math.floor(10**digits * value + 0.5) / 10**digits) + unit


def _percent(share: float) -> str:
    return _rounded(100.0 * share, 1, " %")


def verdict(found: Audit) -> str:
    """Whether the first rung is too early, that is before one that can be trusted, and what pruning
    costs and gains."""
    first = next(one for one in found.agreement if one.step == found.options.rungs[0])
    seeds, step = found.between_seeds[0], found.first_trusted_step
    if found.replicates < 2:
        text = "One replicate does not tell how much of a rank is noise of the seed."
    elif found.mechanisms < 4 * TOP:
        text = (f"{found.mechanisms} mechanisms do not tell whether the first rung is too early, "
                f"{4 * TOP} would: it goes by the best {TOP}.")
    else:
        trusted = first.overlap >= seeds.overlap
        text = (f"The first rung is {'not ' * trusted}too early: step {first.step} has "
                f"{_percent(first.overlap)} of the best 16 of the end among its own, two seeds "
                f"have {_percent(seeds.overlap)} in common at the end")
        if not trusted and step:
            text += f"; step {step} is the first with as many"
        text += "."
    whole, _, asha = found.replayed[-3:]
    several = len(found.options.objectives) > 1
    ends = (f"misses {_percent(asha.regret[0])} of the hypervolume instead of "
            f"{_percent(whole.regret[0])}" if several else
            f"ends {_rounded(asha.regret[0], 2)} beyond the best instead of "
            f"{_rounded(whole.regret[0], 2)}")
    pruned, what = (asha.front, "front's members") if several else (asha.top_16, "best 16")
    return (f"{text} For the steps of {asha.budget} whole training runs ASHA starts "
            f"{_rounded(asha.started, 0)} candidates instead of {_rounded(whole.started, 0)}, "
            f"prunes {_percent(_share(pruned))} of the {what} that it starts, and {ends}.")


def _decimals(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _whole_percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100.0 * share:.0f} %"


def text_of(found: Audit) -> str:
    """For people."""
    options = found.options
    rungs = [f"{rung} (eta {eta:.2f})" for rung, eta in zip(options.rungs, found.eta)]
    lines = [f"{printable(found.table)}: {counted(found.mechanisms, 'mechanism')} x "
             f"{counted(found.replicates, 'replicate')}, rungs "
             f"{', '.join([*rungs, str(options.rungs[-1])])}"]
    for seeds in found.between_seeds:
        lines += ["", f"Ranks by {seeds.objective} at a step against those at the end, same seeds",
                  "", "    step  Spearman   95 % interval  best 16 shared     noise"]
        for own in found.agreement:
            if own.objective == seeds.objective and own.step != options.rungs[-1]:
                interval = f"{_decimals(own.low)} - {_decimals(own.high)}"
                lines.append(f"{'  * ' if own.step in options.rungs else '    '}{own.step:4}"
                             f"{_decimals(own.correlation):>10}{interval:>16}"
                             f"{_whole_percent(own.overlap):>16}{_decimals(own.noise):>10}")
        lines.append(f"   seeds{_decimals(seeds.correlation):>10}"
                     f"{_whole_percent(seeds.overlap):>32}{_decimals(seeds.noise):>10}")
    lines += ["", "  * a rung; seeds: the ends with two seeds against each other",
              "  noise: what seeds do to a difference of two mechanisms (fidelity.epsilon)",
              "", f"Pruning: {options.searches:,} searches a line, each of one replicate and in a "
              "random order", "", f"{'':42}pruned of the started",
              "  runs  method        started  end  saved  top 3  top 16  front   regret   fresh"]
    several = len(options.objectives) > 1
    for one in found.replayed:
        regrets = [f"{100.0 * mean:.1f} %" if several and not math.isnan(mean) else _decimals(mean)
                   for mean, _ in (one.regret, one.fresh_regret)]
        method = "halving" if one.method == "successive halving" else one.method
        lines.append(f"{one.budget:6}  {method:12}{one.started:9.0f}{one.finished:5.0f}"
                     f"{_whole_percent(one.saved):>7}{_whole_percent(_share(one.top_3)):>7}"
                     f"{_whole_percent(_share(one.top_16)):>8}"
                     f"{_whole_percent(_share(one.front)):>7}{regrets[0]:>9}{regrets[1]:>8}")
    regret = ("hypervolume of the front that is missed" if several else
              f"distance from the best {options.objectives[0]}")
    legend = ("runs: steps that are paid, in whole training runs; saved: of the steps of what was "
              f"started; regret: {regret} with the seeds that the search saw; fresh: with the "
              "others")
    return ("\n".join(lines) + "\n\n" + wrapped(legend, COLUMNS) + "\n"
            + wrapped(verdict(found), COLUMNS))


def json_of(found: Audit) -> str:
    """For programs; what is not finite is null."""
    def plain(one: Any) -> dict[str, Any]:
        return {key: None if isinstance(value, float) and not math.isfinite(value) else value
                for key, value in dataclasses.asdict(one).items()}

    def replayed(one: Replayed) -> dict[str, Any]:
        own = plain(one)
        for key in ("top_3", "top_16", "front"):
            own[key] = dict(zip(("count", "of"), own[key]))
        for key in ("regret", "fresh_regret"):
            own[key] = {name: value if math.isfinite(value) else None
                        for name, value in zip(("mean", "standard_error"), own[key])}
        return own

    seeds = [{key: value for key, value in plain(one).items()
              if key in ("objective", "correlation", "overlap")} for one in found.between_seeds]
    said = {"table": found.table, "mechanisms": found.mechanisms, "replicates": found.replicates,
            "rungs": found.options.rungs, "eta": found.eta, "searches": found.options.searches,
            "objectives": list(found.options.objectives), "promote": found.options.promote,
            "agreement": [plain(one) for one in found.agreement], "between_seeds": seeds,
            "replayed": [replayed(one) for one in found.replayed],
            "first_trusted_step": found.first_trusted_step, "verdict": verdict(found)}
    return json.dumps(said, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def csv_of(found: Audit) -> str:
    """One number a line, empty where there is none."""
    rows: list[tuple] = []
    for own in found.agreement:
        rows += [("agreement", own.objective, own.step, key, getattr(own, key))
                 for key in ("correlation", "low", "high", "overlap", "noise")]
    for own in found.between_seeds:
        rows += [("between_seeds", own.objective, found.options.rungs[-1], key, getattr(own, key))
                 for key in ("correlation", "overlap")]
    for one in found.replayed:
        values = {"started": one.started, "finished": one.finished, "saved": one.saved,
                  "pruned_top_3": _share(one.top_3), "pruned_top_16": _share(one.top_16),
                  "pruned_front": _share(one.front)}
        for key, (mean, error) in (("regret", one.regret), ("fresh_regret", one.fresh_regret)):
            values |= {key: mean, f"{key}_standard_error": error}
        rows += [("replayed", one.method, one.budget, *item) for item in values.items()]
    lines = [",".join(map(str, (*row[:4], "" if math.isnan(row[4]) else shortest(row[4]))))
             for row in rows]
    return "\n".join(["part,of,at,quantity,value", *lines]) + "\n"
