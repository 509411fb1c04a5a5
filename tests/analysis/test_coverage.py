"""How often 95 % intervals hold the truth, by simulation. Prints what it measures.

A share must lie within four standard errors of the simulation around 95 %, or beyond by what the
test allows a method that is known to be too short or too long for few runs.

NAS_FULL=1: ten times as many simulations (label slow).
"""

import os
import pathlib
import unittest

import numpy as np
from attnas.analysis.statistics import (failure_line, iqm, kendall, mean_interval, mean_with_failures, probability_of_improvement,
                                        share_interval, stratified_bootstrap, vargha_delaney)
from attnas.analysis.tables import load
from scipy import stats

NOMINAL = 0.95
TIMES = 10 if "NAS_FULL" in os.environ else 1


class Coverage(unittest.TestCase):
    def assert_covers(self, name, intervals, truth, allowed_below=0.0, allowed_above=0.0):
        share = np.mean([low <= truth <= high for _, low, high in intervals])
        error = np.sqrt(NOMINAL * (1.0 - NOMINAL) / len(intervals))
        print(f"{name}: {share:.3f} of {len(intervals)} intervals (standard error {error:.3f})")
        with self.subTest(name):
            self.assertGreater(share, NOMINAL - allowed_below - 4.0 * error)
            self.assertLess(share, NOMINAL + allowed_above + 4.0 * error)

    def test_mean(self):
        generator = np.random.default_rng(1)
        for size in (3, 5, 30):
            intervals = [mean_interval(generator.normal(size=size)) for _ in range(400 * TIMES)]
            self.assert_covers(f"mean, {size} normal values", intervals, 0.0)

    def test_failures(self):
        """Of recall, of which runs fail: intervals of few accuracies hold the mean of all 20 seeds, and shares the share that solves."""
        table = load([str(pathlib.Path(__file__).resolve().parents[2] / "problems/tables/recall.table")])
        accuracies = (table.values["test_correct"] / table.values["test_tokens"])[:, :20]
        rows = [row for row in accuracies if np.isfinite(row).all()]
        self.assertEqual(len(rows), 87)
        chance, generator = table.facts["chance"]["accuracy"], np.random.default_rng(7)
        for size in (5, 8, 15):
            found = []
            for row in rows * (4 * TIMES):
                drawn, solves = generator.permutation(row)[:size], row >= 1.0 - failure_line([1.0 - row], 1.0 - chance)
                fails = 1.0 - drawn > failure_line([1.0 - drawn], 1.0 - chance)
                shares = share_interval((drawn >= row[solves].min(initial=1.0)).sum(), size)
                found.append([low <= true <= high for (_, low, high), true in (
                    (mean_with_failures(drawn, fails, chance), row.mean()), (shares, solves.mean()), (mean_interval(drawn), row.mean()))])
            means, shares, students = np.mean(found, axis=0)
            print(f"{size} seeds of recall: {means:.3f} of means, {shares:.3f} of shares, {students:.3f} by Student's t")
            self.assertGreater(min(means, shares), 0.93)
            self.assertLess(students, 0.93, "what it is for")

    def test_bootstrap_of_iqm(self):
        """A percentile bootstrap of few runs is too short."""
        generator = np.random.default_rng(2)
        quartiles = stats.expon.ppf([0.25, 0.75])
        middle = stats.expon.expect(lb=quartiles[0], ub=quartiles[1], conditional=True)
        for shape, draw, true, allowed_below in (((5, 1), generator.normal, 0.0, 0.1),
                                                 ((10, 1), generator.normal, 0.0, 0.06),
                                                 ((31, 1), generator.normal, 0.0, 0.03),
                                                 ((31, 1), generator.exponential, middle, 0.03),
                                                 ((100, 1), generator.normal, 0.0, 0.01),
                                                 ((10, 5), generator.normal, 0.0, 0.03)):
            intervals = [stratified_bootstrap({"": draw(size=shape)}, iqm, 1000, seed)[""]
                         for seed in range(100 * TIMES)]
            self.assert_covers(f"IQM, runs x tasks {shape}, {draw.__name__}", intervals, true,
                               allowed_below)

    def test_vargha_delaney(self):
        generator = np.random.default_rng(3)
        for size, true, spread in ((10, 0.5, 1.0), (10, 0.75, 1.0), (10, 0.95, 1.0), (31, 0.5, 1.0),
                                   (31, 0.5, 5.0), (31, 0.75, 3.0), (31, 0.95, 1.0),
                                   (100, 0.9, 0.2)):
            shift = stats.norm.ppf(true) * np.hypot(1.0, spread)
            intervals = [vargha_delaney(generator.normal(size=size),
                                        generator.normal(shift, spread, size=size))
                         for _ in range(150 * TIMES)]
            self.assert_covers(f"A12 = {true}, {size} runs each, spread 1 and {spread}", intervals,
                               true, allowed_above=0.05)

    def test_vargha_delaney_with_ties(self):
        generator = np.random.default_rng(4)
        shares = np.array([0.4, 0.3, 0.2, 0.1])
        reverse = shares[::-1]
        intervals = [vargha_delaney(generator.choice(4, 31, p=shares),
                                    generator.choice(4, 31, p=reverse)) for _ in range(150 * TIMES)]
        true = sum(shares[i] * (reverse[i + 1:].sum() + reverse[i] / 2) for i in range(4))
        self.assert_covers("A12 of four values with ties, 31 runs each", intervals, true)

    def test_probability_of_improvement(self):
        generator = np.random.default_rng(5)
        shifts = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
        true = stats.norm.cdf(shifts / np.sqrt(2.0)).mean()
        for runs in (5, 10, 31):
            intervals = [probability_of_improvement(generator.normal(size=(runs, 5)),
                                                    generator.normal(size=(runs, 5)) + shifts)
                         for _ in range(150 * TIMES)]
            self.assert_covers(f"probability of improvement, {runs} runs x 5 tasks", intervals,
                               true, allowed_above=0.03)

    def test_kendall(self):
        generator = np.random.default_rng(6)
        for size, true in ((16, 0.3), (16, 0.8), (48, 0.6), (48, 0.9)):
            correlation = np.sin(np.pi * true / 2)
            intervals = []
            for _ in range(100 * TIMES):
                a = generator.normal(size=size)
                b = correlation * a + np.sqrt(1 - correlation**2) * generator.normal(size=size)
                intervals.append(kendall(a, b))
            self.assert_covers(f"tau = {true}, {size} things", intervals, true, allowed_above=0.05)
