"""Indicators against published examples, exact values and plain definitions."""

import itertools
import unittest

import numpy as np
from attnas.analysis.indicators import anytime_hypervolume, hypervolume, non_dominated, planar_hypervolumes

STAIRCASE = [(5, 5), (4, 6), (2, 7), (7, 4)]


def dominates(a, b):
    return all(a <= b) and any(a < b)


def inclusion_exclusion(points, reference):
    """Hypervolume as the volume of a union of boxes, exponential in the number of points."""
    total = 0.0
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            corner = np.max(chosen, axis=0)
            total += (-1) ** (size + 1) * np.prod(np.maximum(reference - corner, 0.0))
    return total


class NonDominated(unittest.TestCase):
    def test_agrees_with_the_definition(self):
        generator = np.random.default_rng(1)
        for columns in (1, 2, 3, 4):
            for _ in range(20):
                points = generator.integers(0, 6, size=(30, columns)).astype(float)
                expected = [not any(dominates(other, point) for other in points)
                            and not any((other == point).all() for other in points[:index])
                            for index, point in enumerate(points)]
                self.assertEqual(non_dominated(points).tolist(), expected)

    def test_of_equal_points_the_first(self):
        self.assertEqual(non_dominated([(1, 2), (1, 2), (2, 1)]).tolist(), [True, False, True])

    def test_never_nan_but_infinity(self):
        nan, inf = np.nan, np.inf
        points = [(nan, 0), (0, nan), (1, 1), (0, inf), (2, 0)]
        self.assertEqual(non_dominated(points).tolist(), [False, False, True, True, True])
        self.assertEqual(non_dominated([(inf, inf)]).tolist(), [True])

    def test_of_nothing_nothing(self):
        self.assertEqual(non_dominated([]).tolist(), [])

    def test_refuses_what_is_no_list_of_points(self):
        with self.assertRaisesRegex(ValueError, r"shape \(3,\), must be \(n, m\)"):
            non_dominated([1, 2, 3])


class Hypervolume(unittest.TestCase):
    def test_many_sets_at_once(self):
        random = np.random.default_rng(8)
        sets = random.random((30, 6, 2)) * 1.3  # some points beyond the reference
        np.testing.assert_allclose(planar_hypervolumes(sets, [1.0, 1.1]),
                                   [hypervolume(points, [1.0, 1.1]) for points in sets])

    def test_documented_example(self):
        self.assertEqual(hypervolume(STAIRCASE, (10, 10)), 38)
        self.assertEqual(hypervolume(-np.array(STAIRCASE), (0, 0)), 39)  # of maximising

    def test_inclusion_and_exclusion(self):
        generator = np.random.default_rng(2)
        for columns in (1, 2, 3, 4, 5):
            points = generator.random((9, columns)) * 1.2
            reference = np.full(columns, 1.1)
            self.assertAlmostEqual(hypervolume(points, reference),
                                   inclusion_exclusion(points, reference), places=12)

    def test_true_fronts_of_two_objectives(self):
        x = np.linspace(0.0, 1.0, 200_001)
        six = np.linspace(0.2807753191, 1.0, 200_001)
        fronts = {"zdt1": (x, 1.0 - np.sqrt(x), 0.66667, 0.87667),
                  "zdt2": (x, 1.0 - x**2, 0.33333, 0.54333),
                  "zdt3": (x, 1.0 - np.sqrt(x) - x * np.sin(10.0 * np.pi * x), 1.04443, 1.33176),
                  "zdt6": (six, 1.0 - six**2, 0.32595, 0.50788)}
        for name, (first, second, unit, beyond) in fronts.items():
            with self.subTest(name):
                points = np.column_stack([first, second])
                self.assertAlmostEqual(hypervolume(points, (1.0, 1.0)), unit, delta=1e-5)
                self.assertAlmostEqual(hypervolume(points, (1.1, 1.1)), beyond, delta=1e-5)

    def test_true_fronts_of_three_objectives(self):
        """A grid of n x n cells misses a share of 1 / n, so that two grids give the limit."""
        for name, front, reference, exact in (("dtlz1", self.simplex, 0.55, 0.1455417),
                                              ("dtlz2", self.sphere, 1.1, 0.8074012)):
            with self.subTest(name):
                coarse, fine = (hypervolume(front(size), [reference] * 3) for size in (60, 120))
                self.assertLess(coarse, fine)
                self.assertLess(fine, exact)
                self.assertAlmostEqual(2.0 * fine - coarse, exact, delta=3e-4)

    @staticmethod
    def simplex(size):
        i, j = np.meshgrid(np.arange(size + 1), np.arange(size + 1))
        i, j = i[i + j <= size], j[i + j <= size]
        return np.column_stack([i, j, size - i - j]) / (2.0 * size)

    @staticmethod
    def sphere(size):
        u, v = np.meshgrid(*[np.linspace(0.0, np.pi / 2.0, size + 1)] * 2)
        return np.column_stack([(np.cos(u) * np.cos(v)).ravel(), (np.cos(u) * np.sin(v)).ravel(),
                                np.sin(u).ravel()])

    def test_points_beyond_the_reference_count_nothing(self):
        beyond = [(0.5, 1.0), (1.0, 0.5), (2.0, 0.1), (np.nan, 0.0)]
        self.assertEqual(hypervolume(beyond, (1, 1)), 0)
        self.assertEqual(hypervolume([], (1, 1, 1)), 0)

    def test_refuses_points_of_other_length(self):
        with self.assertRaisesRegex(ValueError, r"shape \(1, 3\), must be \(n, 2\)"):
            hypervolume([(1, 2, 3)], (1, 1))


class AnytimeHypervolume(unittest.TestCase):
    def test_is_the_hypervolume_of_every_beginning(self):
        generator = np.random.default_rng(3)
        for columns in (1, 2, 3, 4):
            for levels in (4, 1000):  # many ties, hardly any
                points = generator.integers(0, levels, size=(40, columns)) / levels * 1.2
                points[7] = np.nan
                reference = np.full(columns, 1.1)
                expected = [hypervolume(points[:end], reference) for end in range(1, 41)]
                np.testing.assert_allclose(anytime_hypervolume(points, reference), expected,
                                           rtol=0, atol=1e-12)

    def test_of_nothing_nothing(self):
        for columns in (1, 2, 3):
            self.assertEqual(anytime_hypervolume([], [1.0] * columns).tolist(), [])
