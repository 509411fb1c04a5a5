"""Reads recorded training runs of many mechanisms, each with several seeds: a table that was packed
(`*.table`, laid out in src/table/format.hpp), or the same collected from the stores of runs.
Nothing is written.

A cell is a mechanism trained with one replicate's seeds. Arrays are (mechanism, replicate), curves
(mechanism, replicate, step); what is missing is NaN.
"""

import dataclasses
import hashlib
import json
import pathlib
import sqlite3
from collections.abc import Sequence

import numpy as np
import pandas as pd

from . import sqlite_files
from .schema import Schema, schema

MISSING = -1  # status of a cell that was never trained

_MAGIC = b"NASTABLE"
_VERSION = 1
_DIGEST, _LENGTH, _HEADER = 16, 80, 88  # offsets in bytes


class TableError(Exception):
    """A file that cannot be read as a table, or runs that make none. Names the file."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Cells, with what holds for all of them."""

    path: str
    sha256: str  # of the packed content: its identity; empty where collected from runs
    facts: dict
    mechanisms: list[str]  # canonical names, sorted
    genes: pd.DataFrame  # a row for each mechanism, a column for each gene
    replicates: int
    steps: np.ndarray  # (s,) of the validation curves, ascending; the last: the whole run
    status: np.ndarray  # (m, r) index into schema.statuses, or MISSING
    valid_nll: np.ndarray  # (m, r, s) mean nll per target, nats
    valid_accuracy: np.ndarray  # (m, r, s) share of targets ranked first
    curve_seconds: np.ndarray  # (m, r, s) since the beginning of the run
    test_nll: np.ndarray  # (m, r) at the end, NaN where the test split was not scored
    seconds: np.ndarray  # (m, r) that a replay charges: of the processor, else of the clock
    values: dict[str, np.ndarray]  # name: (m, r), as evaluations record them
    measured: dict[str, np.ndarray]  # measured objective, e.g. latency: (m,)

    @property
    def schema(self) -> Schema:
        """What the record says of genes, objectives and statuses."""
        return schema(self.facts.get("schema"))

    @property
    def usable(self) -> np.ndarray:
        """(m, r): trained to the end."""
        return self.status == self.schema.statuses.index("ok")

    def troubles(self) -> list[str]:
        """Cells that are not usable, in words: "NAME, replicate 2: diverged"."""
        statuses = self.schema.statuses
        return [f"{self.mechanisms[i]}, replicate {r}: "
                + ("missing" if self.status[i, r] == MISSING else statuses[self.status[i, r]])
                for i, r in np.argwhere(~self.usable)]


def load(paths: Sequence[str]) -> Table:
    """A packed table, or the evaluations of one or several runs (folders or their store.sqlite).

    @throws TableError
    """
    files = [_file(path) for path in paths]
    packed = [file for file in files if _begins_with(file, _MAGIC)]
    if not packed:
        return collect(files)
    if len(files) > 1:
        raise TableError(f"{packed[0]}: a packed table stands for itself, but {len(files)} files "
                         "are given")
    return read(packed[0])


def read(path: str) -> Table:
    """A packed table, memory-mapped; its checksum is verified.

    @throws TableError  where the file is no table, of another version, or damaged.
    """
    data = np.memmap(path, dtype=np.uint8, mode="r")
    if len(data) < _HEADER or data[:len(_MAGIC)].tobytes() != _MAGIC:
        raise TableError(f"{path}: not a table")
    version = int(data[8:_DIGEST].view("<i8")[0])
    if version != _VERSION:
        raise TableError(f"{path}: a table of version {version}, must be of version {_VERSION}")
    sha256 = data[_DIGEST:_LENGTH].tobytes().decode("ascii", "replace")
    if hashlib.sha256(data[_LENGTH:]).hexdigest() != sha256:
        raise TableError(f"{path}: its content does not fit its checksum: cut short or altered")
    end = _HEADER + int(data[_LENGTH:_HEADER].view("<i8")[0])
    header = json.loads(data[_HEADER:end].tobytes())
    columns = _columns(header, data[end:])
    facts = {**header["facts"], **header["identity"], "name": header["name"],
             "sources": header["sources"]}
    points = columns["points"][..., None] > np.arange(len(header["steps"]))

    def curve(values):
        return np.where(points, values, np.nan)

    cpu, clock = columns["cpu_seconds"], columns["train_seconds"]
    tokens = curve(columns["valid.tokens"])
    values = {name.removeprefix("values."): column for name, column in columns.items()
              if name.startswith("values.")}
    with np.errstate(invalid="ignore", divide="ignore"):
        nll, accuracy = (curve(columns[f"valid.{what}"]) / tokens for what in ("nll", "correct"))
    return Table(path, sha256, facts, header["mechanisms"],
                 genes(header["mechanisms"], schema(facts.get("schema"))),
                 header["replicates"], np.array(header["steps"]), columns["status"], nll, accuracy,
                 curve(columns["seconds"]), values.get("test_nll", np.full(cpu.shape, np.nan)),
                 np.where(np.isnan(cpu), clock, cpu), values,
                 _measured(header["measured"]))


def _columns(header: dict, data: np.ndarray) -> dict[str, np.ndarray]:
    """Every column by name as (m, r) or (m, r, s), without copying."""
    cells = (len(header["mechanisms"]), header["replicates"])
    columns = {}
    for column in header["columns"]:
        shape = (*cells, len(header["steps"])) if _is_curve(column["name"]) else cells
        count = 1 if column["per"] == "table" else int(np.prod(shape))
        begin = 8 * column["offset"]
        words = data[begin:begin + 8 * count].view("<f8" if column["type"] == "f64" else "<i8")
        columns[column["name"]] = (np.broadcast_to(words, shape) if count == 1
                                   else words.reshape(shape))
    return columns


