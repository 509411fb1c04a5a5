"""Reads a table of training runs: many mechanisms, each trained with several seeds, with their
learning curves.

    from attnas.table import Table
    table = Table("problems/tables/text.table")
    table.query("dot|softmax|none|fixed|bias|0", seed=0, step=400).perplexity

It stands on Python's own library alone (3.9 or later), so that this file, copied beside a table, is
all that reading takes.

docs/files.md describes the file, attnas.publication publishes it.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import difflib
import hashlib
import json
import math
import operator
import os
import pathlib
import re
import sqlite3
import struct
from collections.abc import Iterator
from typing import Any

try:
    from attnas.errors import InputError
except ImportError:  # this file alone
    class InputError(Exception):  # type: ignore[no-redef]
        """What was given cannot be used; the text says where, what was given and what is allowed.
        """

APPLICATION_ID = 0x6E617374  # "nast"
VERSION = 2
# The tables of the file that its checksum covers, and the order of their rows; `publication` is not
# among them, so that a licence or a changelog does not make another table of it.
KEYS = {"meta": "key", "mechanisms": "mechanism", "trainings": "mechanism, replicate",
        "curves": "mechanism, replicate, step"}
_ENDS = ("parameters", "flops")  # of the model: known at every step


@dataclasses.dataclass(frozen=True)
class Record:
    """A training run at a step. None: not known, or not finite where the file has no number.

    nll, perplexity, accuracy and tokens are of the validation split at that step; values of the
    test split, and whatever else was recorded at the end, are there at the last step alone.
    """

    mechanism: str  # canonical name
    label: str  # the same in the paper's words
    seed: int
    step: int | None  # None: it ended before its first validation
    is_end: bool  # whether this is the last validation of the run
    status: str  # of the whole run: ok, stopped_early, diverged, ...
    reason: str  # why it is not ok; else empty
    nll: float | None  # nats per target
    perplexity: float | None  # exp(nll)
    accuracy: float | None  # share of targets that the model ranks first
    tokens: int | None  # targets
    train_nll: float | None  # nats per target, mean since the step before
    seconds: float | None  # of training until here
    test_nll: float | None
    test_perplexity: float | None
    train_seconds: float | None  # of the whole run, by the clock
    cpu_seconds: float | None
    peak_bytes: float | None
    parameters: float | None
    flops: float | None  # of one forward pass
    values: dict[str, float]  # all that was recorded at the end, by name; empty before


class Table:
    """A table, read into memory as a whole: 10 MB and a second for some thousand training runs.
    Nothing is written, and the file is closed again."""

    def __init__(self, path: str | os.PathLike, check: bool = True):
        """Reads a table.

        @param check  whether the content must fit the checksum that it carries.
        @throws InputError  naming the file: there is none, it is no table, of another version,
            damaged, or altered.
        """
        self.path = os.fspath(path)
        self._begin()
        try:
            with contextlib.closing(
                    sqlite3.connect(f"{pathlib.Path(self.path).absolute().as_uri()}?immutable=1",
                                    uri=True)) as database:
                self._read(database, check)
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path}: not a readable table: {error}") from None
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{self.path}: damaged: {type(error).__name__}: {error}") from None

    @property
    def name(self) -> str:
        """For people."""
        return self.facts["name"]

    @property
    def mechanisms(self) -> list[str]:
        """Canonical names, sorted."""
        return list(self._names)

    def label(self, mechanism: str) -> str:
        """A mechanism's name in the paper's words, as far as the table says them."""
        return self._labels[self.resolve(mechanism)]

    def resolve(self, mechanism: str) -> str:
        """The canonical name of a mechanism that is named so, in the paper's words, or by what it
        changes in the vanilla one, as "sparsemax+learned".

        @throws InputError  where the table has none of this name; the text has the nearest.
        """
        if isinstance(mechanism, str):
            if mechanism in self.runs:
                return mechanism
            if mechanism in self._by_label:
                return self._by_label[mechanism]
            if (name := self._changed(mechanism)) in self.runs:
                return name
        near = difflib.get_close_matches(str(mechanism), [*self.runs, *self._by_label], n=3,
                                         cutoff=0.5)
        near = list(dict.fromkeys(self._by_label.get(name, name) for name in near))
        raise InputError(f"{self.path}: mechanism = {mechanism!r}, must be one of the "
                         f"{len(self._names)} in its list `mechanisms`"
                         + (f", the nearest: {', '.join(near)}" if near else ""))

    def _changed(self, shorthand: str) -> str:
        """The vanilla mechanism with some options in place of its own; empty where they do not say
        which, or say one twice.
        """
        genes = self.facts.get("schema", {}).get("genes", [])
        fields = next((own for own in (name.split("|") for name in self._names) if all(
            field in gene.get("vanilla", [field]) for field, gene in zip(own, genes))), [])
        given: set[int] = set()
        for word in shorthand.split("+"):
            gene, _, option = word.rpartition("=")
            meant = [(place, each["key"]) for place, own in enumerate(genes[:len(fields)])
                     for each in own.get("options", ())
                     if option in (each["key"], each["label"]) and gene in ("", own["name"])]
            if len(meant) != 1 or meant[0][0] in given:
                return ""
            given.add(meant[0][0])
            fields[meant[0][0]] = meant[0][1]
        return "|".join(fields)

    def seeds(self, mechanism: str) -> list[int]:
        """Numbers of the seeds that a mechanism was trained with, ascending; the better ones often
        have further ones.
        """
        return list(self.runs[self.resolve(mechanism)])

    def query(self, mechanism: str, seed: int, step: int | None = None) -> Record:
        """A training run at one of its validations.

        @param step  one of `steps` that the run has reached; None: the last.
        @throws InputError  saying what the table has instead.
        """
        name, place = self.resolve(mechanism), _whole(seed, f"{self.path}: seed")
        run = self.runs[name].get(place)
        if run is None:
            raise InputError(f"{self.path}: seed = {place} of {name}, must be "
                             f"{_ranges(self.runs[name])}")
        if step is None:
            return self._record(name, place, run, next(reversed(run.curve), None))
        at = _whole(step, f"{self.path}: step")
        if at in run.curve:
            return self._record(name, place, run, at)
        if at in self.steps:
            last = f"its last validation at step {max(run.curve)}" if run.curve else "no validation"
            raise InputError(f"{self.path}: step = {at} of {name}, seed {place}, which ended "
                             f"before ({run.status}"
                             f"{': ' + run.reason if run.reason else ''}): it has {last}")
        raise InputError(f"{self.path}: step = {at}, must be one of "
                         f"{', '.join(map(str, self.steps))}")

    def curve(self, mechanism: str, seed: int) -> list[Record]:
        """A training run at each of its validations. @throws InputError  as query()."""
        end = self.query(mechanism, seed)
        run = self.runs[end.mechanism][end.seed]
        return [self._record(end.mechanism, end.seed, run, step) for step in run.curve]

    def costs(self, mechanism: str) -> dict[str, float]:
        """What a mechanism costs without regard to its training: parameters, flops, and what was
        measured of it, as latency, by name.
        """
        name = self.resolve(mechanism)
        values = next(iter(self.runs[name].values())).values
        return {**{key: values[key] for key in _ENDS if key in values},
                **{key: value["value"] for key, value in self.measured[name].items()}}

    def frame(self, curves: bool = False):
        """The records as a data frame of pandas: of each training run its end, or all of its
        validations.
        """
        import pandas
        records = (record for end in self
                   for record in (self.curve(end.mechanism, end.seed) if curves else [end]))
        rows = [dataclasses.asdict(record) for record in records]
        for row in rows:
            row.update(
                {key: value for key, value in row.pop("values").items() if row.get(key) is None})
        return pandas.DataFrame(rows)

    def __len__(self) -> int:
        """Number of training runs."""
        return sum(map(len, self.runs.values()))

    def __iter__(self) -> Iterator[Record]:
        """The end of every training run, by mechanism and seed."""
        return (self.query(name, seed) for name, runs in self.runs.items() for seed in runs)

    def __repr__(self) -> str:
        version = self.publication.get("version")
        return (f"<table {self.name}{' ' + version if version else ''} in {self.path}: "
                f"{len(self._names)} mechanisms, {len(self)} training runs>")

    def _begin(self) -> None:
        """What a file must begin with: SQLite's header holds the application id from byte 68 on."""
        try:
            with open(self.path, "rb") as stream:
                beginning = stream.read(72)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}") from None
        if beginning[68:] != APPLICATION_ID.to_bytes(4, "big"):
            raise InputError(f"{self.path}: not a table")

    def _read(self, database: sqlite3.Connection, check: bool) -> None:
        database.execute("PRAGMA trusted_schema = OFF")
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master"):
            plain = re.match(r"(?i)CREATE (TABLE|(UNIQUE )?INDEX) ", sql or "CREATE INDEX ")
            if kind not in ("table", "index") or not plain:
                raise InputError(f"{self.path}: holds the {kind} {name}, must hold tables and "
                                 "indices alone: what else there is would be computed when it is "
                                 "read, perhaps without end")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise InputError(f"{self.path}: a table of version {version}, must be of version "
                             f"{VERSION}")
        meta = _json_by_key(database, "meta")
        # of the content: what runs and comparisons name the table by
        self.sha256: str = meta["sha256"]
        if check and content_sha256(database) != self.sha256:
            raise InputError(f"{self.path}: its content does not fit its checksum: it was altered")
        #: What holds for every training run: corpus, model, training, semantics, ...
        #(docs/files.md)
        self.facts: dict[str, Any] = {
            **meta["facts"], **meta["identity"], "name": meta["name"], "sources": meta["sources"]}
        #: Licence, version, changelog, limits, ...; empty where the table was never published.
        self.publication: dict[str, Any] = {}
        if database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = "
                            "'publication'").fetchone():
            self.publication = _json_by_key(database, "publication")
        self._names: dict[str, int] = {}
        #: What was measured of mechanisms without training them, as latency: objects by name.
        self.measured: dict[str, dict] = {}
        for place, name, measured in database.execute("SELECT mechanism, name, measured FROM "
                                                      "mechanisms ORDER BY name"):
            self._names[name] = place
            self.measured[name] = json.loads(measured)
        self._read_runs(database)
        #: Steps of the validations, ascending; the last is the whole training run.
        self.steps: list[int] = sorted(
            {step for runs in self.runs.values() for run in runs.values() for step in run.curve})
        self._read_labels()

    def _read_runs(self, database: sqlite3.Connection) -> None:
        places = {place: name for name, place in self._names.items()}
        #: The training runs of each mechanism by seed: rows of `trainings`, with their curves.
        self.runs: dict[str, dict[int, Run]] = {name: {} for name in self._names}
        for row in _rows(database, "trainings"):
            name, seed = places[row.pop("mechanism")], row.pop("replicate")
            kept = {key: row.pop(key)
                    for key in ("status", "reason", "train_seconds", "cpu_seconds", "peak_bytes")}
            self.runs[name][seed] = Run(
                **kept, values={key: value for key, value in row.items() if value is not None},
                curve={})
        for row in _rows(database, "curves"):
            self.runs[places[row["mechanism"]]][row["replicate"]].curve[row["step"]] = row
        for name, runs in self.runs.items():
            if not runs:
                raise ValueError(f"no training run of {name}")

    def _read_labels(self) -> None:
        """The paper's words of options, where the table has them; what names two mechanisms names
        none.
        """
        genes = self.facts.get("schema", {}).get("genes", [])
        words = [{option["key"]: option["label"] for option in gene.get("options", [])}
                 for gene in genes]
        words += [{}] * max(name.count("|") + 1 for name in self._names)
        self._labels = {
            name: "|".join(own.get(field, field) for field, own in zip(name.split("|"), words))
            for name in self._names}
        count = collections.Counter(self._labels.values())
        self._by_label = {label: name for name, label in self._labels.items()
                          if label not in self._names and count[label] == 1}

    def _record(self, name: str, seed: int, run: Run, step: int | None) -> Record:
        point = run.curve[step] if step is not None else {}
        is_end = step is None or step == next(reversed(run.curve))
        nll, perplexity, accuracy = _quality(point)
        if is_end:  # the recorded ones, which the file's maker computed
            perplexity, accuracy = run.values.get("perplexity",
                                                  perplexity), run.values.get("accuracy", accuracy)
        values = dict(run.values) if is_end else {}
        return Record(mechanism=name, label=self._labels[name], seed=seed, step=step, is_end=is_end,
                      status=run.status, reason=run.reason, nll=nll, perplexity=perplexity,
                      accuracy=accuracy, tokens=point.get("tokens"),
                      train_nll=point.get("train_nll"), seconds=point.get("seconds"),
                      test_nll=values.get("test_nll"),
                      test_perplexity=values.get("test_perplexity"),
                      train_seconds=run.train_seconds, cpu_seconds=run.cpu_seconds,
                      peak_bytes=run.peak_bytes, parameters=run.values.get("parameters"),
                      flops=run.values.get("flops"), values=values)


