"""Reading runs and comparisons: what arrives, and what is refused with which words."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unittest

import numpy as np
from digest_file import text_of
from fake_stores import FLOPS, PERPLEXITY, write_comparison, write_run
from attnas.analysis import stores
from attnas.analysis.digest import BadInput
from python_tests import ROOT, FolderTest

PROGRAM = pathlib.Path(os.environ.get("NAS_BIN", ""), "nas-run")
TRUTH = [[100.0], [101.0], [103.0]]
ACCURACY = {"name": "accuracy", "key": "accuracy", "unit": "1", "maximise": True, "best": 1.0,
            "worst": 0.5}
ASKS = [("a", ["1"], [101.0], 5.0, "ok"), ("b", ["2", "3"], [99.0], 6.0, "ok"),
        ("a", ["1"], [101.0], 5.0, "ok"), ("c", ["4"], [1e9], 1.0, "diverged")]


class Stores(FolderTest):
    def path(self, name):
        return str(self.folder / name)

    def comparison(self, name="comparison.sqlite", **options):
        arguments = {"objectives": [PERPLEXITY], "truth": TRUTH, "believed": TRUTH,
                     "algorithms": ["y"],
                     "searches": [(0, 7, 0.5, [2, 0], [1, 2], [3.0, 4.5], [106.0, 103.0])]}
        write_comparison(self.path(name), **{**arguments, **options})
        return self.path(name)

    def run_store(self, name="run.json", algorithm=None, seed=42, asks=ASKS, **options):
        write_run(self.path(name), algorithm or {"name": "nsga2", "population": 12}, seed, asks,
                  **options)
        return self.path(name)

    def refusal(self, *paths):
        with self.assertRaises(BadInput) as caught:
            stores.load(list(paths))
        return str(caught.exception)


class Comparisons(Stores):
    def test_searches_arrive(self):
        self.comparison()
        read = stores.load([str(self.folder)])  # as nas-compare leaves it
        self.assertEqual(read.budget, 93)
        self.assertEqual(read.remarks, [])
        search, = read.searches
        self.assertEqual((search.algorithm, search.seed, search.search_seconds), ("y", 7, 0.5))
        self.assertEqual(search.candidates.tolist(), [2, 0])
        self.assertEqual(search.trained.tolist(), [1, 2])
        self.assertEqual(search.seconds.tolist(), [3.0, 4.5])
        self.assertEqual(search.believed.tolist(), [[106.0], [103.0]])
        self.assertEqual(search.truth.tolist(), [[103.0], [100.0]])
        self.assertEqual(search.labels[search.candidates[0]], "mechanism 2")

    def test_what_is_not_judged_on_the_test_split_is_said(self):
        file = self.comparison(truth_splits={"perplexity": "test"})
        self.assertEqual(stores.load([file]).remarks, [])
        file = self.comparison("other.sqlite", truth_splits={"perplexity": "validation"})
        remark, = stores.load([file]).remarks
        self.assertIn("perplexity judged on the validation split", remark)

    def test_scaled_by_ranges_and_senses(self):
        read = stores.load([self.comparison(
            objectives=[PERPLEXITY, ACCURACY], truth=[[90.0, -1.0]] * 3, believed=None,
            searches=[(0, 1, 0.1, [0], [1], [1.0], [[105.0, -0.75]])])])
        np.testing.assert_allclose(read.scaled(read.searches[0].believed), [[0.5, 0.5]])
        self.assertIsNone(read.candidates.believed)

    def test_a_penalty_is_no_answer(self):
        """As src/table/outcome.cpp has it: 0 is worth 105 and not (390 + 104 + 106) / 3."""
        retrain = {"evaluation": {"repeated": "retrain"}}
        read = stores.load([self.comparison(settings=retrain, searches=[
            (0, 1, 0.1, [0, 0, 1, 0], [1, 2, 3, 4], [1.0] * 4, [390.0, 104.0, 390.0, 106.0])])])
        search, = read.searches
        self.assertEqual(read.objectives[0].penalty, 390.0)
        self.assertEqual(search.believed[:, 0].tolist(), [np.inf, 104.0, np.inf, 105.0])

    def test_an_answer_that_is_as_bad_in_one_objective_is_one(self):
        read = stores.load([self.comparison(
            objectives=[PERPLEXITY, ACCURACY], truth=[[90.0, -1.0]] * 3, believed=None,
            searches=[(0, 1, 0.1, [0, 1], [1, 2], [1.0] * 2, [[390.0, -0.9], [390.0, 4.0]])])])
        self.assertEqual(read.searches[0].believed.tolist(), [[390.0, -0.9], [np.inf, np.inf]])

    def test_a_half_written_commit_is_not_read(self):
        """A writer in SQLite's older journal mode, killed in the middle of a commit."""
        writer = sqlite3.connect(self.comparison(), isolation_level=None)
        self.addCleanup(writer.close)
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM meta")
        for seed in range(200):
            writer.execute("INSERT INTO searches VALUES (9, ?, 1, 0, ?, '', '', '', '', NULL)",
                           (seed, "x" * 3000))
        killed = self.folder / "killed"
        killed.mkdir()
        for suffix in ("", "-journal"):
            shutil.copy(self.path("comparison.sqlite") + suffix, killed)
        self.assertIn("left a journal beside it", self.refusal(str(killed / "comparison.sqlite")))

    def test_other_modes_and_budgets_are_remarked(self):
        other = self.comparison("other.sqlite", mode="paired", trainings=50,
                                searches=[(0, 1, 0.1, [0], [1], [1.0], [100.0])])
        read = stores.load([self.comparison(), other])
        first = self.path("comparison.sqlite")
        self.assertEqual(read.remarks, [
            "Beware: the searches differ in the answers of their tables: mode noisy in "
            f"{first}; mode paired in {other}.",
            f"Beware: the searches differ in the budgets: trainings 93 in {first}; trainings 50 in {other}."])

    def test_searches_that_were_asked_for_and_are_not_there_are_remarked(self):
        asked = [{"name": name, "label": name, "seeds": seeds, "settings": {}} for name, seeds in (("y", 3), ("z", 2), ("x", 1))]
        searches = [(0, seed, 0.1, [0], [1], [1.0], [100.0]) for seed in (7, 8)] + [(1, 7, 0.1, [0], [1], [1.0], [100.0])]
        file = self.comparison(algorithms=["y", "x"], searches=searches, config={"algorithms": asked})
        self.assertEqual(stores.load([file]).remarks, [
            f"Beware: {file} does not hold all searches that were asked for, and judged is what it holds: of y 2 of 3, of z 0 of 2."])
        file = self.comparison("older.sqlite", algorithms=["y", "x"])  # which does not say how many
        self.assertIn("judged is what it holds: of x none.", stores.load([file]).remarks[0])
        whole = [{**own, "seeds": 1} for own in asked if own["name"] != "z"]
        more = self.comparison("more.sqlite", algorithms=["y", "x"], searches=searches, config={"algorithms": whole})
        self.assertEqual(stores.load([more]).remarks, [])

    def test_what_was_spent_falls(self):
        nan = float("nan")
        for name, trained, seconds, steps, words in (
                ("1", [2, 1], [3.0, 4.5], [400, 800], "`trained` of ask 2 is 1 after 2"),
                ("2", [1, 2], [3.0, 2.5], [400, 800], "`seconds` of ask 2 is 2.5 after 3"),
                ("3", [1, 2], [3.0, nan], [400, 800], "`seconds` of ask 2 is nan after 3"),
                ("4", [1, 2], [3.0, 4.5], [400, 100], "`steps` of ask 2 is 100 after 400"),
                ("5", [-1, 2], [3.0, 4.5], [400, 800], "`trained` of ask 1 is -1 after 0")):
            file = self.comparison(f"{name}.sqlite", steps=[steps],
                                   searches=[(0, 7, 0.5, [2, 0], trained, seconds, [106.0, 103.0])])
            self.assertEqual(self.refusal(file), f"{file}: y, seed 7: {words}, must not fall: it counts what was charged so far")


