"""The reader of tables, which needs Python alone, and what is published with a table."""

import hashlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import unittest

from attnas import InputError, publication
from attnas.table import Table
from python_tests import FolderTest, ROOT

TABLES = ROOT / "problems/tables"
VANILLA = "dot|softmax|none|fixed|bias|0"
TEXT = Table(TABLES / "text.table")


class Query(unittest.TestCase):
    def test_each_answer_is_its_own_cell(self):
        database = sqlite3.connect(f"{(TABLES / 'text.table').as_uri()}?immutable=1", uri=True)
        self.addCleanup(database.close)
        draw = random.Random(1)
        rows = database.execute("SELECT name, replicate, step, c.nll / c.tokens, correct, t.test_nll, t.flops FROM curves c "
                                "JOIN trainings t USING (mechanism, replicate) JOIN mechanisms USING (mechanism)").fetchall()
        self.assertEqual(len(rows), 30310)
        for name, seed, step, nll, correct, test_nll, flops in draw.sample(rows, 3000):
            got = TEXT.query(draw.choice([name, TEXT.label(name)]), seed, step)
            self.assertEqual((got.mechanism, got.seed, got.step, got.nll, got.flops), (name, seed, step, nll, flops))
            self.assertEqual(got.accuracy, correct / got.tokens)
            self.assertEqual(got.test_nll, test_nll if step == 1200 else None)

    def test_shorthand_says_what_the_vanilla_mechanism_has_instead(self):
        for text, name in (("sparsemax", "dot|sparsemax|none|fixed|bias|0"),
                           ("multiplicative+adaptive", "silu_dot|softmax|none|per_query|bias|0"),
                           ("gating=output_gate+no_bias", "dot|softmax|output_gate|fixed|no_bias|0"), ("softmax", VANILLA)):
            self.assertEqual(TEXT.query(text, 0, 1200), TEXT.query(name, 0, 1200))
        for text in ("none", "sparse", "sparsemax+", "gating=sparsemax", "relu_norm+sparsemax", "no_bias+bias"):
            with self.assertRaisesRegex(InputError, "must be one of the 320"):
                TEXT.query(text, 0)

    def test_iteration_and_facts(self):
        ends = list(TEXT)
        self.assertEqual((len(ends), len(TEXT), len(TEXT.mechanisms), TEXT.steps[-1]), (3031, 3031, 320, 1200))
        self.assertTrue(all(end.is_end for end in ends))
        self.assertEqual(TEXT.facts["corpus"], "brown")
        self.assertIn("flops", TEXT.costs(VANILLA))
        self.assertEqual(len(TEXT.curve(VANILLA, 0)), 10)

    def test_mistakes_say_what_is_allowed(self):
        for arguments, said in (((VANILLA.replace("dot", "dott"), 0), f"the nearest: {VANILLA}"), ((VANILLA, 99), "must be 0 to"),
                                ((VANILLA, "0"), "must be an integer"), ((VANILLA, 0, 55), "step = 55, must be one of 50, 100"),
                                ((3, 0), "mechanism = 3, must be one of the 320")):
            with self.subTest(arguments), self.assertRaises(InputError) as caught:
                TEXT.query(*arguments)
            self.assertIn(said, str(caught.exception))
            self.assertIn("text.table: ", str(caught.exception))


