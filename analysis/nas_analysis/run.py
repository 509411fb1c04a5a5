"""One run as its store records it, digested: what the page of a run is made from.

Fitness is in minimisation form, values are in an objective's own sense and unit.
"""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Iterable

import numpy as np

from nas_analysis import sqlite_files
from nas_analysis.belief import LATEST, beliefs, rule
from nas_analysis.indicators import non_dominated
from nas_analysis.schema import PENALTY, schema

SCHEMA_VERSIONS = (2, 3)  # those that can be read


@dataclass(frozen=True)
class Indicator:
    """How far the search had come after a batch; value: hypervolume, or the best value."""

    asked: int
    value: float


class BadInput(Exception):
    """What was given cannot be read; the text says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Objective:
    """An objective as a run recorded it; `best` and `worst` are the ends of its fixed range."""

    name: str
    key: str
    unit: str
    maximise: bool
    best: float
    worst: float

    def natural(self, fitness: float) -> float:
        """From the minimisation form to the objective's own sense, and back."""
        return -fitness if self.maximise else fitness

    def scaled(self, fitness: float) -> float:
        """0 = best, 1 = worst end of the range."""
        return (self.natural(fitness) - self.best) / (self.worst - self.best)

    @property
    def penalty(self) -> float:
        """What a candidate without a usable answer has, in minimisation form."""
        best, worst = ((-self.best, -self.worst) if self.maximise else (self.best, self.worst))
        return best + PENALTY * (worst - best)

    def is_better(self, a: float, b: float) -> bool:
        """Whether value a is better than value b."""
        return a > b if self.maximise else a < b

    @property
    def title(self) -> str:
        """Name, unit, and "max" where it is maximised."""
        inside = [] if self.unit == "1" else [self.unit]
        if self.maximise:
            inside.append("max")
        return f"{self.name} ({', '.join(inside)})" if inside else self.name


@dataclass
class Evaluation:
    """One candidate measured once."""

    id: str
    candidate: str
    replicate: int
    status: str
    reason: str
    identity: dict[str, Any]
    trained: bool  # whether it has a training curve
    values: dict[str, float]
    measured: dict[str, Any]
    usable: bool  # whether it has a measured quality
    stopped_at: int = 0  # step at which it was stopped early; 0: it was not

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


@dataclass
class Ask:
    """One answer to the algorithm."""

    number: int
    batch: int
    genotype: str
    evaluations: list[str]
    reused: bool
    fitness: list[float]
    status: str = "failed"  # of the candidate, see Judgement in src/evaluation/judgement.hpp
    usable: bool = False  # whether the candidate has a measured quality; else a penalty answered
    believed: list[float] = field(default_factory=list)  # of the candidate by then, where usable


@dataclass
class Candidate:
    """One mechanism, with everything that the search learnt about it."""

    name: str
    label: str
    fitness: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    on_front: bool = False
    first_ask: int = -1  # -1: outside the search
    times_asked: int = 0
    rank: int = -1  # place in Run.ranking
    wanted: int = 1  # evaluations that it should have: n is less where some failed
    stopped_at: int | None = None  # first step at which a training run was stopped early
    evaluations: list[Evaluation] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Evaluations used: the usable ones."""
        return sum(evaluation.usable for evaluation in self.evaluations)

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
    """A JSON number, or `otherwise` for all else; non-finite numbers are written as texts."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return otherwise
    return float(value) if math.isfinite(value) else otherwise


def _number(value: Any) -> float:
    """A number of the store, whose non-finite ones are null or the texts nan, inf and -inf."""
    return math.inf if value is None else float(value)


def _recorded(evaluation: Evaluation, name: str) -> float | None:
    """A quantity of one evaluation by its name; None where it is not recorded. In the order of
    recorded_number in src/report/summary.cpp."""
    measured = evaluation.measured.get(name)
    # First, since an objective may have been given the name of another quantity.
    named = measured.get("value") if isinstance(measured, dict) else None
    for found in (named, evaluation.values.get(name), measured):
        value = finite_or(found, math.nan)
        if not math.isnan(value):
            return value
    return None


def _last_step(curve: str) -> int:
    points = json.loads(curve)
    return int(points[-1].get("step", 0)) if points else 0


