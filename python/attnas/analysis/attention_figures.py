"""Pictures of attention: maps, distances, statistics by layer, gates."""

from __future__ import annotations

import math

import numpy as np

from attnas.analysis.attention import Analysis, Gate, Layer, Statistic
from attnas.analysis.svg import HALF, Axis, Figure, Frame, Picture, linear
from attnas.analysis.words import digits

# The least sizes of weights that are drawn in one depth of colour, and how deep: half a power of
# ten each.
LEVELS = [(10.0 ** (-3 + step / 2), 0.14 + 0.86 * step / 5) for step in range(6)]
MOST_CELLS = 64  # of a map's side; larger maps are drawn by the largest weight of a block


def blocks(weights: np.ndarray, most: int = MOST_CELLS) -> np.ndarray:
    """A map (T, T) with at most so many cells a side: of each block the weight that is largest in
    size, with its sign, so that lines as thin as a token remain."""
    size = -(-len(weights) // most)
    sides = -(-len(weights) // size)
    padded = np.zeros((sides * size, sides * size))
    padded[:len(weights), :len(weights)] = weights
    cells = padded.reshape(sides, size, sides, size).swapaxes(1, 2).reshape(sides, sides, -1)
    largest = np.abs(cells).argmax(axis=2)
    return np.take_along_axis(cells, largest[..., None], axis=2)[..., 0]


def levels(weights: np.ndarray) -> np.ndarray:
    """The depth of colour of each weight, 1 .. len(LEVELS), with the weight's sign; 0: too small to
    be drawn."""
    depth = np.searchsorted([least for least, _ in LEVELS], np.abs(weights), side="right")
    return np.where(weights < 0, -depth, depth)


def _runs(row: np.ndarray) -> list[tuple[int, int, int]]:
    """Equal neighbours of a row: (level, first, number)."""
    edges = np.flatnonzero(np.diff(row)) + 1
    starts = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [len(row)]])
    return [(int(row[start]), int(start), int(end - start)) for start, end in zip(starts, ends)
            if row[start]]


def _draw_map(picture: Picture, weights: np.ndarray, x: float, y: float, side: float,
              words: str) -> None:
    picture.rectangle(x, y, side, side, "band", words)
    depth = levels(blocks(weights))
    cell = side / len(depth)
    paths: dict[int, list[str]] = {}
    for i, row in enumerate(depth):
        for level, first, number in _runs(row):
            paths.setdefault(level, []).append(
                f"M{x + first * cell:.1f} {y + i * cell:.1f}h{number * cell:.1f}v{cell:.2f}"
                f"h{-number * cell:.1f}z")
    for level in sorted(paths):
        picture.add("path", d="".join(paths[level]), class_="fill c0" if level > 0 else "fill c1",
                    fill_opacity=LEVELS[abs(level) - 1][1], pointer_events="none")


