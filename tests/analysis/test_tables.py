"""Reading packed tables and stores as tables: what arrives, and what is refused in which words."""

import json
import os
import pathlib
import re
import sqlite3
import subprocess

import numpy as np
from digest_file import said_by, text_of
from fake_tables import IDENTITY, cell, functions, write_run, write_table
from attnas.analysis import tables
from attnas.analysis.digest import BadInput
from attnas.analysis.schema import schema
from attnas.table import content_sha256
from python_tests import FolderTest, ROOT

A, B, C = functions()[:3]
CELLS = {(A, 0): cell(10.0, latency=3.0), (A, 1): cell(12.0, latency=5.0),
         (B, 0): cell(20.0), (B, 1): cell(0.0, status="diverged"), (C, 1): cell(30.0)}


class Tables(FolderTest):
    def packed(self, **options):
        write_table(self.folder / "x.table", CELLS, **options)
        return str(self.folder / "x.table")

    def stored(self, cells=None, name="run.json", **options):
        write_run(self.folder / name, cells or CELLS, **options)
        return str(self.folder / name)

    def refusal(self, *paths):
        with self.assertRaises(BadInput) as caught:
            tables.load(list(paths))
        return str(caught.exception)

    def test_cells_arrive(self):
        table = tables.load([self.packed()])
        self.assertEqual(table.mechanisms, [A, B, C])
        self.assertEqual((table.replicates, table.steps.tolist()), (2, [50, 200]))
        np.testing.assert_array_equal(table.status, [[0, 0], [0, 2], [-1, 0]])
        np.testing.assert_allclose(np.exp(table.valid_nll[0]), [[20.0, 11.0], [24.0, 13.2]])
        np.testing.assert_allclose(table.valid_accuracy[2, 1], [0.3, 0.3])
        np.testing.assert_allclose(np.exp(table.test_nll),
                                   [[10.0, 12.0], [20.0, np.nan], [np.nan, 30.0]])
        np.testing.assert_array_equal(table.seconds, [[40.0, 40.0], [40.0, 40.0], [np.nan, 40.0]])
        np.testing.assert_array_equal(table.measured["latency"], [3.0, np.nan, np.nan])
        self.assertTrue(np.isnan(table.valid_nll[1, 1]).all())
        self.assertEqual(table.facts["corpus"], "fake")
        self.assertEqual(len(table.sha256), 64)
        self.assertEqual(table.troubles(),
                         [f"{B}, replicate 1: diverged", f"{C}, replicate 0: missing"])

    def test_seeds_of_listed_mechanisms_are_counted_not_numbered(self):
        table = tables.load([self.stored({(A, 1000001): cell(10.0), (B, 1000000): cell(12.0), (B, 1000003): cell(13.0)})])
        self.assertEqual((table.replicates, table.numbers), (3, (1000000, 1000001, 1000003)))
        np.testing.assert_allclose(np.exp(table.test_nll), [[np.nan, 10.0, np.nan], [12.0, np.nan, 13.0]])
        self.assertEqual(table.troubles(), [f"{A}, replicate 1000000: missing", f"{A}, replicate 1000003: missing",
                                            f"{B}, replicate 1000001: missing"])

    def reordered(self, path):
        """A digest with its evaluations in each order that makes one of them the first: they are by id, which is a hash."""
        made = said_by(pathlib.Path(path))
        for turn in range(len(made["evaluations"])):
            made["evaluations"] = made["evaluations"][1:] + made["evaluations"][:1]
            turned = self.folder / f"turned{turn}.json"
            turned.write_text(text_of(made), encoding="utf-8")
            yield str(turned)

    TRAINING = {"steps": 200, "learning_rate": 0.001, "score_test": False}

    def test_what_tuning_and_a_retest_trained_is_left_out(self):
        tuned = {**self.TRAINING, "learning_rate": 0.01}
        path = self.stored({(A, 0): cell(9.0), (B, 0): cell(12.0), (A, 1000000): cell(9.6)},  # as where a search scores the test split
                           identity={**IDENTITY, "training": self.TRAINING}, training={**self.TRAINING, "early_stop_after": 0},
                           others=[({**IDENTITY, "training": tuned}, {(A, 0): cell(8.0), (A, 1): cell(8.5)}),
                                   ({**IDENTITY, "training": {**self.TRAINING, "score_test": True}}, {(A, 1000000): cell(9.5)})])
        for turned in self.reordered(path):
            table = tables.load([turned])
            self.assertEqual((table.mechanisms, table.numbers), ([A, B], (0,)))
            np.testing.assert_allclose(np.exp(table.test_nll), [[9.0], [12.0]])
            self.assertEqual(table.facts["training"], self.TRAINING)

    def test_of_listed_mechanisms_those_count_that_are_compared(self):
        tuned = {**self.TRAINING, "learning_rate": 0.01}
        path = self.stored({(A, 1000000): cell(9.0), (B, 1000000): cell(12.0), (C, 1000000): cell(14.0)},
                           identity={**IDENTITY, "training": self.TRAINING}, training=self.TRAINING,
                           others=[({**IDENTITY, "training": tuned}, {(A, 0): cell(8.0), (A, 1000000): cell(8.5)})])
        made = said_by(pathlib.Path(path))
        for turned in self.reordered(path):
            self.assertEqual(tables.load([turned]).mechanisms, [A, B, C], "none is compared yet")
        made["retest"] = {"candidates": [{"candidate": name, "evaluations": [one["id"] for one in made["evaluations"]
                                                                            if one["candidate"] == name and one["replicate"] > 0]}
                                         for name in (A, B)]}
        pathlib.Path(path).write_text(text_of(made), encoding="utf-8")
        for turned in self.reordered(path):
            table = tables.load([turned])
            self.assertEqual((table.mechanisms, table.numbers), ([A, B], (1000000,)))
            np.testing.assert_allclose(np.exp(table.test_nll), [[9.0], [12.0]])

    def test_batches_with_other_limits_of_early_stopping_are_one_search(self):
        first, second = ({**IDENTITY, "training": self.TRAINING, **limits} for limits in ({}, {"stop_above_nll": {"20": 3.5}}))
        path = self.stored({(A, 0): cell(9.0)}, identity=first, training=self.TRAINING, others=[(second, {(B, 0): cell(12.0)})])
        other = self.stored({(C, 0): cell(13.0)}, "other.json", identity={**first, "stop_above_nll": {"20": 3.25}}, training=self.TRAINING)
        for turned in self.reordered(path):
            self.assertEqual(tables.load([turned, other]).mechanisms, [A, B, C])
            self.assertEqual(tables.load([other, turned]).mechanisms, [A, B, C])
            self.assertNotIn("stop_above_nll", tables.load([turned]).facts)

    def test_the_seeds_of_a_retest_begin_where_the_programs_let_them_begin(self):
        source = (ROOT / "src" / "store" / "evaluation.hpp").read_text(encoding="utf-8")
        first = re.search(r"kFirstHeldOutReplicate = ([\d']+);", source)
        self.assertEqual(int(first[1].replace("'", "")), tables.FIRST_HELD_OUT)

    def test_a_search_that_is_not_one_is_refused(self):
        path = self.stored({(A, 0): cell(9.0)}, others=[({**IDENTITY, "memory_limit": 1.0}, {(B, 0): cell(12.0)})])
        self.assertEqual(self.refusal(path), f"{path}: its own trainings differ in memory_limit; only trainings of the same kind can "
                         "be put together")

    def test_a_store_gives_the_same_arrays(self):
        packed, stored = tables.load([self.packed()]), tables.load([self.stored()])
        self.assertEqual(packed.mechanisms, stored.mechanisms)
        for name in ("status", "valid_nll", "valid_accuracy", "curve_seconds", "test_nll",
                     "seconds", "steps"):
            np.testing.assert_array_equal(getattr(packed, name), getattr(stored, name), name)
        for name, values in packed.values.items():
            np.testing.assert_array_equal(values, stored.values[name], name)
        np.testing.assert_array_equal(packed.measured["latency"], stored.measured["latency"])

    def test_stores_are_put_together(self):
        first = self.stored({(A, 0): CELLS[A, 0]})
        second = self.stored({(A, 0): cell(99.0), (A, 1): CELLS[A, 1]}, "other.json")
        table = tables.load([first, second])
        np.testing.assert_allclose(np.exp(table.test_nll), [[10.0, 12.0]])

    def test_the_programs_read_the_same_format(self):
        program = pathlib.Path(os.environ.get("NAS_BIN", "")) / "nas-data"
        if not program.is_file() or "table verify" not in self.output(program, "--help"):
            self.skipTest("nas-data, which reads tables, is not built")
        path = self.packed()
        self.assertIn(tables.load([path]).sha256, self.output(program, "table", "verify", path))

    @staticmethod
    def output(*command) -> str:
        return subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              check=True).stdout

    def test_genes(self):
        table = tables.load([self.packed()])
        self.assertEqual(table.genes.columns.tolist(), list(schema(None).genes))
        self.assertEqual("|".join(table.genes.loc[B]), B)

    def test_voided_genes_are_no_difference(self):
        genes = ("normalization", "temperature")
        self.assertEqual(schema(None).function_of(("relu_norm", "fixed"), genes),
                         schema(None).function_of(("relu_norm", "learned"), genes))
        self.assertNotEqual(schema(None).function_of(("softmax", "fixed"), genes),
                            schema(None).function_of(("softmax", "learned"), genes))
        self.assertEqual(len(functions()), 320)

    def test_refusals(self):
        path = pathlib.Path(self.packed())
        whole = path.read_bytes()
        path.write_bytes(whole[:-4096])
        self.assertIn(f"{path}: not a readable table: ", self.refusal(str(path)))
        self.assertEqual(self.refusal(self.packed(version=3)),
                         f"{path}: a table of version 3, must be of version 2")
        other = self.packed(application_id=7)
        self.assertRegex(self.refusal(other), "not a store of version|nas-export")
        with self.assertRaisesRegex(tables.TableError, "x.table: not a table$"):
            tables.read(other)
        self.assertIn("no such file; give a table, a run's folder",
                      self.refusal(str(self.folder / "absent")))
        self.assertIn("stands for itself, but 2 files are given",
                      self.refusal(self.packed(), self.stored()))

    def change(self, sql, fitting=True):
        """A table after a change, with a checksum that fits or the one from before."""
        path = self.packed()
        database = sqlite3.connect(path)
        database.executescript(sql)
        if fitting:
            database.execute("UPDATE meta SET value = ? WHERE key = 'sha256'",
                             (json.dumps(content_sha256(database)),))
        database.commit()
        database.close()
        return path

    def test_what_was_altered(self):
        more = "UPDATE curves SET tokens = tokens + 1 WHERE step = 50"
        path = self.change(more, fitting=False)
        self.assertEqual(self.refusal(path),
                         f"{path}: its content does not fit its checksum: it was altered")
        tables.load([self.change(more)])
        for sql, words in (
                ("DELETE FROM meta WHERE key = 'facts'", "damaged: KeyError: 'facts'"),
                ("UPDATE meta SET value = '{' WHERE key = 'facts'", "damaged: JSONDecodeError"),
                ("UPDATE trainings SET status = 'fine'", "damaged: ValueError"),
                ("UPDATE trainings SET cpu_seconds = 'x'", "damaged: ValueError"),
                ("UPDATE trainings SET mechanism = 9 WHERE mechanism = 2", "damaged: KeyError: 9"),
                ("DELETE FROM trainings", "damaged: KeyError: 0"),
                ("ALTER TABLE curves RENAME COLUMN nll TO x", "damaged: KeyError: 'nll'")):
            self.assertIn(f"{path}: {words}", self.refusal(self.change(sql)), sql)
        self.assertEqual(self.refusal(self.change("DROP TABLE curves", fitting=False)),
                         f"{path}: not a readable table: no such table: curves")

    def test_only_the_file_is_looked_at(self):
        path = self.packed()
        pathlib.Path(path + "-wal").write_text("left by another file")
        self.assertEqual(tables.load([path]).mechanisms, [A, B, C])
        self.assertEqual(len(list(self.folder.iterdir())), 2)

    def test_the_checksum_is_of_the_content_alone(self):
        before = tables.read(self.packed()).sha256
        after = tables.read(self.change("CREATE INDEX i ON trainings (perplexity); VACUUM"))
        self.assertEqual(after.sha256, before)

    def test_results_name_the_tables_that_are_there(self):
        there = {tables.read(str(path)).sha256 for path in (ROOT / "problems/tables").glob("*.table")}
        named = {}
        for page in (ROOT / "analysis/results").glob("*/*.md"):
            for found in re.findall(r"SHA-256 ([0-9a-f]{64})", page.read_text()):
                named.setdefault(found, set()).add(page.parent.name)
        self.assertEqual({sha: folders for sha, folders in named.items() if sha not in there}, {})
        self.assertEqual(there - set(named), set())

    def test_runs_that_do_not_fit(self):
        other = self.stored(name="other.json", identity={**IDENTITY, "corpus": "b", "steps": 3})
        self.assertIn("differs from", self.refusal(self.stored(), other))
        self.assertIn("in corpus, steps; only", self.refusal(self.stored(name="3.json"), other))

    def test_a_damaged_store(self):
        broken = {**cell(1.0), "curve": [{"step": 1}]}
        path = self.stored({(A, 0): broken})
        self.assertEqual(self.refusal(path), f"{path}: damaged: KeyError: 'valid'")
        empty = self.folder / "empty.json"
        write_run(empty, {}, others=[(IDENTITY, {(A, 1000000): cell(1.0)})])
        self.assertEqual(self.refusal(str(empty)), f"{empty}: holds no evaluation of its search yet")
