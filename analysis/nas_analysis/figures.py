"""Pictures of comparisons as SVG: narrow enough for a phone, in light and dark, names beside the
lines instead of legends, colours that colour-blind readers distinguish (after Okabe and Ito).
Lengths are in pixels, y downwards.
"""

import dataclasses
from xml.sax.saxutils import escape

import numpy as np

WIDTH = 520.0
NUM_COLOURS = 5  # of highlighted algorithms: styles "c0" .. "c4"; besides "reference" and "other"
LETTER = 7.4  # width of one at the usual size, roughly
NAME = 160.0  # width for names in pictures with a row for each algorithm
ROW = 21.0

_COLOURS = {  # style: light, dark
    "c0": ("#0072b2", "#56b4e9"), "c1": ("#c44e00", "#ff9461"), "c2": ("#00805d", "#34c99f"),
    "c3": ("#a8447f", "#e79ccb"), "c4": ("#8a6d00", "#e8c34a"),
    "reference": ("#1f2933", "#f2f5f8"),  # its lines are dashed
    "plain": ("#4a5560", "#b4bec8"), "other": ("#b4bec8", "#55616d"),
}
_PLAIN = {"paper": ("#ffffff", "#14191f"), "ink": ("#1f2933", "#e6ebf0"),
          "muted": ("#5b6773", "#a3afbb")}
_GRID = ("#dfe5ea", "#323c46")


def _style() -> str:
    def rules(which):
        plain = [f".{name} {{ fill: {pair[which]} }}" for name, pair in _PLAIN.items()]
        lines = [f".line.{name} {{ stroke: {pair[which]} }} .fill.{name} {{ fill: {pair[which]} }}"
                 for name, pair in _COLOURS.items()]
        return " ".join([*plain, *lines, f".grid {{ stroke: {_GRID[which]} }}",
                         f".halo {{ stroke: {_PLAIN['paper'][which]} }}"])

    return (f"<style>.line, .grid {{ fill: none }} .line.reference {{ stroke-dasharray: 6 3 }} "
            f".halo {{ stroke-width: 4; stroke-linejoin: round; paint-order: stroke }} {rules(0)} "
            f"@media (prefers-color-scheme: dark) {{ {rules(1)} }}</style>")


def number(value: float) -> str:
    """A measured number for people: three digits or one decimal; a letter from ten thousand on;
    of a share near the whole, two digits of what is missing."""
    if not np.isfinite(value):
        return "never" if value > 0 else "-"
    if 0.99 < value < 1.0:
        return f"{value:.{min(1 - int(np.floor(np.log10(1.0 - value))), 8)}f}"
    size, letter = _magnitude(value)
    value = value / size
    return f"{value:.1f}{letter}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".") + letter


def _tick(value: float) -> str:
    """A round number at an axis."""
    size, letter = _magnitude(value)
    return f"{value / size + 0.0:.4g}{letter}"  # + 0.0: no minus before a zero


def _magnitude(value: float) -> tuple[float, str]:
    for least, size, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"),
                                (1e4, 1e3, "k")):
        if abs(value) >= least:
            return size, letter
    return 1.0, ""


