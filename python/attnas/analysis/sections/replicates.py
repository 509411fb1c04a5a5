"""Replicates with intervals: how far single training runs of one mechanism lie apart."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attnas.analysis.differences import from_baseline, one_measurement
from attnas.analysis.digest import limits, seed_number
from attnas.analysis.html import join, mechanism, prose
from attnas.analysis.page import Cell, Section, note, paragraph, table
from attnas.analysis.run import Candidate, Run
from attnas.analysis.statistics import Interval, failure_line, mean_interval, mean_with_failures
from attnas.analysis.svg import Frame, Picture, figure, tip, value_axis
from attnas.analysis.words import number, p_value, range_text, shortened, signed

MOST_SHOWN = 15


def section(run: Run) -> Section | None:
    """Dots, means and intervals, and differences from the baseline."""
    objective = run.noisy
    if objective is None or not run.ranking:
        return None
    if run.measured_once(objective):
        return Section("replicates", "Replicates", paragraph(f"{one_measurement(run, objective)}."))
    first = run.comparable if not run.several else sorted(
        run.comparable, key=lambda c: (not c.on_front, c.fitness[objective]))
    shown = [c for c in first if len(run.replicates(c, objective)) >= 2][:MOST_SHOWN]
    if not shown:
        lacking = ("Every mechanism was trained with one seed."
                   if all(candidate.n < 2 for candidate in run.ranking) else
                   "No mechanism was trained to the end with several seeds.")
        return Section("replicates", "Replicates", paragraph(prose(
            f"{lacking} `evaluation.replicates: 3` would train each with three and show here how "
            "far they lie apart; `retest:` does so for the best only.")))
    if run.baseline and run.baseline.name not in {c.name for c in shown}:
        shown.append(run.baseline)
    name = run.objectives[objective].name
    rest = sum(len(run.replicates(c, objective)) >= 2 for c in run.comparable) - MOST_SHOWN
    return Section("replicates", "Replicates", join(
        figure(lambda width: _picture(run, shown, objective, width),
               f"Dots: {name} of single trainings. Bar: mean with its 95 % interval; an arrow "
               "where it goes beyond the axis. "
               + (f"{rest} further mechanisms are not shown." if rest > 0 else "")),
        _table(run, objective, {c.name for c in shown})))


def _picture(run: Run, shown: list[Candidate], objective: int, width: float) -> Picture:
    narrow = width < 600
    row = 38.0 if narrow else 26.0
    left = 8.0 if narrow else 400.0
    frame = Frame(left, 10, width - 14, 10 + row * len(shown))
    described = run.objectives[objective]
    picture = Picture(width, frame.bottom + 48, f"replicates: {described.name}")
    values = [v for c in shown for v in run.replicates(c, objective).values()]
    x = value_axis(values, described.maximise, [c.values[objective] for c in shown])
    picture.bottom_axis(frame, x, described.title, grid=True)
    interval = _interval(run, shown, objective)
    for i, candidate in enumerate(shown):
        y = frame.top + row * (i + 0.5) + (7 if narrow else 0)
        is_baseline = run.baseline is not None and candidate.name == run.baseline.name
        colour = " baseline-text" if is_baseline else ""
        picture.text(left if narrow else 2, y - 10 if narrow else y + 4,
                     shortened(candidate.brief, 46 if narrow else 53), "code small label" + colour)
        found = run.replicates(candidate, objective)
        mean, low, high = interval(list(
            found.values())).within(*limits(described.key or described.name))
        if not math.isnan(low):
            picture.line(x(low), y, x(high), y, "baseline" if is_baseline else "interval")
            for end, sign in ((low, "\u25c2"), (high, "\u25b8")):
                if not x.holds(end):
                    picture.text(x(end), y + 4, sign, "muted", "middle")
        words = tip(candidate.label, f"mean {number(mean)}, 95 % interval {range_text(low, high)}",
                    f"n = {len(found)}")
        picture.dot(x(mean), y, 5.5, "ring" if is_baseline else "front", words, candidate.rank)
        for replicate, value in found.items():
            single = tip(candidate.label, f"seed {seed_number(replicate)}: {number(value)}", words)
            if x.holds(value):
                picture.dot(x(value), y, 3, "point", single, candidate.rank)
            else:
                picture.sign(x(value), y, "\u2192" if value > x.high else "\u2190", "edge-text",
                             single, candidate.rank)
    return picture


def _interval(run: Run, shown: list[Candidate],
              objective: int) -> Callable[[list[float]], Interval]:
    """Of a mean: Student's, or where runs of a mechanism may fail and chance is known, as
    mean_with_failures() has it.
    """
    key = run.objectives[objective].key or run.objectives[objective].name
    chance = run.facts.get("chance") or {}
    if key == "accuracy":
        plateau, loss = chance.get("accuracy", math.nan), lambda values: 1.0 - np.array(values)
    elif key == "perplexity":
        plateau, loss = math.exp(chance.get("nll", math.nan)), np.log
    else:
        return mean_interval
    line = failure_line([loss(list(run.replicates(each, objective).values())) for each in shown],
                        float(loss([plateau])[0]))
    return lambda values: mean_with_failures(values, loss(values) > line, plateau) if math.isfinite(
        line) else mean_interval(values)


def _table(run: Run, objective: int, shown: set[str]) -> object:
    found = from_baseline(run, objective)
    rows = [
        [Cell(mechanism(d.a.label, d.a.brief), left=True), Cell(signed(d.value)),
         Cell(range_text(d.low, d.high)), Cell(p_value(d.p)), Cell(p_value(d.p_holm)), Cell(d.n)]
        for d in found if d.a.name in shown
    ]
    if not rows:
        return note("Without replicates of the baseline nothing can be compared with it.")
    paired = all(d.paired for d in found)
    test = ("paired t tests over shared seeds" if paired else
            "paired t tests where seeds are shared, Welch's elsewhere")
    name = run.objectives[objective].name
    return join(
        table(["mechanism", f"{name} to baseline", "95 % interval", "p", "p (Holm)", "n"], rows),
        note(prose(f"Differences from the baseline by {test}; Holm over all {len(found)} "
                   "mechanisms compared. The mechanisms were selected by these very scores: only "
                   "seeds that the search has not seen (`retest:`) give unbiased differences.")))
