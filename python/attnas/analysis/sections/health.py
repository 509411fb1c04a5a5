"""Whether the run can carry the conclusions that one would draw from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from attnas.analysis.differences import noise, one_measurement
from attnas.analysis.genes import genes
from attnas.analysis.html import element
from attnas.analysis.page import Section
from attnas.analysis.run import Run
from attnas.analysis.words import number, percent

SIGNS = {"good": "\u2713", "warn": "!", "unknown": "?"}


@dataclass
class _Check:
    """One finding; state is good, warn or unknown."""

    state: str
    title: str
    words: str


def section(run: Run) -> Section | None:
    """The checks, one per line."""
    if not run.ranking:
        return None
    items = [
        element("li", element("span", SIGNS[check.state], class_="state " + check.state,
                              aria_label=check.state),
                element("span", element("b", check.title), " ", check.words))
        for check in _checks(run)
    ]
    return Section("health", "Health", element("ul", *items, class_="checks")) if items else None


def _checks(run: Run) -> Iterator[_Check]:
    if run.noisy is not None and run.measured_once(run.noisy):
        yield _Check("unknown", "Signal to noise.", f"{one_measurement(run, run.noisy)}.")
    elif run.noisy is not None:
        yield _signal(run, run.noisy)
    if run.several and run.comparable:
        yield _reach(run)
    yield from _genes(run)


def _signal(run: Run, objective: int) -> _Check:
    title = "Signal to noise."
    found = noise(run, objective)
    if found is None:
        return _Check("unknown", title, "Unknown: one seed each, so that nothing says how much of "
                      "the spread between mechanisms is the seed's.")
    if math.isnan(found.ratio):
        return _Check("unknown", title, f"Seeds change nothing in {run.objectives[objective].name} "
                                        f"({found.mechanisms} mechanisms x {found.replicates} "
                                        "seeds; what all mechanisms share under a seed left out): "
                                        "there is no noise that anything could be set against.")
    state = "good" if found.ratio >= 3 else "warn"
    words = (f"The variance between mechanisms is {number(found.ratio)} times the variance between "
             f"replicates (standard deviations {number(math.sqrt(found.between))} and "
             f"{number(math.sqrt(found.within))} {run.objectives[objective].name}; "
             f"{found.mechanisms} mechanisms x {found.replicates} seeds; what all mechanisms share "
             "under a seed, and exploded trainings, left out).")
    words += (f" Of the variance of single trainings' scores {percent(found.reliability)} is "
              "the mechanisms' own.")
    return _Check(state, title, words)


def _reach(run: Run) -> _Check:
    points = [run.scaled(candidate.fitness) for candidate in run.comparable]
    beyond = [candidate for candidate, point in zip(run.comparable, points)
              if any(value >= run.reference_point for value in point)]
    share = len(beyond) / len(run.comparable)
    lost = sum(candidate.on_front for candidate in beyond)
    words = (f"{percent(share)} of the mechanisms lie beyond the reference point, {lost} of them "
             "on the front; the hypervolume does not see them.")
    for i, objective in enumerate(run.objectives):
        scaled = [point[i] for point in points]
        if min(scaled) > 1:
            words += (f" Every value of {objective.name} is worse than its range, "
                      f"{number(objective.best)} to {number(objective.worst)}, so that the "
                      "hypervolume stays near 0 whatever is found: give the objective a wider one.")
            lost = True
    return _Check("warn" if lost else "good", "Ranges.", words)


def _genes(run: Run) -> Iterator[_Check]:
    found = genes(run)
    if len(run.comparable) < 10 or not found:
        return
    objective = run.noisy or 0
    for gene in found:
        if not gene.numeric:
            continue
        having = [c for c in run.comparable if gene.raw(c.label) is not None]
        top = sorted(having, key=lambda c: c.fitness[objective])
        if len(top) < 3:
            continue
        values = [float(gene.raw(c.label)) for c in top[:max(3, len(top) // 10)]]
        margin = 0.05 * (gene.high - gene.low)
        for edge, words in ((gene.low, "lower"), (gene.high, "upper")):
            if abs(median(values) - edge) <= margin:
                yield _Check("warn", "Boundary.", f"The best tenth crowds at the {words} end of "
                             f"{gene.name.replace('_', ' ')} ({number(edge)}): a wider range may "
                             "hold better ones.")
