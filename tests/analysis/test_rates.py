"""Whether mechanisms keep their ranks with rates of their own: numbers against what is known by hand, what is written or refused."""

import csv
import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np
from attnas.analysis.commands import rates
from fake_tables import IDENTITY, cell, functions, write_run, write_table
from attnas.analysis import tables
from attnas.analysis.digest import BadInput
from scripts import said

NAMES = functions()
VANILLA = "dot|softmax|none|fixed|bias|0"


def at(rate: float, **more) -> dict:
    return {**IDENTITY, "training": {"learning_rate": rate, "steps": 200, **more}}


class Settings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # The k-th of the other names has the k-th place; the vanilla one is between.
        self.others = [name for name in NAMES if name != VANILLA][:20]
        self.path = self.folder / "fake.table"
        self.write({name: 10.0 + k for k, name in enumerate(self.others)} | {VANILLA: 12.5})

    def write(self, perplexity):
        write_table(self.path, {(name, seed): cell(value + 0.01 * seed) for name, value in perplexity.items() for seed in range(3)},
                    facts=at(2e-3))

    @property
    def table(self):
        return tables.load([str(self.path)])

    def run_at(self, rate, nll, **more) -> str:
        """@param nll  of each mechanism, a value for each seed."""
        path = self.folder / f"results-{rate}-{len(more)}.json"
        write_run(path, {(name, 1_000_000 + seed): cell(float(np.exp(value))) for name, values in nll.items()
                         for seed, value in enumerate(values)}, identity=at(rate, **more))
        return str(path)

    def runs(self, names):
        """All are best at the table's rate, but the last of the names, which gains half a nat at 0.001."""
        own = {name: [2.0 + 0.1 * k, 2.1 + 0.1 * k, 2.2 + 0.1 * k] for k, name in enumerate(names)}
        low = {name: [value + 0.3 for value in values] for name, values in own.items()}
        low[names[-1]] = [value - 0.5 for value in own[names[-1]]]
        return [self.run_at(1e-3, low), self.run_at(2e-3, own)]

    def script(self, *arguments) -> tuple[int, str, str]:
        return said(rates.main, self.path, *arguments)


class Names(Settings):
    def test_the_best_others_by_chance_and_the_baseline(self):
        code, said, _ = self.script("--names", "4")
        names = said.split()
        self.assertEqual(code, 0)
        self.assertEqual(names[:4], self.others[:4])
        self.assertEqual(names[8:], [], "nas-train adds the baseline")
        self.assertEqual(len({*names[4:8]} & {*self.others[4:]}), 4)
        self.assertEqual(self.script("--names", "4")[1], said)

    def test_no_more_than_there_are(self):
        code, said, why = self.script("--names", "11")
        self.assertEqual((code, said), (2, ""))
        self.assertIn("--names 11, must be at most 10", why)


