"""Runs as their pages take them: by nas-export, but large searches from the store itself.

What is said here of a large run is what nas-export says of it, see src/report/summary.cpp.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import gc
import hashlib
import itertools
import json
import math
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from attnas.analysis import digest, sqlite_files
from attnas.analysis.run import Candidate, Evaluation, Run, finite_or

LARGE = 2000  # evaluations: of more a page has some
_LATEST = 1000  # evaluations of a large run whose pace is known
_TRIES = 3
_FAILURE, _ROUNDING = 10.0, 1e-12  # of penalties, see ObjectiveRecord
_OTHER = "status != 'ok' OR curve != '[]'"
_LISTED = "(SELECT value FROM json_each(?))"
_LONG_NAMES = ("SELECT id FROM evaluations WHERE instr(candidate, 'pair(') OR length(candidate) - "
               "length(replace(candidate, '|', '')) != 5 LIMIT 1")  # see has_six_fields()
_TABLES = {"asks", "evaluations", "indicators", "meta", "partials", "tells"}


class WatchedRun(Run):
    """A run, and what orders its evaluations and candidates."""

    def __init__(self, path: Path, live: bool):
        super().__init__(path, live)
        self.asked: dict[str, int] = {}  # ids of asks, in their order, each with the first one
        for columns in self.digest["asks"].columns("number", "evaluations"):
            for number, ids in zip(*columns):
                for id_ in ids:
                    self.asked.setdefault(id_, number)
        self.failed = {one.id for one in self.evaluations if one.failed}
        self.curved = {one.id: one.candidate for one in self.evaluations if one.curve}

    def some(self, ids: Iterable[str]) -> list[Evaluation]:
        """Evaluations by their ids."""
        return [self.by_id[id_] for id_ in ids]

    def latest(self) -> list[Evaluation]:
        """Those whose pace counts."""
        return self.evaluations

    def newest(self, down: bool) -> list[str]:
        """Ids in the order of their asks; the baseline comes before a search, a re-test after."""
        known = self.by_id.keys()
        outside = sorted((one.replicate, one.id) for one in self.some(known - self.asked.keys()))
        after = bisect.bisect_left(outside, (digest.FIRST_HELD_OUT, ""))
        found = [*(id_ for _, id_ in outside[:after]), *(id_ for id_ in self.asked if id_ in known),
                 *(id_ for _, id_ in outside[after:])]
        return found[::-1] if down else found

    def ranked(self, names: Set[str]) -> dict[str, Candidate]:
        """Of candidates those that are ranked, by their names."""
        return {one.name: one for one in self.ranking if one.name in names}

    def best(self, objective: int) -> Candidate:
        """That of the front by one objective."""
        return min(self.front, key=lambda one: one.fitness[objective])

    def improving(self) -> Iterable[Candidate]:
        """Each candidate that was better than all before it, by the first objective."""
        best = math.inf
        for one in sorted(self.ranking, key=lambda one: one.first_ask):
            if one.stopped_at is None and one.fitness[0] < best:
                best = one.fitness[0]
                yield one


class LargeRun(WatchedRun):
    """A search without rungs and early stops, of at most three objectives, whose candidates are
    shown by their labels. Raises something of all else, and where the store is not as it must be.
    Candidates and evaluations are made where they are asked for; the SHA-256 of such evaluations
    fit. Here a candidate has a key: its name, or where evaluations differ in their candidates alone
    the id of its only one, which is shorter."""

    def __init__(self, path: Path, live: bool):  # pylint: disable=super-init-not-called
        self.path, self._select = path, _copy_of(path).execute
        (version,), = self._select("PRAGMA user_version")
        (count,), = self._select("SELECT count(*) FROM evaluations")
        tables = {name for name, in self._select("SELECT tbl_name FROM sqlite_master")}
        _require(version == 1 and count > LARGE and tables <= _TABLES)
        if "partials" in tables:
            _require(not [*self._select("SELECT id FROM partials LIMIT 1")])
        facts = {key: json.loads(value)
                 for key, value in self._checked("SELECT key, value, digest FROM meta")}
        own = self.digest = _facts(facts, live)
        config, self.objectives = own["config"], digest.objectives(own)
        _require(len(self.objectives) <= 3 and not {"mechanisms", "fidelity"} & config.keys()
                 and config.get("evaluation", {}).get("repeated") != "retrain"
                 and not any(config["budget"].get(f"{key}_seconds") for key in ("train", "gpu")))
        if "space" in config:
            _require(not [*self._select(_LONG_NAMES)])
        self._read_evaluations()
        self._read_asks()
        self._count()
        value, = self._select("SELECT * FROM indicators ORDER BY asked DESC LIMIT 1")
        own["hypervolume" if self.several else "best"] = {
            "trace": [{"asked": value[0], "value": value[4]}]}
        self._take(own)
        self.baseline = self._baseline_of(facts.get("baseline") or {})

    def _checked(self, sql: str, values: Sequence[str] = ()) -> Iterator[Sequence]:
        """Rows without their last column, which is the SHA-256 of the others."""
        for *row, sha256 in self._select(sql, values):
            texts = [str(value).encode() for value in row]
            text = b"".join(b"%d:%b" % (len(own), own) for own in texts)
            if hashlib.sha256(text).digest() != sha256:
                raise digest.BadInput(f"{self.path}: {row[0]} is damaged: its SHA-256 "
                                      f"does not fit; see nas-run verify {self.path.parent}")
            yield row

    def _read_evaluations(self) -> None:
        (low, high, others), = self._select(f"SELECT min(identity), max(identity), sum({_OTHER}) "
                                            "FROM evaluations")
        self._alike = low == high
        key = "id" if self._alike else "candidate"
        self.by_id = dict(self._select(f"SELECT id, {key} FROM evaluations"))  # keys
        self._keys: dict[str, str] = {}  # by names, as far as they were met
        rows = sorted(self._select("SELECT id, candidate, status, curve != '[]' FROM evaluations "
                                   f"WHERE {_OTHER}")) if others else []
        self.curved = {id_: name for id_, name, _, curve in rows if curve}
        self._unusable = {id_: status for id_, _, status, _ in rows if status != "ok"}
        _require(not {"paused", "stopped_early"}.intersection(self._unusable.values()))
        self.failed = {id_ for id_, status in self._unusable.items() if status != "rejected"}

    def _read_asks(self) -> None:
        """What the search believes of candidates, which is its latest answer, and their order."""
        numbers, lists, answers = zip(*self._select(
            "SELECT number, evaluations, fitness FROM asks ORDER BY number"))
        lists, answers = (json.loads(f"[{','.join(texts)}]") for texts in (lists, answers))
        _require({*map(type, lists)} == {list} and {*map(len, answers)} == {len(self.objectives)}
                 and {*map(type, itertools.chain.from_iterable(answers))} <= {float, int})
        (reused,), = self._select("SELECT sum(reused) FROM asks")
        self.digest["counts"] |= {"asked": len(numbers), "reused": reused}
        keys = [self.by_id[ids[0]] for ids in lists]
        every = [id_ for ids in lists for id_ in ids]
        of = [number for number, ids in zip(numbers, lists) for _ in ids]
        self.asked = dict.fromkeys(every, 0) | dict(zip(reversed(every), reversed(of)))
        self._first = self.asked if self._alike else dict(zip(reversed(keys), reversed(numbers)))
        last = dict(zip(keys, range(len(keys))))  # in the order of their first asks
        if self._unusable or self.digest["config"].get("constraints"):
            usable = list(map(self._is_usable, lists, answers))
            last = {key: i for key, i in last.items() if usable[i]}
        self._num_usable: Mapping[str, int] | None = None  # one each
        if self._unusable or len(self._first) < len(self.asked):
            self._num_usable = Counter(
                self.by_id[id_] for id_ in self.asked.keys() - self._unusable.keys())
        _require(bool(last))
        self._answers, self._last, ranked = answers, last, [*last]
        columns = [[answers[i][j] for i in last.values()] for j in range(len(self.objectives))]
        order = sorted(range(len(last)), key=columns[0].__getitem__)
        front = _front(columns, order)
        self._front = [ranked[i] for i in order if i in front]
        self.ranking = _Candidates(self._candidates, self._front + [
            ranked[i] for i in order if i not in front])
        self.front = self.ranking[:len(self._front)]

    def _candidates(self, keys: Sequence[str]) -> list[Candidate]:
        names = dict(self._select(f"SELECT id, candidate FROM evaluations WHERE id IN {_LISTED}",
                                  (json.dumps(keys),))) if self._alike else {}
        self._keys |= {name: key for key, name in names.items()}
        found = []
        for key in keys:
            name, point = names.get(key, key), self._answers[self._last[key]]
            n = 1 if self._num_usable is None else self._num_usable[key]
            label = self.labels.get(name, name)
            found.append(Candidate(name, label, label, point, self.natural(point), False,
                                   self._first[key], 0, -1, n, n, None, []))
        return found

    def _is_usable(self, ids: list[str], answer: list[float]) -> bool:
        """Whether an answer is of a quality, not a penalty."""
        return not self._unusable.keys() >= {*ids} and any(
            abs(value - one.penalty) > _ROUNDING * abs(one.penalty)
            for value, one in zip(answer, self.objectives))

    def _count(self) -> None:
        asked, every = self.asked.keys(), self.by_id.keys()
        screened = {id_ for id_, status in self._unusable.items()
                    if status == "rejected" and id_ not in self.curved}
        failures = self._unusable.keys() - screened
        inside = len(asked - screened)
        self.digest["counts"] |= {"evaluated": inside, "rejected": len(screened & asked),
                                  "stopped_early": 0, "failures": len(failures & asked)}
        self.digest["outside_the_search"] = {"evaluated": len(every) - len(screened) - inside,
                                             "failures": sorted(failures - asked)}

    def _baseline_of(self, record: dict[str, Any]) -> Candidate | None:
        """As RunSummary::find_baseline()."""
        ids = [id_ for id_ in record.get("evaluations", ()) if id_ in self.by_id]
        n = sum(id_ not in self._unusable for id_ in ids)
        point = [value for value in record.get("fitness", ()) if finite_or(value, None) is not None]
        if not n or len(point) != len(self.objectives):
            return None
        evaluations, key = self.some(ids), self.by_id[ids[0]]
        if self._num_usable and key in self._last and self._num_usable[key] > n:
            found, = self._candidates([key])
            return dataclasses.replace(found, evaluations=self.some(
                id_ for id_ in self.asked if self.by_id[id_] == key))
        name = evaluations[0].candidate
        label = self.labels.get(name, name)
        return Candidate(name, label, label, point, self.natural(point), False, -1, 0, -1, n, n,
                         None, evaluations)

    def ranked(self, names: Set[str]) -> dict[str, Candidate]:
        keys = {name: self._keys.get(name, name) for name in names}
        return {one.name: one for one in self._candidates(
            [key for key in keys.values() if key in self._last])}

    def best(self, objective: int) -> Candidate:
        return self._candidates([min(
            self._front, key=lambda key: self._answers[self._last[key]][objective])])[0]

    def improving(self) -> Iterable[Candidate]:
        best, keys = math.inf, []
        for key, i in self._last.items():
            if self._answers[i][0] < best:
                best = self._answers[i][0]
                keys.append(key)
        return self._candidates(keys)

    def some(self, ids: Iterable[str]) -> list[Evaluation]:
        ids = list(ids)
        found = {one.id: one
                 for one in self._evaluations(f"WHERE id IN {_LISTED}", (json.dumps(ids),))}
        self._keys |= {one.candidate: self.by_id[one.id] for one in found.values()}
        return [found[id_] for id_ in ids]

    def latest(self) -> list[Evaluation]:
        return list(self._evaluations(f"ORDER BY rowid DESC LIMIT {_LATEST}"))

    @property
    def evaluations(self) -> list[Evaluation]:
        """All of them, in the order of their ids: not kept, since few pages need them."""
        return list(self._evaluations("ORDER BY id"))

    def _evaluations(self, which: str, values: Sequence[str] = ()) -> Iterator[Evaluation]:
        for id_, candidate, replicate, status, reason, _, *texts in self._checked(
                'SELECT id, candidate, replicate, status, reason, identity, curve, "values", '
                f"measured, digest FROM evaluations {which}", values):
            curve, quantities, measured = map(json.loads, texts)
            for point in curve:
                point["valid"] = {key: None if isinstance(value, str) else value
                                  for key, value in point["valid"].items()}
            yield Evaluation(
                id_, candidate, replicate, status, reason, {}, curve, quantities,
                [self._value(id_, i, quantities, measured) for i in range(len(self.objectives))],
                measured, status == "ok", None)

    def _value(self, id_: str, i: int, quantities: dict, measured: dict) -> float | None:
        """As RunSummary::value()."""
        name = self.objectives[i].name
        own = measured.get(name)
        found = finite_or(own.get("value"), None) if isinstance(own, dict) else None
        return finite_or(quantities.get(name, own), None) if found is None else found


class _Candidates(Sequence):
    """Candidates that are made whenever they are asked for."""

    def __init__(self, make: Callable[[Sequence[str]], list[Candidate]], keys: list[str]):
        self._make, self._keys = make, keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return _Candidates(self._make, self._keys[index])
        return self._make([self._keys[index]])[0]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._make(self._keys))


def read(store: Path, live: bool) -> WatchedRun:
    """A run as it is now. Raises digest.BadInput.

    @param live  whether a process writes it. """
    gc.disable()  # millions of objects that are no garbage
    try:
        with contextlib.suppress(Exception):
            return LargeRun(store, live)
        return WatchedRun(store, live)  # which says what is wrong
    finally:
        gc.enable()


def _require(plain: bool) -> None:
    if not plain:
        raise ValueError


def _copy_of(store: Path) -> sqlite3.Connection:
    """What is committed in a store, of which nothing is locked: see StoreCopy."""
    journal, rollback = Path(f"{store}-wal"), Path(f"{store}-journal")

    def state() -> tuple[bytes, tuple[int, ...]]:
        _require(not rollback.exists() or rollback.stat().st_size == 0)
        head = b""
        if journal.exists():
            with open(journal, "rb") as file:
                head = file.read(32)
        own = store.stat()
        return head, () if head else (own.st_ino, own.st_size, own.st_mtime_ns)

    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            before, copy = state(), Path(folder) / "store.sqlite"
            shutil.copyfile(store, copy)
            if before[0]:
                shutil.copyfile(journal, f"{copy}-wal")
            if state() == before:
                connection = sqlite_files.open_read_only(copy)
                connection.execute("SELECT count(*) FROM meta").fetchone()
                return connection  # its files go with it
    raise ValueError


def _facts(own: dict[str, Any], live: bool) -> dict[str, Any]:
    """A digest's facts, of those of a store."""
    known = (own.get("schema") or {}).get("objectives", {})
    goals = []
    for one in own["objectives"]:
        best, worst = finite_or(one.get("best"), 0.0), finite_or(one.get("worst"), 1.0)
        sign = -1 if one["maximise"] else 1
        goals.append({**one, "best": best, "worst": worst,
                      "source": known.get(one["key"], {}).get("source"),
                      "penalty": sign * best + _FAILURE * (sign * worst - sign * best)})
    keys = ("facts", "sessions", "config", "retest", "ended_by", "elapsed_seconds",
            "planned_asks", "planned_trainings", *(("at_work", "asking") if live else ()))
    return {"labels": own.get("labels") or {}, "record_schema": own.get("schema"), "models": None,
            "rejected": [], "knee": None, "reference_point": own.get("reference_point"),
            "counts": {}, "objectives": goals, **{key: own.get(key) for key in keys}}


def _front(columns: Sequence[Sequence[float]], order: Sequence[int]) -> set[int]:
    """Places of points that no other one covers; of equal ones the first.

    @param order  ascends by the first column, and by places. """
    first, second, third = [*columns, *[[0.0] * len(order)] * 2][:3]
    found: set[int] = set()
    # Further objectives, one up, one down, with the first and the place: of what none covers there.
    stairs: list[tuple[float, float, float, int]] = []
    least: tuple[float, ...] = math.inf, math.inf  # the one of these that covered the last one
    for i in order:
        y, z = second[i], third[i]
        if y >= least[0] and z >= least[1]:
            continue
        at = bisect.bisect_right(stairs, (y, math.inf))
        if at and stairs[at - 1][1] <= z:
            least = stairs[at - 1]
            continue
        begin = at - (at > 0 and stairs[at - 1][0] == y)
        while at < len(stairs) and stairs[at][1] >= z:
            at += 1
        found -= {place for *_, x, place in stairs[begin:at] if x == first[i]}
        found.add(i)
        least = y, z, first[i], i
        stairs[begin:at] = [least]
    return found
