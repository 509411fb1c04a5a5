"""Data without variance, in all that is made of them: no infinite ratio, no test, no bound of what cannot be."""

import pathlib
import re
import tempfile
import unittest

import numpy as np

from attnas.analysis.commands import components
from attnas.analysis import factorial, noise, statistics, tables
from attnas.analysis.digest import limits
from attnas.analysis.schema import schema
from fake_tables import cell, functions, write_table
from python_tests import said

OPTIONS = {"similarity": ["dot", "cosine"], "gating": ["none", "output_gate"], "bias": ["bias", "no_bias"]}
LEVELS = (0.0, 0.1, 1.0, 34.56, 70176.0, 1e-9, 3.3e12)


def without_noise():
    """(what, (8, seeds)) of values that seeds do not change but for rounding."""
    steps = np.arange(8)[:, None]
    for level in LEVELS:
        for seeds in (1, 2, 3, 5):
            yield f"all {level} of {seeds}", np.full((8, seeds), level)
            yield f"all but one {level} of {seeds}", np.where(steps == 3, 1.5 * level, np.full((8, seeds), level))
            yield f"rising from {level} of {seeds}", level * (1 + steps / 7) + np.zeros((8, seeds))
            rounded = np.full((8, seeds), level)
            rounded[:, 0] *= 1 + 1e-16 * np.arange(8)
            yield f"rounded {level} of {seeds}", rounded + level * 1e-15 * (steps % 2)


def unpaired():
    """(what, (8, seeds)) of values that seeds change for all mechanisms alike."""
    for level in LEVELS[1:]:
        for seeds in (2, 3, 5):
            yield f"common to all, {level} of {seeds}", level * (1 + np.arange(8)[:, None] / 7 + np.arange(seeds))


def numbers(found) -> list[float]:
    """All that a result consists of."""
    if isinstance(found, (tuple, list)):
        return [number for each in found for number in numbers(each)]
    return [float(found)] if isinstance(found, (float, np.floating)) else []


class Statistics(unittest.TestCase):
    def test_ratios_to_no_variance_are_unknown(self):
        for what, values in (*without_noise(), *unpaired()):
            with self.subTest(what):
                found = noise.noise(values)
                if found is None:
                    self.assertEqual(values.shape[1], 1)
                    continue
                self.assertEqual(found.paired, 0.0)
                self.assertTrue(np.isnan([found.gain, found.seed_f, found.seed_p, *found.two_way, found.growth]).all(), found)
                self.assertFalse(np.isinf(numbers(list(vars(found).values()))).any(), found)
                if "common" not in what:
                    self.assertEqual(found.within, 0.0)
                    self.assertTrue(np.isnan(found.one_way).all(), found)

    def test_nothing_is_tested_against_no_variance(self):
        names = functions(OPTIONS)
        made = factorial.Factorial(tables.genes(names, schema(None).genes).drop(columns="attention_dropout"), schema(None))
        for what, values in (*without_noise(), *unpaired()):
            with self.subTest(what):
                for effect in factorial.decompose(made, factorial.means(values), 20):
                    self.assertTrue(np.isnan([effect.f, effect.p, effect.p_holm, effect.p_seeds, *effect.share[1:]]).all(), effect)
                    if what.startswith(("all 0", "all 1", "all 3", "all 7", "rounded")):
                        self.assertTrue(np.isnan(effect.share.point), effect)
                part = factorial.Factorial(tables.genes(names[:7] * 4, schema(None).genes).drop(columns="attention_dropout"), schema(None))
                for term in factorial.least_squares(part, np.tile(values[:7, 0], 4)).terms:
                    self.assertFalse(np.isinf([term.f, term.share]).any(), term)

    def test_ranks_of_rounding_are_none(self):
        for what, values in without_noise():
            if not what.startswith("rounded"):
                continue
            with self.subTest(what):
                found = noise.splits(values, values[::-1])
                self.assertTrue(np.isnan([found.mechanisms, found.luck]).all(), found)

    def test_what_cannot_be_tested_is_no_part_of_a_family(self):
        np.testing.assert_array_equal(statistics.holm([0.01, np.nan, 0.02]), [0.02, np.nan, 0.02])
        np.testing.assert_array_equal(statistics.holm([np.nan]), [np.nan])

    def test_bounds_are_what_can_be(self):
        for name, (least, most) in {"accuracy": (0.0, 1.0), "test_accuracy": (0.0, 1.0), "perplexity": (1.0, np.inf)}.items():
            for values in ([0.99, 1.0, 1.0], [0.0, 0.0, 0.02], [1.0, 1.001, 1.4]):
                found = statistics.mean_interval(np.clip(values, least, most)).within(*limits(name))
                self.assertGreaterEqual(found.low, least)
                self.assertLessEqual(found.high, most)
        self.assertTrue(np.isnan(statistics.mean_interval([0.5]).within(0.0, 1.0).low))
        self.assertEqual(limits("own"), (-np.inf, np.inf))


class Page(unittest.TestCase):
    """What components.py writes."""

    def written(self, cells, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            write_table(pathlib.Path(folder) / "x.table", cells)
            code, _, err = said(components.main, pathlib.Path(folder) / "x.table", "-o", pathlib.Path(folder) / "out", *arguments)
            self.assertEqual((code, err), (0, ""))
            page = pathlib.Path(folder) / "out"
            return (page / "components.md").read_text(encoding="utf-8"), (page / "components.csv").read_text(encoding="utf-8")

    def test_a_table_without_noise(self):
        for what, values in without_noise():
            if not 1.0 < values[0, 0] < 100.0:
                continue
            names = functions(OPTIONS)
            for some, which in (("all", names), ("not all", names[:-1]), ("two", names[:2])):
                with self.subTest(f"{what}, {some}"):
                    cells = {(name, seed): cell(values[i, seed]) for i, name in enumerate(which) for seed in range(values.shape[1])}
                    text, table = self.written(cells)
                    self.assertNotRegex(text, r"∞|\bnan\b|p < 0\.001|\| < 0\.001|infinit")
                    self.assertNotRegex(table, r"\binf\b")

    def test_accuracies_end_at_one(self):
        made = np.random.default_rng(1)
        cells = {(name, seed): cell(20.0) for name in functions(OPTIONS) for seed in range(3)}
        for own in cells.values():
            own["values"]["accuracy"] = min(0.97 + 0.1 * made.random(), 1.0)
        _, table = self.written(cells, "--objective", "accuracy")
        bounds = [float(bound) for row in table.splitlines() if row.startswith("option,")
                  for bound in re.split(",", row)[2:5]]
        self.assertEqual(len(bounds), 18)
        self.assertLessEqual(max(bounds), 1.0)