class Numbers(Settings):
    def test_a_rate_is_chosen_by_the_other_seeds(self):
        names = [self.others[0], self.others[9], VANILLA]
        equal = {name: [2.0, 2.0, 2.0] for name in names}
        lucky = {**equal, names[0]: [1.0, 3.2, 3.2]}  # lucky with one seed, worse with the others
        found = rates.read(self.table, [self.run_at(1e-3, lucky), self.run_at(2e-3, equal)])
        row = found.names.index(names[0])
        np.testing.assert_allclose(found.tuned[row], [2.0, 2.0, 2.0])
        np.testing.assert_allclose(found.tuned[found.vanilla], [2.0, 2.0, 2.0])

    def test_who_only_likes_the_rate(self):
        names = [self.others[0], self.others[1], self.others[9], self.others[12], VANILLA]
        found = rates.read(self.table, self.runs([*names[:2], VANILLA, names[2], names[3]]))
        self.assertEqual(found.rates, [1e-3, 2e-3])
        self.assertEqual([name for name, best in zip(found.names, found.best) if best], sorted(names[:2]))
        self.assertEqual(found.others.sum(), 2)
        gain = (found.at_own - found.tuned).mean(axis=1)
        self.assertAlmostEqual(gain[found.names.index(names[3])], 0.5)
        self.assertAlmostEqual(gain.sum(), 0.5)
        said = rates.verdict(found)
        self.assertIn("the drawn ones +0.250 [+0.250, +0.250]", said[0].replace("the 2 drawn ones", "the drawn ones"))
        self.assertIn("1 at 0.001 and 4 at 0.002", said[3])
        self.assertIn(f"{names[3]} is first, better than the baseline by +0.300", said[4])
        self.assertIn("end of the rates tried, 0.001 and 0.002", said[5])

    def test_controls_are_left_out(self):
        names = [self.others[0], self.others[1], self.others[9], self.others[12], VANILLA]
        plain = rates.read(self.table, self.runs(names))
        runs = self.runs(["2*none", *names])
        real = tables.genes
        with mock.patch.object(tables, "genes", lambda names, schema: real([name if "|" in name else "|" * 5 for name in names], schema)):
            found = rates.read(self.table, runs)
        self.assertEqual((found.names, found.vanilla), (plain.names, plain.vanilla))
        self.assertEqual(found.valid.shape, plain.valid.shape)

    def test_who_fails_at_a_rate_is_said_and_goes_on(self):
        names = [self.others[0], self.others[9], VANILLA]
        cells = {(name, 1_000_000 + seed): cell(9.0 - seed / 10, status="diverged" if (name, seed) == (names[1], 1) else "ok")
                 for name in names for seed in range(3)}
        high = self.folder / "high.json"
        write_run(high, cells, identity=at(4e-3))
        found = rates.read(self.table, [self.run_at(2e-3, {name: [2.5, 2.5, 2.5] for name in names}), str(high)])
        row = found.names.index(names[1])
        np.testing.assert_allclose(found.tuned[row], 2.5)
        np.testing.assert_allclose(found.tuned[found.vanilla], np.log([9.0, 8.9, 8.8]))
        self.assertIn(f"with every seed at 0.004, so that this rate is not theirs: {names[1]}.", " ".join(rates.verdict(found)))

    def test_what_is_written(self):
        runs = self.runs([*self.others[:2], VANILLA, *self.others[7:9]])
        code, said, why = self.script(*runs, "-o", str(self.folder / "out"))
        self.assertEqual((code, why), (0, ""))
        self.assertIn("rates.html, rates.md, rates.csv, 1 picture", said)
        with open(self.folder / "out/rates.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 5 * 2 * 3)
        self.assertEqual({row["seed"] for row in rows}, {"1000000", "1000001", "1000002"})
        self.assertEqual({row["group"] for row in rows}, {"best", "drawn", "baseline"})


class Refusals(Settings):
    def refused(self, runs, why):
        with self.assertRaises(BadInput) as raised:
            rates.read(self.table, runs)
        self.assertIn(why, str(raised.exception))

    def test_runs_that_are_not_alike(self):
        names = [self.others[0], self.others[9], VANILLA]
        nll = {name: [2.0, 2.1] for name in names}
        own = self.run_at(2e-3, nll)
        self.refused([own, own], "rates 0.002, 0.002, must be at least two, each once")
        self.refused([self.run_at(1e-3, nll), self.run_at(4e-3, nll)], "no run has the rate of")
        self.refused([own, self.run_at(1e-3, {**nll, self.others[5]: [2.0, 2.0]})], "has not the mechanisms and seeds of")
        self.refused([own, self.run_at(1e-3, nll, warmup_steps=3)], "in training beside the rate")
        self.refused([own, self.run_at(1e-3, {name: [2.0, 2.1] for name in [*self.others[:2], VANILLA]})], "has not the mechanisms")
        two = {name: [2.0, 2.1] for name in [*self.others[8:10], VANILLA]}
        self.refused([self.run_at(1e-3, two), self.run_at(2e-3, two)], "3 mechanisms, 0 of them the table's best")
        single = {name: [2.0] for name in names}
        self.refused([self.run_at(1e-3, single), self.run_at(2e-3, single)], "1 seed, must be at least 2")

    def test_seeds_by_which_the_best_were_chosen(self):
        runs = []
        for rate in (1e-3, 2e-3):
            runs.append(self.folder / f"search-{rate}.json")
            write_run(runs[-1], {(name, seed): cell(9.0) for name in (self.others[0], self.others[9], VANILLA) for seed in range(2)},
                      identity=at(rate))
        self.refused(list(map(str, runs)), "by which the best were chosen")

    def test_what_is_not_in_the_table(self):
        nll = {name: [2.0, 2.1] for name in [self.others[0], VANILLA, NAMES[-1]]}
        self.refused([self.run_at(1e-3, nll), self.run_at(2e-3, nll)], NAMES[-1])

    def test_runs_or_names(self):
        for arguments in ((), ("--names", "2", "run.json")):
            with self.subTest(arguments), self.assertRaises(SystemExit):
                self.script(*arguments)


if __name__ == "__main__":
    unittest.main()
