"""What a search of a comparison believes of its candidates, as src/search/belief.hpp has it (of a
run its digest says so), and what a search returns.

Of each candidate it believes the latest answer, which is the mean over all that is known, and
nothing where that is a failure; where every ask trained it afresh and answered by that alone
(evaluation.repeated = retrain), the mean over its usable answers; where a comparison says so
(belief = best_answer), the best of them.

It returns, with one objective, the candidate that it believes best, of equal ones the one that
it asked for first; with several objectives the candidates on the front of what it believes.
"""

import heapq
from collections.abc import Iterable, Iterator

import numpy as np

from .indicators import anytime_hypervolume, hypervolume, non_dominated

LATEST, MEAN, BEST = "latest", "mean", "best"


def rule(evaluation: dict, chosen: str = "") -> str:
    """What a search believes of a candidate: LATEST, MEAN or BEST of its answers.

    @param evaluation  its section `evaluation`.
    @param chosen      its setting `belief`, if it has one.
    """
    if chosen == "best_answer":
        return BEST
    return MEAN if evaluation.get("repeated") == "retrain" else LATEST


def beliefs(candidates: Iterable, answers: np.ndarray, by: str) -> np.ndarray:
    """After every ask what is believed of the candidate asked for, (n, m); inf while nothing is.

    @param answers  (n, m), inf where nothing could be measured; m = 1 for BEST.
    @param by       LATEST, MEAN or BEST.
    """
    usable = np.isfinite(answers).all(axis=1)
    if usable.all() and by == LATEST:
        return answers
    result = np.full(answers.shape, np.inf)
    known: dict = {}
    for i, candidate in enumerate(candidates):
        count, belief = known.get(candidate, (0, result[i]))
        if usable[i]:
            count += 1
            if by == BEST:
                belief = np.minimum(belief, answers[i])
            elif by == MEAN and count > 1:
                belief = belief + (answers[i] - belief) / count
            else:
                belief = answers[i]
            known[candidate] = count, belief
        elif by == LATEST:
            known.pop(candidate, None)
            belief = np.full(answers.shape[1], np.inf)
        result[i] = belief
    return result


def incumbents(candidates: np.ndarray, believed: np.ndarray) -> np.ndarray:
    """After every ask the ask whose candidate is believed best: position of its latest answer.

    A later belief replaces what was believed of a candidate, so that an incumbent can lose its
    place. -1 while nothing finite was answered. Cost: n log n.

    @param believed  (n,) of the candidates asked for, after each ask.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    # value, first ask, ask, candidate; what was replaced, too
    heap: list[tuple[float, int, int, int]] = []
    result = []
    for i, (candidate, value) in enumerate(zip(candidates.tolist(), believed.tolist())):
        last[candidate] = i
        asked = first.setdefault(candidate, i)
        if value < np.inf:
            heapq.heappush(heap, (value, asked, i, candidate))
        while heap and last[heap[0][3]] != heap[0][2]:
            heapq.heappop(heap)
        result.append(heap[0][2] if heap else -1)
    return np.array(result)


def fronts(candidates: np.ndarray, believed: np.ndarray) -> Iterator[tuple[int, ...]]:
    """After every ask the candidates on the front of what is believed by then, in the order in
    which they came; of equal points the first. The same object while nothing changes.

    @param believed  (n, m) of the candidates asked for, after each ask.
    """
    def covers(a, b):
        return all(x <= y for x, y in zip(a, b))

    known: dict[int, tuple[float, ...]] = {}
    front: tuple[int, ...] = ()
    for candidate, point in zip(candidates.tolist(), map(tuple, believed.tolist())):
        if known.get(candidate) != point and np.inf not in point:
            new = candidate not in known
            known[candidate] = point
            if not new:
                points = np.array(list(known.values()))
                front = tuple(np.array(list(known))[non_dominated(points)].tolist())
            elif not any(covers(known[other], point) for other in front):
                front = (*(other for other in front if not covers(point, known[other])), candidate)
        yield front


def latest(candidates: Iterable, believed: np.ndarray) -> tuple[list, np.ndarray]:
    """All candidates in the order in which they came, and what is believed of each at the end."""
    last = {candidate: i for i, candidate in enumerate(candidates)}
    return list(last), believed[list(last.values())]


def hypervolumes(candidates: Iterable, believed: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Hypervolume after every ask of what is believed by then, (n,): it falls where a belief does.

    @param believed  (n, m) scaled.
    """
    known: dict = {}
    numbers = np.array([known.setdefault(candidate, len(known)) for candidate in candidates],
                       dtype=np.int64)
    first = np.unique(numbers, return_index=True)[1]
    if np.array_equal(believed, believed[first][numbers]):  # nothing is replaced
        return anytime_hypervolume(believed, reference)
    points = np.full((len(first), believed.shape[1]), np.inf)
    volumes = []
    for number, point in zip(numbers, believed):
        points[number] = point
        volumes.append(hypervolume(points, reference))
    return np.array(volumes)
