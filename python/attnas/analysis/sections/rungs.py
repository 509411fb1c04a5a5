"""Rungs: validation steps at which candidates paused, and who went on."""

from __future__ import annotations

from attnas.analysis.html import join
from attnas.analysis.page import Cell, Section, paragraph, table
from attnas.analysis.run import Run
from attnas.analysis.words import counted, percent


def section(run: Run) -> Section | None:
    """How many came to each rung and went on; nothing where all were trained to the end."""
    rungs = run.digest.get("rungs")
    if not rungs:
        return None
    rows = [[Cell(f"{rung['step']:,}"), Cell(f"{rung['reached']:,}"), Cell(f"{rung['went_on']:,}"),
             Cell(percent(rung["went_on"] / rung["reached"]))] for rung in rungs]
    return Section("rungs", "Rungs", join(
        paragraph("Candidates pause at these steps of training; the best ones there go on, "
                  "compared by one training run of the same seeds each. What an algorithm "
                  "hears of a candidate is how it was at its first rung."),
        table(["step", "paused there", "went on", "share"], rows), paragraph(_steps(run))))


def _steps(run: Run) -> str:
    """What the rungs have saved, in steps."""
    asked = {id_ for ask in run.asks for id_ in ask.evaluations}
    ended = [e for e in run.evaluations if e.id in asked and e.trained]
    # What went on outside the search, as the baseline, took the steps of its last rung in the
    # search.
    paused = {ask["evaluation"]: ask["step"] for ask in run.digest.get("rung_asks") or []
              if ask["evaluation"] not in asked}
    paused |= {one["id"]: one["curve"][-1]["step"] for one in run.digest["paused"]}
    whole = max((e.curve[-1]["step"] for e in ended if e.status == "ok"), default=0)
    if not whole:
        return f"{counted(len(paused), 'candidate')} paused for good, and none has come to the end."
    steps = sum(e.curve[-1]["step"] for e in ended) + sum(paused.values())
    trainings = len(ended) + len(paused)
    return (f"{counted(len(paused), 'candidate')} of {trainings:,} paused for good. The search "
            f"took {steps:,} steps of training, {percent(steps / (whole * trainings))} of those "
            "that all to the end would have taken.")
