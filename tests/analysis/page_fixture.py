"""Digests of runs that never were, with everything in them that a page can show."""

from __future__ import annotations

import html
import math
import random
import re
from pathlib import Path

import numpy as np
from attnas.analysis.commands.report import report
from attnas.analysis.indicators import non_dominated
from attnas.analysis.run import Run
from digest_file import text_of
from python_tests import FolderTest

HOSTILE = "<script>document.title = 'broken'</script> & \"quoted\""

OBJECTIVES = [
    {"name": "perplexity", "key": "perplexity", "unit": "1", "maximise": False, "best": 50.0,
     "worst": 120.0, "penalty": 750.0, "source": "trained"},
    {"name": "attention_flops", "key": "attention_flops", "unit": "FLOP", "maximise": False,
     "best": 1.5e6, "worst": 2.5e6, "penalty": 11.5e6, "source": "analytic"},
    {"name": "accuracy", "key": "accuracy", "unit": "1", "maximise": True, "best": 0.4,
     "worst": 0.1, "penalty": 2.6, "source": "trained"}]
SPACE = {"similarity": ["dot", "multiplicative", "additive", "cosine"],
         "normalization": ["softmax", "sparsemax", "relu_norm", "sigmoid"],
         "gating": ["none", "input_gate", "output_gate", "highway"],
         "temperature": ["fixed", "learned", "adaptive"], "bias": ["bias", "no_bias"],
         "attention_dropout": {"min": 0.0, "max": 0.3}}
BASELINE = "dot|softmax|none|fixed|bias|0.1"
BAD = ["diverged", "out_of_memory", "failed"]  # from less bad to worst


