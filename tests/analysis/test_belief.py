"""Beliefs of searches, by hand: reused, replicated and retrained candidates."""

import unittest

import numpy as np
from attnas.analysis.belief import BEST, LATEST, MEAN, beliefs, fronts, hypervolumes, incumbents, latest

INF = np.inf
ASKED = ["a", "b", "a", "a", "b"]
ANSWERS = np.array([[9.0], [5.0], [INF], [1.0], [7.0]])


class Beliefs(unittest.TestCase):
    def test_the_latest_answer_and_nothing_after_a_failure(self):
        self.assertEqual(beliefs(ASKED, ANSWERS, LATEST)[:, 0].tolist(), [9, 5, INF, 1, 7])

    def test_the_mean_where_answers_are_independent(self):
        believed = beliefs(ASKED, ANSWERS, MEAN)
        self.assertEqual(believed[:, 0].tolist(), [9, 5, 9, 5, 6])
        names, at_end = latest(ASKED, believed)
        self.assertEqual((names, at_end[:, 0].tolist()), (["a", "b"], [5, 6]))

    def test_the_best_where_that_is_reported(self):
        self.assertEqual(beliefs(ASKED, ANSWERS, BEST)[:, 0].tolist(), [9, 5, 9, 1, 5])

    def test_of_equal_candidates_the_first_asked_for_is_returned(self):
        leaders = incumbents(np.array([1, 0, 1]), np.array([3.0, 2.0, 2.0]))
        self.assertEqual(leaders.tolist(), [0, 1, 2])

    def test_the_best_of_what_is_believed_after_every_ask(self):
        random = np.random.default_rng(1)
        asked, believed = random.integers(0, 12, 400), random.integers(0, 6, 400).astype(float)
        believed[random.random(400) < 0.2] = INF
        known: dict[int, tuple[float, int, int]] = {}
        for i, (candidate, value, leader) in enumerate(zip(asked, believed, incumbents(asked, believed))):
            known[candidate] = value, known.get(candidate, (0.0, i))[1], i
            best = min(known.values())
            self.assertEqual(leader, best[2] if best[0] < INF else -1)

    def test_an_incumbent_asked_for_again_costs_no_look_at_all_others(self):
        asked = np.concatenate([np.arange(1, 100_001), np.zeros(100_000, dtype=int)])  # 10^10 steps, were each a look
        leaders = incumbents(asked, np.where(asked == 0, 0.0, 1.0))
        self.assertEqual(leaders[[0, 99_999, 100_000, -1]].tolist(), [0, 0, 100_000, 199_999])

    def test_fronts_follow_beliefs(self):
        asked = np.array([4, 2, 7, 4, 2, 9])
        believed = np.array([[1, 1], [0, 2], [2, 2], [3, 3], [0, 2], [INF, INF]])
        self.assertEqual(list(fronts(asked, believed)), [(4,), (4, 2), (4, 2), (2,), (2,), (2,)])
        # Of equal points the first stays, and what is dominated leaves.
        self.assertEqual(list(fronts(np.array([3, 1, 0]), np.array([[1, 1], [1, 1], [0, 0]]))),
                         [(3,), (3,), (0,)])

    def test_nothing_usable(self):
        self.assertEqual(beliefs("a", np.array([[INF]]), MEAN).tolist(), [[INF]])

    def test_hypervolume_falls_with_a_belief(self):
        points = np.array([[0.0, 0.5], [0.5, 0.0], [0.75, 0.75]])
        reference = np.ones(2)
        np.testing.assert_allclose(hypervolumes("abc", points, reference), [0.5, 0.75, 0.75])
        np.testing.assert_allclose(hypervolumes("aba", points, reference), [0.5, 0.75, 0.5])