@dataclasses.dataclass(frozen=True)
class Axis:
    """From data to the page."""

    low: float
    high: float
    start: float  # where they lie on the page
    stop: float
    logarithmic: bool = False

    def __call__(self, values):
        """Places on the page; what lies beyond the ends is put on them."""
        ends = np.array([self.low, self.high])
        values = np.clip(np.asarray(values, dtype=float), ends.min(), ends.max())
        if self.logarithmic:
            ends, values = np.log(ends), np.log(values)
        return self.start + (values - ends[0]) / (ends[1] - ends[0]) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Round values within it."""
        low, high = sorted((self.low, self.high))
        if self.logarithmic and high / low > 8:
            powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
            for digits in ((1, 2, 5), (1,)):
                ticks = [digit * 10.0**power for power in powers for digit in digits]
                ticks = [tick for tick in ticks if low <= tick <= high]
                if len(ticks) <= 7:
                    return ticks
            return ticks[::2]
        raw = (high - low) / 5
        size = 10.0 ** np.floor(np.log10(raw))
        step = next(size * digit for digit in (1, 2, 5, 10) if size * digit >= raw * 0.999)
        ticks = np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1) * step
        return [float(np.round(tick, 12)) for tick in ticks]


def linear(values, start: float, stop: float, include=()) -> Axis:
    """A linear axis over the finite values, with a little room; `include` must lie on it."""
    values = np.concatenate([np.ravel(np.asarray(values, dtype=float)), np.array([*include])])
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    # Values that differ by rounding only lie in one place.
    apart = high - low > 1e-9 * max(abs(low), abs(high))
    room = 0.04 * (high - low) if apart else 0.5 * abs(high) or 0.5
    return Axis(low if apart and low in include else low - room,
                high if apart and high in include else high + room, start, stop)


@dataclasses.dataclass(frozen=True)
class Frame:
    """The part of a picture that data are drawn in."""

    left: float
    top: float
    right: float
    bottom: float


class Picture:
    """An SVG that grows part by part."""

    def __init__(self, height: float, title: str, below: str):
        self._height = height
        self._parts = []
        self._title = title
        self.text(10, 22, title, "ink", size=15, more='font-weight="bold"')
        for i, words in enumerate(wrapped(below)):
            self.text(10, 41 + 16 * i, words, "muted")

    def text(self, x, y, words, style, anchor="start", size=12.5, more=""):
        """Words at a place."""
        self._parts.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                           f'font-size="{size}" {more}>{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, style, width=1.0):
        """A straight line."""
        self._parts.append(f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                           f'y2="{y2:.1f}" stroke-width="{width}"/>')

    def path(self, points, style, width=1.5, tooltip=""):
        """A line through points."""
        self._parts.append(f'<path class="line {style}" d="{_commands(points)}" '
                           f'stroke-width="{width}">{_tooltip(tooltip)}</path>')

    def area(self, points, style, opacity):
        """A filled polygon."""
        self._parts.append(f'<path class="fill {style}" d="{_commands(points)}Z" '
                           f'fill-opacity="{opacity:.3f}"/>')

    def rectangle(self, x1, y1, x2, y2, style, opacity=1.0, tooltip=""):
        """A filled rectangle between two corners."""
        x1, x2, y1, y2 = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
        self._parts.append(f'<rect class="{style}" x="{x1:.1f}" y="{y1:.1f}" '
                           f'width="{x2 - x1:.1f}" height="{y2 - y1:.1f}" '
                           f'fill-opacity="{opacity:.2f}">{_tooltip(tooltip)}</rect>')

    def dot(self, x, y, radius, style, tooltip=""):
        """A filled circle."""
        self._parts.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
                           f'{_tooltip(tooltip)}</circle>')

    def bottom_axis(self, frame: Frame, axis: Axis, title: str):
        """Grid lines with their values, and the axis' name."""
        for tick in axis.ticks():
            x = float(axis(tick))
            self.line(x, frame.top, x, frame.bottom, "grid")
            self.text(x, frame.bottom + 16, _tick(tick), "muted", "middle")
        if title:
            self.text((frame.left + frame.right) / 2, frame.bottom + 36, title, "ink", "middle")

    def left_axis(self, frame: Frame, axis: Axis, title: str, lowest: str = ""):
        """The same; `lowest` names the lower end, where that stands for all below it too."""
        ticks = [(float(axis(tick)), _tick(tick)) for tick in axis.ticks()]
        if lowest:
            end = float(axis(axis.low))
            ticks = [tick for tick in ticks if abs(tick[0] - end) > 14] + [(end, lowest)]
        for y, words in ticks:
            self.line(frame.left, y, frame.right, y, "grid")
            self.text(frame.left - 6, y + 4, words, "muted", "end")
        if title:
            self.text(frame.left - 46, frame.top - 10, title, "ink")

    def __str__(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} '
                f'{self._height:.0f}" width="{WIDTH:.0f}" height="{self._height:.0f}" role="img" '
                f'aria-label="{escape(self._title, {chr(34): "&quot;"})}" '
                'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif">\n'
                f'{_style()}\n<rect class="paper" width="{WIDTH:.0f}" '
                f'height="{self._height:.0f}"/>\n' + "\n".join(self._parts) + "\n</svg>\n")


