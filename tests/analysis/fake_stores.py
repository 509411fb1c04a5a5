"""Digests of runs and stores of comparisons, of searches whose skills are known."""

import json
import pathlib
import sqlite3

import numpy as np
from digest_file import text_of

PERPLEXITY = {"name": "perplexity", "key": "perplexity", "unit": "1", "maximise": False,
              "best": 90.0, "worst": 120.0}
FLOPS = {"name": "attention_flops", "key": "attention_flops", "unit": "FLOP", "maximise": False,
         "best": 1e6, "worst": 4e6}
NOISE = 0.9  # standard deviation of one training's perplexity
SHIFT = 3.0  # by which validation perplexities lie above those of the test split
TRAININGS = 93


def blobs(candidates, trained, seconds, fitness) -> tuple:
    """Arrays of a search as the store's columns."""
    return (np.asarray(candidates, "<i4").tobytes(), np.asarray(trained, "<i4").tobytes(),
            np.asarray(seconds, "<f8").tobytes(), np.asarray(fitness, "<f8").tobytes())


def write_comparison(path, objectives, truth, believed, algorithms, searches, sha256="a" * 64,
                     trainings=TRAININGS, version=1, settings=None,
                     mode="noisy", names=None, table="fake.nastable", truth_splits=None, steps=None, config=None, draws=None):
    """Writes a comparison store.

    @param truth, believed  (n, m) lists or arrays, or None.
    @param algorithms       names, numbered from 0.
    @param searches         (algorithm, seed, search_seconds, candidates, trained, seconds,
                            fitness) each.
    @param settings         of all algorithms.
    @param names            of the candidates.
    @param table            its file.
    @param truth_splits     by objective; None: not recorded.
    @param steps            of training charged so far, of each search, of 400 of a whole training run; None: not recorded.
    @param config           of the comparison.
    @param draws            of the table, that answered: tables, seed.
    """
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
        CREATE TABLE candidates(number INTEGER PRIMARY KEY, name TEXT, label TEXT, truth TEXT,
            believed TEXT);
        CREATE TABLE algorithms(number INTEGER PRIMARY KEY, name TEXT, key TEXT, settings TEXT);
        CREATE TABLE searches(algorithm INTEGER, seed INTEGER, asked INTEGER,
            search_seconds REAL, ended_by TEXT, candidates BLOB, trained BLOB, seconds BLOB,
            fitness BLOB, steps BLOB, PRIMARY KEY(algorithm, seed));""")
    meta = {"kind": "comparison", "version": version, "config": config or {}, "objectives": objectives,
            "reference_point": 1.1, "budget": {"trainings": trainings}, "environment": {},
            "table": {"name": "fake", "file": table, "sha256": sha256,
                      "mechanisms": len(truth), "replicates": 5, "mode": mode}}
    if steps is not None:
        meta["table"]["training_steps"] = 400
        meta["budget"]["train_steps"] = 400 * trainings
    if draws is not None:
        meta["draws"] = draws
    if truth_splits is not None:
        meta["truth_splits"] = truth_splits
    database.executemany("INSERT INTO meta VALUES (?, ?)",
                         [(key, json.dumps(value)) for key, value in meta.items()])

    def text(values, i):
        return None if values is None else json.dumps([float(value) for value in values[i]])

    database.executemany("INSERT INTO candidates VALUES (?, ?, ?, ?, ?)",
                         [(i, names[i] if names else f"candidate|{i}", f"mechanism {i}",
                           text(truth, i), text(believed, i)) for i in range(len(truth))])
    database.executemany("INSERT INTO algorithms VALUES (?, ?, ?, ?)",
                         [(i, name, name, json.dumps(settings or {}))
                          for i, name in enumerate(algorithms)])
    database.executemany(
        "INSERT INTO searches VALUES (?, ?, ?, ?, '93 trainings', ?, ?, ?, ?, NULL)",
        [(algorithm, seed, len(candidates), own, *blobs(candidates, trained, seconds, fitness))
         for algorithm, seed, own, candidates, trained, seconds, fitness in searches])
    if steps is not None:
        database.executemany("UPDATE searches SET steps = ? WHERE algorithm = ? AND seed = ?",
                             [(np.asarray(own, "<i8").tobytes(), *search[:2])
                              for own, search in zip(steps, searches)])
    database.commit()
    database.close()


def fake_table(several: bool, mechanisms: int = 320, seed: int = 1) -> np.ndarray:
    """True values (mechanisms, m): perplexity, and where several its price in operations."""
    random = np.random.default_rng(seed)
    perplexity = 95 + 14 * random.beta(2, 3, mechanisms)
    if not several:
        return perplexity[:, None]
    flops = 3.4e6 - 2e6 * (perplexity - 95) / 14 + 3e5 * random.standard_normal(mechanisms)
    return np.stack([perplexity, np.clip(np.round(flops, -4), 1.05e6, 3.9e6)], axis=1)


def write_fake(path, skills: dict[str, float], num_searches: int, several: bool = False,
               asks: int = TRAININGS, own_draws: bool = True):
    """Writes a comparison of algorithms that know by skill where good candidates are.

    Skill 0 asks at random; the larger, the more an ask prefers good candidates, more so towards
    the end of a search. A candidate that comes again answers as before and costs nothing.

    @param own_draws  False: all algorithms draw the same, so that equal skills are equal searches.
    """
    truth = fake_table(several)
    believed = truth.copy()
    believed[:, 0] += SHIFT
    scale = (truth - truth.min(axis=0)) / np.ptp(truth, axis=0)
    weights = np.linspace(0, 1, 11) if several else np.ones(1)
    orders = np.array([np.argsort(scale[:, 0] * w + (scale[:, -1] * (1 - w))) for w in weights])
    price = 300 + 100 * np.random.default_rng(2).random(len(truth))
    searches = []
    for seed in range(num_searches):
        noise = np.random.default_rng([3, seed]).standard_normal(len(truth)) * NOISE
        seen = believed.copy()
        seen[:, 0] += noise
        for number, skill in enumerate(skills.values()):
            random = np.random.default_rng([4, seed, number if own_draws else 0])
            power = 1 + skill * np.linspace(0, 1, asks)
            ranks = (len(truth) * random.random(asks)**power).astype(int)
            asked = orders[random.integers(len(orders), size=asks), ranks]
            new = np.zeros(asks, dtype=bool)
            new[np.unique(asked, return_index=True)[1]] = True
            searches.append((number, seed, 0.01 * (1 + skill), asked, np.cumsum(new),
                             np.cumsum(np.where(new, price[asked], 0.0)), seen[asked]))
    write_comparison(path, [PERPLEXITY, FLOPS][:truth.shape[1]], truth, believed, list(skills),
                     searches)


def write_run(path, algorithm: dict, seed: int, asks: list, truth: dict | None = None,
              objectives=(PERPLEXITY,), config: dict | None = None, facts: dict | None = None, more: dict | None = None):
    """Writes a run's digest, and what else it has.

    @param asks  (candidate, evaluation ids, fitness, seconds of a training, status) each: believed
        is the latest answer that is ok.
    """
    records, charged, spent = [], set(), 0.0
    for number, (candidate, ids, fitness, seconds, status) in enumerate(asks):
        spent += seconds * len({*ids} - charged)
        charged |= {*ids}
        records.append({"number": number, "batch": 0, "genotype": candidate,
                        "candidate": candidate, "evaluations": ids, "fitness": fitness,
                        "believed": fitness if status == "ok" else None, "trained": len(charged),
                        "seconds": spent})
    evaluations = [{"id": id_, "candidate": candidate, "curve": []}
                   for id_, candidate in {id_: candidate for candidate, ids, *_ in asks for id_ in ids}.items()]
    digest = {"asks": records, "evaluations": evaluations, "facts": facts or {}, "truth": truth,
              "truth_splits": None, "reference_point": 1.1, "record_schema": None,
              "config": {"algorithm": algorithm, "seed": seed, "budget": {"evaluations": 0},
                         **(config or {})},
              "objectives": [{**own, "penalty": own["best"] + 10 * (own["worst"] - own["best"]),
                              "source": None} for own in objectives],
              "labels": {candidate: f"label of {candidate}" for candidate, *_ in asks}}
    pathlib.Path(path).write_text(text_of(digest | (more or {})), encoding="utf-8")
