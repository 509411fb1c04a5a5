"""Runs below folders, as they are looked at again and again while others write them."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

from attnas.analysis.digest import BadInput

from .state import RunWatch, Stamp, is_table, stamp_of, store_named

_DEPTH = 3  # folders between a word and a run
_SHARE = 10  # of the time of one core
_BETWEEN = 0.5  # s
_BETWEEN_SCANS = 2.0
_SLICE = 0.3  # nobody is answered meanwhile
_KEPT = 60.0  # without a word from the page of a run


@dataclasses.dataclass
class _Run:
    name: str
    store: Path
    watch: RunWatch | None = None  # where somebody writes the run, or has its page open
    row: dict | None = None  # None: not read yet
    stamp: Stamp | None = None  # when `watch` was made last
    version: int = 0  # of `watch`, also of one that is gone
    opened: float = -_KEPT
    gone: bool = False


def _is_run(folder: Path) -> bool:
    store = folder / "store.sqlite"
    return store.is_file() and not is_table(store)


class WatchList:
    """Of a run that nobody writes its row is kept alone, and it is not read again before its store
    changes."""

    def __init__(self, words: Sequence[str]):
        """@param words  folders that hold runs at most three folders deep, or runs. Raises BadInput
        if a word is neither."""
        self._words = list(words)
        self._runs: list[_Run] = []  # by number, those that are gone, too
        self._turn = 0  # of the run that is read next
        self._next_look = self._next_scan = 0.0
        self.version = 0
        for word in words:
            if not os.path.isdir(word):
                self._add(store_named(Path(word)), word)
            elif not self._find(Path(word), self._name(word), 0):
                raise BadInput(f"{word}: holds no run; give a run's folder, or one that holds runs "
                               f"(store.sqlite) at most {_DEPTH} folders deep")

    def _name(self, word: str) -> str:
        return "" if len(self._words) == 1 else word

    def _find(self, folder: Path, name: str, depth: int) -> bool:
        """Adds the runs there; returns whether there are any. Within runs there are no others. Of
        links those to runs count, so that there are no circles."""
        if _is_run(folder):
            self._add(folder / "store.sqlite", name)
            return True
        if depth == _DEPTH or depth > 0 and folder.is_symlink():
            return False
        try:
            inside = [entry.name for entry in os.scandir(folder)
                      if not entry.name.startswith(".") and entry.is_dir()]
        except OSError:
            return False
        found = [
            self._find(folder / own, f"{name}/{own}" if name else own, depth + 1) for own in inside]
        return any(found)

    def _add(self, store: Path, name: str) -> None:
        known = next((run for run in self._runs if run.store == store), None)
        if known is None:
            self._runs.append(_Run(name or ".", store))
        elif known.gone:
            known.gone = False
        else:
            return
        self.version += 1

    def look(self) -> None:
        """Looks for runs and for what is new of them, for a part of a second, and after all were
        read once so seldom that it takes a tenth of a core. What cannot be read is a part of the
        state."""
        began = time.monotonic()
        if began < self._next_look:
            return
        if began >= self._next_scan:
            for word in self._words:
                self._find(Path(word), self._name(word), 0)
            now = time.monotonic()
            self._next_scan = now + max(_BETWEEN_SCANS, _SHARE * (now - began))
        for _ in self._runs:
            if time.monotonic() - began > _SLICE:
                break
            self._turn = (self._turn + 1) % len(self._runs)
            if not self._runs[self._turn].gone:
                self._read(self._runs[self._turn])
        if self._num_unread() == 0:
            self._rest(time.monotonic() - began)

    def _rest(self, took: float) -> None:
        now = time.monotonic()
        self._next_look = max(max(self._next_look, now) + _SHARE * took, now + _BETWEEN)

    def _read(self, run: _Run) -> None:
        stamp = stamp_of(run.store)
        if not os.path.lexists(run.store):
            run.gone, run.watch, run.row = True, None, None
            self.version += 1
            return
        if run.watch is None and run.row is not None and stamp == run.stamp:
            return
        try:
            row = self._row(run, stamp)
        except Exception as error:  # pylint: disable=broad-exception-caught
            row = {"error": str(error)}
        if row != run.row:
            run.row = row
            self.version += 1
        written = row.get("phase") in ("running", "silent")
        if not written and time.monotonic() - run.opened > _KEPT:
            run.watch = None

    @staticmethod
    def _row(run: _Run, stamp: Stamp) -> dict:
        if run.watch is not None:
            run.watch.look()
        else:
            run.stamp = stamp
            run.watch = RunWatch(run.store, run.version)
        same = run.watch.version == run.version and run.row is not None
        run.version = run.watch.version
        return run.row if same else run.watch.overview()

    def _num_unread(self) -> int:
        return sum(not run.gone and run.row is None for run in self._runs)

    def contains(self, number: int) -> bool:
        """Whether a run has this number."""
        return number < len(self._runs) and not self._runs[number].gone

    def open(self, number: int) -> RunWatch:
        """The run of a number that there is, as it is by now. Its time is counted as that of
        look()."""
        run = self._runs[number]
        run.opened = began = time.monotonic()
        if run.watch is not None:
            run.watch.look()
        else:
            run.stamp = stamp_of(run.store)
            run.watch = RunWatch(run.store, run.version)
        run.version = run.watch.version
        self._rest(time.monotonic() - began)
        return run.watch

    def state(self) -> dict:
        """A row a run, see docs/how-to/watch-a-run.md."""
        rows = [{**run.row, "number": number, "run": run.name}
                for number, run in enumerate(self._runs) if not run.gone and run.row is not None]
        return {"folders": self._words, "version": self.version, "unread": self._num_unread(),
                "runs": rows}

