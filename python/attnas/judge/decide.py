"""The same for a function of Python: attnas.decide."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from attnas.errors import InputError
from attnas.judge import report, session
from attnas.judge.__main__ import bound
from attnas.judge.journal import Journal, Memory
from attnas.judge.processes import Metric, Outcome
from attnas.judge.trial import Rules, Trial

APART = 20.0  # times, from which two answers look like a sum and a mean


class Decided:
    """What became of each variant; as a text the sentences."""

    def __init__(self, trial: Trial):
        self._trial = trial
        self.decisions: dict[str, str] = {one.name: one.decision for one in trial.states}
        self.rows: list[dict[str, Any]] = report.rows(trial)

    def __str__(self) -> str:
        return "\n".join(row["sentence"] for row in self.rows)

    __repr__ = __str__

    def to_html(self) -> str:
        """A page."""
        return report.page_text(self._trial, f"attnas.decide, {', '.join(self._trial.names)}")


def decide(train: Callable[[Any, int], Any], variants: Mapping[str, Any],
           until: str | float | None = None, *, most: int = 20, higher: bool = False,
           values: str | None = None, output: str | os.PathLike | None = None,
           on_progress: Callable[[str], None] | None = print) -> Decided:
    """Calls train(variant, seed) until each variant is better or worse than the first one, or
    within a bound of it, as attnas judge does with commands.

    @param train     returns a number, or {name: number} of which the first decides. What it raises
        in its first call for a variant ends this; later it is a failure, as are NaN and infinity.
    @param variants  what is compared, by labels; the first is the baseline.
    @param until     "1%" of the baseline's mean, or a number in the metric's unit.
    @param most      pairs of seeds. @param higher  whether more is better.
    @param values    "mean" where values that lie far apart are means all the same.
    @param output    a folder: the same call goes on there.
    @throws InputError  where something is not as it must be; nothing further is run.
    """
    if len(variants) < 2:
        raise InputError(f"variants has {len(variants)} labels, must have at least 2")
    if values not in (None, "mean"):
        raise InputError(f"values = {values!r}, must be 'mean': a sum grows with the number of "
                         "tokens and compares nothing; divide by it")
    if most < 2:
        raise InputError(f"most = {most}, must be at least 2")
    within = bound(str(until), "until") if until is not None else (None, True)
    journal = Journal(Path(output)) if output is not None else Memory()
    try:
        return Decided(_run(train, variants, journal, Rules(*within, most), higher, values,
                            on_progress or (lambda line: None)))
    finally:
        journal.close()


def numbers(answer: Any, where: str) -> dict[str, float]:
    """@throws InputError  where an answer is neither a number nor numbers by name."""
    found = {}
    for name, value in (answer if isinstance(answer, Mapping) else {"value": answer}).items():
        value = value.item() if getattr(value, "ndim", None) == 0 else value  # NumPy's, PyTorch's
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"{where}: train returned {value!r}, must be a number or "
                             "{name: number}")
        found[str(name)] = float(value)
    if not found:
        raise InputError(f"{where}: train returned an empty dict, must be numbers by name")
    return found


def _run(train: Callable, variants: Mapping[str, Any], journal: Memory, rules: Rules, higher: bool,
         values: str | None, on_progress: Callable[[str], None]) -> Trial:
    baseline, *others = variants
    first: dict[str, float] = {}  # the first answer, by which others are held

    def answered(name: str, seed: int) -> Outcome:
        began, where = time.monotonic(), f"{name}, seed {seed}"
        found = numbers(train(variants[name], seed), where)
        first.update(found if not first else {})
        if list(found) != list(first):
            raise InputError(f"{where}: train returned {', '.join(found)}, before "
                             f"{', '.join(first)}")
        (metric, a), b = next(iter(first.items())), next(iter(found.values()))
        if values is None and math.isfinite(a) and math.isfinite(b) and a and b and \
                max(abs(a / b), abs(b / a)) >= APART:
            raise InputError(f"{where}: {metric} is {b:g}, the first was {a:g}: is one a sum over "
                             "tokens? Return means, and say values='mean' where both are right")
        bad = [one for one in found if not math.isfinite(found[one])]
        return Outcome(None if bad else tuple(found.values()),
                       f"{bad[0]} is not finite" if bad else "", time.monotonic() - began)

    header = next((one for one in journal.records if "judge" in one), None)
    known = [one["values"] for one in journal.records if one.get("values")]
    begun = None if header else answered(baseline, 1)
    metrics = [one[1] for one in header["metrics"]] if header else list(first)
    first.update(zip(metrics, known[0]) if known else {})
    names = [baseline, *session.begin(
        journal, {"judge": 1, "baseline": baseline,
                  "metrics": [[one, one, higher] for one in metrics]}, others, {})]

    def measure(variant: int, seed: int) -> Outcome:
        if begun and (variant, seed) == (0, 1):
            return begun
        began = time.monotonic()
        try:
            return answered(names[variant], seed)
        except InputError:
            raise
        except Exception as error:
            if not any(key[0] == variant for key in trial.outcomes):
                raise
            return Outcome(None, f"{type(error).__name__}: {error}", time.monotonic() - began)

    trial = Trial(names, [Metric(one, one, higher) for one in metrics], journal, measure, rules,
                  looked=lambda trial, pairs: [on_progress(line)
                                               for line in report.lines(trial, pairs)])
    trial.run()
    return trial
