"""How far a run is, how long it still takes, and how its best value came on."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Sequence

from .stored import StoredRun

_RECENT = 20  # training runs whose pace counts


def seconds_since(text: str) -> float:
    """Since a time as runs record it, "2026-01-31T12:00:00Z"."""
    try:
        return max(0.0, time.time() - calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0


def listed_mechanisms(run: StoredRun) -> list[str]:
    """Mechanisms that are trained in place of a search, in their order."""
    return [name for name in run.config.get("mechanisms", ()) if isinstance(name, str)]


def retest_of(run: StoredRun) -> dict:
    """The configuration's section."""
    retest = run.config.get("retest")
    return retest if isinstance(retest, dict) else {}


def progress(run: StoredRun, finished: bool) -> dict:
    """Asks that are answered, of how many, or training runs where these are what is known
    beforehand.

    @param finished  what was done is then all. """
    if run.listed:
        return _of_listed(run, finished)
    # Asks that need no training of their own are free where the budget counts training runs: there
    # may be more than were planned.
    if run.planned_asks is not None and run.planned_asks >= run.num_asked:
        return {"done": run.num_asked, "of": run.planned_asks, "unit": "ask"}
    most = run.config.get("budget", {}).get("evaluations", 0)
    if most > 0:
        return {"done": min(run.num_searched, most), "of": most, "unit": "training run"}
    return {"done": run.num_asked, "of": None, "unit": "ask"}


def _of_listed(run: StoredRun, finished: bool) -> dict:
    retest, done = retest_of(run), run.digest["outside_the_search"]["evaluated"]
    most = run.digest.get("planned_trainings")
    if finished:
        most = done
    elif most is None:
        most = (len(run.config["mechanisms"]) + 1) * retest.get("replicates", 0)
    if most == 0:
        return {"done": done, "of": None, "unit": "training run"}
    return {"done": min(done, most), "of": most, "unit": "training run",
            "at_most": not finished and "until" in retest}


def num_asking(run: StoredRun) -> int:
    """Asks of the present batch that nothing answers yet."""
    asking = run.digest.get("asking")
    if not isinstance(asking, dict) or not run.at_work or run.at_work.get("stage") != "search":
        return 0
    known = run.by_id.keys() | run.paused.keys()
    return sum(not known.issuperset(ask["evaluations"]) for ask in asking["asks"])


def _seconds_left(run: StoredRun) -> float | None:
    """Seconds of training that the budget allows beyond the evaluations that are told; None where
    it has no such limit."""
    budget = run.config.get("budget", {})
    limits = [budget[key] for key in ("train_seconds", "gpu_seconds") if budget.get(key, 0) > 0]
    return max(0.0, min(limits) - run.train_seconds) if limits else None


def _time_left(
    trainings: float, workers: int, seconds: Sequence[float]) -> tuple[float, float] | None:
    """What so many training runs would take, at the quicker and the slower pace of the last
    ones."""
    if not seconds:
        return None
    recent = sorted(seconds[-_RECENT:])
    return tuple(trainings * _quantile(recent, share) / workers for share in (0.25, 0.75))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def left(run: StoredRun, own: dict) -> list[float] | None:
    """Seconds, from quick to slow training runs, that the search takes, or the stage that follows
    it.

    @param own  progress() of the run. """
    work = run.at_work
    if not work:
        return None
    workers, searching = max(1, work.get("workers", 1)), work.get("stage") == "search"
    done = sorted((one for one in run.latest() if one.seconds > 0),
                  key=lambda one: one.measured.get("started") or "")
    seconds = [one.seconds for one in done]
    begun, running, elapsed = _at_work(work["arrays"], seconds)
    trainings, known = work.get("waiting", 0), not searching or own["of"] is not None
    if run.listed and own["of"] is not None:  # beyond the seeds that are trained now
        trainings = max(trainings, own["of"] - own["done"] - begun)
    trainings += running
    if searching and known:
        trainings += _still_to_come(run, own, trainings)
    found = _time_left(trainings, workers, seconds) if known else None
    budget = _seconds_left(run)
    if searching and budget is not None and (found or not known):
        most = max(0.0, budget - elapsed) / workers
        by_budget = [
            max(most, least) for least in _time_left(running, workers, seconds) or (0.0, 0.0)]
        found = list(map(min, by_budget, found)) if found else by_budget
    if not found:
        return None
    return [found[1] if own.get("at_most") else found[0], found[1]]


def _at_work(arrays: Iterable[dict], seconds: list[float]) -> tuple[int, float, float]:
    """How many training runs have begun, how much of them is still to be done, and for how long
    they have been at it; the pace of each comes to `seconds`."""
    begun, running, elapsed = 0, 0.0, 0.0
    for array in arrays:
        size = len(array["trainings"])
        if size == 0:
            continue
        share = min(1.0, max(0.0, array["step"] / array["steps"])) if array["steps"] > 0 else 0.0
        since = seconds_since(array["started"])
        begun, running, elapsed = begun + size, running + size * (1 - share), elapsed + since
        if share > 0:
            seconds.append(since / share / size)
    return begun, running, elapsed


def _still_to_come(run: StoredRun, own: dict, booked: float) -> float:
    """Training runs of a search beyond those that are booked: of asks still to come, as many are
    trained as of those so far."""
    share = 1.0
    if own["unit"] == "ask":
        booked = num_asking(run)
        if run.asked:
            share = run.num_searched / max(1, run.num_asked)
    return max(0.0, own["of"] - own["done"] - booked) * share
