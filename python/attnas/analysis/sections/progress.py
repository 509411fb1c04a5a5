"""How the search came on, by training runs and by time."""

from __future__ import annotations

import numpy as np

from attnas.analysis.belief import hypervolumes, incumbents
from attnas.analysis.html import Html, join
from attnas.analysis.indicators import hypervolume
from attnas.analysis.page import Section, note, paragraph
from attnas.analysis.run import Ask, Run
from attnas.analysis.svg import Axis, Figure, Frame, Picture, thinned, tip, value_axis
from attnas.analysis.words import counted, duration, number


def section(run: Run) -> Section | None:
    """The best value, the hypervolume with several objectives, every evaluation as a dot."""
    if not run.ranking:
        return None
    best = _best(run)
    return Section("progress", "Search progress", join(
        *(each.html() for each in _pictures(run, best).values()), _unseen(run), _ended(run, best)))


def pictures(run: Run) -> dict[str, Figure]:
    """The pictures, by the names of their files."""
    return _pictures(run, _best(run)) if run.ranking else {}


def _pictures(run: Run, best: list[tuple[Ask, float]]) -> dict[str, Figure]:
    found = {}
    trace = _hypervolumes(run) if run.several else []
    if trace:
        found["hypervolume"] = Figure(
            lambda width: _hypervolume(run, trace, width),
            "Hypervolume of what the search believed of everything evaluated so far, over the "
            f"recorded ranges of the objectives; reference point {run.reference_point}.")
    kind = "trainings" if run.trained else "evaluations"
    beliefs = [value for _, value in best]
    risen = any(after > before for before, after in zip(beliefs, beliefs[1:]))
    found["progress"] = Figure(
        lambda width: _values(run, best, width),
        f"Every answer to the algorithm, by {kind} spent. Green: the best so far"
        + (", as the search believed by then, where further trainings of a candidate replace its "
           "value" if risen else "")
        + ". Hollow: answered by an earlier evaluation. \u00d7: failed or rejected by constraints; "
        "arrows: beyond the axis.")
    return found


def _best(run: Run) -> list[tuple[Ask, float]]:
    """After every ask the best value that the search believes of a candidate by then, minimised,
    from the first one on; of what was stopped early only where nothing else was trained."""
    values = [ask.believed[0] if ask.believed else np.inf for ask in run.asks]
    if not np.isfinite(values).any():
        values = [ask.fitness[0] if ask.usable else np.inf for ask in run.asks]
    numbers: dict[str, int] = {}
    asked = np.array([numbers.setdefault(ask.candidate, len(numbers)) for ask in run.asks])
    leaders = incumbents(asked, np.array(values))
    return [(ask, values[leader]) for ask, leader in zip(run.asks, leaders.tolist()) if leader >= 0]


def _unseen(run: Run) -> Html | None:
    """The objectives of whose values the hypervolume sees none."""
    points = [run.scaled(candidate.fitness) for candidate in run.comparable] if run.several else []
    beyond = [own for i, own in enumerate(run.objectives)
              if points and min(point[i] for point in points) > 1]
    return join(*(paragraph(
        f"Every value of {own.name} is worse than its range, {number(own.best)} to "
        f"{number(own.worst)}, so that the hypervolume stays near 0 whatever is found: give the "
        "objective a wider one.") for own in beyond))


def _ended(run: Run, found: list[tuple[Ask, float]]) -> object:
    first = run.objectives[0]
    value = found[-1][1]
    # From the first ask after which it stayed what it is at the end.
    since = max((i + 1 for i, (_, each) in enumerate(found) if each != value), default=0)
    best = found[since][0]
    kind = "training" if run.trained else "evaluation"
    words = (f"The best {first.name}, {number(first.natural(value))}, came at "
             f"{kind} {best.trained:,} of {run.num_searched:,}.")
    if run.ended_by:
        words += f" Ended by: {run.ended_by}."
    return note(words)


def _trainings_axis(run: Run) -> Axis:
    return Axis(0.0, run.asks[-1].trained * 1.02 + 0.5, whole=True)


def _batch_bands(picture: Picture, frame: Frame, run: Run, x: Axis) -> None:
    most = 40  # narrower bands are noise
    ends: dict[int, int] = {}
    for ask in run.asks:
        ends[ask.batch] = ask.trained
        if len(ends) > most:
            return
    if len(ends) == 1:
        return
    begin = 0
    for i, end in enumerate(ends.values()):
        if i % 2:
            picture.rectangle(x(begin + 0.5), frame.top, x(end + 0.5) - x(begin + 0.5),
                              frame.bottom - frame.top, "band")
        begin = end


