"""Stores of runs that never were, with everything in them that a page can show."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from pathlib import Path

from nas_analysis.sqlite_files import row_digest

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>document.title = 'broken'</script> & \"quoted\""

OBJECTIVES = [
    {"name": "perplexity", "key": "perplexity", "unit": "1", "maximise": False, "best": 50.0,
     "worst": 120.0},
    {"name": "attention_flops", "key": "attention_flops", "unit": "FLOP", "maximise": False,
     "best": 1.5e6, "worst": 2.5e6},
    {"name": "accuracy", "key": "accuracy", "unit": "1", "maximise": True, "best": 0.4,
     "worst": 0.1},
]
SPACE = {
    "similarity": ["dot", "multiplicative", "additive", "cosine"],
    "normalization": ["softmax", "sparsemax", "relu_norm", "sigmoid"],
    "gating": ["none", "input_gate", "output_gate", "highway"],
    "temperature": ["fixed", "learned", "adaptive"],
    "bias": [True, False],
    "attention_dropout": {"min": 0.0, "max": 0.3, "decimals": 2},
}
BASELINE = "dot|softmax|none|fixed|bias|0.1"


def schema() -> str:
    """The tables as the store itself creates them."""
    source = (ROOT / "src" / "store" / "store.cpp").read_text(encoding="utf-8")
    return re.search(r'R"sql\((.*?)\)sql"', source, re.DOTALL).group(1)


class RunFixture:
    """Writes a store: `asked` mechanisms in batches of 8, some failed, some asked twice."""

    def __init__(self, folder: Path, objectives: int = 2, replicates: int = 2, asked: int = 40,
                 noise: float = 2.0, failures: bool = True):
        folder.mkdir(parents=True, exist_ok=True)
        self.random = random.Random(7)
        self.objectives = OBJECTIVES[:objectives]
        self.replicates, self.noise, self.failures = replicates, noise, failures
        self.shared = [self.random.gauss(0, 3) for _ in range(20)]  # what a seed does to all
        self.database = sqlite3.connect(folder / "store.sqlite")
        self.database.executescript(schema())
        self.database.execute("PRAGMA user_version = 3")
        self.candidates: list[str] = []
        self.meta("config", {
            "name": "fixture", "seed": 42, "space": SPACE, "baseline": BASELINE,
            "algorithm": {"name": "nsga2", "population": 8},
            "evaluation": {"repeated": "reuse", "replicates": replicates}})
        self.meta("facts", {"corpus": "brown", "corpus_hash": "ab" * 32})
        self.meta("sessions", [{"environment": {"attnas": "0.1.0", "torch": "1.13.0",
                                                "processor": "any"}}])
        self.meta("objectives", self.objectives)
        self.meta("reference_point", 1.1)
        self.meta("elapsed_seconds", 400.0)
        self.meta("ended_by", "40 asks")
        ids, fitness = self.evaluate(BASELINE)
        self.meta("baseline", {"evaluations": ids, "fitness": fitness})
        for number in range(asked):
            self.ask(number)
        self.database.commit()

    def meta(self, key: str, value: object) -> None:
        """Sets a key of the table meta."""
        self.insert("meta", (key, json.dumps(value)), "REPLACE")
        self.database.commit()

    def insert(self, table: str, row: tuple, conflict: str = "ABORT") -> None:
        """Inserts a row with its digest."""
        places = ", ".join("?" * (len(row) + 1))
        self.database.execute(f"INSERT OR {conflict} INTO {table} VALUES ({places})",
                              (*row, row_digest(row)))

    def evaluate(self, candidate: str, status: str = "ok", reason: str = "",
                 first: int = 0) -> tuple[list[str], list[float]]:
        """Trains a mechanism: ids of its evaluations and its fitness."""
        genes = candidate.split("|")
        mean = 90 + 30 * float(genes[5])
        mean -= 12 * (genes[2] == "highway") + 4 * (genes[1] == "softmax")
        ids, sums = [], [0.0] * len(self.objectives)
        for replicate in range(first, first + self.replicates):
            perplexity = mean + self.shared[replicate] + self.random.gauss(0, self.noise)
            values = {"perplexity": perplexity, "parameters": 154000.0,
                      "attention_flops": 1.6e6 + 3e5 * (genes[2] != "none")
                      + 1e4 * SPACE["similarity"].index(genes[0]),
                      "accuracy": 0.4 - perplexity / 500}
            ids.append(f"{len(self.candidates):04}{replicate:02}" + "f" * 58)
            usable = status == "ok"
            self.insert(
                "evaluations",
                (ids[-1], candidate, replicate, status, reason,
                 json.dumps({"results_version": 3, "replicate": replicate}),
                 '[{"step": 60}]' if usable else "[]", json.dumps(values if usable else {}),
                 json.dumps({"train_seconds": 3 + self.random.random(), "host": "one",
                             "started": "2026-01-01T10:00:00Z"})), "IGNORE")
            for i, objective in enumerate(self.objectives):
                sign = -1 if objective["maximise"] else 1
                sums[i] += sign * values[objective["name"]] / self.replicates
        self.candidates.append(candidate)
        return ids, sums

    def ask(self, number: int) -> None:
        """One ask of the algorithm."""
        if number % 9 == 8:  # a mechanism that it has asked for before
            row = self.database.execute("SELECT genotype, evaluations, fitness FROM asks WHERE "
                                        "number = ?", (number - 5,)).fetchone()
            self.insert("asks", (number, number // 8, row[0], row[1], 1, row[2]))
            return
        options = [self.random.choice(SPACE[gene]) for gene in list(SPACE)[:4]]
        bias = self.random.choice(["bias", "no_bias"])
        candidate = "|".join([*options, bias, f"{self.random.randint(0, 30) / 100:g}"])
        status, reason = "ok", ""
        if self.failures and number % 11 == 7:
            status, reason = ("diverged", "the loss is nan") if number % 2 else (
                "out_of_memory", HOSTILE)
        ids, fitness = self.evaluate(candidate, status, reason)
        if status != "ok":
            fitness = [1e6] * len(self.objectives)
        self.insert("asks", (number, number // 8, candidate, json.dumps(ids), 0,
                             json.dumps(fitness)))

    def penalty(self) -> list[float]:
        """The fitness of what has no quality."""
        ends = [(-o["best"], -o["worst"]) if o["maximise"] else (o["best"], o["worst"])
                for o in self.objectives]
        return [best + 10 * (worst - best) for best, worst in ends]

    def answer(self, candidate: str, ids: list[str], fitness: list[float]) -> None:
        """One more ask, answered by evaluations that are there."""
        number = self.database.execute("SELECT max(number) + 1 FROM asks").fetchone()[0]
        self.insert("asks", (number, number // 8, candidate, json.dumps(ids), 0,
                             json.dumps(fitness)))
        self.database.commit()

    def reject(self, candidate: str, reason: str) -> None:
        """A mechanism that a constraint rejected before training."""
        id_ = f"rejected {candidate}"
        self.insert("evaluations",
                    (id_, candidate, 0, "rejected", reason, "{}", "[]", "{}", "{}"))
        self.answer(candidate, [id_], self.penalty())

    def retest(self, replicates: int = 5) -> None:
        """A re-test of four mechanisms and the baseline."""
        records = []
        rows = self.database.execute("SELECT genotype, fitness FROM asks").fetchall()
        best = sorted(((json.loads(f), g) for g, f in rows))[:4]
        baseline = json.loads(self.database.execute(
            "SELECT value FROM meta WHERE key = 'baseline'").fetchone()[0])
        for i, (fitness, candidate) in enumerate([*best, (baseline["fitness"], BASELINE)]):
            role = "baseline" if candidate == BASELINE else "tuned" if i == 3 else "front"
            found = [{"mean": f + 1.5, "standard_error": 0.5, "n": replicates, "low": f + 0.2,
                      "high": f + 2.8} for f in fitness]
            against = None if role == "baseline" else {
                "difference": -0.1 - 0.02 * i, "low": -0.2, "high": -0.01, "p": 0.004,
                "p_holm": 0.0123, "effect_size": -1.25, "n": replicates}
            records.append({
                "candidate": candidate, "label": candidate, "role": role, "evaluations": [],
                "search": fitness, "search_n": self.replicates, "retest": found,
                "test": {"mean": fitness[0] + 2, "standard_error": 0.5, "n": replicates,
                         "low": fitness[0], "high": fitness[0] + 4},
                "non_dominated_probability": None if role == "baseline" else 0.8,
                "against_baseline": against})
        self.meta("retest", {"replicates": replicates, "objective": "perplexity",
                             "candidates": records,
                             "verdict": "The best mechanism beats the baseline on unseen seeds."})

    def tuning(self) -> None:
        """A map of three learning rates and three weight decays, one trial failed."""
        rates, decays = (1e-3, 3e-3, 1e-2), (0.0, 0.01, 0.1)
        trials = [
            {"learning_rate": rate, "weight_decay": decay, "evaluations": ["x"],
             "value": None if (rate, decay) == (1e-2, 0.1) else 80 + 3 * i + j}
            for i, rate in enumerate(rates) for j, decay in enumerate(decays)
        ]
        self.meta("tuning", [{"candidate": BASELINE, "label": BASELINE, "trials": trials,
                              "best": 0}])
