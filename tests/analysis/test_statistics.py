"""Statistics against scipy, statsmodels, published values and plain definitions."""

import math
import types
import unittest

import numpy as np
from attnas.analysis.differences import difference
from attnas.analysis.statistics import (another_group, cliques, clustered_improvement, clustered_iqm, critical_difference,
                                        failure_line, friedman, held_out_coverage, holm, improvement_by_group, iqm, kendall,
                                        mann_whitney, mean_interval, mean_with_failures, paired_test, probability_of_improvement,
                                        rounding, signed_rank_sum, stratified_bootstrap, vargha_delaney, wilcoxon)
from scipy import stats

try:
    from statsmodels.stats.multitest import multipletests
except ImportError:
    multipletests = None


class Summaries(unittest.TestCase):
    def test_iqm_is_the_trimmed_mean_of_all(self):
        generator = np.random.default_rng(1)
        for runs, tasks in ((1, 1), (3, 1), (5, 1), (8, 1), (31, 1), (10, 7)):
            scores = generator.normal(size=(runs, tasks))
            self.assertAlmostEqual(iqm(scores), stats.trim_mean(scores, 0.25, axis=None), places=14)
        self.assertEqual(iqm([0, 1, 2, 3, 4, 5, 6, np.inf]), 3.5)

    def test_nan_and_nothing_are_refused(self):
        for scores in ([1.0, np.nan], []):
            with self.assertRaisesRegex(ValueError, rf"shape \({len(scores)},\) hold NaN or noth"):
                iqm(scores)


class StratifiedBootstrap(unittest.TestCase):
    def test_draws_every_task_on_its_own(self):
        """The mean's standard error knows only the spread within tasks."""
        generator = np.random.default_rng(4)
        scores = generator.normal(size=(50, 3)) + [0.0, 100.0, 1000.0]
        interval = stratified_bootstrap({"a": scores}, lambda x: x.mean(axis=(-1, -2)))["a"]
        error = np.sqrt(np.sum(scores.var(axis=0) / 50)) / 3
        self.assertAlmostEqual(interval.point, scores.mean(), places=10)
        self.assertAlmostEqual((interval.high - interval.low) / (2 * 1.959964 * error), 1.0,
                               delta=0.02)

    def test_an_interval_depends_on_its_own_algorithm_and_the_seed_only(self):
        generator = np.random.default_rng(6)
        scores = {"a": generator.normal(size=(30, 1)), "b": generator.normal(size=(30, 1)),
                  "c": generator.normal(size=(300, 2))}
        together = stratified_bootstrap(scores, iqm, resamples=500)
        for name, array in scores.items():
            alone = stratified_bootstrap({name: array}, iqm, resamples=500)
            self.assertEqual(together[name], alone[name])
        again = stratified_bootstrap(scores, iqm, resamples=500, seed=1)
        self.assertNotEqual(together["a"].low, again["a"].low)