class RunFixture:
    """Writes a digest: `asked` mechanisms in batches of 8, some failed, some asked twice. What it
    says of candidates follows from the asks, the latest of which counts."""

    def __init__(self, folder: Path, objectives: int = 2, replicates: int = 2, asked: int = 40,
                 noise: float = 2.0, failures: bool = True):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "results.json"
        self.random = random.Random(7)
        self.objectives = OBJECTIVES[:objectives]
        self.replicates, self.noise, self.failures = replicates, noise, failures
        self.shared = [self.random.gauss(0, 3) for _ in range(20)]  # what a seed does to all
        self.candidates: list[str] = []
        self.evaluations: dict[str, dict] = {}  # by id
        self.asks: list[dict] = []
        self.further: dict = {
            "config": {"name": "fixture", "seed": 42, "space": {}, "baseline": BASELINE,
                       "algorithm": {"name": "nsga2", "population": 8},
                       "evaluation": {"repeated": "reuse", "replicates": replicates}},
            "facts": {"corpus": "brown", "corpus_hash": "ab" * 32},
            "sessions": [{"environment": {"attnas": "0.1.0", "torch": "1.13.0",
                                          "processor": "any"}}],
            "objectives": self.objectives, "record_schema": None, "reference_point": 1.1,
            "labels": {}, "elapsed_seconds": 400.0, "ended_by": "40 asks", "planned_asks": None,
            "retest": None, "truth": None, "truth_splits": None, "models": None}
        self.baseline, fitness = self.evaluate(BASELINE)
        self.baseline_fitness = fitness
        for number in range(asked):
            self.ask(number)
        self.write()

    def set(self, key: str, value: object) -> None:
        """Sets a key that nothing follows from."""
        self.further[key] = value
        self.write()

    def evaluate(self, candidate: str, status: str = "ok",
                 reason: str = "") -> tuple[list[str], list[float]]:
        """Trains a mechanism: ids of its evaluations and its fitness."""
        genes = candidate.split("|")
        mean = 90 + 30 * float(genes[5])
        mean -= 12 * (genes[2] == "highway") + 4 * (genes[1] == "softmax")
        ids, sums = [], [0.0] * len(self.objectives)
        for replicate in range(self.replicates):
            perplexity = mean + self.shared[replicate] + self.random.gauss(0, self.noise)
            values = {"perplexity": perplexity, "parameters": 154000.0,
                      "attention_flops": 1.6e6 + 3e5 * (genes[2] != "none")
                      + 1e4 * SPACE["similarity"].index(genes[0]),
                      "accuracy": 0.4 - perplexity / 500}
            ids.append(f"{len(self.candidates):04}{replicate:02}" + "f" * 58)
            usable = status == "ok"
            self.add(ids[-1], candidate, replicate, status, reason, values if usable else {},
                     self.curve(values) if usable else [],
                     {"train_seconds": 3 + self.random.random(), "host": "one",
                      "started": "2026-01-01T10:00:00Z"})
            for i, objective in enumerate(self.objectives):
                sign = -1 if objective["maximise"] else 1
                sums[i] += sign * values[objective["name"]] / self.replicates
        self.candidates.append(candidate)
        return ids, sums

    @staticmethod
    def curve(values: dict) -> list[dict]:
        """Validations up to what came out; mechanisms of many operations are slower at first."""
        slowness = 0.2 + 1e-7 * (values["attention_flops"] - 1.6e6)
        return [{"step": step, "train_nll": 4.5, "seconds": step / 20, "valid": {
            "tokens": 1000, "correct": round(1000 * values["accuracy"] * (step / 60)**slowness),
            "nll": 1000 * math.log(values["perplexity"] * (60 / step)**slowness)}}
            for step in (20, 40, 60)]

    def add(self, id_: str, candidate: str, replicate: int, status: str, reason: str, values: dict,
            curve: list, measured: dict) -> None:
        """An evaluation, unless it is there."""
        self.evaluations.setdefault(id_, {
            "id": id_, "candidate": candidate, "replicate": replicate, "status": status,
            "usable": status == "ok", "reason": reason, "identity": 0, "values": values,
            "objectives": {o["name"]: values.get(o["name"]) for o in self.objectives},
            "measured": measured, "curve": curve, "stopped_at": None})

    def ask(self, number: int) -> None:
        """One ask of the algorithm."""
        if number % 9 == 8:  # a mechanism that it has asked for before
            before = self.asks[number - 5]
            self.answer(before["candidate"], before["evaluations"], before["fitness"], reused=True)
            return
        options = [self.random.choice(SPACE[gene]) for gene in list(SPACE)[:4]]
        bias = self.random.choice(["bias", "no_bias"])
        candidate = "|".join([*options, bias, f"{self.random.randint(0, 30) / 100:g}"])
        status, reason = "ok", ""
        if self.failures and number % 11 == 7:
            status, reason = ("diverged", "the loss is nan") if number % 2 else (
                "out_of_memory", HOSTILE)
        ids, fitness = self.evaluate(candidate, status, reason)
        self.answer(candidate, ids, fitness if status == "ok" else self.penalty())

    def penalty(self) -> list[float]:
        """The fitness of what has no quality."""
        return [objective["penalty"] for objective in self.objectives]

    def answer(self, candidate: str, ids: list[str], fitness: list[float],
               reused: bool = False) -> None:
        """One more ask, answered by evaluations that are there."""
        number = len(self.asks)
        self.asks.append({"number": number, "batch": number // 8, "genotype": candidate,
                          "candidate": candidate, "evaluations": ids, "reused": reused,
                          "fitness": fitness, "reason": ""})

    def reject(self, candidate: str, reason: str) -> None:
        """A mechanism that a constraint rejected before training."""
        id_ = f"rejected {candidate}"
        self.add(id_, candidate, 0, "rejected", reason, {}, [], {})
        self.answer(candidate, [id_], self.penalty())
        self.write()

    def stop(self, ids: list[str]) -> None:
        """Makes evaluations such that were stopped early."""
        for id_ in ids:
            own = self.evaluations[id_]
            own.update(status="stopped_early", stopped_at=20, curve=own["curve"][:1])
        self.write()

    def write(self) -> None:
        """Writes all that is known, and what follows from it."""
        trained = self._judge()
        latest = {ask["candidate"]: ask for ask in self.asks}
        ranking = self._ranking(latest)
        front = [place for place, own in enumerate(ranking) if own["on_front"]]
        states = [self.evaluations[id_]["status"] for id_ in trained]
        usable = any(self.evaluations[id_]["usable"] for id_ in self.baseline)
        self.file.write_text(text_of({
            **self.further, "asks": self.asks,
            "genes": [{"name": name, **({"options": own} if isinstance(own, list) else own)} for name, own in SPACE.items()],
            "counts": {"asked": len(self.asks), "evaluated": len(trained), "stopped_early": states.count("stopped_early")},
            "identities": [{"results_version": 3}],
            "evaluations": [self.evaluations[id_] for id_ in sorted(self.evaluations)],
            "ranking": ranking, "front": front, "knee": front[1] if len(front) > 1 else None,
            "rejected": [{"candidate": name, "reason": self.evaluations[ask["evaluations"][0]]["reason"]}
                         for name, ask in latest.items() if ask["status"] == "rejected"],
            "baseline": self._candidate(BASELINE, self.baseline_fitness, self.baseline) if usable else None,
            "hypervolume" if len(self.objectives) > 1 else "best": {
                "trace": [{"asked": ask["number"] + 1, "value": 0.987} for ask in self.asks[-1:]]}}), encoding="utf-8")

    def _judge(self) -> set[str]:
        """What asks were by their evaluations, and what they had cost by then: ids of all that they trained."""
        trained: set[str] = set()
        for ask in self.asks:
            own = [self.evaluations[id_] for id_ in ask["evaluations"]]
            trained |= {each["id"] for each in own if each["status"] != "rejected"}
            statuses = {each["status"] for each in own}
            bad = [status for status in ("rejected", *BAD) if status in statuses]
            failed = bool(bad) and ask["fitness"] == self.penalty()
            status = bad[-1] if failed else "stopped_early" if "stopped_early" in statuses else "ok"
            ask.update(status=status, usable=not failed, believed=ask["fitness"] if status == "ok" else None, trained=len(trained),
                       seconds=sum(self.evaluations[id_]["measured"]["train_seconds"] for id_ in trained))
        return trained

    def _ranking(self, latest: dict[str, dict]) -> list[dict]:
        """The usable candidates in their order. @param latest  the last ask for each."""
        ranking = [self._candidate(name, ask["fitness"], ask["evaluations"]) for name, ask in latest.items() if ask["usable"]]
        whole = [own for own in ranking if own["stopped_at"] is None] or ranking
        if whole:
            points = np.array([latest[own["candidate"]]["fitness"] for own in whole])
            for own, member in zip(whole, non_dominated(points)):
                own["on_front"] = bool(member)
        return sorted(ranking, key=lambda own: (not own["on_front"], own["stopped_at"] is not None,
                                                latest[own["candidate"]]["fitness"][0], own["first_ask"]))

    def _candidate(self, name: str, fitness: list[float], ids: list[str]) -> dict:
        asks = [ask["number"] for ask in self.asks if ask["candidate"] == name]
        own = [self.evaluations[id_] for id_ in ids]
        values = {o["name"]: -value if o["maximise"] else value
                  for o, value in zip(self.objectives, fitness)}
        return {"candidate": name, "mechanism": self.further["labels"].get(name, name),
                "values": values, "evaluations": ids, "on_front": False, "facts": {},
                "standard_errors": dict.fromkeys(values),
                "n": sum(each["usable"] for each in own), "replicates": self.replicates,
                "first_ask": min(asks, default=-1), "times_asked": len(asks),
                "stopped_at": min((each["stopped_at"] for each in own if each["stopped_at"]),
                                  default=None)}

    def retest(self, replicates: int = 5) -> None:
        """A re-test of four mechanisms and the baseline."""
        records = []
        best = sorted((ask["fitness"], ask["genotype"]) for ask in self.asks)[:4]
        for i, (fitness, candidate) in enumerate([*best, (self.baseline_fitness, BASELINE)]):
            role = "baseline" if candidate == BASELINE else "front"
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
        self.set("retest", {"replicates": replicates, "objective": "perplexity",
                            "candidates": records, "confidence": 0.95, "probability_split": "test", "flattery": 1.5,
                            "verdict": "The best mechanism beats the baseline on unseen seeds."})


def words_of(page: str) -> str:
    """What a reader sees, without markup."""
    body = page[page.index("<body>"):page.index("<script>")]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<title>.*?</title>|<[^>]*>", "", body,
                                                    flags=re.DOTALL)))


class PageTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder / "run"

    def fixture(self, **settings) -> RunFixture:
        return RunFixture(self.folder, **settings)

    def words(self) -> str:
        return words_of(report(Run(self.folder)))