def _commands(points) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _tooltip(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""


def wrapped(words: str, letters: int = 70) -> list[str]:
    """Words in lines of at most so many letters."""
    lines = [""]
    for word in words.replace(" %", "\u00a0%").split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > letters:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _row_style(style: str) -> str:
    """Of a row's name and mark: what is not highlighted is plain there."""
    return "fill plain" if style == "other" else f"fill {style}"


def _top(below: str) -> float:
    return 52.0 + 16.0 * len(wrapped(below))


def shortened(name: str, letters: int = 21) -> str:
    """A name that fits beside a row."""
    return name if len(name) <= letters else name[:letters - 1] + "\u2026"


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
           floor: float = 0.0, lowest: str = "", y_range: tuple[float, float] | None = None) -> str:
    """Curves over what was spent, as steps; names at their ends.

    @param floor   above 0: the y axis is logarithmic and ends there, named `lowest`.
    @param y_range the ends of the y axis; as the curves need where not given.
    """
    named = [line for line in lines if line.style != "other"]
    margin = 14 + LETTER * max([len(shortened(line.name)) for line in named], default=0)
    frame = Frame(58, _top(below) + 14, WIDTH - margin, _top(below) + 284)
    picture = Picture(frame.bottom + 46, title, below)
    values = np.concatenate([line.middle for line in lines]
                            + [band for line in named for band in (line.low, line.high)
                               if band is not None])
    if floor > 0:
        top = np.max(values[np.isfinite(values)], initial=10 * floor)
        y = Axis(floor, top * 1.1, frame.bottom, frame.top, True)
    elif y_range:
        y = Axis(*y_range, frame.bottom, frame.top)
    else:
        y = linear(values, frame.bottom, frame.top)
    across = Axis(float(x[0]), float(x[-1]), frame.left, frame.right)
    picture.left_axis(frame, y, y_title, lowest=lowest)
    picture.bottom_axis(frame, across, x_title)
    for line in named:
        if line.low is not None:
            there = np.isfinite(line.high)
            edge = _steps(across(x[there]), y(line.low[there]))
            edge += _steps(across(x[there]), y(line.high[there]))[::-1]
            if edge:
                picture.area(edge, line.style, 0.13)
    for line in sorted(lines, key=lambda line: line.style != "other"):
        there = np.isfinite(line.middle)
        if there.any():
            picture.path(_steps(across(x[there]), y(line.middle[there])), line.style,
                         1.0 if line.style == "other" else 2.2, line.name)
    ends = [float(y(line.middle[-1])) if np.isfinite(line.middle[-1]) else frame.top
            for line in named]
    for line, end, place in zip(named, ends, apart(ends, 15, frame.top + 4, frame.bottom)):
        picture.line(frame.right + 1, end, frame.right + 7, place, f"line {line.style}")
        picture.text(frame.right + 10, place + 4, shortened(line.name), f"fill {line.style}")
    return str(picture)


def _steps(x, y) -> list[tuple[float, float]]:
    points = []
    for i, place in enumerate(zip(x, y)):
        if i:
            points.append((place[0], points[-1][1]))
        points.append(place)
    return points


@dataclasses.dataclass(frozen=True)
class Row:
    """A value with its interval."""

    name: str
    style: str
    point: float
    low: float
    high: float


def intervals(title: str, below: str, x_title: str, rows: list[Row],
              guides: list[tuple[float, str]] = (), x_range: tuple[float, float] | None = None,
              ) -> str:
    """A row for each algorithm: a dot and its interval. Guides are named upright lines."""
    top = _top(below) + (16 if guides else 0)
    frame = Frame(NAME, top, WIDTH - 62, top + ROW * len(rows) + 6)
    picture = Picture(frame.bottom + 46, title, below)
    x = (Axis(*x_range, frame.left, frame.right) if x_range else
         linear([(row.low, row.high, row.point) for row in rows], frame.left, frame.right,
                [place for place, _ in guides]))
    picture.bottom_axis(frame, x, x_title)
    for place, words in guides:
        picture.line(float(x(place)), frame.top, float(x(place)), frame.bottom,
                     "line reference", 1.2)
        picture.text(float(x(place)), frame.top - 6, words, "muted", "middle", 11.5)
    for i, row in enumerate(rows):
        y = frame.top + ROW * (i + 0.5) + 3
        style = _row_style(row.style)
        picture.text(frame.left - 8, y + 4, shortened(row.name), style, "end")
        if np.isfinite(row.low):
            picture.rectangle(float(x(row.low)), y - 2, float(x(row.high)), y + 2, style, 0.45,
                              f"{row.name}: {number(row.low)} to {number(row.high)}")
        picture.dot(float(x(row.point)), y, 4, style, f"{row.name}: {number(row.point)}")
        picture.text(frame.right + 8, y + 4, number(row.point), "muted")
    return str(picture)