def _hypervolumes(run: Run) -> list[tuple[Ask, float]]:
    """After every ask; as recorded, after every batch, where that would take long."""
    usable = [ask for ask in run.asks if ask.status == "ok"]
    if not usable:
        return []
    if len(run.objectives) > 2 and len(usable) > 300 and run.indicators:
        return [(run.asks[each.asked - 1], each.value) for each in run.indicators
                if 0 < each.asked <= len(run.asks)]
    reference = [run.reference_point] * len(run.objectives)
    names = [ask.candidate for ask in usable]
    believed = np.array([ask.believed for ask in usable], dtype=float)
    values = hypervolumes(names, np.stack(run.scaled(believed.T), axis=1), reference)
    return list(zip(usable, map(float, values)))


def _hypervolume(run: Run, trace: list[tuple[Ask, float]], width: float) -> Picture:
    picture = Picture(width, 300, "hypervolume by trainings")
    frame = Frame(52, 30, width - 14, 254)
    values = [value for _, value in trace]
    alone = 0.0
    if run.baseline:
        alone = hypervolume([run.scaled(run.baseline.fitness)],
                            [run.reference_point] * len(run.objectives))
    y = value_axis(values, True, [*values, *([alone] if alone > 0 else [])])
    # no hypervolume is less; where nothing lies within the ranges all are 0
    y.low = max(y.low, 0.0)
    x = _trainings_axis(run)
    x.start, x.end = frame.left, frame.right
    _batch_bands(picture, frame, run, x)
    picture.left_axis(frame, y, "hypervolume")
    picture.bottom_axis(frame, x, "trainings" if run.trained else "evaluations")
    if alone > 0:
        picture.line(frame.left, y(alone), frame.right, y(alone), "dashed")
        picture.text(frame.right - 4, y(alone) - 6, "the baseline alone", "baseline-text label",
                     "end")
    steps = [(x(ask.trained), y(v)) for ask, v in thinned(trace)]
    picture.steps([*steps, (x(run.asks[-1].trained), y(values[-1]))], "line")
    grown = [each for before, each in zip([0.0, *values], trace) if each[1] > before]
    for ask, value in thinned(grown, 300):
        picture.dot(x(ask.trained), y(value), 3.5, "front",
                    tip(run.label(ask.candidate), f"hypervolume {number(value)}",
                        f"after {counted(ask.trained, 'training')}"))
    picture.text(frame.right - 4, y(values[-1]) + 18, number(values[-1]),
                 "best-text label head", "end")
    return picture


def _values(run: Run, best: list[tuple[Ask, float]], width: float) -> Picture:
    objective = run.objectives[0]
    picture = Picture(width, 330, f"{objective.name} of every evaluation")
    frame = Frame(52, 30, width - 14, 284)
    ranks = {candidate.name: candidate.rank for candidate in run.ranking}
    usable = [ask for ask in run.asks if ask.usable]
    natural = [objective.natural(ask.fitness[0]) for ask in usable]
    y = value_axis(natural, objective.maximise, [run.baseline.values[0]] if run.baseline else [])
    x = _trainings_axis(run)
    x.start, x.end = frame.left, frame.right
    _batch_bands(picture, frame, run, x)
    picture.left_axis(frame, y, objective.title)
    picture.bottom_axis(frame, x, "trainings" if run.trained else "evaluations")

    if run.baseline:
        level = y(run.baseline.values[0])
        picture.line(frame.left, level, frame.right, level, "dashed")
    for ask in thinned(run.asks):
        name = ask.candidate
        lines = [f"ask {ask.number + 1}, batch {ask.batch}",
                 f"after {counted(ask.trained, 'training')}" if run.trained else "",
                 duration(ask.seconds) + " of training" if ask.seconds else ""]
        rank = ranks.get(name)
        if not ask.usable:
            words = ("rejected by constraints" if ask.status == "rejected"
                     else "failed: " + ask.status.replace("_", " "))
            picture.sign(x(ask.trained), frame.top + 4, "\u00d7", "baseline-text",
                         tip(run.label(name), words, *lines), rank)
            continue
        value = objective.natural(ask.fitness[0])
        stopped = "stopped early" if ask.status == "stopped_early" else ""
        words = tip(run.label(name), f"{objective.name} {number(value)}", stopped, *lines)
        if y.holds(value):
            picture.dot(x(ask.trained), y(value), 4, "hollow" if ask.reused else "point",
                        words, rank)
        else:
            picture.sign(x(ask.trained), y(value), "\u2191" if value > y.high else "\u2193",
                         "edge-text", words, rank)
    steps = [(x(ask.trained), y(objective.natural(value)))
             for ask, value in [*thinned(best), (run.asks[-1], best[-1][1])]]
    picture.steps(steps, "line")
    if run.baseline:
        picture.text(frame.right - 4, y(run.baseline.values[0]) - 6,
                     f"baseline {number(run.baseline.values[0])}", "baseline-text label", "end")
    return picture
