"""Learning curves."""

from __future__ import annotations

from collections.abc import Sequence

from attnas.analysis.curves import Curve, Measure, curves, measure
from attnas.analysis.figures import NUM_COLOURS, apart
from attnas.analysis.html import prose
from attnas.analysis.page import Section, paragraph
from attnas.analysis.run import Run
from attnas.analysis.svg import MOST_DOTS, Axis, Figure, Frame, Picture, thinned, tip
from attnas.analysis.words import number, shortened

KEY_ROW = 19.0


def section(run: Run) -> Section | None:
    """A line for each mechanism."""
    known = curves(run)
    if not known:
        return None
    if not _has_course(known):
        steps = max(max(curve.points) for curve in known)
        earlier = sorted({steps // 3, 2 * steps // 3} - {0})
        return Section("curves", "Learning curves", paragraph(prose(
            "Every training was validated at its end alone. "
            + (f"`training.checkpoints: {earlier}` validates at these steps, too, and shows here "
               "how mechanisms learned." if earlier else ""))))
    return Section("curves", "Learning curves", _figure(run, known).html())


def pictures(run: Run) -> dict[str, Figure]:
    """The pictures, by the names of their files."""
    known = curves(run)
    return {"curves": _figure(run, known)} if _has_course(known) else {}


def _has_course(known: list[Curve]) -> bool:
    return max((len(curve.points) for curve in known), default=0) > 1


def _figure(run: Run, known: list[Curve]) -> Figure:
    quantity, shown = measure(run), _highlighted(run, known)
    others = [curve for curve in known if curve not in shown]
    drawn = thinned(others, MOST_DOTS // max(len(curve.points) for curve in known) or 1)
    words = (f"Validation {quantity.name} of "
             + ("the first mechanisms" if run.listed else
                "the front's first mechanisms" if run.several else "the best mechanisms")
             + " in colour"
             + (", of the baseline dashed" if any(curve.is_baseline for curve in shown) else "")
             + (f", of {_which(len(drawn), len(others))} pale" if others else "")
             + f"; {_seeds(known)}.")
    return Figure(lambda width: _curves(quantity, shown, drawn, width), words)


def _highlighted(run: Run, known: list[Curve]) -> list[Curve]:
    """The baseline, and as many of the first as there are colours."""
    front = {candidate.rank for candidate in run.front} if run.several else None
    first = [curve for curve in known if not curve.is_baseline
             and (run.listed or front is None or curve.rank in front)]
    return [*first[:NUM_COLOURS], *(curve for curve in known if curve.is_baseline)]


def _which(drawn: int, others: int) -> str:
    return (f"all {others} others" if drawn == others else
            f"{drawn} of the {others} others, evenly by rank,")


def _seeds(known: list[Curve]) -> str:
    most = max(curve.replicates for curve in known)
    if most == 1:
        return "one seed each"
    least = min(curve.replicates for curve in known)
    return f"each the mean of its {most if most == least else f'{least} to {most}'} seeds"


def _style(shown: list[Curve], curve: Curve) -> str:
    if curve.is_baseline:
        return "dashed"
    return f"c{shown.index(curve)}" if curve in shown else "other"


def _sign(shown: list[Curve], curve: Curve) -> str:
    """What a line is called within the picture."""
    return "B" if curve.is_baseline else str(shown.index(curve) + 1)


def _words(style: str) -> str:
    """The class of words about a line."""
    return "baseline-text" if style == "dashed" else f"fill {style}"


def _line(picture: Picture, points: Sequence[tuple[float, float]], style: str, curve: Curve,
          tips: Sequence[str]) -> None:
    """A curve with a mark at each of its points."""
    rank = curve.rank if curve.rank >= 0 else None
    pale = style == "other"
    picture.path(points, f"stroke {style}", data_m=rank, style="stroke-width: 1" if pale else None)
    dot = "ring" if style == "dashed" else f"fill {style}"
    for (x, y), words in zip(points, tips):
        picture.dot(x, y, 1.8 if pale else 3.4, dot, words, rank)


def _ends(picture: Picture, frame: Frame, shown: list[Curve],
          named: Sequence[tuple[Curve, float]]) -> None:
    """What lines are called, beside their ends."""
    places = apart([end for _, end in named], 13, frame.top, frame.bottom)
    for (curve, end), place in zip(named, places):
        style = _style(shown, curve)
        picture.line(frame.right + 4, end, frame.right + 9, place, f"stroke {style}",
                     style="stroke-width: 1")
        picture.text(frame.right + 12, place + 4, _sign(shown, curve), f"{_words(style)} tiny head")


def _key(picture: Picture, shown: list[Curve], top: float, values: Sequence[str]) -> None:
    """Names of the lines, a row each."""
    letters = int((picture.width - 100) / 7.4)
    for i, (curve, value) in enumerate(zip(shown, values)):
        y, style = top + KEY_ROW * i, _style(shown, curve)
        picture.line(8, y - 4, 26, y - 4, f"stroke {style}")
        picture.text(32, y, _sign(shown, curve), f"{_words(style)} small head")
        name = ("baseline " if curve.is_baseline else "") + curve.brief
        picture.text(46, y, shortened(name, letters), "code")
        picture.text(picture.width - 4, y, value, "small", "end")


def _steps(frame: Frame, shown: list[Curve]) -> Axis:
    """From a little before the first checkpoint to the last step."""
    first = min(min(curve.points) for curve in shown)
    last = max(max(curve.points) for curve in shown)
    return Axis(max(0.0, first - 0.06 * (last - first)), float(last), frame.left, frame.right)


def _value_axis(quantity: Measure, shown: list[Curve], others: list[Curve]) -> Axis:
    """Of accuracies linear, of perplexities logarithmic. Exploded ones lie beyond it."""
    values = [value for curve in shown for value in curve.points.values()]
    rest = sorted(value for curve in others for value in curve.points.values())
    if quantity.maximise:
        low, high = min([*values, *rest]), max([*values, *rest])
        room = 0.05 * (high - low) or 0.05
        return Axis(max(low - room, 0.0), min(high + room, 1.0))
    low = min([*values, *rest[:1]])
    high = max([*values, *rest[:1 + int(0.97 * (len(rest) - 1))]])
    room = (high / low) ** 0.05 if high > low else 1.1
    return Axis(low / room, high * room, logarithmic=True)


def _curves(quantity: Measure, shown: list[Curve], others: list[Curve], width: float) -> Picture:
    frame = Frame(52, 30, width - 32, 320)
    picture = Picture(width, frame.bottom + 58 + KEY_ROW * len(shown), "learning curves")
    x, y = _steps(frame, [*shown, *others]), _value_axis(quantity, shown, others)
    picture.left_axis(frame, y, f"validation {quantity.name}")
    picture.bottom_axis(frame, x, "step")
    for curve in [*others[::-1], *shown[::-1]]:
        points = [(x(step), y(value)) for step, value in curve.points.items()]
        tips = [tip(curve.label, f"{quantity.name} {number(value)} at step {step:,}",
                    f"mean of {curve.replicates} seeds" if curve.replicates > 1 else "")
                for step, value in curve.points.items()]
        _line(picture, points, _style(shown, curve), curve, tips)
    _ends(picture, frame, shown, [(curve, y(curve.end)) for curve in shown])
    _key(picture, shown, frame.bottom + 60, [number(curve.end) for curve in shown])
    return picture
