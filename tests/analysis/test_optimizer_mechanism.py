"""Ranks of mechanisms under several optimisers: analysis/studies/optimizer_mechanism.py."""

import contextlib
import io
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from python_tests import FolderTest, ROOT

sys.path.insert(0, str(ROOT / "analysis" / "studies"))

import optimizer_mechanism as own
from attnas.analysis.files import csv_text
from attnas.errors import InputError

CHANCE = 2.0


def nll_of(optimizer, mechanism, rate, seed):
    """Muon exchanges sparsemax and cosine; gla is best at the last rate that lion begins with, rope diverges at high ones."""
    at = [own.VANILLA, *own.MECHANISMS].index(mechanism)
    if optimizer == "muon" and mechanism in ("sparsemax", "cosine"):
        at = 8 - at
    best = own.RATES[optimizer][3 if (optimizer, mechanism) == ("lion", "gla") else 1]
    noise = np.random.default_rng([seed, at]).normal(0, 0.001)
    return np.nan if mechanism == "rope" and rate > 5e-3 else 1 + 0.05 * at + 0.1 * abs(np.log2(rate / best)) + noise


def row(optimizer, mechanism, rate, seed):
    return ["urns", CHANCE, 0.5, optimizer, mechanism, rate, seed, *2 * [nll_of(optimizer, mechanism, rate, seed)]]


def rows(judged=own.JUDGING):
    return sorted(row(one, name, rate, seed) for one, rates in own.RATES.items() for name in (own.VANILLA, *own.MECHANISMS)
                  for rate in rates for seed in (*own.CHOOSING, *judged))


