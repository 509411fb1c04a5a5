"""Recorded training runs of many mechanisms, each with several seeds, as arrays: of a packed table,
which attnas.table reads, or collected from the digests of runs. Nothing is written.

A cell is a mechanism trained with one replicate's seeds. Arrays are (mechanism, replicate), curves
(mechanism, replicate, step); what is missing is NaN.
"""

import dataclasses
import os
from collections.abc import Sequence

import numpy as np
import pandas as pd

from .. import table as packed_tables
from ..errors import InputError
from ..table import APPLICATION_ID
from . import digest
from .digest import FIRST_HELD_OUT, BadInput
from .genes import is_fixed
from .schema import Schema, schema

MISSING = -1  # status of a cell that was never trained


class TableError(BadInput):
    """A file that cannot be read as a table, or runs that make none. Names the file."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Cells, with what holds for all of them."""

    path: str
    sha256: str  # of the packed content: its identity; empty where collected from runs
    facts: dict
    mechanisms: list[str]  # canonical names, sorted
    genes: pd.DataFrame  # a row for each mechanism, a column for each gene; None: not applicable
    numbers: tuple[int, ...]  # of the replicates, ascending: those that occur
    steps: np.ndarray  # (s,) of the validation curves, ascending; the last: the whole run
    status: np.ndarray  # (m, r) index into schema.statuses, or MISSING
    valid_nll: np.ndarray  # (m, r, s) mean nll per target, nats
    valid_accuracy: np.ndarray  # (m, r, s) share of targets ranked first
    curve_seconds: np.ndarray  # (m, r, s) since the beginning of the run
    test_nll: np.ndarray  # (m, r) at the end, NaN where the test split was not scored
    seconds: np.ndarray  # (m, r) that a replay charges: of the processor, else of the clock
    values: dict[str, np.ndarray]  # name: (m, r), as evaluations record them
    measured: dict[str, np.ndarray]  # measured objective, e.g. latency: (m,)
    # terms, version, and the gates of its task
    publication: dict = dataclasses.field(default_factory=dict)

    @property
    def replicates(self) -> int:
        """How many there are: r."""
        return len(self.numbers)

    @property
    def drawn(self) -> int:
        """How many of them answer searches: those up to the last that nine tenths of the mechanisms
        have, as common_replicates() in src/table/format.hpp counts them. The better ones are often
        given further ones."""
        common = np.flatnonzero(10 * (self.status != MISSING).sum(axis=0) >= 9 *
                                len(self.mechanisms))
        return int(common[-1]) + 1 if len(common) else 0

    @property
    def schema(self) -> Schema:
        """What the record says of genes, objectives and statuses."""
        return schema(self.facts.get("schema"))

    @property
    def usable(self) -> np.ndarray:
        """(m, r): trained to the end."""
        return self.status == self.schema.statuses.index("ok")

    def brief(self, mechanism: str) -> str:
        """A mechanism's name for people: of names of many genes what differs from the baseline."""
        return self.facts.get("differences", {}).get(mechanism, mechanism)

    def vanilla(self, among: Sequence[str]) -> str | None:
        """Of some mechanisms the baseline: the recorded one, else the first whose genes the record
        calls vanilla; None: it is not among them."""
        if "baseline" in self.facts:  # of runs with names of many genes
            recorded = self.facts["baseline"]
            return recorded if recorded in among else None
        return next(
            (name for name in among if all(self.genes.at[name, gene] in allowed
                                           for gene, allowed in self.schema.vanilla.items())), None)

    def baseline(self) -> str:
        """The vanilla mechanism.

        @throws TableError  where the table has none.
        """
        name = self.vanilla(self.mechanisms)
        if name is None:
            raise TableError(f"{self.path}: does not have the baseline")
        return name

    @property
    def wanted(self) -> np.ndarray:
        """(m, r): the cells that are there, or of replicates that answer searches; where there are
        none of these, all.
        """
        return (self.status != MISSING) | (np.arange(self.replicates) < (self.drawn
                                                                         or self.replicates))

    def troubles(self, cells: np.ndarray | None = None) -> list[str]:
        """Cells that are not usable, in words: "NAME, replicate 2: diverged". @param cells  (m, r)
        mask of those that count; all.
        """
        statuses = self.schema.statuses
        return [f"{self.brief(self.mechanisms[i])}, replicate {self.numbers[r]}: "
                + ("missing" if self.status[i, r] == MISSING else statuses[self.status[i, r]])
                for i, r in np.argwhere(~self.usable if cells is None else cells & ~self.usable)]


