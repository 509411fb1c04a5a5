"""Indicators on random sets against R's packages eaf and emoa."""

import unittest

import numpy as np
from nas_analysis.indicators import (additive_epsilon, anytime_hypervolume, hypervolume, igd,
                                     igd_plus, multiplicative_epsilon, non_dominated, r2)
from r_reference import require_r, run_r

NUM_SETS = 30
ALL = """
for (name in ls(pattern = "^set")) {
  set <- get(name)
  reference <- get(sub("set", "reference", name))
  corner <- rep(1.1, ncol(set))
  results[[name]] <- c(eaf::hypervolume(set, reference = corner),
    emoa::dominated_hypervolume(t(set), corner), eaf::igd(set, reference),
    eaf::igd_plus(set, reference), eaf::epsilon_additive(set, reference),
    eaf::epsilon_mult(set, reference), eaf::is_nondominated(set, keep_weakly = FALSE))
}
"""
R2 = """
share <- (seq_len(20000) - 0.5) / 20000
for (name in ls(pattern = "^set"))
  results[[name]] <- emoa::unary_r2_indicator(t(get(name)), rbind(share, 1 - share), c(0, 0))
"""


class AgainstR(unittest.TestCase):
    def test_random_sets(self):
        generator = np.random.default_rng(5)
        for columns in (2, 3):
            inputs = {}
            for index in range(NUM_SETS):
                levels = 8 if index % 2 else 10**9  # with ties and without
                draw = generator.integers(1, levels, size=(60, columns)) / levels * 1.2
                inputs[f"set{index}"] = draw[:20 + index % 20]
                inputs[f"reference{index}"] = draw[40:] * 0.8
            results = run_r(ALL, **inputs)
            self.assertEqual(len(results), NUM_SETS)
            for index in range(NUM_SETS):
                points, reference = inputs[f"set{index}"], inputs[f"reference{index}"]
                corner = np.full(columns, 1.1)
                volume = hypervolume(points, corner)
                expected = [volume, volume, igd(points, reference), igd_plus(points, reference),
                            additive_epsilon(points, reference),
                            multiplicative_epsilon(points, reference)]
                found = results[f"set{index}"][:, 0]
                np.testing.assert_allclose(found[:6], expected, rtol=1e-12, atol=1e-14)
                # Of equal points each implementation keeps one of its own.
                np.testing.assert_array_equal(
                    np.sort(points[found[6:] == 1], axis=0),
                    np.sort(points[non_dominated(points)], axis=0))
                self.assertAlmostEqual(anytime_hypervolume(points, corner)[-1], volume, places=12)

    def test_r2_approached_by_many_weights(self):
        generator = np.random.default_rng(6)
        sets = {f"set{index}": generator.random((15, 2)) + 0.05 for index in range(10)}
        for name, value in run_r(R2, **sets).items():
            self.assertAlmostEqual(r2(sets[name], (0, 0)), float(value[0, 0]), places=6)


if __name__ == "__main__":
    require_r("eaf", "emoa")
    unittest.main()
