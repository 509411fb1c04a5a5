"""Whether the run can carry the conclusions that one would draw from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from scipy import stats

from attnas.analysis.differences import among, noise, one_measurement
from attnas.analysis.genes import genes
from attnas.analysis.html import element
from attnas.analysis.page import Section
from attnas.analysis.run import Run
from attnas.analysis.words import counted, number, percent

TOP = 5
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
    return Section("health", "Health", element("ul", *items, class_="checks"))


def _checks(run: Run) -> Iterator[_Check]:
    if run.noisy is not None and run.measured_once(run.noisy):
        yield _Check("unknown", "Signal to noise.", f"{one_measurement(run, run.noisy)}.")
    elif run.noisy is not None:
        yield _signal(run, run.noisy)
        yield _top(run, run.noisy)
    yield _failure_rate(run)
    yield _repeats(run)
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


def _top(run: Run, objective: int) -> _Check:
    described = run.objectives[objective]
    best = sorted(run.comparable, key=lambda candidate: candidate.fitness[objective])[:TOP]
    if len(best) < 2:
        return _Check("unknown", "The best.", "One mechanism is no comparison." if best else
                      "No mechanism was trained to the end.")
    title = f"The best {len(best)}."
    found = among(run, best, objective)
    if found:
        significant = sum(each.significant for each in found)
        over = f"Holm over {counted(len(found), 'pair')}, n = {min(d.n for d in found)}"
        if significant == 0:
            return _Check("warn", title, f"Their differences in {described.name} are not "
                          f"significant ({over}): their order is not known.")
        state = "good" if significant == len(found) else "warn"
        return _Check(state, title, f"{significant} of {len(found)} differences in "
                      f"{described.name} are significant ({over}).")
    return _Check("unknown", title, _needed_noise(run, objective, best))


def _needed_noise(run: Run, objective: int, best: list) -> str:
    """n = 1: the standard deviation between seeds below which differences would be clear."""
    described = run.objectives[objective]
    # |a - b| > z sqrt(2) sd, two single training runs with independent noise of known sd
    factor = float(stats.norm.ppf(0.975)) * math.sqrt(2)
    gap = abs(best[0].values[objective] - best[1].values[objective])
    words = (f"Whether they differ cannot be known with one seed each. The first two are "
             f"{number(gap)} {described.name} apart: to tell them, the seeds' standard deviation "
             f"would have to be below {number(gap / factor)}")
    if run.baseline and run.baseline.name != best[0].name:
        gap = abs(best[0].values[objective] - run.baseline.values[objective])
        words += (f"; the best and the baseline are {number(gap)} apart, which takes one below "
                  f"{number(gap / factor)}, before any correction for having chosen the best of "
                  f"{len(run.comparable)}")
    return words + "."


def _failure_rate(run: Run) -> _Check:
    share = len(run.failures) / max(1, run.num_trained)
    return _Check("good" if share <= 0.05 else "warn", "Failures.",
                  f"{percent(share, 1)} of {counted(run.num_trained, 'evaluation')} failed."
                  + (" An algorithm that sees many penalties learns what fails, not what is good."
                     if share > 0.2 else ""))


def _repeats(run: Run) -> _Check:
    share = sum(ask.reused for ask in run.asks) / len(run.asks)
    words = f"{percent(share)} of {counted(len(run.asks), 'ask')} were answered by an earlier one."
    if share > 0.5:
        words += " The search mostly asks for what it knows: more mutation or a larger space."
    return _Check("good" if share <= 0.5 else "warn", "Repeated asks.", words)


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
