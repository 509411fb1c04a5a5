"""What a search believes of its candidates, as src/search/belief.hpp has it: of each the latest
usable answer, which is the mean over all that is known; where every ask trained it afresh and
answered by that alone (evaluation.repeated = retrain), the mean over its usable answers.
"""

from collections.abc import Iterable

import numpy as np

from .indicators import anytime_hypervolume, hypervolume


def repeats_alone(evaluation: dict) -> bool:
    """Whether a section `evaluation` makes every ask a training of its own."""
    return evaluation.get("repeated") == "retrain"


def beliefs(candidates: Iterable, answers: np.ndarray, mean: bool) -> np.ndarray:
    """After every ask what is believed of the candidate asked for, (n, m); inf while nothing is.

    @param answers  (n, m), inf where nothing could be measured.
    @param mean     whether answers are independent of each other.
    """
    usable = np.isfinite(answers).all(axis=1)
    if usable.all() and not mean:
        return answers
    result = np.full(answers.shape, np.inf)
    known: dict = {}
    for i, candidate in enumerate(candidates):
        count, belief = known.get(candidate, (0, result[i]))
        if usable[i]:
            count += 1
            belief = belief + (answers[i] - belief) / count if mean and count > 1 else answers[i]
            known[candidate] = count, belief
        result[i] = belief
    return result


def latest(candidates: Iterable, believed: np.ndarray) -> tuple[list, np.ndarray]:
    """All candidates in the order in which they came, and what is believed of each at the end."""
    last = {candidate: i for i, candidate in enumerate(candidates)}
    return list(last), believed[list(last.values())]


def hypervolumes(candidates: Iterable, believed: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Hypervolume after every ask of what is believed by then, (n,): it falls where a belief does.

    @param believed  (n, m) scaled.
    """
    numbers = np.unique(list(candidates), return_inverse=True)[1]
    first = np.unique(numbers, return_index=True)[1]
    if np.array_equal(believed, believed[first][numbers]):  # nothing is replaced
        return anytime_hypervolume(believed, reference)
    points = np.full((len(first), believed.shape[1]), np.inf)
    volumes = []
    for number, point in zip(numbers, believed):
        points[number] = point
        volumes.append(hypervolume(points, reference))
    return np.array(volumes)
