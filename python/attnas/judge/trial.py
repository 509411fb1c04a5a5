"""Pairs of runs, a seed each, until each candidate is decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from attnas.analysis.statistics import holm
from attnas.errors import InputError
from attnas.judge import sequential
from attnas.judge.journal import Memory
from attnas.judge.processes import Metric, Outcome

DECISIONS = ("better", "within", "worse", "undecided")


class Rules(NamedTuple):
    """When a candidate is decided."""

    within: float | None = None  # a bound; None: nothing is within
    relative: bool = True  # whether the bound is a share of the baseline's mean
    most: int = 20
    level: float = sequential.ALPHA  # of "better"; the others have 5 %
    first_seed: int = 1
    hopeless: bool = False  # leave a candidate that `most` pairs would hardly show to be better


@dataclass
class State:
    """A candidate, as far as it was looked at. Differences are in the sense that less is better."""

    name: str
    decision: str = ""  # empty: open
    pairs: int = 0  # that were run
    paired: list[sequential.Paired] = field(default_factory=list)  # of each metric, both finished
    baseline: list[float] = field(default_factory=list)  # means of the baseline in these pairs
    p: float = 1.0  # corrected by Holm, as p_within and p_fails
    p_within: float = 1.0
    p_fails: float = 1.0
    failed: int = 0
    only: tuple[int, int] = (0, 0)  # pairs in which the candidate alone failed, the baseline alone
    baseline_failed: int = 0
    reasons: list[str] = field(default_factory=list)
    why: str = ""  # why it is undecided


class Trial:
    """A baseline, candidates, and what measures them.

    Seed by seed each open candidate and the baseline are run, in turns, on as many threads as
    `jobs` says; looks follow the seeds' order, so that what is decided does not depend on it. What
    the journal has is not run again.
    """

    def __init__(self, names: list[str], metrics: list[Metric], journal: Memory,
                 measure: Callable[[int, int], Outcome], rules: Rules, jobs: int = 1,
                 looked: Callable[[Trial, int], None] = lambda trial, pairs: None):
        """@param names  the baseline's first. @param looked  is called after each look."""
        self.metrics, self.journal, self.measure = metrics, journal, measure
        self.rules, self.jobs, self.looked = rules, jobs, looked
        self.names = names
        self.states = [State(name) for name in names[1:]]
        self.outcomes: dict[tuple[int, int], Outcome] = {}
        for record in journal.records:
            if "run" in record:
                values = record.get("values")
                outcome = Outcome(None if values is None else tuple(values),
                                  record.get("failed", ""), record["seconds"])
                self.outcomes[tuple(record["run"])] = outcome
        self.told = next((n for n in range(rules.most) if not all(
            (i, rules.first_seed + n) in self.outcomes for i in range(len(names)))), rules.most)

    @property
    def open(self) -> list[int]:
        """Numbers of the variants that are open."""
        return [i for i, state in enumerate(self.states, 1) if not state.decision]

    def _of_seed(self, seed: int) -> list[tuple[int, int]]:
        """What a seed takes, in turns."""
        variants = [0, *self.open]
        turn = (seed - self.rules.first_seed) % len(variants)
        return [(variant, seed) for variant in variants[turn:] + variants[:turn]]

    def _wanted(self, seed: int) -> Iterator[tuple[int, int]]:
        for later in range(seed, self.rules.first_seed + self.rules.most):
            yield from (key for key in self._of_seed(later) if key not in self.outcomes)

    def run(self, stop: Callable[[], None] = lambda: None) -> list[State]:
        """Runs what is missing, and decides. @param stop  ends what still runs."""
        out: dict[tuple[int, int], Future] = {}
        pool = ThreadPoolExecutor(self.jobs)
        try:
            for pairs in range(1, self.rules.most + 1):
                seed = self.rules.first_seed + pairs - 1
                while any(key not in self.outcomes for key in self._of_seed(seed)):
                    for key in self._wanted(seed):
                        if len(out) == self.jobs:
                            break
                        if key not in out:
                            out[key] = pool.submit(self.measure, *key)
                    done, _ = wait(out.values(), return_when=FIRST_COMPLETED)
                    for key in [key for key, future in out.items() if future in done]:
                        self._keep(key, out.pop(key).result())
                self._look(pairs)
                self.looked(self, pairs)
                if not self.open:
                    break
        finally:
            if out:
                stop()
            pool.shutdown(wait=True, cancel_futures=True)
        for state in self.states:
            state.why = state.why or f"after {self.rules.most} pairs" * (not state.decision)
            state.decision = state.decision or "undecided"
        return self.states

    def _keep(self, key: tuple[int, int], outcome: Outcome) -> None:
        told = {"failed": outcome.failed} if outcome.values is None else {
            "values": list(outcome.values)}
        seconds = round(outcome.seconds, 3)
        self.journal.add({"run": list(key), **told, "seconds": seconds})
        self.outcomes[key] = outcome._replace(seconds=seconds)

    def _look(self, pairs: int) -> None:
        looked_at = [self.states[i - 1] for i in self.open]
        for i in self.open:
            self._compare(i, pairs)
        states = self.states
        raw = [(state.paired[0].p, sequential.p_beyond(state.paired[0], self.bound(state)),
                sequential.p_fails_more(*state.only)) for state in states]
        for state, *corrected in zip(states, *(holm(column) for column in zip(*raw))):
            state.p, state.p_within, state.p_fails = map(float, corrected)
        for state in looked_at:
            self._decide(state)

    def _compare(self, variant: int, pairs: int) -> None:
        seeds = range(self.rules.first_seed, self.rules.first_seed + pairs)
        runs = [(self.outcomes[variant, seed], self.outcomes[0, seed]) for seed in seeds]
        state = self.states[variant - 1]
        both = [(a.values, b.values) for a, b in runs if a.values and b.values]
        state.pairs, state.paired, state.baseline = pairs, [], []
        for place, metric in enumerate(self.metrics):
            sign = -1.0 if metric.higher else 1.0
            a, b = (np.array([one[side][place] for one in both]) for side in (0, 1))
            state.paired.append(sequential.compare(sign * a, sign * b))
            state.baseline.append(float(b.mean()) if both else math.nan)
        failed = [(a.values is None, b.values is None) for a, b in runs]
        state.only = failed.count((True, False)), failed.count((False, True))
        state.failed, state.baseline_failed = (sum(one) for one in zip(*failed))
        state.reasons = [a.failed for a, _ in runs if a.failed]

    def bound(self, state: State) -> float:
        """The bound in the first metric's unit; 0 where there is none.

        @throws InputError  where it is a share of what is 0.
        """
        if self.rules.within is None or not state.baseline or math.isnan(state.baseline[0]):
            return 0.0
        if self.rules.relative and state.baseline[0] == 0.0:
            raise InputError(f"within {100 * self.rules.within:g} % of {self.metrics[0].name}, "
                             "whose mean is 0: give the bound in its unit, without %")
        return self.rules.within * (abs(state.baseline[0]) if self.rules.relative else 1.0)

    def _decide(self, state: State) -> None:
        """Better and within: only where failures do not speak against it by 2 to 1 or more."""
        first, alpha = state.paired[0], sequential.ALPHA
        fails_more = sequential.p_fails_more(*state.only) <= 0.5
        if state.p_fails <= alpha or state.p <= alpha and first.mean > 0.0:
            state.decision = "worse"
        elif state.p <= self.rules.level and first.mean < 0.0 and not fails_more:
            state.decision = "better"
        elif state.p_within <= alpha and first.n >= sequential.FIRST and not fails_more:
            state.decision = "within"
        elif self.rules.hopeless and first.n >= sequential.FIRST:
            most = self.rules.most  # would not show even what is better by a standard error
            half = sequential.quantile(most, self.rules.level) * first.error * math.sqrt(
                first.n / most)
            if half >= first.error - first.mean:
                state.decision, state.why = "undecided", f"left after {state.pairs} pairs, since "\
                    f"{most} would hardly show it to be better"

    def needed(self, state: State) -> int | None:
        """The number of pairs at which a candidate would be decided, as it looks now."""
        level = self.rules.level / max(1, len(self.states))
        return sequential.pairs_to_decide(state.paired[0], level, self.bound(state))

    def seconds_left(self) -> tuple[float, float]:
        """What is left to run takes, as it looks now, and at most."""
        known = [one.seconds for one in self.outcomes.values()]
        each = sum(known) / max(1, len(known)) / self.jobs
        pairs = max((state.pairs for state in self.states), default=0)
        most = self.rules.most - pairs
        likely = [min(most, (self.needed(self.states[i - 1]) or math.inf) - pairs)
                  for i in self.open]
        return (each * (sum(likely) + max(likely, default=0)),
                each * most * (1 + len(self.open)) * bool(self.open))
