"""Where the time went."""

from __future__ import annotations

from statistics import median

from nas_analysis.html import Html, element, join, mechanism
from nas_analysis.page import Cell, Section, table
from nas_analysis.run import Evaluation, Run, finite_or
from nas_analysis.svg import Axis, Frame, Picture, figure, tip
from nas_analysis.words import counted, duration, number, percent

SLOWEST = 5
MOST_BARS = 60


def section(run: Run) -> Section | None:
    """Training and waiting, by batch, and the slowest mechanisms."""
    trained = [evaluation for evaluation in run.evaluations if evaluation.seconds > 0]
    if not trained or not (run.asks or run.listed):
        return None
    batches = _by_batch(run) if run.asks else []
    return Section("time", "Time spent", join(
        _totals(run, trained),
        figure(lambda width: _bars(batches, width), "Training time by batch.")
        if len(batches) > 1 else None,
        _slowest(run),
    ))


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
                                    "wall clock) without any training: starting, the algorithm, "
                                    "storing"))
    return element("dl", *(join(element("dt", a), element("dd", b)) for a, b in rows))


def _by_batch(run: Run) -> list[tuple[int, int, float]]:
    """(batch, training runs, seconds); neighbours together where there are too many."""
    seen: set[str] = set()
    batches: dict[int, list[Evaluation]] = {}
    for ask in run.asks:
        fresh = [run.by_id[i] for i in ask.evaluations if i not in seen]
        seen.update(ask.evaluations)
        batches.setdefault(ask.batch, []).extend(fresh)
    each = list(batches.items())
    size = 1 + (len(each) - 1) // MOST_BARS
    grouped = []
    for i in range(0, len(each), size):
        evaluations = [e for _, members in each[i:i + size] for e in members]
        grouped.append((each[i][0], len(evaluations), sum(e.seconds for e in evaluations)))
    return grouped


def _bars(batches: list[tuple[int, int, float]], width: float) -> Picture:
    picture = Picture(width, 230, "training time by batch")
    frame = Frame(52, 30, width - 14, 184)
    most = max(seconds for *_, seconds in batches) or 1.0
    factor, unit = (3600.0, "hours") if most > 10800 else (
        (60.0, "minutes") if most > 180 else (1.0, "seconds"))
    y = Axis(0.0, 1.08 * most / factor)
    x = Axis(batches[0][0] - 0.5, batches[-1][0] + 0.5 + (batches[1][0] - batches[0][0] - 1),
             whole=True)
    picture.left_axis(frame, y, f"training time ({unit})", most=4)
    picture.bottom_axis(frame, x, "batch")
    bar = (frame.right - frame.left) / len(batches)
    for i, (batch, trainings, seconds) in enumerate(batches):
        top = y(seconds / factor)
        picture.rectangle(frame.left + bar * i + bar * 0.12, top, bar * 0.76, frame.bottom - top,
                          "fill-point", tip(f"batch {batch}", counted(trainings, "training"),
                                            duration(seconds)))
    return picture


def _slowest(run: Run) -> Html | None:
    known = [(candidate.seconds / len(candidate.evaluations), candidate)
             for candidate in run.with_baseline(run.ranking) if candidate.seconds > 0]
    if len(known) < 2:
        return None
    known.sort(key=lambda pair: -pair[0])
    middle = median(seconds for seconds, _ in known)
    rows = [
        [Cell(mechanism(candidate.label, candidate.brief), left=True), Cell(duration(seconds)),
         Cell(f"{number(seconds / middle)} \u00d7")]
        for seconds, candidate in known[:SLOWEST]
    ]
    return join(element("h3", "The slowest"),
                table(["mechanism", "a training", "of the median"], rows,
                      marked=[c.rank if c.rank >= 0 else None for _, c in known[:SLOWEST]]))
