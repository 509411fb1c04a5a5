"""Performance over the budget: what a search has reached by when, and when it reaches what.

x is what a search has spent so far (evaluations, training runs, seconds, joules), ascending,
equal values allowed; y is a value to minimise, such as the hypervolume missing to a reference set.
"""

import numpy as np
from numpy.typing import ArrayLike


def best_so_far(values: ArrayLike) -> np.ndarray:
    """Smallest value up to each position of the last axis; NaN until there is one."""
    return np.fmin.accumulate(np.asarray(values, dtype=float), axis=-1)


def worst_to_come(values: ArrayLike) -> np.ndarray:
    """Largest value from each position of the last axis to the end: what stays reached there."""
    return np.maximum.accumulate(np.asarray(values, dtype=float)[..., ::-1], axis=-1)[..., ::-1]


def at_budgets(x: ArrayLike, y: ArrayLike, budgets: ArrayLike) -> np.ndarray:
    """y as a step function of x: the last y with x <= budget for every budget, NaN before x[0].

    y may have further axes behind that of x; the budgets take the place of its first axis.
    """
    y = np.asarray(y, dtype=float)
    unknown = np.full((1, *y.shape[1:]), np.nan)
    return np.concatenate([unknown, y])[np.searchsorted(_ascending(x), budgets, side="right")]


def first_hits(x: ArrayLike, y: ArrayLike, targets: ArrayLike) -> np.ndarray:
    """x at the first y <= target for every target, NaN for a target that is never reached."""
    x = _ascending(x)
    worst_first = -np.nan_to_num(best_so_far(y), nan=np.inf)  # ascending
    first = np.searchsorted(worst_first, -np.asarray(targets, dtype=float), side="left")
    return np.append(x, np.nan)[first]


def expected_running_time(hit_times: ArrayLike,
                          budgets_spent: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Expected running time of a search that restarts until it hits, and the share of successes.

        ERT = (sum of the hit times + sum of what the misses have spent) / number of hits

    in the unit of the hit times; inf where no run hits (Auger & Hansen 2005; COCO, Hansen et al.
    2016).

    hit_times: (runs,) or (runs, targets), NaN for a miss. budgets_spent: a number, or (runs,): what
    a run has spent in all. The two results have one value per target.
    """
    hit_times = np.asarray(hit_times, dtype=float)
    missed = np.isnan(hit_times)
    spent = np.broadcast_to(np.asarray(budgets_spent, dtype=float), hit_times.shape[:1])
    spent = spent.reshape(-1, *[1] * (hit_times.ndim - 1))
    hits = (~missed).sum(axis=0)
    total = np.where(missed, spent, hit_times).sum(axis=0)
    return np.where(hits > 0, total / np.maximum(hits, 1), np.inf), hits / len(hit_times)


def ecdf(hit_times: ArrayLike, budgets: ArrayLike) -> np.ndarray:
    """Share of all pairs of a run and a target that are hit by each budget, in [0, 1].

    hit_times: (runs, targets), NaN for a miss (the runtime profiles of COCO, Hansen et al. 2016).
    """
    hit_times = np.ravel(np.asarray(hit_times, dtype=float))
    hits = np.sort(hit_times[~np.isnan(hit_times)])
    return np.searchsorted(hits, budgets, side="right") / len(hit_times)


def _ascending(x: ArrayLike) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.ndim != 1 or not (x[1:] >= x[:-1]).all():
        raise ValueError(f"what was spent has the shape {x.shape} or falls, must be (n,) ascending")
    return x