class ProbabilityOfImprovement(unittest.TestCase):
    def test_is_mann_whitneys_u_over_all_pairs(self):
        generator = np.random.default_rng(8)
        a, b = generator.integers(0, 6, size=(12, 3)), generator.integers(1, 7, size=(9, 3))
        u = [stats.mannwhitneyu(a[:, task], b[:, task]).statistic for task in range(3)]
        expected = np.mean([1.0 - value / (12 * 9) for value in u])
        found = probability_of_improvement(a, b)
        self.assertAlmostEqual(found.point, expected, places=14)
        self.assertLess(found.low, expected)
        self.assertLess(expected, found.high)

    def test_smaller_is_better_and_ties_count_half(self):
        self.assertEqual(vargha_delaney([1, 2], [3, 4]).point, 1.0)
        self.assertEqual(vargha_delaney([3, 4], [1, 2]).point, 0.0)
        self.assertEqual(vargha_delaney([1, 2], [2, 3]).point, 3.5 / 4)

    def test_where_all_pairs_compare_alike(self):
        unseen = 1 - 0.025 ** (1 / 10)
        ones, twos = np.arange(10.0), np.arange(12.0) + 100
        np.testing.assert_allclose(vargha_delaney(ones, twos), (1, 1 - unseen, 1), rtol=1e-12)
        np.testing.assert_allclose(vargha_delaney(twos, ones), (0, 0, unseen), rtol=1e-12)
        np.testing.assert_allclose(vargha_delaney(np.ones(10), np.ones(10)),
                                   (0.5, 0.5 - unseen, 0.5 + unseen), rtol=1e-12)

    def test_what_runs_share_widens_the_interval(self):
        random = np.random.default_rng(5)
        a, b = random.normal(0.0, 1.0, 400), random.normal(0.3, 1.0, 400)
        alone = probability_of_improvement(a, b)
        wide = probability_of_improvement(a, b, shared=0.05**2)
        self.assertEqual(wide.point, alone.point)
        error = (alone.high - alone.low) / 2 / 1.96
        np.testing.assert_allclose((wide.high - wide.low) / 2,
                                   1.96 * np.hypot(error, 0.05), rtol=0.03)
        # Where every pair compares alike it is added to what unseen pairs allow.
        self.assertLess(probability_of_improvement(a, a + 100, shared=0.3**2).low, 0.5)

    def test_one_run_gives_no_interval(self):
        point, low, high = vargha_delaney([1.0], [2.0, 3.0])
        self.assertEqual(point, 1.0)
        self.assertTrue(np.isnan([low, high]).all())

    def test_refuses_unequal_tasks(self):
        with self.assertRaisesRegex(ValueError, "2 tasks and 3 tasks, must be equally many"):
            probability_of_improvement(np.ones((4, 2)), np.ones((4, 3)))


class AlikeInGroups(unittest.TestCase):
    """Searches that met the same recorded noise are one unit."""

    def test_improvement_is_students_over_groups(self):
        a, b = [0, 0, 2, 0, 2, 2], [1, 1, 1, 1, 1, 1]
        noise = [0, 0, 1, 1, 2, 2]  # of each group the shares of a that are better: 1, 1/2, 0
        found, p = clustered_improvement(a, b, noise, noise)
        self.assertEqual((found.point, p), (0.5, 1.0))
        reach = stats.t.ppf(0.975, 2) * np.sqrt(0.25 / 3) / 0.25  # of the logit, whose slope is 1 / (p (1 - p))
        np.testing.assert_allclose((found.low, found.high), (1 / (1 + np.exp(reach)), 1 / (1 + np.exp(-reach))))

    def test_groups_that_agree_are_as_few_as_they_are(self):
        found, p = clustered_improvement([0] * 8, [1] * 8, [0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2, 3, 3])
        self.assertEqual((found.point, found.high, p), (1.0, 1.0, 0.125))
        self.assertAlmostEqual(found.low, 0.025 ** (1 / 4))

    def test_equal_runs_are_not_distinguished(self):
        found, p = clustered_improvement([1, 2, 1, 3], [1, 2, 1, 3], [0, 0, 1, 1], [0, 0, 1, 1])
        self.assertEqual((found.point, p), (0.5, 1.0))
        self.assertTrue(found.low == 0.0 and found.high == 1.0, "of two groups")
        # Groups that agree on three quarters are as few as any others, and the table's noise counts.
        found, p = clustered_improvement([0, 2] * 5, [1, 2] * 5, np.repeat(np.arange(5), 2), np.repeat(np.arange(5), 2))
        self.assertEqual((found.point, p), (0.625, 2.0 ** -4))
        self.assertAlmostEqual(found.low, 0.625 - (1 - 0.025 ** (1 / 5)))
        wider = clustered_improvement([0] * 8, [1] * 8, np.repeat(np.arange(4), 2), np.repeat(np.arange(4), 2), shared=1.0)[0]
        self.assertEqual(wider.low, 0.0)

    def test_one_group_has_no_interval(self):
        self.assertTrue(np.isnan(clustered_iqm([1, 2], [0, 0]).low))
        self.assertTrue(np.isnan(clustered_improvement([1, 2], [1, 3], [0, 0], [0, 0])[1]))