@dataclasses.dataclass
class Run:
    """A row of `trainings`, with its rows of `curves` by step, ascending."""

    status: str
    reason: str
    train_seconds: float | None
    cpu_seconds: float | None
    peak_bytes: float | None
    values: dict[str, float]
    curve: dict[int, dict[str, Any]]


def content_sha256(database: sqlite3.Connection) -> str:
    """SHA-256 of a table's content, as docs/files.md says."""
    checksum = hashlib.sha256()
    for table, key in KEYS.items():
        where = "WHERE key <> 'sha256'" if table == "meta" else ""
        rows = database.execute(f"SELECT * FROM {table} {where} ORDER BY {key}")
        for row in ([table, *(column[0] for column in rows.description)], *rows):
            checksum.update(b"".join(map(_hashed, row)) + b"\n")
        checksum.update(b"\n")
    return checksum.hexdigest()


def _hashed(value: int | float | str | None) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"r" + struct.pack("<d", value)
    text = value.encode()
    return b"t" + struct.pack("<q", len(text)) + text


def _json_by_key(database: sqlite3.Connection, table: str) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in database.execute(f"SELECT key, value FROM "
                                                                      f"{table} ORDER BY key")}


def _rows(database: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    rows = database.execute(f"SELECT * FROM {table} ORDER BY {KEYS[table]}")
    names = [column[0] for column in rows.description]
    return (dict(zip(names, row)) for row in rows)


def _quality(point: dict[str, Any]) -> tuple[float | None, float | None, float | None]:
    """nll per target, perplexity and accuracy of a validation; None where they are not known."""
    tokens, total, correct = (point.get(name) for name in ("tokens", "nll", "correct"))
    if not tokens or tokens < 0:
        return None, None, None
    nll = None if total is None else total / tokens
    try:
        perplexity = None if nll is None else math.exp(nll)
    except OverflowError:
        perplexity = math.inf
    return nll, perplexity, None if correct is None or correct < 0 else correct / tokens


def _whole(number: Any, what: str) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise InputError(f"{what} = {number!r}, must be an integer") from None


def _ranges(numbers) -> str:
    """Whole numbers in words: "0 to 4, 7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join(" to ".join(map(str, part)) for part in parts)
