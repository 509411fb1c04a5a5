"""The comparison: known skills, equal algorithms, hand-computed numbers, refusals."""

import contextlib
import csv
import io
import re
import shutil
import unittest
import xml.etree.ElementTree

import numpy as np
from comparing import Comparing
from fake_stores import FLOPS, PERPLEXITY, write_comparison, write_run

from attnas.analysis import comparison, stores
from attnas.analysis.commands import compare

UNIT = {"unit": "1", "maximise": False, "best": 0.0, "worst": 1.0}
SQUARE = [{"name": "f1", "key": "f1", **UNIT}, {"name": "f2", "key": "f2", **UNIT}]


class KnownSkills(Comparing):
    def check(self, several):
        skills = {"random_search": 0.0, "poor": 0.1, "good": 3.0}
        self.compare(self.fake(skills, several=several, asks=30), "--show", "poor")
        rows = self.summary()
        self.assertEqual(list(rows)[0], "good")
        self.assertGreater(float(rows["good"]["improvement"]), comparison.MEANINGFUL)
        self.assertLess(float(rows["good"]["p_holm"]), 0.001)
        self.assertLess(float(rows["good"]["ert_50"]), float(rows["random_search"]["ert_50"]))
        # The best of 93 noisy values is lucky, and more so where many are nearly as good.
        self.assertGreater(float(rows["good"]["optimism_low"]), 0.0)
        self.assertIn("- Against random_search, meaningfully better: good.",
                      self.read("compare.md"))

    def test_one_objective(self):
        self.check(several=False)

    def test_two_objectives(self):
        self.check(several=True)
        for name in ("good", "poor"):
            self.assertIn("<svg", self.read(f"attainment_difference_{name}.svg"))

    def test_the_answer_comes_first(self):
        self.compare(self.fake({"random_search": 1.0, "b": 1.0, "c": 1.0}))
        verdict = self.read("compare.html").split('id="verdict"')[1].split("</section>")[0]
        first, folded = verdict.split("<details>")
        self.assertLessEqual(first.count("<li>"), 3)
        self.assertIn("Best: ", first)
        self.assertGreater(min(float(self.summary()[name]["p_holm"]) for name in "bc"), comparison.ALPHA)
        self.assertIn("is better than one of random_search with probability", first)
        self.assertIn("Against random_search, not distinguished: ", folded)
        self.assertIn("Against random_search, not distinguished: ", self.read("compare.md"))

    def test_files(self):
        self.compare(self.fake({"random_search": 0.0, "good": 3.0}, several=True))
        page = self.read("compare.html")
        self.assertIsNone(re.search(r"""src=|href="[^#]|url\(|@import""", page))
        pictures = sorted(path.name for path in (self.folder / "out").glob("*.svg"))
        self.assertEqual(page.count("<svg"), 2 * len(pictures), "wide and narrow")
        self.assertEqual(sorted(re.findall(r"\((\w+\.svg)\)", self.read("compare.md"))), pictures)
        for name in pictures:
            xml.etree.ElementTree.fromstring(self.read(name))
            self.assertNotRegex(self.read(name), r"\b(nan|inf)\b")
        self.assertIn("SHA-256 " + "a" * 64, page)
        self.assertIn("<pre>analysis/compare.py ", page)


