"""Attainment surfaces and differences against hand-drawn ones and the plain definition."""

import unittest

import numpy as np
from attnas.analysis.attainment import attainment_difference, attainment_surface

INF = np.inf


def share_attaining(sets, point):
    return np.mean([any((np.asarray(s) <= point).all(axis=1)) for s in sets])


def difference_at(rectangles, point):
    """Sum over the rectangles that hold the point; they are disjoint, so over one at most."""
    inside = ((rectangles.lower <= point) & (point < rectangles.upper)).all(axis=1)
    assert inside.sum() <= 1, "rectangles overlap"
    return rectangles.difference[inside].sum()


def random_sets(generator, count, levels=12):
    return [generator.integers(0, levels, size=(generator.integers(1, 8), 2)).astype(float)
            for _ in range(count)]


class AttainmentSurface(unittest.TestCase):
    SETS = [[(1, 2), (2, 1), (2, 2)], [(1, 3), (0.5, 4)], [(3, 0)]]

    def test_by_hand(self):
        self.assertEqual(attainment_surface(self.SETS, 1 / 3).tolist(),
                         [[0.5, 4], [1, 2], [2, 1], [3, 0]])
        self.assertEqual(attainment_surface(self.SETS, 2 / 3).tolist(), [[1, 3], [3, 1]])
        self.assertEqual(attainment_surface(self.SETS, 1.0).tolist(), [[3, 3]])

    def test_agrees_with_the_definition(self):
        generator = np.random.default_rng(1)
        for share in (0.01, 0.25, 0.5, 0.51, 1.0):
            sets = random_sets(generator, 20)
            surface = attainment_surface(sets, share)
            for point in np.ndindex(13, 13):
                attained = share_attaining(sets, point) >= share
                self.assertEqual(bool((surface <= point).all(axis=1).any()), attained)

    def test_share_is_rounded_up_to_sets_but_not_by_binary_fractions(self):
        sets = [[(0.0, rank)] for rank in range(100)]
        for percent in range(1, 101):
            self.assertEqual(attainment_surface(sets, 0.01 * percent).tolist(), [[0, percent - 1]])
        self.assertEqual(attainment_surface(sets, 0.071).tolist(), [[0, 7]])

    def test_nothing_where_too_few_have_points(self):
        self.assertEqual(attainment_surface([[(1, 1)], []], 1.0).shape, (0, 2))

    def test_refusals(self):
        for share in (0.0, 1.01):
            with self.assertRaisesRegex(ValueError, rf"share = {share}, must be in \(0, 1\]"):
                attainment_surface(self.SETS, share)
        with self.assertRaisesRegex(ValueError, "no set of points, must be at least one"):
            attainment_surface([], 0.5)
        with self.assertRaisesRegex(ValueError, r"shape \(1, 3\), must be \(n, 2\)"):
            attainment_surface([[(1, 2, 3)]], 0.5)


class AttainmentDifference(unittest.TestCase):
    def test_by_hand(self):
        a, b = [[(0, 1)], [(0, 1)]], [[(1, 0)], [(0, 2)]]
        rectangles = attainment_difference(a, b)
        found = {(*lower, *upper): share for lower, upper, share in zip(*rectangles)}
        self.assertEqual(found, {(0, 1, 1, 2): 1.0, (0, 2, 1, INF): 0.5, (1, 0, INF, 1): -0.5,
                                 (1, 1, INF, 2): 0.5})

    def test_agrees_with_the_definition(self):
        generator = np.random.default_rng(2)
        for size_a, size_b in ((5, 5), (3, 7), (1, 4)):
            a, b = random_sets(generator, size_a), random_sets(generator, size_b)
            rectangles = attainment_difference(a, b)
            self.assertTrue((rectangles.difference != 0).all())
            for point in np.ndindex(13, 13):
                expected = share_attaining(a, point) - share_attaining(b, point)
                self.assertAlmostEqual(difference_at(rectangles, point), expected, places=14)

    def test_neighbours_in_a_line_are_joined(self):
        a, b = [[(0, 0)], [(1, 5)]], [[(0, 1)], [(0, 1)]]
        found = {(*lower, *upper): share
                 for lower, upper, share in zip(*attainment_difference(a, b))}
        self.assertEqual(found, {(0, 0, INF, 1): 0.5, (0, 1, 1, INF): -0.5, (1, 1, INF, 5): -0.5})

    def test_refuses_no_sets(self):
        with self.assertRaisesRegex(ValueError, "no set of points"):
            attainment_difference([[(1, 1)]], [])
