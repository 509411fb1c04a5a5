"""Pictures of components: how two of them interact, and how a winner came about."""

import dataclasses

import numpy as np

from nas_analysis import figures
from nas_analysis.figures import LETTER, WIDTH, Frame, Picture, number, shortened, wrapped


def interaction(title: str, below: str, rows: list[str], columns: list[str], means: np.ndarray,
                better: np.ndarray) -> str:
    """A square for each pair of options with the mean there.

    @param better  (rows, columns) how much better than the two options' own effects add up to:
        blue above 0, orange below; the deeper, the larger.
    """
    left = 20 + LETTER * max(len(shortened(row)) for row in rows)
    cell = min(84.0, (WIDTH - left - 12) / len(columns))
    high = 34.0
    top = 76.0 + 16.0 * len(wrapped(below))
    picture = Picture(top + high * len(rows) + 14, title, below)
    most = np.abs(better).max() or 1.0
    for j, column in enumerate(columns):
        letters = int(cell / 6.4)
        picture.text(left + cell * (j + 0.5), top - 8, shortened(column, letters), "muted",
                     "middle", 11.5)
    for i, row in enumerate(rows):
        y = top + high * i
        picture.text(left - 8, y + high / 2 + 4, shortened(row), "ink", "end")
        for j, column in enumerate(columns):
            x = left + cell * j
            value = better[i, j]
            picture.rectangle(x + 1, y + 1, x + cell - 1, y + high - 1,
                              "fill c0" if value > 0 else "fill c1", 0.75 * abs(value) / most,
                              f"{row}, {column}: mean {number(means[i, j])}, "
                              f"{number(abs(value))} {'better' if value > 0 else 'worse'} than "
                              "the sum of its parts")
            picture.text(x + cell / 2, y + high / 2 + 4, number(means[i, j]), "ink halo",
                         "middle")
    return str(picture)


@dataclasses.dataclass(frozen=True)
class Ancestor:
    """A mechanism in a winner's line, with what it changed in its parent."""

    ask: int
    generation: int
    value: float  # in the objective's own sense
    words: str


def lineage(title: str, below: str, asks: np.ndarray, values: np.ndarray, y_title: str,
            line: list[Ancestor]) -> str:
    """All asks of a run as dots; a winner's line through them, numbered, and in words below.

    @param asks, values  (n,) number of an ask, and what it measured; not finite: left out. The
        outer 5 % at either side may lie on the frame.
    """
    top = 70.0 + 16.0 * len(wrapped(below))
    frame = Frame(58, top, WIDTH - 18, top + 200)
    picture = Picture(frame.bottom + 56 + 18 * len(line), title, below)
    there = np.isfinite(values)
    usual = np.quantile(values[there], [0.05, 0.95])
    y = figures.linear(np.concatenate([usual, [each.value for each in line]]), frame.bottom,
                       frame.top)
    x = figures.linear(asks, frame.left, frame.right, [float(asks[0])])
    picture.left_axis(frame, y, y_title)
    picture.bottom_axis(frame, x, "ask")
    for ask, value in zip(asks[there], values[there]):
        picture.dot(float(x(ask)), float(y(value)), 2.2, "fill other")
    points = [(float(x(each.ask)), float(y(each.value))) for each in line]
    picture.path(points, "c0", 1.8)
    for i, (each, (across, up)) in enumerate(zip(line, points)):
        picture.dot(across, up, 4, "fill c0", f"ask {each.ask}: {number(each.value)}")
        picture.text(across, up - 8, str(i + 1), "fill c0 halo", "middle", 11.5)
        picture.text(10, frame.bottom + 56 + 18 * i,
                     f"{i + 1}. generation {each.generation}, {number(each.value)}: {each.words}",
                     "ink", size=11.5)
    return str(picture)
