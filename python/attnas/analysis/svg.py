"""Drawing: axes from data to the page, and pictures that a style sheet colours.

Lengths are in pixels, y downwards. A picture is drawn twice, for wide and for narrow screens, and
the style sheet shows one of them: scaling a wide one down would make its texts unreadable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnas.analysis.html import Html, element
from attnas.analysis.words import MINUS, count, shortened

WIDE = 860
HALF = 520  # beside another one
NARROW = 360
MOST_DOTS = 1500  # more of them only make the page large
STYLE = Path(__file__).with_name("picture.css")


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

    def __call__(self, value):
        """Places on the page, of a number or of an array; what lies beyond the ends is put on
        them."""
        if isinstance(value, np.ndarray):
            return np.array([self(float(one)) for one in value])

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
            for digits in ((1, 2, 5), (1,)):
                values = [f * 10.0**p for p in powers for f in digits]
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
    # of the last digit that differs
    place = math.floor(math.log10(abs(step)) + 1e-9) if step else 0
    if abs(value) >= 1e4:
        return count(value, max(3, math.floor(math.log10(abs(value)) + 1e-9) - place + 1))
    decimals = max(0, -place)
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


def linear(values, include: Sequence[float] = ()) -> Axis:
    """A linear axis over the finite values, with a little room; `include` must lie on it."""
    values = np.concatenate([np.ravel(np.asarray(values, dtype=float)), np.array([*include])])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    # Values that differ by rounding only lie in one place.
    apart = high - low > 1e-9 * max(abs(low), abs(high))
    room = 0.04 * (high - low) if apart else 0.5 * abs(high) or 0.5
    return Axis(low if apart and low in include else low - room,
                high if apart and high in include else high + room)


def thinned(items: Sequence, most: int = MOST_DOTS) -> Sequence:
    """At most so many of them, evenly."""
    return items[:: 1 + (len(items) - 1) // most] if items else items


class Picture:
    """An SVG picture; colours come from the classes of its elements."""

    def __init__(self, width: float, height: float, label: str):
        self.width, self.height, self.label = width, height, label
        self.parts: list[Html] = []

    @property
    def narrow(self) -> bool:
        """Whether it is drawn for a narrow screen."""
        return self.width < HALF

    def add(self, tag: str, *children: object, **attributes: object) -> None:
        """An element; lengths are rounded to a tenth of a pixel."""
        rounded = {k: f"{v:.{2 if k == 'fill_opacity' else 1}f}" if isinstance(v, float) else v
                   for k, v in attributes.items()}
        self.parts.append(element(tag, *children, **rounded))

    def _mark(self, tag: str, tip_: str | None, class_: str, *children: object,
              **attributes: object) -> None:
        """An element that says what it is, where it has a tip: its first line is the name."""
        title = () if tip_ is None else (element("title", tip_),)
        self.add(tag, *title, *children, class_=("" if tip_ is None else "mark ") + class_,
                 **attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str,
             **attributes: object) -> None:
        """A straight line."""
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_,
                 **attributes)

    def text(self, x: float, y: float, words: object, class_: str = "", anchor: str = "start",
             **attributes: object) -> None:
        """A text whose anchor is start, middle or end; class label has a ground of its own."""
        self.add("text", words, x=float(x), y=float(y), class_=class_ or None,
                 text_anchor=None if anchor == "start" else anchor, **attributes)

    def dot(self, x: float, y: float, radius: float, class_: str, tip_: str | None = None,
            candidate: int | None = None) -> None:
        """A point. A candidate's dots light up together."""
        self._mark("circle", tip_, class_, cx=float(x), cy=float(y), r=float(radius),
                   data_m=candidate)

    def sign(self, x: float, y: float, character: str, class_: str, tip_: str,
             candidate: int | None = None) -> None:
        """A character as a point, centred."""
        self._mark("text", tip_, "sign " + class_, character, x=float(x), y=y + 5.0,
                   text_anchor="middle", data_m=candidate)

    def rectangle(self, x: float, y: float, width: float, height: float, class_: str,
                  tip_: str | None = None, **attributes: object) -> None:
        """A filled rectangle."""
        self._mark("rect", tip_, class_, x=float(x), y=float(y), width=float(max(width, 0)),
                   height=float(max(height, 0)), **attributes)

    def path(self, points: Iterable[tuple[float, float]], class_: str, tip_: str | None = None,
             **attributes: object) -> None:
        """A line through points."""
        self._mark("path", tip_, class_, d=_commands(points), **attributes)

    def area(self, points: Iterable[tuple[float, float]], class_: str, opacity: float) -> None:
        """A filled polygon."""
        self.add("path", d=_commands(points) + "Z", class_=class_, fill_opacity=opacity)

    def steps(self, points: Sequence[tuple[float, float]], class_: str) -> None:
        """A step line: across first, then up or down."""
        self.path(stepped(points), class_)

    def cross(self, x: float, y: float, tip_: str, candidate: int | None = None) -> None:
        """The mark of the baseline."""
        for sign in (-1, 1):
            self.line(x - 5, y - 5 * sign, x + 5, y + 5 * sign, "baseline")
        self.dot(x, y, 8, "ring", tip_, candidate)

    def left_axis(self, frame: Frame, axis: Axis, name: str, most: int = 6,
                  lowest: str = "") -> None:
        """Places the axis at the frame's left side, with grid lines, texts and name.

        @param lowest  names the lower end, where that stands for all below it too.
        """
        axis.start, axis.end = frame.bottom, frame.top
        ticks = axis.ticks(most)
        if lowest:
            ticks = [tick for tick in ticks if abs(axis(tick[0]) - frame.bottom) > 14]
            ticks.append((axis.low, lowest))
        # so that long ones are wholly on the picture
        end = max([frame.left - 7, *(7 * len(words) for _, words in ticks)])
        for value, words in ticks:
            self.line(frame.left, axis(value), frame.right, axis(value), "grid")
            self.text(end, axis(value) + 4, words, "tick", "end")
        self.text(4, frame.top - 12, _named(axis, name), "name")

    def bottom_axis(self, frame: Frame, axis: Axis, name: str, most: int = 8,
                    grid: bool = False) -> None:
        """Places the axis below the frame, with texts and name."""
        axis.start, axis.end = frame.left, frame.right
        for value, words in axis.ticks(min(most, 5 if self.narrow else most)):
            if grid:
                self.line(axis(value), frame.top, axis(value), frame.bottom, "grid")
            self.text(axis(value), frame.bottom + 18, words, "tick", "middle")
        self.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
        self.text((frame.left + frame.right) / 2, frame.bottom + 37, _named(axis, name), "name",
                  "middle")

    def markup(self, class_: str) -> Html:
        """The picture as a part of a page."""
        return element("svg", *self.parts, viewBox=f"0 0 {self.width:.0f} {self.height:.0f}",
                       class_=class_, role="img", aria_label=self.label, tabindex=0)


