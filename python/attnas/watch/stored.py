"""Runs as their pages take them: from the store itself, of which no more is read than they show.

What is said here of a run is what nas-export says of it, see src/report/summary.cpp.
"""

from __future__ import annotations

import bisect
import contextlib
import gc
import hashlib
import itertools
import json
import math
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any

from attnas.analysis import digest, sqlite_files
from attnas.analysis.indicators import non_dominated
from attnas.analysis.run import DAMAGE, Candidate, Evaluation, Run, finite_or

_TRIES, _BETWEEN = 50, 0.02  # s
_FAILURE, _ROUNDING = 10.0, 1e-12  # of penalties, see ObjectiveRecord
_ENDED = ("ok", "stopped_early")
_UNUSABLE, _STOPPED, _OK = range(3)  # what answers are
_SPENT = ("ifnull(json_extract(measured, '$.train_seconds'), 0) + "
          "ifnull(json_extract(measured, '$.failed_seconds'), 0)")
_LAST = "json_extract(curve, '$[#-1].step')"
_LISTED = "id IN (SELECT value FROM json_each(?))"
_LONG_NAMES = ("SELECT id FROM evaluations WHERE instr(candidate, 'pair(') OR length(candidate) - "
               "length(replace(candidate, '|', '')) != 5 LIMIT 1")  # see has_six_fields()
_UNNAMED = {"name": "objective", "key": "", "unit": "1", "maximise": False}