def critical_difference(title: str, below: str, names: list[str], styles: list[str],
                        ranks: np.ndarray, groups: list[list[int]]) -> str:
    """Mean ranks, the best on top; a bar on the right joins those that are not distinguished."""
    order = [int(i) for i in np.argsort(ranks, kind="stable")]
    place = {algorithm: row for row, algorithm in enumerate(order)}
    groups = sorted((sorted(place[i] for i in group) for group in groups if len(group) > 1),
                    key=min)
    columns = _free_columns(groups)
    bars = 10.0 * (max(columns, default=-1) + 1) + 14
    top = _top(below)
    frame = Frame(NAME, top, WIDTH - 52 - bars, top + ROW * len(names) + 6)
    picture = Picture(frame.bottom + 46, title, below)
    x = Axis(1, max(len(names), 2), frame.left, frame.right)
    picture.bottom_axis(frame, x, "mean rank (1 = best)")
    rows = [frame.top + ROW * (i + 0.5) + 3 for i in range(len(order))]
    for y, i in zip(rows, order):
        style = _row_style(styles[i])
        picture.text(frame.left - 8, y + 4, shortened(names[i]), style, "end")
        picture.dot(float(x(ranks[i])), y, 4.5, style, f"{names[i]}: mean rank {ranks[i]:.2f}")
        picture.text(frame.right + 8, y + 4, f"{ranks[i]:.2f}", "muted")
    for column, group in zip(columns, groups):
        across = frame.right + 54 + 10 * column
        picture.line(across, rows[group[0]], across, rows[group[-1]], "line c0", 3)
        for row in group:
            picture.dot(across, rows[row], 3.2, "fill c0")
    return str(picture)


def _free_columns(groups: list[list[int]]) -> list[int]:
    """For each group of rows, by first row, the leftmost column where no earlier one is beside
    it."""
    ends: list[int] = []  # last row taken in each column
    columns = []
    for group in groups:
        column = next((i for i, end in enumerate(ends) if end < group[0]), len(ends))
        ends[column:column + 1] = [group[-1]]
        columns.append(column)
    return columns


def matrix(title: str, below: str, names: list[str], values: np.ndarray, clear: np.ndarray) -> str:
    """A square for each pair: blue where the row is better (value above 0.5), orange where the
    column is; a dot where that is not clear. Few algorithms: with numbers."""
    cell = min(44.0, (WIDTH - NAME - 30 - 8) / len(names))
    left, top = NAME + 30, _top(below) + 14
    picture = Picture(top + cell * len(names) + 16, title, below)
    for i, name in enumerate(names):
        y = top + cell * (i + 0.5) + 4
        picture.text(NAME, y, shortened(name), "ink", "end")
        picture.text(left - 6, y, str(i + 1), "muted", "end", 11)
        picture.text(left + cell * (i + 0.5), top - 5, str(i + 1), "muted", "middle",
                     min(11, 0.6 * cell))
        for j, other in enumerate(names):
            if i == j:
                continue
            value = values[i, j]
            x, upper = left + cell * j, top + cell * i
            words = f"{name} against {other}: {value:.3f}" + ("" if clear[i, j] else ", not clear")
            picture.rectangle(x + 0.5, upper + 0.5, x + cell - 0.5, upper + cell - 0.5,
                              "fill c0" if value > 0.5 else "fill c1",
                              0.06 + 1.6 * abs(value - 0.5), words)
            if cell > 30:
                picture.text(x + cell / 2, upper + cell / 2 + 4, f"{value:.2f}", "ink halo",
                             "middle", 11.5)
            if not clear[i, j]:
                picture.dot(x + cell / 2, upper + cell * (0.5 if cell <= 30 else 0.82), 1.7, "ink")
    return str(picture)


