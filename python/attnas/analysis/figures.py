"""Pictures of comparisons, components and transfers: names beside the lines instead of legends.

A style is a class of picture.css: "c0" to "c4" for what is highlighted, "reference", whose lines
are dashed, "plain" and "other".
"""

from __future__ import annotations

import dataclasses

import numpy as np

from attnas.analysis.digest import Objective
from attnas.analysis.svg import HALF, Axis, Figure, Frame, Picture, linear, stepped
from attnas.analysis.words import digits, shortened

NUM_COLOURS = 5
ROW = 21.0
LETTERS = 21  # of a name beside a row or a line
LETTER = 7.8  # width of one, in fonts that run wide


def _row_style(style: str) -> str:
    """Of a row's name and mark: what is not highlighted is plain there."""
    return "fill plain" if style == "other" else f"fill {style}"


def _names(width: float, longest: int = 0) -> tuple[float, int]:
    """Room for the names of rows, and how many letters fit there; at most half the width for the
    longest of them."""
    room = max(min(160.0, 0.36 * width), min(LETTER * min(longest, LETTERS) + 9, 0.5 * width))
    return room, min(LETTERS, int((room - 8) / LETTER))


def apart(wanted: list[float], distance: float, low: float, high: float) -> list[float]:
    """Places as near as possible to the wanted ones, `distance` apart, within [low, high]."""
    order = np.argsort(wanted, kind="stable")
    down = np.clip(np.array(wanted, dtype=float)[order], low, high)
    up = down.copy()
    for i in range(1, len(down)):
        down[i] = max(down[i], down[i - 1] + distance)
    for i in range(len(up) - 2, -1, -1):
        up[i] = min(up[i], up[i + 1] - distance)
    places = (down + up) / 2  # both keep the distance, so the middle does, and it is central
    if len(places):
        places += max(low - places[0], 0.0) + min(high - places[-1], 0.0)
    result = np.empty(len(places))
    result[order] = places
    return result.tolist()


@dataclasses.dataclass(frozen=True)
class Line:
    """A curve over a common x: NaN or inf where there is nothing yet."""

    name: str
    style: str
    middle: np.ndarray
    low: np.ndarray | None = None  # of the band around it
    high: np.ndarray | None = None


def curves(title: str, below: str, x: np.ndarray, x_title: str, y_title: str, lines: list[Line],
           floor: float = 0.0, lowest: str = "",
           y_range: tuple[float, float] | None = None) -> Figure:
    """Curves over what was spent, as steps; names at their ends.

    @param floor   above 0: the y axis is logarithmic and ends there, named `lowest`.
    @param y_range the ends of the y axis; as the curves need where not given.
    """
    named = [line for line in lines if line.style != "other"]
    bands = [band for line in named for band in (line.low, line.high) if band is not None]
    values = np.concatenate([line.middle for line in lines] + bands)

    def draw(width: float) -> Picture:
        letters = _names(width)[1]
        longest = max([len(shortened(line.name, letters)) for line in named], default=0)
        frame = Frame(58, 30, width - 14 - LETTER * longest, 300)
        picture = Picture(width, frame.bottom + 46, title)
        if floor > 0:
            top = np.max(values[np.isfinite(values)], initial=10 * floor)
            y = Axis(floor, float(top) * 1.1, logarithmic=True)
        else:
            y = Axis(*y_range) if y_range else linear(values)
        across = Axis(float(x[0]), float(x[-1]))
        picture.left_axis(frame, y, y_title, lowest=lowest)
        picture.bottom_axis(frame, across, x_title, grid=True)
        for line in named:
            if line.low is not None:
                there = np.isfinite(line.high)
                edge = stepped(zip(across(x[there]), y(line.low[there])))
                edge += stepped(zip(across(x[there]), y(line.high[there])))[::-1]
                if edge:
                    picture.area(edge, f"fill {line.style}", 0.13)
        for line in sorted(lines, key=lambda line: line.style != "other"):
            there = np.isfinite(line.middle)
            if there.any():
                picture.path(stepped(zip(across(x[there]), y(line.middle[there]))), f"stroke "
                             f"{line.style}", line.name,
                             style="stroke-width: 1" if line.style == "other" else None)
        ends = [y(float(line.middle[-1])) if np.isfinite(line.middle[-1]) else frame.top
                for line in named]
        for line, end, place in zip(named, ends, apart(ends, 15, frame.top + 4, frame.bottom)):
            picture.line(frame.right + 1, end, frame.right + 7, place, f"stroke "
                         f"{line.style}", style="stroke-width: 1")
            picture.text(frame.right + 10, place + 4, shortened(line.name, letters),
                         f"fill {line.style}")
        return picture

    return Figure(draw, below, title, HALF)