class Files(FolderTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "mine.table"
        shutil.copy(TABLES / "text.table", self.file)

    def change(self, sql):
        database = sqlite3.connect(self.file)
        database.executescript(sql)
        database.close()

    def refused(self, said):
        with self.assertRaises(InputError) as caught:
            Table(self.file)
        self.assertIn(said, str(caught.exception))

    def test_newer_altered_and_other_files_are_refused(self):
        self.change("PRAGMA user_version = 3")
        self.refused("a table of version 3, must be of version 2")
        self.change("PRAGMA user_version = 2; UPDATE trainings SET flops = flops + 1 WHERE mechanism = 0")
        self.refused("it was altered")
        self.file.write_bytes(self.file.read_bytes()[:5000])
        self.refused(str(self.file))
        self.file.write_text("no table")
        self.refused("not a table")
        self.file.unlink()
        self.refused("cannot be read")

    def test_what_would_be_computed_is_refused(self):
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x AS replicate, x AS step FROM n"
        self.change(f"ALTER TABLE curves RENAME TO old; CREATE VIEW curves AS {endless}")
        self.refused("holds the view curves, must hold tables and indices alone")
        self.change("DROP VIEW curves; ALTER TABLE old RENAME TO curves; CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END")
        self.refused("holds the trigger t, must")

    def test_the_file_alone_reads(self):
        shutil.copy(ROOT / "python/attnas/table.py", self.folder / "reader.py")
        words = f"import sys; sys.path.insert(0, {str(self.folder)!r}); from reader import Table; print(len(Table({str(self.file)!r})))"
        self.assertEqual(subprocess.run([sys.executable, "-I", "-S", "-c", words], capture_output=True, text=True, check=True).stdout,
                         "3031\n")

    def test_terms_do_not_change_the_checksum(self):
        self.change("DROP TABLE publication")
        before = Table(self.file)
        self.assertEqual(before.publication, {})
        with self.assertRaisesRegex(InputError, "its publication has no .*licence"):
            publication.publish(self.file)
        after = publication.record(self.file, TABLES / "text.about.json")
        self.assertEqual((after.sha256, after.facts), (before.sha256, before.facts))
        self.assertEqual(after.publication["licence"], "CC BY 4.0")

    def test_gates_of_the_task_are_kept(self):
        facts, about, gates = Table(self.file).facts, self.folder / "about.json", self.folder / "gates.json"
        record = {"schema": 1, "verdict": "Not passed: better than counts.", "identity": facts,
                  "gates": [{"name": "better than counts", "passed": False, "words": "perplexity 9 against 4"}]}
        about.write_text(json.dumps({**json.loads((TABLES / "text.about.json").read_text()), "gates": "gates.json"}))
        for given, said in (("{", "must be a record of nas-data gates"), ("{}", "must be a record of nas-data gates"),
                            (json.dumps({**record, "identity": {**facts, "corpus_hash": "x"}}), "corpus_hash is x, must be the table's"),
                            (json.dumps({**record, "identity": {**facts, "training": {**facts["training"], "steps": 7}}}), "steps is 7, must be")):
            gates.write_text(given)
            with self.subTest(said), self.assertRaises(InputError) as caught:
                publication.record(self.file, about)
            self.assertIn(said, str(caught.exception))
        gates.write_text(json.dumps(record))
        self.assertEqual(publication.record(self.file, about).publication["gates"], record)
        sheet = publication.publish(self.file, self.folder / "out")[1].read_text()
        self.assertIn("| better than counts | failed | perplexity 9 against 4 |", sheet)
        gates.unlink()
        about.write_text(json.dumps({key: own for key, own in json.loads(about.read_text()).items() if key != "gates"}))
        self.assertEqual(publication.record(self.file, about).publication["gates"], record, "kept")

    def test_mistakes_of_an_about_file(self):
        given = json.loads((TABLES / "text.about.json").read_text())
        about = self.folder / "about.json"
        for change, said in (({"licence": 5}, "licence = 5, must be a text"), ({"licens": "x"}, "unknown key 'licens', known: title"),
                             ({"version": "1"}, "version = 1, must be three numbers"), ({"version": "9.0.0"}, "first entry of changelog"),
                             ({"changelog": [{}]}, "must have the texts version, date, text")):
            about.write_text(json.dumps({**given, **change}))
            with self.subTest(said), self.assertRaises(InputError) as caught:
                publication.read_about(about)
            self.assertIn(said, str(caught.exception))
            self.assertIn(str(about), str(caught.exception))

    def test_publish_writes_the_content(self):
        made = publication.publish(self.file, self.folder / "out")
        self.assertEqual(len(made), 3)
        for line in made[-1].read_text().splitlines():
            own, name = line.split("  ")
            self.assertEqual(hashlib.sha256((self.folder / "out" / name).read_bytes()).hexdigest(), own)
        sheet = made[1].read_text()
        self.assertIn("not for commercial use", sheet)
        for section in ("Motivation", "Composition", "Collection process", "Preprocessing", "Uses", "Distribution", "Maintenance"):
            self.assertIn(f"\n## {section}\n", sheet)

    def test_the_shipped_tables_are_published_as_they_are(self):
        for name in ("text", "recall"):
            copy = self.folder / f"{name}.table"
            shutil.copy(TABLES / copy.name, copy)
            for made in publication.publish(copy):
                self.assertEqual(made.read_bytes(), (TABLES / made.name).read_bytes(), made.name)
            about = json.loads((TABLES / f"{name}.about.json").read_text())
            about["gates"] = json.loads((TABLES / about["gates"]).read_text())
            self.assertEqual(Table(copy).publication, about)
