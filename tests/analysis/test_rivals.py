"""Searches of other libraries on a table: they see what nas-compare's searches would see."""

import json
import os
import pathlib
import signal
import sqlite3
import types
import unittest
from unittest import mock

import numpy as np
from attnas.analysis.commands import rivals
from fake_tables import cell, functions, write_table
from attnas.analysis import comparison, pruners, replay, stores, tables
from attnas.analysis.schema import schema
from python_tests import FolderTest, said

for missing in (rivals.PACKAGES[name] for name in ("DEAP", "Optuna") if getattr(rivals, name.lower()) is None):
    raise unittest.SkipTest(f"the Debian package {missing} is not installed")

SPACE = {"similarity": ["dot", "cosine"], "normalization": ["softmax", "relu_norm"],
         "gating": ["none", "output_gate"], "temperature": ["fixed", "learned"]}
VANILLA = "dot|softmax|none|fixed|bias|0"
OTHER = "cosine|relu_norm|highway|fixed|no_bias|0"
# As Replay::replicate (src/table/replay.cpp) gives them.
ORDERS = [
    (0, VANILLA, [2, 0, 1]), (0, VANILLA, [7, 2, 1, 6, 5, 3, 0, 4]), (0, OTHER, [0, 2, 1]),
    (0, OTHER, [1, 3, 0, 4, 2]), (0, "", [1, 5, 0, 3, 4, 2, 6, 7]), (1, VANILLA, [3, 0, 2, 4, 1]),
    (1, OTHER, [3, 0, 4, 1, 2, 5, 6, 7]), (1, "", [1, 3, 2, 4, 0]), (42, VANILLA, [0, 2, 1]),
    (42, VANILLA, [3, 6, 1, 5, 0, 2, 7, 4]), (42, OTHER, [1, 2, 3, 0, 4]),
    (42, "", [4, 0, 1, 2, 3]), (1000, VANILLA, [0, 4, 2, 1, 3]), (1000, OTHER, [1, 2, 0]),
    (1000, "", [3, 1, 4, 0, 6, 7, 5, 2])]