def _open(path: Path) -> sqlite3.Connection:
    file = path / "store.sqlite" if path.is_dir() else path
    if not file.is_file():
        raise BadInput(f"{path}: no such store; give a run's folder or its store.sqlite")
    try:
        connection = sqlite_files.open_read_only(file)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{file}: not a readable store: {error}") from error
    if version not in SCHEMA_VERSIONS:
        raise BadInput(
            f"{file}: not a store of version {SCHEMA_VERSIONS[-1]} (its version is {version})"
        )
    return connection


class Run:
    """A run's store, digested as the closing table of nas-run digests it.

    ranking holds the usable candidates of the search: with one objective the best first, with
    several the front, then the others, both by the first objective. What was stopped early comes
    last, and is neither best nor on the front as long as another one is ok. A candidate's fitness is
    what the search believes of it, see belief.py.
    """

    def __init__(self, path: Path):
        """Reads a run's folder or store. Raises BadInput."""
        connection = _open(path)
        try:
            self.meta: dict[str, Any] = {key: json.loads(value) for key, value in
                                         sqlite_files.records(connection, "meta")}
            self.schema = schema(self.meta.get("schema"))
            self.evaluations = [
                Evaluation(
                    row[0], row[1], row[2], row[3], row[4], json.loads(row[5]), row[6] != "[]",
                    {k: _number(v) for k, v in json.loads(row[7]).items()}, json.loads(row[8]),
                    row[3] in self.schema.usable,
                    _last_step(row[6]) if row[3] == "stopped_early" else 0,
                )
                for row in sqlite_files.records(connection, "evaluations")
            ]
            self.asks = [
                Ask(
                    row[0], row[1], row[2], json.loads(row[3]), bool(row[4]),
                    [_number(value) for value in json.loads(row[5])],
                )
                for row in sqlite_files.records(connection, "asks")
            ]
            self.indicators = [
                Indicator(*row) for row in connection.execute(
                    "SELECT asked, value FROM indicators ORDER BY asked")
            ]
        except (sqlite3.DatabaseError, ValueError, RecursionError) as error:
            raise BadInput(f"{path}: not a readable store: {error}") from error
        finally:
            connection.close()
        self.config: dict[str, Any] = self.meta.get("config") or {}
        self.facts: dict[str, Any] = self.meta.get("facts") or {}
        self.sessions = self._read_sessions()
        self.labels: dict[str, str] = self.meta.get("labels") or {}
        self.objectives = self._read_objectives()
        self.trained = any(e.trained for e in self.evaluations)  # so that values depend on seeds
        self.failures = [e for e in self.evaluations if e.failed]
        self.constraints = [str(text) for text in self.config.get("constraints") or []]
        self.by_id = {evaluation.id: evaluation for evaluation in self.evaluations}
        self._answered_alone: dict[str, Ask] = {}
        self.searched: list[Evaluation] = []  # the search's own, in the order asked; not rejected ones
        self.rejected: dict[str, str] = {}  # why candidates broke a constraint, in the order asked
        self.ranking: list[Candidate] = []
        self._digest_asks()
        self._find_front()
        self.front = [candidate for candidate in self.ranking if candidate.on_front]
        self.baseline = self._find_baseline()

    def _read_sessions(self) -> list[dict[str, Any]]:
        """The processes that worked on the run, as Store::sessions gives them."""
        sessions = self.meta.get("sessions")
        if sessions is None and self.meta.get("environment"):
            sessions = [{"environment": self.meta["environment"]}]
        return sessions or []

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

    def _read_objectives(self) -> list[Objective]:
        objectives = [
            Objective(
                name=str(record["name"]),
                key=str(record.get("key", record["name"])),
                unit=str(record.get("unit", "1")),
                maximise=bool(record.get("maximise", False)),
                best=finite_or(record.get("best"), 0.0),
                worst=finite_or(record.get("worst"), 1.0),
            )
            for record in self.meta.get("objectives") or []
        ]
        return objectives or [Objective("objective", "", "1", False, 0.0, 1.0)]

    def _digest_asks(self) -> None:
        candidates: dict[str, Candidate] = {}
        seen: set[str] = set()
        for ask in self.asks:
            name = self.candidate_of(ask)
            candidate = candidates.setdefault(name, Candidate(name, self.label(name)))
            if candidate.first_ask < 0:
                candidate.first_ask = ask.number
            candidate.times_asked += 1
            for id_ in ask.evaluations:
                if id_ not in seen:
                    seen.add(id_)
                    candidate.evaluations.append(self.by_id[id_])
                    if not self.by_id[id_].screened_out:
                        self.searched.append(self.by_id[id_])
            ask.status = self._status(ask)
            ask.usable = ask.status in self.schema.usable
            if ask.usable and len(ask.evaluations) == 1:
                self._answered_alone[ask.evaluations[0]] = ask
        self._believe(candidates)
        self.ranking = [candidate for candidate in candidates.values() if candidate.fitness]
        for candidate in self.ranking:
            candidate.values = self.natural(candidate.fitness)
            candidate.wanted = self._wanted(candidate)
        last = {self.candidate_of(ask): ask for ask in self.asks}
        for name, candidate in candidates.items():
            if not candidate.fitness and last[name].status == "rejected":
                first = candidate.evaluations[0]
                self.rejected[name] = (first.reason if first.status == "rejected"
                                       else self._broken_constraint(last[name]))

    def _wanted(self, candidate: Candidate) -> int:
        replicates = (self.config.get("evaluation") or {}).get("replicates", 1)
        return max(int(replicates), len(candidate.evaluations))

    def _status(self, ask: Ask) -> str:
        """What answered an ask: that the candidate failed or broke a constraint the record says by
        its fitness, a penalty. See RunSummary::status in src/report/summary.cpp."""
        evaluations = [self.by_id[id_] for id_ in ask.evaluations]
        failures = [e.status for e in evaluations if not e.usable]
        # The record lists statuses from good to bad.
        worst = max(failures, key=self.schema.statuses.index) if failures else None
        measured = (
            len(ask.fitness) == len(self.objectives)
            and all(math.isfinite(value) for value in ask.fitness)
            and len(failures) < len(evaluations)
        )
        if not measured:
            return worst or "failed"
        penalised = all(math.isclose(value, objective.penalty, rel_tol=1e-12)
                        for objective, value in zip(self.objectives, ask.fitness))
        if penalised and worst:
            return worst
        if penalised and self.constraints:
            return "rejected"
        return "stopped_early" if any(e.stopped_at for e in evaluations) else "ok"

    def _broken_constraint(self, ask: Ask) -> str:
        """Which constraint the means over an ask's replicates break, as far as they are recorded."""
        evaluations = [self.by_id[id_] for id_ in ask.evaluations]
        for text in self.constraints:
            name, comparison, bound = text.split()
            values = [_recorded(evaluation, name) for evaluation in evaluations]
            if any(value is None for value in values):
                continue
            mean = sum(values) / len(values)
            if mean > float(bound) if comparison == "<=" else mean < float(bound):
                over = f" (over {len(values)} replicates)" if len(values) > 1 else ""
                return f"{name} = {mean:.6g}, must be {comparison} {bound}{over}"
        return "breaks one of the constraints " + ", ".join(self.constraints)

    def _believe(self, candidates: dict[str, Candidate]) -> None:
        by = rule(self.config.get("evaluation") or {})
        latest = {self.candidate_of(ask): ask.number for ask in self.asks}
        # What was stopped early is believed only of those that were never trained to the end.
        for status in ("stopped_early", "ok"):
            asks = [ask for ask in self.asks if ask.status == status]
            if not asks:
                continue
            names = [self.candidate_of(ask) for ask in asks]
            believed = beliefs(names, np.array([ask.fitness for ask in asks]), by).tolist()
            for ask, name, belief in zip(asks, names, believed):
                ask.believed = belief
                # The latest answer is the mean over all that is known, unless each stands alone.
                if by != LATEST or latest[name] == ask.number:
                    candidates[name].fitness = belief
                    candidates[name].stopped_at = None if status == "ok" else min(
                        e.stopped_at for e in candidates[name].evaluations if e.stopped_at)

    def _find_front(self) -> None:
        if not self.ranking:
            return
        whole = [c for c in self.ranking if c.stopped_at is None] or self.ranking
        points = np.array([candidate.fitness for candidate in whole])
        for candidate, member in zip(whole, non_dominated(points)):
            candidate.on_front = bool(member)
        self.ranking.sort(key=lambda c: (not c.on_front, c.stopped_at is not None, c.fitness[0],
                                         c.first_ask))
        for rank, candidate in enumerate(self.ranking):
            candidate.rank = rank

    def _find_baseline(self) -> Candidate | None:
        record = self.meta.get("baseline")
        if not isinstance(record, dict):
            return None
        evaluations = [self.by_id[i] for i in record.get("evaluations", []) if i in self.by_id]
        fitness = [finite_or(value, math.inf) for value in record.get("fitness", [])]
        if (
            not any(evaluation.usable for evaluation in evaluations)
            or len(fitness) != len(self.objectives)
            or not all(math.isfinite(value) for value in fitness)
        ):
            return None
        name = evaluations[0].candidate
        found = Candidate(name, self.label(name), fitness, self.natural(fitness))
        found.evaluations = evaluations
        found.wanted = self._wanted(found)
        for candidate in self.ranking:
            if candidate.name == name:
                found.first_ask, found.on_front = candidate.first_ask, candidate.on_front
                found.times_asked, found.rank = candidate.times_asked, candidate.rank
        return found

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.config.get("name", "search"))

    @property
    def ended(self) -> bool:
        """Whether its search has ended; else it is running, or was interrupted."""
        return bool(self.meta.get("ended_by"))

    @property
    def planned_asks(self) -> int | None:
        """Asks that the whole search makes, as far as that was known when it began."""
        return self.meta.get("planned_asks")

    @property
    def several(self) -> bool:
        """Whether it has several objectives."""
        return len(self.objectives) > 1

    @cached_property
    def noisy(self) -> int | None:
        """The objective whose noise matters: the first that no formula gives; None without one."""
        wanted = (self.meta.get("retest") or {}).get("objective")
        for i, objective in enumerate(self.objectives):
            if objective.name == wanted:
                return i
        if not self.trained:
            return None
        return next((i for i, o in enumerate(self.objectives)
                     if not self.schema.is_analytic(o.key)),
                    None)

    def label(self, candidate: str) -> str:
        """A candidate's name for people."""
        return str(self.labels.get(candidate, candidate))

    def candidate_of(self, ask: Ask) -> str:
        """Canonical name of what was asked for."""
        return self.by_id[ask.evaluations[0]].candidate

    def natural(self, fitness: Iterable[float]) -> list[float]:
        """From the minimisation form to the objectives' own senses."""
        return [o.natural(value) for o, value in zip(self.objectives, fitness)]

    def scaled(self, fitness: Iterable[float]) -> list[float]:
        """On the objectives' fixed ranges."""
        return [o.scaled(value) for o, value in zip(self.objectives, fitness)]

    def value(self, evaluation: Evaluation, objective: int) -> float | None:
        """An objective's value of a single evaluation; None where it is not known."""
        found = _recorded(evaluation, self.objectives[objective].name)
        if found is None and evaluation.id in self._answered_alone:
            ask = self._answered_alone[evaluation.id]
            found = self.objectives[objective].natural(ask.fitness[objective])
        return found

    def replicates(self, candidate: Candidate, objective: int) -> dict[int, float]:
        """Values of a candidate's evaluations that came to their end, by the number of the
        replicate."""
        found = {}
        for evaluation in candidate.evaluations:
            value = self.value(evaluation, objective) if evaluation.status == "ok" else None
            if value is not None:
                found[evaluation.replicate] = value
        return found

    @cached_property
    def comparable(self) -> list[Candidate]:
        """The ranked candidates whose values may be compared: those trained to the end. What was
        stopped early has a value of another step (docs/candidates.md)."""
        return [candidate for candidate in self.ranking if candidate.stopped_at is None]

    def with_baseline(self, candidates: list[Candidate]) -> list[Candidate]:
        """Ranked candidates, and the baseline where the search did not ask for it."""
        outside = self.baseline is not None and self.baseline.rank < 0
        return candidates + ([self.baseline] if outside else [])
