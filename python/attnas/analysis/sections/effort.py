"""Where the time went."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from statistics import median

from attnas.analysis.html import Html, element, join
from attnas.analysis.page import Cell, Section, paragraph, table
from attnas.analysis.run import Evaluation, Run, finite_or
from attnas.analysis.words import counted, duration, percent

MOST_WORKERS = 12


def section(run: Run) -> Section | None:
    """Training and waiting, and who waited."""
    trained = [evaluation for evaluation in run.evaluations if evaluation.seconds > 0]
    if not trained or not (run.asks or run.listed):
        return None
    return Section("time", "Time spent", join(_totals(run, trained), _by_worker(run)))


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


@dataclass
class _Worker:
    """What measured one array after the other; or several such on one machine, together."""

    name: str
    trainings: int
    busy: float  # seconds
    there: float  # seconds from its first training to the end of its last one


def _workers(run: Run) -> list[_Worker]:
    """By what evaluations say of who made them when. A stay of a paused training is recorded over
    the one before, so that nothing is known with rungs."""
    by_process: dict[tuple[str, int], dict[int, list[Evaluation]]] = {}
    for one in run.evaluations:
        own = one.measured
        if "worker_seconds" in own and "reused_from" not in own and not run.digest.get("rungs"):
            process = by_process.setdefault((own.get("host", ""), own.get("pid", 0)), {})
            process.setdefault(own["worker"], []).append(one)
    hosts = [host for host, _ in by_process]
    workers = []
    for (host, pid), members in sorted(by_process.items()):
        process = f"{host}:{pid}" if hosts.count(host) > 1 else host
        for worker, made in sorted(members.items()):
            name = f"{process}, worker {worker + 1}" if len(members) > 1 else process
            starts = [datetime.datetime.fromisoformat(e.measured["started"].rstrip("Z")).timestamp()
                      for e in made]
            ends = [start + e.measured["worker_seconds"] * e.measured.get("array", 1)
                    for start, e in zip(starts, made)]
            busy = sum(e.measured["worker_seconds"] for e in made)
            # Times of day are whole seconds.
            workers.append(_Worker(name, len(made), busy, max(busy, max(ends) - min(starts))))
    if len(workers) <= MOST_WORKERS:
        return workers
    machines: dict[str, _Worker] = {}
    for worker in workers:
        host = worker.name.split(",")[0].rsplit(":", 1)[0]
        machine = machines.setdefault(host, _Worker(host, 0, 0.0, 0.0))
        machine.trainings += worker.trainings
        machine.busy += worker.busy
        machine.there += worker.there
    return list(machines.values())


def _by_worker(run: Run) -> Html | None:
    workers = _workers(run)
    if len(workers) < 2:
        return None
    workers.sort(key=lambda worker: worker.busy - worker.there)
    all_ = _Worker(f"all {len(workers)}", sum(w.trainings for w in workers),
                   sum(w.busy for w in workers), sum(w.there for w in workers))
    rows = [[Cell(w.name, left=True), Cell(percent(w.busy / w.there)),
             Cell(duration(w.there - w.busy)), Cell(duration(w.there)), Cell(f"{w.trainings:,}")]
            for w in [*workers[:MOST_WORKERS], all_] if w.there > 0]
    return join(element("h3", "By worker"),
                table(["worker", "at work", "lost", "there", "trainings"], rows),
                paragraph("There: from the start of its first training to the end of its last one. "
                          "Lost: waiting for the slowest of a batch and for the algorithm, and "
                          "trainings that were not finished."
                          + (f" The {MOST_WORKERS} that lost most."
                             if len(workers) > MOST_WORKERS else "")))