class AnotherGroup(unittest.TestCase):
    """Groups whose probabilities differ, estimated from few runs each: what one more group would say."""

    SPREAD, RUNS = 0.3, 10

    def groups(self, generator, count, effect=0.4):
        """Of each group what is true of it, what its runs say, and the variance of that."""
        effects = effect + self.SPREAD * generator.normal(size=count)
        group = np.repeat(np.arange(count), self.RUNS)
        a, b = generator.normal(size=(2, len(group)))
        return stats.norm.cdf(effects / np.sqrt(2)), *improvement_by_group(a - effects[group], b, group)

    def test_of_each_group_all_pairs_of_its_runs(self):
        each, variances = improvement_by_group([1, 4, 2, 2, 5], [2, 3, 2, 1, 6], [3, 3, 8, 8, 9])
        np.testing.assert_allclose(each, [0.5, 0.25, 1.0])
        # Of 2 and 3 of b are both worse than 1 of a and none than 4: sums of rows and columns 3/2 and 1/2, nothing is left. Of ties
        # with one of two: 3/4 and 1/4.
        np.testing.assert_allclose(variances[:2], [0.25, 0.0625])
        self.assertTrue(np.isnan(variances[2]), "one pair does not say how far off it is")

    def test_intervals_hold_what_is_true_and_what_is_measured_of_another(self):
        generator = np.random.default_rng(20)
        held = []
        for _ in range(200):
            _, *known = self.groups(generator, 100)
            true, measured, _ = self.groups(generator, 20)
            mean = mean_interval(known[0])
            held.append([np.mean((of >= low) & (of <= high)) for of, (_, low, high) in
                         zip((true, measured, true), (*another_group(*known), mean))])
        of_truth, of_measurement, by_mean = np.mean(held, axis=0)
        self.assertTrue(0.93 < of_truth < 0.995, of_truth)
        self.assertTrue(0.93 < of_measurement < 0.97, of_measurement)
        self.assertLess(by_mean, 0.5, "the interval of the mean is none for another group")

    def test_held_out_groups_are_covered_unless_they_are_others(self):
        generator = np.random.default_rng(21)
        _, each, _ = self.groups(generator, 200)
        self.assertTrue(0.9 < held_out_coverage(each) < 0.99, held_out_coverage(each))
        each[1::2] = self.groups(generator, 100, effect=-2.0)[1]
        self.assertLess(held_out_coverage(each), 0.2)
        self.assertTrue(np.isnan(held_out_coverage(each[:3])))


