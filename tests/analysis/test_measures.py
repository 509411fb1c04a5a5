"""What mechanisms are compared by: perplexity, or accuracy."""

import math
import unittest

from attnas.analysis.digest import Objective
from attnas.analysis.measures import Measure, measure_of, measure_of_run


class Measures(unittest.TestCase):
    def test_a_record_says_which(self):
        self.assertFalse(measure_of({}).accuracy)
        self.assertTrue(measure_of({"measure": "test accuracy"}).accuracy)

    def test_a_run_has_that_of_its_first_trained_objective(self):
        def one(name: str, source: str, key: str = "") -> Objective:
            return Objective(name, "1", True, 1.0, 0.0, 0.0, source, key)

        accuracy, flops = one("accuracy", "trained"), one("flops", "analytic")
        self.assertTrue(measure_of_run([flops, accuracy, one("perplexity", "trained")]).accuracy)
        self.assertTrue(measure_of_run([one("right", "trained", "accuracy")]).accuracy)
        for others in ([], [flops], [one("perplexity", "trained"), accuracy], [one("accuracy", "analytic")]):
            self.assertFalse(measure_of_run(others).accuracy)

    def test_perplexity_in_percent(self):
        measure = Measure(False)
        self.assertAlmostEqual(measure.shown(math.log(0.9)), -10.0)
        self.assertAlmostEqual(measure.between(90.0, 100.0), -10.0)
        self.assertEqual(measure.shown(1e6), math.inf)
        self.assertEqual(measure.value({"test_perplexity": 7.0}), 7.0)
        self.assertTrue(math.isnan(measure.value({})))
        low, high = measure.interval(math.log(0.8), math.log(1.1))
        self.assertAlmostEqual(low, -20.0)
        self.assertAlmostEqual(high, 10.0)

    def test_accuracy_in_points(self):
        measure = Measure(True)
        self.assertAlmostEqual(measure.shown(-0.02), 2.0)  # two errors fewer of a hundred
        self.assertEqual(math.copysign(1.0, measure.shown(0.0)), 1.0)
        self.assertAlmostEqual(measure.between(0.75, 0.70), 5.0)
        self.assertEqual(measure.value({"test_correct": 30, "test_tokens": 40}), 0.75)
        self.assertTrue(math.isnan(measure.value({"test_correct": 30})))
        self.assertEqual(measure.interval(-0.03, 0.01), (-1.0, 3.0))