def _named(axis: Axis, name: str) -> str:
    return name + (" (log scale)" if axis.logarithmic else "")


def _commands(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def stepped(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of a step line: across first, then up or down."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    return corners


@dataclass(frozen=True)
class Figure:
    """A picture that can be drawn in several widths, with what is said of it."""

    draw: Callable[[float], Picture]
    caption: str = ""
    title: str = ""
    wide: float = WIDE

    def html(self) -> Html:
        """A part of a page: drawn for wide and for narrow screens."""
        return element("figure", element("h3", self.title) if self.title else None,
                       self.draw(self.wide).markup("wide"), self.draw(NARROW).markup("narrow"),
                       element("figcaption", self.caption) if self.caption else None)

    def file(self, title: str = "") -> str:
        """A file of its own, title and caption within the picture."""
        picture = self.draw(self.wide)
        # Pixels of a letter, wide ones in a row.
        heads = wrapped(title or self.title or picture.label, int(picture.width / 9.5))
        lines = wrapped(self.caption, int(picture.width / 7)) if self.caption else []
        below = 4 + 18 * len(heads)
        top = below + 12 + 16 * len(lines)
        height = top + picture.height
        words = [element("text", line, x=10, y=22 + 18 * i, class_="head", font_size=15)
                 for i, line in enumerate(heads)]
        words += [element("text", line, x=10, y=below + 20 + 16 * i, class_="muted")
                  for i, line in enumerate(lines)]
        return element(
            "svg", element("style", Html(_literal_style())),
            element("rect", class_="ground", width=picture.width, height=f"{height:.0f}"), *words,
            element("g", *picture.parts, transform=f"translate(0 {top})"),
            xmlns="http://www.w3.org/2000/svg", width=picture.width, height=f"{height:.0f}",
            viewBox=f"0 0 {picture.width:.0f} {height:.0f}", role="img",
            aria_label=picture.label) + "\n"


def figure(draw: Callable[[float], Picture], caption: str = "") -> Html:
    """A picture as a part of a page."""
    return Figure(draw, caption).html()


def _literal_style() -> str:
    """The style sheet for programs that know no custom properties of CSS: twice, in the colours for
    light and for dark screens."""
    text = re.sub(r"/\*.*?\*/", "", STYLE.read_text(encoding="utf-8"), flags=re.DOTALL)
    palettes = [dict(re.findall(r"(--[\w-]+): ([^;]+);", block))
                for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)]
    rules = text[text.index("svg {"):].strip()
    light, dark = (re.sub(r"var\((--[\w-]+)\)", lambda name, own=own: own[name.group(1)], rules)
                   for own in palettes)
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def wrapped(words: str, letters: int) -> list[str]:
    """Words in lines of at most so many letters; a longer word, as the name of a model, breaks
    behind its commas and slashes."""
    lines = [""]
    for word in words.replace(" %", "\u00a0%").split(" "):
        pieces = [word] if len(word) <= letters else re.findall(r"[^,/+]+[,/+]*", word)
        for i, piece in enumerate(pieces):
            gap = " " if i == 0 and lines[-1] else ""
            if lines[-1] and len(lines[-1]) + len(gap) + len(piece) > letters:
                lines.append("")
                gap = ""
            lines[-1] += gap + piece
    return lines


def tip(name: str, *lines: str) -> str:
    """The text that a mark shows."""
    return "\n".join([shortened(name, 100), *(line for line in lines if line)])
