"""The frames of a run, from its record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from attnas.analysis import latex
from attnas.analysis.columns import Records
from attnas.analysis.digest import perplexity
from attnas.analysis.exports import ask_columns, ask_rows
from attnas.analysis.genes import choices_by_label
from attnas.analysis.run import Evaluation, Run, finite_or
from attnas.analysis.schema import training_of


class _Table:
    """Rows, kept as columns."""

    def __init__(self) -> None:
        self._columns: dict[str, list] = {}
        self._size = 0

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; what other rows have besides is not known of it."""
        for name, value in row.items():
            if name not in self._columns:
                self._columns[name] = [math.nan] * self._size
            self._columns[name].append(value)
        self._size += 1
        if len(row) < len(self._columns):
            for column in self._columns.values():
                column += [math.nan] * (self._size - len(column))

    def frame(self, first: list[str], last: list[str] | None = None) -> pd.DataFrame:
        """The rows. @param first, last  columns at the beginning and at the end, which no row may
        have.
        """
        last = last or []
        names = [name for name in (*first, *self._columns) if name not in last] + last
        names = [*dict.fromkeys(names)]
        if self._size == 0:
            return pd.DataFrame([], columns=names)
        nothing = [math.nan] * self._size
        return pd.DataFrame({name: self._columns.pop(name, nothing) for name in names})


def candidates(run: Run) -> pd.DataFrame:
    """See attnas.Run.candidates."""
    own = run.digest
    controls = {one["candidate"]: one["name"] for one in own.get("controls") or []}
    controls |= {one["candidate"]: one["label"] for one in run.retest.get("candidates", [])
                 if one["role"] == "control"}
    seconds = _seconds(run)
    table, rows = _Table(), []
    add = rows.append if run.listed else table.add
    known = set()
    for record in _records(own["ranking"], "candidate", *_OF_A_CANDIDATE):
        known.add(record["candidate"])
        add(_candidate(run, record, seconds))
    others = [record for record in (own["baseline"], *(own.get("controls") or [])) if record]
    asked = _asked(run, (record["candidate"] for record in others))
    for record in others:
        name, ids = record["candidate"], record["evaluations"]
        if name not in known:
            known.add(name)
            # where some failed
            replicates = [run.by_id[id_] for id_ in ids] if record["n"] < len(ids) else []
            add(_candidate(run, record, seconds) | _judged(run, replicates, asked[name]))
    for row in _others(run, known):
        add(row)
    if run.listed:  # which nothing has ranked
        first = run.objectives[0]
        rows.sort(key=lambda row: (row["n"] == 0, row["candidate"] in known,
                                   finite_or(first.natural(row[first.name]), math.inf)))
        for row in rows:
            table.add(row)
    names = ["mechanism", "candidate", "status", "on_front"]
    for objective in run.objectives:
        names += [objective.name, f"{objective.name}_standard_error"]
    frame = table.frame([*names, "n", "first_ask", "times_asked", "stopped_at", "train_seconds"])
    numbers = [name for each in run.objectives
               for name in (each.name, f"{each.name}_standard_error")]
    if controls:
        frame.insert(2, "control", frame.candidate.map(controls).fillna(""))
    frame = frame.astype({"on_front": bool, **dict.fromkeys(numbers, float)})
    return _with_genes(run, _with_integers(frame, "first_ask", "stopped_at"))


_OF_A_CANDIDATE = ("mechanism", "values", "standard_errors", "n", "stopped_at", "on_front",
                   "first_ask", "times_asked", "evaluations", "facts")


def _records(records: Records, *keys: str) -> Iterator[dict[str, Any]]:
    """Records with some of their keys."""
    for chunk in records.columns(*keys):
        for values in zip(*chunk):
            yield dict(zip(keys, values))


def _seconds(run: Run) -> dict[str, float]:
    """Seconds of training of the evaluations that have some, by id."""
    return {
        id_: seconds for ids, measured in run.digest["evaluations"].columns("id", "measured")
        for id_, own in zip(ids, measured) if (seconds := finite_or(own.get("train_seconds"), 0.0))
    }