class StoredRun(Run):
    """A run. The SHA-256 of each evaluation that is made fits. A candidate has a key: its name, or
    where evaluations differ in their candidates alone the id of its only one, which is shorter.
    `ranked` and `front` are keys in the order of Run.ranking."""

    def __init__(self, path: Path, live: bool, before: StoredRun | None = None):
        """@param live  whether a process writes it. @param before  the run as it was, if known.
        Raises digest.BadInput."""
        # pylint: disable=super-init-not-called
        self.path = path
        gc.disable()  # millions of objects that are no garbage
        try:
            self._select = _copy_of(path).execute
            self._read(live, before)
        except (sqlite3.Error, shutil.SpecialFileError) as error:
            raise digest.BadInput(f"{path}: not a readable store: {error}") from None
        except DAMAGE as error:
            raise self.damaged(error) from None
        finally:
            gc.enable()

    def _read(self, live: bool, before: StoredRun | None) -> None:
        (version,), = self._select("PRAGMA user_version")
        if version != 1:
            raise digest.BadInput(
                f"{self.path}: not a store of version 1 (its version is {version})")
        facts = {key: json.loads(value)
                 for key, value in self._checked("SELECT key, value, digest FROM meta")}
        own = self.digest = _facts(facts, live)
        self.objectives = digest.objectives(own)
        self._read_evaluations()
        self._read_asks()
        trace = self._select("SELECT asked, value FROM indicators ORDER BY asked DESC LIMIT 1")
        own["hypervolume" if self.several else "best"] = {
            "trace": [{"asked": asked, "value": value} for asked, value in trace]}
        self._take(own)
        self.training = {one["candidate"] for array in (self.at_work or {"arrays": ()})["arrays"]
                         for one in array["trainings"]}
        self.baseline = self._baseline_of(facts.get("baseline") or {})
        self.models = self._models(before)

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
        tables = {name for name, in self._select("SELECT tbl_name FROM sqlite_master")}
        # By ids: candidates, the steps at which they are paused, seconds.
        self.paused: dict[str, tuple] = {id_: tuple(own) for id_, *own in self._select(
            f"SELECT id, candidate, step, {_SPENT} FROM partials "
            "WHERE id NOT IN (SELECT id FROM evaluations)")} if "partials" in tables else {}
        (low, high), = self._select("SELECT min(identity), max(identity) FROM evaluations")
        self._alike = low == high and not self.paused
        key = "id" if self._alike else "candidate"
        self.by_id = dict(self._select(f"SELECT id, {key} FROM evaluations"))  # keys
        self._keys: dict[str, str] = {}  # by names, as far as they were met
        rows = sorted(self._select(
            "SELECT id, candidate, status, curve != '[]', CASE status WHEN 'stopped_early' "
            f"THEN {_LAST} END FROM evaluations WHERE status != 'ok' OR curve != '[]'"))
        self.curved = {id_: name for id_, name, _, curve, _ in rows if curve}
        self._stops = {id_: step for id_, _, status, _, step in rows if status == "stopped_early"}
        self._unusable = {id_: status for id_, _, status, *_ in rows if status not in _ENDED}
        self.failed = {id_ for id_, status in self._unusable.items() if status != "rejected"}

    def _read_asks(self) -> None:
        """What the search believes of candidates, their order, and ids with their first asks."""
        numbers, lists, answers, reused = [*zip(*self._select(
            "SELECT number, evaluations, fitness, reused FROM asks ORDER BY number"))] or [()] * 4
        lists, answers = (json.loads(f"[{','.join(texts)}]") for texts in (lists, answers))
        searched = {id_ for ids in lists for id_ in ids}
        self.digest["counts"] = {"asked": len(numbers), "reused": sum(reused)}
        if dict in {*map(type, lists)}:
            numbers, lists, answers = self._whole(numbers, lists, answers)
        self._count(searched)
        known = {id_: own[0] for id_, own in self.paused.items()} | self.by_id
        keys = [ids[0] for ids in lists] if self._alike else [known[ids[0]] for ids in lists]
        every = [id_ for ids in lists for id_ in ids]
        of = [number for number, ids in zip(numbers, lists, strict=True) for _ in ids]
        self.asked = dict.fromkeys(every, 0) | dict(zip(reversed(every), reversed(of)))
        self._first = self.asked if self._alike else dict(zip(reversed(keys), reversed(numbers)))
        usable = map(known.__getitem__, self.asked.keys() - self._unusable.keys())
        self._num_usable = Counter(dict.fromkeys(usable, 1) if self._alike else usable)
        self._lists, self._answers, self._kinds = lists, answers, self._judged(lists, answers)
        self._rank(keys)

    def _whole(self, *columns: Sequence) -> list[Sequence]:
        """Asks that were not answered at a rung, of which the id comes with its step. What the
        search has paused there and others have trained on, the baseline or the run that it reuses,
        is still paused."""
        furthest: dict[str, float] = {}
        for ids in columns[1]:
            id_ = next(iter(ids))
            until = ids[id_] if isinstance(ids, dict) else math.inf
            furthest[id_] = max(until, furthest.get(id_, 0))
        ends = {id_: step for id_, (_, step, _) in self.paused.items()}
        for id_, candidate, status, curve, seconds in self._select(
                "SELECT id, candidate, status, curve, json_extract(measured, '$.failed_seconds') "
                f"FROM evaluations WHERE {_LISTED}",
                (json.dumps([id_ for id_, step in furthest.items() if step < math.inf]),)):
            for point in json.loads(curve)[:-1 if status in _ENDED else None]:
                if point["step"] == furthest[id_] and None not in (
                        finite_or(x, None) for x in (point["train_nll"], point["valid"]["nll"])):
                    self.paused[id_] = candidate, furthest[id_], point["seconds"] + (seconds or 0)
        ends |= dict(self._select(f"SELECT id, {_LAST} FROM evaluations WHERE {_LISTED}",
                                  (json.dumps([*furthest]),)))
        whole = [isinstance(ids, list) or any((ends[id_] or 0) < ids[id_] for id_ in ids)
                 for ids in columns[1]]
        return [[[*one] if isinstance(one, dict) else one for one in itertools.compress(own, whole)]
                for own in columns]

    def _judged(self, lists: list[list[str]], answers: list[list]) -> Sequence[int]:
        """What answers are, as RunSummary::status()."""
        goals, unusable = self.objectives, self._unusable.keys()
        constrained = self.digest["config"].get("constraints")

        def kind(ids: list[str], answer: list) -> int:
            if len(answer) != len(goals) or unusable >= {*ids} or None in (
                    finite_or(value, None) for value in answer):
                return _UNUSABLE
            penalty = all(abs(value - one.penalty) <= _ROUNDING * abs(one.penalty)
                          for value, one in zip(answer, goals))
            if penalty and (constrained or not unusable.isdisjoint(ids)):
                return _UNUSABLE
            return _OK if self._stops.keys().isdisjoint(ids) else _STOPPED

        plain = not (unusable or self._stops or constrained or {*map(len, answers)} - {len(goals)})
        if plain and {*map(type, itertools.chain.from_iterable(answers))} <= {float, int}:
            return [_OK] * len(answers)
        return list(map(kind, lists, answers))

    def _rank(self, keys: list[str]) -> None:
        """Believes of each candidate its latest answer, or the mean over its answers where all ask
        trains it afresh, as Belief does, and puts candidates in their order."""
        beliefs = dict(zip(keys, zip(self._kinds, self._answers)))
        if self.digest["config"].get("evaluation", {}).get("repeated") == "retrain":
            means: dict[str, tuple[int, list, int]] = {}
            for key, kind, answer in zip(keys, self._kinds, self._answers):
                old, point, n = means.get(key, (_UNUSABLE, [], 0))
                if kind > old:
                    means[key] = kind, answer, 1
                elif kind == old != _UNUSABLE:
                    means[key] = kind, [a + (b - a) / (n + 1) for a, b in zip(point, answer)], n + 1
            beliefs |= {key: own[:2] for key, own in means.items()}
        self._points = {key: point for key, (kind, point) in beliefs.items() if kind}
        self._stopped: dict[str, int] = {}  # steps
        for id_ in self._stops.keys() & self.asked.keys():
            key, step = self.by_id[id_], self._stops[id_]
            if step is not None and beliefs[key][0] == _STOPPED:
                self._stopped[key] = min(step, self._stopped.get(key, step))
        whole = [key for key in self._points if key not in self._stopped] or [*self._points]
        members = non_dominated([self._points[key] for key in whole])
        front = {*itertools.compress(whole, members)}
        first = {key: point[0] for key, point in self._points.items()}
        self.ranked = sorted(sorted(first, key=first.__getitem__), key=lambda key: (
            2 * (key not in front) + (key in self._stopped)))
        self.front = self.ranked[:len(front)]

    def candidates(self, keys: Sequence[str]) -> list[Candidate]:
        """Ranked ones by their keys."""
        names = dict(self._select(f"SELECT id, candidate FROM evaluations WHERE {_LISTED}",
                                  (json.dumps(keys),))) if self._alike else {}
        self._keys |= {name: key for key, name in names.items()}
        return [self._candidate(
            names.get(key, key), self._points[key], self._first[key], self._stopped.get(key),
            self._num_usable[key]) for key in keys]

    def _candidate(self, name: str, point: list[float], first: int, stop: int | None, n: int,
                   evaluations: Sequence[Evaluation] = ()) -> Candidate:
        label = self.labels.get(name, name)
        return Candidate(name, label, label, point, self.natural(point), False, first, 0, -1, n, n,
                         stop, list(evaluations))

    def _count(self, asked: Set[str]) -> None:
        """As Effort, of the search and of what was done outside it."""
        self._searched = asked - (self.paused.keys() & self.by_id.keys())  # what it ended itself
        searched, screened = self._searched & self.by_id.keys(), {
            id_ for id_ in self._unusable.keys() - self.failed if id_ not in self.curved}
        failures = self._unusable.keys() - screened
        inside = len(searched - screened)
        self.digest["counts"] |= {
            "evaluated": inside + len(self.paused), "rejected": len(screened & searched),
            "stopped_early": len(self._stops.keys() & searched),
            "failures": len(failures & searched)}
        outside = len(self.by_id) - len(screened) - inside
        self.digest["outside_the_search"] = {"evaluated": outside, "failures": failures - searched}

    @cached_property
    def train_seconds(self) -> float:
        """Of the search."""
        return sum(seconds for *_, seconds in self.paused.values()) + sum(
            seconds for id_, seconds in self._select(f"SELECT id, {_SPENT} FROM evaluations")
            if id_ in self._searched)

    def _baseline_of(self, record: dict[str, Any]) -> Candidate | None:
        """As RunSummary::find_baseline()."""
        ids = [id_ for id_ in record.get("evaluations", ()) if id_ in self.by_id]
        n = sum(id_ not in self._unusable for id_ in ids)
        point = [value for value in record.get("fitness", ()) if finite_or(value, None) is not None]
        if not n or len(point) != len(self.objectives):
            return None
        evaluations, key = self.some(ids), self.by_id[ids[0]]
        if key in self._points and key not in self._stopped and self._num_usable[key] > n:
            found, = self.candidates([key])
            found.evaluations = self.some(id_ for id_ in self.asked if self.by_id.get(id_) == key)
            return found
        return self._candidate(evaluations[0].candidate, point, -1, None, n, evaluations)

    def _models(self, before: StoredRun | None) -> dict[str, Any]:
        """Of long names how they differ from the baseline's, as nas-export says if it is there."""
        if "space" not in self.config or self.listed or not [*self._select(_LONG_NAMES)]:
            return {}
        names = self.training | {own for own, in self._select("SELECT candidate FROM evaluations")}
        known = before.models if before and before.sessions == self.sessions and (
            bool(before.baseline) == bool(self.baseline)) else {}
        if not names <= known.get("differences", {}).keys():
            with contextlib.suppress(digest.BadInput):
                return digest.read(self.path)["models"] or {}
        return known

    def newest(self, down: bool) -> list[str]:
        """Ids in the order of their asks; the baseline comes before a search, a re-test after."""
        known = self.by_id.keys()
        outside = sorted(self._select(f"SELECT replicate, id FROM evaluations WHERE {_LISTED}",
                                      (json.dumps([*(known - self.asked.keys())]),)))
        after = bisect.bisect_left(outside, (digest.FIRST_HELD_OUT, ""))
        found = [*(id_ for _, id_ in outside[:after]), *(id_ for id_ in self.asked if id_ in known),
                 *(id_ for _, id_ in outside[after:])]
        return found[::-1] if down else found

    def named(self, names: Set[str]) -> dict[str, Candidate]:
        """Of candidates those that are ranked, by their names."""
        keys = {self._keys.get(name, name) for name in names}
        return {one.name: one for one in self.candidates([*(keys & self._points.keys())])}

    @property
    def best(self) -> list[str]:
        """Keys of those of the front by each objective; none without a front."""
        return [min(self.front, key=lambda key: self._points[key][i])
                for i in range(len(self.objectives)) if self.front]

    def improving(self) -> list[str]:
        """Keys of candidates that were better than all before, by the first objective."""
        best, keys = math.inf, []
        for key, point in self._points.items():
            if point[0] < best and key not in self._stopped:
                best = point[0]
                keys.append(key)
        return keys

    def some(self, ids: Iterable[str]) -> list[Evaluation]:
        """Evaluations by their ids."""
        ids = list(ids)
        found = {one.id: one for one in self._evaluations(f"WHERE {_LISTED}", (json.dumps(ids),))}
        self._keys |= {one.candidate: self.by_id[one.id] for one in found.values()}
        return [found[id_] for id_ in ids]

    def latest(self) -> list[Evaluation]:
        """Those whose pace counts."""
        return list(self._evaluations("ORDER BY rowid DESC LIMIT 1000"))

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
                measured, status in _ENDED, self._stops.get(id_))

    def _value(self, id_: str, i: int, quantities: dict, measured: dict) -> float | None:
        """As RunSummary::value()."""
        name = self.objectives[i].name
        own = measured.get(name)
        found = finite_or(own.get("value"), None) if isinstance(own, dict) else None
        if found is None:
            found = finite_or(quantities.get(name, own), None)
        if found is None and name not in quantities and id_ in self._alone:
            return self.objectives[i].natural(self._alone[id_][i])
        return found

    @cached_property
    def _alone(self) -> dict[str, list[float]]:
        """What was answered by one evaluation, by its id."""
        return {ids[0]: answer for ids, answer, kind in zip(
            self._lists, self._answers, self._kinds) if kind and len(ids) == 1}


