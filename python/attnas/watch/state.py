"""A run as it is read again and again while another process writes it, and after its end."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from attnas.analysis.digest import BadInput
from attnas.analysis.run import Candidate, Evaluation, finite_or

from . import progress
from .stored import StoredRun

_BETWEEN = 0.5  # s
_SHARE = 10  # of the time of one core
_SILENT = 300.0  # s without a word from the writer: something is wrong, or a step takes long
_UNLOCKED = 60.0  # s, likewise where the file system has no locks: nobody writes any more
_TOP = 3
_LARGE = 2000  # evaluations: of more a page has some
_POINTS, _CURVES, _FAILED = 1000, 200, 30  # of large runs, at most
_NAME = 100  # characters of those that a picture alone has
_TABLE = 0x6e617374  # what files of tables say they are

Stamp = tuple[tuple[int, int, int] | None, ...]


def stamp_of(store: Path) -> Stamp:
    """What changes with the contents of a store and its journals."""
    def of(file: str) -> tuple[int, int, int] | None:
        try:
            found = os.stat(file)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return tuple(of(f"{store}{suffix}") for suffix in ("", "-wal", "-journal"))


def has_writer(store: Path) -> bool | None:
    """Whether a process writes a store: it locks a byte behind those that SQLite does. None: nobody
    knows."""
    try:
        file = os.open(store, os.O_RDONLY | os.O_NONBLOCK)  # it may be a pipe by now
    except OSError:
        return None
    try:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 30) + 4096, 1, 0)
        return (
            struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, lock))[0] != fcntl.F_UNLCK
        )
    except OSError:
        return None
    finally:
        os.close(file)


def is_table(file: Path) -> bool:
    """Whether a file is a table of results."""
    try:
        with open(file, "rb") as stream:
            return stream.read(72)[68:] == _TABLE.to_bytes(4, "big")
    except OSError:
        return False


def store_named(word: Path) -> Path:
    """The store of a run that is given by its folder or by that. Raises BadInput."""
    file = word / "store.sqlite" if word.is_dir() else word
    if not file.exists():
        raise BadInput(f"{file}: no such store; give a run's folder")
    if not file.is_file():
        raise BadInput(f"{file}: no such store")
    if is_table(file):
        raise BadInput(
            f"{file}: is a table, must be a run's folder; nas-data table info {file} describes it")
    return file


@dataclass(frozen=True)
class Page:
    """Which evaluations a table shows."""

    offset: int = 0
    sort: str = "newest"  # or mechanism, ask, seed, status, seconds, the number of an objective
    down: bool = True
    rows: int = 30


def thinned(items: list, most: int) -> list:
    """At most so many, at equal distances."""
    return items[::-(-len(items) // most)] if len(items) > most else items


class _Changing:
    """Records by key, each with the version of the whole in which it changed last."""

    def __init__(self):
        self._records: dict[str, tuple[dict, int]] = {}

    def set(self, key: str, record: dict, version: int) -> None:
        """Keeps a record's version where it is the same as before."""
        if key not in self._records or self._records[key][0] != record:
            self._records[key] = record, version

    def since(self, version: int) -> list[dict]:
        """Those that changed after a version, in order of their keys."""
        return [record for _, (record, own) in sorted(self._records.items()) if own > version]

    def clear(self) -> None:
        """Forgets all."""
        self._records.clear()


