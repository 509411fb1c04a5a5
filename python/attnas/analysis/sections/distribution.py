"""Everything that was evaluated, the worst included."""

from __future__ import annotations

from statistics import median

from attnas.analysis.html import Html, element, join, mechanism
from attnas.analysis.page import Cell, Section, note, paragraph, table
from attnas.analysis.run import Run
from attnas.analysis.sections.front import change, describe
from attnas.analysis.svg import Frame, Picture, figure, thinned, value_axis
from attnas.analysis.words import counted, duration, number, percent

MOST_ROWS = 1000


def section(run: Run) -> Section | None:
    """The distribution, how much of it is worse than the baseline, and all mechanisms."""
    if not run.ranking:
        return None
    objective = run.noisy or 0
    return Section("distribution", "All mechanisms", join(
        paragraph(_words(run, objective)),
        figure(lambda width: _picture(run, objective, width),
               "A dot a mechanism, stacked where they are close; arrow: beyond the axis.")
        if run.comparable else None,
        _all(run),
    ))


def _words(run: Run, objective: int) -> str:
    described = run.objectives[objective]
    values = [candidate.values[objective] for candidate in run.comparable]
    stopped = len(run.ranking) - len(values)
    words = counted(len(run.ranking), "mechanism")
    if stopped:
        words += f", {stopped} of them stopped early and in the table alone"
    if not values:
        return words + "."
    words += f": the median {described.name} is {number(median(values))}"
    if run.baseline is None:
        return words + "."
    before = run.baseline.values[objective]
    others = [c.values[objective] for c in run.comparable if c.name != run.baseline.name]
    worse = sum(described.is_better(before, value) for value in others)
    if not others:
        return words + "."
    return (f"{words}; {worse} of {len(others)} ({percent(worse / len(others))}) scored worse than "
            f"the baseline's {number(before)}.")


def _picture(run: Run, objective: int, width: float) -> Picture:
    described = run.objectives[objective]
    shown = thinned(run.comparable, 800)
    x = value_axis([candidate.values[objective] for candidate in run.comparable],
                   described.maximise, [run.baseline.values[objective]] if run.baseline else [])
    x.start, x.end = 14.0, width - 14
    size = 9.0
    bins: dict[int, list] = {}
    for candidate in sorted(shown, key=lambda c: c.fitness[objective]):
        bins.setdefault(int(x(candidate.values[objective]) / size), []).append(candidate)
    tallest = max(len(stack) for stack in bins.values())
    frame = Frame(x.start, 20, x.end, 44 + min(150.0, max(30.0, size * tallest)))
    step = min(size, (frame.bottom - frame.top - 14) / tallest)
    picture = Picture(width, frame.bottom + 48, f"distribution of {described.name}")
    picture.bottom_axis(frame, x, described.title)
    if run.baseline:
        place = x(run.baseline.values[objective])
        picture.line(place, frame.top, place, frame.bottom, "dashed")
        left = place < width - 90
        picture.text(place + (6 if left else -6), frame.top + 4, "baseline",
                     "baseline-text label", "start" if left else "end")
    for place, stack in bins.items():
        for i, candidate in enumerate(stack):
            value = candidate.values[objective]
            y = frame.bottom - 6 - step * i
            words = describe(run, candidate)
            if x.holds(value):
                style = "front" if candidate.on_front else "point"
                picture.dot((place + 0.5) * size, y, 4, style, words, candidate.rank)
            else:
                picture.sign(x(value) + (-4 if value > x.high else 4), y - 1,
                             "\u2192" if value > x.high else "\u2190", "edge-text", words,
                             candidate.rank)
    return picture


def _all(run: Run) -> Html:
    shown = run.ranking[:MOST_ROWS]
    header = ["#", "mechanism", *(o.title for o in run.objectives)]
    if run.baseline:
        header.append("to baseline")
    header += ["n", "first ask"] if run.trained else ["first ask"]
    if run.trained:
        header.append("trained")
    if run.several:
        header.append("front")
    rows = []
    for candidate in shown:
        row = [Cell(candidate.rank + 1, candidate.rank),
               Cell(mechanism(candidate.label, candidate.brief), candidate.label, left=True)]
        row += [Cell(number(value), value) for value in candidate.values]
        if run.baseline:
            row.append(Cell(candidate.stop_text or change(candidate.values[0],
                                                          run.baseline.values[0]),
                            candidate.values[0]))
        if run.trained:
            row.append(Cell(candidate.n_text, candidate.n))
        row.append(Cell(candidate.first_ask + 1, candidate.first_ask))
        if run.trained:
            row.append(Cell(duration(candidate.seconds), candidate.seconds))
        if run.several:
            row.append(Cell("\u25cf" if candidate.on_front else "", int(candidate.on_front)))
        rows.append(row)
    filter_ = element("input", type="search", placeholder="filter: sparsemax highway",
                      aria_label="filter the mechanisms", data_filters="all",
                      data_counts="shown", class_="screen")
    cut = (note(f"The first {MOST_ROWS} of {len(run.ranking):,}; evaluations.csv has all.")
           if len(run.ranking) > MOST_ROWS else None)
    printed = element("p", "On paper the first 30 rows.", class_="note paper")
    return join(
        element("h3", "Table"), filter_, " ",
        element("span", f"{len(shown)} of {len(shown)}", id="shown", class_="note screen"),
        table(header, rows, sortable=True, marked=[c.rank for c in shown], id="all"), cut,
        printed if len(shown) > 30 else None,
    )
