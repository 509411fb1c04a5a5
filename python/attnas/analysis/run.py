"""One run as its digest says it: what the page of a run is made from.

Fitness is in minimisation form, values are in an objective's own sense and unit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

from attnas.analysis import digest
from attnas.analysis.columns import Records
from attnas.analysis.schema import schema

DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Indicator:
    """How far the search had come after a batch; value: hypervolume, or the best value."""

    asked: int
    value: float


@dataclass(slots=True)
class Evaluation:
    """One candidate measured once."""

    id: str
    candidate: str
    replicate: int
    status: str
    reason: str
    identity: dict[str, Any]
    curve: list[dict[str, Any]]  # its validations, as the digest has them
    values: dict[str, float]
    objectives: list[float | None]  # values, as far as they are known of a single evaluation
    measured: dict[str, Any]
    usable: bool  # whether it has a measured quality
    stopped_at: int | None  # step at which it was stopped early

    @property
    def trained(self) -> bool:
        """Whether it has a training curve."""
        return bool(self.curve)

    @property
    def screened_out(self) -> bool:
        """Whether a constraint rejected it before anything was trained."""
        return self.status == "rejected" and not self.trained

    @property
    def failed(self) -> bool:
        """Whether it was tried and has no quality."""
        return not self.usable and self.status != "rejected"

    @property
    def seconds(self) -> float:
        """Seconds of its training; 0 where none was recorded."""
        return finite_or(self.measured.get("train_seconds"), 0.0)


@dataclass(slots=True)
class Ask:
    """One answer to the algorithm."""

    number: int
    batch: int
    candidate: str
    evaluations: list[str]
    reused: bool
    fitness: list[float]
    status: str  # of the candidate, see Judgement in src/evaluation/judgement.hpp
    usable: bool  # whether the candidate has a measured quality; else a penalty answered
    believed: list[float] | None  # of the candidate by then, where anything is
    trained: int  # evaluations that asks have caused by then
    seconds: float  # of their training


@dataclass(slots=True)
class Candidate:
    """One mechanism, with everything that the search learnt about it."""

    name: str
    label: str
    brief: str  # the same where there is little room
    fitness: list[float]
    values: list[float]
    on_front: bool
    first_ask: int  # -1: outside the search
    times_asked: int
    rank: int  # place in Run.ranking; -1: none
    n: int  # evaluations used: the usable ones
    wanted: int  # evaluations that it should have: n is less where some failed
    stopped_at: int | None  # first step at which a training run was stopped early
    evaluations: list[Evaluation]

    @property
    def n_text(self) -> str:
        """n, and as "2/3" where fewer are used than there should be."""
        return f"{self.n}/{self.wanted}" if self.n < self.wanted else str(self.n)

    @property
    def stop_text(self) -> str:
        """What marks a candidate that was stopped early."""
        return "" if self.stopped_at is None else f"stopped at step {self.stopped_at:,}"

    @property
    def seconds(self) -> float:
        """Training seconds of all its evaluations."""
        return sum(evaluation.seconds for evaluation in self.evaluations)


def finite_or(value: Any, otherwise: float) -> float:
    """A JSON number, or `otherwise` for all else."""
    if type(value) is float:  # as most are
        return value if math.isfinite(value) else otherwise
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return otherwise
    return float(value) if math.isfinite(value) else otherwise


class _Part(cached_property):
    """What of a run is made when it is first asked for. Raises digest.BadInput where its digest is
    damaged.
    """

    def __get__(self, instance, owner=None):
        try:
            return super().__get__(instance, owner)
        except DAMAGE as error:
            raise instance.damaged(error) from None


class Run:
    """A run, as its digest has it: ranking, front, baseline and what asks were judged to be are
    those of nas-run's closing table.

    ranking holds the usable candidates of the search: with one objective the best first, with
    several the front, then the others, both by the first objective. What was stopped early comes
    last, and is neither best nor on the front as long as another one is ok. A candidate's fitness
    is what the search believes of it.
    """

    def __init__(self, path: Path):
        """Reads a run's folder, store or digest, see digest.read(). Raises digest.BadInput."""
        self.path, self.digest = path, digest.read(path)
        try:
            self._take(self.digest)
        except DAMAGE as error:
            raise self.damaged(error) from None

    def damaged(self, error: Exception) -> digest.BadInput:
        """What is said of a digest that does not hold what it must."""
        return digest.BadInput(f"{self.path}: damaged: {type(error).__name__}: {error}")

    def _take(self, own: dict[str, Any]) -> None:
        self.schema = schema(own["record_schema"])
        self.config: dict[str, Any] = own["config"]
        self.facts: dict[str, Any] = own["facts"]
        self.sessions: list[dict[str, Any]] = own["sessions"]
        self.labels: dict[str, str] = own["labels"]
        # Of names of many genes: which genes, what each candidate has, what differs from the
        # baseline.
        self.models: dict[str, Any] = own["models"] or {}
        # Whether listed mechanisms were trained in place of a search; `retest` compares them.
        self.listed = "mechanisms" in self.config
        self.retest: dict[str, Any] = own["retest"] or {}
        self._short_names = digest.short_names(own)
        self.ended_by: str = own["ended_by"] or ""
        self.at_work: dict[str, Any] | None = own.get("at_work")  # while a process writes the run
        self.reference_point: float = own["reference_point"]
        self.elapsed = finite_or(own["elapsed_seconds"], 0.0)
        self.planned_asks: int | None = own["planned_asks"]
        self.num_asked: int = own["counts"]["asked"]
        self.num_searched: int = own["counts"]["evaluated"]  # evaluations that asks caused
        self.num_stopped: int = own["counts"]["stopped_early"]  # of these
        self.objectives = digest.objectives(own)
        trace = own["hypervolume" if self.several else "best"]["trace"]
        self.indicators = [Indicator(point["asked"], finite_or(point["value"], math.nan))
                           for point in trace]
        self.rejected = {one["candidate"]: one["reason"] for one in own["rejected"]}
        self.knee = None if own["knee"] is None else own["ranking"][own["knee"]]["candidate"]
        self.warnings: list[str] = own.get("warnings") or []

    @_Part
    def evaluations(self) -> list[Evaluation]:
        """All of them, in the order of their ids."""
        return list(_evaluations(self.digest, [objective.name for objective in self.objectives]))

    @_Part
    def by_id(self) -> dict[str, Evaluation]:
        """The same by their ids."""
        return {evaluation.id: evaluation for evaluation in self.evaluations}

    @_Part
    def asks(self) -> list[Ask]:
        """Those that were answered by whole training runs."""
        return list(_asks(self.digest["asks"]))

    @_Part
    def evaluated_labels(self) -> frozenset[str]:
        """Labels of all candidates that were evaluated."""
        return frozenset(map(self.label, self._of_evaluations("candidate")))

    @_Part
    def trained(self) -> bool:
        """Whether anything was, so that values depend on seeds."""
        return any(self._of_evaluations("curve"))

    def _of_evaluations(self, key: str) -> Iterator:
        """One value of each: of those that are there already, or as the digest has it."""
        if "evaluations" in self.__dict__:
            return map(attrgetter(key), self.evaluations)
        return (value for values, in self.digest["evaluations"].columns(key) for value in values)

    @_Part
    def failures(self) -> list[Evaluation]:
        """Evaluations that were tried and have no quality."""
        return [e for e in self.evaluations if e.failed]

    @_Part
    def ranking(self) -> list[Candidate]:
        """See above."""
        return self._candidates(self.digest["ranking"], itertools.count())

    @_Part
    def front(self) -> list[Candidate]:
        """The non-dominated ones of the ranking."""
        return [candidate for candidate in self.ranking if candidate.on_front]

    @_Part
    def baseline(self) -> Candidate | None:
        """Where it has a usable evaluation."""
        own = self.digest["baseline"]
        ranks = {candidate.name: candidate.rank for candidate in self.ranking}
        return own and self._candidates([own], [ranks.get(own["candidate"], -1)])[0]

    @_Part
    def controls(self) -> dict[str, Candidate]:
        """The baseline with less of what it is about, by name; those of a re-test are in `retest`.
        """
        return {one["name"]: self._candidates([one], [-1])[0]
                for one in self.digest.get("controls") or []}

    def _candidates(self, records: Iterable[dict[str, Any]],
                    ranks: Iterable[int]) -> list[Candidate]:
        known, names = self.by_id, [objective.name for objective in self.objectives]
        found = []
        for own, rank in zip(records, ranks):
            name, values = own["candidate"], [
                finite_or(own["values"][one], math.nan) for one in names]
            found.append(
                Candidate(name, own["mechanism"], self.brief(name), self.natural(values), values,
                          own["on_front"], own["first_ask"], own["times_asked"], rank, own["n"],
                          own["replicates"], own["stopped_at"],
                          [known[id_] for id_ in own["evaluations"]]))
        return found

    def environments(self) -> list[tuple[dict[str, Any], int]]:
        """The different environments in order of their first session, each with how many
        evaluations were made there. What does not say its session was made in the first."""
        counts = [0] * len(self.sessions)
        for evaluation in self.evaluations:
            session = evaluation.measured.get("session", 0)
            if session < len(counts):
                counts[session] += 1
        environments: list[tuple[dict[str, Any], int]] = []
        for session, count in zip(self.sessions, counts):
            environment = session["environment"]
            for i, (known, before) in enumerate(environments):
                if known == environment:
                    environments[i] = (known, before + count)
                    break
            else:
                environments.append((environment, count))
        return environments

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.config.get("name", "search"))

    @property
    def num_trained(self) -> int:
        """Evaluations, without those that were rejected before training."""
        return sum(not evaluation.screened_out for evaluation in self.evaluations)

    @property
    def several(self) -> bool:
        """Whether it has several objectives."""
        return len(self.objectives) > 1

    @cached_property
    def noisy(self) -> int | None:
        """The objective whose noise matters: that of the re-test; else the first that training
        determines, or whose source is not recorded; else the first that was measured, see
        measured_once(). None where formulas give all. Values that a loop of the user's told have no
        curves: training determines them all the same."""
        for i, objective in enumerate(self.objectives):
            if objective.name == self.retest.get("objective"):
                return i
        sources = [objective.source for objective in self.objectives]
        noisy = ("trained", "", "measured") if self.trained else ("trained",)
        return next((sources.index(source) for source in noisy if source in sources), None)

    def measured_once(self, objective: int) -> bool:
        """Whether an objective is measured of a mechanism itself, as latency: one measurement is in
        all its replicates, which therefore say nothing of how far two measurements lie apart."""
        return self.objectives[objective].source == "measured"

    def label(self, candidate: str) -> str:
        """A candidate's name for people."""
        return str(self.labels.get(candidate, candidate))

    def brief(self, candidate: str) -> str:
        """The same where there is little room, and as the verdict calls it: see
        digest.short_names().
        """
        return str(self._short_names.get(candidate) or self.label(candidate))

    def natural(self, fitness: Iterable[float]) -> list[float]:
        """From the minimisation form to the objectives' own senses, and back."""
        return [o.natural(value) for o, value in zip(self.objectives, fitness)]

    def scaled(self, fitness: Iterable[float]) -> list[float]:
        """On the objectives' fixed ranges."""
        return [o.scaled(value) for o, value in zip(self.objectives, fitness)]

    def replicates(self, candidate: Candidate, objective: int) -> dict[int, float]:
        """Values of a candidate's evaluations that came to their end, by the number of the
        replicate."""
        return {evaluation.replicate: evaluation.objectives[objective]
                for evaluation in candidate.evaluations
                if evaluation.status == "ok" and evaluation.objectives[objective] is not None}

    @cached_property
    def comparable(self) -> list[Candidate]:
        """The ranked candidates whose values may be compared: those trained to the end. What was
        stopped early has a value of another step (docs/candidates.md)."""
        return [candidate for candidate in self.ranking if candidate.stopped_at is None]

    def with_baseline(self, candidates: list[Candidate]) -> list[Candidate]:
        """Ranked candidates, and the baseline where the search did not ask for it."""
        outside = self.baseline is not None and self.baseline.rank < 0
        return candidates + ([self.baseline] if outside else [])


# Keys of the digest that objects are made from.
_OF_AN_EVALUATION = ("id", "candidate", "replicate", "status", "reason", "identity", "curve",
                     "values", "objectives", "measured", "usable", "stopped_at")
_OF_AN_ASK = ("fitness", "number", "batch", "candidate", "evaluations", "reused", "status",
              "usable", "believed", "trained", "seconds")


def _evaluations(own: Mapping[str, Any], objectives: list[str]) -> Iterator[Evaluation]:
    identities = own["identities"]
    for block in own["evaluations"].columns(*_OF_AN_EVALUATION):
        for id_, candidate, replicate, status, reason, identity, curve, values, known, *rest in zip(
                *block):
            if None in values.values():
                values = {name: value for name, value in values.items() if value is not None}
            yield Evaluation(id_, candidate, replicate, status, reason, identities[identity], curve,
                             values, [known[name] for name in objectives], *rest)


def _asks(records: Records) -> Iterator[Ask]:
    for block in records.columns(*_OF_AN_ASK):
        for fitness, number, batch, candidate, evaluations, reused, *rest in zip(*block):
            if None in fitness:
                fitness = [math.inf if value is None else value for value in fitness]
            yield Ask(number, batch, candidate, evaluations, reused, fitness, *rest)