def _others(run: Run, known: set[str]) -> list[dict[str, Any]]:
    """Rows of the candidates that have no usable evaluation, or that are only compared."""
    if all(name in known for names, in run.digest["evaluations"].columns("candidate")
           for name in names):
        return []
    others: dict[str, list[Evaluation]] = {}
    for evaluation in run.evaluations:
        if evaluation.candidate not in known:
            others.setdefault(evaluation.candidate, []).append(evaluation)
    asked = _asked(run, others)
    return [{"mechanism": run.label(name), "candidate": name, "on_front": False,
             "n": sum(each.usable for each in own), "first_ask": None, "times_asked": 0,
             "train_seconds": sum(each.seconds for each in own), **_judged(run, own, asked[name]),
             **(_listed(run, name, own) if run.listed else {})} for name, own in others.items()]


def _asked(run: Run, names: Iterable[str]) -> dict[str, list[tuple[int, str]]]:
    """Number and status of each ask for some candidates."""
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for block in run.digest["asks"].columns("candidate", "number", "status"):
        for name, number, status in zip(*block):
            if name in found:
                found[name].append((number, status))
    return found


def _judged(run: Run, own: list[Evaluation], asked: list[tuple[int, str]]) -> dict[str, Any]:
    """What became of a candidate outside the ranking: as its last ask was judged; else the worst
    status of its replicates, of the usable ones where divergence_rate judges failures."""
    if asked:
        return {"status": asked[-1][1], "first_ask": min(asked)[0] + 1, "times_asked": len(asked)}
    judges = [*(objective.key for objective in run.objectives),
              *map(str, run.config.get("constraints") or [])]
    if any(one.startswith("divergence_rate") for one in judges):
        own = [each for each in own if each.usable] or own
    return {"status": max(
        (each.status for each in own), key=run.schema.statuses.index)} if own else {}


def evaluations(run: Run) -> pd.DataFrame:
    """See attnas.Run.evaluations."""
    answered: dict[str, list[int]] = {}
    batches: dict[str, int] = {}
    for number, batch, ids in (
            row for chunk in run.digest["asks"].columns("number", "batch", "evaluations")
            for row in zip(*chunk)):
        for id_ in ids:
            answered.setdefault(id_, []).append(number + 1)
            batches.setdefault(id_, batch)
    table, rates = _Table(), _rates(run)
    for place, own in enumerate(_records(
            run.digest["evaluations"], "id", "candidate", "replicate", "status", "reason",
            "usable", "objectives", "values", "measured", "curve", "stopped_at")):
        last = own["curve"][-1] if own["curve"] else {"step": 0, "valid": {}}
        quality = {name: last["valid"].get(name) for name in ("nll", "tokens") if own["usable"]}
        table.add({
            "mechanism": run.label(own["candidate"]), "candidate": own["candidate"],
            "replicate": own["replicate"], "asks": answered.get(own["id"], []),
            "batch": batches.get(own["id"]), "status": own["status"], "reason": own["reason"],
            "usable": own["usable"], **({"learning_rate": rates[place]} if rates else {}),
            **_numbers(own["objectives"]), **_numbers(own["values"]), **_numbers(quality),
            "steps": last["step"], "stopped_at": own["stopped_at"],
            # Measured objectives are among the objectives.
            **{name: value for name, value in own["measured"].items()
               if not isinstance(value, dict)}, "id": own["id"]
        })
    frame = table.frame([
        "mechanism", "candidate", "replicate", "asks", "batch", "status", "reason", "usable",
        *(objective.name for objective in run.objectives)], ["id"])
    return _with_genes(run, _with_integers(frame, "batch", "stopped_at"))


def curves(run: Run) -> pd.DataFrame:
    """See attnas.Run.curves."""
    table, rates = _Table(), _rates(run)
    for place, own in enumerate(_records(run.digest["evaluations"], "id", "candidate",
                                         "replicate", "curve")):
        for point in own["curve"]:
            table.add({"mechanism": run.label(own["candidate"]), "candidate": own["candidate"],
                       "replicate": own["replicate"],
                       **({"learning_rate": rates[place]} if rates else {}),
                       **_numbers({name: point[name] for name in ("step", "seconds", "train_nll")}),
                       "perplexity": perplexity(point["valid"]), **_numbers(point["valid"]),
                       "id": own["id"]})
    return table.frame(
        ["mechanism", "candidate", "replicate", "step", "seconds", "train_nll", "perplexity"])


