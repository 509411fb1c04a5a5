"""Writes digests in version 4 of results.json, as src/report/digest.cpp does, from those of version 3."""

from __future__ import annotations

import json
from typing import Any

_LISTS = ("evaluations", "paused", "ranking", "asks", "rung_asks", "rejected")


def column_of(values: list) -> Any:
    """See src/report/column_blocks.hpp."""
    if not values:
        return values
    first = values[0]
    if all(json.dumps(value) == json.dumps(first) for value in values):
        return {"all": first}
    if first and isinstance(first, dict) and all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        return {"each": {key: column_of([value[key] for value in values]) for key in first}}
    if first and isinstance(first, list) and all(isinstance(value, list) and len(value) == len(first) for value in values):
        return {"each": [column_of([value[i] for value in values]) for i in range(len(first))]}
    return values


def blocks_of(records: list[dict], size: int) -> list[dict]:
    """Records as blocks of columns."""
    return [{"columns": {key: column_of([record[key] for record in some]) for key in sorted(some[0])}, "records": len(some)}
            for some in (records[i:i + size] for i in range(0, len(records), size))]


def of_version_4(own: dict[str, Any], size: int = 7) -> dict[str, Any]:
    """A digest of version 3 in version 4. @param size  records of a block."""
    evaluations = [*own["evaluations"], *own.get("paused", [])]
    numbers: dict[str, int] = {}
    for number, each in enumerate(evaluations):
        numbers.setdefault(each["id"], number)
    models = own["models"] or {}
    named = [each["candidate"] for key in _LISTS for each in own.get(key, [])]
    names = list(dict.fromkeys([*(each["candidate"] for each in evaluations), *own["labels"], *(own["truth"] or {}), *named]))
    places = {name: place for place, name in enumerate(names)}

    def referring(record: dict) -> dict:
        found = {key: value for key, value in record.items() if key != "mechanism"}
        found["candidate"] = places[record["candidate"]]
        if "evaluations" in record:
            found["evaluations"] = [numbers[each] for each in record["evaluations"]]
        if "evaluation" in record:
            found["evaluation"] = numbers[record["evaluation"]]
        if record.get("genotype") == record["candidate"]:
            found["genotype"] = None
        return found

    candidates = [{"candidate": name, "mechanism": own["labels"].get(name), "truth": (own["truth"] or {}).get(name)} for name in names]
    if models:
        for each in candidates:
            each.update(choices=models["choices"].get(each["candidate"]), difference=models["differences"].get(each["candidate"]))
    ranked = [each["candidate"] for each in own["ranking"]]
    found = {key: value for key, value in own.items() if key not in ("labels", "truth", *_LISTS)}
    found |= {"schema": 4, "front": [ranked.index(each["candidate"]) for each in own["front"]],
              "knee": next((ranked.index(each["candidate"]) for each in own["front"] if each["knee"]), None),
              "failures": [numbers[each["evaluation"]] for each in own.get("failures", [])],
              "models": {"genes": models["genes"]} if models else None}
    lists = {key: [referring(each) for each in own[key]] for key in _LISTS if key in own}
    return found | {key: blocks_of(records, size) for key, records in {**lists, "candidates": candidates}.items()}


def text_of(own: dict[str, Any]) -> str:
    """The text of one of version 4, with the lines that it has."""
    def value(each: Any) -> str:
        if isinstance(each, list) and each and isinstance(each[0], (dict, list)):
            return "[\n" + ",\n".join(json.dumps(one, sort_keys=True, separators=(",", ":")) for one in each) + "\n]"
        return json.dumps(each, sort_keys=True, separators=(",", ":"))

    return "{\n" + ",\n".join(f'"{key}": {value(own[key])}' for key in sorted(own, key=lambda key: (key in _LISTS, key))) + "\n}\n"