@dataclasses.dataclass(frozen=True)
class Plane:
    """Two objectives as axes: points are in minimisation form, axes in the objectives' senses."""

    objectives: list  # two of digest.Objective
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


def plane(objectives: list, points: np.ndarray) -> Plane:
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
             reference: np.ndarray | None, front: np.ndarray) -> str:
    """A small picture for each algorithm: its surfaces, dashed the reference's, dots the front."""
    across = 3 if len(panels) > 2 else len(panels)
    gap, left, high = 14.0, 46.0, 118.0
    wide = (WIDTH - left - 10 - gap * (across - 1)) / across
    top = _top(below) + 24
    num_rows = -(-len(panels) // across)
    picture = Picture(top + num_rows * (high + 30) + 24, title, below)
    picture.text(10, top - 20, f"{on.objectives[1].quantity}, over {on.objectives[0].quantity}", "ink")
    for i, panel in enumerate(panels):
        row, column = divmod(i, across)
        x, y = left + column * (wide + gap), top + row * (high + 30) + 14
        frame = Frame(x, y, x + wide, y + high)
        axes = on.axes(frame)
        last = i + across >= len(panels)
        _small_axes(picture, frame, axes, column == 0, last)
        drawn = "plain" if panel.style in ("other", "reference") else panel.style
        picture.text(x, y - 4, shortened(panel.name), _row_style(panel.style))
        if len(panel.quarter) and len(panel.three_quarters):
            picture.area(on.staircase(frame, panel.quarter)
                         + on.staircase(frame, panel.three_quarters)[::-1], drawn, 0.22)
        if reference is not None and len(reference):
            picture.path(on.staircase(frame, reference), "reference", 1.1)
        if len(panel.half):
            picture.path(on.staircase(frame, panel.half), drawn, 1.8)
        for place in on.place(frame, front):
            picture.dot(*place, 1.6, "ink")
    return str(picture)


def _small_axes(picture: Picture, frame: Frame, axes: tuple[Axis, Axis], left: bool, bottom: bool):
    """Three grid lines per side, with values only where they are wanted."""
    for axis, upright in zip(axes, (True, False)):
        ticks = axis.ticks()
        for tick in ticks[::max(1, -(-len(ticks) // 3))]:
            place = float(axis(tick))
            if upright:
                picture.line(place, frame.top, place, frame.bottom, "grid")
                if bottom:
                    picture.text(place, frame.bottom + 14, _tick(tick), "muted", "middle", 11)
            else:
                picture.line(frame.left, place, frame.right, place, "grid")
                if left:
                    picture.text(frame.left - 5, place + 4, _tick(tick), "muted", "end", 11)


def difference(title: str, below: str, on: Plane, names: tuple[str, str], low: np.ndarray,
               high: np.ndarray, share: np.ndarray, front: np.ndarray) -> str:
    """Where one algorithm attains points more often than another, in steps of a fifth.

    @param names     the algorithm, and the one it is compared with.
    @param low, high (n, 2) lower left and upper right corners of rectangles.
    @param share     (n,) differences of shares in [-1, 1], positive where the first does.
    """
    frame = Frame(58, _top(below) + 44, WIDTH - 18, _top(below) + 344)
    picture = Picture(frame.bottom + 46, title, below)
    across, up = on.axes(frame)
    x = frame.left - 46
    for name, style in zip(names, ("c0", "c1")):
        picture.rectangle(x, frame.top - 40, x + 14, frame.top - 28, f"fill {style}")
        picture.text(x + 20, frame.top - 30, f"{shortened(name)} more often", f"fill {style}")
        x += 44 + LETTER * (len(shortened(name)) + 11)
    picture.left_axis(frame, up, on.objectives[1].quantity)
    picture.bottom_axis(frame, across, on.objectives[0].quantity)
    steps = np.round(share * 5).astype(int)
    corners = zip(on.place(frame, low), on.place(frame, high), steps)
    for (x1, y1, x2, y2, step) in _joined([(*a, *b, step) for a, b, step in corners if step]):
        picture.rectangle(x1, y1, x2, y2, "fill c0" if step > 0 else "fill c1",
                          abs(step) / 5, f"{step / 5:+.0%}")
    for place in on.place(frame, front):
        picture.dot(*place, 2.6, "ink")
    return str(picture)


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