class Runs(Stores):
    def test_asks_arrive(self):
        read = stores.load([self.run_store()])
        search, = read.searches
        self.assertEqual((search.algorithm, search.seed), ("nsga2", 42))
        self.assertEqual([read.candidates.names[i] for i in search.candidates],
                         ["a", "b", "a", "c"])
        self.assertEqual(search.labels[search.candidates[1]], "label of b")
        self.assertEqual(search.trained.tolist(), [1, 3, 3, 4])
        self.assertEqual(search.seconds.tolist(), [5.0, 17.0, 17.0, 18.0])
        self.assertEqual(search.believed[:, 0].tolist(), [101.0, 99.0, 101.0, np.inf])
        self.assertIsNone(search.truth)
        self.assertEqual(read.budget, 4)
        self.assertIn("No store holds ground truth", read.remarks[0])

    def test_ground_truth(self):
        read = stores.load([self.run_store(truth={"a": [100.0], "b": [98.0], "d": [97.0]})])
        self.assertEqual(read.candidates.names, ["a", "b", "c", "d"])
        self.assertEqual(read.candidates.truth[:, 0].tolist(), [100.0, 98.0, np.inf, 97.0])
        self.assertEqual(read.searches[0].truth[:, 0].tolist(), [100.0, 98.0, 100.0, np.inf])

    def by_rungs(self, name, **counted):
        """A run that begins a, b, d (which a constraint rejects) and c, lets a go on to the end, asks for it once more at the rung,
        and ends with e at the rung. @param counted  what its digest says of each of its asks, by the key."""
        def own(number, candidate, evaluation, **more):
            more |= {key: values[number] for key, values in counted.items()}
            return {"number": number, "batch": 0, "candidate": candidate, **more,
                    **({"evaluation": evaluation, "step": 10} if "fitness" not in more else {"evaluations": [evaluation]})}

        def trained(name, *steps):
            return {"id": name, "status": "ok", "curve": [{"step": step, "seconds": step / 10} for step in steps]}

        asks = {"asks": [own(2, "d", "4", fitness=[390.0], believed=None), own(4, "a", "1", fitness=[99.0], believed=[99.0])],
                "rung_asks": [own(0, "a", "1"), own(1, "b", "2"), own(3, "c", "3"), own(5, "a", "1"), own(6, "e", "5")],
                "evaluations": [trained("1", 10, 40), {"id": "4", "status": "rejected", "curve": []}],
                "paused": [trained("2", 10), trained("3", 10), trained("5", 10)]}
        return self.run_store(name, {"name": "random_search"}, asks=[], config={"fidelity": {"rungs": [10]}, "training": {"steps": 40}},
                              more=asks)

    def test_what_is_paused_at_a_rung_was_asked_for_and_trained(self):
        path = self.by_rungs("run.json", trained=[1, 2, 2, 3, 3, 3, 4], seconds=[1.0, 2.0, 2.0, 3.0, 6.0, 6.0, 7.5])
        read = stores.load([path], by="trainings")
        search, = read.searches
        self.assertEqual([read.candidates.names[i] for i in search.candidates], ["a", "b", "d", "c", "a", "a", "e"])
        self.assertEqual(search.trained.tolist(), [1, 2, 2, 3, 3, 3, 4])
        self.assertEqual(search.charged.tolist(), [1, 1, 0, 1, 0, 0, 1])
        self.assertEqual(search.seconds.tolist(), [1.0, 2.0, 2.0, 3.0, 6.0, 6.0, 7.5])
        inf = np.inf
        self.assertEqual(search.believed[:, 0].tolist(), [inf, inf, inf, inf, 99.0, 99.0, inf])
        self.assertEqual(stores.load([path], by="steps").searches[0].trained.tolist(), [0.25, 0.5, 0.5, 0.75, 1.5, 1.5, 1.75])

    def test_what_was_spent_falls(self):
        path = self.run_store()
        own = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        own["asks"][0]["columns"]["trained"][1] = 0
        pathlib.Path(path).write_text(json.dumps(own), encoding="utf-8")
        self.assertEqual(self.refusal(path), f"{path}: nsga2, seed 42: `trained` of ask 2 is 0 after 1, must not fall: it counts what "
                         "was charged so far")

    def test_candidates_of_several_stores_share_numbers(self):
        other = self.run_store("2.json", seed=43, asks=[("b", ["9"], [98.0], 1.0, "ok")])
        read = stores.load([self.run_store(), other])
        self.assertEqual([search.candidates.tolist() for search in read.searches],
                         [[0, 1, 0, 2], [1]])

    def test_settings_that_differ_name_the_algorithm(self):
        paths = [self.run_store("1.json"), self.run_store("2.json", {"name": "random_search"}),
                 self.run_store("3.json", {"name": "nsga2", "population": 24})]
        self.assertEqual([search.algorithm for search in stores.load(paths).searches],
                         ["nsga2, population 12", "random_search", "nsga2, population 24"])

    def test_rungs_are_a_way_to_search(self):
        paths = [self.run_store("1.json"), self.run_store("2.json", config={"fidelity": {"rungs": [100, 200], "eta": 3}}),
                 self.run_store("3.json", config={"fidelity": {"rungs": [], "min": 50, "eta": 3}})]
        read = stores.load(paths)
        self.assertEqual([search.algorithm for search in read.searches],
                         ["nsga2", "nsga2 by rungs, rungs [100, 200]", "nsga2 by rungs, min 50, rungs []"])
        self.assertNotIn("not only in their algorithms", " ".join(read.remarks))

    def test_other_differences_are_remarked(self):
        other = self.run_store("2.json", seed=43, config={"space": {"bias": ["bias"]}, "training": {"checkpoints": [5]}},
                               objectives=[{**PERPLEXITY, "worst": 200.0}])
        remarks = stores.load([self.run_store(), other]).remarks
        self.assertIn("by different ranges", remarks[1])
        self.assertIn('not only in their algorithms, but also in space.bias (nothing, ["bias"]), '
                      "training.checkpoints (nothing, [5]).", remarks[2])

    @staticmethod
    def without_effect(properties):
        """Settings that are neither of a result nor of the search, and sections that have only such, as a schema says."""
        def is_without(one):
            if "properties" in one:
                return all(map(is_without, one["properties"].values()))
            return one.get("x-effect", "result") not in ("result", "search")

        for name, one in properties.items():
            if is_without(one):
                yield name
            elif "properties" in one:
                yield from (f"{name}.{setting}" for setting, inner in one["properties"].items() if is_without(inner))

    def test_what_changes_no_result_is_that_of_the_program(self):
        if PROGRAM.is_file():
            schema = json.loads(subprocess.run([PROGRAM, "schema"], check=True, capture_output=True, text=True).stdout)
            self.assertEqual({*self.without_effect(schema["properties"])}, stores.WITHOUT_EFFECT - {"baseline", "fidelity.audit"})
        one, other = (self.run_store(f"{seed}.json", seed=seed, config={
            "name": f"run {seed}", "evaluation": {"keep_models": seed, "workers": seed}, "plugins": [f"{seed}.so"],
            "baseline": {"mechanism": f"{seed}", "tune": False}}) for seed in (1, 2))
        read = stores.load([one, other])
        self.assertNotIn("Beware", " ".join(read.remarks))
        self.assertEqual([search.algorithm for search in read.searches], ["nsga2", "nsga2"])


