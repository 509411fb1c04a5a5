"""The store of a run as it is written, and its JSON again byte for byte."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from attnas.analysis import sqlite_files
from attnas.errors import InputError
from attnas.table import APPLICATION_ID

_COLUMNS = ("id", "candidate", "replicate", "status", "reason", "identity", "curve", '"values"',
            "measured")
_ABSENT: Any = object()


class Real(float):
    """A number that is written as it was read."""

    def __new__(cls, text: str):
        made = super().__new__(cls, text)
        made.text = text
        return made


def parsed(text: str | bytes) -> Any:
    """@throws InputError  where it is no JSON."""
    try:
        return json.loads(text, parse_float=Real)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is no JSON: {error}") from None


def dumped(value: Any) -> str:
    """JSON as the programs in C++ write it: keys sorted, no blanks."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{dumped(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumped, value)) + "]"
    if isinstance(value, Real):
        return value.text
    if isinstance(value, float) and 1e15 <= abs(value) < 1e16:
        digits = f"{value:.0f}".rstrip("0")  # whose exponents begin there
        sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e+15"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, each "path: before -> now"; lists element by element."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [(key, before.get(key, _ABSENT), now.get(key, _ABSENT))
                for key in sorted({*before, *now})]
    elif isinstance(before, list) and isinstance(now, list):
        keys = [(str(i), *(side[i] if i < len(side) else _ABSENT for side in (before, now)))
                for i in range(max(len(before), len(now)))]
    else:
        if before is _ABSENT or now is _ABSENT or before != now \
                or isinstance(before, bool) != isinstance(now, bool):
            shown = ["absent" if side is _ABSENT else dumped(side) for side in (before, now)]
            yield f"{path}: {shown[0]} -> {shown[1]}"
        return
    for key, *sides in keys:
        yield from differences(*sides, f"{path}.{key}" if path else key)


@dataclasses.dataclass
class Evaluation:
    """One candidate measured once, as src/store/evaluation.hpp has it; numbers of JSON that has
    none for infinity and NaN are texts."""

    id: str
    candidate: str
    replicate: int
    status: str
    reason: str
    identity: dict
    curve: list[dict]
    values: dict
    measured: dict

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.candidate}, replicate {self.replicate}"

    def canonical(self) -> dict:
        """The comparable part: no measured fields, no seconds."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
               if field.name != "measured"}
        own["curve"] = [{key: value for key, value in point.items() if key != "seconds"}
                        for point in self.curve]
        return own

    def objectives(self) -> dict[str, dict]:
        """What was measured without training, as latency, by name."""
        return {name: value for name, value in self.measured.items()
                if isinstance(value, dict) and "value" in value}


def store_file(given: str | os.PathLike) -> pathlib.Path:
    """The store of a run that is named by it or by its folder.

    @throws InputError  where there is none.
    """
    file = pathlib.Path(given)
    if file.is_dir():
        file /= "store.sqlite"
    if not file.exists():
        raise InputError(f"{file}: no such store; give a run's folder")
    if is_table(file):
        raise InputError(f"{file}: is a table, must be a run's folder; nas-data table info {file} "
                         "describes it")
    return file


def is_table(file: pathlib.Path) -> bool:
    """By the application_id in the header of SQLite."""
    if not file.is_file():
        return False
    with open(file, "rb") as stream:
        return stream.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")


class Run:
    """What the store of a run holds."""

    def __init__(self, given: str | os.PathLike):
        """@throws InputError  naming the file: there is none, or it is damaged."""
        self.given = os.fspath(given)
        self.file = store_file(given)
        try:
            with contextlib.closing(sqlite_files.open_read_only(self.file)) as database:
                self._meta = {key: text for key, text in self._rows(database, "meta", "fact",
                                                                   ("key", "value"))}
                #: By id.
                self.evaluations = [self._evaluation(row) for row in self._rows(
                    database, "evaluations", "evaluation", _COLUMNS, "ORDER BY id")]
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.file}: not a readable store: {error}") from None

    @property
    def name(self) -> str:
        """For people: its folder's, or its file's."""
        file = self.file.absolute()
        return (file.parent if file.name == "store.sqlite" else file).name

    def meta(self, key: str, default: Any = None) -> Any:
        """A fact of the run."""
        found = parsed(self._meta[key]) if key in self._meta else None
        return default if found is None else found

    def environments(self) -> list[dict]:
        """Of its sessions, each once."""
        found: list[dict] = []
        for session in self.meta("sessions", []):
            if session["environment"] not in found:
                found.append(session["environment"])
        return found

    def _rows(self, database, table: str, what: str, columns, rest="") -> Iterator[tuple]:
        """Rows as texts. @throws InputError  where one is not as it was written."""
        for *row, digest in database.execute(
                f"SELECT {', '.join(columns)}, digest FROM {table} {rest}"):
            texts = [str(column).encode() for column in row]
            own = hashlib.sha256(b"".join(b"%d:%s" % (len(text), text) for text in texts))
            if digest != own.digest():
                self._refuse(what, row[0], "its SHA-256 does not fit")
            yield tuple(row)

    def _evaluation(self, row: tuple) -> Evaluation:
        try:
            identity, curve, values, measured = map(parsed, row[5:])
            if identity.get("candidate", "") is None:
                identity["candidate"] = row[1]
            values = {name: _number(value) for name, value in values.items()}
            return Evaluation(*row[:5], identity, [_point(point) for point in curve], values,
                              measured)
        except (InputError, KeyError, TypeError, AttributeError) as error:
            self._refuse("evaluation", row[0], str(error))

    def _refuse(self, what: str, key: str, reason: str):
        raise InputError(f"{self.file}: the record of {what} {key} is damaged: {reason}; put a "
                         "copy of the file in its place, or take the record out by: nas-run "
                         f"verify {self.file.parent} --remove, after which the same command makes "
                         "it again")


def _number(value: Any) -> Any:
    """A real number, as which integers are written, too; null is infinity."""
    if value is None:
        return "inf"
    return Real(f"{value}.0") if isinstance(value, int) else value


_REALS = ("nll", "pad_nll", "unknown_nll", "batch_mean_nll")


def _point(point: dict) -> dict:
    valid = point["valid"]
    return {"step": point["step"], "train_nll": _number(point["train_nll"]),
            "seconds": point["seconds"],
            "valid": {**valid, **{name: _number(valid[name]) for name in _REALS}}}