def load(paths: Sequence[str]) -> Table:
    """A packed table, or the evaluations of one or several runs, as digest.read() takes them.

    @throws BadInput
    """
    packed = [path for path in paths if _is_packed(path)]
    if not packed:
        return collect(paths)
    if len(paths) > 1:
        raise TableError(f"{packed[0]}: a packed table stands for itself, but {len(paths)} files "
                         "are given")
    return read(packed[0])


def read(path: str) -> Table:
    """A packed table; its checksum is verified.

    @throws TableError  where the file is no table, of another version, or damaged.
    """
    try:
        return _arrays(packed_tables.Table(path))
    except InputError as error:
        raise TableError(str(error)) from None
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TableError(f"{path}: damaged: {type(error).__name__}: {error}") from None


def _arrays(packed: packed_tables.Table) -> Table:
    recorded = schema(packed.facts.get("schema"))
    own = packed.facts.get("space")  # of a table of choices
    names = recorded.genes if own is None else [gene["name"] for gene in own]
    runs = [(row, seed, run) for row, own in enumerate(packed.runs.values())
            for seed, run in own.items()]
    rows, seeds = np.array([(row, seed) for row, seed, _ in runs]).T
    points = [(row, seed, column, run.curve[step]) for row, seed, run in runs
              for column, step in enumerate(packed.steps) if step in run.curve]
    places = tuple(np.array([place[:3] for place in points], dtype=int).reshape(-1, 3).T)
    shape = (len(packed.mechanisms), int(seeds.max()) + 1)

    def cells(values, missing=np.nan) -> np.ndarray:
        array = np.full(shape, missing)
        array[rows, seeds] = np.array([missing if value is None else value for value in values],
                                      dtype=array.dtype)
        return array

    def curves(name: str, per_target: bool) -> np.ndarray:
        array = np.full((*shape, len(packed.steps)), np.nan)
        array[places] = [np.nan if row[name] is None or per_target and not row["tokens"] else
                         row[name] / row["tokens"] if per_target else row[name]
                         for *_, row in points]
        return array

    values = {name: cells(run.values.get(name) for *_, run in runs)
              for name in sorted({name for *_, run in runs for name in run.values})}
    clock, cpu = (cells(getattr(run, name) for *_, run in runs)
                  for name in ("train_seconds", "cpu_seconds"))
    return Table(packed.path, packed.sha256, packed.facts, packed.mechanisms,
                 genes(packed.mechanisms, names), tuple(range(shape[1])),
                 np.array(packed.steps, dtype=np.int64),
                 cells((recorded.statuses.index(run.status) for *_, run in runs), MISSING),
                 curves("nll", True), curves("correct", True), curves("seconds", False),
                 values.get("test_nll", np.full(shape, np.nan)),
                 np.where(np.isnan(cpu), clock, cpu), values,
                 _measured(list(packed.measured.values())), packed.publication)