def maps(analysis: Analysis, below: str) -> Figure:
    """Each head's map of one sequence: rows are queries, columns keys; colour by the logarithm of
    the weight, orange where it is negative."""
    title = f"Maps of {analysis.label}"
    layers = [layer for layer in analysis.attention if layer.maps.size]
    most = max((len(layer.maps) for layer in layers), default=1)

    def draw(width: float) -> Picture:
        across = min(most, 8 if width >= HALF else 3)
        left, gap = 26.0, 8.0
        side = min(150.0, (width - left - 6 - gap * (across - 1)) / across)
        lines = [-(-len(layer.maps) // across) for layer in layers]
        picture = Picture(width, 50 + sum(18 + n * (side + gap) for n in lines), title)
        y = 4.0
        for layer, n in zip(layers, lines):
            picture.text(4, y + 12, f"layer {layer.index}", "muted tiny")
            y += 18
            for h, given in enumerate(layer.maps):
                weights = given / (np.nan_to_num(np.abs(given)).max()
                                   or 1.0) if layer.recurrent else given
                row, column = divmod(h, across)
                _draw_map(picture, weights, left + column * (side + gap), y + row * (side + gap),
                          side, _head_words(layer.statistics, layer.index, h))
            y += n * (side + gap)
        picture.text(left, y + 18, "weights from", "muted tiny")
        for i, (least, opacity) in enumerate(LEVELS):
            x, row = (left + 82 + 58 * i, y) if width >= HALF else (left + 52 * i, y + 20)
            picture.rectangle(x, row + 8, 12, 12, "fill c0", fill_opacity=opacity)
            picture.text(x + 15, row + 18, f"{least:.2g}", "muted tiny")
        return picture

    return Figure(draw, below, title, HALF)


def _head_words(statistics: dict[str, Statistic], layer: int, head: int) -> str:
    lines = [f"layer {layer}, head {head}"]
    for name in ("entropy_ratio", "sink_mass", "mean_distance", "previous_token", "induction"):
        if name in statistics and head < len(statistics[name].heads):
            lines.append(f"{name.replace('_', ' ')} {digits(statistics[name].heads[head].mean)}")
    return "\n".join(lines)


def profiles(layer: Layer) -> Figure:
    """Mean weight by distance of one layer, both axes logarithmic: thin lines are heads."""
    title = f"Weight by distance, layer {layer.index}"
    values = layer.profile[:, 1:]
    values = values[np.isfinite(values) & (values > 0)]
    farthest = layer.profile.shape[1] - 1
    high = float(values.max()) if len(values) else 1.0
    low = max(float(values.min()), 1e-6 * high) if len(values) else 1e-3

    def draw(width: float) -> Picture:
        frame = Frame(62, 30, width - 16, 270)
        picture = Picture(width, frame.bottom + 46, title)
        y = Axis(low / 1.2, high * 1.2, logarithmic=True)
        x = Axis(1.0, float(max(farthest, 2)), logarithmic=True)
        picture.left_axis(frame, y, "mean |weight|")
        picture.bottom_axis(frame, x, "distance in tokens", grid=True)
        for h, head in enumerate(layer.profile):
            _curve(picture, x, y, head, f"layer {layer.index}, head {h}", 0.8)
        _curve(picture, x, y, layer.profile.mean(axis=0), "mean over heads", 2.6)
        return picture

    return Figure(draw, "Thick: mean over heads. Weights below a millionth of the largest lie on "
                  "the frame.", title, HALF)


def _curve(picture: Picture, x: Axis, y: Axis, values: np.ndarray, name: str, thick: float) -> None:
    points = [(x(float(n)), y(float(value))) for n, value in enumerate(values)
              if n > 0 and math.isfinite(value) and value > 0]
    if points:
        picture.path(points, "stroke c0", name,
                     style=f"stroke-width: {thick}" + ("; opacity: 0.55" if thick < 1 else ""))


def by_layer(analysis: Analysis, name: str, title: str, below: str,
             ends: tuple[float, float] | None = None) -> Figure:
    """A statistic of every layer: bars are 95 % intervals of the mean over heads, small dots the
    heads."""
    rows = [(layer.index, layer.statistics[name]) for layer in analysis.attention
            if name in layer.statistics]
    values = [value for _, each in rows for value in
              (each.layer.low, each.layer.high, *(head.mean for head in each.heads))]

    def draw(width: float) -> Picture:
        frame = Frame(58, 30, width - 16, 240)
        picture = Picture(width, frame.bottom + 46, title)
        y = Axis(*ends) if ends else linear(values)
        x = Axis(-0.5, max((index for index, _ in rows), default=0) + 0.5, whole=True)
        picture.left_axis(frame, y, "")
        picture.bottom_axis(frame, x, "layer")
        for index, each in rows:
            across = x(float(index))
            for h, head in enumerate(each.heads):
                if math.isfinite(head.mean):
                    picture.dot(across + 5, y(head.mean), 2.0, "fill c0",
                                f"layer {index}, head {h}: {digits(head.mean)}")
            if math.isfinite(each.layer.low):
                picture.line(across, y(each.layer.low), across, y(each.layer.high),
                             "stroke c0", style="stroke-width: 3")
            if math.isfinite(each.layer.mean):
                picture.dot(across, y(each.layer.mean), 4, "fill c0",
                            f"layer {index}: {digits(each.layer.mean)}")
        return picture

    return Figure(draw, below, title, HALF)


def gate_histogram(analysis: Analysis, layer: int, gate: Gate) -> Figure:
    """How often a gate has which value, a mean over heads."""
    title = f"{gate.name.replace('_', ' ')} of layer {layer}, {analysis.label}"
    shares = gate.histogram.mean(axis=0)

    def draw(width: float) -> Picture:
        frame = Frame(58, 30, width - 16, 200)
        picture = Picture(width, frame.bottom + 46, title)
        y = Axis(0.0, max(float(shares.max()) * 1.08, 1e-3))
        x = Axis(0.0, 1.0)
        picture.left_axis(frame, y, "share", most=4)
        picture.bottom_axis(frame, x, "gate, 0 shut to 1 open")
        for i, share in enumerate(shares):
            start, end = x(i / len(shares)), x((i + 1) / len(shares))
            picture.rectangle(start + 0.5, y(float(share)), end - start - 1,
                              frame.bottom - y(float(share)), "fill c0",
                              f"{i / len(shares):.2f} to {(i + 1) / len(shares):.2f}: "
                              f"{100 * share:.1f} %")
        return picture

    return Figure(draw, "", title, HALF)