class Tests(unittest.TestCase):
    def test_mann_whitney(self):
        generator = np.random.default_rng(11)
        for size, digits in ((5, 9), (30, 9), (30, 0)):
            a = np.round(generator.normal(size=size), digits)
            b = np.round(generator.normal(0.5, size=size + 2), digits)
            self.assertAlmostEqual(mann_whitney(a, b), stats.mannwhitneyu(a, b).pvalue, places=12)
        of_separated = [mann_whitney(np.arange(n), np.arange(n) + 100.5) for n in range(2, 25)]
        for n, p in enumerate(of_separated[:19], 2):
            self.assertAlmostEqual(p / (2 / math.comb(2 * n, n)), 1.0, places=9, msg=f"n = {n}")
        self.assertAlmostEqual(mann_whitney(np.arange(8), np.arange(30) + 9.5) / (2 / math.comb(38, 8)), 1.0, places=9)
        self.assertEqual(mann_whitney([1, 1, 1], [1, 1]), 1.0)

    def test_signed_ranks_have_a_side(self):
        a, b = np.array([0.0, 0.0, 5.0]), np.array([1.0, 2.0, 0.0])
        self.assertEqual(signed_rank_sum(a, b), -1.0 - 2.0 + 3.0)
        self.assertLess(signed_rank_sum([0, 0, 0.5], [1, 2, 0]), 0.0)
        self.assertEqual(signed_rank_sum([1, 2], [1, 2]), 0.0)

    def test_wilcoxon(self):
        generator = np.random.default_rng(12)
        a = generator.normal(size=60)
        b = a + generator.normal(0.3, size=60)
        c = np.round(a)
        for pairs, method in (((a[:30], b[:30]), "exact"), ((a, b), "approx"),
                              ((c[:30], np.round(b)[:30]), "approx"),  # zeros and ties
                              ((np.arange(24.0), c[:24] + 40.0), "approx")):  # ties
            expected = stats.wilcoxon(*pairs, zero_method="pratt", method=method).pvalue
            self.assertEqual(wilcoxon(*pairs), expected)
        self.assertEqual(wilcoxon([1, 2, 3], [1, 2, 3]), 1.0)
        self.assertEqual(wilcoxon(np.arange(6.0), np.arange(6.0) * 2 + 1), 2 / 2**6)
        with self.assertRaisesRegex(ValueError, "2 and 3 scores, must be pairs"):
            wilcoxon([1, 2], [1, 2, 3])

    def test_few_scores_with_ties_are_permuted(self):
        self.assertEqual(wilcoxon([0] * 5, [1] * 5), 2 / 2**5)
        self.assertEqual(wilcoxon([0] * 5, [0, 1, 2, 3, 4]), 2 / 2**4)
        self.assertEqual(mann_whitney([0] * 3, [1] * 3), 2 / 20)
        generator = np.random.default_rng(15)
        for _ in range(20):
            a, b = generator.integers(0, 5, size=(2, 6))
            if (a != b).any():
                expected = stats.permutation_test((a - b,), lambda d: signed_rank_sum(d, np.zeros(6)), permutation_type="samples")
                self.assertAlmostEqual(wilcoxon(a, b), expected.pvalue, places=12)
            a, b = generator.integers(0, 4, size=4), generator.integers(0, 4, size=7)
            if np.ptp([*a, *b]) > 0:
                expected = stats.permutation_test((a, b), lambda a, b: stats.rankdata([*a, *b])[:4].sum(), n_resamples=400)
                self.assertAlmostEqual(mann_whitney(a, b), expected.pvalue, places=12)

    def test_permutations_end_where_the_normal_distribution_is_near(self):
        generator = np.random.default_rng(16)
        for size, near in ((20, 0.05), (21, 0.0)):
            a, b = np.round(generator.normal(size=size)), np.round(generator.normal(0.5, size=size))
            found = wilcoxon(a, b), mann_whitney(a, b)
            normal = stats.wilcoxon(a, b, zero_method="pratt", method="approx").pvalue, stats.mannwhitneyu(a, b).pvalue
            np.testing.assert_allclose(found, normal, rtol=0, atol=near)
            self.assertEqual(found == normal, size > 20)

    @unittest.skipUnless(multipletests, "statsmodels is not there")
    def test_holm(self):
        generator = np.random.default_rng(13)
        for size in (1, 2, 10, 50):
            p_values = generator.random(size) ** 3
            np.testing.assert_allclose(holm(p_values), multipletests(p_values, method="holm")[1],
                                       rtol=1e-14)
        np.testing.assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])

    def test_friedman(self):
        generator = np.random.default_rng(14)
        for levels in (4, 10**9):
            table = generator.integers(0, levels, size=(12, 5))
            found, expected = friedman(table), stats.friedmanchisquare(*table.T)
            self.assertAlmostEqual(found.statistic, expected.statistic, places=10)
            self.assertAlmostEqual(found.p, expected.pvalue, places=12)
            np.testing.assert_allclose(found.mean_ranks, stats.rankdata(table, axis=1).mean(axis=0))

    def test_friedman_of_equals(self):
        self.assertEqual(friedman(np.ones((4, 3)))[:2], (0.0, 1.0))
        with self.assertRaisesRegex(ValueError, r"shape \(3, 1\), must have at least two columns"):
            friedman([1.0, 2.0, 3.0])