def _rates(run: Run) -> list[float | None]:
    """The learning rate of each evaluation; empty where there is one alone."""
    sections = [one.get("training") or {} for one in run.digest["identities"]]
    rates = [training_of(own["candidate"], sections[own["identity"]]).get("learning_rate")
             for own in _records(run.digest["evaluations"], "candidate", "identity")]
    return rates if len({*rates}) > 1 else []


def asks(run: Run) -> pd.DataFrame:
    """See attnas.Run.asks."""
    names = ask_columns(run.digest)
    numbers = {*(objective.name for objective in run.objectives),
               *(gene["name"] for gene in run.digest["genes"] if "min" in gene)}
    convert = [float if name in numbers else None for name in names]
    values: list[list] = [[] for _ in names]
    for row in ask_rows(run.digest):
        for column, make, value in zip(values, convert, row):
            column.append(math.nan if make and value is None else make(value) if make else value)
    frame = pd.DataFrame(dict(zip(names, values)) if values[0] else [],
                         columns=names).rename(columns={"label": "mechanism"})
    return frame.astype(dict.fromkeys(numbers, float))


def comparison(run: Run) -> pd.DataFrame:
    """See attnas.Run.comparison."""
    columns = latex.columns(run)
    frame = pd.DataFrame(latex.rows(run), columns=columns)
    words = ("mechanism", "candidate", "role", "unit", "decision", "differs")
    types = {name: float for name in columns if name not in words}
    types |= dict.fromkeys(("n", "solved", "runs"), "Int64") | dict.fromkeys(
        ("distinguished", "rate_at_end"), bool)
    return frame.astype(types)


def _candidate(run: Run, own: dict[str, Any], seconds: dict[str, float]) -> dict[str, Any]:
    row = {"mechanism": own["mechanism"], "candidate": own["candidate"],
           "status": "ok" if own["stopped_at"] is None else "stopped_early",
           "on_front": own["on_front"], "n": own["n"], "first_ask": own["first_ask"] + 1 or None,
           "times_asked": own["times_asked"], "stopped_at": own["stopped_at"],
           "train_seconds": sum(seconds.get(id_, 0.0) for id_ in own["evaluations"])}
    for objective in run.objectives:
        row[objective.name] = finite_or(own["values"][objective.name], math.nan)
        row[f"{objective.name}_standard_error"] = own["standard_errors"][objective.name]
    return {**_numbers(own["facts"]), **row}


def _listed(run: Run, name: str, own: list[Evaluation]) -> dict[str, Any]:
    """What a mechanism of a list has come to: as the comparison at its end has it, before that by
    the evaluations that are there."""
    compared = next((one for one in run.retest.get("candidates", []) if one["candidate"] == name),
                    None)
    if compared:
        own = [run.by_id[id_] for id_ in compared["evaluations"]]
    usable = [each for each in own if each.usable]
    row = {**_numbers(usable[0].values if usable else {}), "n": len(usable),
           "status": min(own, key=lambda each: (each.usable, each.status == "ok")).status,
           "stopped_at": min((each.stopped_at for each in own if each.stopped_at is not None),
                             default=None)}
    for place, objective in enumerate(run.objectives):
        values = pd.Series([each.objectives[place] for each in usable], dtype=float)
        found = compared["retest"][place] if compared else {
            "mean": values.mean(), "standard_error": values.sem()}
        row[objective.name] = finite_or(found["mean"], math.nan)
        row[f"{objective.name}_standard_error"] = found["standard_error"]
    return row


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers, of which digests write what JSON has not as texts; None is not known."""
    return {name: float(value) if isinstance(value, str) else value
            for name, value in values.items() if value is not None}


def _with_integers(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Columns of whole numbers of which some are not known, where there are such columns."""
    return frame.astype({name: "Int64" for name in names if name in frame})


def _with_genes(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with a column per gene after mechanism and candidate, where it is known what every
    candidate has of them: in the words of its label, or numbers."""
    names, choices = choices_by_label(run)
    for place, name in enumerate(names):
        column = pd.Series([choices[label][place] for label in frame.mechanism], frame.index,
                           object)
        try:
            column = column.astype(float)
        except ValueError:
            pass  # its options are words
        frame.insert(2 + place, name, column)
    return frame