@dataclasses.dataclass(frozen=True)
class Row:
    """A value with its interval."""

    name: str
    style: str
    point: float
    low: float
    high: float
    instead: str = ""  # words in the place of the dot, for a value that belongs on no axis
    singles: tuple[float, ...] = ()  # those that it is the mean of, small dots


def intervals(title: str, below: str, x_title: str, rows: list[Row],
              guides: list[tuple[float, str]] = (),
              x_range: tuple[float, float] | None = None) -> Figure:
    """A row for each algorithm: a dot and its interval. Guides are named upright lines."""
    def draw(width: float) -> Picture:
        left, letters = _names(width, max((len(row.name) for row in rows), default=0))
        top = 20.0 if guides else 6.0
        right = max([62.0, *(7.0 * len(digits(row.point)) + 14 for row in rows)])
        frame = Frame(left, top, width - right, top + ROW * len(rows) + 6)
        picture = Picture(width, frame.bottom + 46, title)
        x = Axis(*x_range) if x_range else linear(
            [(row.low, row.high, row.point, *row.singles) for row in rows if not row.instead],
            [place for place, _ in guides])
        picture.bottom_axis(frame, x, x_title, most=6, grid=True)
        for i, (place, words) in enumerate(guides):
            picture.line(x(place), frame.top, x(place), frame.bottom, "stroke reference",
                         style="stroke-width: 1.2")
            anchor = "middle" if len(guides) < 2 else "start" if i else "end"
            picture.text(x(place), frame.top - 6, words, "muted tiny", anchor)
        for i, row in enumerate(rows):
            y = frame.top + ROW * (i + 0.5) + 3
            style = _row_style(row.style)
            picture.text(frame.left - 8, y + 4, shortened(row.name, letters), style, "end")
            if row.instead:
                picture.text(frame.left + 8, y + 4, row.instead, "muted tiny")
                continue
            if np.isfinite(row.low):
                picture.rectangle(x(row.low), y - 2, x(row.high) - x(row.low), 4, style,
                                  f"{row.name}: {digits(row.low)} to {digits(row.high)}",
                                  fill_opacity=0.45)
            for single in row.singles:
                picture.dot(x(single), y, 2, "ink", f"{row.name}: {digits(single)}")
            picture.dot(x(row.point), y, 4, style, f"{row.name}: {digits(row.point)}")
            picture.text(frame.right + 8, y + 4, digits(row.point), "muted")
        return picture

    return Figure(draw, below, title, HALF)


def critical_difference(title: str, below: str, names: list[str], styles: list[str],
                        ranks: np.ndarray, groups: list[list[int]]) -> Figure:
    """Mean ranks, the best on top; a bar on the right joins those that are not distinguished."""
    order = [int(i) for i in np.argsort(ranks, kind="stable")]
    place = {algorithm: row for row, algorithm in enumerate(order)}
    groups = sorted((sorted(place[i] for i in group) for group in groups if len(group) > 1),
                    key=min)
    columns = _free_columns(groups)

    def draw(width: float) -> Picture:
        left, letters = _names(width)
        bars = 10.0 * (max(columns, default=-1) + 1) + 14
        frame = Frame(left, 6, width - 52 - bars, 12 + ROW * len(names))
        picture = Picture(width, frame.bottom + 46, title)
        x = Axis(1, max(len(names), 2))
        picture.bottom_axis(frame, x, "mean rank (1 = best)", most=6, grid=True)
        rows = [frame.top + ROW * (i + 0.5) + 3 for i in range(len(order))]
        for y, i in zip(rows, order):
            style = _row_style(styles[i])
            picture.text(frame.left - 8, y + 4, shortened(names[i], letters), style, "end")
            picture.dot(x(float(ranks[i])), y, 4.5, style, f"{names[i]}: mean rank {ranks[i]:.2f}")
            picture.text(frame.right + 8, y + 4, f"{ranks[i]:.2f}", "muted")
        for column, group in zip(columns, groups):
            across = frame.right + 54 + 10 * column
            picture.line(across, rows[group[0]], across, rows[group[-1]], "stroke c0",
                         style="stroke-width: 3")
            for row in group:
                picture.dot(across, rows[row], 3.2, "fill c0")
        return picture

    return Figure(draw, below, title, HALF)


def _free_columns(groups: list[list[int]]) -> list[int]:
    """For each group of rows, by first row, the leftmost column where no earlier one is beside it.
    """
    ends: list[int] = []  # last row taken in each column
    columns = []
    for group in groups:
        column = next((i for i, end in enumerate(ends) if end < group[0]), len(ends))
        ends[column:column + 1] = [group[-1]]
        columns.append(column)
    return columns


