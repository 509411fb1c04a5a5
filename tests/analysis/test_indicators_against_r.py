"""Indicators on random sets against R's packages eaf and emoa."""

import unittest

import numpy as np
from attnas.analysis.indicators import anytime_hypervolume, hypervolume, non_dominated
from r_reference import require_r, run_r

require_r("eaf", "emoa")

NUM_SETS = 30
ALL = """
for (name in ls(pattern = "^set")) {
  set <- get(name)
  corner <- rep(1.1, ncol(set))
  results[[name]] <- c(eaf::hypervolume(set, reference = corner),
    emoa::dominated_hypervolume(t(set), corner), eaf::is_nondominated(set, keep_weakly = FALSE))
}
"""


class AgainstR(unittest.TestCase):
    def test_random_sets(self):
        generator = np.random.default_rng(5)
        for columns in (2, 3):
            inputs = {}
            for index in range(NUM_SETS):
                levels = 8 if index % 2 else 10**9  # with ties and without
                draw = generator.integers(1, levels, size=(40, columns)) / levels * 1.2
                inputs[f"set{index}"] = draw[:20 + index % 20]
            results = run_r(ALL, **inputs)
            self.assertEqual(len(results), NUM_SETS)
            for index in range(NUM_SETS):
                points = inputs[f"set{index}"]
                corner = np.full(columns, 1.1)
                volume = hypervolume(points, corner)
                found = results[f"set{index}"][:, 0]
                np.testing.assert_allclose(found[:2], volume, rtol=1e-12, atol=1e-14)
                # Of equal points each implementation keeps one of its own.
                np.testing.assert_array_equal(
                    np.sort(points[found[2:] == 1], axis=0),
                    np.sort(points[non_dominated(points)], axis=0))
                self.assertAlmostEqual(anytime_hypervolume(points, corner)[-1], volume, places=12)