class HandComputed(Comparing):
    def write(self):
        # True perplexities 100, 101, 103, 110; on the split that searches see all are 3 more.
        write_comparison(
            self.folder / "tiny.sqlite", [PERPLEXITY], [[100], [101], [103], [110]],
            [[103], [104], [106], [113]], ["sharp", "random_search"],
            [(0, 1, 0.4, [3, 1, 1, 0], [1, 2, 2, 3], [10, 20, 20, 30], [113, 104.5, 104.5, 102]),
             (0, 2, 0.2, [2, 1], [1, 2], [10, 20], [105, 106]),
             (1, 1, 0.1, [3, 2], [1, 2], [10, 20], [113, 107]),
             (1, 2, 0.1, [3, 3], [1, 1], [10, 10], [112, 112])])
        return self.folder / "tiny.sqlite"

    def check(self, algorithm, expected):
        row = self.summary()[algorithm]
        for name, value in expected.items():
            self.assertAlmostEqual(float(row[name]), value, msg=f"{algorithm}: {name}")

    def test_one_objective(self):
        self.compare(self.write())
        # Regret at the end: 0 and 3 (seed 2 believes in the third candidate); 3 and 10.
        self.check("sharp", {
            "searches": 2, "trainings": 2.5, "asks": 3, "gap_median": 1.5, "gap_iqm": 1.5,
            "believed_mean": 103.5, "expected_mean": 104.5, "true_mean": 101.5, "optimism": 1.0,
            "improvement": 3.5 / 4, "p_holm": 0.5, "mean_rank": 1.0,
            # Random search starts at a regret of 10: targets 5, 1 and 0.1.
            "ert_50": (2 + 1) / 2, "reached_50": 1.0, "ert_90": (2 + 2) / 1, "reached_90": 0.5,
            "ert_99": (3 + 2) / 1, "reached_99": 0.5, "repeated": 0.125,
            "trainings_per_ask": 5 / 6, "search_ms_per_ask": 100.0})
        self.check("random_search", {
            "gap_median": 6.5, "optimism": 0.0, "ert_50": (2 + 1) / 1, "reached_50": 0.5,
            "ert_90": np.inf, "reached_90": 0.0, "mean_rank": 2.0, "repeated": 0.25})
        self.assertEqual(self.summary()["random_search"]["improvement"], "")

    def test_curves_end_at_the_median_of_the_final_gaps(self):
        result = comparison.compare(stores.load([self.write()]), 3, resamples=20)
        for algorithm in result.algorithms:
            curve = algorithm.curves["trained", "gap"]
            self.assertEqual(curve.middle[-1], np.median(algorithm.final), algorithm.name)
            self.assertEqual((curve.low[-1], curve.high[-1]), (min(algorithm.final), max(algorithm.final)))
            self.assertTrue(np.isinf(curve.middle[0]), "nothing is reached yet")

    def test_budget(self):
        self.compare(self.write(), "--budget", "1")
        self.check("sharp", {"trainings": 1, "asks": 1, "gap_median": 6.5})
        # A repeated ask costs nothing, so that it is within the budget.
        self.check("random_search", {"asks": 1.5, "gap_median": 10})

    def test_by_steps(self):
        # The second asks at a rung first, which is no answer yet, and pays for what it has trained alone.
        path = self.folder / "steps.sqlite"
        nan = float("nan")
        write_comparison(
            path, [PERPLEXITY], [[100], [101], [103], [110]], None, ["random_search", "asha"],
            [(0, 1, 0.1, [3, 2, 0], [1, 2, 3], [10, 20, 30], [110, 103, 100]),
             (1, 1, 0.1, [3, 2, 1, 1], [1, 2, 3, 3], [1, 2, 3, 10], [nan, nan, nan, 101])],
            version=1, trainings=3, steps=[[400, 800, 1200], [50, 100, 150, 500]])
        self.compare(path, "--by", "steps", "--budget", "1")
        self.check("random_search", {"trainings": 1.0, "gap_median": 10})
        self.check("asha", {"trainings": 0.375, "asks": 3, "gap_median": 290})
        self.compare(path, "--by", "steps", "--budget", "2")
        self.check("random_search", {"trainings": 2.0, "gap_median": 3})
        self.check("asha", {"trainings": 1.25, "asks": 4, "gap_median": 1})
        self.assertIn("training steps, in whole training runs", self.read("gap_by_trained.svg"))
        self.assertIn("trainings' steps", self.read("compare.md"))
        self.compare(path, "--budget", "2")
        self.check("asha", {"trainings": 1.25, "asks": 4})
        self.compare(path, "--by", "trainings")
        self.check("asha", {"trainings": 3, "asks": 4, "gap_median": 1})

    def test_an_answer_beyond_the_budget_belongs_to_its_search(self):
        # As that of PASHA, which trains the best of its highest rung to the end when the budget is spent.
        path = self.folder / "beyond.sqlite"
        nan = float("nan")
        write_comparison(path, [PERPLEXITY], [[100], [101]], None, ["pasha", "random_search"],
                         [(0, 1, 0.1, [0, 1, 0], [1, 2, 2], [1, 2, 9], [nan, nan, 100]),
                          (1, 1, 0.1, [1], [1], [9], [101])],
                         version=1, trainings=2, steps=[[300, 800, 1100], [400]])
        self.compare(path, "--by", "steps")
        self.check("pasha", {"trainings": 2.75, "asks": 3, "gap_median": 0})
        self.compare(path, "--by", "steps", "--budget", "1", "--at", "1")
        self.assertIn("| pasha | nothing in 100 % |", self.read("compare.md"))

    def budgets(self):
        return {(row["budget"], row["algorithm"]): row for row in csv.DictReader(io.StringIO(self.read("budgets.csv")))}

    def test_at_several_budgets(self):
        path = self.write()
        self.compare(path, "--at", "1,3")
        rows = self.budgets()
        self.assertEqual([float(rows[at, "sharp"]["gap_iqm"]) for at in "13"], [6.5, 1.5])
        self.assertEqual([float(rows[at, "random_search"]["gap_iqm"]) for at in "13"], [10, 6.5])
        # All are among the best: 3 and 2; then 3, 1, 0 and 2, 1. All that are begun end.
        self.assertEqual([float(rows[at, "sharp"]["best_begun"]) for at in "13"], [1.0, 2.5])
        self.assertEqual(float(rows["3", "sharp"]["best_pruned"]), 0.0)
        self.assertIn("## At several budgets", self.read("compare.md"))
        self.assertRegex(self.read("compare.md"), r"Of the best [1-9] mechanisms a search\s+begins")
        self.assertIn("| random_search | 10.0 [", self.read("compare.md"))
        (self.folder / "out" / "budgets.csv").unlink()
        self.compare(path)
        self.assertNotIn("At several budgets", self.read("compare.md"))
        self.assertFalse((self.folder / "out" / "budgets.csv").exists())

    def test_what_is_paused_for_good_is_pruned(self):
        path = self.folder / "paused.sqlite"
        nan = float("nan")
        write_comparison(path, [PERPLEXITY], [[100], [101], [103]], None, ["asha"],
                         [(0, 1, 0.1, [0, 1, 0, 2], [1, 2, 2, 3], [1, 2, 9, 10], [nan, nan, 100, nan]),
                          (0, 2, 0.1, [0, 1, 1, 1], [1, 2, 2, 2], [1, 2, 9, 9], [nan, nan, nan, 101])],
                         version=1, trainings=3, steps=[[100, 200, 500, 600], [100, 200, 300, 600]])
        self.compare(path, "--by", "steps", "--at", "3")
        row = self.budgets()["3", "asha"]
        self.assertAlmostEqual(float(row["best_begun"]), 2.5)
        self.assertAlmostEqual(float(row["best_pruned"]), 3 / 5)

    def test_a_target_that_is_given_up_is_not_reached(self):
        # Each is trained again and again: the best candidate answers, then loses its luck.
        write_comparison(
            self.folder / "lost.sqlite", [PERPLEXITY], [[100], [101], [110]], None,
            ["fickle", "random_search"],
            [(0, 1, 0.1, [2, 0, 1, 0], [1, 2, 3, 4], [1, 2, 3, 4], [113, 102, 103, 115]),
             (1, 1, 0.1, [2], [1], [1], [113])])
        self.compare(self.folder / "lost.sqlite")
        self.check("fickle", {"gap_median": 1.0, "ert_50": 2.0, "ert_90": 2.0, "reached_90": 1.0,
                              "ert_99": np.inf, "reached_99": 0.0})

    def test_a_retrained_candidate_is_believed_by_its_mean(self):
        # The last training of the first was lucky; by its mean it is not the better one.
        for folder, settings, winner in (("latest", {}, 3.0),
                                         ("mean", {"evaluation": {"repeated": "retrain"}}, 0.0)):
            write_comparison(self.folder / folder, [PERPLEXITY], [[103], [100]], None, ["x"],
                             [(0, 1, 0.1, [0, 1, 0], [1, 2, 3], [1, 2, 3], [110, 105, 102])],
                             settings=settings)
            self.compare(self.folder / folder)
            self.check("x", {"gap_median": winner})

    def test_the_front_is_that_of_the_last_beliefs(self):
        write_comparison(self.folder / "square.sqlite", SQUARE, [[0, 1], [0.5, 0.5]], None,
                         ["x", "y"], [(0, 1, 0.1, [1, 0, 1], [1, 2, 3], [1, 2, 3],
                                       [[0.4, 0.4], [0, 1], [0.5, 0.5]]),
                                      (1, 1, 0.1, [1], [1], [1], [[0.4, 0.4]])])
        self.compare(self.folder / "square.sqlite")
        self.check("x", {"believed_mean": 1.0, "true_mean": 1.0, "optimism": 0.0})

    def test_the_best_answer_is_believed_where_that_is_reported(self):
        write_comparison(self.folder / "best.sqlite", [PERPLEXITY], [[103], [100]], None, ["x"],
                         [(0, 1, 0.1, [0, 1, 0], [1, 2, 3], [1, 2, 3], [101, 102, 110])],
                         settings={"belief": "best_answer", "evaluation": {"repeated": "retrain"}})
        self.compare(self.folder / "best.sqlite")
        self.check("x", {"gap_median": 3.0, "believed_mean": 101.0, "everything_iqm": 0.0})

    def test_what_is_judged_is_what_a_search_hands_over(self):
        # The second candidate is on the true front, and looked dominated.
        truth = [[0, 1], [0.5, 0.5], [1, 0]]
        write_comparison(self.folder / "square.sqlite", SQUARE, truth, truth, ["x"],
                         [(0, 1, 0.1, [0, 1, 2], [1, 2, 3], [1, 2, 3], [[0, 1], [1, 1], [1, 0]])])
        self.compare(self.folder / "square.sqlite")
        whole, ends = 0.5 * 0.1 + 0.5 * 0.6 + 0.1 * 1.1, 2 * 1.1 * 0.1 - 0.01
        self.check("x", {"gap_median": 1 - ends / whole, "true_mean": ends / whole,
                         "everything_iqm": 0.0, "reached_99": 0.0})
        # With one objective alike: the best was seen, and looked worse than another.
        write_comparison(self.folder / "line.sqlite", [PERPLEXITY], [[100], [101]], None, ["x"],
                         [(0, 1, 0.1, [0, 1], [1, 2], [1, 2], [103, 102])])
        self.compare(self.folder / "line.sqlite")
        self.check("x", {"gap_median": 1.0, "everything_iqm": 0.0})
        self.assertIn("of everything evaluated: IQM [95 %]", self.read("compare.md"))

    def test_evaluations_beyond_the_replicates_are_counted(self):
        def write(mode):
            write_comparison(self.folder / mode, [PERPLEXITY], [[100], [101]], None, ["x", "y"],
                             [(0, 1, 0.1, [0, 0, 1], [6, 7, 8], [1, 2, 3], [103, 104, 102]),
                              (1, 1, 0.1, [0, 1], [1, 2], [1, 2], [103, 102])], mode=mode)
            self.compare(self.folder / mode)

        write("noisy")  # of a table of five replicates
        self.check("x", {"recycled": 2})
        self.check("y", {"recycled": 0})
        self.assertIn("- 2 evaluations met a recorded training of their mechanism again",
                      self.read("compare.md"))
        write("mean")
        self.check("x", {"recycled": 0})

    def test_reference(self):
        self.compare(self.write(), "--reference", "Sharp")
        self.check("random_search", {"improvement": 0.5 / 4})

    def test_two_objectives(self):
        truth = [[0, 1], [0.5, 0.5], [1, 0], [1, 1]]
        # Searches see the second candidate better than it is.
        write_comparison(self.folder / "square.sqlite", SQUARE, truth, truth, ["narrow", "wide"],
                         [(0, 1, 0.1, [1, 3], [1, 2], [1, 2], [[0.4, 0.4], [1, 1]]),
                          (1, 1, 0.1, [1, 0, 2], [1, 2, 3], [1, 2, 3], [[0.5, 0.5], [0, 1],
                                                                        [1, 0]])])
        self.compare(self.folder / "square.sqlite")
        whole = 0.5 * 0.1 + 0.5 * 0.6 + 0.1 * 1.1
        self.check("narrow", {"gap_median": 1 - 0.36 / whole, "believed_mean": 0.49 / whole,
                              "true_mean": 0.36 / whole, "optimism": (0.49 - 0.36) / whole})
        self.check("wide", {"gap_median": 0.0, "optimism": 0.0})
        self.assertIn("With one search an algorithm nothing can be tested", self.read("compare.md"))

    def test_one_search_of_one_is_not_said_to_be_distinguished(self):
        write_comparison(self.folder / "few.sqlite", [PERPLEXITY], [[100], [101], [103]], None, ["a", "b", "random_search"],
                         [(number, seed, 0.1, [number], [1], [1], [100 + number])
                          for number in range(3) for seed in range(1, 2 if number == 2 else 7)])
        self.compare(self.folder / "few.sqlite")
        text = self.read("compare.md")
        self.assertNotIn("every other is distinguished", text)
        self.assertIn("- Against random_search, one search: no test: a and b.", text)

    def test_of_what_formulas_give_nothing_is_said_of_noise(self):
        write_comparison(self.folder / "exact.sqlite", [FLOPS], [[2e6], [1e6]], [[2e6], [1e6]], ["x", "random_search"],
                         [(number, seed, 0.1, [number], [1], [1], [2e6 - 1e6 * number])
                          for number in (0, 1) for seed in (1, 2)])
        self.compare(self.folder / "exact.sqlite")
        text = self.read("compare.md")
        for words in ("noise", "noisy", "Selection bias", "taken as exact", "Believed against true"):
            self.assertNotIn(words, text)

    def test_maximised_objective(self):
        accuracy = {**PERPLEXITY, "name": "accuracy", "maximise": True, "best": 1, "worst": 0}
        write_comparison(self.folder / "max.sqlite", [accuracy], [[-0.5], [-0.75]], None, ["x"],
                         [(0, 1, 0.1, [0], [1], [1], [-0.6]), (0, 2, 0.1, [1], [1], [1], [-0.7])])
        self.compare(self.folder / "max.sqlite")
        self.check("x", {"gap_median": 0.125, "believed_mean": 0.65, "true_mean": 0.625,
                         "optimism": 0.025})

    def test_a_search_of_failures_alone_hands_over_one(self):
        """As the closing table of nas-compare has it: 390 - 100, or no hypervolume."""
        one, two = self.folder / "one.sqlite", self.folder / "two.sqlite"
        retrain = {"evaluation": {"repeated": "retrain"}}
        write_comparison(one, [PERPLEXITY], [[100.0], [103.0]], [[101.0], [104.0]], ["x", "y"],
                         [(0, 1, 0.1, [0, 0], [1, 2], [1, 2], [390.0, 105.0]),
                          (1, 1, 0.1, [1, 0], [1, 2], [1, 2], [390.0, 390.0])], settings=retrain)
        self.compare(one)
        self.check("x", {"gap_median": 0.0, "believed_mean": 105.0, "true_mean": 100.0})
        self.check("y", {"gap_median": 290.0, "everything_median": 0.0, "true_mean": 390.0,
                         "optimism": 0.0})
        self.assertIn("Searches that found nothing usable: 1 of y. They count as if they had returned "
                      "a failure.", self.read("compare.md"))
        picture = self.read("final_quality.svg")
        self.assertIn("nothing usable in 1 of 1", picture)
        self.assertNotIn(">300<", picture)  # its penalty is on no axis
        shutil.rmtree(self.folder / "out")
        write_comparison(two, SQUARE, [[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]],
                         ["x", "y"], [(0, 1, 0.1, [0], [1], [1], [[0.5, 0.5]]),
                                      (1, 1, 0.1, [1], [1], [1], [[10.0, 10.0]])])
        self.compare(two)
        self.check("y", {"gap_median": 1.0, "true_mean": 0.0})


