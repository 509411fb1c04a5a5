"""Learning curves of a run's mechanisms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from attnas.analysis.digest import perplexity
from attnas.analysis.run import Evaluation, Run


@dataclass(frozen=True)
class Curve:
    """Validations of a mechanism, by step: means over its replicates."""

    label: str
    brief: str  # the same where there is little room
    rank: int  # place in Run.ranking; -1: none
    is_baseline: bool
    points: dict[int, float]
    replicates: int

    @property
    def end(self) -> float:
        """The value at its last step."""
        return self.points[max(self.points)]


@dataclass(frozen=True)
class Measure:
    """What is measured at a checkpoint."""

    name: str
    maximise: bool

    def of(self, valid: dict[str, Any]) -> float:
        """From a validation's sums; NaN where it is not known."""
        if self.name == "perplexity":
            return perplexity(valid)
        return valid["correct"] / valid["tokens"] if valid.get("tokens") else math.nan


def measure(run: Run) -> Measure:
    """Accuracy where the first objective that training determines is, else perplexity."""
    keys = [own["key"] for own in run.digest["objectives"] if own["source"] == "trained"]
    return Measure("accuracy", True) if keys[:1] == ["accuracy"] else Measure("perplexity", False)


def curves(run: Run) -> list[Curve]:
    """Of the ranking, best first, and of the baseline; of what was listed where nothing was
    searched. Of replicates the mean, at the steps that all usable ones have reached; what has no
    finite value is left out."""
    if not run.trained:
        return []
    baseline = run.baseline.name if run.baseline else ""
    found = [(each.name, each.rank, each.name == baseline, each.evaluations)
             for each in run.with_baseline(run.ranking)]
    if run.listed:
        found = [(each["candidate"], -1, each["role"] == "baseline",
                  [run.by_id[id_] for id_ in each["evaluations"]])
                 for each in run.retest.get("candidates", [])]
    quantity = measure(run)
    made = [
        Curve(run.label(name), run.brief(name), rank, is_baseline, *_mean(quantity, evaluations))
        for name, rank, is_baseline, evaluations in found]
    return [curve for curve in made if curve.points]


def _mean(quantity: Measure, evaluations: list[Evaluation]) -> tuple[dict[int, float], int]:
    each = [{point["step"]: quantity.of(point["valid"]) for point in evaluation.curve}
            for evaluation in evaluations if evaluation.usable and evaluation.curve]
    shared = sorted(set.intersection(*map(set, each))) if each else []
    means = {step: sum(own[step] for own in each) / len(each) for step in shared}
    return {step: value for step, value in means.items() if math.isfinite(value)}, len(each)
