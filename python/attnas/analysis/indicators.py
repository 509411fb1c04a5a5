"""Quality of sets of points in objective space.

Every objective is minimised. A set of points is an (n, m) array, one point per row, m >= 1; the
order of the rows and dominated points change no indicator of a whole set.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike


def point_matrix(points: ArrayLike, num_objectives: int | None = None) -> np.ndarray:
    """The points as an (n, m) array; ValueError where they are none or m is not as asked."""
    array = np.asarray(points, dtype=float)
    if array.size == 0 and array.ndim < 2:
        return np.empty((0, num_objectives or 1))
    if array.ndim != 2 or array.shape[1] != (num_objectives or array.shape[1]):
        columns = "m" if num_objectives is None else num_objectives
        raise ValueError(f"points have the shape {array.shape}, must be (n, {columns})")
    return array


def non_dominated(points: ArrayLike) -> np.ndarray:
    """Mask of the points that no other point dominates; of equal points the first.

    a dominates b where a is nowhere worse and somewhere better. A point with NaN is never chosen.
    Cost: n log n for one or two objectives, n times the size of the front for more.
    """
    points = point_matrix(points)
    mask = np.zeros(len(points), dtype=bool)
    known = np.flatnonzero(~np.isnan(points).any(axis=1))
    order = known[np.lexsort(points[known].T[::-1])]  # a later point dominates no earlier one
    if points.shape[1] <= 2:
        last = points[order, -1]
        mask[order[:1]] = True
        mask[order[1:][last[1:] < np.minimum.accumulate(last)[:-1]]] = True
        return mask
    while len(order):
        mask[order[0]] = True
        order = order[(points[order] < points[order[0]]).any(axis=1)]
    return mask


def hypervolume(points: ArrayLike, reference: ArrayLike) -> float:
    """Volume of the region that points dominate up to a reference point (Zitzler & Thiele 1998).

    Points that are not better than the reference in every objective count nothing. Exact: sweeps
    the last objective and adds up slices of the others' hypervolume. Cost: n log n for two
    objectives, n times the size of the front for three; more are meant for small sets.
    """
    reference = np.asarray(reference, dtype=float)
    points = point_matrix(points, len(reference))
    points = points[(points < reference).all(axis=1)]
    if len(points) == 0:
        return 0.0
    if len(reference) == 1:
        return float(reference[0] - points.min())
    points = points[non_dominated(points)]
    points = points[np.argsort(points[:, -1])]
    slices = anytime_hypervolume(points[:, :-1], reference[:-1])
    return float(slices @ np.diff(points[:, -1], append=reference[-1]))


def anytime_hypervolume(points: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Hypervolume of the first i + 1 points for every i, as an (n,) array.

    What each point adds is its exclusive hypervolume over the front so far (While et al. 2012,
    WFG). Points that are not better than the reference in every objective, or that have NaN, add
    nothing. Cost for two objectives: about a microsecond per point.
    """
    reference = np.asarray(reference, dtype=float)
    points = point_matrix(points, len(reference))
    if len(reference) == 1:
        best = np.fmin.accumulate(points[:, 0])
        return np.where(best < reference[0], reference[0] - best, 0.0)
    added = _staircase_gains if len(reference) == 2 else _exclusive_gains
    return np.cumsum(added(points, reference), dtype=float)


def planar_hypervolumes(points: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Hypervolume of many sets of equally many points with two objectives, (sets,).

    points: (sets, n, 2), n >= 1. Cost: n log n per set, as one operation over all of them.
    """
    right, top = np.asarray(reference, dtype=float)
    points = np.asarray(points, dtype=float)
    order = np.argsort(points[..., 0], axis=1)
    first = np.minimum(np.take_along_axis(points[..., 0], order, axis=1), right)
    second = np.minimum(np.take_along_axis(points[..., 1], order, axis=1), top)
    wide = np.diff(first, axis=1, append=right)
    return (wide * (top - np.minimum.accumulate(second, axis=1))).sum(axis=1)


def _staircase_gains(points: np.ndarray, reference: np.ndarray) -> list[float]:
    """What each point adds to the hypervolume of those before it, for two objectives.

    The front is kept as a staircase: first objective ascending, second descending, between two
    sentinels.
    """
    right, top = reference.tolist()
    firsts, seconds = [-np.inf, right], [top, -np.inf]
    gains = []
    for first, second in points.tolist():
        gain = 0.0
        if first < right and second < top:
            begin = end = bisect_left(firsts, first)
            left, height = first, seconds[begin - 1]
            if second < height:
                while seconds[end] >= second:
                    gain += (firsts[end] - left) * (height - second)
                    left, height = firsts[end], seconds[end]
                    end += 1
                gain += (firsts[end] - left) * (height - second)
                firsts[begin:end] = [first]
                seconds[begin:end] = [second]
        gains.append(gain)
    return gains


def _exclusive_gains(points: np.ndarray, reference: np.ndarray) -> list[float]:
    """What each point adds to the hypervolume of those before it, for any number of objectives."""
    front = np.empty((0, len(reference)))
    gains = []
    for point in points:
        gain = 0.0
        if (point < reference).all() and not (front <= point).all(axis=1).any():
            shared = hypervolume(np.maximum(front, point), reference)
            gain = float(np.prod(reference - point)) - shared
            front = np.vstack([front[~(front >= point).all(axis=1)], point])
        gains.append(gain)
    return gains