class RealRuns(Comparing):
    def write(self, algorithm, seed, values, **options):
        path = self.folder / f"{algorithm}_{seed}.json"
        path.unlink(missing_ok=True)
        write_run(path, {"name": algorithm}, seed,
                  [(f"c{value}", [f"{value}"], [value], 2.0, "ok") for value in values], **options)
        return path

    def test_runs_on_different_data_are_not_compared(self):
        def runs(first, second):
            return [self.write(name, 1, [105.0, 104.0], **options)
                    for name, options in (("random_search", first), ("de", second))]

        brown = {"config": {"data": {"corpus": "brown"}, "objectives": ["perplexity"]}}
        for other, words in (
                ({"config": {"data": {"corpus": "text_file"}, "objectives": ["perplexity"]}},
                 "de_1.json: data.corpus = text_file in place of brown of "),
                ({"config": {"data": {"corpus": "brown"}, "objectives": [
                    {"name": "perplexity", "of": "x"}]}},
                 "de_1.json: objectives.perplexity.of = x in place of nothing of ")):
            paths = runs(brown, other)
            self.assertIn(words, self.compare(*paths, exit_code=2))
            self.assertFalse((self.folder / "out").exists())
            self.compare(*paths, "--force")
            text = self.read("compare.md")
            self.assertLess(text.index(words), text.index("## Verdict"))
            shutil.rmtree(self.folder / "out")
        hashes = [{**brown, "facts": {"corpus_hash": letter}} for letter in "aba"]
        self.assertIn("data = b in place of a of", self.compare(*runs(*hashes[:2]), exit_code=2))
        self.compare(*runs(hashes[0], {**hashes[2], "config": {
            "data": {"corpus": "text_file", "path": "elsewhere"}, "objectives": ["perplexity"]}}))

    def test_runs_of_other_training_or_models_are_not_pooled(self):
        short, long = ({"config": {"training": {"steps": steps, "checkpoint_minutes": steps},
                                   "model": {"width": steps // 2}}} for steps in (20, 30))
        for seed in (1, 2):  # also where both have the same seed, and are yet two runs
            first = self.write("de", 1, [105.0], **short)
            second = self.folder / "second.json"
            self.write("de", seed, [104.0], **long).rename(second)
            first = self.write("de", 1, [105.0], **short)
            self.assertIn("second.json: model.width = 15 in place of 10, training.steps = 30 in place of 20 "
                          f"of {first}; their values cannot be compared (--force does)",
                          self.compare(first, second, exit_code=2))
            self.compare(first, second, "--force")
            text = self.read("compare.md")
            self.assertLess(text.index("Beware, these values cannot be compared: "), text.index("## Verdict"))
            self.assertEqual(list(self.summary()), ["de, width 15, steps 30", "de, width 10, steps 20"])
            self.assertNotIn("Best:", text)
            self.assertIn("- One search of each says nothing of the algorithms", text)

    def test_without_truth(self):
        self.compare(self.write("random_search", 1, [105.0, 104.0]),
                     self.write("random_search", 2, [106.0, 103.0]),
                     self.write("de", 1, [104.0, 101.0]), self.write("de", 3, [104.5, 102.0]))
        text = self.read("compare.md")
        self.assertIn("No store holds ground truth: what is compared is what the searches measured", text)
        self.assertNotIn("regret", text)
        self.assertNotIn("Believed against true", text)
        self.assertIn("Mann and Whitney's U test, since seeds differ", text)
        row = self.summary()["de"]
        self.assertEqual((float(row["gap_median"]), row["optimism"], row["mean_rank"]),
                         (0.5, "", ""))

    def test_searches_that_found_nothing_are_named(self):
        found = self.write("de", 1, [104.0, 101.0])
        self.compare(found)
        self.assertNotIn("nothing usable", self.read("compare.md"))
        write_run(self.folder / "failed.json", {"name": "random_search"}, 1,
                  [("a", ["1"], [1e9], 1.0, "diverged")])
        self.compare(found, self.folder / "failed.json")
        self.assertIn("- Searches that found nothing usable: 1 of random_search. They count as "
                      "if they had returned a failure.", self.read("compare.md"))

    def test_a_retest_judges_runs(self):
        paths = []
        for name, seed, test in (("random_search", 1, 106.0), ("random_search", 2, 108.0), ("de", 1, 103.0), ("de", 2, 105.0)):
            paths.append(self.folder / f"{name}{seed}.json")
            write_run(paths[-1], {"name": name}, seed, [("a", ["1"], [100.0], 1.0, "ok"), ("b", ["2"], [104.0], 1.0, "ok")],
                      more={"retest": {"candidates": [{"candidate": "a", "retest": [{"mean": 99.0}], "test": {"mean": test}},
                                                      {"candidate": "b", "retest": [{"mean": 9.0}], "test": {"mean": 9.0}}]}})
        self.compare(*paths)
        rows = self.summary()
        self.assertEqual([(float(rows[name]["unseen_mean"]), rows[name]["unseen_searches"]) for name in ("random_search", "de")],
                         [(107.0, "2"), (104.0, "2")])  # of what they believe best, on the test split
        self.assertEqual(float(rows["de"]["unseen_improvement"]), 1.0)
        text = self.read("compare.md")
        self.assertIn("Judged by re-tests on fresh seeds, which know nothing of the choice, winners have a mean perplexity from "
                      "104.0 (de) to 107.0 (random_search)", text)
        self.assertIn("| de | 2 | 104.0 [91.3, 116.7] | 1.00", text)

    def test_a_retest_judges_fronts(self):
        paths = []
        for name, worse in (("random_search", 3.0), ("de", 0.0)):
            paths.append(self.folder / f"{name}.json")
            write_run(paths[-1], {"name": name}, 1,
                      [("a", ["1"], [90.0, 4e6], 1.0, "ok"), ("b", ["2"], [120.0, 1e6], 1.0, "ok")], objectives=(PERPLEXITY, FLOPS),
                      more={"retest": {"candidates": [
                          {"candidate": "a", "retest": [{"mean": 90.0 + worse}, {"mean": 4e6}], "test": None},
                          {"candidate": "b", "retest": [{"mean": 120.0}, {"mean": 1e6}], "test": None}]}})
        self.compare(*paths)
        # 0.1 of the range lies behind either end: 1.1 * 0.1 + 0.1 * 1, and 1 * 0.1 + 0.1 * 1 where one is worse.
        rows = self.summary()
        self.assertAlmostEqual(float(rows["de"]["unseen_mean"]), 1.0)
        self.assertAlmostEqual(float(rows["random_search"]["unseen_mean"]), 0.20 / 0.21)

    def test_a_front_with_a_member_that_was_not_retested_is_left_out(self):
        write_run(self.folder / "x.json", {"name": "de"}, 1,
                  [("a", ["1"], [90.0, 4e6], 1.0, "ok"), ("b", ["2"], [120.0, 1e6], 1.0, "ok")], objectives=(PERPLEXITY, FLOPS),
                  more={"retest": {"candidates": [{"candidate": "a", "retest": [{"mean": 90.0}, {"mean": 4e6}], "test": None}]}})
        self.compare(self.folder / "x.json")
        self.assertEqual(self.summary()["de"]["unseen_searches"], "0")

    def test_runs_by_rungs_spend_what_was_paused_too(self):
        """Two whole runs of 40 steps; and one, after rungs at 10, of three candidates one of which went on to the end."""
        def curve(*steps):
            return [{"step": step, "seconds": step / 10} for step in steps]

        config = {"training": {"steps": 40}, "budget": {"train_steps": 80}}
        write_run(self.folder / "whole.json", {"name": "random_search"}, 1,
                  [("a", ["1"], [100.0], 4.0, "ok"), ("b", ["2"], [99.0], 4.0, "ok")], config=config,
                  more={"evaluations": [{"id": "1", "curve": curve(10, 40)}, {"id": "2", "curve": curve(10, 40)}]})
        write_run(self.folder / "rungs.json", {"name": "de"}, 1, [("c", ["3"], [98.0], 4.0, "ok")], config=config, more={
            "asks": [{"number": 3, "batch": 0, "genotype": "c", "candidate": "c", "evaluations": ["3"], "fitness": [98.0],
                      "believed": [98.0], "trained": 3, "seconds": 6.0}],
            "rung_asks": [{"number": number, "candidate": candidate, "evaluation": one, "step": 10, "trained": number + 1, "seconds": number + 1.0}
                          for number, (candidate, one) in enumerate(zip("cde", "345"))],
            "evaluations": [{"id": "3", "curve": curve(10, 40)}],
            "paused": [{"id": "4", "curve": curve(10)}, {"id": "5", "curve": curve(10)}]})
        found = {search.algorithm: search for search in
                 stores.load([str(self.folder / "whole.json"), str(self.folder / "rungs.json")]).searches}
        np.testing.assert_allclose(found["random_search"].trained, [1.0, 2.0])
        np.testing.assert_allclose(found["random_search"].seconds, [4.0, 8.0])
        np.testing.assert_allclose(found["de"].trained, [0.25, 0.5, 0.75, 1.5])
        np.testing.assert_allclose(found["de"].seconds, [1.0, 2.0, 3.0, 6.0])
        self.compare(self.folder / "whole.json", self.folder / "rungs.json", "--by", "trainings")
        self.assertEqual({name: float(row["trainings"]) for name, row in self.summary().items()}, {"random_search": 2.0, "de": 3.0})


class Refused(Comparing):
    def check(self, words, *arguments):
        self.assertIn(words, self.compare(*arguments, exit_code=2))
        self.assertFalse((self.folder / "out").exists())

    def test_unknown_algorithm(self):
        path = self.fake({"random_search": 0.0, "good": 3.0})
        for option in ("--reference", "--show"):
            self.check("algorithm 'nsga' is in no store; there are good, random_search", path,
                       option, "nsga")

    def test_budget_below_the_first_ask(self):
        path = self.folder / "dear.sqlite"
        write_comparison(path, [PERPLEXITY], [[100]], None, ["x"],
                         [(0, 1, 0.1, [0], [3], [1], [101])])
        self.check("x, seed 1: its first ask cost 3 trainings, the budget is 2", path,
                   "--budget", "2")

    def test_steps_that_are_not_recorded(self):
        path = self.fake({"random_search": 0.0})
        self.check(f"{path}: records no steps of training; nas-compare and runs that train do", path, "--by", "steps")

    def test_ranges_that_do_not_fit(self):
        path = self.folder / "far.sqlite"
        write_comparison(path, SQUARE, [[2, 2]], None, ["x"],
                         [(0, 1, 0.1, [0], [1], [1], [[2, 2]])])
        self.check("nothing is better than the hypervolume's reference point", path)

    def test_a_budget_that_no_search_had(self):
        path = self.folder / "few.sqlite"
        write_comparison(path, SQUARE, [[2, 2]], None, ["x"], [(0, 1, 0.1, [0], [1], [1], [[2, 2]])])
        self.check("--budget 1000000, must be at most ", path, "--budget", "1000000")
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as err:
            compare.main(["x", "--budget", "1_0"])
        self.assertIn("argument --budget: 1_0, must be an integer", err.getvalue())

    def test_numbers_out_of_range(self):
        with self.assertRaises(SystemExit) as caught, \
                contextlib.redirect_stderr(io.StringIO()) as err:
            compare.main(["x", "--budget", "0"])
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("argument --budget: 0, must be an integer of at least 1", err.getvalue())
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as err:
            compare.main(["x", "--at", "20,10"])
        self.assertIn("argument --at: 20,10, must be ascending, each once", err.getvalue())


class Names(unittest.TestCase):
    def test_case_and_signs_do_not_matter(self):
        self.assertEqual(comparison.find("random_search", ["NSGA-II", "Random search"]),
                         "Random search")
        self.assertIsNone(comparison.find("x", ["y"], required=False))
        with self.assertRaises(stores.StoreError):
            comparison.find("x", ["y"])