def collect(runs: Sequence[str]) -> Table:
    """The evaluations of runs as a table; a cell that several runs have is taken from the first. Of
    a run those of its search count, or those of its list of mechanisms.

    @throws BadInput  where something is no run, where they differ in what determines their results,
        or where nothing has been evaluated.
    """
    cells: dict[tuple[str, int], dict] = {}
    facts: dict = {}
    models: dict = {}  # of names of many genes
    identity: dict | None = None
    path = ", ".join(runs)
    try:
        for run in runs:
            own = digest.read(run)
            facts.update({**own["facts"], "name": own["config"].get("name", ""),
                          "sources": [*facts.get("sources", []), run]})
            if recorded := own.get("models") or _without_genes(own):
                _add_models(models, recorded, own["config"].get("space", {}), run)
                baseline = (own["baseline"] or {}).get("candidate")
                if facts.setdefault("baseline", baseline) == baseline:
                    facts["differences"] = {
                        **recorded["differences"], **facts.get("differences", {})}
            if own["record_schema"]:
                facts.setdefault("schema", own["record_schema"])
            for evaluation in _of_the_search(own):
                # Limits of early stopping follow from the batches before: they differ within a
                # search.
                given = {
                    key: value for key, value in own["identities"][evaluation["identity"]].items()
                    if key != "stop_above_nll"}
                identity = given if identity is None else identity
                if given != identity:
                    keys = sorted(key for key in {*given, *identity}
                                  if given.get(key) != identity.get(key))
                    among = f"differs from {runs[0]}" if run != runs[
                        0] else "its own trainings differ"
                    raise TableError(f"{run}: {among} in {', '.join(keys)}; only trainings of the "
                                     f"same kind can be put together")
                cells.setdefault((evaluation["candidate"], evaluation["replicate"]), evaluation)
        if not cells:
            raise TableError(f"{path}: holds no evaluation of its search yet")
        return _collected(cells, {**facts, **identity}, path, models)
    except (KeyError, TypeError, ValueError) as error:
        raise TableError(f"{path}: damaged: {type(error).__name__}: {error}") from None


def _of_the_search(own: dict) -> list[dict]:
    """The evaluations that a run's search made, as attnas.data.packing takes them: none on the
    fresh seeds of its re-test, none under the settings that its tuning tried, none of names that
    are no models and were never trained. Of a run of listed mechanisms those that it compares;
    while it compares none yet, those on fresh seeds."""
    listed = "mechanisms" in own["config"]
    compared = {one for candidate in (own.get("retest") or {}).get("candidates", [])
                for one in candidate["evaluations"]}
    training = own["config"].get("training") or {}

    def is_its_own(evaluation: dict) -> bool:
        if evaluation["status"] == "rejected":
            return False
        used = own["identities"][evaluation["identity"]].get("training", {})
        if any(key in training and training[key] != value for key, value in used.items()):
            return False
        if listed and compared:
            return evaluation["id"] in compared
        return listed == (evaluation["replicate"] >= FIRST_HELD_OUT)

    return [evaluation for evaluation in own["evaluations"] if is_its_own(evaluation)]


def _without_genes(own: dict) -> dict | None:
    """What a digest says of names of many genes, none of which its space varies: nothing but the
    names. None: it has genes.
    """
    if own["genes"]:
        return None
    return {"genes": [], "choices": {one["candidate"]: [] for one in own["evaluations"]},
            "differences": {}}


def _add_models(models: dict, own: dict, space: dict, run: str) -> None:
    """Joins what digests say of names of many genes, as far as spaces let them vary.

    @throws BadInput  where the genes differ.
    """
    places = [place for place, name in enumerate(own["genes"]) if not is_fixed(space, name)]
    names = [own["genes"][place] for place in places]
    if models and models["genes"] != names:
        raise TableError(f"{run}: its genes are {', '.join(names)}, must be "
                         f"{', '.join(models['genes'])}, as those of the runs before it")
    models["genes"] = names
    choices = models.setdefault("choices", {})
    for name, chosen in own["choices"].items():
        choices[name] = [chosen[place] for place in places]


