"""Pictures of comparisons of mixers: a value against a size with the front."""

from __future__ import annotations

import dataclasses

import numpy as np

from attnas.analysis.statistics import Interval
from attnas.analysis.svg import WIDE, Axis, Figure, Frame, Picture, linear, stepped, tip
from attnas.analysis.words import digits, shortened

KINDS = (("attention", "c0"), ("recurrent, adds", "c1"), ("recurrent, "
                                                          "erases", "c2"), ("hybrid", "c3"),
         ("convolution, none", "plain"), ("found by a search", "c4"))
STYLES = dict(KINDS)


@dataclasses.dataclass(frozen=True)
class Point:
    """A row of a comparison: its value against a size."""

    label: str
    family: str
    kind: str  # one of KINDS
    x: float
    y: Interval


@dataclasses.dataclass(frozen=True)
class Front:
    """The best value of all rows that are no larger, at each size, with its interval over seeds."""

    x: np.ndarray
    best: np.ndarray
    low: np.ndarray
    high: np.ndarray


def against_size(title: str, below: str, x_title: str, y_title: str, points: list[Point],
                 front: Front, maximise: bool) -> Figure:
    """A dot and an interval for each row, a line for each family as its size grows, the front as
    steps with its band.
    """
    values = np.array([[*point.y] for point in points])

    def draw(width: float) -> Picture:
        kinds = [(name, style) for name, style in KINDS
                 if any(point.kind == name for point in points)]
        frame = Frame(58, 34 + 17 * len(kinds), width - 16, 34 + 17 * len(kinds) + 330)
        picture = Picture(width, frame.bottom + 46, title)
        for i, (name, style) in enumerate(kinds):
            picture.dot(10, 10 + 17 * i, 4, f"fill {style}")
            picture.text(20, 14 + 17 * i, name, f"fill {style}")
        sizes = [point.x for point in points]
        across = Axis(min(sizes) / 1.3, max(sizes) * 1.6, logarithmic=True)
        up = Axis(-0.02, 1.04) if maximise else linear(values)
        picture.left_axis(frame, up, y_title)
        picture.bottom_axis(frame, across, x_title, grid=True)
        edge = stepped(zip(across(front.x), up(front.high))) + stepped(
            zip(across(front.x), up(front.low)))[::-1]
        picture.area(edge, "fill plain", 0.12)
        picture.path(stepped(zip(across(front.x), up(front.best))), "stroke reference",
                     "front: the best of all that are no larger")
        for family in dict.fromkeys(point.family for point in points):
            members = sorted((point for point in points if point.family == family),
                             key=lambda point: point.x)
            if len(members) > 1:
                picture.path([(across(point.x), up(point.y.point)) for point in members],
                             f"stroke {STYLES[members[0].kind]}", family, style="stroke-width: 1")
        taken = [(across(point.x) - 4, up(point.y.point) - 4, across(point.x) + 4,
                  up(point.y.point) + 4) for point in points]
        for point in points:
            _mark(picture, frame, across(point.x), point, up, taken)
        return picture

    return Figure(draw, below, title, WIDE)


Box = tuple[float, float, float, float]  # left, top, right, bottom


def _mark(picture: Picture, frame: Frame, x: float, point: Point, up: Axis,
          taken: list[Box]) -> None:
    """A row's interval, dot and name. @param taken  where dots and names stand already, which
    grows.
    """
    style, y = STYLES[point.kind], up(point.y.point)
    if np.isfinite(point.y.low):
        picture.line(x, up(max(point.y.low, up.low)), x, up(min(point.y.high, up.high)), f"stroke "
                                                                                         f"{style}",
                     style="stroke-width: 1.2; stroke-opacity: 0.6")
    words = tip(point.label, f"{digits(point.x)}: {digits(point.y.point)} ({digits(point.y.low)} "
                             f"to {digits(point.y.high)})")
    if point.kind == "found by a search":
        picture.sign(x, y, "\u2605", f"fill {style}", words)
    else:
        picture.dot(x, y, 4, f"fill {style}", words)
    if not picture.narrow:
        name = shortened(point.label, 24)
        anchor, below = _room_for(name, x, y, frame, taken)
        picture.text(x + (-7 if anchor == "end" else 7), y + below, name, f"fill {style} "
                                                                          f"tiny", anchor)


def _room_for(name: str, x: float, y: float, frame: Frame, taken: list[Box]) -> tuple[str, float]:
    """On which side of a dot, and how far below it, its name meets no other name or dot; beside it
    where there is no such place.
    """
    long = 6.2 * len(name)
    for below in (-5, 14, 26, 38, 50, 62, 74, -17, -29):
        for anchor in ("start", "end"):
            left = x + 7 if anchor == "start" else x - 7 - long
            box = (left, y + below - 9, left + long, y + below + 2)
            inside = frame.left < box[0] and box[2] < frame.right + 12 and box[3] < frame.bottom
            if inside and not any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3]
                                  and other[1] < box[3] for other in taken):
                taken.append(box)
                return anchor, below
    return "start", -5