class Study(FolderTest):
    def test_trains_beyond_an_end_and_judges_at_the_best_rates(self):
        trained, commands = {}, []

        def run(command, **_):
            given = dict(word.split("=", 1) for word in command if "=" in word)
            path, names = Path(given["--output"]), command[1:command.index("urns.yaml")]
            rates = dict(one.rsplit(" ", 1) for one in own.json.loads(given.get("rates", "[]")))
            commands.append(given | {"rates": rates, "names": names})
            path.mkdir(parents=True)
            trained[path] = [
                row(given["training.optimizer"], name, rate, int(given["retest.first_seed"]) + seed)
                for name in (own.VANILLA, *names) for seed in range(1, int(given["--seeds"]) + 1) for rate in [
                    float(given.get("training.learning_rate") or rates["baseline" if name == own.VANILLA else name])]]
            return SimpleNamespace(returncode=0)

        self.enterContext(contextlib.chdir(self.folder))
        given = Namespace(config="urns.yaml", folder="runs")
        with contextlib.redirect_stdout(io.StringIO()), mock.patch.object(own.subprocess, "run", run), \
                mock.patch.object(own, "rows_of", lambda path: trained.get(path, [])):
            self.assertRaisesRegex(InputError, "pilot", own.train, given)
            own.pilot(given)
            self.assertIn('"passed": true', Path("runs/pilot.json").read_text())
            with mock.patch.object(own.Trainings, "beyond", lambda _: {("lion", 2e-3): ["gla"]}):  # cannot be answered
                own.Trainings("urns.yaml", Path("runs"), own.PILOT).tune("pilot_")
            own.train(given)
            first = len(commands)
            own.train(given)
            self.assertEqual(len(commands), first)
        self.assertEqual([one["names"] for one in commands if one.get("training.learning_rate") == "0.004" and
                          one["training.optimizer"] == "lion"], [["gla"]])
        judging = {one["training.optimizer"]: one["rates"] for one in commands if one["rates"]}
        self.assertEqual((judging["lion"]["gla"], judging["muon"]["baseline"], len(judging)), ("0.002", "0.004", 3))
        seeds = [row[6] for row in trained[Path("runs/muon_judged")] if row[4] == "gdn"]
        self.assertEqual(seeds, [*own.JUDGING])

    def test_only_optimisers_by_which_gates_hold_go_on(self):
        found = [[*one[:7], 0.9, 0.9] if one[3:5] == ["lion", "window+window=4"] else one for one in rows()]
        with contextlib.redirect_stdout(io.StringIO()), mock.patch.multiple(own, rows_in=lambda _: found, Trainings=mock.Mock()):
            own.pilot(Namespace(config="packages.yaml", folder=self.folder))
        record = own.json.loads((self.folder / "pilot.json").read_bytes())
        self.assertEqual((record["passed"], record["optimizers"]), (True, ["adamw", "muon"]))
        self.assertNotIn("rope", own.Trainings("packages.yaml", self.folder, own.MECHANISMS).mechanisms)

    def test_rows_are_of_runs_that_are_complete(self):
        (self.folder / "results.json").touch()
        ended = SimpleNamespace(
            usable=True, candidate="2*attn", replicate=1_000_003, curve=[{"valid": {"nll": 30.0, "tokens": 20}}], values={"test_nll": 1.6},
            identity={"training": {"learning_rate": 1e-3}})
        failed = SimpleNamespace(**vars(ended) | {"usable": False, "candidate": "2*gla", "curve": [], "values": {}})
        run = SimpleNamespace(name="urns", facts={"chance": {"nll": CHANCE}, "least_nll": 0.5}, evaluations=[ended, failed], retest={
            "replicates": 1, "candidates": [{"candidate": "2*attn", "role": "baseline", "label": "2*attn"},
                                            {"candidate": "2*gla", "role": "listed", "label": "model{norm=rms}/gla"}]})
        with mock.patch.object(own, "Run", lambda folder: run):
            first, second = own.rows_of(self.folder)
            self.assertEqual(first, ["urns", CHANCE, 0.5, "adamw", own.VANILLA, 1e-3, 4, 1.5, 1.6])
            self.assertEqual((second[4], np.isnan(second[7:]).all()), ("gla", True))
            run.evaluations.pop()
            self.assertEqual([*own.rows_of(self.folder)], [])
            run.retest = {"at_one_rate": True}  # stopped
            self.assertEqual([*own.rows_of(self.folder)], [])

    def test_seeds_that_chose_do_not_judge(self):
        (_, _, fresh, says), (_, _, early, denies) = (own.judged(own.cells_of(rows(seeds)), CHANCE) for seeds in (own.JUDGING, ()))
        self.assertEqual((says, fresh.shape, denies, early.shape), (True, (3, 12, 8), False, (3, 12, 3)))
        self.assertAlmostEqual(fresh[0, 0, 0], nll_of("adamw", own.VANILLA, 2e-3, 4))
        fewer = [row for row in rows() if row[3:6] != ["lion", "gdn", 1e-3]]
        self.assertEqual(own.judged(own.cells_of(fewer), CHANCE)[0], ["adamw", "muon"])
        cell = {1e-3: {1: (0.1, 0.1), 2: (3.0, 3.0), 3: (3.0, 3.0)}, 2e-3: {1: (2.0, 2.0), 2: (2.0, 2.0), 3: (2.0, 2.0)}}
        self.assertEqual((own.best_rate(cell), own.best_rate(cell, [1, 2])), (2e-3, 1e-3))
        self.assertEqual(own.failures(own.cells_of(rows()), ("muon", "rope"), CHANCE).split(",")[0], "22")

    def test_shares_are_those_without_noise(self):
        random = np.random.default_rng(1)
        truth = random.normal(0, 1, (1, 10, 1)) + random.normal(0, 0.3, (3, 10, 1))
        seeds = random.normal(0, 5, (1, 1, 8))
        exact, noisy = (own.shares(truth + seeds + random.normal(0, sd, (3, 10, 8))) for sd in (0, 0.5))
        self.assertAlmostEqual(sum(part[0] for part in exact), 1.0)
        for part, (mean, low, high) in zip(exact, noisy):
            self.assertAlmostEqual(part[0], mean, delta=0.05)
            self.assertTrue(low <= mean <= high)

    def test_the_page_says_what_turns(self):
        (self.folder / "table.csv").write_text(csv_text(own.HEAD, rows()))
        with contextlib.redirect_stdout(io.StringIO()):
            own.study(Namespace(table=self.folder / "table.csv", output=self.folder / "page"))
        text = (self.folder / "page/optimizer_mechanism.md").read_text()
        self.assertIn("(adamw, muon; 3 of 45 pairs shown in opposite order)", text)
        self.assertIn("(adamw, lion; 0 of 45 pairs", text)
        self.assertTrue((self.folder / "page/urns_lion.svg").is_file())

    def test_orders_on_two_tasks(self):
        one, other = (own.chapters_of("urns", rows(seeds))[2] for seeds in (own.JUDGING, ()))
        other["muon"] = {name: -nll for name, nll in other["muon"].items() if name != "gla"}
        found = [(optimizer, many, tau[:2]) for optimizer, many, tau in own.between(one, other)]
        self.assertEqual(found, [("adamw", "10", "1."), ("muon", "9", "−1"), ("lion", "10", "1.")])
