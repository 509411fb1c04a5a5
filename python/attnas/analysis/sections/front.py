"""The front: a staircase of two objectives, pairs of more, a ranking of one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from attnas.analysis.html import Html, join, mechanism
from attnas.analysis.page import Cell, Section, note, table
from attnas.analysis.run import Candidate, Run
from attnas.analysis.svg import Figure, Frame, Picture, thinned, tip, value_axis
from attnas.analysis.words import count, counted, duration, number, percent, shortened

MOST_NUMBERED = 15
MOST_LISTED = 20
MOST_RANKED = 20


def section(run: Run) -> Section | None:
    """Pictures and the table of the front."""
    if not run.ranking:
        return None
    drawn = join(*(each.html() for each in _figures(run).values()))
    if not run.several:
        return Section("ranking", "Ranking", drawn)
    return Section("front", "Pareto front", join(drawn, note(_reading(run)), _table(run)))


def pictures(run: Run) -> dict[str, Figure]:
    """The pictures alone, by the names of their files."""
    if not run.ranking or not run.several:
        return _figures(run) if run.ranking else {}
    words = _reading(run)
    if _numbered(run):
        key = "; ".join(f"{i + 1}\u00a0{one.brief}" + (" (knee)" if one.name == run.knee else "")
                        for i, one in enumerate(run.front))
        words = words.replace(" as in the table", "") + f" {key}."
    return {name: replace(each, caption=words) for name, each in _figures(run).items()}


def _figures(run: Run) -> dict[str, Figure]:
    if not run.several:
        return {"ranking": Figure(
            lambda width: _ranking(run, width),
            f"The best {min(MOST_RANKED, len(run.ranking))} of {len(run.ranking)} mechanisms. "
            "Small dots: single trainings." + (" Dashed: the baseline." if run.baseline else ""))}
    pairs = list(combinations(range(len(run.objectives)), 2))
    names = (["front"] if len(pairs) == 1 else [f"front_{i + 1}_{j + 1}" for i, j in pairs])
    return {name: Figure(lambda width, p=pair: _scatter(run, *p, width))
            for name, pair in zip(names, pairs)}


def _reading(run: Run) -> str:
    """How to read them."""
    return ("Green: not dominated" + (", numbered as in the table" if _numbered(run) else "")
            + ". Pale: everything else that was evaluated; arrows lie beyond an axis. "
            + ("Red: the baseline. " if run.baseline else "")
            + ("The steps bound what the front attains." if len(run.objectives) == 2 else
               "With more than two objectives a mechanism can be on the front without looking so "
               "in any one pair."))


def describe(run: Run, candidate: Candidate) -> str:
    """The tip of a mechanism: values, costs, n."""
    lines = [f"{o.title} {number(v)}" for o, v in zip(run.objectives, candidate.values)]
    usable = next((e for e in candidate.evaluations if e.usable), None)
    shown = {objective.name for objective in run.objectives}
    if usable is not None:
        lines += [f"{name} {count(usable.values[name])}" for name in ("parameters", "flops")
                  if name in usable.values and name not in shown]
    if run.trained:
        lines.append(f"n = {candidate.n_text}, {duration(candidate.seconds)} of training")
    if candidate.stop_text:
        lines.append(candidate.stop_text)
    if candidate.first_ask >= 0:
        times = counted(candidate.times_asked, "time")
        lines.append(f"ask {candidate.first_ask + 1}, asked {times}")
    return tip(candidate.label, *lines)


def _numbered(run: Run) -> bool:
    return len(run.front) <= MOST_NUMBERED


def _scatter(run: Run, across: int, up: int, width: float) -> Picture:
    narrow = width < 600
    height = 380.0 if narrow else (470.0 if len(run.objectives) == 2 else 380.0)
    horizontal, vertical = run.objectives[across], run.objectives[up]
    picture = Picture(width, height, f"{vertical.name} against {horizontal.name}")
    frame = Frame(52, 30, width - 14, height - 46)
    shown = run.front + ([run.baseline] if run.baseline else [])
    x = value_axis([c.values[across] for c in run.ranking], horizontal.maximise,
                   [c.values[across] for c in shown])
    y = value_axis([c.values[up] for c in run.ranking if x.holds(c.values[across])],
                   vertical.maximise, [c.values[up] for c in shown])
    picture.left_axis(frame, y, vertical.title)
    picture.bottom_axis(frame, x, horizontal.title, grid=True)
    for candidate in thinned([c for c in run.ranking if not c.on_front]):
        h, v = candidate.values[across], candidate.values[up]
        words = describe(run, candidate)
        if x.holds(h) and y.holds(v):
            picture.dot(x(h), y(v), 4, "pale", words, candidate.rank)
        elif x.holds(h):
            picture.sign(x(h), y(v), "\u2191" if v > y.high else "\u2193", "edge-text", words,
                         candidate.rank)
        else:
            picture.sign(x(h), y(v), "\u2192" if h > x.high else "\u2190", "edge-text", words,
                         candidate.rank)
    if len(run.objectives) == 2:
        bad_x = x(x.low if horizontal.maximise else x.high)
        bad_y = y(y.low if vertical.maximise else y.high)
        corners = [(x(c.values[across]), y(c.values[up])) for c in run.front]
        picture.steps([(corners[0][0], bad_y), *corners, (bad_x, corners[-1][1])], "line")
    for i, candidate in enumerate(thinned(run.front)):
        place = x(candidate.values[across]), y(candidate.values[up])
        radius, style = (9, "front") if _numbered(run) else (3, "fill-best")
        picture.dot(*place, radius, style, describe(run, candidate), candidate.rank)
        if _numbered(run):
            picture.text(place[0], place[1] + 4, i + 1, "on-best", "middle")
    if run.baseline:
        place = x(run.baseline.values[across]), y(run.baseline.values[up])
        picture.cross(*place, "baseline: " + describe(run, run.baseline),
                      run.baseline.rank if run.baseline.rank >= 0 else None)
        above = place[1] > frame.top + 30
        picture.text(min(place[0], width - 34), place[1] + (-13 if above else 23), "baseline",
                     "baseline-text label", "middle")
    return picture


def _table(run: Run) -> Html:
    header = ["", "mechanism", *(o.title for o in run.objectives)]
    baseline = run.baseline
    if baseline:
        header.append(f"{run.objectives[0].name} to baseline")
    if run.trained:
        header.append("n")
    rows = []
    shown = run.front[:MOST_LISTED]
    for i, candidate in enumerate([*shown, *([baseline] if baseline else [])]):
        is_baseline = i == len(shown)
        place = f"{i + 1}, knee" if candidate.name == run.knee else i + 1
        row = [Cell("baseline" if is_baseline else place, left=True),
               Cell(mechanism(candidate.label, candidate.brief), left=True)]
        row += [Cell(number(value)) for value in candidate.values]
        if baseline:
            # What was stopped early has a value of another step.
            compared = not is_baseline and candidate.stopped_at is None
            row.append(Cell(change(candidate.values[0], baseline.values[0]) if compared else ""))
        if run.trained:
            row.append(Cell(candidate.n_text))
        rows.append(row)
    more = len(run.front) - len(shown)
    return join(
        table(header, rows, marked=[c.rank for c in shown] + [baseline.rank if baseline else None]),
        note(f"{more} further members of the front are in the table of all mechanisms.")
        if more > 0 else None)


def change(value: float, before: float) -> str:
    """A relative change: +2.1 %."""
    if before == 0:
        return ""
    share = (value - before) / abs(before)
    return ("+" if share > 0 else "") + percent(share, 1)


def _ranking(run: Run, width: float) -> Picture:
    narrow = width < 600
    objective = run.objectives[0]
    shown = run.ranking[:MOST_RANKED]
    listed = list(shown)
    if run.baseline and run.baseline.name not in {c.name for c in listed}:
        listed.append(run.baseline)
    row = 36.0 if narrow else 25.0
    left = 30.0 if narrow else 420.0
    frame = Frame(left, 12, width - 62, 12 + row * len(listed))
    picture = Picture(width, frame.bottom + 48, f"the best mechanisms by {objective.name}")
    values = [v for c in listed for v in run.replicates(c, 0).values()]
    x = value_axis(values, objective.maximise, [c.values[0] for c in listed])
    picture.bottom_axis(frame, x, objective.title, grid=True)
    if run.baseline and not narrow:
        picture.line(x(run.baseline.values[0]), frame.top, x(run.baseline.values[0]), frame.bottom,
                     "dashed")
    for i, candidate in enumerate(listed):
        y = frame.top + row * (i + 0.5) + (6 if narrow else 0)
        if run.baseline and narrow:  # between the names, which stand above their values
            picture.line(x(run.baseline.values[0]), y - 5, x(run.baseline.values[0]), y + 15,
                         "dashed")
        is_baseline = run.baseline is not None and candidate.name == run.baseline.name
        place = "" if i >= len(shown) else str(i + 1)
        name = shortened(candidate.brief, 44 if narrow else 52)
        if candidate.stop_text:
            name = shortened(candidate.brief, 24 if narrow else 32) + f" ({candidate.stop_text})"
        colour = " baseline-text" if is_baseline else ""
        picture.text(24, y + 4, place, "tick", "end")
        picture.text(left if narrow else 32, y - 9 if narrow else y + 4, name,
                     "code small label" + colour)
        for value in run.replicates(candidate, 0).values():
            if candidate.n > 1 and x.holds(value):
                picture.dot(x(value), y, 2.5, "pale", describe(run, candidate), candidate.rank)
        if is_baseline:
            picture.cross(x(candidate.values[0]), y, describe(run, candidate), candidate.rank)
        else:
            picture.dot(x(candidate.values[0]), y, 5.5, "front" if i == 0 else "point",
                        describe(run, candidate), candidate.rank)
        picture.text(width - 2, y + 4, number(candidate.values[0]), "small" + colour, "end")
    return picture