def _is_curve(name: str) -> bool:
    return name in ("train_nll", "seconds") or name.startswith("valid.")


def collect(files: Sequence[str]) -> Table:
    """The evaluations of runs as a table; a cell that several runs have is taken from the first.

    @throws TableError  where a file is no run's store, where runs differ in what determines their
        results, or where nothing has been evaluated.
    """
    cells: dict[tuple[str, int], tuple] = {}
    facts: dict = {}
    identity: dict | None = None
    path = ", ".join(files)
    try:
        for file in files:
            for candidate, replicate, own, *cell in _evaluations(file, facts):
                identity = own if identity is None else identity
                if own != identity:
                    keys = sorted(key for key in {*own, *identity}
                                  if own.get(key) != identity.get(key))
                    raise TableError(f"{file}: differs from {files[0]} in {', '.join(keys)}; only "
                                     "trainings of the same kind can be put together")
                cells.setdefault((candidate, replicate), tuple(cell))
        if not cells:
            raise TableError(f"{files[0]}: holds no evaluation yet")
        return _collected(cells, {**facts, **identity}, path)
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(f"{path}: damaged: {type(error).__name__}: {error}") from None


def _evaluations(file: str, facts: dict) -> list[tuple]:
    """(candidate, replicate, what it has in common with others, status, curve, values, measured) of
    each evaluation; facts receives what the run says of itself."""
    try:
        database = sqlite_files.open_read_only(file)
        rows = [(candidate, replicate, status, *results) for
                _, candidate, replicate, status, _, *results in
                sqlite_files.records(database, "evaluations")]
        meta = sqlite_files.meta(database)
        database.close()
    except sqlite3.DatabaseError as error:
        raise TableError(f"{file}: neither a table nor the store of a run: {error}") from None
    facts.update({**meta.get("facts", {}), "name": meta.get("config", {}).get("name", ""),
                  "sources": [*facts.get("sources", []), file]})
    if "schema" in meta:
        facts.setdefault("schema", meta["schema"])
    return [(candidate, replicate, {key: value for key, value in json.loads(own).items()
                                    if key not in ("candidate", "replicate")},
             status, *map(json.loads, texts))
            for candidate, replicate, status, own, *texts in rows]


def _collected(cells: dict, facts: dict, path: str) -> Table:
    mechanisms = sorted({candidate for candidate, _ in cells})
    replicates = max(replicate for _, replicate in cells) + 1
    longest = max((curve for _, curve, _, _ in cells.values()), key=len)
    steps = np.array([point["step"] for point in longest], dtype=np.int64)
    shape = (len(mechanisms), replicates)
    status = np.full(shape, MISSING)
    nll, accuracy, at = (np.full((*shape, len(steps)), np.nan) for _ in range(3))
    seconds = np.full(shape, np.nan)
    names = sorted({name for _, _, values, _ in cells.values() for name in values})
    values = {name: np.full(shape, np.nan) for name in names}
    objectives: list[dict[str, list]] = [{} for _ in mechanisms]
    number = {name: i for i, name in enumerate(mechanisms)}
    recorded = schema(facts.get("schema"))
    statuses = recorded.statuses
    for (candidate, replicate), (state, curve, own, measured) in cells.items():
        cell = (number[candidate], replicate)
        status[cell] = statuses.index(state)
        for i, point in enumerate(curve):
            valid = point["valid"]
            if valid["tokens"]:
                nll[cell][i] = valid["nll"] / valid["tokens"]
                accuracy[cell][i] = valid["correct"] / valid["tokens"]
            at[cell][i] = point["seconds"]
        for name, value in own.items():
            values[name][cell] = np.nan if value is None else value
        seconds[cell] = measured.get("cpu_seconds", measured.get("train_seconds", np.nan))
        for name, value in measured.items():
            if isinstance(value, dict) and "value" in value:
                objectives[cell[0]].setdefault(name, []).append(value["value"])
    lower = [{name: {"value": sorted(found)[(len(found) - 1) // 2]}
              for name, found in own.items()} for own in objectives]
    return Table(path, "", facts, mechanisms, genes(mechanisms, recorded), replicates, steps, status, nll,
                 accuracy, at, values.get("test_nll", np.full(shape, np.nan)), seconds, values,
                 _measured(lower))


def _measured(records: list[dict]) -> dict[str, np.ndarray]:
    names = sorted({name for record in records for name in record})
    return {name: np.array([record[name]["value"] if name in record else np.nan
                            for record in records]) for name in names}


def genes(mechanisms: Sequence[str], recorded: Schema) -> pd.DataFrame:
    """The options of each mechanism, from its name "dot|softmax|none|fixed|bias|0".

    @param recorded  names the genes.
    @throws TableError  for a name with another number of fields.
    """
    names = recorded.genes
    rows = [name.split("|") for name in mechanisms]
    for name, row in zip(mechanisms, rows):
        if len(row) != len(names):
            raise TableError(f"mechanism {name!r}: {len(row)} fields, must be {len(names)}: "
                             f"{'|'.join(names)}")
    return pd.DataFrame(rows, columns=list(names), index=list(mechanisms))


def _file(path: str) -> str:
    file = pathlib.Path(path)
    file = file / "store.sqlite" if file.is_dir() else file
    if not file.is_file():
        raise TableError(f"{file}: no such file; give a table, a run's folder or its store.sqlite")
    return str(file)


def _begins_with(file: str, magic: bytes) -> bool:
    with open(file, "rb") as stream:
        return stream.read(len(magic)) == magic
