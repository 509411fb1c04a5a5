"""Attainment surfaces and differences against R's package eaf, on random sets and on its data."""

import unittest

import numpy as np
from attnas.analysis.attainment import attainment_difference, attainment_surface
from r_reference import require_r, run_r

require_r("eaf")

PERCENTILES = (1, 25, 50, 75, 90, 100)
SURFACES = f"""
for (name in ls(pattern = "^data")) {{
  data <- get(name)
  results[[name]] <- eaf::eafs(data[, 1:2], data[, 3], percentiles = c{PERCENTILES})
}}
"""
DIFFERENCES = """
for (name in ls(pattern = "^a[0-9]+$")) {
  other <- get(sub("a", "b", name))
  results[[name]] <- eaf::eafdiff(get(name), other, rectangles = TRUE)
}
"""
SHIPPED = """
folder <- system.file("extdata", package = "eaf")
shipped <- function(file) {
  data <- eaf::read_datasets(file.path(folder, file))
  data[data[, 3] <= 20, ]
}
results[["cpfs"]] <- eaf::CPFs
results[["a0"]] <- shipped("wrots_l100w10_dat")
results[["b0"]] <- shipped("wrots_l10w100_dat")
"""


def random_runs(generator, count, levels):
    """(x, y, number of the set), a row a point: random fronts, with ties or without."""
    runs = []
    for run in range(count):
        points = generator.integers(1, levels, size=(generator.integers(2, 12), 2)) / levels
        runs.append(np.column_stack([points, np.full(len(points), run + 1)]))
    return np.vstack(runs)


def sets_of(data):
    return [data[data[:, 2] == number, :2] for number in np.unique(data[:, 2])]


def share_in(lower, upper, value, points):
    inside = ((lower <= points[:, None]) & (points[:, None] < upper)).all(axis=2)
    return inside @ value


class AgainstR(unittest.TestCase):
    def assert_surfaces_agree(self, data, found):
        for percentile in PERCENTILES:
            expected = found[found[:, 2] == percentile, :2]
            surface = attainment_surface(sets_of(data), percentile / 100)
            np.testing.assert_allclose(surface, expected[np.argsort(expected[:, 0])], rtol=1e-14)

    def assert_differences_agree(self, a, b, found, points):
        """R states the difference in halves of the number of all sets, which are equally many."""
        self.assertEqual(len(sets_of(a)), len(sets_of(b)))
        rectangles = attainment_difference(sets_of(a), sets_of(b))
        expected = share_in(found[:, :2], found[:, 2:4], found[:, 4] / len(sets_of(a)), points)
        self.assertGreater(np.count_nonzero(expected), len(points) // 20)
        np.testing.assert_allclose(share_in(*rectangles, points), expected, atol=1e-12)

    def test_surfaces_of_random_sets(self):
        generator = np.random.default_rng(1)
        inputs = {f"data{index}": random_runs(generator, 5 + 5 * index, (10, 10**9)[index % 2])
                  for index in range(6)}
        found = run_r(SURFACES, **inputs)
        for name, data in inputs.items():
            self.assert_surfaces_agree(data, found[name])

    def test_differences_of_random_sets(self):
        generator = np.random.default_rng(2)
        inputs = {f"{side}{index}": random_runs(generator, 3 + index, (10, 10**9)[index % 2])
                  for index in range(6) for side in "ab"}
        found = run_r(DIFFERENCES, **inputs)
        points = generator.random((500, 2)) * 1.2
        for index in range(6):
            self.assert_differences_agree(inputs[f"a{index}"], inputs[f"b{index}"],
                                          found[f"a{index}"], points)

    def test_data_shipped_with_eaf(self):
        data = run_r(SHIPPED)
        surfaces = run_r(SURFACES, data=data["cpfs"])
        self.assert_surfaces_agree(data["cpfs"], surfaces["data"])
        found = run_r(DIFFERENCES, a0=data["a0"], b0=data["b0"])
        both = np.vstack([data["a0"], data["b0"]])[:, :2]
        low, high = both.min(axis=0), both.max(axis=0)
        points = low + np.random.default_rng(3).random((500, 2)) * 1.1 * (high - low)
        self.assert_differences_agree(data["a0"], data["b0"], found["a0"], points)
