"""results.json and stores of runs that never were: what tests say by names and ids, in the form that the programs write."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import sqlite3
from typing import Any

from attnas.analysis import digest

_LISTS = ("evaluations", "paused", "ranking", "asks", "rung_asks", "rejected")
_EMPTY = {"front": [], "knee": None, "models": None, "identities": [], "baseline": None, "labels": {}, "truth": None,
          "asks": [], "evaluations": [], "ranking": [], "rejected": []}


def text_of(own: dict[str, Any]) -> str:
    """The file of a digest. @param own  records with names and ids; of front the places in `ranking`, of `models` also `choices` and
    `differences` by names; what is not there is empty."""
    own = {**_EMPTY, **own}
    labels, truth, models = own.pop("labels"), own.pop("truth") or {}, own["models"] or {}
    numbers = {one["id"]: number for number, one in enumerate([*own["evaluations"], *own.get("paused", [])])}
    records = [record for key in (*_LISTS, "controls") for record in own.get(key, [])] + [own["baseline"] or {"candidate": ""}]
    places = {name: i for i, name in enumerate(dict.fromkeys([record.get("candidate", "") for record in records] + [*labels, *truth]))}

    def placed(record: dict) -> dict:
        found = {key: value for key, value in record.items() if key != "mechanism"}
        name = record.get("candidate", "")
        found["candidate"] = places[name]
        if record.get("genotype") == name:
            found["genotype"] = None
        for key in {"evaluation", "evaluations"} & found.keys():
            found[key] = [numbers[one] for one in found[key]] if key == "evaluations" else numbers[found[key]]
        return found

    def blocks(some: list[dict]) -> list[dict]:
        return [{"columns": {key: [record[key] for record in some] for key in some[0]}, "records": len(some)}] if some else []

    own |= {key: blocks([placed(record) for record in own[key]]) for key in _LISTS if key in own}
    own["candidates"] = blocks([{"candidate": name, "mechanism": labels.get(name), "truth": truth.get(name),
                                 "choices": models.get("choices", {}).get(name), "difference": models.get("differences", {}).get(name)}
                                for name in places])
    own |= {"schema": 1, "models": models and {"genes": models["genes"]} or None, "baseline": own["baseline"] and placed(own["baseline"]),
            "controls": [placed(one) for one in own.get("controls", [])]}
    return json.dumps(own)


def said_by(file: pathlib.Path) -> dict[str, Any]:
    """What text_of() makes the same file of again."""
    return digest.read(file).plain()


def write_store(file: pathlib.Path, facts: dict[str, Any], evaluations: list[dict], asks: list[dict], values: list[float] = ()) -> None:
    """Writes a store by records of a digest; rows have their SHA-256, as docs/files.md says. @param values  indicators."""
    with contextlib.closing(sqlite3.connect(file)) as store, store:
        store.executescript("PRAGMA user_version = 1; CREATE TABLE indicators(asked INTEGER PRIMARY KEY, value)")
        for table, keys, rows in (
                ("meta", "key value", [{"key": key, "value": json.dumps(fact)} for key, fact in facts.items()]),
                ("asks", "number batch genotype evaluations reused fitness", asks),
                ("evaluations", "id candidate replicate status reason identity curve values measured", evaluations)):
            columns = keys.split()
            store.execute(f"CREATE TABLE {table}({', '.join(map(json.dumps, columns))}, digest)")
            for own in rows:
                known = [own[key] if isinstance(own[key], (str, int)) else json.dumps(own[key]) for key in columns]
                texts = [str(one).encode() for one in known]
                digest_ = hashlib.sha256(b"".join(b"%d:%s" % (len(text), text) for text in texts)).digest()
                store.execute(f"INSERT INTO {table} VALUES ({'?, ' * len(known)}?)", (*known, digest_))
        store.executemany("INSERT INTO indicators(value) VALUES (?)", ([value] for value in values))
