"""The comparison of searches that a table answered: its noise, unseen replicates, draws."""

import contextlib
import csv
import json
import sqlite3
import types

import numpy as np
from comparing import Comparing
from fake_stores import FLOPS, PERPLEXITY, write_comparison
from fake_tables import cell, write_table

from attnas.analysis import replay, statistics, stores, tables, task_controls


class OnATable(Comparing):
    """With the table's file at hand, its own noise is in the intervals."""

    SEEDS = range(1, 41)

    def write(self, spread: float, several: bool = False, other: tuple[int, int] = (1, 0)):
        """Two algorithms on a table of which the first finds the better one of two mechanisms, by
        0.5, and the second the other; replicates differ by `spread`, of the other by `other` times that."""
        names = ["dot|softmax|none|fixed|bias|0", "dot|softmax|none|fixed|no_bias|0"]
        self.tests = np.array([[10.0, 10 + spread, 10 - spread], [10.5, 10.5 + other[0] * spread, 10.5 + other[1] * spread]])
        write_table(self.folder / "x.table", {(name, seed): cell(self.tests[i, seed])
                                              for i, name in enumerate(names) for seed in range(3)})
        truth = self.tests.mean(axis=1, keepdims=True)
        goals = [PERPLEXITY]
        if several:
            truth = np.column_stack([truth, [1e6, 1e6]])
            goals = [{**PERPLEXITY, "best": 5.0, "worst": 15.0}, FLOPS]
        (self.folder / "x.sqlite").unlink(missing_ok=True)
        write_comparison(self.folder / "x.sqlite", goals, truth, truth, ["good", "random_search"],
                         [(number, seed, 0.1, [number], [1 if seed % 4 else 3], [1], truth[number])
                          for number in (0, 1) for seed in self.SEEDS],
                         sha256=tables.read(str(self.folder / "x.table")).sha256, names=names,
                         table=str(self.folder / "x.table"))
        return self.folder / "x.sqlite"

    def bounds(self, name="improvement_with_table"):
        row = self.summary()["good"]
        return float(row[f"{name}_low"]), float(row[f"{name}_high"])

    def test_controls_of_the_table_are_rows(self):
        store = self.write(0.5)
        self.compare(store)
        self.assertNotIn("The task and its controls", self.read("compare.md"))
        model = {"candidate": "", "tuning": [], "valid_nll": []}
        gates = {"schema": 1, "verdict": "Not passed: better than window 2.", "gates": [], "models": [
            {**model, "name": "baseline", "learning_rate": 0.002, "test_nll": [2.0, 2.2]},
            {**model, "name": "window 2", "learning_rate": 0.004, "test_nll": [1.0, None]}],
            "count_models": [{"order": 1, "valid_nll": 3.0, "test_nll": 3.0}, {"order": 2, "valid_nll": 1.0, "test_nll": 1.5}]}
        with contextlib.closing(sqlite3.connect(self.folder / "x.table")) as table:
            table.execute("CREATE TABLE publication (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            table.execute("INSERT INTO publication VALUES ('gates', ?)", (json.dumps(gates),))
            table.commit()
        self.compare(store)
        text = self.read("compare.md")
        self.assertIn("Of the table's task: Not passed: better than window 2.", text)
        own = [[each.strip() for each in line.strip("| ").split("|")] for line in text.splitlines() if line.startswith("|")]
        rows = {row[0]: row[1:] for row in own if len(row) == 4}
        self.assertEqual(rows["baseline"], ["0.002", "8.17 [2.29, 29.1]", "2"])  # exp(2.1 -+ 12.706 0.1)
        self.assertEqual(rows["window 2"], ["0.004", "2.72", "1"])
        self.assertEqual(rows["counts of order 2"][1], "4.48")
        self.assertIn("best of the table, dot\\|softmax", text)

    def test_controls_of_a_table_are_of_accuracy_where_its_gates_are(self):
        gates = {"measure": "accuracy", "verdict": "Passed.", "models": [
            {"name": "baseline", "learning_rate": 0.002, "test_accuracy": [0.7, 0.72, None]}],
            "count_models": [{"order": 1, "valid_accuracy": 0.2, "test_accuracy": 0.21},
                             {"order": 2, "valid_accuracy": 0.3, "test_accuracy": 0.31}]}
        shape = (3, 2)
        table = types.SimpleNamespace(
            publication={"gates": gates}, usable=np.ones(shape, bool), test_nll=np.zeros(shape), mechanisms=["a", "b", "c"],
            brief=str, values={"test_correct": np.array([[50, 60], [90, 89], [10, 20]]), "test_tokens": np.full(shape, 100.0)})
        bullets, columns = task_controls.chapter(table).parts
        self.assertIn("Test accuracy [95 %]", str(bullets))
        rows = {row[0]: row[1:] for row in columns.rows}
        self.assertEqual(rows["baseline"][1:], ["0.710 [0.583, 0.837]", "2"])  # 0.71 -+ 12.706 0.01
        self.assertEqual(rows["counts of order 2"], ["-", "0.310", "-"])
        self.assertTrue(rows["best of the table, b"][1].startswith("0.895 "))
        gates["models"].append({"name": "no mixer", "learning_rate": 0.001, "test_accuracy": [0.2, 0.21]})
        gates["models"][0]["test_accuracy"] = [0.85, 0.86, 0.25]
        bullets, columns = task_controls.chapter(table).parts
        self.assertIn("Solved: runs with a test accuracy above 0.552, with the Clopper-Pearson interval", str(bullets))  # (0.9 + 0.205) / 2
        rows = {row[0]: row[1:] for row in columns.rows}
        self.assertEqual(rows["baseline"][2:], ["2 of 3 (0.09 to 0.99)", "3"])
        self.assertEqual(rows["no mixer"][2:], ["0 of 2 (0.00 to 0.84)", "2"])
        low, high = map(float, rows["baseline"][1].split("[")[1].rstrip("]").split(", "))
        self.assertLess(low, 0.27)  # 0.906 of all may be failures
        self.assertGreater(high, 0.85)

    def test_a_table_without_noise_adds_nothing(self):
        for several in (False, True):
            self.compare(self.write(0.0, several))
            self.assertEqual(self.bounds(), self.bounds("improvement"))
            self.assertEqual(self.bounds("gap_with_table"), self.bounds("gap_iqm"))
            self.assertIn("With the noise of the table's own means in the intervals, meaningfully "
                          "better: good.", self.read("compare.md"))

    def test_what_a_seed_does_to_all_mechanisms_alike_is_no_noise(self):
        self.compare(self.write(3.0, other=(1, -1)))
        self.assertEqual(self.bounds(), self.bounds("improvement"))
        other = self.summary()["random_search"]
        for name in ("low", "high"):
            self.assertAlmostEqual(float(other[f"gap_with_table_{name}"]), 0.5, places=6)

    def test_unseen_replicates_judge_fronts(self):
        path = self.write(0.5, several=True)
        self.compare(path)
        row = self.summary()["good"]
        self.assertEqual(int(row["unseen_searches"]), 30)
        _, mode = replay.table_of(stores.load([str(path)]))
        name = "dot|softmax|none|fixed|bias|0" if mode == "noisy" else ""
        others = [np.delete(self.tests[0], replay.replay_order(seed, name, 3)[0]).mean() for seed in self.SEEDS if seed % 4]
        # Fronts of one mechanism whose operations are exact: shares of (1.1 - (10 - 5) / 10).
        self.assertAlmostEqual(float(row["unseen_mean"]), np.mean([(16 - other) / 6 for other in others]))
        self.assertIn("which know nothing of the choice, fronts have a mean hypervolume from", self.read("compare.md"))
        self.assertGreater(self.bounds("unseen_improvement")[0], 0.5)


class SharedNoise(Comparing):
    """A table in the mode `paired`: searches that one replicate answers meet the same noise."""

    def searches(self, seeds, mode):
        """Whether "good" or "random_search" finds the better candidate hangs on the replicate alone."""
        path = self.folder / f"{mode}{seeds}.sqlite"
        searches = []
        for seed in range(1, seeds + 1):
            lucky = replay.replay_order(seed, "", 5)[0] < 3
            for number, found in enumerate((1, 0 if lucky else 2)):
                searches.append((number, seed, 0.1, [found], [1], [1.0], [[100.0 + found]]))
        write_comparison(path, [PERPLEXITY], [[100.0], [101.0], [102.0]], None, ["random_search", "good"], searches,
                         trainings=1, mode=mode)
        return path

    def test_replicates_are_the_units(self):
        self.compare(self.searches(200, "paired"))
        good = self.summary()["good"]
        self.assertAlmostEqual(float(good["improvement"]), 0.6)  # 3 of 5 replicates
        # Student's interval of 1, 1, 1, 0 and 0, as long on the logit scale, whose slope is 1 / (0.6 * 0.4).
        wins = statistics.mean_interval([1, 1, 1, 0, 0])
        reach = (wins.high - wins.point) / (0.6 * 0.4)
        self.assertAlmostEqual(float(good["improvement_low"]), 1 / (1 + np.exp(reach) * 0.4 / 0.6))
        self.assertAlmostEqual(float(good["improvement_high"]), 1 / (1 + np.exp(-reach) * 0.4 / 0.6))
        self.assertGreater(float(good["p_holm"]), 0.5)
        self.assertIn("the table's replicates (5 were drawn) answers a search", self.read("compare.md"))
        self.assertIn("Friedman's test over 5 replicates", self.read("compare.md"))

    def test_where_each_search_meets_its_own_noise_searches_are(self):
        self.compare(self.searches(200, "noisy"))
        self.assertLess(float(self.summary()["good"]["p_holm"]), 0.05)
        self.assertNotIn("same noise", self.read("compare.md"))


class OnDraws(Comparing):
    """A table of which two mechanisms have more replicates than answer; draws of it answered in turn."""

    NAMES = ["additive|relu_norm|none|fixed|bias|0", "additive|relu_norm|none|fixed|no_bias|0",
             *(f"dot|softmax|none|{each}|0" for each in ("fixed|bias", "fixed|no_bias", "learned|bias", "learned|no_bias"))]
    REPLICATES = [8, 5, 3, 3, 3, 3]
    DRAWS = {"tables": 20, "seed": 7}

    def write(self, searches, name="x", draws=DRAWS):
        """@param searches  (algorithm, seed, candidates) each, one training run a candidate."""
        values = np.random.default_rng(3).normal(100.0, 1.0, (6, 8)) + np.arange(6)[:, None]
        write_table(self.folder / "x.table", {(each, replicate): cell(values[i, replicate]) for i, each in enumerate(self.NAMES)
                                              for replicate in range(self.REPLICATES[i])})
        self.values = values
        truth = np.array([[row[:count].mean()] for row, count in zip(values, self.REPLICATES)])
        path = self.folder / f"{name}.sqlite"
        write_comparison(path, [PERPLEXITY], truth, truth, ["good", "random_search"],
                         [(number, seed, 0.1, asked, np.arange(1, len(asked) + 1), np.ones(len(asked)), truth[asked])
                          for number, seed, asked in searches],
                         sha256=tables.read(str(self.folder / "x.table")).sha256, names=self.NAMES,
                         table=str(self.folder / "x.table"), trainings=4, draws=draws)
        return path

    def test_draws_are_those_of_the_program(self):
        """tests/unit/replay_test.cpp has the same numbers."""
        self.assertEqual(replay.redrawn_replicates(list(range(8)), 3, 7, 11, self.NAMES[0]), [6, 5, 7, 4, 3])
        self.assertEqual(replay.redrawn_replicates(list(range(5)), 3, 7, 11, self.NAMES[1]), [3, 0, 4, 1, 2])

    def test_judges_have_answered_no_search_of_the_draw(self):
        unseen = replay.unseen(stores.load([str(self.write([(0, 7, [0]), (1, 7, [1])]))]))
        judging = set()
        for seed in range(7, 47):
            draw = (seed - 7) % 20
            order = replay.redrawn_replicates(list(range(8)), 3, 7, draw, self.NAMES[0])
            (cells,) = unseen.cells(seed, (0,), (1,))
            self.assertEqual(set(cells), set(order[3:]), "of eight the first three chose, three answer, and two judge")
            self.assertEqual(cells, unseen.cells(seed, (0,), (3,))[0], "alike for all searches")
            self.assertEqual(cells, unseen.cells(seed + 20, (0,), (1,))[0], "of the same draw")
            judging |= set(cells)
            # Of three that all answer the one that was seen does not judge, and all do where all were seen.
            first = replay.redrawn_replicates(list(range(3)), 3, 7, draw, self.NAMES[2])[replay.replay_order(seed, self.NAMES[2], 3)[0]]
            self.assertEqual(set(unseen.cells(seed, (2,), (1,))[0]), {0, 1, 2} - {first})
            self.assertEqual(set(unseen.cells(seed, (2,), (3,))[0]), {0, 1, 2})
            self.assertEqual([unseen.left(seed, *one) for one in ((0, 3), (2, 1), (2, 3))], ["unseen", "others", "none"])
        self.assertEqual(judging, {3, 4, 5, 6, 7})

    def test_draws_are_the_units(self):
        """On each draw four pairs of searches, of which all return the first mechanism or all of random_search's the last."""
        searches = [(number, seed, [0 if number == 0 or (seed - 7) % 20 < 8 else 5]) for number in (0, 1) for seed in range(7, 87)]
        self.compare(self.write(searches))
        with open(self.folder / "out" / "draws.csv", encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
        self.assertEqual((row["algorithm"], row["draws"], row["searches"]), ("good", "20", "80"))
        each = [0.5] * 8 + [1.0] * 12  # equal mechanisms are ties on a draw
        self.assertAlmostEqual(float(row["improvement"]), 0.8)
        reach = statistics.mean_interval(each)
        self.assertAlmostEqual(float(row["another_draw_low"]), 0.8 - (reach.high - 0.8) * np.sqrt(21))
        self.assertEqual(row["another_draw_high"], "1.0")
        self.assertEqual(float(row["reference_met_best"]), 1.0, "all are among the best")
        self.assertAlmostEqual(float(row["held_out_covered"]), 1.0)
        text = self.read("compare.md")
        self.assertIn("20 draws of the table's seeds answered in turn", text)
        self.assertIn("Student's t test over the draws that answered", text)
        self.assertRegex(text, r"The budget to look at is 4, the smallest at which random_search meets .* 100 % at 4\.")
        self.assertIn("another draw may turn every one round", text)

    def test_what_other_tables_answered_is_not_laid_beside(self):
        one = self.write([(0, 7, [0]), (1, 7, [1])])
        other = self.write([(0, 7, [0]), (1, 7, [1])], "other", {"tables": 20, "seed": 8})
        said = self.compare(one, other, exit_code=2)
        self.assertIn("other.sqlite: answered by 20 draws of seed 8, but ", said)
        self.assertIn("x.sqlite by 20 draws of seed 7; only searches that the same tables answer can be compared", said)
