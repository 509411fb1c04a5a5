"""The empirical attainment function of searches with two objectives, both minimised.

A set attains a point that one of its points weakly dominates. The empirical attainment function is
the share of the sets that attain a point (Grunert da Fonseca, Fonseca & Hall 2001; Lopez-Ibanez,
Paquete & Stuetzle 2010).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .indicators import non_dominated, point_matrix


class Rectangles(NamedTuple):
    """Disjoint rectangles, each with one number."""

    lower: np.ndarray  # (r, 2) corners at the lower left, which belong to the rectangles
    upper: np.ndarray  # (r, 2) corners at the upper right, which do not; inf: without end
    difference: np.ndarray  # (r,) in [-1, 1], never 0


def attainment_surface(sets: Sequence[ArrayLike], share: float) -> np.ndarray:
    """Corners of the surface that a share of the sets attains, as a (c, 2) array.

    The region above and to the right of the corners is what at least ceil(share * sets) of the
    sets attain: share 0.5 is the median surface, 1 the worst. The first objective ascends; no
    corner where too few sets have any point. ValueError unless share is in (0, 1].
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"attainment_surface: share = {share}, must be in (0, 1]")
    fronts = _fronts(sets)
    # 0.07 * 100 is 7.000000000000001 in binary, which must not ask for eight sets.
    level = max(int(np.ceil(share * len(fronts) - 1e-9)), 1)
    columns = _columns(fronts)
    height = np.partition(_heights(fronts, columns), level - 1, axis=0)[level - 1]
    corner = height < np.append(np.inf, height[:-1])
    return np.column_stack([columns[corner], height[corner]])


def attainment_difference(a: Sequence[ArrayLike], b: Sequence[ArrayLike]) -> Rectangles:
    """Where the share of a's sets that attain a point differs from that of b's, and by how much.

    Positive: a attains it more often, a is better there. The rectangles cover exactly the region
    of a difference. Their number can reach the number of different first coordinates times that of
    sets: meant for tens of searches with own values, or thousands on a table.
    """
    fronts_a, fronts_b = _fronts(a), _fronts(b)
    size_a, size_b = len(fronts_a), len(fronts_b)
    columns = _columns(fronts_a + fronts_b)
    heights = _heights(fronts_a + fronts_b, columns)
    steps = np.repeat([size_b, -size_a], [size_a, size_b])  # whole numbers: equal is equal
    ends = np.append(columns[1:], np.inf)
    rows = np.vstack([_column_of_rectangles(left, right, height, steps)
                      for left, right, height in zip(columns, ends, heights.T, strict=True)])
    lower, upper, difference = _joined(rows)
    return Rectangles(lower, upper, difference / (size_a * size_b))


def _fronts(sets: Sequence[ArrayLike]) -> list[np.ndarray]:
    """The non-dominated points of every set, first objective ascending."""
    if len(sets) == 0:
        raise ValueError("no set of points, must be at least one")
    fronts = []
    for points in sets:
        points = point_matrix(points, 2)
        front = points[non_dominated(points)]
        fronts.append(front[np.argsort(front[:, 0])])
    return fronts


def _columns(fronts: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate([front[:, 0] for front in fronts]))


def _heights(fronts: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """(sets, columns): the best second objective of a set up to a first objective, or inf."""
    return np.vstack([np.append(np.inf, front[:, 1])[np.searchsorted(front[:, 0], columns, "right")]
                      for front in fronts])


def _column_of_rectangles(left: float, right: float, heights: np.ndarray,
                          steps: np.ndarray) -> np.ndarray:
    """Rows (left, bottom, right, top, difference) of one column, bottom to top.

    A set adds its step to the difference from its height upwards.
    """
    levels, where = np.unique(heights, return_inverse=True)
    difference = np.cumsum(np.bincount(where, weights=steps))
    sides = np.broadcast_to([left, right], (len(levels), 2))
    rows = np.column_stack([sides[:, 0], levels, sides[:, 1], np.append(levels[1:], np.inf),
                            difference])
    return rows[(difference != 0) & (levels < np.inf)]


def _joined(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners and differences of the rows, neighbours in a line with one difference made one."""
    left, bottom, right, top, difference = rows[np.lexsort(rows[:, [0, 4, 3, 1]].T)].T
    continues = ((left[1:] == right[:-1]) & (bottom[1:] == bottom[:-1])
                 & (top[1:] == top[:-1]) & (difference[1:] == difference[:-1]))
    first = np.append(True, ~continues)[:len(left)]
    last = np.append(~continues, True)[:len(left)]
    return (np.column_stack([left, bottom])[first],
            np.column_stack([right[last], top[first]]), difference[first])
