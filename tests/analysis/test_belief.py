"""Beliefs of searches, by hand: reused, replicated and retrained candidates."""

import unittest

import numpy as np
from nas_analysis.belief import beliefs, hypervolumes, latest

INF = np.inf
ASKED = ["a", "b", "a", "a", "b"]
ANSWERS = np.array([[9.0], [5.0], [INF], [1.0], [7.0]])


class Beliefs(unittest.TestCase):
    def test_the_latest_usable_answer(self):
        self.assertEqual(beliefs(ASKED, ANSWERS, mean=False)[:, 0].tolist(), [9, 5, 9, 1, 7])

    def test_the_mean_where_answers_are_independent(self):
        believed = beliefs(ASKED, ANSWERS, mean=True)
        self.assertEqual(believed[:, 0].tolist(), [9, 5, 9, 5, 6])
        names, at_end = latest(ASKED, believed)
        self.assertEqual((names, at_end[:, 0].tolist()), (["a", "b"], [5, 6]))

    def test_nothing_usable(self):
        self.assertEqual(beliefs("a", np.array([[INF]]), mean=True).tolist(), [[INF]])

    def test_hypervolume_falls_with_a_belief(self):
        points = np.array([[0.0, 0.5], [0.5, 0.0], [0.75, 0.75]])
        reference = np.ones(2)
        np.testing.assert_allclose(hypervolumes("abc", points, reference), [0.5, 0.75, 0.75])
        np.testing.assert_allclose(hypervolumes("aba", points, reference), [0.5, 0.75, 0.5])


if __name__ == "__main__":
    unittest.main()
