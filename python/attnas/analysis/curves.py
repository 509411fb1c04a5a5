"""Learning curves of a run's mechanisms, and what ranks at checkpoints say about the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnas.analysis.digest import perplexity
from attnas.analysis.run import Evaluation, Run
from attnas.analysis.statistics import Interval, kendall

FEWEST = 8  # mechanisms whose ranks are compared
MOST_TOP = 8


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
        for name, rank, is_baseline, evaluations in found
    ]
    return [curve for curve in made if curve.points]


def _mean(quantity: Measure, evaluations: list[Evaluation]) -> tuple[dict[int, float], int]:
    each = [{point["step"]: quantity.of(point["valid"]) for point in evaluation.curve}
            for evaluation in evaluations if evaluation.usable and evaluation.curve]
    shared = sorted(set.intersection(*map(set, each))) if each else []
    means = {step: sum(own[step] for own in each) / len(each) for step in shared}
    return {step: value for step, value in means.items() if math.isfinite(value)}, len(each)


@dataclass(frozen=True)
class Checkpoint:
    """What the ranks at a step say about those at the end."""

    step: int
    tau: Interval  # Kendall's rank correlation with the end
    kept: int  # of the final top, so many are as far up here
    needed: int  # so many of the best here hold all of the final top


@dataclass(frozen=True)
class Agreement:
    """Checkpoints of mechanisms that were trained to the end, the baseline left out where the
    search did not ask for it."""

    curves: list[Curve]  # best at the end first
    end: int  # last step
    top: int  # how many at the end are called its top
    checkpoints: list[Checkpoint]  # before the end
    places: dict[int, np.ndarray]  # by step, the end included: of each curve its rank from 1

    @property
    def by_chance(self) -> float:
        """Expected Checkpoint.kept where ranks say nothing."""
        return self.top**2 / len(self.curves)


def agreement(run: Run, known: list[Curve]) -> Agreement | None:
    """None with fewer mechanisms than FEWEST, or without a step before the end."""
    end = max((max(curve.points) for curve in known), default=0)
    sign = -1.0 if measure(run).maximise else 1.0
    whole = sorted((curve for curve in known if end in curve.points and curve.rank >= 0),
                   key=lambda curve: sign * curve.points[end])
    if len(whole) < FEWEST:
        return None
    steps = sorted(set.intersection(*(set(curve.points) for curve in whole)))
    if len(steps) < 2:
        return None
    top = min(MOST_TOP, len(whole) // 4)
    values = {step: np.array([sign * curve.points[step] for curve in whole]) for step in steps}
    # Before the end, equals share the worst of their places: nothing tells the later winner from
    # them.
    places = {step: (own[None, :] <= own[:, None]).sum(axis=1) for step, own in values.items()}
    places[end] = np.arange(len(whole)) + 1
    return Agreement(whole, end, top, [
        Checkpoint(step, kendall(values[step], values[end]),
                   int((places[step][:top] <= top).sum()), int(places[step][:top].max()))
        for step in steps[:-1]], places)