class RunWatch:
    """Reads copies of a store, so that nothing of the run is touched."""

    def __init__(self, run: Path, before: int = 0):
        """@param run  a run's folder, or its store. @param before  the version of one that watched
        the run before: this one has later ones. Raises BadInput if there is none."""
        self._store = store_named(run)
        self.version = self._oldest = before  # counts the changes; since which no record has gone
        self._run: StoredRun | None = None
        self._writer = False
        self._stamp: Stamp | None = None  # None: the last reading of it failed on the way
        self._phase, self._error = "", None
        self._looked = self._took = 0.0
        self._head: dict = {}  # all but the records
        self._evaluations, self._candidates = _Changing(), _Changing()
        self._recorded: StoredRun | None = None  # of which these are
        self._order: dict[tuple[str, bool], list[str]] = {}  # of evaluations
        self._numbers: dict[str, int] = {}  # of candidates
        self._read_in_time()

    def look(self) -> None:
        """Looks whether anything has changed, at most twice per second, and where looking takes
        long so seldom that it takes a tenth of a core. What cannot be read any more becomes part of
        the state; what was read stays."""
        if time.monotonic() - self._looked < max(_BETWEEN, _SHARE * self._took):
            return
        error = None
        try:
            self._read_in_time()
        except Exception as found:  # pylint: disable=broad-exception-caught
            error = str(found)
        if error != self._error:
            self._error = error
            self.version += 1

    def _read_in_time(self) -> None:
        began = time.monotonic()
        try:
            self._read()
        finally:
            self._looked = time.monotonic()
            self._took = self._looked - began

    def _read(self) -> None:
        writer, stamp = has_writer(self._store), stamp_of(self._store)
        if stamp[0] is None:
            raise BadInput(f"{self._store}: no such store any more")
        if writer is None:
            writer = self._age(stamp) < _UNLOCKED
        ended, self._writer = self._writer and not writer, writer
        if stamp != self._stamp or ended:
            before, whole, self._stamp = self._run, self._stamp is not None, None
            self._run = StoredRun(self._store, writer, before)
            self._order = {}
            self.version += 1
            # Another run that has taken its place may have as many sessions, but not the same ones.
            if not whole or before.sessions != self._run.sessions:
                self._evaluations.clear()
                self._candidates.clear()
                self._oldest = self.version
            self._describe(stamp)
            self._stamp = stamp
        phase = self._phase_at(stamp)
        if phase != self._phase:
            self._phase = phase
            self.version += 1

    @staticmethod
    def _age(stamp: Stamp) -> float:
        """Seconds since a store was written to."""
        return time.time() - max(own[2] for own in stamp if own) / 1e9

    def _phase_at(self, stamp: Stamp) -> str:
        if self._writer:
            return "silent" if self._age(stamp) > _SILENT else "running"
        lacks_stage = (
            progress.retest_of(self._run).get("replicates", 0) > 0 and not self._run.retest)
        return "finished" if self._run.ended_by and not lacks_stage else "stopped"

    def _number_of(self, candidate: str) -> int:
        return self._numbers.setdefault(candidate, len(self._numbers))

    def _numbers_of(self, keys: list[str]) -> list[int]:
        return [self._number_of(one.name) for one in self._run.candidates(keys)]

    def _describe(self, stamp: Stamp) -> None:
        run = self._run
        own = progress.progress(run, self._phase_at(stamp) == "finished")
        beside = run.baseline and run.baseline.name
        top = [one.name for one in run.candidates(run.ranked[:_TOP + 1])
               if one.name != beside][:_TOP]
        counts, outside = run.digest["counts"], run.digest["outside_the_search"]
        now, verdict = run.sessions[-1] if run.sessions else {}, run.retest.get("verdict")
        self._head = {
            "name": _text(run.config.get("name")),
            "folder": str(self._store.parent),
            "ended_by": run.ended_by,
            "started": _text(now.get("started")),
            "host": _text(now.get("host")),
            "elapsed_seconds": run.digest["elapsed_seconds"],
            "progress": own,
            "left": progress.left(run, own),
            "objectives": [_objective(one) for one in run.objectives],
            "baseline": run.baseline
            and {"c": self._number_of(beside), "values": _numbers(run.baseline.values)},
            "listed": list(map(self._number_of, progress.listed_mechanisms(run))) or None,
            "top": list(map(self._number_of, top)),
            "best": [{"c": self._number_of(one.name), "value": finite_or(one.values[i], None)}
                     for i, one in enumerate(run.candidates(run.best))],
            "verdict": _text(verdict),
            "hypervolume": finite_or(run.indicators[-1].value, None)
            if run.several and run.indicators
            else None,
            "counts": {key: counts[key]
                       for key in ("asked", "evaluated", "reused", "rejected", "stopped_early")}
            | {"outside": outside["evaluated"],
               "failures": counts["failures"] + len(outside["failures"])},
            "at_work": self._at_work(),
        }

    def _at_work(self) -> dict | None:
        run, work = self._run, self._run.at_work
        if not work:
            return None
        arrays = []
        for array in work["arrays"]:
            trainings = [{"c": self._number_of(one["candidate"]), "replicate": one["replicate"]}
                         for one in array["trainings"] if one["evaluation"] not in run.by_id]
            if trainings:
                arrays.append(
                    {"trainings": trainings,
                     **{key: array[key] for key in ("started", "step", "steps", "curve")}}
                )
        asking = run.digest.get("asking") or {}
        return {**{key: work[key] for key in ("stage", "workers", "waiting")},
                "batch": asking.get("batch") if work["stage"] == "search" else None,
                "asking": progress.num_asking(run), "arrays": arrays}

    def _named(self) -> set[str]:
        """Candidates that are listed or at work."""
        return {*progress.listed_mechanisms(self._run), *self._run.training}

    def _describe_records(self) -> None:
        """All candidates that have been evaluated or are at work, and all evaluations."""
        run, evaluations = self._run, self._run.evaluations
        names = self._named() | {one.candidate for one in evaluations}
        ranked = {one.name: one for one in run.candidates(run.ranked)}
        for name in sorted(names):
            self._candidates.set(name, self._candidate(name, ranked.get(name)), self.version)
        for one in evaluations:
            self._evaluations.set(one.id, self._evaluation(one), self.version)
        self._recorded = run

    def _candidate(self, name: str, ranked: Candidate | None) -> dict:
        record = {"c": self._number_of(name), "name": self._name_of(name)}
        if (label := self._run.label(name)) != record["name"]:
            record["label"] = label
        if ranked is not None:
            record |= {"values": _numbers(ranked.values), "n": ranked.n, "ask": ranked.first_ask,
                       "stopped": ranked.stopped_at is not None}
        return record

    def _name_of(self, candidate: str) -> str:
        """For people, where there is little room."""
        return self._run.models.get("differences", {}).get(candidate) or self._run.label(candidate)

    def _evaluation(self, one: Evaluation) -> dict:
        baseline = self._run.baseline
        return {"id": one.id, "c": self._number_of(one.candidate), "replicate": one.replicate,
                "status": one.status, "usable": one.usable, "reason": one.reason,
                "values": _numbers(one.objectives) if one.usable else [None] * len(one.objectives),
                "seconds": one.seconds, "ask": self._run.asked.get(one.id),
                "baseline": baseline is not None and one.candidate == baseline.name
                and any(one.id == own.id for own in baseline.evaluations), "curve": _curve(one)}

    def _sorted(self, by: str, down: bool) -> list[str]:
        """Ids of all evaluations in an order; what has no value comes last."""
        keys = {"status": lambda one: one.status, "seed": lambda one: one.replicate,
                "mechanism": lambda one: self._name_of(one.candidate),
                "seconds": lambda one: one.seconds}
        if (by, down) not in self._order and by in ("newest", "ask"):
            self._order[by, down] = self._run.newest(down)
        elif (by, down) not in self._order:
            i = 0 if by in keys else min(int(by), len(self._run.objectives) - 1)
            key = keys.get(by, lambda one: _numbers(one.objectives)[i] if one.usable else None)
            rows = [(key(one), one.id) for one in self._run.evaluations]
            known = sorted((row for row in rows if row[0] is not None),
                           key=lambda row: row[0], reverse=down)
            self._order[by, down] = [id_ for _, id_ in known] + [
                id_ for value, id_ in rows if value is None]
        return self._order[by, down]

    def _some(self, shown: list[str]) -> dict:
        """Records of a large run for its page: what its tables show, the front, the best ones, and
        some of the others for the pictures."""
        run, head = self._run, self._head
        styled = {*head["top"], *(head["listed"] or ()), head["baseline"] and head["baseline"]["c"]}
        curved = run.curved
        own = [id_ for id_, name in curved.items() if self._numbers.get(name) in styled]
        ids = dict.fromkeys((*shown, *thinned(own, _CURVES), *thinned([*curved], _CURVES)))
        evaluations = run.some(ids)
        numbered = {*styled, *(one["c"] for one in head["best"])}
        named = {*self._named(), *(name for name, c in self._numbers.items() if c in numbered),
                 *(one.candidate for one in evaluations)}
        keys = {*thinned(run.front, _POINTS), *run.improving(), *thinned(run.ranked, _POINTS)}
        drawn = {one.name: one for one in run.candidates([*keys])}
        ranked = drawn | run.named(named - drawn.keys())
        candidates = {name: self._candidate(name, ranked.get(name))
                      for name in sorted(named | drawn.keys())}
        for record in (candidates[name] for name in drawn.keys() - named):
            if len(record["name"]) > _NAME:
                record["name"] = record.pop("label", record["name"])[:_NAME] + "…"
        return {"whole": True, "candidates": list(candidates.values()),
                "evaluations": [self._evaluation(one) for one in evaluations]}

    def _describe_listed(self, row: dict) -> None:
        """Of listed mechanisms the one with the best mean, of those with the most seeds, and the
        baseline's mean."""
        run, values = self._run, {}
        for one in run.evaluations:
            if one.usable and one.objectives[0] is not None:
                values.setdefault(one.candidate, []).append(one.objectives[0])
        means = {name: sum(own) / len(own) for name, own in values.items()}
        baseline = (run.config.get("baseline") or {}).get("mechanism")
        if baseline in means:
            row["baseline"] = finite_or(means[baseline], None)
        known = [name for name in progress.listed_mechanisms(run) if name in means]
        sign = 1 if run.objectives[0].maximise else -1
        if known:
            best = max(known, key=lambda name: (len(values[name]), sign * means[name]))
            row["best"] = {"name": self._name_of(best), "label": run.label(best),
                           "value": finite_or(means[best], None)}

    def overview(self) -> dict:
        """The row of the run in a list: how far it is, its best mechanism and its baseline by the
        first objective. See docs/how-to/watch-a-run.md."""
        run, head = self._run, self._head
        row = {
            "phase": self._phase,
            "listed": run.listed,
            "objective": head["objectives"][0],
            "baseline": finite_or(run.baseline.values[0], None) if run.baseline else None,
            "best": None,
            "title": head["name"],
            "error": self._error,
            **{key: head[key]
               for key in ("ended_by", "started", "elapsed_seconds", "progress", "left")},
        }
        if run.listed:
            self._describe_listed(row)
            return row
        for best in run.candidates(run.ranked[:1]):
            row["best"] = {"name": self._name_of(best.name), "label": best.label,
                           "value": finite_or(best.values[0], None)}
        return row

    def state(self, since: int, page: Page | None = None) -> dict:
        """The state, without the records of evaluations and candidates that have not changed since
        a version; all of them where the version is not one of this object. See
        docs/how-to/watch-a-run.md.

        @param page  adds which evaluations its table shows; of a large run the records are those
            that a page needs. """
        state = {**self._head, "error": self._error, "version": self.version, "phase": self._phase}
        run = self._run
        if page:
            rows = self._sorted(page.sort, page.down)
            shown = rows[page.offset:page.offset + page.rows]
            newest = self._sorted("newest", True) if run.failed else []
            failed = [id_ for id_ in newest if id_ in run.failed][:_FAILED]
            state |= {"rows": shown, "failed": failed,
                      "of": {"evaluations": len(rows), "failures": len(run.failed),
                             "candidates": len(run.ranked), "front": len(run.front)}}
            if len(rows) > _LARGE:
                state["front"] = self._numbers_of(thinned(run.front, _POINTS))
                return state | self._some([*shown, *failed])
        state["front"] = self._numbers_of(run.front)
        if self._recorded is not run:
            self._describe_records()
        known = self._oldest <= since <= self.version
        after = since if known else -1
        return state | {"whole": not known, "candidates": self._candidates.since(after),
                        "evaluations": self._evaluations.since(after)}


def _text(value) -> str:
    return value if isinstance(value, str) else ""


def _numbers(values) -> list[float | None]:
    return [finite_or(value, None) for value in values]


def _objective(goal) -> dict:
    return {"name": goal.name, "title": goal.title, "maximise": goal.maximise}


def _curve(evaluation: Evaluation) -> list[list[float]]:
    """Validation loss by step, in nats per token."""
    valid = [(point["step"], point["valid"]) for point in evaluation.curve]
    return [[step, own["nll"] / own["tokens"]] for step, own in valid
            if own.get("tokens") and own.get("nll") is not None]
