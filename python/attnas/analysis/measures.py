"""What the mechanisms of a comparison are compared by on the test split: perplexity, or accuracy
where that is what they are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnas.analysis.digest import Objective


@dataclass(frozen=True)
class Measure:
    """Recorded differences are of mean nll, or of the share of wrong answers: below 0 is better.
    Shown ones are percent of the perplexity, or points of accuracy, of which more is better."""

    accuracy: bool

    @property
    def title(self) -> str:
        return "test accuracy" if self.accuracy else "test perplexity"

    @property
    def unit(self) -> str:
        """Of shown differences."""
        return "points" if self.accuracy else "%"

    def value(self, values: Mapping[str, float]) -> float:
        """Of a training run's values; NaN where it has none."""
        if not self.accuracy:
            return values.get("test_perplexity", math.nan)
        tokens = values.get("test_tokens", 0)
        return values.get("test_correct", math.nan) / tokens if tokens else math.nan

    def shown(self, difference: float) -> float:
        """A recorded difference for people."""
        if self.accuracy:
            return 0.0 - 100.0 * difference  # no difference has no sign
        try:
            return 100.0 * math.expm1(difference)
        except OverflowError:
            return math.inf

    def between(self, a: float, b: float) -> float:
        """The shown difference of value a from value b."""
        return 100.0 * (a - b) if self.accuracy else 100.0 * (a / b - 1.0)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """The shown ends of a recorded interval, the lower one first."""
        ends = self.shown(low), self.shown(high)
        return (ends[1], ends[0]) if self.accuracy else ends


def measure_of_run(objectives: Iterable[Objective]) -> Measure:
    """That of a run: accuracy where it is the first objective that training determines."""
    first = next((objective for objective in objectives if objective.source == "trained"), None)
    return Measure(first is not None and (first.key or first.name) == "accuracy")


def measure_of(retest: Mapping[str, Any]) -> Measure:
    """That of a record; one without a word of it is of perplexity."""
    return Measure(retest.get("measure") == "test accuracy")


def best_counts(models: list[dict[str, Any]] | None, accuracy: bool) -> dict[str, Any] | None:
    """The count model that is best on validation by accuracy or nll, of a record's count_models;
    None where none has it.
    """
    key, sign = ("valid_accuracy", -1) if accuracy else ("valid_nll", 1)
    return min((model for model in models or [] if key in model),
               key=lambda model: sign * model[key], default=None)