class Documented(unittest.TestCase):
    def test_every_table_and_column_is(self):
        text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
        source = (ROOT / "src" / "store" / "rows.cpp").read_text(encoding="utf-8")
        database = sqlite3.connect(":memory:")
        for name, schema in re.findall(r'k(\w+) = R"sql\((.*?)\)sql"', source, re.DOTALL):
            # Of some tables there are the columns alone.
            database.executescript(schema if "CREATE" in schema else f"CREATE TABLE {name} ({schema}\n)")
        names = []
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            names += [table, *(row[1] for row in database.execute(f"PRAGMA table_info({table})"))]
        database.close()
        self.assertGreater(len(names), 35)
        columns_of = {"EvaluationColumns": "evaluations", "PartialColumns": "partials"}
        for name in {columns_of.get(name, name) for name in names} - {"key", "value"}:
            self.assertIn(f"`{name}`", text)


class Refused(Stores):
    def test_stores_that_are_none_or_damaged(self):
        def asks(name, *arrays):
            return self.comparison(name, searches=[(0, 3, 0.1, *arrays)])

        pathlib.Path(self.path("text")).write_text("no database, but long enough for a header" * 9, encoding="utf-8")
        pathlib.Path(self.path("cut")).write_bytes(pathlib.Path(self.comparison()).read_bytes()[:5000])
        pathlib.Path(self.path("x.json")).write_text(text_of({}), encoding="utf-8")
        for name, sql in (("other", "TABLE songs(name TEXT)"), ("view", "VIEW v AS SELECT 1"), ("table", "VIRTUAL TABLE v USING fts5(x)")):
            sqlite3.connect(self.path(name)).executescript(f"CREATE {sql}")
        own_tables = "must hold tables and indices alone"
        for path, said in ((self.path("none.sqlite"), "none.sqlite: no such file; give a run's folder"),
                           (self.path("text"), "text: cannot be read as a store: file is not a database"),
                           (self.path("cut"), "cut: cannot be read as a store"),
                           (self.path("x.json"), "x.json: damaged: KeyError: 'objectives'"),
                           (self.path("other"), "neither the store of a run nor a comparison: it holds the tables songs"),
                           (self.path("view"), f"holds the view v, {own_tables}"), (self.path("table"), f"holds the table v, {own_tables}"),
                           (self.comparison("v.sqlite", version=2), "kind 'comparison', version 2; this reads kind 'comparison', version 1"),
                           (asks("1.sqlite", [0, 1], [1], [1.0, 2.0], [100.0, 101.0]),
                            "1.sqlite: damaged: ValueError: search 0, seed 3: 2 asks, but arrays of 2, 1, 2, 2"),
                           (asks("2.sqlite", [3], [1], [1.0], [100.0]), "asks for a candidate that is not there"),
                           (self.run_store(asks=[]), "holds no search that asked for anything"),
                           (self.run_store("run2.json", objectives=[{**PERPLEXITY, "key": ""}]), "ended before its first evaluation")):
            with self.subTest(said):
                self.assertIn(said, self.refusal(path))

    def test_stores_that_do_not_fit_each_other(self):
        compared, run = self.comparison(), self.run_store()
        for first, other, said in (
                (compared, self.comparison("other.sqlite", sha256="b" * 64), "other.sqlite: another table (SHA-256 bbbbbbbbbbbb) than that of"),
                (compared, self.run_store("t.json", facts={"table": {"sha256": "c" * 64, "mode": "noisy"}}),
                 "t.json: another table (SHA-256 cccccccccccc) than that of"),
                (compared, self.comparison("copy.sqlite"), "y with seed 7 is there twice"),
                (run, self.run_store("2.json", seed=43, objectives=[FLOPS]), "2.json: objectives attention_flops (FLOP), but"),
                (run, self.run_store("3.json", seed=43, objectives=[{**PERPLEXITY, "unit": "nat"}]), "3.json: objectives perplexity (nat), but")):
            with self.subTest(said):
                self.assertIn(said, self.refusal(first, other))
