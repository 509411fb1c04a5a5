"""Packed tables and stores of runs as the programs write them, from cells that are made up."""

import hashlib
import itertools
import json
import sqlite3
import struct

import numpy as np
from nas_analysis import tables
from nas_analysis.schema import schema

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


def write_store(path, cells: dict[tuple[str, int], dict], asks=(), identity=None, population=4):
    """Writes a run's store.

    @param cells  (mechanism, replicate): cell(...).
    @param asks   (batch, genotype, fitness) each.
    """
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE evaluations (id TEXT PRIMARY KEY, candidate TEXT, replicate INTEGER,
            status TEXT, reason TEXT, identity TEXT, curve TEXT, "values" TEXT, measured TEXT);
        CREATE TABLE asks (number INTEGER PRIMARY KEY, batch INTEGER, genotype TEXT,
            evaluations TEXT, reused INTEGER, fitness TEXT);""")
    meta = {"config": {"name": "fake", "algorithm": {"name": "x", "population": population}},
            "facts": {"device": "cpu"},
            "objectives": [{"name": "perplexity", "maximise": False}]}
    database.executemany("INSERT INTO meta VALUES (?, ?)",
                         [(key, json.dumps(value)) for key, value in meta.items()])
    for (mechanism, replicate), own in cells.items():
        known = {**(identity or IDENTITY), "candidate": mechanism, "replicate": replicate}
        database.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, '', ?, ?, ?, ?)",
                         (f"{mechanism} {replicate}", mechanism, replicate, own["status"],
                          *(json.dumps(part) for part in (known, own["curve"], own["values"],
                                                          own["measured"]))))
    database.executemany(
        "INSERT INTO asks VALUES (?, ?, ?, '[]', 0, ?)",
        [(i, batch, genotype, json.dumps([fitness]))
         for i, (batch, genotype, fitness) in enumerate(asks)])
    database.commit()
    database.close()


def write_table(path, cells: dict[tuple[str, int], dict], magic=b"NASTABLE", version=1,
                facts=None):
    """Packs cells as src/table/format.hpp says."""
    mechanisms = sorted({mechanism for mechanism, _ in cells})
    replicates = max(replicate for _, replicate in cells) + 1
    values = sorted({name for own in cells.values() for name in own["values"]})
    columns: dict[str, list] = {}
    for mechanism, replicate in itertools.product(mechanisms, range(replicates)):
        for name, value in _numbers(cells.get((mechanism, replicate)), values):
            columns.setdefault(name, []).append(value)
    words, described = [], []
    for name, column in sorted(columns.items()):
        kind = "<i8" if isinstance(column[0], int) else "<f8"
        data = np.array(column, kind).view("<i8")
        alike = (data == data[0]).all()
        described.append({"name": name, "type": "i64" if kind == "<i8" else "f64", "unit": "1",
                          "per": "table" if alike else
                          "point" if len(data) > len(mechanisms) * replicates else "cell",
                          "offset": sum(map(len, words))})
        words.append(data[:1] if alike else data)
    latencies = [[own["measured"]["latency"] for (name, _), own in cells.items()
                  if name == mechanism and "latency" in own["measured"]]
                 for mechanism in mechanisms]
    header = json.dumps({
        "name": "fake", "identity": IDENTITY, "facts": {"device": "cpu", **(facts or {})}, "sources": [],
        "mechanisms": mechanisms, "replicates": replicates, "steps": STEPS, "reasons": [""],
        "measured": [{"latency": sorted(own, key=lambda one: one["value"])[(len(own) - 1) // 2]}
                     if own else {} for own in latencies],
        "columns": described}).encode()
    header += b" " * (-len(header) % 8)
    checked = struct.pack("<q", len(header)) + header + np.concatenate(words).tobytes()
    path.write_bytes(magic + struct.pack("<q", version)
                     + hashlib.sha256(checked).hexdigest().encode() + checked)


def _numbers(own: dict | None, values: list[str]):
    """All columns of a cell, those of its curve point by point."""
    curve = own["curve"] if own else []
    yield "status", schema(None).statuses.index(own["status"]) if own else tables.MISSING
    yield "reason", 0
    yield "points", len(curve)
    for i in range(len(STEPS)):
        point = curve[i] if i < len(curve) else None
        yield "train_nll", point["train_nll"] if point else 0.0
        yield "seconds", point["seconds"] if point else 0.0
        yield "valid.nll", point["valid"]["nll"] if point else 0.0
        yield "valid.tokens", point["valid"]["tokens"] if point else 0
        yield "valid.correct", point["valid"]["correct"] if point else 0
        for name in ("pad_nll", "unknown_nll", "batch_mean_nll"):
            yield f"valid.{name}", 0.0
        yield "valid.batches", 1 if point else 0
        for name in ("pad_tokens", "unknown_tokens"):
            yield f"valid.{name}", 0
    for name in values:
        yield f"values.{name}", own["values"].get(name, np.nan) if own else np.nan
    for name in MEASURED:
        yield name, float(own["measured"][name]) if own else np.nan
