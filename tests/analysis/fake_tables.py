"""Packed tables and digests of runs as the programs write them, from cells that are made up."""

import hashlib
import itertools
import json
import sqlite3

import numpy as np
from attnas.analysis.digest import FIRST_HELD_OUT
from attnas.analysis.schema import schema
from attnas.table import APPLICATION_ID, VERSION, content_sha256
from digest_file import text_of

OPTIONS = {"similarity": ["dot", "silu_dot", "additive", "cosine"],
           "normalization": ["softmax", "sparsemax", "relu_norm", "sigmoid_norm"],
           "gating": ["none", "input_gate", "output_gate", "highway"],
           "temperature": ["fixed", "learned", "per_query"], "bias": ["bias", "no_bias"]}
STEPS = [50, 200]
MODEL = {"layers": 2, "width": 64, "heads": 4, "context": 32, "vocabulary": 1000,
         "feed_forward": 128, "dropout": 0.1}
IDENTITY = {"corpus": "fake", "semantics": "corrected", "run_seed": 42, "model": MODEL}
MEASURED = ("train_seconds", "cpu_seconds", "peak_bytes")


def functions(options=None, recorded=None) -> list[str]:
    """Names of all functions that options make, sorted; a voided gene has its first option.

    @param recorded  the schema that says what is voided.
    """
    options = options or OPTIONS
    genes = list(options)
    first = {}
    for combination in itertools.product(*options.values()):
        first.setdefault(schema(recorded).function_of(combination, genes), combination)
    fixed = {"similarity": "dot", "normalization": "softmax", "gating": "none",
             "temperature": "fixed", "bias": "bias"}
    rows = [{**fixed, **dict(zip(genes, combination))} for combination in first.values()]
    return sorted("|".join([*row.values(), "0"]) for row in rows)


def cell(test: float, early: float | None = None, status="ok", seconds=40.0, latency=None) -> dict:
    """A training that ended with a perplexity, the same on both splits but for a factor 1.1."""
    measured = {"train_seconds": seconds * 2, "cpu_seconds": seconds, "peak_bytes": 1000}
    if latency is not None:
        measured["latency"] = {"value": latency, "p50": latency}
    if status != "ok":
        return {"status": status, "curve": [], "values": {}, "measured": measured}
    ends = [early or 2 * test, 1.1 * test]
    curve = [{"step": step, "seconds": step / 10, "train_nll": 1.0,
              "valid": {"nll": 1000 * float(np.log(value)), "tokens": 1000, "correct": 300}}
             for step, value in zip(STEPS, ends)]
    values = {"perplexity": ends[-1], "accuracy": 0.3, "test_perplexity": test,
              "test_nll": float(np.log(test))}
    return {"status": status, "curve": curve, "values": values, "measured": measured}


def write_run(path, cells: dict[tuple[str, int], dict], asks=(), identity=None, population=4,
              record_schema=None, training=None, others=()):
    """Writes a run's digest: of listed mechanisms, which are not compared yet, where all seeds are fresh ones; else of a search.

    @param cells     (mechanism, replicate): cell(...).
    @param asks      (batch, genotype, fitness) each.
    @param training  section of the configuration.
    @param others    (identity, cells) each: what the run has trained under another identity.
    """
    made = [(number, mechanism, replicate, own) for number, (_, some) in enumerate([(None, cells), *others])
            for (mechanism, replicate), own in some.items()]
    listed = cells and min(replicate for _, replicate in cells) >= FIRST_HELD_OUT
    digest = {
        "facts": {"device": "cpu"}, "record_schema": record_schema, "labels": {},
        "models": None, "genes": [{"name": name} for name in schema(record_schema).genes],
        "config": {"name": "fake", "training": training or {}, **(
            {"mechanisms": sorted({mechanism for mechanism, _ in cells})} if listed else
            {"algorithm": {"name": "x", "population": population}})},
        "retest": None,
        "objectives": [{"name": "perplexity", "unit": "1", "maximise": False, "best": 0.0,
                        "worst": 1.0, "penalty": 10.0, "source": "trained"}],
        "identities": [identity or IDENTITY, *(identity for identity, _ in others)],
        "evaluations": sorted(({"id": hashlib.sha256(f"{number} {mechanism} {replicate}".encode()).hexdigest(),
                                "candidate": mechanism, "replicate": replicate, "identity": number, **own}
                               for number, mechanism, replicate, own in made), key=lambda one: one["id"]),
        "asks": [{"number": i, "batch": batch, "genotype": genotype, "candidate": genotype,
                  "fitness": [fitness]}
                 for i, (batch, genotype, fitness) in enumerate(asks)]}
    path.write_text(text_of(digest), encoding="utf-8")


def write_table(path, cells: dict[tuple[str, int], dict], application_id=APPLICATION_ID,
                version=VERSION, facts=None):
    """Packs cells as docs/files.md says."""
    mechanisms = sorted({mechanism for mechanism, _ in cells})
    values = sorted({name for own in cells.values() for name in own["values"]})
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.executescript(f"""
        PRAGMA application_id = {application_id}; PRAGMA user_version = {version};
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE mechanisms (mechanism INTEGER PRIMARY KEY, name TEXT, measured TEXT);
        CREATE TABLE trainings (mechanism INTEGER, replicate INTEGER, status TEXT, reason TEXT,
            {"".join(f'"{name}" REAL, ' for name in (*MEASURED, *values))}
            PRIMARY KEY (mechanism, replicate)) WITHOUT ROWID;
        CREATE TABLE curves (mechanism INTEGER, replicate INTEGER, step INTEGER, train_nll REAL,
            nll REAL, tokens INTEGER, correct INTEGER, pad_nll REAL, pad_tokens INTEGER,
            unknown_nll REAL, unknown_tokens INTEGER, batch_mean_nll REAL, batches INTEGER,
            seconds REAL, PRIMARY KEY (mechanism, replicate, step)) WITHOUT ROWID;""")
    meta = {"name": "fake", "identity": IDENTITY, "facts": {"device": "cpu", **(facts or {})},
            "sources": []}
    insert(database, "meta", [(key, json.dumps(value)) for key, value in meta.items()])
    for number, mechanism in enumerate(mechanisms):
        latencies = sorted((own["measured"]["latency"] for (name, _), own in cells.items()
                            if name == mechanism and "latency" in own["measured"]),
                           key=lambda one: one["value"])
        measured = {"latency": latencies[(len(latencies) - 1) // 2]} if latencies else {}
        insert(database, "mechanisms", [(number, mechanism, json.dumps(measured))])
    for (mechanism, replicate), own in cells.items():
        place = (mechanisms.index(mechanism), replicate)
        insert(database, "trainings", [(*place, own["status"], "",
                                        *(own["measured"][name] for name in MEASURED),
                                        *(own["values"].get(name) for name in values))])
        insert(database, "curves", [
            (*place, point["step"], point["train_nll"], point["valid"]["nll"],
             point["valid"]["tokens"], point["valid"]["correct"], 0.0, 0, 0.0, 0, 0.0, 1,
             point["seconds"]) for point in own["curve"]])
    insert(database, "meta", [("sha256", json.dumps(content_sha256(database)))])
    database.commit()
    database.close()


def insert(database: sqlite3.Connection, table: str, rows: list[tuple]):
    for row in rows:
        database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