class CriticalDifference(unittest.TestCase):
    def test_published_quantiles(self):
        """Demsar (2006), table 5 a."""
        published = {0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
                     0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)}
        for alpha, quantiles in published.items():
            for k, quantile in enumerate(quantiles, start=2):
                found = critical_difference(k, 7, alpha) / np.sqrt(k * (k + 1) / (6 * 7))
                self.assertAlmostEqual(found, quantile, delta=0.0011)

    def test_cliques_are_neighbours_of_which_no_pair_is_told_apart(self):
        # In the order of ranks 2, 0, 3, 1: alike are 2-0, 0-3, 2-3 and 3-1.
        p = np.full((4, 4), 0.001)
        for i, j in ((2, 0), (0, 3), (2, 3), (3, 1)):
            p[i, j] = p[j, i] = 0.2
        ranks = [2.0, 3.5, 1.0, 3.0]
        self.assertEqual(cliques(ranks, p), [[2, 0, 3], [3, 1]])
        p[2, 3] = p[3, 2] = 0.05  # just told apart
        self.assertEqual(cliques(ranks, p), [[2, 0], [0, 3], [3, 1]])


class Kendall(unittest.TestCase):
    def test_is_tau_b(self):
        generator = np.random.default_rng(1)
        for size in (4, 9, 60):
            a = np.round(generator.normal(size=size))
            b = np.round(a + generator.normal(size=size))
            self.assertAlmostEqual(kendall(a, b).point, stats.kendalltau(a, b).statistic)

    def test_interval_is_the_jackknifes(self):
        generator = np.random.default_rng(2)
        a = np.round(generator.normal(size=12))
        b = np.round(a + generator.normal(size=12))
        tau = stats.kendalltau(a, b).statistic
        pseudo = 12 * tau - 11 * np.array([
            stats.kendalltau(np.delete(a, i), np.delete(b, i)).statistic for i in range(12)])
        margin = stats.t.ppf(0.975, 11) * pseudo.std(ddof=1) / np.sqrt(12) / (1 - tau**2)
        np.testing.assert_allclose(kendall(a, b)[1:], np.tanh(np.arctanh(tau) + [-margin, margin]))

    def test_where_all_pairs_are_ordered_alike(self):
        bound = 2 * 0.025 ** (1 / 10) - 1
        np.testing.assert_allclose(kendall(range(20), range(20)), [1, bound, 1])
        np.testing.assert_allclose(kendall(range(20), range(20, 0, -1)), [-1, -1, -bound])

    def test_where_tau_is_the_same_whichever_is_left_out(self):
        for b in ([4, 5, 6, 7, 0, 1, 2, 3], [1, 0, 3, 2, 5, 4, 7, 6]):
            found = kendall(range(8), b)
            # Of 4 disjoint pairs (1 + tau) / 2 are ordered alike.
            alike = 2 * (1 + found.point)
            share = [stats.beta.ppf(0.025, alike, 5 - alike), stats.beta.ppf(0.975, alike + 1, 4 - alike)]
            np.testing.assert_allclose(found[1:], 2 * np.array(share) - 1)
            self.assertTrue(found.low < 0 < found.high, "of so few nothing is shown")
            np.testing.assert_allclose(kendall(range(8), b[::-1]), [-found.point, -found.high, -found.low])

    def test_what_does_not_vary_has_none(self):
        self.assertTrue(np.isnan(kendall([1, 1, 1, 1], [1, 2, 3, 4])).all())
        self.assertTrue(np.isnan(kendall([1, 2, 3], [1, 3, 2])[1:]).all())
        with self.assertRaisesRegex(ValueError, "kendall: 2 and 3 values, must be pairs"):
            kendall([1, 2], [1, 2, 3])


class PairedTest(unittest.TestCase):
    def test_is_students(self):
        x, y = np.random.default_rng(18).normal(size=(2, 6))
        found, p = paired_test(x - y, rounding(x, y))
        self.assertEqual(found, mean_interval(x - y))
        self.assertAlmostEqual(p, stats.ttest_rel(x, y).pvalue, places=14)

    def test_what_is_equal_but_for_rounding_is_equal(self):
        for n in (2, 3, 5):
            x = 0.1 * np.arange(1, n + 1)
            differences = x + 0.2 - x
            if n > 2:
                self.assertGreater(np.ptp(differences), 0)
            found, p = paired_test(differences, rounding(x + 0.2, x))
            self.assertEqual((found.low, found.high, p), (found.point, found.point, 2.0 ** (1 - n)))
            self.assertAlmostEqual(found.point, 0.2)
            self.assertEqual(paired_test(differences, rounding(x), exact=True)[1], 0.0)
            self.assertEqual(paired_test(differences - 0.2, rounding(x)), ((0.0, 0.0, 0.0), 1.0))

    def test_a_small_noise_is_noise(self):
        x = 1.0 + 1e-9 * np.array([0.0, 1.0, 2.0])
        found, p = paired_test(x - 1.0, rounding(x))
        self.assertLess(found.low, found.point)
        self.assertAlmostEqual(p, stats.ttest_1samp(x - 1.0, 0.0).pvalue)


