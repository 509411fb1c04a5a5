"""What is computed of one run: differences of its mechanisms; and numbers in words."""

import math
import unittest
from unittest import mock

import numpy as np
from attnas import frames
from page_fixture import BASELINE, PageTest
from scipy import stats

from attnas.analysis.differences import difference, from_baseline
from attnas.analysis.genes import genes
from attnas.analysis.run import Run
from attnas.analysis.words import count, digits, duration, number, percent


class Genes(PageTest):
    def test_a_number_that_does_not_vary_is_none(self):
        """Of the record only those with one dropout; what others have of it is not applicable."""
        self.fixture(objectives=1, replicates=1, asked=120, noise=4.0)
        run = Run(self.folder)
        dropout = next(gene for gene in genes(run) if gene.name == "attention_dropout")
        self.assertTrue(dropout.numeric)
        one = next(iter(dropout.choices.values()))[dropout.place]
        for kept in (None, one):
            choices = {label: [*own[:dropout.place], kept] for label, own in dropout.choices.items()}
            with mock.patch("attnas.analysis.genes._choices", return_value=choices):
                self.assertNotIn("attention_dropout", [gene.name for gene in genes(run)])


class Statistics(PageTest):
    def test_shared_seeds_are_paired_and_adjusted(self):
        self.fixture(objectives=1, replicates=4)
        run = Run(self.folder)
        found = from_baseline(run, 0)
        self.assertEqual(len(found), len(run.ranking))
        baseline = list(run.replicates(run.baseline, 0).values())
        p_values = []
        for each in found:
            expected = stats.ttest_rel(list(run.replicates(each.a, 0).values()), baseline)
            self.assertAlmostEqual(each.p, expected.pvalue, places=12)
            interval = stats.t.interval(0.95, 3, loc=each.value,
                                        scale=abs(each.value / expected.statistic))
            np.testing.assert_allclose((each.low, each.high), interval)
            p_values.append(each.p)
        least = int(np.argmin(p_values))
        self.assertAlmostEqual(found[least].p_holm, min(1, len(found) * p_values[least]))

    def test_other_seeds_are_compared_by_welch(self):
        fixture = self.fixture(objectives=1, replicates=3, asked=4, failures=False)
        for id_ in fixture.baseline:
            fixture.evaluations[id_]["replicate"] += 10
        fixture.write()
        run = Run(self.folder)
        a = run.ranking[0]
        found = difference(run, a, run.baseline, 0)
        x, y = (list(run.replicates(c, 0).values()) for c in (a, run.baseline))
        self.assertFalse(found.paired)
        self.assertAlmostEqual(found.p, stats.ttest_ind(x, y, equal_var=False).pvalue, places=12)
        self.assertAlmostEqual((found.low + found.high) / 2, np.mean(x) - np.mean(y))

    def test_equal_differences_are_as_few_as_they_are(self):
        fixture = self.fixture(objectives=1, replicates=3, asked=4, failures=False)
        first = Run(self.folder).ranking[0].name
        for noise, p in ((0.0, 0.25), (1.0, 0.25)):  # three seeds that change nothing are but three seeds
            for each in fixture.evaluations.values():
                if each["candidate"] in (first, Run(self.folder).baseline.name):
                    value = noise * (each["replicate"] % 3) + (0.25 if each["candidate"] == first else 0.75)
                    each["objectives"] = {name: value for name in each["objectives"]}
            fixture.write()
            run = Run(self.folder)
            a = next(candidate for candidate in run.ranking if candidate.name == first)
            self.assertEqual(difference(run, a, run.baseline, 0).p, p)

    def test_one_seed_is_no_comparison(self):
        self.fixture(objectives=1, replicates=1)
        run = Run(self.folder)
        self.assertEqual(from_baseline(run, 0), [])


class Frames(PageTest):
    def baseline(self) -> list:
        found = frames.candidates(Run(self.folder))
        return found[found.candidate == BASELINE][["status", "n", "first_ask", "times_asked"]].fillna(0).values.tolist()

    def test_a_baseline_of_which_a_replicate_failed_is_what_it_was_judged_to_be(self):
        made = self.fixture(objectives=1, replicates=2)
        self.assertEqual(self.baseline(), [["ok", 2, 0, 0]])
        made.evaluations[made.baseline[1]].update(status="diverged", usable=False)
        made.write()
        self.assertEqual(self.baseline(), [["diverged", 1, 0, 0]])
        made.further["config"]["constraints"] = ["divergence_rate <= 0.5"]
        made.write()
        self.assertEqual(self.baseline(), [["ok", 1, 0, 0]], "failures are judged by their share")
        made.answer(BASELINE, made.baseline, made.penalty())
        made.write()
        self.assertEqual(self.baseline(), [["diverged", 1, 41, 1]])


class Words(unittest.TestCase):
    def test_what_is_enormous_has_an_exponent(self):
        for words, expected in (
                (number(9.96e214), "9.96e+214"), (number(-2.9e294), "\u22122.90e+294"), (number(9.9e17), "990 P"),
                (number(1e-7), "1.00e\u221207"), (count(1e300), "1.00e+300"), (percent(8.5e70, 1), "8.50e+72 %"),
                (percent(28093505.5, 1), "2.81e+09 %"), (percent(1.5), "150 %"), (digits(1.6e294), "1.60e+294"),
                (digits(-1.6e294), "-1.60e+294"), (digits(2.5e14), "250.0T"), (digits(1e-7), "1.00e-07"),
                (digits(math.inf), "\u221e"), (digits(-math.inf), "-\u221e"), (digits(math.nan), "-")):
            self.assertEqual(words, expected)

    def test_numbers(self):
        for value, expected in ((62.494, "62.49"), (0.12345, "0.123"), (1613824.0, "1.61 M"),
                                (2000.0, "2000"), (0.0, "0.00"), (-3.0, "\u22123.00"),
                                (float("nan"), "\u2013"), (float("inf"), "\u221e")):
            self.assertEqual(number(value), expected)
        for seconds, expected in ((4.04, "4.0 s"), (59.6, "1 min 00 s"), (61, "1 min 01 s"),
                                  (7260, "2 h 01 min"), (90000, "1 d 1 h")):
            self.assertEqual(duration(seconds), expected)
