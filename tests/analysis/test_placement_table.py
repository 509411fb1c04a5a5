"""The complete table of placements: analysis/studies/placement_table.py."""

import argparse
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "analysis" / "studies"))

import placement_table as own
from attnas.errors import InputError
from attnas.library import core

LAYERS = 5
COSTS = np.array([0.1, 0.9, 0.2, 0.7, 0.4])  # of a block in each layer
PAIR = 0.5  # of blocks in both of layers 0 and 2


def losses(seeds, pair=PAIR, noise=0.01):
    bits = np.array([[p >> i & 1 for i in range(LAYERS)] for p in range(2**LAYERS)])
    truth = bits @ COSTS + pair * bits[:, 0] * bits[:, 2]
    random = np.random.default_rng(3)
    shift = random.normal(0, 1, (seeds, 1))  # a seed may do to all what it likes
    return truth + shift + random.normal(0, noise, (seeds, 2**LAYERS))


def table(loss):
    full = LAYERS - np.array([p.bit_count() for p in range(2**LAYERS)])
    drop = loss[:, :1] + np.array([sum((LAYERS - i) * (p >> i & 1) for i in range(LAYERS)) for p in range(2**LAYERS)])
    values = {name: {"kl": of / 4, "recall": 3 * of / 4} for name, of in
              {**dict.fromkeys(("F0", "F1", "F2", "F3"), loss), "drop": drop}.items()}
    return own.Table(LAYERS, full, values)


class Analysis(unittest.TestCase):
    def test_noise_and_the_seeds_that_it_needs(self):
        random = np.random.default_rng(1)
        full = np.repeat([1, 2], 200)
        sets, seeds = random.normal(0, 0.3, 400), random.normal(0, 5, (4, 1))
        between, within = own.noise(sets + seeds + random.normal(0, 0.1, (4, 400)), full)
        self.assertAlmostEqual(between, 0.3, delta=0.03)
        self.assertAlmostEqual(within, 0.1, delta=0.01)
        self.assertEqual(own.seeds_for(0.1, 0.1), 16)

    def test_shares_of_variance_are_those_without_noise(self):
        exact = own.shares(losses(2, noise=0.0))
        clean = [part[0] for part in exact]
        self.assertAlmostEqual(sum(clean), 1.0)
        additive = (np.delete(COSTS, (0, 2)) ** 2).sum() + ((COSTS[[0, 2]] + PAIR / 2) ** 2).sum()
        self.assertAlmostEqual(clean[1], PAIR**2 / 4 / (additive + PAIR**2 / 4))
        self.assertAlmostEqual(clean[2], 0.0)
        noisy = own.shares(losses(8, noise=0.3))
        for part, expected in zip(noisy, clean):
            self.assertLess(part[1], expected + 0.01)
            self.assertAlmostEqual(part[0], expected, delta=0.05)

    def test_regret_is_judged_on_other_seeds(self):
        loss = losses(4)
        best = [[[own.least(loss[a], table(loss).full, k, range(2**LAYERS))] for k in range(1, LAYERS)] for a in range(4)]
        lost = own.regrets(table(loss), "F3", best)
        self.assertTrue(np.isnan(lost[np.arange(4), np.arange(4)]).all())
        self.assertLess(abs(own.over_pairs(lost.mean(axis=2))[0]), 0.02)
        worst = [[[2**LAYERS - 1]] * (LAYERS - 1)] * 4
        mean, low, high = own.over_pairs(own.regrets(table(loss), "F3", worst)[:, :, 0])
        self.assertAlmostEqual(mean, 0.9, delta=0.03)  # keeping layer 1
        self.assertTrue(low <= mean <= high)

    def test_agreement_is_one_where_nothing_is_random_and_less_with_noise(self):
        clean, noisy = table(losses(3, noise=0.0)), table(losses(3, noise=1.0))
        self.assertGreater(own.agreement(clean, "F1", "F3", False).point, 0.99)
        self.assertLess(own.agreement(noisy, "F1", "F3", True).point, own.agreement(noisy, "F1", "F3", False).point)


class Corpus(unittest.TestCase):
    def test_what_is_there_twice_lies_in_the_text(self):
        text = bytes(range(97, 123)) * 100
        made = own.mixed(text, 5000, 1)
        self.assertEqual((len(made), made), (5000, own.mixed(text, 5000, 1)))
        self.assertNotEqual(made, own.mixed(text, 5000, 2))
        for seed in range(20):
            first, *again = own.said_again(own.random.Random(seed))
            self.assertEqual(len(set(first)), len(first))
            self.assertGreaterEqual(len(again), 1)
            self.assertEqual({bytes(sorted(one)) for one in again}, {bytes(sorted(first))})


class Files(unittest.TestCase):
    def test_rows_of_complete_seeds_come_back(self):
        def run(folder):
            names = ["gdn 0-1", "full 0; gdn 1", "full 1; gdn 0", "full 0-1"][:2 if Path(folder).name == "seed_3" else 4]
            if Path(folder).name.startswith("drop"):
                names = ["full 1; drop 0", "full 0; drop 1"]
            values = {measure + suffix: 0.5 + len(suffix) for measure in own.MEASURES for suffix in ("", "@1", "@2", "@3")}
            return SimpleNamespace(evaluations=[SimpleNamespace(candidate=name, replicate=0, usable=True, values=values) for name in names])

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(own, "Run", run):
            for seed in (1, 2, 3):
                Path(folder, f"seed_{seed}").mkdir()
            own.pack(argparse.Namespace(folder=folder, table=f"{folder}/table.csv"))
            found = own.read(f"{folder}/table.csv")
        self.assertEqual((found.layers, found.loss("F3").shape), (2, (2, 4)))
        self.assertEqual((found.loss("F3")[0, 0], found.loss("F1")[1, 3]), (1.0, 5.0))
        self.assertEqual(np.isfinite(found.loss("drop")[0]).tolist(), [False, True, True, False])
        self.assertEqual(own.to_digits(own.of_digits("011"), 3), "011")


class Selectors(unittest.TestCase):
    def test_of_an_additive_table_those_that_measure_take_the_best(self):
        try:
            core()
        except InputError as error:
            self.skipTest(str(error))
        found, asked = table(losses(2, pair=0.0, noise=1e-4)), {}
        replay = own.replay

        def once(name, of, fidelity, seed):  # all fidelities are the same here
            if (name, seed) not in asked:
                asked[name, seed] = replay(name, of, fidelity, seed)
            return asked[name, seed]

        self.enterContext(mock.patch.object(own, "replay", once))
        chosen = [own.choices(found, "F1", seed) for seed in range(2)]
        regret = {name: own.over_pairs(own.regrets(found, "F3", [one[name][1] for one in chosen]).mean(axis=2))[0] for name in chosen[0]}
        for name in ("one_block", "restore_one", "greedy_add", "greedy_drop", "beam", "all placements"):
            self.assertLess(abs(regret[name]), 1e-3, name)
        for name in ("uniform", "first_last", "random", "ablate"):
            self.assertGreater(regret[name], 0.05, name)
        self.assertLess(regret["best of 10 random"], regret["random"])
        self.assertEqual(chosen[0]["one_block"][0], 1 + LAYERS + LAYERS - 1)

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(own, "read", lambda path: found), \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            own.study(argparse.Namespace(table="table.csv", output=folder))
            self.assertIn("| one_block | F1 |", Path(folder, "placement_table.md").read_text())
        self.assertRegex(printed.getvalue(), r"(?s)take \w+, which loses .*By number, .*uniform [0-9.]+")
