"""What a search asked for as CSV (RFC 4180), from its digest."""

from __future__ import annotations

import csv
import io
import itertools
from typing import Any, Iterator

from attnas.analysis.digest import Objective, objectives
from attnas.analysis.schema import schema
from attnas.analysis.words import is_number

Digest = dict[str, Any]


def shortest(value: float) -> str:
    """The shortest decimals that read back equal."""
    return repr(float(value)).removesuffix(".0")


def _genes(run: Digest) -> list[dict[str, Any]]:
    """Those of a run. Options have the names that are stored (`stored`), whatever the configuration
    calls them.
    """
    shown = schema(run.get("record_schema")).shown
    stored = [{option: shown(gene["name"], option) for option in gene.get("options", ())}
              for gene in run["genes"]]
    return [{**gene, **({"options": list(words.values()), "stored": words} if words else {})}
            for gene, words in zip(run["genes"], stored)]


def _asked(genes: list[dict[str, Any]], ask: dict[str, Any]) -> list[str]:
    """As asked for, one per gene."""
    return [gene.get("stored", {}).get(value, value)
            for gene, value in zip(genes, ask["genotype"].split("|"))]


def _natural(goals: list[Objective], fitness: list[float]) -> list[float]:
    return [goal.natural(value) for goal, value in zip(goals, fitness)]


def ask_columns(run: Digest) -> list[str]:
    """Names of what ask_rows() has of each."""
    goals = [goal.name for goal in objectives(run)]
    return ["number", "batch", "candidate", "label", *(gene["name"] for gene in run["genes"]),
            "replicates", "status", *goals, *(f"fitness_{name}" for name in goals), "trained",
            "train_seconds", "reused"]


def ask_rows(run: Digest) -> Iterator[list]:
    """A row per ask: its number from 1, batch, candidate, label, the genes as
    asked, the number of evaluations that answered, status, each objective in its own sense (None
    where nothing was measured), each in minimisation form as the algorithm saw it, evaluations and
    seconds of training that the asks so far have caused, and whether it was answered by what
    earlier asks had caused."""
    goals, genes = objectives(run), _genes(run)
    for ask in run["asks"]:
        yield [ask["number"] + 1, ask["batch"], ask["candidate"],
               run["labels"].get(ask["candidate"], ask["candidate"]), *_asked(genes, ask),
               len(ask["evaluations"]), ask["status"],
               *(_natural(goals, ask["fitness"]) if ask["usable"] else [None] * len(goals)),
               *ask["fitness"], ask["trained"], ask["seconds"], ask["reused"]]


def asks_csv(run: Digest) -> str:
    """The same as CSV; what is None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_cell(value) for value in row]
                     for row in itertools.chain([ask_columns(run)], ask_rows(run)))
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") and not is_number(value):
        return "'" + value  # spreadsheet programs would compute it
    return shortest(value) if isinstance(value, float) else value