class Rivals(FolderTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.cells = {(name, seed): cell(10 + random.random(), seconds=float(seed + 1),
                                         latency=1.0 + i)
                      for i, name in enumerate(functions(SPACE)) for seed in range(3)}

    def table(self, cells=None) -> str:
        write_table(self.folder / "x.table", cells or self.cells)
        return str(self.folder / "x.table")

    def study(self, trainings=4, asks=10, mode="noisy", names=("perplexity",)) -> rivals.Study:
        table = tables.load([self.table()])
        goals = [rivals.goal(table, {"name": name}) for name in names]
        return rivals.Study(table, goals, trainings, asks, mode)

    def run_program(self, *arguments):
        code, _, err = said(rivals.main, *arguments, "-o", self.folder / "rivals.sqlite")
        return code, err

    def searches(self) -> stores.Searches:
        return stores.load([str(self.folder / "rivals.sqlite")])


def genotype(name: str) -> dict[str, str]:
    return {gene: option for gene, option in zip(schema(None).genes, name.split("|"))
            if gene in SPACE}


class Noise(unittest.TestCase):
    def test_orders_are_those_of_the_programs(self):
        for seed, mechanism, order in ORDERS:
            self.assertEqual(replay.replay_order(seed, mechanism, len(order)), order)


@unittest.skipIf(rivals.optuna is None, "python3-optuna is not installed")
class Pruning(Rivals):
    def cells_of(self, early):
        return {(name, seed): cell(10.0 + i, early=early(i)) for i, name in enumerate(functions(SPACE)) for seed in range(2)}

    def found(self, early, budget=6):
        """Searches by pruner, and the comparison of all."""
        code, said = self.run_program(self.table(self.cells_of(early)), "--prune-from", "50", "--seeds", 10, "--budget", budget)
        self.assertEqual(code, 0, said)
        searches = stores.load([str(self.folder / "rivals.sqlite")])
        self.assertEqual((searches.by, searches.budget), ("steps", budget))
        result = comparison.compare(searches, budget, "no pruner (Optuna 3.1)", 100)
        return {a.name.split(" (")[0]: (a, lost) for a, lost in zip(result.algorithms, comparison.pruned(result))}

    def test_curves_that_rank_as_the_end_lose_nothing_by_pruning(self):
        found = self.found(lambda i: 20.0 + i)
        whole, lost = found["no pruner"]
        self.assertEqual(lost.share.point, 0)
        self.assertGreater(whole.final.mean(), 0)
        np.testing.assert_array_equal(whole.trainings, 6)
        for name in ("median pruner", "successive halving"):
            algorithm, lost = found[name]
            self.assertGreater(lost.begun, 6, "it begins more than it could train to the end")
            self.assertLessEqual(algorithm.final.mean(), whole.final.mean())
            self.assertTrue((algorithm.trainings <= 6).all())

    def test_curves_that_rank_the_other_way_round_do(self):
        self.assertGreater(self.found(lambda i: 90.0 - i)["successive halving"][1].share.point, 0.3)

    def test_a_search_pays_for_what_it_trains_and_once(self):
        table = tables.load([self.table(self.cells_of(lambda i: 20.0 + i))])
        curves = pruners.Curves(table, trainings=2, asks=5, seed=1)
        told = []
        self.assertTrue(np.isnan(curves.train(3, lambda step, value: told.append((step, round(value, 6))) or True)))
        self.assertEqual(told, [(50, 23.0)])
        self.assertEqual((curves.steps, curves.trained), ([50], [1]))
        self.assertAlmostEqual(curves.train(4, lambda step, value: False), 1.1 * 14)
        self.assertEqual((curves.steps, curves.trained), ([50, 250], [1, 2]))
        told.clear()
        self.assertTrue(np.isnan(curves.train(3, lambda step, value: told.append(step))), "it stays pruned")
        self.assertEqual((told, curves.steps[-1], curves.trained[-1]), ([50], 250, 2))
        with self.assertRaisesRegex(pruners.Spent, "400 training steps"):
            curves.train(5, lambda step, value: False)
        self.assertEqual(curves.candidates, [3, 4, 3], "what was not paid for is no answer")

    def test_beside_searches_by_steps(self):
        self.found(lambda i: 20.0 + i)
        (self.folder / "rivals.sqlite").rename(self.folder / "ours.sqlite")
        code, said = self.run_program(self.folder / "x.table", "--like", self.folder / "ours.sqlite", "--seeds", 2, "--only", "random")
        self.assertEqual(code, 0, said)
        both = stores.load([str(self.folder / name) for name in ("ours.sqlite", "rivals.sqlite")])
        self.assertEqual((both.by, both.budget), ("steps", 6))
        self.assertEqual({search.trained[-1] for search in both.searches if search.algorithm.startswith("random")}, {6.0})

    def test_mistakes(self):
        for arguments, words in ((("--prune-from", "51"), "--prune-from 51, must be one of 50"),
                                 (("--prune-from", "200"), "--prune-from 200, must be one of 50"),
                                 (("--prune-from", "50", "--mode", "noisy"), "mode noisy"),
                                 (("--prune-from", "50", "--objectives", "accuracy"), "objectives accuracy")):
            code, text = self.run_program(self.table(), *arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, text)
        cells = dict(self.cells)
        del cells[functions(SPACE)[0], 1]
        self.assertIn("trainings are missing", self.run_program(self.table(cells), "--prune-from", "50")[1])


class Asking(Rivals):
    def test_a_repeated_candidate_is_free(self):
        study = self.study()
        oracle = rivals.Oracle(study, 42)
        first, second = study.table.mechanisms[0], study.table.mechanisms[5]
        answers = [oracle(genotype(name)) for name in (first, second, first)]
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(oracle.trained, [1, 2, 2])
        self.assertEqual(oracle.seconds[1], oracle.seconds[2])
        for name, answer, spent in zip((first, second), answers, np.diff([0, *oracle.seconds])):
            replicate = replay.replay_order(42, name, 3)[0]
            self.assertAlmostEqual(answer[0],
                                   self.cells[name, replicate]["values"]["perplexity"])
            self.assertEqual(spent, replicate + 1)

    def test_combinations_of_one_function_are_one_candidate(self):
        oracle = rivals.Oracle(self.study(), 1)
        same = {"similarity": "dot", "normalization": "relu_norm", "gating": "none"}
        self.assertEqual(oracle({**same, "temperature": "fixed"}),
                         oracle({**same, "temperature": "learned"}))
        self.assertEqual(oracle.trained, [1, 1])

    def test_the_budget_ends_a_search(self):
        study = self.study(trainings=2, asks=5)
        names = study.table.mechanisms
        oracle = rivals.Oracle(study, 1)
        for name in names[:2]:
            oracle(genotype(name))
        with self.assertRaisesRegex(rivals.Spent, "2 evaluations"):
            oracle(genotype(names[2]))
        for _ in range(3):
            oracle(genotype(names[0]))
        with self.assertRaisesRegex(rivals.Spent, "5 asks"):
            oracle(genotype(names[0]))
        self.assertEqual(len(oracle.candidates), 5)

    def test_modes(self):
        name = self.study().table.mechanisms[3]
        values = [self.cells[name, seed]["values"]["perplexity"] for seed in range(3)]
        mean = rivals.Oracle(self.study(mode="mean"), 7)(genotype(name))[0]
        self.assertAlmostEqual(mean, np.mean(values), msg="of values, as everywhere else")
        paired = rivals.Oracle(self.study(mode="paired"), 7)(genotype(name))[0]
        self.assertAlmostEqual(paired, values[replay.replay_order(7, "", 3)[0]])

    def test_unseen_replicates_are_the_others(self):
        table = self.study().table
        names = list(reversed(table.mechanisms))  # numbered otherwise than in the table
        values = np.exp(table.test_nll[::-1, :, None])
        for mode in ("noisy", "paired"):
            unseen = replay.Unseen(values, table.drawn, mode, names)
            for candidate, name in enumerate(names[:4]):
                order = replay.replay_order(7, name if mode == "noisy" else "", 3)
                tests = [self.cells[name, seed]["values"]["test_perplexity"] for seed in order]
                means = unseen.means(7, (candidate,) * 3, (1, 2, 3))
                np.testing.assert_allclose(means, [[np.mean(tests[1:])], [tests[2]], [np.nan]])

    def test_further_replicates_of_the_best_answer_no_search(self):
        """As in src/table/table.hpp: searches draw from those that most mechanisms have."""
        name, other = functions(SPACE)[:2]
        for seed in range(3, 6):
            self.cells[name, seed] = cell(30.0 + seed)
        study = self.study()
        self.assertEqual((study.table.replicates, study.table.drawn), (6, 3))
        for seed in range(10):
            replicate = replay.replay_order(seed, name, 3)[0]
            self.assertAlmostEqual(rivals.Oracle(study, seed)(genotype(name))[0],
                                   self.cells[name, replicate]["values"]["perplexity"])
        rows = [study.table.mechanisms.index(one) for one in (name, other)]
        unseen = replay.Unseen(np.exp(study.table.test_nll[rows, :, None]), study.table.drawn, "noisy", [name, other])
        order = replay.replay_order(7, name, 3)
        self.assertEqual(unseen.cells(7, (0, 1), (1, 3)), ((*sorted(order[1:]), 3, 4, 5), ()))
        self.assertEqual(unseen.cells(7, (0,), (3,)), ((3, 4, 5),))

    def test_no_mechanism_need_have_all_replicates(self):
        """Further seeds of some, other ones of others, and a training run that failed."""
        names = functions(SPACE)
        self.cells[names[0], 3], self.cells[names[1], 4] = cell(31.0), cell(32.0)
        self.cells[names[2], 5] = cell(33.0, status="diverged")
        study = self.study()
        table = study.table
        rows = [table.mechanisms.index(name) for name in names]
        truth = np.array([[np.exp(table.test_nll[row][table.usable[row]]).mean()] for row in rows])
        with mock.patch.object(replay, "table_of", return_value=(table, "noisy")):
            goal = types.SimpleNamespace(name="perplexity")
            found = types.SimpleNamespace(candidates=types.SimpleNamespace(truth=truth, names=list(names)), objectives=[goal])
            self.assertIsNotNone(replay.true_cells(found))
            found.candidates.truth = truth + 1
            self.assertIsNone(replay.true_cells(found))

    def test_truth_is_of_the_test_split(self):
        study = self.study(names=("perplexity", "latency"))
        values = [self.cells[study.table.mechanisms[0], seed]["values"] for seed in range(3)]
        self.assertAlmostEqual(study.truth[0, 0],
                               np.mean([own["test_perplexity"] for own in values]))
        self.assertAlmostEqual(study.believed[0, 0],
                               np.mean([own["perplexity"] for own in values]))
        self.assertEqual(study.truth[:, 1].tolist(), study.believed[:, 1].tolist())
        self.assertEqual([one.split for one in study.goals], ["test", None])

    def test_truth_of_accuracy_is_of_the_test_split_where_its_sums_are_recorded(self):
        study = self.study(names=("accuracy",))
        self.assertEqual(study.goals[0].split, "validation")
        self.assertEqual(study.truth.tolist(), study.believed.tolist())
        for own in self.cells.values():
            own["values"].update(test_correct=400.0, test_tokens=800.0)
        study = self.study(names=("accuracy",))
        self.assertEqual(study.goals[0].split, "test")
        np.testing.assert_allclose(study.truth, -0.5)
        np.testing.assert_allclose(study.believed, -0.3)

    def test_failures_are_far_beyond_the_worst(self):
        name = functions(SPACE)[0]
        self.cells[name, 1] = cell(0.0, status="diverged")
        study = self.study()
        record = study.goals[0].record
        self.assertAlmostEqual(study.fitness[0, 1, 0],
                               record["best"] + 10 * (record["worst"] - record["best"]))
        self.assertTrue(np.isfinite(study.fitness).all())

    def test_a_failed_replicate_fails_its_mechanism(self):
        """As in the truth and the means of nas-compare, problems/tabular.cpp."""
        name, other = functions(SPACE)[:2]
        self.cells[name, 1] = cell(0.0, status="diverged", latency=1.0)
        for mode in rivals.MODES:
            study = self.study(mode=mode, names=("perplexity", "latency"))
            failure = [one.failure for one in study.goals]
            self.assertEqual(study.truth[0].tolist(), failure)
            self.assertEqual(study.believed[0].tolist(), failure)
            own = [self.cells[other, seed]["values"]["test_perplexity"] for seed in range(3)]
            self.assertAlmostEqual(study.truth[1, 0], np.mean(own))
            self.assertLess(study.goals[0].record["worst"], 13.0)
        self.assertEqual(rivals.Oracle(self.study(mode="mean"), 7)(genotype(name))[0], failure[0])

    def test_a_missing_replicate_is_in_no_mean_and_fails_where_it_would_answer(self):
        name = functions(SPACE)[0]
        del self.cells[name, 1]
        rest = [self.cells[name, seed]["values"] for seed in (0, 2)]
        for mode in rivals.MODES:
            study = self.study(mode=mode)
            self.assertAlmostEqual(study.truth[0, 0],
                                   np.mean([own["test_perplexity"] for own in rest]))
            self.assertAlmostEqual(study.believed[0, 0], np.mean(
                [own["perplexity"] for own in rest]) if mode == "mean" else study.goals[0].failure)

    def test_scores_are_found_by_their_key(self):
        for own in self.cells.values():
            own["values"].update(bits_per_byte=2.0, flops=5.0)
        table = tables.load([self.table()])
        goal = rivals.goal(table, {"name": "accuracy", "key": "bits_per_byte"})
        self.assertEqual((goal.believed[0], goal.split), (2.0, "validation"))
        goal = rivals.goal(table, {"name": "flops"})
        self.assertEqual((goal.believed[0], goal.split), (5.0, None))
        self.assertEqual(rivals.goal(table, {"name": "accuracy"}).believed[0], -0.3)


class Populations(Rivals):
    def test_every_evolutionary_algorithm_has_the_same(self):
        found = {rival.name: rival.settings for several in (False, True)
                 for rival in rivals.rivals(several)}
        for name, settings in found.items():
            if "GA" in name:
                population = settings.get("population", settings.get("population_size"))
                self.assertEqual(population, 50 if "of 50" in name else 12, name)
        self.assertEqual(sum("GA" in name for name in found), 4)
        self.assertEqual(found["TPE (Optuna 3.1)"]["n_startup_trials"], 10)

    def test_optunas_nsga2_searches_with_it(self):
        study = self.study(trainings=100, asks=40)
        asked = {}
        for rival in rivals.rivals(True):
            oracle = rivals.Oracle(study, 3)
            with self.assertRaises(rivals.Spent):
                rival.search(study, oracle, 3)
            asked[rival.name] = oracle.candidates
        ours, default = (asked[f"NSGA-II{of} (Optuna 3.1)"] for of in ("", " of 50"))
        self.assertEqual(ours[:12], default[:12])  # both begin at random
        self.assertNotEqual(ours, default)
        self.assertEqual(default, asked["random (Optuna 3.1)"])  # and the default goes on so


class Program(Rivals):
    def test_every_algorithm_searches(self):
        code, error = self.run_program(self.table(), "--budget", 6, "--seeds", 2, "--asks", 40,
                                       "--first-seed", 5)
        self.assertEqual(code, 0, error)
        found = self.searches()
        names = {search.algorithm for search in found.searches}
        self.assertEqual(names, {rival.name for rival in rivals.rivals(False)})
        self.assertEqual({search.seed for search in found.searches}, {5, 6})
        self.assertEqual(found.budget, 6)
        seen = {}
        for search in found.searches:
            self.assertLessEqual(search.trained[-1], 6)
            self.assertLessEqual(len(search.candidates), 40)
            self.assertEqual(search.trained[-1], len(set(search.candidates)))
            self.assertGreaterEqual(search.search_seconds, 0.0)
            for candidate, fitness in zip(search.candidates, search.believed[:, 0]):
                key = (search.seed, candidate)
                self.assertEqual(seen.setdefault(key, fitness), fitness)

    def test_the_number_of_processes_changes_nothing(self):
        arguments = [self.table(), "--budget", 5, "--seeds", 3, "--asks", 30]
        asked = []
        for workers in (1, 3):
            self.assertEqual(self.run_program(*arguments, "--workers", workers)[0], 0)
            asked.append([search.candidates.tolist() for search in self.searches().searches])
        self.assertEqual(*asked)
        self.assertEqual(len(asked[0]), 3 * len(rivals.rivals(False)))

    def test_a_stopped_command_goes_on(self):
        arguments = [self.table(), "--budget", 5, "--seeds", 3, "--asks", 30, "--workers", 1]
        self.assertEqual(self.run_program(*arguments)[0], 0)
        whole = [search.candidates.tolist() for search in self.searches().searches]
        (self.folder / "rivals.sqlite").unlink()
        code, searched = self.stopped(4, *arguments)
        self.assertEqual(code, 130)
        self.assertFalse((self.folder / "rivals.sqlite").exists())
        with mock.patch.object(rivals, "run", side_effect=rivals.run) as continued:
            self.assertEqual(self.run_program(*arguments)[0], 0)
        begun = {(call.args[0].name, call.args[2]) for call in continued.call_args_list}
        self.assertEqual(len(begun), len(whole) - 4)
        self.assertFalse(begun & set(searched))
        self.assertEqual([search.candidates.tolist() for search in self.searches().searches], whole)
        self.assertFalse((self.folder / "rivals.sqlite.part").exists())

    def stopped(self, after: int, *arguments) -> tuple[int, list]:
        """Runs the program by one process until so many searches are there. @return its exit code, and the library and the seed of each."""
        searched = []

        def run(rival, study, seed):
            if len(searched) == after:
                raise KeyboardInterrupt
            searched.append((rival.name, seed))
            return original(rival, study, seed)

        original = rivals.run
        with mock.patch.object(rivals, "run", run), self.assertRaises(SystemExit) as stop:
            self.run_program(*arguments, "--workers", 1)
        return stop.exception.code, searched

    def test_the_words_of_a_command_may_differ_where_its_searches_do_not(self):
        path = self.table()
        self.assertEqual(self.stopped(6, path, "--budget", 5, "--seeds", 9, "--asks", 30, "--only", "random")[0], 130)
        with mock.patch.object(rivals, "run") as run:
            code, error = self.run_program(path, "--only", "random", "--asks", 30, "--budget", 5, "--seeds", 4, "--workers", 1)
        self.assertEqual((code, run.call_count), (0, 0), "of fewer seeds every search is there")
        self.assertIn("4 searches are there already", error)
        self.assertEqual(sorted(search.seed for search in self.searches().searches), [42, 43, 44, 45])
        with sqlite3.connect(self.folder / "rivals.sqlite") as database:
            config, = database.execute("SELECT value FROM meta WHERE key = 'config'").fetchone()
        self.assertIn("--seeds 4", json.loads(config)["command"])

    def test_what_others_left_stays(self):
        arguments = [self.table(), "--budget", 5, "--seeds", 1, "--asks", 30]
        part = self.folder / "rivals.sqlite.part"
        self.assertEqual(self.stopped(2, *arguments, "--budget", 4)[0], 130)
        left = part.read_bytes()
        code, error = self.run_program(*arguments)
        self.assertEqual(code, 2)
        self.assertIn("has searches of another command, which differ in budget: analysis/rivals.py", error)
        self.assertEqual(part.read_bytes(), left)
        for content, words in ((b"my notes", "file is not a database"),
                               (pathlib.Path(arguments[0]).read_bytes(), "is there and not of this program"),
                               (left[:4096] + bytes(4096) + left[8192:], "is damaged (")):
            part.write_bytes(content)
            code, error = self.run_program(*arguments)
            self.assertEqual(code, 2, error)
            self.assertIn(words, error)
            self.assertEqual(part.read_bytes(), content)

    def test_one_process_searches_there(self):
        arguments = [self.table(), "--budget", 5, "--seeds", 1, "--asks", 30, "--workers", 1]
        original, errors = rivals.run, []

        def run(rival, study, seed):
            if not errors:
                errors.append(said(rivals.main, *arguments, "-o", self.folder / "rivals.sqlite"))
            return original(rival, study, seed)

        with mock.patch.object(rivals, "run", run):
            self.assertEqual(self.run_program(*arguments)[0], 0)
        self.assertEqual(errors[0][0], 2)
        self.assertIn("rivals.sqlite.part: another process searches there", errors[0][2])

    def test_a_killed_process_ends_the_program(self):
        def run(rival, study, seed):
            os.kill(os.getpid(), signal.SIGKILL)

        with mock.patch.object(rivals, "run", run), self.assertRaises(SystemExit) as end:
            self.run_program(self.table(), "--budget", 5, "--seeds", 2, "--asks", 30, "--workers", 2)
        self.assertEqual(end.exception.code, 75)

    def test_several_objectives(self):
        code, error = self.run_program(self.table(), "--budget", 6, "--seeds", 1, "--asks", 30,
                                       "--objectives", "perplexity,latency", "--only", "nsga-ii")
        self.assertEqual(code, 0, error)
        found = self.searches()
        self.assertEqual([goal.name for goal in found.objectives], ["perplexity", "latency"])
        self.assertEqual(found.searches[0].believed.shape[1], 2)

    def test_like_another_comparison(self):
        self.assertEqual(self.run_program(self.table(), "--budget", 5, "--seeds", 1, "--first-seed",
                                          9, "--mode", "paired", "--only", "random")[0], 0)
        ours = self.folder / "ours.sqlite"
        (self.folder / "rivals.sqlite").rename(ours)
        path = self.table()
        self.assertEqual(self.run_program(path, "--like", ours, "--seeds", 1,
                                          "--only", "random")[0], 0)
        both = [sqlite3.connect(file) for file in (ours, self.folder / "rivals.sqlite")]
        for key in ("objectives", "budget", "table", "reference_point"):
            values = [json.loads(database.execute("SELECT value FROM meta WHERE key = ?",
                                                  (key,)).fetchone()[0]) for database in both]
            self.assertEqual(*values, key)
        rows = [database.execute("SELECT seed, candidates, fitness FROM searches").fetchall()
                for database in both]
        self.assertEqual(*rows)
        both[0].execute("UPDATE meta SET value = ? WHERE key = 'config'",
                        (json.dumps({"constraints": ["attention_flops <= 4e+06"]}),))
        both[0].commit()
        self.assertEqual(self.run_program(path, "--like", ours), (2, (
            f"rivals.py: --like {ours}: has constraints (attention_flops <= 4e+06), which the "
            "libraries' searches would not respect\n")))
        both[0].execute("UPDATE meta SET value = '{}' WHERE key = 'config'")
        both[0].commit()
        self.cells[functions(SPACE)[0], 0] = cell(99.0)
        code, error = self.run_program(self.table(), "--like", ours)
        self.assertEqual(code, 2)
        self.assertIn("is about another table", error)

    def test_a_missing_library_is_named(self):
        with mock.patch.object(rivals, "optuna", None):
            code, error = self.run_program(self.table(), "--budget", 3, "--seeds", 1)
            self.assertIn("Optuna is not installed and left out (Debian package python3-optuna)",
                          error)
            with mock.patch.object(rivals, "deap", None):
                code, error = self.run_program(self.table())
                self.assertEqual(code, 2)
                self.assertIn("no library to run; install one of the Debian packages python3-deap, "
                              "python3-optuna", error)

    def test_refusals(self):
        path = self.table()
        for arguments, words in (
                ([path, "--objectives", "speed"], "no objective speed; recorded are accuracy, latency, perplexity"),
                ([path, "--objectives", "perplexity, perplexity"], "--objectives: perplexity is given twice"),
                ([path, "--only", "x"], "--only x: none of "),
                ([path, "--like", path], "--like"),
                ([self.folder / "no"], "no such file; give a table")):
            code, error = self.run_program(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(words, error)
            self.assertFalse((self.folder / "rivals.sqlite").exists())
        for other in (path, self.folder / "text"):
            (self.folder / "text").write_text("mine")
            before = pathlib.Path(other).read_bytes()
            code, _, error = said(rivals.main, path, "--seeds", 1, "-o", other)
            self.assertEqual((code, error), (2, f"rivals.py: {other}: is there and not of this program, must be another file\n"))
            self.assertEqual(pathlib.Path(other).read_bytes(), before)
        self.assertEqual(said(rivals.main, path, "-o", self.folder / ("x" * 300))[0], 2)
        self.assertEqual(said(rivals.main, path, "--only", "random", "--seeds", 1, "-o", self.folder / "no" / "x")[0], 2)
        gone = {key: own for key, own in self.cells.items() if key[0] != functions(SPACE)[2]}
        code, error = self.run_program(self.table(gone))
        self.assertEqual(code, 2)
        self.assertIn(f"has {len(functions(SPACE)) - 1} functions, must have all that the ", error)
        for name in functions(SPACE):
            self.cells[name, 2] = cell(0.0, status="diverged")
        code, error = self.run_program(self.table())
        self.assertEqual(code, 2)
        self.assertIn("no mechanism has perplexity of all its replicates", error)
