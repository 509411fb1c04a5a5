"""How well a search did while it went on: its regret, or the hypervolume of its front, and what it
believed.
"""

import dataclasses

import numpy as np

from . import anytime, belief, indicators, replay, stores


@dataclasses.dataclass(frozen=True)
class Trace:
    """One search as it is judged: an entry for each ask, and its end."""

    seed: int
    trained: np.ndarray
    seconds: np.ndarray
    gap: np.ndarray
    believed: np.ndarray  # value of the incumbent, minimisation form; or relative hypervolume
    # The incumbent, or the front, at the end: what the searcher believes of it, what it could
    # expect (mean of all replicates that it might have seen; nan = not recorded), what is true.
    end_believed: float
    end_expected: float
    end_true: float
    # The same by what the search has not seen, the other replicates of a table or the re-test of a
    # run: mean of the incumbent in minimisation form, or gap of the front; nan = it saw all of one
    # of them, or they are not known. Of a table's searches that found nothing that of a failure.
    end_unseen: float
    everything: float  # gap of everything evaluated; nan without ground truth
    chosen: tuple[int, ...]  # the candidates returned; none where nothing was measured
    seen: tuple[int, ...]  # evaluations of each of them that were charged
    front: np.ndarray  # (n, m) true values (else measured ones) of what is returned; several
    repeated: float  # share of the asks for a candidate that was asked for before
    asked: int
    search_seconds: float  # the algorithm's own time; nan = not recorded
    recycled: int  # evaluations beyond a table's replicates, which met one of them again

    def hits(self, targets: np.ndarray) -> np.ndarray:
        """Training runs after which the gap stays at or below each target; NaN where it never does.
        An incumbent that is abandoned later has reached nothing."""
        return anytime.first_hits(self.trained, anytime.worst_to_come(self.gap), targets)


def judge_of(searches: stores.Searches):
    """A function from a search to its trace."""
    return (_judge_of_fronts if len(searches.objectives) > 1 else _judge_of_values)(searches)


def _common(search: stores.Search) -> dict:
    asked = len(search.candidates)
    charged = np.bincount(search.candidates, search.charged)
    recycled = np.maximum(charged - search.replicates, 0).sum() if search.replicates else 0
    return {"recycled": int(recycled), "seed": search.seed, "trained": search.trained,
            "seconds": search.seconds, "repeated": 1.0 - len(np.unique(search.candidates)) / asked,
            "search_seconds": search.search_seconds, "asked": asked}


def _judge_of_values(searches: stores.Searches):
    truth, expected = searches.candidates.truth, searches.candidates.believed
    unseen = None if truth is None else replay.unseen(searches)
    penalty = searches.objectives[0].penalty
    if truth is None:
        optimum = min(float(search.believed.min()) for search in searches.searches)
    else:
        optimum = float(truth.min())

    def judge(search: stores.Search) -> Trace:
        seen = search.believed[:, 0]
        leaders = belief.incumbents(search.candidates, seen)
        believed = np.where(leaders < 0, np.inf, seen[leaders])
        values = believed if truth is None else search.truth[leaders, 0]
        values = np.where((leaders < 0) | ~np.isfinite(values), penalty, values)
        last = leaders[-1]
        winner = search.candidates[last]
        charged = int(search.charged[search.candidates == winner].sum())
        return Trace(
            gap=values - optimum, believed=believed,
            end_believed=penalty if last < 0 else float(believed[-1]),
            end_expected=np.nan if expected is None or last < 0 else float(expected[winner, 0]),
            end_true=np.nan if truth is None else float(values[-1]),
            end_unseen=(penalty if unseen else np.nan)
            if last < 0 else float(unseen.means(search.seed, (int(winner), ), (charged, ))[0, 0]) if
            unseen else float(search.retested[winner][0]) if winner in search.retested else np.nan,
            everything=np.nan if truth is None else float(search.truth[:, 0].min() - optimum),
            chosen=() if last < 0 else (int(winner), ), seen=() if last < 0 else (charged, ),
            front=np.empty((0, 1)), **_common(search))

    return judge


def _judge_of_fronts(searches: stores.Searches):
    truth, expected = searches.candidates.truth, searches.candidates.believed
    reference = np.full(len(searches.objectives), searches.reference_point)

    def volume(points):
        return indicators.hypervolume(searches.scaled(points), reference)

    if truth is None:
        seen = np.concatenate([search.believed for search in searches.searches])
        whole = whole_believed = volume(seen)
    else:
        whole = volume(truth)
        whole_believed = whole if expected is None else volume(expected)
    if min(whole, whole_believed) <= 0:
        raise stores.StoreError("nothing is better than the hypervolume's reference point: the "
                                "recorded ranges of the objectives do not fit their values")

    unseen = None if truth is None else replay.unseen(searches)
    known: dict[tuple[int, ...], float] = {(): 0.0}

    def true_volume(front: tuple[int, ...]) -> float:
        if front not in known:
            known[front] = volume(truth[list(front)])
        return known[front]

    def unseen_gap(search: stores.Search, chosen: tuple[int, ...], seen: tuple[int, ...]) -> float:
        if not chosen:
            return 1.0 if unseen else np.nan
        if unseen:
            means = unseen.means(search.seed, chosen, seen)
        else:
            means = np.array(
                [search.retested.get(one, np.full(len(reference), np.nan)) for one in chosen])
        return float(1.0 - volume(means) / whole) if np.isfinite(means).all() else np.nan

    def judge(search: stores.Search) -> Trace:
        after_asks = search.believed
        believed = belief.hypervolumes(search.candidates, searches.scaled(after_asks), reference)
        fronts = list(belief.fronts(search.candidates, after_asks))
        chosen = tuple(map(int, fronts[-1]))
        charged = np.bincount(search.candidates, search.charged)
        seen = tuple(int(charged[one]) for one in chosen)
        if truth is None:
            reached, everything = believed, np.nan
            last = dict(zip(search.candidates.tolist(), after_asks))
            front = np.array([last[one] for one in chosen]).reshape(-1, len(reference))
        else:
            reached, front = np.array([true_volume(front) for front in fronts]), truth[list(chosen)]
            everything = float(without_rounding(1.0 - volume(search.truth) / whole))
        return Trace(gap=without_rounding(1.0 - reached / whole),
                     believed=believed / whole_believed,
                     end_believed=float(believed[-1] / whole_believed),
                     end_expected=np.nan if expected is None
                     else volume(expected[list(chosen)]) / whole_believed,
                     end_true=np.nan if truth is None else float(reached[-1] / whole),
                     end_unseen=unseen_gap(search, chosen, seen),
                     everything=everything, chosen=chosen, seen=seen,
                     front=front, **_common(search))

    return judge


def without_rounding(gap: np.ndarray) -> np.ndarray:
    """Gaps that are 0 but for rounding become 0, so that the last target can be hit."""
    return np.where(gap < 1e-12, 0.0, gap)
