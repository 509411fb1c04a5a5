"""Learning rate and weight decay of mechanisms that were tuned, the baseline among them."""

from __future__ import annotations

from typing import Any

from attnas.analysis.digest import Objective
from attnas.analysis.html import Html, join, mechanism
from attnas.analysis.page import Section, heading, paragraph
from attnas.analysis.run import Run, finite_or
from attnas.analysis.svg import Picture, figure, tip
from attnas.analysis.words import number

NAN = float("nan")


def section(run: Run) -> Section | None:
    """A map of learning rate x weight decay for each tuned mechanism; nothing without tuning."""
    if not run.tuning:
        return None
    objective = run.objectives[0]
    parts: list[Html] = [paragraph(
        f"{objective.title} by learning rate and weight decay: the greener, the better; "
        "framed: the best; \u00d7: failed. A best at the edge of the map asks for a wider one.")]
    for record in run.tuning:
        trials = record["trials"]
        if not trials:
            continue
        parts += [
            heading(mechanism(record["label"])),
            figure(lambda width, r=record: _map(r, objective, width)),
            paragraph(_best(record, objective)),
        ]
    return Section("tuning", "Tuning", join(*parts))


def _axis(trials: list[dict[str, Any]], name: str) -> list[float]:
    return sorted({trial[name] for trial in trials})


def _best(record: dict[str, Any], objective: Objective) -> str:
    trials, best = record["trials"], record["best"]
    if not isinstance(best, int) or not 0 <= best < len(trials):
        return "No trial could be evaluated."
    trial = trials[best]
    edges = [
        words for name, words in (("learning_rate", "learning rate"),
                                  ("weight_decay", "weight decay"))
        if len(_axis(trials, name)) > 1
        and trial[name] in (_axis(trials, name)[0], _axis(trials, name)[-1])
    ]
    at_edge = f" It lies at the edge of the tried {' and '.join(edges)}." if edges else ""
    return (f"Best: learning rate {trial['learning_rate']:g}, weight decay "
            f"{trial['weight_decay']:g}, {objective.name} "
            f"{number(finite_or(trial['value'], NAN))}.{at_edge}")


def _map(record: dict[str, Any], objective: Objective, width: float) -> Picture:
    trials = record["trials"]
    rates, decays = _axis(trials, "learning_rate"), _axis(trials, "weight_decay")
    left, top = 76.0, 26.0
    cell = min(110.0, (width - left - 10) / max(1, len(rates)))
    height = 34.0
    picture = Picture(width, top + height * len(decays) + 44, "learning rate x weight decay")
    values = [finite_or(trial["value"], NAN) for trial in trials]
    known = sorted(value for value in values if value == value)
    good, bad = (known[-1], known[0]) if objective.maximise and known else (
        (known[0], known[-1]) if known else (0.0, 1.0))
    for i, (trial, value) in enumerate(zip(trials, values)):
        x = left + cell * rates.index(trial["learning_rate"])
        y = top + height * (len(decays) - 1 - decays.index(trial["weight_decay"]))
        words = tip(f"learning rate {trial['learning_rate']:g}, weight decay "
                    f"{trial['weight_decay']:g}",
                    f"{objective.name} {number(value)}" if value == value else "failed",
                    f"n = {len(trial['evaluations'])}")
        goodness = 0.0 if value != value or good == bad else (bad - value) / (bad - good)
        picture.rectangle(x + 1.5, y + 1.5, cell - 3, height - 3,
                          "fill-best chosen" if i == record["best"] else "fill-best", words,
                          fill_opacity=round(0.06 + 0.6 * goodness, 3))
        picture.text(x + cell / 2, y + height / 2 + 5, number(value) if value == value else
                     "\u00d7", "small", "middle", pointer_events="none")
    for i, rate in enumerate(rates):
        picture.text(left + cell * (i + 0.5), top + height * len(decays) + 16, f"{rate:g}",
                     "tick", "middle")
    for i, decay in enumerate(decays):
        picture.text(left - 8, top + height * (len(decays) - i - 0.5) + 4, f"{decay:g}", "tick",
                     "end")
    picture.text(4, 14, "weight decay", "name")
    picture.text(left + cell * len(rates) / 2, top + height * len(decays) + 36, "learning rate",
                 "name", "middle")
    return picture