@dataclasses.dataclass(frozen=True)
class Plane:
    """Two objectives as axes: points are in minimisation form, axes in the objectives' senses."""

    objectives: list[Objective]  # two of them
    ends: list[tuple[float, float]]  # of the axes, in the objectives' senses
    logarithmic: list[bool]

    def axes(self, frame: Frame) -> tuple[Axis, Axis]:
        """Of a frame, across and up."""
        return (Axis(*self.ends[0], frame.left, frame.right, self.logarithmic[0]),
                Axis(*self.ends[1], frame.bottom, frame.top, self.logarithmic[1]))

    def place(self, frame: Frame, points: np.ndarray) -> np.ndarray:
        """(n, 2) points on the page; infinite ones lie on the frame."""
        axes = self.axes(frame)
        return np.stack([axes[i](self.objectives[i].natural(points[:, i])) for i in (0, 1)], 1)

    def staircase(self, frame: Frame, corners: np.ndarray) -> list[tuple[float, float]]:
        """The boundary of what corners dominate, from edge to edge of a frame."""
        corners = corners[np.argsort(corners[:, 0], kind="stable")]
        inner = np.stack([corners[1:, 0], corners[:-1, 1]], 1)
        points = [np.array([[corners[0, 0], np.inf]]), corners[:1]]
        for turn, corner in zip(inner, corners[1:]):
            points += [turn[None], corner[None]]
        points.append(np.array([[np.inf, corners[-1, 1]]]))
        return [tuple(point) for point in self.place(frame, np.concatenate(points))]


def plane(objectives: list[Objective], points: np.ndarray) -> Plane:
    """Axes that hold all points (n, 2), logarithmic where positive values span a factor above 4."""
    ends, logarithmic = [], []
    for i, goal in enumerate(objectives):
        values = goal.natural(points[:, i][np.isfinite(points[:, i])])
        low, high = float(values.min()), float(values.max())
        logarithmic.append(low > 0 and high > 4 * low)
        if logarithmic[-1]:
            room = (high / low) ** 0.05
            ends.append((low / room, high * room))
        else:
            room = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
            ends.append((low - room, high + room))
    return Plane(objectives, ends, logarithmic)


@dataclasses.dataclass(frozen=True)
class Panel:
    """Attainment surfaces of an algorithm: corners, each (n, 2) in minimisation form."""

    name: str
    style: str
    quarter: np.ndarray  # attained by a quarter of its searches
    half: np.ndarray
    three_quarters: np.ndarray


