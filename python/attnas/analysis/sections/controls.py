"""The controls of a run: the baseline with less of what it is about, beside the best that was
found.
"""

from __future__ import annotations

import math

from attnas.analysis.html import Html, join, mechanism
from attnas.analysis.measures import best_counts, measure_of_run
from attnas.analysis.page import Cell, Section, note, table
from attnas.analysis.run import Candidate, Run
from attnas.analysis.words import NOTHING, count, number, percent


def section(run: Run) -> Section | None:
    """A row for the best found, the baseline and each control; nothing without controls beside the
    search.
    """
    if not run.controls:
        return None
    rows = [("best found", run.ranking[0])] if run.ranking else []
    rows += [("baseline", run.baseline)] if run.baseline else []
    rows += run.controls.items()
    header = ["", "mechanism", *(objective.title for objective in run.objectives), "to the "
                                                                                   "baseline", "n"]
    return Section(
        "controls", "Controls",
        join(
            table(header, [[Cell(name, left=True),
                            Cell(mechanism(each.label, each.brief), left=True),
                            *map(Cell, map(number, each.values)), Cell(_change(run, each)),
                            Cell(each.n_text)] for name, each in rows]),
            note(
                "The baseline without any mixer of positions, and with windows of few tokens, "
                "trained alike on the baseline's seeds. What is better than the baseline says "
                "something of attention only where it is better than these, too. By means: a "
                "re-test compares them seed by seed."),
            counts(run)))


def counts(run: Run) -> Html | None:
    """What counts of the baseline's training tokens reach; nothing where it is not recorded."""
    accuracy = measure_of_run(run.objectives).accuracy
    best = best_counts(run.digest.get("count_models"), accuracy)
    if best is None:
        return None
    value = f"accuracy of {number(best['valid_accuracy'])}" if accuracy else (
        f"perplexity of {number(math.exp(best['valid_nll']))}")
    return note(f"Counts of {count(best['tokens'])} of the baseline's training tokens, with as "
                f"much history, have a validation {value} (order {best['order']}).")


def _change(run: Run, candidate: Candidate) -> str:
    """Of the objective whose noise matters."""
    place = run.noisy or 0
    if run.baseline is None or candidate is run.baseline or not run.baseline.values[place]:
        return NOTHING
    before = run.baseline.values[place]
    change = (candidate.values[place] - before) / abs(before)
    return f"{'+' if change > 0 else ''}{percent(change, 1)}"
