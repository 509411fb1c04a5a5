"""Running times and curves against examples worked by hand."""

import unittest

import numpy as np
from attnas.analysis.anytime import at_budgets, best_so_far, ecdf, expected_running_time, first_hits, worst_to_come

NAN, INF = np.nan, np.inf


class Curves(unittest.TestCase):
    def test_best_so_far(self):
        np.testing.assert_array_equal(best_so_far([[NAN, 3, 4, NAN, 1], [5, 4, 3, 2, 2]]),
                                      [[NAN, 3, 3, 3, 1], [5, 4, 3, 2, 2]])

    def test_worst_to_come(self):
        np.testing.assert_array_equal(worst_to_come([[INF, 3, 4, 1, 2], [5, 4, 3, 2, 2]]),
                                      [[INF, 4, 4, 2, 2], [5, 4, 3, 2, 2]])

    def test_at_budgets(self):
        x, y = [1, 1, 4, 6], [9.0, 8.0, 5.0, 2.0]  # the second ask cost nothing
        np.testing.assert_array_equal(at_budgets(x, y, [0, 1, 3.9, 4, 100]), [NAN, 8, 8, 5, 2])
        np.testing.assert_array_equal(at_budgets(x, np.column_stack([y, y]), [0, 5]),
                                      [[NAN, NAN], [5, 5]])
        with self.assertRaisesRegex(ValueError, r"shape \(3,\) or falls, must be \(n,\) ascending"):
            at_budgets([1, 3, 2], [1, 2, 3], [1])

    def test_first_hits(self):
        x, y = [1, 2, 2, 5, 7], [NAN, 4.0, 3.0, 6.0, 1.0]
        np.testing.assert_array_equal(first_hits(x, y, [10, 4, 3.5, 3, 2, 1, 0.5]),
                                      [2, 2, 2, 2, 7, 7, NAN])
        with self.assertRaisesRegex(ValueError, r"shape \(1, 2\) or falls"):
            first_hits([[1, 2]], [1, 2], [1])


class RunningTime(unittest.TestCase):
    def test_by_hand(self):
        """Hits after 10, 20 and 30, misses after 100 and 40: 200 spent for three hits."""
        time, share = expected_running_time([10, NAN, 20, 30, NAN], [100, 100, 50, 60, 40])
        self.assertAlmostEqual(time, 200 / 3, places=13)
        self.assertEqual(share, 0.6)

    def test_several_targets(self):
        hits = np.array([[1, 5, NAN], [2, NAN, NAN]])
        time, share = expected_running_time(hits, 10)
        self.assertEqual(time.tolist(), [1.5, 15, INF])
        self.assertEqual(share.tolist(), [1, 0.5, 0])


class Ecdf(unittest.TestCase):
    def test_by_hand(self):
        hits = [[1, 3, NAN], [2, 3, 8], [NAN, NAN, NAN]]
        found = ecdf(hits, [0.5, 1, 2.5, 3, 8, 100])
        np.testing.assert_allclose(found, np.array([0, 1, 2, 4, 5, 5]) / 9, rtol=1e-15)