def surfaces(title: str, below: str, on: Plane, panels: list[Panel],
             reference: np.ndarray | None, front: np.ndarray) -> Figure:
    """A small picture for each algorithm: its surfaces, dashed the reference's, dots the front."""
    def draw(width: float) -> Picture:
        across = min(3 if width >= HALF else 2, len(panels))
        gap, left, high = 14.0, 46.0, 118.0
        wide = (width - left - 10 - gap * (across - 1)) / across
        top = 26.0
        num_rows = -(-len(panels) // across)
        picture = Picture(width, top + num_rows * (high + 30) + 24, title)
        picture.text(4, 14, f"{on.objectives[1].quantity}, over {on.objectives[0].quantity}")
        for i, panel in enumerate(panels):
            row, column = divmod(i, across)
            x, y = left + column * (wide + gap), top + row * (high + 30) + 14
            frame = Frame(x, y, x + wide, y + high)
            _small_axes(picture, frame, on.axes(frame), column == 0, i + across >= len(panels))
            drawn = "plain" if panel.style in ("other", "reference") else panel.style
            picture.text(x, y - 4, shortened(panel.name, int(wide / 7.0)), _row_style(panel.style))
            if len(panel.quarter) and len(panel.three_quarters):
                picture.area(on.staircase(frame, panel.quarter)
                             + on.staircase(frame, panel.three_quarters)[::-1], f"fill {drawn}",
                             0.22)
            if reference is not None and len(reference):
                picture.path(on.staircase(frame, reference), "stroke reference",
                             style="stroke-width: 1.1")
            if len(panel.half):
                picture.path(on.staircase(frame, panel.half), f"stroke {drawn}",
                             style="stroke-width: 1.8")
            for place in on.place(frame, front):
                picture.dot(*place, 1.6, "ink")
        return picture

    return Figure(draw, below, title, HALF)


def _small_axes(picture: Picture, frame: Frame, axes: tuple[Axis, Axis], left: bool, bottom: bool):
    """Three grid lines per side, with values only where they are wanted."""
    for axis, upright in zip(axes, (True, False)):
        ticks = axis.ticks()
        for value, words in ticks[::max(1, -(-len(ticks) // 3))]:
            place = axis(value)
            if upright:
                picture.line(place, frame.top, place, frame.bottom, "grid")
                if bottom:
                    picture.text(place, frame.bottom + 14, words, "muted tiny", "middle")
            else:
                picture.line(frame.left, place, frame.right, place, "grid")
                if left:
                    picture.text(frame.left - 5, place + 4, words, "muted tiny", "end")


def difference(title: str, below: str, on: Plane, names: tuple[str, str], low: np.ndarray,
               high: np.ndarray, share: np.ndarray, front: np.ndarray) -> Figure:
    """Where one algorithm attains points more often than another, in steps of a fifth.

    @param names     the algorithm, and the one it is compared with.
    @param low, high (n, 2) lower left and upper right corners of rectangles.
    @param share     (n,) differences of shares in [-1, 1], positive where the first does.
    """
    steps = np.round(share * 5).astype(int)

    def draw(width: float) -> Picture:
        frame = Frame(58, 50, width - 18, 350)
        picture = Picture(width, frame.bottom + 46, title)
        across, up = on.axes(frame)
        x, letters = 4.0, 6 + _names(width)[1] // 2
        for name, style in zip(names, ("c0", "c1")):
            words = f"{shortened(name, letters)} more often"
            picture.rectangle(x, 4, 12, 12, f"fill {style}")
            picture.text(x + 18, 14, words, f"fill {style}")
            x += 38 + 6.8 * len(words)
        picture.left_axis(frame, up, on.objectives[1].quantity)
        picture.bottom_axis(frame, across, on.objectives[0].quantity, grid=True)
        corners = zip(on.place(frame, low), on.place(frame, high), steps)
        for (x1, y1, x2, y2, step) in _joined([(*a, *b, step) for a, b, step in corners if step]):
            picture.rectangle(min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1),
                              "fill c0" if step > 0 else "fill c1", f"{step / 5:+.0%}",
                              fill_opacity=abs(step) / 5)
        for place in on.place(frame, front):
            picture.dot(*place, 2.6, "ink")
        return picture

    return Figure(draw, below, title, HALF)


def _joined(rectangles: list[tuple]) -> list[tuple]:
    """Rectangles (x1, y1, x2, y2, step), those of one step that share an edge made one: first
    upwards, then sideways."""
    for start, end in ((1, 3), (0, 2)):
        other = [i for i in (0, 1, 2, 3) if i not in (start, end)]
        rows: dict[tuple, list] = {}
        for rectangle in rectangles:
            rows.setdefault((rectangle[other[0]], rectangle[other[1]], rectangle[4]),
                            []).append(sorted((rectangle[start], rectangle[end])))
        rectangles = []
        for (first, second, step), spans in rows.items():
            joined = []
            for low, high in sorted(spans):
                if joined and low <= joined[-1][1] + 1e-9:
                    joined[-1][1] = max(high, joined[-1][1])
                else:
                    joined.append([low, high])
            for low, high in joined:
                place = {start: low, end: high, other[0]: first, other[1]: second}
                rectangles.append((place[0], place[1], place[2], place[3], step))
    return rectangles


def interaction(title: str, below: str, rows: list[str], columns: list[str], means: np.ndarray,
                better: np.ndarray) -> Figure:
    """A square for each pair of options with the mean there.

    @param better  (rows, columns) how much better than the two options' own effects add up to:
        blue above 0, orange below; the deeper, the larger.
    """
    most = np.abs(better).max() or 1.0

    def draw(width: float) -> Picture:
        letters = _names(width)[1]
        left = 20 + LETTER * max(len(shortened(row, letters)) for row in rows)
        cell = min(84.0, (width - left - 12) / len(columns))
        high, top = 34.0, 24.0
        picture = Picture(width, top + high * len(rows) + 14, title)
        for j, column in enumerate(columns):
            picture.text(left + cell * (j + 0.5), top - 8, shortened(column, int(cell / 6.4)),
                         "muted", "middle")
        for i, row in enumerate(rows):
            y = top + high * i
            picture.text(left - 8, y + high / 2 + 4, shortened(row, letters), "", "end")
            for j, column in enumerate(columns):
                x = left + cell * j
                value = better[i, j]
                picture.rectangle(
                    x + 1, y + 1, cell - 2, high - 2, "fill c0" if value > 0 else "fill c1",
                    f"{row}, {column}: mean {digits(means[i, j])}, {digits(abs(value))} "
                    f"{'better' if value > 0 else 'worse'} than the sum of its parts",
                    fill_opacity=0.75 * float(abs(value) / most))
                picture.text(x + cell / 2, y + high / 2 + 4, digits(means[i, j]), "small label",
                             "middle", pointer_events="none")
        return picture

    return Figure(draw, below, title, HALF)
