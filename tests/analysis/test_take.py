"""What to take from a space: numbers against what is known by hand, what is said, written or refused."""

import csv
import dataclasses
import pathlib
import runpy
import unittest

import numpy as np
from studies import take
from fake_tables import cell, functions, write_table
from attnas.analysis import factorial
from attnas.analysis.digest import BadInput
from python_tests import FolderTest, said

NAMES = functions()
NOISE = np.array([[0.3, -0.1, -0.2], [-0.2, 0.3, -0.1], [0.1, 0.1, -0.2]])  # of a gene's options by seeds; rows average to 0


def made_up(effects: dict[str, float], noise: float = 1.0) -> dict[str, list[float]]:
    """Perplexities of all mechanisms with three seeds: 100, what their options or pairs of options add, and noise."""
    found = {}
    for name in NAMES:
        options = name.split("|")[:5]
        pairs = {f"{a} {b}" for a in options for b in options}
        own = 100.0 + sum(value for key, value in effects.items() if key in options or key in pairs)
        found[name] = list(own + noise * NOISE[len(options[2]) % 3])
    return found


def jittered(effects: dict[str, float], seed: int = 0) -> dict[str, list[float]]:
    """The same with a little noise for each training run."""
    rng = np.random.default_rng(seed)
    return {name: [value + 0.02 * rng.normal() for value in values] for name, values in made_up(effects, 0.0).items()}


class Tables(FolderTest):
    def table(self, name: str, perplexity: dict[str, list[float]], failed=(), infinite=()) -> str:
        path = self.folder / f"{name}.table"
        cells = {(mechanism, seed): cell(value, status="diverged" if (mechanism, seed) in failed else "ok")
                 for mechanism, values in perplexity.items() for seed, value in enumerate(values)}
        for one in infinite:
            cells[one]["values"]["test_perplexity"] = np.inf
        write_table(path, cells, facts={"name": name})
        return str(path)

    def study(self, *paths, genes=None) -> take.Study:
        return take.Study(take.read_all(paths), genes)

    def refused(self, why, *paths, genes=None):
        with self.assertRaises(BadInput) as raised:
            self.study(*paths, genes=genes)
        self.assertIn(why, str(raised.exception))


