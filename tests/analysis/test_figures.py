"""Axes of pictures."""

import unittest

from nas_analysis.figures import linear


class Axes(unittest.TestCase):
    def test_ticks_lie_within_the_axis(self):
        for values in ([1.0, 2.0], [0.0, 1e-7], [-3.0, 5.0, float("nan")]):
            axis = linear(values, 0.0, 100.0)
            ticks = axis.ticks()
            self.assertGreaterEqual(len(ticks), 2, values)
            self.assertTrue(all(axis.low <= tick <= axis.high for tick in ticks), values)

    def test_values_equal_but_for_rounding_have_an_axis(self):
        for values in ([0.1 + 0.2, 0.3], [7.0, 7.0], [0.0], []):
            axis = linear(values, 0.0, 100.0)
            self.assertGreater(axis.high - axis.low, 0.1, values)
            self.assertLessEqual(len(axis.ticks()), 12, values)
        axis = linear([0.0, 0.0], 0.0, 100.0, include=[0.0])
        self.assertLess(axis.low, 0.0)
        self.assertIn(0.0, axis.ticks())


if __name__ == "__main__":
    unittest.main()
