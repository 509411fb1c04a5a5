"""Whether and how soon: shares, medians and log-rank tests against values by hand; what is read, chosen, said and refused."""

import itertools
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from attnas.analysis import survival
from studies import mixers
from attnas.analysis.statistics import share_interval
from attnas.analysis.survival import Training
from python_tests import said

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python/attnas"))
from engines import solved  # noqa: E402


def training(placement, step, solved=True, seed=1, place="nowhere", rate=5e-3):
    both = {"gggg": {"nowhere": ("nowhere", "in attention"), "everywhere": ("in gdn", "everywhere")},
            "AAAA": {"nowhere": ("nowhere", "in gdn"), "everywhere": ("in attention", "everywhere")}}
    return Training(placement, both.get(placement, {}).get(place, (place,)), seed, rate, step, solved, 0.95 if solved else 0.3)


class Numbers(unittest.TestCase):
    def test_exact_shares(self):
        # 0.025^(1/5) and (0.025 / 2)... of all or none of five; 1 of 2 by hand: 1 - sqrt(0.975), sqrt(0.975).
        np.testing.assert_allclose(share_interval(5, 5), (1.0, 0.025 ** 0.2, 1.0))
        np.testing.assert_allclose(share_interval(0, 5), (0.0, 0.0, 1 - 0.025 ** 0.2))
        np.testing.assert_allclose(share_interval(1, 2), (0.5, 1 - 0.975 ** 0.5, 0.975 ** 0.5))
        self.assertEqual(survival.share_text(4, 40), "4 of 40 (0.03 to 0.24)")

    def test_what_is_censored_leaves_without_having_solved(self):
        times, left = survival.kaplan_meier([1, 2, 2, 3, 4], [1, 1, 0, 1, 0])
        np.testing.assert_allclose(times, [1, 2, 3])
        np.testing.assert_allclose(left, [4 / 5, 4 / 5 * 3 / 4, 3 / 5 * 1 / 2])
        self.assertEqual(survival.median([1, 2, 2, 3, 4], [1, 1, 0, 1, 0]), 3)
        self.assertEqual(survival.median([1, 9, 9], [1, 0, 0]), np.inf)
        self.assertEqual(survival.median([1, 2], [1, 1]), 1)

    def test_log_rank_scores(self):
        np.testing.assert_allclose(survival.log_rank_scores([1, 2, 3], [1, 1, 0]), [1 - 1 / 3, 1 - 5 / 6, -5 / 6])
        np.testing.assert_allclose(survival.log_rank_scores([2, 2, 5], [1, 1, 0]), [1 / 3, 1 / 3, -2 / 3], err_msg="a tie")
        np.testing.assert_allclose(survival.log_rank_scores([9, 9], [0, 0]), [0, 0])

    def test_of_pairs_the_permutation_is_a_sign_test(self):
        pairs = [i // 2 for i in range(12)]
        self.assertAlmostEqual(survival.permutation_p([0.5, -0.5] * 6, [1, 0] * 6, pairs), 2 / 64, delta=0.006)
        five = [0.5, -0.5] * 5 + [-0.5, 0.5]  # 2 (1 + 6) / 64
        self.assertAlmostEqual(survival.permutation_p(five, [1, 0] * 6, pairs), 14 / 64, delta=0.015)
        self.assertEqual(survival.permutation_p([0.0] * 12, [1, 0] * 6, pairs), 1.0)

    def test_an_effect_within_seeds(self):
        # In each seed the first takes twice the steps of the other; seeds differ tenfold, which is no part of it.
        runs = [training("Aggg", 200 * 10 ** seed, seed=seed) for seed in range(3)]
        runs += [training("gggA", 100 * 10 ** seed, seed != 2, seed=seed) for seed in range(3)]
        found = survival.effect(runs, [one.placement == "Aggg" for one in runs], [one.seed for one in runs])
        self.assertEqual((found.runs, found.seeds), (6, 3))
        np.testing.assert_allclose(found.ratio, (2, 2, 2))
        self.assertAlmostEqual(found.points.point, 1 / 3)
        self.assertIsNone(survival.effect(runs, [1.0] * 6, [one.seed for one in runs]))


class Placements(unittest.TestCase):
    def grid(self, slow=4):
        """Attention first takes `slow` times the steps without convolutions, and fails in one seed; with them nothing matters."""
        return [training("".join(letters), 250 * (slow if letters[0] == "A" and place == "nowhere" else 1) + 250 * seed,
                         letters[0] == "g" or place != "nowhere" or seed > 0, seed, place)
                for seed in range(3) for place in ("nowhere", "everywhere") for letters in itertools.product("Ag", repeat=4)]

    def test_first_layers_are_compared_where_their_number_is_equal(self):
        found = dict(survival.effects(self.grid()))
        first = found["convolutions nowhere: attention in the first layer, where the number of attention layers is given"]
        self.assertEqual(first.runs, 3 * 14, "none and four have one placement each")
        self.assertLess(first.soon, 0.01)
        self.assertGreater(first.ratio.low, 1)
        self.assertAlmostEqual(first.points.point, -1 / 3)
        same = found["convolutions everywhere: attention in the first layer, where the number of attention layers is given"]
        self.assertEqual((same.ratio.point, same.soon, same.whether), (1.0, 1.0, 1.0))
        self.assertEqual(len(found), 4, "convolutions in one mixer alone are not there")

    def test_the_page_and_its_file_say_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "runs.csv"
            file.write_text(survival.written(self.grid()))
            code, words, why = said(mixers.main, "survival", str(file), "-o", f"{folder}/out")
            self.assertEqual((code, why), (0, ""))
            self.assertIn("96 training runs of 32 models, 3 seeds. A run solves", words)
            self.assertIn("of at least 0.9; 8 that have not by step 1000 are censored.", words)
            self.assertIn("Convolutions nowhere, A first: 14 of 21 (0.43 to 0.85) solve, median step 1250.", words)
            page = (pathlib.Path(folder) / "out/survival.md").read_text()
            self.assertIn("| AAAA | 2 of 3, 1250, 0.005 | 3 of 3, 500, 0.005 |", page)
            # Ratios 4, 2.5 and 2 in the seeds; one of three solves less by 1.
            self.assertIn("layers is given | 42 | 2.71 (1.13 to 6.54) | p < 0.001 | -0.33 (-1.00 to 1.00) | p = 0.013 |", page)
            again = survival.read(f"{folder}/out/survival.csv")
            self.assertEqual(sorted(map(repr, again)), sorted(map(repr, self.grid())))
            self.assertTrue((pathlib.Path(folder) / "out/survival.svg").exists())
            file.write_text("placement,seed\nAAAA,1\n")
            self.assertIn("must be a file of survival.csv", said(mixers.main, "survival", str(file))[2])

    def test_the_best_rate_solves_most_then_soonest(self):
        runs = [training("gggg", 500, rate=1e-2), training("gggg", 9000, False, 2, rate=1e-2), training("gggg", 700, rate=5e-3),
                training("gggg", 700, True, 2, rate=5e-3), training("gggg", 800, rate=2e-3), training("gggg", 800, True, 2, rate=2e-3)]
        self.assertEqual(survival.best_rates(runs), {("nowhere", "g"): 5e-3})

    def test_what_an_evaluation_says(self):
        gdn, plain = "recurrent{gating=swish_gate,decay=scalar,update=delta}+swiglu", "attn{dropout=0,position=rope}+swiglu"

        def of(name, *accuracies):
            curve = [{"step": 250 * i, "valid": {"correct": 100 * one, "tokens": 100}} for i, one in enumerate(accuracies, 1)]
            return survival.of_evaluation({"candidate": f"model{{norm=rms}}/{name}", "curve": curve, "replicate": 1_000_002}, 5e-3)

        once = of(f"2*{plain}/2*{gdn}", 0.3, 0.95, 0.5)
        self.assertEqual((once.placement, once.places, once.seed, once.step, once.solved), ("AAgg", ("nowhere",), 3, 750, False))
        held = of(f"{plain.replace('}', ',conv=4}')}/3*{gdn}", 0.3, 0.9, 0.9)
        self.assertEqual((held.places, held.step, held.solved), (("in attention",), 500, True))
        self.assertEqual(of(f"4*{plain}", 0.1).places, ("nowhere", "in gdn"))
        self.assertEqual(of(f"{plain}/3*{gdn.replace('}', ',conv=4}')}", 0.1).places, ("in gdn",))

    def test_seeds_that_go_on_are_left_out(self):
        runs = [training(name, 100, seed=seed) for seed in (2, 1) for name in ("AAgg", "ggAA")] + [training("AAgg", 100, seed=3)]
        kept, going = survival.whole_seeds(runs)
        self.assertEqual(([(one.seed, one.placement) for one in kept], going),
                         ([(1, "AAgg"), (1, "ggAA"), (2, "AAgg"), (2, "ggAA")], 1))
        self.assertEqual(survival.whole_seeds(runs[:1] + runs[3:4])[1], 0, "none is whole")

    def test_of_a_run_that_goes_on_the_listed_models_are_read(self):
        curve = [{"step": 50, "valid": {"correct": 1, "tokens": 10}}]
        names = ["model{norm=rms}/4*attn{dropout=0,position=rope}+swiglu", "model{norm=rms}/4*attn{dropout=0,conv=4}+swiglu"]
        run = {"config": {"mechanisms": names[:1]}, "baseline": None, "identities": [{"training": {"learning_rate": 1e-2}}], "evaluations": [
            {"candidate": name, "identity": 0, "replicate": 1_000_000, "curve": own} for name in names for own in (curve, [])]}
        with mock.patch.object(survival.digest, "read", lambda _: run):
            self.assertEqual(survival.read("run"), [Training("AAAA", ("nowhere", "in gdn"), 1, 1e-2, 50, False, 0.1)])


class Engine(unittest.TestCase):
    def measured(self, accuracies, most=float("inf"), kind="finished"):
        """Training runs whose accuracy at step s is a table's, as nas-work would train them."""
        self.asked = []

        def measure(order, _):
            until = order["tasks"][0]["task"].get("until", 0)
            self.asked.append((until, [member["task"]["id"] for member in order["tasks"]]))
            return {"kind": kind, "evaluations": [
                {"id": member["task"]["id"], "status": "paused" if until else "ok",
                 "curve": [{"step": step, "valid": {"correct": 10 * accuracies[member["task"]["id"]][step - 1], "tokens": 10}}
                           for step in range(1, (until or 6) + 1)]} for member in order["tasks"]]}

        order = {"order": 7, "tasks": [{"task": {"id": name}, "evaluation": {}} for name in accuracies]}
        return solved.measure(mock.Mock(measure=measure), order, [1, 2, 3, 4, 5], 0.9, most)

    def test_what_has_solved_its_task_ends_there_and_the_rest_goes_on(self):
        line = self.measured({"a": [0, 0.9, 0.9, 1, 1, 1], "b": [0.9, 0.8, 0.9, 0.8, 0.9, 0.9], "c": [1, 1, 0, 0, 0, 0]})
        self.assertEqual([(one["id"], one["status"], one["curve"][-1]["step"]) for one in line["evaluations"]],
                         [("a", "stopped_early", 4), ("b", "ok", 6), ("c", "stopped_early", 2)])
        self.assertEqual(self.asked, [(2, ["a", "b", "c"]), (4, ["a", "b"]), (0, ["b"])])
        self.assertEqual(line["evaluations"][0]["reason"], "accuracy 0.9 from step 2")

    def test_what_has_not_by_the_most_steps_ends_there(self):
        line = self.measured({"a": [0.5] * 6}, most=3)
        self.assertEqual((line["evaluations"][0]["status"], line["evaluations"][0]["reason"]), ("stopped_early", "not by step 3"))
        self.assertEqual(self.measured({"a": [0.5] * 6}, kind="refused")["kind"], "refused")
