"""Drawing: axes from data to the page, and pictures that a style sheet colours.

Lengths are in pixels, y downwards. A picture is drawn twice, for wide and for narrow screens, and
the style sheet shows one of them: scaling a wide one down would make its texts unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nas_analysis.html import Html, element, join
from nas_analysis.words import MINUS, count, shortened

WIDE = 860
NARROW = 360
MOST_DOTS = 1500  # more of them only make the page large


@dataclass
class Frame:
    """The part of a picture that data are drawn in."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass
class Axis:
    """From data to the page, linear or logarithmic."""

    low: float
    high: float
    start: float = 0.0  # where low lies on the page
    end: float = 1.0
    logarithmic: bool = False
    whole: bool = False  # ticks at whole numbers only

    def __call__(self, value: float) -> float:
        def scale(v: float) -> float:
            return math.log(v) if self.logarithmic else v

        value = min(max(value, self.low), self.high)
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Whether a value lies on it; what does not is drawn at its end."""
        return self.low <= value <= self.high

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Round values on it, with their texts."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            values = [f * 10.0**p for p in powers for f in (1, 2, 5)]
            values = [value for value in values if self.holds(value)]
            if 3 <= len(values) <= 2 * most:
                return [(value, _tick(value, value)) for value in values]
        step = _nice_step((self.high - self.low) / most)
        if self.whole:
            step = max(1.0, step)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(i * step, _tick(i * step, step)) for i in range(first, last + 1)]


def _nice_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= least * (1 - 1e-9))


def _tick(value: float, step: float) -> str:
    if abs(value) >= 1e4:
        return count(value)
    decimals = max(0, -math.floor(math.log10(abs(step)) + 1e-9)) if step else 0
    return f"{value:.{decimals}f}".replace("-", MINUS)


def value_axis(values: Sequence[float], maximise: bool, shown: Sequence[float] = ()) -> Axis:
    """An axis that shows values, logarithmic where they are minimised and span a factor of 4.

    Outliers on the bad side, such as exploded training runs, lie beyond it; `shown` lie on it.
    """
    ordered = sorted(-value if maximise else value for value in values) or list(shown) or [0.0]

    def quantile(share: float) -> float:
        return ordered[math.ceil(share * (len(ordered) - 1))]

    low = ordered[0]
    limit = min(quantile(0.97), quantile(0.75) + 3 * (quantile(0.75) - low))
    high = max(value for value in ordered if value <= max(limit, low))
    if maximise:
        low, high = -high, -low
    low, high = min([low, *shown]), max([high, *shown])
    if not maximise and low > 0 and 4 < high / low < 1e3:
        margin = (high / low) ** 0.06
        return Axis(low / margin, high * margin, logarithmic=True)
    margin = 0.07 * (high - low)
    if margin <= 1e-12 * abs(low):
        margin = 0.05 * abs(low) or 1.0
    return Axis(low - margin, high + margin)


def thinned(items: Sequence, most: int = MOST_DOTS) -> Sequence:
    """At most so many of them, evenly."""
    return items[:: 1 + (len(items) - 1) // most] if items else items


class Picture:
    """An SVG picture; colours come from the classes of its elements."""

    def __init__(self, width: float, height: float, label: str):
        self.width, self.height, self.label = width, height, label
        self._parts: list[Html] = []

    @property
    def narrow(self) -> bool:
        """Whether it is drawn for a narrow screen."""
        return self.width < 600

    def add(self, tag: str, *children: object, **attributes: object) -> None:
        """An element; lengths are rounded to a tenth of a pixel."""
        rounded = {k: f"{v:.1f}" if isinstance(v, float) else v for k, v in attributes.items()}
        self._parts.append(element(tag, *children, **rounded))

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """A straight line."""
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)

    def text(self, x: float, y: float, words: object, class_: str = "", anchor: str = "start",
             **attributes: object) -> None:
        """A text whose anchor is start, middle or end; class label has a ground of its own."""
        self.add("text", words, x=float(x), y=float(y), class_=class_ or None,
                 text_anchor=None if anchor == "start" else anchor, **attributes)

    def dot(self, x: float, y: float, radius: float, class_: str, tip: str,
            candidate: int | None = None) -> None:
        """A point; the first line of its tip is its name. A candidate's dots light up together."""
        self.add("circle", element("title", tip), cx=float(x), cy=float(y), r=float(radius),
                 class_="mark " + class_, data_m=candidate)

    def sign(self, x: float, y: float, character: str, class_: str, tip: str,
             candidate: int | None = None) -> None:
        """A character as a point, centred."""
        self.add("text", element("title", tip), character, x=float(x), y=y + 5.0,
                 class_="mark sign " + class_, text_anchor="middle", data_m=candidate)

    def rectangle(self, x: float, y: float, width: float, height: float, class_: str,
                  tip: str | None = None, **attributes: object) -> None:
        """A filled rectangle."""
        title = () if tip is None else (element("title", tip),)
        self.add("rect", *title, x=float(x), y=float(y), width=float(max(width, 0)),
                 height=float(max(height, 0)), class_=("mark " if tip else "") + class_,
                 **attributes)

    def path(self, points: Sequence[tuple[float, float]], class_: str) -> None:
        """A line through points."""
        commands = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add("path", d="M" + commands, class_=class_)

    def steps(self, points: Sequence[tuple[float, float]], class_: str) -> None:
        """A step line: across first, then up or down."""
        corners = [points[0]]
        for x, y in points[1:]:
            corners += [(x, corners[-1][1]), (x, y)]
        self.path(corners, class_)

    def cross(self, x: float, y: float, tip: str, candidate: int | None = None) -> None:
        """The mark of the baseline."""
        for sign in (-1, 1):
            self.line(x - 5, y - 5 * sign, x + 5, y + 5 * sign, "baseline")
        self.dot(x, y, 8, "ring", tip, candidate)

    def left_axis(self, frame: Frame, axis: Axis, name: str, most: int = 6) -> None:
        """Places the axis at the frame's left side, with grid lines, texts and name."""
        axis.start, axis.end = frame.bottom, frame.top
        for value, words in axis.ticks(most):
            self.line(frame.left, axis(value), frame.right, axis(value), "grid")
            self.text(frame.left - 7, axis(value) + 4, words, "tick", "end")
        note = " (log scale)" if axis.logarithmic else ""
        self.text(4, frame.top - 12, name + note, "name")

    def bottom_axis(self, frame: Frame, axis: Axis, name: str, most: int = 8,
                    grid: bool = False) -> None:
        """Places the axis below the frame, with texts and name."""
        axis.start, axis.end = frame.left, frame.right
        for value, words in axis.ticks(min(most, 5) if self.narrow else most):
            if grid:
                self.line(axis(value), frame.top, axis(value), frame.bottom, "grid")
            self.text(axis(value), frame.bottom + 18, words, "tick", "middle")
        self.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
        note = " (log scale)" if axis.logarithmic else ""
        self.text((frame.left + frame.right) / 2, frame.bottom + 37, name + note, "name", "middle")

    def markup(self) -> Html:
        """The picture as an element."""
        return element(
            "svg", *self._parts, viewBox=f"0 0 {self.width:.0f} {self.height:.0f}",
            class_="narrow" if self.narrow else "wide", role="img", aria_label=self.label,
            tabindex=0,
        )


def figure(draw: Callable[[float], Picture], caption: object = None) -> Html:
    """A picture for wide and for narrow screens, with a caption."""
    below = () if caption is None else (element("figcaption", caption),)
    return element("figure", join(*(draw(width).markup() for width in (WIDE, NARROW))), *below)


def tip(name: str, *lines: str) -> str:
    """The text that a mark shows."""
    return "\n".join([shortened(name, 100), *(line for line in lines if line)])
