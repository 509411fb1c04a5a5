"""The training runs of searches become one table, and a table is compared with them."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import math
import os
import pathlib
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from attnas.analysis import sqlite_files
from attnas.analysis.digest import FIRST_HELD_OUT
from attnas.command_line import shortest
from attnas.data.records import Evaluation, Run, differences, dumped, parsed
from attnas.errors import InputError, MachineError
from attnas.table import APPLICATION_ID, VERSION, Table, content_sha256

PROBLEM = "attention_search"
MEASURED = ("train_seconds", "cpu_seconds", "peak_bytes")
SCORES = ("nll", "tokens", "correct", "pad_nll", "pad_tokens", "unknown_nll", "unknown_tokens",
          "batch_mean_nll", "batches")
USABLE = ("ok", "paused", "stopped_early")
# What a record of gates and the runs of a table must have in common.
_TASK = ("corpus_hash", "semantics", "model", "training/steps", "training/batch_size",
         "training/learning_rate", "training/schedule", "training/warmup_steps")

# What is not finite: NaN is NULL, as SQLite stores it.
_SCHEMA = """
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL               -- JSON
) WITHOUT ROWID;
CREATE TABLE mechanisms (
  mechanism INTEGER PRIMARY KEY,    -- 0, 1, ... in the order of their names
  name      TEXT NOT NULL UNIQUE,   -- canonical
  measured  TEXT NOT NULL           -- JSON: objectives measured without training, by name
);
CREATE TABLE trainings (
  mechanism     INTEGER NOT NULL REFERENCES mechanisms,
  replicate     INTEGER NOT NULL,   -- number of the seed, from 0
  status        TEXT NOT NULL,      -- ok, stopped_early, diverged, ...
  reason        TEXT NOT NULL,      -- why it is not ok
  train_seconds REAL,               -- of the clock
  cpu_seconds   REAL,               -- of the processor
  peak_bytes    REAL,
%s  PRIMARY KEY (mechanism, replicate)
) WITHOUT ROWID;
CREATE TABLE curves (               -- the validations of a training run
  mechanism      INTEGER NOT NULL REFERENCES mechanisms,
  replicate      INTEGER NOT NULL,
  step           INTEGER NOT NULL,
  train_nll      REAL,              -- nats per token, mean since the step before
  nll            REAL,              -- nats, sum over tokens
  tokens         INTEGER NOT NULL,
  correct        INTEGER NOT NULL,  -- of tokens
  pad_nll        REAL,
  pad_tokens     INTEGER NOT NULL,
  unknown_nll    REAL,
  unknown_tokens INTEGER NOT NULL,
  batch_mean_nll REAL,              -- nats, sum over batches
  batches        INTEGER NOT NULL,
  seconds        REAL,              -- since the run began
  PRIMARY KEY (mechanism, replicate, step)
) WITHOUT ROWID;
"""
_PUBLICATION = "CREATE TABLE publication (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"


@dataclasses.dataclass
class Content:
    """What a table is made from."""

    name: str
    identity: dict  # of every cell, without candidate and replicate
    facts: dict  # what else holds for every cell
    sources: list[dict]
    cells: list[Evaluation]
    publication: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Packed:
    """The cells of several runs, and what is noteworthy about them."""

    content: Content
    left_out: list[str]  # candidates with attention dropout, which no table holds
    missing: list[str]  # "NAME, replicate 2", of those that most mechanisms have
    unfinished: list[str]  # runs whose search has not ended


def pack(stores: Sequence[str], name: str) -> Packed:
    """Collects the finished training runs in one or several stores, perhaps of several machines,
    which must agree in everything that determines their results but candidate and replicate. A cell
    that several runs have must be the same in all of them in its comparable part; the first one is
    kept. What a run's tuning and re-test trained is left out.

    @throws InputError
    """
    packer = _Packer(name)
    for store in stores:
        packer.take(Run(store))
    return packer.close()


class _Packer:
    """Takes one store after the other."""

    def __init__(self, name: str):
        self._content = Content(name, {}, {}, [], [])
        self._cells: dict[tuple[str, int], tuple[Evaluation, str]] = {}  # with its source
        self._differences: set[str] = set()
        self._left_out: set[str] = set()
        self._unfinished: list[str] = []
        self._further = 0  # evaluations that no search made
        self._schema: Any = None  # of the first run that has one

    def take(self, run: Run) -> None:
        """The cells of a run."""
        searched = of_the_search(run)
        self._further += len(run.evaluations) - len(searched)
        self._left_out |= {one.candidate for one in searched if not _without_dropout(one)}
        evaluations = [one for one in searched if _without_dropout(one)]
        if not evaluations:
            return
        self._require_agreement(run, evaluations)
        if self._schema is None:
            self._schema = run.meta("schema")
        checksum = hashlib.sha256()
        for one in evaluations:
            checksum.update(dumped(one.canonical()).encode() + b"\n")
            self._add(run, one)
        self._content.sources.append({"name": run.name, "sha256": checksum.hexdigest(),
                                      "cells": len(evaluations),
                                      "environments": run.environments()})
        if run.meta("ended_by") is None:
            self._unfinished.append(run.given)

    def close(self) -> Packed:
        """What was taken. @throws InputError  where it makes no table."""
        if self._differences:
            raise InputError("these runs are no one table, they differ in\n  "
                             + "\n  ".join(sorted(self._differences)))
        if not self._cells:
            have = f"; they have {min(self._left_out)}" if self._left_out else ""
            further = (f"; and {self._further} that no search made, by the seeds of nas-train or a "
                       "re-test") if self._further else ""
            raise InputError("no run holds a training of a mechanism that a table can have, of the "
                             "paper's six genes and with attention_dropout 0: nothing to pack"
                             + have + further)
        replicates = range(common_replicates(self._cells))
        missing = [f"{name}, replicate {replicate}" for name, replicate in itertools.product(
            sorted({name for name, _ in self._cells}), replicates)
            if (name, replicate) not in self._cells]
        if self._schema is not None:
            self._content.facts["schema"] = self._schema
        self._content.cells = [cell for _, (cell, _) in sorted(self._cells.items())]
        return Packed(self._content, sorted(self._left_out), missing, self._unfinished)

    def _require_agreement(self, run: Run, evaluations: list[Evaluation]) -> None:
        facts, known = run.meta("facts", {}), self._content
        for one in evaluations:
            identity = {key: value for key, value in one.identity.items()
                        if key not in ("candidate", "replicate")}
            if identity.get("problem", "") != PROBLEM:
                raise InputError(f"{run.given}: a run of the problem "
                                 f"{identity.get('problem', '(unknown)')}, must be of {PROBLEM}")
            if not known.identity:
                known.identity, known.facts = identity, dict(facts)
            self._differences |= set(differences(known.identity, identity))
        for name, value in facts.items():  # one that a run does not know contradicts nothing
            self._differences |= set(differences({name: known.facts.setdefault(name, value)},
                                                 {name: value}))

    def _add(self, run: Run, one: Evaluation) -> None:
        known, source = self._cells.setdefault((one.candidate, one.replicate), (one, run.given))
        if known is one or self._differences:
            return
        if keys := list(differences(known.canonical(), one.canonical())):
            raise InputError(f"{source} and {run.given} differ in {one.name}:\n  "
                             + "\n  ".join(keys))
        # What one of the two alone measured is known, whichever comes first.
        known.measured |= {name: value for name, value in one.objectives().items()
                           if name not in known.measured}


def _without_dropout(one: Evaluation) -> bool:
    """Whether a mechanism has a name of six fields, which ends with attention dropout 0."""
    return one.candidate.endswith("|0")


def of_the_search(run: Run) -> list[Evaluation]:
    """The evaluations that the search of a run made: not on the held-out seeds of its re-test, nor
    under the settings that its tuning tried."""
    training = run.meta("config", {}).get("training") or {}

    def is_its_own(one: Evaluation) -> bool:
        used = one.identity.get("training", {})
        return one.replicate < FIRST_HELD_OUT and all(
            training[key] == value for key, value in used.items() if key in training)

    return [one for one in run.evaluations if is_its_own(one)]


def common_replicates(cells: Iterable[tuple[str, int]]) -> int:
    """Replicates that a table has, those aside that less than nine tenths of its mechanisms
    have."""
    cells = list(cells)
    mechanisms = len({name for name, _ in cells})
    having: dict[int, int] = {}
    for _, replicate in cells:
        having[replicate] = having.get(replicate, 0) + 1
    return max((replicate + 1 for replicate, own in having.items() if 10 * own >= 9 * mechanisms),
               default=0)


def read_gates(file: str, identity: dict) -> dict:
    """The record of a task's gates that a table keeps.

    @param identity  of the table.
    @throws InputError  where the file is no such record, or one of another task.
    """
    if not os.path.isfile(file):
        raise InputError(f"table pack: --gates {file} is no file, must be a record of nas-data "
                         "gates")
    try:
        record = parsed(pathlib.Path(file).read_bytes())
    except InputError as error:
        raise InputError(f"table pack: --gates {file}: {error}") from None
    if not isinstance(record, dict) or record.get("schema") not in (1, 2) \
            or not isinstance(record.get("verdict"), str):
        raise InputError(f"table pack: --gates {file}, must be a record of nas-data gates")
    for key in _TASK:
        own, given = (_at(where, key) for where in (identity, record.get("identity")))
        if any(differences(own, given)):
            raise InputError(f"table pack: --gates {file}: {key} is {dumped(given)}, must be that "
                             f"of the runs: {dumped(own)}")
    return record


def _at(value: Any, path: str) -> Any:
    for key in path.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def check_cell(cell: Evaluation, trained: bool = True) -> None:
    """What readers of a table take for granted of a cell. @throws InputError naming it.

    @param trained  whether it is a training run; of a choice, its values are all that there is.
    """
    def require(holds: bool, what: str, *numbers: float) -> None:
        if not holds:
            raise InputError(f"{cell.name}: {what.format(*map(shortest, numbers))}")

    for name in MEASURED:
        number = float(cell.measured.get(name, 0.0))
        require(0.0 <= number < math.inf, f"{name} = {{}}, must be finite and at least 0", number)
    if cell.status not in USABLE or not trained:
        return
    require(bool(cell.curve), "it was finished, but its curve has no point")
    require("train_seconds" in cell.measured, "it was finished, but its train_seconds are missing")
    longest = float(cell.measured["train_seconds"])
    for point in cell.curve:
        at_step, valid = f" at step {point['step']}", point["valid"]
        for number in map(float, (point["train_nll"], valid["nll"], valid["batch_mean_nll"])):
            require(math.isfinite(number), f"a loss{at_step} = {{}}, must be finite", number)
        tokens, correct, batches = (valid[key] for key in ("tokens", "correct", "batches"))
        require(tokens > 0 and batches > 0 and 0 <= correct <= tokens,
                f"its counts{at_step} ({correct} correct of {tokens} targets in {batches} batches) "
                "cannot be")
        seconds = float(point["seconds"])
        require(0.0 <= seconds <= longest, f"its seconds{at_step} = {{}}, must be from 0 to "
                "train_seconds = {}", seconds, longest)


def check_steps(cells: Sequence[Evaluation]) -> None:
    """@throws InputError  naming a cell with other steps than the longest curve begins with, or
    with steps that do not ascend."""
    longest = max(cells, key=lambda cell: len(cell.curve))
    steps = [point["step"] for point in longest.curve]
    for cell in cells:
        for i, step in enumerate(point["step"] for point in cell.curve):
            said = f"{cell.name}: its curve has step {step}, must have "
            if step != steps[i]:
                raise InputError(f"{said}step {steps[i]} there, as others have")
            if i > 0 and step <= steps[i - 1]:
                raise InputError(f"{said}one after step {steps[i - 1]}")


def write(content: Content, file: str | os.PathLike) -> None:
    """Writes a table, whole or not at all. Equal content gives an equal checksum, and with the same
    version of SQLite equal bytes.

    @throws InputError  where a cell is none that a table could be read with, or nothing can be
        written there.
    """
    for cell in content.cells:
        check_cell(cell, "space" not in content.facts)
    check_steps(content.cells)
    file = pathlib.Path(file)
    _require_writable(file)
    values = sorted({name for cell in content.cells for name in cell.values})
    columns = "".join(f'  "{name.replace(chr(34), chr(34) * 2)}" REAL,\n' for name in values)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        try:
            database.executescript(f"PRAGMA application_id = {APPLICATION_ID};"
                                   f"PRAGMA user_version = {VERSION};" + _SCHEMA % columns)
            _insert_json(database, "meta", {
                "name": content.name, "identity": content.identity, "facts": content.facts,
                "sources": content.sources})
            _insert_cells(database, content.cells, values)
            _insert_json(database, "meta", {"sha256": content_sha256(database)})
            if content.publication:
                database.executescript(_PUBLICATION)
                _insert_json(database, "publication", content.publication)
        except sqlite3.OperationalError as error:  # a column is there twice, say
            raise InputError(f"{file}: cannot be written: {error}") from None
        _replace(database, file)


def _require_writable(file: pathlib.Path) -> None:
    folder = file.parent
    why = (f"{folder} is no folder" if not folder.is_dir() else
           f"{folder}: Permission denied" if not os.access(folder, os.W_OK) else
           "it is a folder" if file.is_dir() else "")
    if why:
        raise InputError(f"{file}: cannot be written: {why}")


def _replace(database: sqlite3.Connection, file: pathlib.Path) -> None:
    """On disk, by way of a file beside it."""
    with tempfile.TemporaryDirectory(prefix=f".{file.name}-", dir=file.absolute().parent) as folder:
        made = pathlib.Path(folder, "table")
        try:
            database.execute("VACUUM INTO ?", (str(made),))  # equal content gives equal pages
        except sqlite3.DatabaseError as error:
            raise MachineError(f"{file}: cannot be written: {error}") from None
        with open(made, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(made, file)


def _insert_json(database: sqlite3.Connection, table: str, by_key: dict) -> None:
    database.executemany(f"INSERT INTO {table} VALUES (?, ?)",
                         [(key, dumped(value)) for key, value in sorted(by_key.items())])


def _insert_cells(database: sqlite3.Connection, cells: Iterable[Evaluation],
                  values: list[str]) -> None:
    ordered = sorted(cells, key=lambda cell: (cell.candidate, cell.replicate))
    trainings = f"INSERT INTO trainings VALUES (?{', ?' * (6 + len(values))})"
    curves = f"INSERT INTO curves VALUES (?{', ?' * 13})"
    by_name = itertools.groupby(ordered, key=lambda cell: cell.candidate)
    for mechanism, (name, group) in enumerate(by_name):
        replicates = list(group)
        database.execute("INSERT INTO mechanisms VALUES (?, ?, ?)",
                         (mechanism, name, dumped(_medians(replicates))))
        for cell in replicates:
            place = (mechanism, cell.replicate)
            database.execute(trainings, (*place, cell.status, cell.reason,
                                         *(_real(cell.measured.get(key)) for key in MEASURED),
                                         *(_real(cell.values.get(key)) for key in values)))
            database.executemany(curves, [(
                *place, point["step"], _real(point["train_nll"]),
                *(_score(key, point["valid"][key]) for key in SCORES), _real(point["seconds"]))
                for point in cell.curve])


def _real(value: Any) -> float:
    return math.nan if value is None else float(value)


def _score(key: str, value: Any) -> float | int:
    return _real(value) if key.endswith("nll") else value


def _medians(replicates: list[Evaluation]) -> dict[str, dict]:
    """Of each measured objective the one with the median value over the replicates that have it,
    the lower of two."""
    by_name: dict[str, list[dict]] = {}
    for cell in replicates:
        for name, value in cell.objectives().items():
            by_name.setdefault(name, []).append(value)
    return {name: sorted(values, key=lambda one: one["value"])[(len(values) - 1) // 2]
            for name, values in by_name.items()}


def cells_of(table: Table) -> dict[tuple[str, int], Evaluation]:
    """The recorded evaluations of a table again. @throws InputError  where one cannot be."""
    with contextlib.closing(sqlite_files.open_read_only(table.path, finished=True)) as database:
        identity = parsed(database.execute("SELECT value FROM meta WHERE key = 'identity'")
                          .fetchone()[0])
    found = {}
    for name, runs in table.runs.items():
        for replicate, run in runs.items():
            own = {**identity, "candidate": name, "replicate": replicate}
            curve = [{"step": row["step"], "seconds": _shown(row["seconds"]),
                      "train_nll": _shown(row["train_nll"]),
                      "valid": {key: _shown(row[key]) for key in SCORES}}
                     for row in run.curve.values()]
            measured = {key: getattr(run, key) for key in MEASURED if getattr(run, key) is not None}
            found[name, replicate] = Evaluation(
                hashlib.sha256(dumped(own).encode()).hexdigest(), name, replicate, run.status,
                run.reason, own, curve, {key: _shown(value) for key, value in run.values.items()},
                measured)
    for cell in found.values():
        check_cell(cell, "space" not in table.facts)
    check_steps(list(found.values()))
    return found


def _shown(value: float | int | None) -> Any:
    """A number as records have it in JSON."""
    if value is None:
        return "nan"
    return value if math.isfinite(value) else str(value)


@dataclasses.dataclass
class Check:
    """How a table differs from what a run recorded."""

    cells: int  # of the store, compared
    differences: list[str]
    met: set[tuple[str, int]]  # of the table


def check(cells: dict[tuple[str, int], Evaluation], store: str) -> Check:
    """Checks every training run of a store, those with attention dropout aside, against its cell:
    the comparable part and the measured numbers.

    @throws InputError  naming the store where it has none, so that nothing would be compared.
    """
    found = Check(0, [], set())
    for recorded in filter(_without_dropout, of_the_search(Run(store))):
        found.cells += 1
        cell = cells.get((recorded.candidate, recorded.replicate))
        if cell is None:
            found.differences.append(f"{recorded.name}: not in the table")
            continue
        found.met.add((recorded.candidate, recorded.replicate))
        if keys := _differing(recorded, cell):
            found.differences.append(f"{recorded.name}: {'; '.join(keys)}")
    if not found.cells:
        raise InputError(f"{store}: holds nothing that a table could have: training runs of a "
                         "search, of mechanisms of the paper's six genes without attention dropout")
    return found


def _differing(recorded: Evaluation, cell: Evaluation) -> list[str]:
    """Keys in which a cell differs from the evaluation that it was made from."""
    keys = list(differences(recorded.canonical(), cell.canonical()))
    keys += [f"measured.{name}" for name in MEASURED
             if recorded.measured.get(name, -1.0) != cell.measured.get(name, -1.0)]
    return keys + [f"curve.{i}.seconds" for i, (a, b) in enumerate(zip(recorded.curve, cell.curve))
                   if a["seconds"] != b["seconds"]]
