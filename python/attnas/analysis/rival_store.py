"""The comparison store that searches of other libraries are recorded in, one by one."""

import contextlib
import json
import pathlib
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from . import sqlite_files
from attnas.errors import MachineError, unwritable

from .digest import BadInput

PROGRAM = "analysis/rivals.py"  # that commands which are recorded begin with


def _command(meta: dict) -> str:
    """The command that made a comparison, where this program did."""
    command = (meta.get("config") or {}).get("command")
    return command if isinstance(command, str) and command.startswith(PROGRAM) else ""


def _require_own(file: pathlib.Path):
    """Raises BadInput where something else than searches of this program would be replaced."""
    try:
        if not file.exists() or file.is_file() and file.stat().st_size == 0:
            return
        with contextlib.closing(sqlite_files.open_read_only(file)) as database:
            if _command(sqlite_files.meta(database)):
                return
    except OSError as error:
        raise unwritable(file, error) from error
    except (sqlite3.DatabaseError, ValueError, AttributeError):
        pass
    raise BadInput(f"{file}: is there and not of this program, must be another file")


class RivalStore:
    """FILE.part until every search is in it, then FILE. What the same searches left there, when
    they were stopped, is taken over. One process writes to it at a time. All raise BadInput where
    the file cannot be written, is of other searches or damaged.

    @param meta        facts by name; "config" may differ from those of the searches that are there.
    @param candidates  name, true values and those that are believed, of each.
    @param algorithms  name, library and settings of each.
    """

    def __init__(self, file: pathlib.Path, meta: dict, candidates: Sequence[tuple[str, np.ndarray,
                                                                                  np.ndarray]],
                 algorithms: Sequence[tuple[str, str, dict]]):
        self._file, self._part = file, file.with_name(file.name + ".part")
        _require_own(file)
        with self._writing():
            self._database = sqlite3.connect(self._part, timeout=0)
            try:
                self._open(meta, candidates,
                           [(i, name, library, json.dumps(settings))
                            for i, (name, library, settings) in enumerate(algorithms)])
            except BaseException:
                self._database.close()
                raise

    def _open(self, meta: dict, candidates: Sequence[tuple[str, np.ndarray, np.ndarray]],
              algorithms: list[tuple]):
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")  # until it is closed
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise BadInput(f"{self._part}: another process searches there; wait for it, or give "
                           f"another -o") from None
        if self._database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            self._begin(meta, candidates, algorithms)
        else:
            self._require_same(meta, algorithms)
        self._database.commit()

    def known(self) -> set[tuple[int, int]]:
        """The algorithm's number and the seed of each search that is there."""
        with self._writing():
            return set(self._database.execute("SELECT algorithm, seed FROM searches"))

    def add(self, algorithm: int, row: tuple):
        """Keeps a search, whatever becomes of the others."""
        with self._writing(), self._database:
            self._database.execute("INSERT INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                   "NULL)", (algorithm, *row))

    def finish(self, seeds: range):
        """Every search is there; those of other seeds go."""
        with self._writing():
            with self._database:
                self._database.execute("DELETE FROM searches WHERE seed < ? OR seed >= "
                                       "?", (seeds.start, seeds.stop))
            self._database.close()
            self._part.replace(self._file)

    def close(self):
        """Others may write to it."""
        self._database.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            no_file = "readonly" in str(error) or "unable to open" in str(error)
            kind = BadInput if no_file else MachineError
            raise kind(f"{self._part}: cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{self._part}: is damaged ({error}); remove it to begin "
                           f"again") from error
        except OSError as error:
            raise unwritable(self._file, error) from error

    def _begin(self, meta: dict, candidates: Sequence[tuple[str, np.ndarray, np.ndarray]],
               algorithms: list[tuple]):
        for statement in (
                "PRAGMA application_id = 0x6e617363",
                "PRAGMA user_version = 1",
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
                "CREATE TABLE candidates (number INTEGER PRIMARY KEY, name TEXT NOT NULL, label "
                "TEXT NOT NULL, truth TEXT NOT NULL, believed TEXT NOT NULL)",
                "CREATE TABLE algorithms (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
                "key TEXT NOT NULL, settings TEXT NOT NULL)",
                "CREATE TABLE searches (algorithm INTEGER NOT NULL, seed INTEGER NOT NULL, asked "
                "INTEGER NOT NULL, search_seconds REAL NOT NULL, ended_by TEXT NOT NULL, "
                "candidates BLOB NOT NULL, trained BLOB NOT NULL, seconds BLOB NOT NULL, fitness "
                "BLOB NOT NULL, steps BLOB NOT NULL, digest BLOB, PRIMARY KEY (algorithm, seed))"):
            self._database.execute(statement)
        self._database.executemany("INSERT INTO meta VALUES (?, ?)",
                                   [(key, json.dumps(value))
                                    for key, value in sorted(meta.items())])
        self._database.executemany(
            "INSERT INTO candidates VALUES (?, ?, ?, ?, ?)",
            [(i, name, name, json.dumps(truth.tolist()), json.dumps(believed.tolist()))
             for i, (name, truth, believed) in enumerate(candidates)])
        self._database.executemany("INSERT INTO algorithms VALUES (?, ?, ?, ?)", algorithms)

    def _require_same(self, meta: dict, algorithms: list[tuple]):
        """Raises BadInput where the searches that are there are others. From here on the command is
        that of now.
        """
        found, = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        try:
            there = sqlite_files.meta(self._database)
        except (sqlite3.OperationalError, ValueError):
            there = {}
        if not _command(there):
            raise BadInput(f"{self._part}: is there and not of this program, must be another file")
        wanted = json.loads(json.dumps(meta))
        differing = sorted(key for key in {*there, *wanted} - {"config"}
                           if there.get(key) != wanted.get(key))
        if self._database.execute("SELECT * FROM algorithms ORDER BY "
                                  "number").fetchall() != algorithms:
            differing.append("algorithms")
        if differing:
            raise BadInput(f"{self._part}: has searches of another command, which differ in "
                           f"{', '.join(differing)}: {_command(there)}; "
                           "finish it, remove them, or give another -o")
        self._database.execute("UPDATE meta SET value = ? WHERE key = 'config'",
                               (json.dumps(meta["config"]), ))