def _copy_of(store: Path) -> sqlite3.Connection:
    """What is committed in a store, of which nothing is locked: see StoreCopy."""
    log, journal = Path(f"{store}-wal"), Path(f"{store}-journal")

    def state() -> Any:
        """What changes with that, and whether a commit without write-ahead log is under way."""
        stamps = [(own.st_ino, own.st_size, own.st_mtime_ns) for own in (
            file.stat() for file in (store, journal) if file.is_file())]
        head = b""
        if log.is_file():
            with open(log, "rb") as file:
                head = file.read(32)
        return head or stamps, len(stamps) == 2 and stamps[1][1] > 0

    for i in range(_TRIES):
        before = _, commits = state()
        if commits and i <= _TRIES // 2:  # else its writer was killed
            time.sleep(_BETWEEN)
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "store.sqlite"
            shutil.copyfile(store, copy)
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(*(journal, f"{copy}-journal") if commits else (log, f"{copy}-wal"))
            if state() != before:
                continue
            if commits:  # as if that had never begun
                with contextlib.closing(sqlite3.connect(copy)) as writer:
                    writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection = sqlite_files.open_read_only(copy)
            connection.execute("SELECT count(*) FROM meta").fetchone()
            return connection  # its files go with it
    raise digest.BadInput(f"{store}: changes faster than it can be copied")


def _facts(own: dict[str, Any], live: bool) -> dict[str, Any]:
    """A digest's facts, of those of a store."""
    known = (own.get("schema") or {}).get("objectives", {})
    goals = []
    for one in own.get("objectives") or [_UNNAMED]:
        best, worst = finite_or(one.get("best"), 0.0), finite_or(one.get("worst"), 1.0)
        sign = -1 if one["maximise"] else 1
        goals.append({**one, "best": best, "worst": worst,
                      "source": known.get(one["key"], {}).get("source"),
                      "penalty": sign * best + _FAILURE * (sign * worst - sign * best)})
    keys = ("retest", "ended_by", "elapsed_seconds", "planned_asks", "planned_trainings",
            "reference_point", *(("at_work", "asking") if live else ()))
    return {**{key: own.get(key) or {} for key in ("config", "facts", "labels")},
            "sessions": own.get("sessions") or [], "record_schema": own.get("schema"),
            "models": None, "rejected": [], "knee": None, "objectives": goals,
            **{key: own.get(key) for key in keys}}
