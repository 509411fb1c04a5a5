"""Where the time went."""

from __future__ import annotations

from statistics import median

from attnas.analysis.html import Html, element, join
from attnas.analysis.page import Section
from attnas.analysis.run import Evaluation, Run, finite_or
from attnas.analysis.words import counted, duration, percent


def section(run: Run) -> Section | None:
    """Training and waiting."""
    trained = [evaluation for evaluation in run.evaluations if evaluation.seconds > 0]
    if not trained or not (run.asks or run.listed):
        return None
    return Section("time", "Time spent", _totals(run, trained))


def _totals(run: Run, trained: list[Evaluation]) -> Html:
    seconds = [evaluation.seconds for evaluation in trained]
    total = sum(seconds)
    rows = [("trainings", f"{counted(len(trained), 'training')}, {duration(total)} together; "
                          f"median {duration(median(seconds))}, longest {duration(max(seconds))}")]
    processor = [finite_or(e.measured.get("cpu_seconds"), 0.0) for e in trained]
    if all(processor):
        rows.append(("processor", f"{duration(sum(processor))}, {percent(sum(processor) / total)} "
                                  "of the training time"))
    elapsed = run.elapsed
    if elapsed > 0:
        rows.append(("wall clock", f"{duration(elapsed)}; on average {total / elapsed:.2f} "
                                   "trainings at once"))
        if total < 0.99 * elapsed:
            idle = elapsed - total
            rows.append(("waiting", f"at least {duration(idle)} ({percent(idle / elapsed)} of the "
                         "wall clock) without any training: starting, the algorithm, " "storing"))
    return element("dl", *(join(element("dt", a), element("dd", b)) for a, b in rows))