def _collected(cells: dict[tuple[str, int], dict], facts: dict, path: str, models: dict) -> Table:
    mechanisms = sorted({candidate for candidate, _ in cells})
    numbers = tuple(sorted({replicate for _, replicate in cells}))  # a re-test's begin at a million
    column = {own: i for i, own in enumerate(numbers)}
    longest = max((cell["curve"] for cell in cells.values()), key=len)
    steps = np.array([point["step"] for point in longest], dtype=np.int64)
    shape = (len(mechanisms), len(numbers))
    status = np.full(shape, MISSING)
    nll, accuracy, at = (np.full((*shape, len(steps)), np.nan) for _ in range(3))
    seconds = np.full(shape, np.nan)
    names = sorted({name for cell in cells.values() for name in cell["values"]})
    values = {name: np.full(shape, np.nan) for name in names}
    objectives: list[dict[str, list]] = [{} for _ in mechanisms]
    number = {name: i for i, name in enumerate(mechanisms)}
    recorded = schema(facts.get("schema"))
    statuses = recorded.statuses
    for (candidate, replicate), own in cells.items():
        cell, measured = (number[candidate], column[replicate]), own["measured"]
        status[cell] = statuses.index(own["status"])
        for i, point in enumerate(own["curve"]):
            valid = point["valid"]
            if valid["tokens"] and valid["nll"] is not None:
                nll[cell][i] = valid["nll"] / valid["tokens"]
                accuracy[cell][i] = valid["correct"] / valid["tokens"]
            at[cell][i] = point["seconds"]
        for name, value in own["values"].items():
            values[name][cell] = np.nan if value is None else value
        seconds[cell] = measured.get("cpu_seconds", measured.get("train_seconds", np.nan))
        for name, value in measured.items():
            if isinstance(value, dict) and "value" in value:
                objectives[cell[0]].setdefault(name, []).append(value["value"])
    lower = [{name: {"value": sorted(found)[(len(found) - 1) // 2]}
              for name, found in own.items()} for own in objectives]
    own = genes_of(mechanisms, models) if models else genes(mechanisms, recorded.genes)
    return Table(path, "", facts, mechanisms, own, numbers, steps, status, nll, accuracy, at,
                 values.get("test_nll", np.full(shape, np.nan)), seconds, values, _measured(lower))


def _measured(records: list[dict]) -> dict[str, np.ndarray]:
    names = sorted({name for record in records for name in record})
    return {name: np.array([record[name]["value"] if name in record else np.nan
                            for record in records]) for name in names}


def genes(mechanisms: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """The options of each mechanism, from its name "dot|softmax|none|fixed|bias|0".

    @param names  of the genes.
    @throws TableError  for a name with another number of fields.
    """
    rows = [name.split("|") for name in mechanisms]
    for name, row in zip(mechanisms, rows):
        if len(row) != len(names):
            raise TableError(f"mechanism {name!r}: {len(row)} fields, must be {len(names)}: "
                             f"{'|'.join(names)}")
    return pd.DataFrame(rows, columns=list(names), index=list(mechanisms))


def genes_of(mechanisms: Sequence[str], models: dict) -> pd.DataFrame:
    """The options of each mechanism, as digests say them of names of many genes.

    @throws TableError  for a mechanism of which they do not say them.
    """
    for name in mechanisms:
        if name not in models["choices"]:
            raise TableError(f"mechanism {name!r}: the runs do not say what it has of their genes: "
                             "a model that only later versions know, as pair(...) is?")
    return pd.DataFrame([models["choices"][name] for name in mechanisms],
                        columns=list(models["genes"]), index=list(mechanisms), dtype=object)


def _is_packed(path: str) -> bool:
    """By its beginning: SQLite's header holds the application id from byte 68 on."""
    if os.path.isdir(path):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(72)[68:] == APPLICATION_ID.to_bytes(4, "big")
    except FileNotFoundError:
        raise TableError(f"{path}: no such file; give a table, {digest.RUN}") from None