class Differences(unittest.TestCase):
    """Of mechanisms by their training seeds."""

    def found(self, a, b, first_of_b=0, source="trained"):
        run = types.SimpleNamespace(measured_once=lambda objective: False, objectives=[types.SimpleNamespace(source=source)],
                                    replicates=lambda side, objective: dict(enumerate(*((b, first_of_b) if side == "b" else (a, 0)))))
        return difference(run, "a", "b", 0)

    def test_rounding_is_no_noise(self):
        noise = 0.1 * np.arange(1, 4)
        for n in (2, 3):
            found = self.found(noise[:n] + 0.2, noise[:n])
            self.assertEqual((found.low, found.high, found.p), (found.value, found.value, 2.0 ** (1 - n)))
        found = self.found(noise + 0.2 - 0.2, noise)
        self.assertEqual((found.value, found.low, found.high, found.p), (0.0, 0.0, 0.0, 1.0))
        self.assertEqual(self.found([1.1] * 3, [1.0] * 3).p, 0.25, "three seeds that change nothing are three seeds")
        self.assertEqual(self.found([1.1] * 3, [1.0] * 3, source="analytic").p, 0.0, "no seed changes them")

    def test_rounding_is_no_noise_without_shared_seeds(self):
        self.assertEqual(self.found([0.3] * 3, [0.1] * 3, 10).p, 2 / 20)
        self.assertEqual(self.found([0.3] * 3, [0.1] * 3, 10, source="analytic").p, 0.0, "no seed changes them")
        found = self.found([0.3, 0.3, 0.1 + 0.2], [0.1] * 2, 10)
        self.assertEqual((found.p, found.low, found.high), (2 / 10, found.value, found.value))
        found = self.found([0.3, 0.1 + 0.2], [0.1 + 0.2] * 2, 10)
        self.assertEqual((found.value, found.p), (0.0, 1.0))


class MeanInterval(unittest.TestCase):
    def test_is_students(self):
        x = np.random.default_rng(17).normal(size=8)
        low, high = stats.t.interval(0.9, 7, x.mean(), stats.sem(x))
        np.testing.assert_allclose(mean_interval(x, 0.9), (x.mean(), low, high), rtol=1e-12)

    def test_one_value_gives_no_interval(self):
        mean, low, high = mean_interval([2.5])
        self.assertEqual(mean, 2.5)
        self.assertTrue(np.isnan([low, high]).all())

    def test_of_some_that_fail(self):
        """As tests/unit/failures_test.cpp has them."""
        self.assertAlmostEqual(failure_line([[0.0, 0.01, 0.02, 0.03, 0.7], [0.2, 0.3, 0.7, np.nan]], 0.61), 0.31)
        runs = [2.00, 2.01, 2.02, 2.03]  # standard deviation 0.013
        self.assertAlmostEqual(failure_line([runs], 2.25), 2.13)
        for plateau in (2.10, 1.9, np.nan):  # 3.5 deviations; what needs no attention is better; not known
            self.assertEqual(failure_line([runs], plateau), np.inf)
        point, low, high = mean_with_failures([1.0] * 5, [False] * 5, 0.5)
        np.testing.assert_allclose((point, low, high), (1.0, 1.0 - 0.5 * (1.0 - 0.025 ** 0.2), 1.0))
        for fails, plateau in (([False] * 4, np.nan), ([True] * 3 + [False], 0.5)):  # of which nothing is known; one alone solves
            self.assertEqual(mean_with_failures(runs, fails, plateau), mean_interval(runs))