class Numbers(Tables):
    def test_gains_of_pairs_are_those_that_were_put_in(self):
        path = self.table("one", made_up({"additive": 5.0, "sparsemax": -3.0, "additive sparsemax": -4.0, "highway": 0.5}))
        study = self.study(path)
        self.assertEqual(study.genes, ["similarity", "normalization"])
        gains = {cell.name: cell.gains[0] for cell in study.cells}
        self.assertEqual(len(gains), 15)
        for name, expected in (("dot sparsemax", 3.0), ("additive softmax", -5.0), ("additive sparsemax", 2.0), ("cosine softmax", 0.0)):
            np.testing.assert_allclose(gains[name].point, expected, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(gains["dot sparsemax"], gains["cosine sparsemax"])
        self.assertEqual([cell.name for cell in study.cells[:3]], ["dot sparsemax", "cosine sparsemax", "silu_dot sparsemax"],
                         "of equals what changes less comes first")
        averaged = {choice.name: choice for choice in study.averaged}
        np.testing.assert_allclose(averaged["highway"].gains[0].point, -0.5)
        on_top = {choice.name: choice for choice in study.on_top}
        self.assertEqual(set(on_top), {"input_gate", "output_gate", "highway", "learned", "per_query", "no_bias"})
        np.testing.assert_allclose(on_top["highway"].gains[0].point, -0.5)
        self.assertLess(on_top["highway"].gains[0].low, -0.5, "gates have noise of their own here")

    def test_what_is_taken_is_shown_to_be_better_and_not_to_be_worse(self):
        common = {"sparsemax": -1.0, "silu_dot": 0.5, "cosine": 0.5}
        first = self.table("first", jittered({**common, "additive": -5.0}))
        second = self.table("second", jittered({**common, "additive": 5.0}, seed=1))
        study = self.study(first, second)
        self.assertEqual(study.shown.name, "dot sparsemax")
        np.testing.assert_allclose([gain.point for gain in study.alone[0].gains], [1.0, 1.0], atol=0.1)
        said = take.verdict(study)
        self.assertIn("Take dot sparsemax instead of dot softmax: better on first and second, shown to be worse on none.", said[1])
        self.assertIn("additive softmax is better on first and worse on second", " ".join(said))

    def test_certainty_comes_before_size(self):
        """A large mean gain that one seed has alone is no reason to leave out a small one that all have."""
        wild = jittered({"cosine": -0.5, "sigmoid_norm": 50.0, "relu_norm": 50.0})
        for name in NAMES:
            if name.startswith("dot|sparsemax"):
                wild[name][0] -= 20.0
        study = self.study(self.table("wild", wild), genes=["similarity", "normalization"])
        self.assertEqual(study.cells[0].name, "dot sparsemax")
        self.assertEqual(study.shown.name, "cosine softmax")

    def test_nothing_is_taken_where_nothing_gains_on_all(self):
        first = self.table("first", jittered({"dot": -1.0, "softmax": 0.1}))
        second = self.table("second", jittered({"softmax": -1.0, "dot": 0.1}))
        study = self.study(first, second)
        self.assertIsNone(study.closest)
        said = take.verdict(study)
        self.assertIn("Nothing is shown to be better than dot softmax on some table and not to be worse on another.", said[1])
        self.assertEqual(said[2], "No choice has a mean gain on every table.")
        self.assertEqual(study.alone, [])

    def test_no_claim_of_noise(self):
        rng = np.random.default_rng(3)
        noisy = {name: [100.0 + value for value in rng.normal(0, 5, 3)] for name in NAMES}
        said = take.verdict(self.study(self.table("noise", noisy)))
        self.assertNotIn("Take ", " ".join(said))
        self.assertIn("do not differ beyond the noise of their seeds on noise", said[1])
        self.assertIn("are 0 of ", " ".join(said))

    def test_p_is_by_holm_over_all_that_is_said(self):
        study = self.study(self.table("one", jittered({"sparsemax": -0.02, "additive": 3.0})))
        every = [choice for found in study.lists.values() for choice in found]
        self.assertEqual(len(every), 15 + 6 + 6 + 1)
        smallest = min(every, key=lambda choice: choice.raw[0])
        np.testing.assert_allclose(smallest.p[0], min(28 * smallest.raw[0], 1.0))

    def test_one_function_is_one_choice(self):
        path = self.table("one", jittered({"relu_norm": 1.0}))
        cells = self.study(path, genes=["normalization", "temperature"]).cells
        self.assertEqual(len(cells), 3 * 3 + 1 - 1, "relu_norm knows no temperature")
        everything = self.study(path, genes=["similarity", "normalization", "gating", "temperature", "bias"])
        self.assertEqual((len(everything.cells), everything.others, everything.alone), (319, [], []))
        self.assertNotIn("veraged over", " ".join(take.verdict(everything)))

    def test_shares_are_those_of_the_analysis_of_variance(self):
        task = take.read(self.table("one", jittered({"sparsemax": -1.0, "additive sparsemax": 2.0})))
        for effect in factorial.decompose(task.space, task.estimate, resamples=2):
            np.testing.assert_allclose(task.shares[effect.term], effect.share.point)

    def test_failures_count_as_the_worst(self):
        perplexity = jittered({"sparsemax": -3.0})
        name = "dot|sparsemax|none|fixed|bias|0"
        perplexity[name] = [*perplexity[name], 98.0]
        study = self.study(self.table("failing", perplexity, failed={(name, 1), (name, 3)}), genes=["normalization"])
        worst = max(value for values in perplexity.values() for value in values)
        np.testing.assert_allclose(study.tasks[0].values[NAMES.index(name), [1, 3]], worst)
        self.assertEqual(np.isnan(study.tasks[0].values).sum(), len(NAMES) - 1, "what was never trained has not failed")
        self.assertIn("2 training runs of", take.verdict(study)[-1])

    def test_what_ends_infinite_has_not_failed(self):
        name = "dot|sparsemax|none|fixed|bias|0"
        path = self.table("failing", jittered({"sparsemax": -3.0}), failed={(name, 1)}, infinite={(name, 0), (name, 2)})
        study = self.study(path, genes=["normalization"])
        self.assertEqual(np.ptp(study.tasks[0].values[NAMES.index(name)]), 0.0)
        self.assertEqual(take.verdict(study)[-2:], [
            f"1 training run of {path} failed and counts as the worst that did not.",
            f"2 training runs of {path} ended without a finite test perplexity and count as the worst that did not."])

    def test_what_no_seed_changes_is_as_few_seeds_as_there_are(self):
        path = self.table("exact", made_up({"sparsemax": -0.1, "additive": 0.3}, 0.0))
        study = self.study(path, genes=["similarity", "normalization"])
        cells = {cell.name: cell for cell in study.cells}
        self.assertEqual([cells[name].raw for name in ("dot sparsemax", "additive softmax", "cosine softmax")], [[0.25], [0.25], [1.0]])
        self.assertEqual(cells["cosine softmax"].gains[0], (0.0, 0.0, 0.0), "what is rounding is nothing")
        self.assertEqual({choice.raw[0] for choice in study.averaged}, {1.0})
        task = take.read(path)
        options = ({"normalization": "sparsemax"}, {"normalization": "softmax"}, task.common)
        self.assertEqual(task.test(*options)[1], 0.25)
        computed = dataclasses.replace(task, goal=dataclasses.replace(task.goal, split=""))
        self.assertEqual(computed.test(*options)[1], 0.0, "what is computed is what it is")

    def test_equal_gains_of_what_seeds_change_are_as_few_as_they_are(self):
        seeds = np.array([0.1, 0.2, 0.7])  # change all mechanisms alike
        study = self.study(self.table("alike", {name: list(seeds + values[0]) for name, values in made_up({"additive": 0.3}, 0.0).items()}),
                           genes=["similarity", "normalization"])
        cells = {cell.name: cell for cell in study.cells}
        self.assertEqual((cells["additive softmax"].raw, cells["dot sparsemax"].raw), ([0.25], [1.0]))

    def test_what_differs_by_rounding_does_not_differ(self):
        """What seeds do to all alike is taken out of sums, which leaves other last digits in each mechanism."""
        seeds = np.array([0.1, 0.2, 0.7])
        values = {name: [float(value) for value in 100.0 + seeds + 1e-14 * (i % 7)] for i, name in enumerate(NAMES)}
        task = take.read(self.table("alike", values))
        self.assertFalse(task.differ)
        self.assertGreater(np.ptp(task.estimate.mean), 0.0, "else nothing was asked")

    def test_genes_are_those_that_decide_or_those_asked_for(self):
        path = self.table("gates", made_up({"output_gate": 4.0, "learned": 3.0}))
        self.assertEqual(self.study(path).genes, ["gating", "temperature"])
        asked = self.study(path, genes=["gating"])
        self.assertEqual([cell.name for cell in asked.cells][-1], "output_gate")
        self.assertEqual(asked.others, ["similarity", "normalization", "temperature", "bias"])

    def test_a_comparison_takes_the_seeds_that_all_of_both_its_sides_have(self):
        """By hand: a pair gains 1 in each of the three seeds that all mechanisms have, and 3 in two that few have."""
        common = made_up({"dot sparsemax": -1.0, "relu_norm": 1.0}, 0.0)
        later = {"dot|softmax|": 110.0, "dot|sparsemax|": 107.0, "cosine|softmax|none|": 50.0}  # the last one: a part of its pair
        raced = {name: [*values, *(value for own, value in later.items() if name.startswith(own) for _ in range(2))]
                 for name, values in common.items()}
        del raced["dot|softmax|highway|learned|bias|0"][4:]  # one mechanism lacks the last one
        study, without = (self.study(self.table(name, own), genes=["similarity", "normalization"])
                          for name, own in (("raced", raced), ("common", common)))
        cells, before = ({cell.name: cell for cell in own.cells} for own in (study, without))
        self.assertEqual({name: cell.n[0] for name, cell in cells.items() if cell.n != [3]}, {"dot sparsemax": 4})
        gain = cells["dot sparsemax"].gains[0]
        np.testing.assert_allclose(gain, (1.5, 1.5 - 3.1824 / 2, 1.5 + 3.1824 / 2), atol=1e-4, err_msg="of 1, 1, 1, 3 by Student")
        np.testing.assert_allclose(cells["dot relu_norm"].gains[0], before["dot relu_norm"].gains[0], atol=1e-9)
        np.testing.assert_allclose(cells["dot sparsemax"].common[0], before["dot sparsemax"].gains[0])
        self.assertEqual([(choice.name, choice.n) for choice in study.alone], [("dot sparsemax", [5])])
        self.assertEqual({choice.n[0] for choice in study.averaged}, {3}, "everything takes part")
        self.assertEqual({choice.n[0] for choice in study.on_top}, {5})
        self.assertEqual((study.tasks[0].seeds, study.tasks[0].shares), (3, without.tasks[0].shares))

    def test_what_takes_no_part_needs_no_seeds(self):
        """relu_norm knows no temperature: it is the same on both sides of a comparison of temperatures."""
        more = {name: values if "|relu_norm|" in name else values * 2 for name, values in jittered({"relu_norm": 1.0}).items()}
        study = self.study(self.table("raced", more), genes=["similarity", "normalization"])
        self.assertEqual({choice.name: choice.n[0] for choice in study.averaged},
                         {"input_gate": 3, "output_gate": 3, "highway": 3, "learned": 6, "per_query": 6, "no_bias": 3})

    def test_seeds_of_a_table_do_not_count_on_another(self):
        perplexity = jittered({"dot sparsemax": -1.0})
        more = {name: values * 2 if name.startswith("dot|") else values for name, values in perplexity.items()}
        study = self.study(self.table("even", perplexity), self.table("raced", more), genes=["similarity", "normalization"])
        self.assertEqual(study.cells[0].name, "dot sparsemax")
        self.assertEqual(study.cells[0].n, [3, 6])

    def test_numbers_of_seeds_are_said_where_they_differ(self):
        perplexity = jittered({"dot sparsemax": -1.0})
        more = {name: [*values, 98.0 if "sparsemax" in name else 100.0] if name.startswith("dot|") else values
                for name, values in perplexity.items()}
        even, raced = (self.study(self.table(name, own), genes=["similarity", "normalization"])
                       for name, own in (("even", perplexity), ("raced", more)))
        told = [" ".join(take.numbers(study)[-1].parts[0].items) for study in (even, raced)]
        self.assertNotIn("n differs", told[0])
        self.assertIn("were chosen by no result (3 on raced)", told[1])
        self.assertRegex(told[1], r"By these seeds dot sparsemax gains \+0.99\d* .* on raced instead of \+1.25 ")
        self.assertIn("By these seeds dot sparsemax in the baseline gains +", told[1])
        self.assertIn("on raced (4 seeds, p", " ".join(take.verdict(raced)))

    def test_what_is_largest_has_its_p_beside_it(self):
        """Its interval may exclude 0 by chance alone, as the largest of many."""
        said = take.verdict(self.study(self.table("one", jittered({"sparsemax": -1.0}))))
        averaged = next(item for item in said if item.startswith("Averaged over everything else"))
        self.assertRegex(averaged, r"the largest gain is \S+ \[.*\] by \w+ on one \(3 seeds, p [=<] \S+ by Holm\), the largest loss "
                                   r"\S+ \[.*\] by \w+ on one \(3 seeds, p [=<] \S+ by Holm\)\.")

    def test_a_gain_is_no_loss(self):
        for effect, words in ((-0.5, r"the largest gain is \+\S+ [^,]*, .* by Holm\), the smallest \+"),
                              (0.5, r"the largest loss is \u2212\S+ [^,]*, .* by Holm\), the smallest \u2212")):
            made = jittered({gene: effect * (1 + i / 10) for i, gene in enumerate(
                ["input_gate", "output_gate", "highway", "learned", "per_query", "no_bias"])})
            study = self.study(self.table("one", made), genes=["similarity", "normalization"])
            averaged = next(item for item in take.verdict(study) if item.startswith("Averaged over everything else"))
            self.assertRegex(averaged, words)

    def test_what_is_maximised(self):
        path = self.table("one", made_up({"sparsemax": -1.0}))
        task = take.read(f"{path}:accuracy")
        self.assertTrue(task.goal.maximise)
        self.assertEqual(take.read(f"{path}:nll").goal.title, "test nll")


class Output(Tables):
    def script(self, *arguments) -> tuple[int, str, str]:
        return said(take.main, *arguments)

    def test_what_is_written(self):
        first = self.table("first", made_up({"sparsemax": -1.0, "additive": 1.0}))
        second = self.table("second", made_up({"sparsemax": 2.0, "additive": 1.0}))
        code, said, why = self.script(first, f"{second}:nll", "-o", str(self.folder / "out"))
        self.assertEqual((code, why), (0, ""))
        self.assertIn("take.html, take.md, take.csv, 2 pictures", said)
        page = (self.folder / "out/take.html").read_text(encoding="utf-8")
        self.assertIn("Rows are sorted by the worst of their gains on first and second, in standard deviations between mechanisms.", page)
        with open(self.folder / "out/take.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["list"] for row in rows}, {"choice", "averaged", "on_top"}, "nothing is taken")
        self.assertEqual({row["n"] for row in rows}, {"3"})
        self.assertTrue(all(row[name] == row[f"{name}_common"] for row in rows for name in ("gain", "low", "high")))
        self.assertEqual(sum(row["list"] == "choice" for row in rows), 15 * 2)
        self.assertEqual({row["table"] for row in rows}, {"first", "second"})

    def test_one_table_by_several_objectives(self):
        path = self.table("one #1", jittered({"sparsemax": -1.0}))
        code, _, why = self.script(path, f"{path}:nll", "-o", str(self.folder / "out"))
        self.assertEqual((code, why), (0, ""))
        self.assertTrue((self.folder / "out/one__1_perplexity.svg").exists(), "a name that stands in Markdown")

    def test_nothing_is_written_for_bad_input(self):
        path = self.table("one", made_up({}))
        for arguments, why in (((path, path), "one perplexity and one perplexity, must be"), ((f"{path}:bleu",), "no bleu"),
                               ((path, "--genes", "head"), "--genes: 'head' is not one of similarity,"),
                               ((path, "--genes", "gating,"), "--genes: '' is not one of"),
                               ((str(self.folder / "none.table"),), "none.table")):
            code, said, error = self.script(*arguments, "-o", str(self.folder / "out"))
            self.assertEqual((code, said), (2, ""))
            self.assertIn(why, error)
        self.assertFalse((self.folder / "out").exists())


class Refusals(Tables):
    def test_tables_of_a_part_of_the_space(self):
        some = {name: values for name, values in made_up({}).items() if name != NAMES[7]}
        self.refused("every combination", self.table("some", some))

    def test_a_single_seed(self):
        whole = made_up({})
        self.refused("1 seed with a test perplexity of every mechanism, must be at least 2",
                     self.table("few", {name: values[:1] for name, values in whole.items()}))

    def test_tables_of_other_spaces(self):
        fewer = {name: values for name, values in made_up({}).items() if "cosine" not in name}
        self.refused("has not the options and the baseline", self.table("whole", made_up({})), self.table("fewer", fewer))


class ReadmePicture(unittest.TestCase):
    def test_it_is_what_the_committed_results_say(self):
        docs = pathlib.Path(__file__).parents[2] / "docs"
        made = runpy.run_path(str(docs / "mechanisms.py"))["picture"]()
        self.assertEqual((docs / "mechanisms.svg").read_text(encoding="utf-8"), made)
        for row in ("SwiGLU", "vanilla attention", "window 8", "no mixer", "least possible"):
            self.assertIn(row, made)
