"""The frames of a run, from its record."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from attnas.analysis import latex
from attnas.analysis.digest import perplexity
from attnas.analysis.exports import asks_table
from attnas.analysis.genes import choices_by_label
from attnas.analysis.run import Candidate, Evaluation, Run, finite_or


def candidates(run: Run) -> pd.DataFrame:
    """See attnas.Run.candidates."""
    controls = {each.name: name for name, each in run.controls.items()}
    ranked = run.with_baseline(run.ranking)
    known = ranked + [each for each in run.controls.values() if each.name not in {one.name for one in ranked}]
    facts = {own["candidate"]: own for own in (run.digest["baseline"], *(run.digest.get("controls") or []),
                                               *run.digest["ranking"]) if own}
    controls |= {one["candidate"]: one["label"] for one in run.retest.get("candidates", []) if one["role"] == "control"}
    rows = [_candidate(run, each, facts[each.name]) for each in known]
    others: dict[str, list[Evaluation]] = {}
    for evaluation in run.evaluations:
        if evaluation.candidate not in facts:
            others.setdefault(evaluation.candidate, []).append(evaluation)
    latest = {ask.candidate: ask for ask in run.asks}
    for name, own in others.items():
        asked = [ask.number + 1 for ask in run.asks if ask.candidate == name]
        rows.append({"mechanism": run.label(name), "candidate": name,
                     "status": latest[name].status if asked else own[0].status,
                     "on_front": False, "n": sum(each.usable for each in own),
                     "first_ask": min(asked, default=None), "times_asked": len(asked),
                     "train_seconds": sum(each.seconds for each in own),
                     **(_listed(run, name, own) if run.listed else {})})
    if run.listed:  # which nothing has ranked
        first = run.objectives[0]
        rows.sort(key=lambda row: (row["n"] == 0, row["candidate"] in facts,
                                   finite_or(first.natural(row[first.name]), math.inf)))
    columns = ["mechanism", "candidate", "status", "on_front"]
    for objective in run.objectives:
        columns += [objective.name, f"{objective.name}_standard_error"]
    columns += ["n", "first_ask", "times_asked", "stopped_at", "train_seconds"]
    columns += [name for row in rows for name in row]
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys(columns)))
    numbers = [name for each in run.objectives for name in (each.name, f"{each.name}_standard_error")]
    if controls:
        frame.insert(2, "control", frame.candidate.map(controls).fillna(""))
    frame = frame.astype({"on_front": bool, **dict.fromkeys(numbers, float)})
    return _with_genes(run, _with_integers(frame, "first_ask", "stopped_at"))


def evaluations(run: Run) -> pd.DataFrame:
    """See attnas.Run.evaluations."""
    answered: dict[str, list[int]] = {}
    batches: dict[str, int] = {}
    for ask in run.asks:
        for id_ in ask.evaluations:
            answered.setdefault(id_, []).append(ask.number + 1)
            batches.setdefault(id_, ask.batch)
    rows = []
    for own, evaluation in zip(run.digest["evaluations"], run.evaluations):
        last = own["curve"][-1] if own["curve"] else {"step": 0, "valid": {}}
        quality = {name: last["valid"].get(name) for name in ("nll", "tokens") if evaluation.usable}
        rows.append({
            "mechanism": run.label(evaluation.candidate), "candidate": evaluation.candidate,
            "replicate": evaluation.replicate, "asks": answered.get(evaluation.id, []),
            "batch": batches.get(evaluation.id), "status": evaluation.status,
            "reason": evaluation.reason, "usable": evaluation.usable,
            **_numbers(own["objectives"]), **_numbers(own["values"]), **_numbers(quality),
            "steps": last["step"], "stopped_at": evaluation.stopped_at,
            # Measured objectives are among the objectives.
            **{name: value for name, value in own["measured"].items() if not isinstance(value, dict)},
            "id": evaluation.id})
    columns = ["mechanism", "candidate", "replicate", "asks", "batch", "status", "reason", "usable",
               *(objective.name for objective in run.objectives)]
    columns += [name for row in rows for name in row if name != "id"]
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, "steps", "stopped_at", "id"])))
    return _with_genes(run, _with_integers(frame, "batch", "stopped_at"))


def curves(run: Run) -> pd.DataFrame:
    """See attnas.Run.curves."""
    rows = []
    for own in run.digest["evaluations"]:
        for point in own["curve"]:
            rows.append({"mechanism": run.label(own["candidate"]), "candidate": own["candidate"],
                         "replicate": own["replicate"],
                         **_numbers({name: point[name] for name in ("step", "seconds", "train_nll")}),
                         "perplexity": perplexity(point["valid"]), **_numbers(point["valid"]),
                         "id": own["id"]})
    return pd.DataFrame(rows, columns=list(dict.fromkeys(
        ["mechanism", "candidate", "replicate", "step", "seconds", "train_nll", "perplexity",
         *(name for row in rows for name in row)])))


def asks(run: Run) -> pd.DataFrame:
    """See attnas.Run.asks."""
    columns, rows = asks_table(run.digest)
    frame = pd.DataFrame(rows, columns=columns).rename(columns={"label": "mechanism"})
    for name in (*(objective.name for objective in run.objectives), *(
            gene["name"] for gene in run.digest["genes"] if "min" in gene)):
        frame[name] = frame[name].astype(float)
    return frame


def comparison(run: Run) -> pd.DataFrame:
    """See attnas.Run.comparison."""
    ends = ("", "_low", "_high")
    columns = [*latex.COLUMNS, *(each.name + end for each in run.objectives for end in ends)]
    frame = pd.DataFrame(latex.rows(run), columns=columns)
    words = ("mechanism", "candidate", "role", "unit")
    types = {name: float for name in columns if name not in words} | {"n": "Int64", "distinguished": bool}
    return frame.astype(types)


def _candidate(run: Run, candidate: Candidate, own: dict[str, Any]) -> dict[str, Any]:
    row = {"mechanism": candidate.label, "candidate": candidate.name,
           "status": "ok" if candidate.stopped_at is None else "stopped_early",
           "on_front": candidate.on_front, "n": candidate.n,
           "first_ask": candidate.first_ask + 1 or None, "times_asked": candidate.times_asked,
           "stopped_at": candidate.stopped_at, "train_seconds": candidate.seconds}
    for objective, value in zip(run.objectives, candidate.values):
        row[objective.name] = value
        row[f"{objective.name}_standard_error"] = own["standard_errors"][objective.name]
    return {**_numbers(own["facts"]), **row}


def _listed(run: Run, name: str, own: list[Evaluation]) -> dict[str, Any]:
    """What a mechanism of a list has come to: as the comparison at its end has it, before that by the
    evaluations that are there."""
    compared = next((one for one in run.retest.get("candidates", []) if one["candidate"] == name), None)
    if compared:
        own = [run.by_id[id_] for id_ in compared["evaluations"]]
    usable = [each for each in own if each.usable]
    row = {**_numbers(usable[0].values if usable else {}), "n": len(usable),
           "status": min(own, key=lambda each: (each.usable, each.status == "ok")).status,
           "stopped_at": min((each.stopped_at for each in own if each.stopped_at is not None), default=None)}
    for place, objective in enumerate(run.objectives):
        values = pd.Series([each.objectives[place] for each in usable], dtype=float)
        found = compared["retest"][place] if compared else {"mean": values.mean(), "standard_error": values.sem()}
        row[objective.name] = finite_or(found["mean"], math.nan)
        row[f"{objective.name}_standard_error"] = found["standard_error"]
    return row


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers, of which digests write what JSON has not as texts; None is not known."""
    return {name: float(value) if isinstance(value, str) else value
            for name, value in values.items() if value is not None}


def _with_integers(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Columns of whole numbers of which some are not known."""
    return frame.astype({name: "Int64" for name in names})


def _with_genes(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with a column per gene after mechanism and candidate, where it is known what every
    candidate has of them: in the words of its label, or numbers."""
    names, choices = choices_by_label(run)
    for place, name in enumerate(names):
        column = pd.Series([choices[label][place] for label in frame.mechanism], frame.index, object)
        try:
            column = column.astype(float)
        except ValueError:
            pass  # its options are words
        frame.insert(2 + place, name, column)
    return frame
