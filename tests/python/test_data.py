"""nas-data: tables packed of runs, compared with them and described; corpora."""

import contextlib
import copy
import hashlib
import io
import json
import math
import os
import pathlib
import random
import shutil
import sqlite3
import tempfile
import unittest
from unittest import mock

from attnas import command_line
from attnas.data import __main__ as program
from attnas.data import info, packing
from attnas.data.records import dumped
from attnas.table import Table
from python_tests import FolderTest, PROGRAMS, ROOT

MODEL = {"layers": 1, "width": 16, "heads": 2, "context": 8, "vocabulary": 50, "feed_forward": 2,
    "dropout": 0.1}
IDENTITY = {"problem": "attention_search", "results_version": 3, "semantics": "corrected",
    "model": MODEL, "corpus": "brown",
            "corpus_hash": "abc", "training": {"steps": 40, "learning_rate": 3e-4},
            "numerical_mode": "exact", "threads": 1,
            "run_seed": 42}
FACTS = {"corpus": "brown", "vocabulary": 50, "unigram_perplexity": 40.0, "bytes_per_token": 5.5,
    "context": 8, "device": "cpu"}
# 2 similarities x 2 normalizations x 2 temperatures, of which relu_norm voids one, x bias.
NAMES = [f"{similarity}|{rest}|{bias}|0" for similarity in ("additive", "dot") for rest in (
    "relu_norm|none|fixed", "softmax|none|fixed", "softmax|none|learned") for bias
    in ("bias", "no_bias")]


def evaluation(name, replicate=0, nll=None, status="ok"):
    """A made-up training: worse with `additive`, better with `learned`, noise of the replicate.

    @param nll  at each step; else that.
    """
    noise = random.Random(f"{name} {replicate}")
    quality = 2.5 + 0.2 * ("additive" in name) - 0.1 * ("learned" in name) + 0.15 * ("relu_norm"
        in name) + 0.02 * ("no_bias" in name)
    curve = []
    for i, step in enumerate((10, 20, 40)):
        total = nll[i] if nll else 1000 * (quality + 8 / step + 0.05 * noise.random())
        curve.append({"step": step, "train_nll": quality,
            "seconds": step * (1 + 0.1 * noise.random()), "valid": {
            "nll": total, "tokens": 1000, "correct": noise.randrange(900), "pad_nll": 0.0,
            "pad_tokens": 0,
            "unknown_nll": 30 * noise.random(), "unknown_tokens": 10, "batch_mean_nll": total / 100,
            "batches": 10}})
    seconds = curve[-1]["seconds"]
    return {"candidate": name, "replicate": replicate, "status": status, "reason": "",
        "curve": curve, "identity": copy.deepcopy(IDENTITY),
            "values": {"parameters": 1000.0,
            "perplexity": math.exp(curve[-1]["valid"]["nll"] / 1000), "test_nll": 1e15},
            "measured": {"pid": 17, "train_seconds": seconds, "cpu_seconds": 0.75 * seconds,
            "peak_bytes": 1000000 + replicate,
                         "latency": {"value": 1.0 + 0.1 * replicate, "device": "cpu"}}}


def cells(replicates=3):
    return [evaluation(name, replicate) for name in NAMES for replicate in range(replicates)]


def write_store(folder, evaluations, facts=None, **meta):
    """A store as a finished run leaves it."""
    folder.mkdir(parents=True)
    database = sqlite3.connect(folder / "store.sqlite")
    database.executescript("""
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB) WITHOUT ROWID;
        CREATE TABLE evaluations (id TEXT NOT NULL UNIQUE, candidate TEXT NOT NULL,
            replicate INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
            identity TEXT NOT NULL, curve TEXT NOT NULL, "values" TEXT NOT NULL,
            measured TEXT NOT NULL, digest BLOB);""")

    def add(table, *columns):
        own = hashlib.sha256(b"".join(b"%d:%s" % (len(one), one) for one
            in (str(column).encode() for column in columns)))
        database.execute(f"INSERT INTO {table} VALUES ({'?, ' * len(columns)}?)",
            (*columns, own.digest()))

    for key, value in {"facts": facts or FACTS, "ended_by": "the algorithm", **meta}.items():
        add("meta", key, dumped(value))
    for one in evaluations:
        whole = {**one["identity"], "candidate": one["candidate"], "replicate": one["replicate"]}
        add("evaluations", hashlib.sha256(dumped(whole).encode()).hexdigest(), one["candidate"],
            one["replicate"], one["status"],
            one["reason"], dumped({**whole, "candidate": None}),
            *(dumped(one[key]) for key in ("curve", "values", "measured")))
    database.commit()
    database.close()
    return str(folder)


class Case(FolderTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "small.table"

    def store(self, name, evaluations=None, **options):
        return write_store(self.folder / name, cells() if evaluations is None else evaluations,
            **options)

    def run_program(self, *words):
        """@return  exit code, standard output and error."""
        out, err = io.StringIO(), io.StringIO()
        out.reconfigure = err.reconfigure = lambda **_: None
        with (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
              mock.patch("signal.signal")):
            code = command_line.run_main("nas-data", lambda: program.run(list(map(str, words))))
        return code, out.getvalue(), err.getvalue()

    def table(self, *words):
        code, out, err = self.run_program("table", *words)
        self.assertEqual((code, err), (0, ""), words)
        return out

    def refused(self, *words):
        code, out, err = self.run_program(*words)
        self.assertEqual((code, out), (2, ""), words)
        return err

    def packed(self, *stores, **options):
        packing.write(packing.pack(list(stores), "small", **options).content, self.file)
        return Table(self.file)

    def changed(self, change):
        """The small cells after a change of each."""
        made = cells()
        for one in made:
            change(one)
        return made


class Packing(Case):
    def test_a_table_is_what_the_store_says(self):
        run = self.store("run", schema={"reference_point": 1.1})
        self.assertIn("small.table: 12 mechanisms x 3 replicates, 36 cells, 0 missing, ",
            self.table("pack", run, "--output", self.file))
        packed = Table(self.file)
        self.assertEqual(packed.facts["sources"][0]["name"], "run")
        self.assertEqual(packed.facts["schema"], {"reference_point": 1.1})
        self.assertIn("not for commercial use", packed.publication["corpus_licence"])
        said = self.table("verify", self.file, run)
        self.assertEqual(said, f"{self.file}: checksum {packed.sha256} matches\n{run}: 36 of 36 cells as recorded\n")
        database = sqlite3.connect(self.file)
        self.addCleanup(database.close)
        answer = lambda sql: database.execute(sql).fetchone()
        self.assertEqual(answer("PRAGMA integrity_check"), ("ok",))
        self.assertIsNone(answer("PRAGMA foreign_key_check"))
        self.assertEqual(answer("SELECT count(*), max(cpu_seconds) < 0.75 * 45, max(test_nll) "
                                "FROM trainings"), (36, 1, 1e15))

    def test_equal_content_gives_equal_bytes(self):
        whole = packing.pack([self.store("whole")], "small").content
        written = []
        for made in (whole.cells, whole.cells[::-1]):
            whole.cells = made
            packing.write(whole, self.file)
            written.append(self.file.read_bytes())
        self.assertEqual(*written)
        self.assertEqual(sorted(os.listdir(self.folder)), ["small.table", "whole"])

    def test_what_followed_the_search_is_left_out(self):
        held_out, tuned, dropout = evaluation(NAMES[0],
            1000000), evaluation(NAMES[0]), evaluation("dot|softmax|none|fixed|bias|0.1")
        tuned["identity"]["training"]["learning_rate"] = 0.5
        run = self.store("run", [*cells(), held_out, tuned, dropout],
            config={"training": {"learning_rate": 3e-4}})
        packed = packing.pack([run], "small")
        self.assertEqual((len(packed.content.cells), packed.missing, packed.left_out),
            (36, [], [dropout["candidate"]]))
        self.packed(run)
        self.assertIn("36 of 36 cells", self.table("verify", self.file, run))
        other = self.store("other", [dropout])
        said = "mechanisms of the paper's six genes without attention dropout\n"
        self.assertTrue(self.run_program("table", "verify", self.file, other)[2].endswith(said))
        self.assertIn(f"nothing to pack; they have {dropout['candidate']}",
            self.refused("table", "pack", other, "--output", self.file))

    def test_runs_of_several_machines_are_one_table(self):
        made = cells()
        parts = self.store("b", made[10:]), self.store("a", made[:20],
            facts={**FACTS, "test_bytes_per_token": 5.25})
        merged, whole = packing.pack(list(parts),
            "small").content, packing.pack([self.store("whole")], "small").content
        self.assertEqual([one.canonical() for one in merged.cells],
            [one.canonical() for one in whole.cells])
        self.assertEqual([one["cells"] for one in merged.sources], [26, 20])
        self.assertEqual(merged.facts["test_bytes_per_token"], 5.25)

    def test_runs_that_differ_are_refused_with_every_key(self):
        def change(one):
            one["identity"].update(run_seed=43, causality_gate=True)
            one["identity"]["training"]["steps"] = 50
        runs = self.store("a"), self.store("b", self.changed(change),
            facts={**FACTS, "device": "cuda"})
        self.assertEqual(self.refused("table", "pack", *runs, "--output", self.file),
                         "nas-data: these runs are no one table, they differ in\n"
                         '  causality_gate: absent -> true\n  device: "cpu" -> "cuda"\n'
                         "  run_seed: 42 -> 43\n  training.steps: 40 -> 50\n")
        sphere = self.store("sphere", self.changed(
            lambda one: one["identity"].update(problem="sphere")))
        self.assertIn("a run of the problem sphere, must be of attention_search",
            self.refused("table", "pack", sphere, "--output", "x"))
        made = cells()
        made[4]["values"]["perplexity"] = 1.5
        said = self.refused("table", "pack", runs[0], self.store("c", made), "--output", self.file)
        name = made[4]["candidate"].replace("|", r"\|")
        self.assertRegex(said, rf"a and .*c differ in {name}, replicate 1:\n  values.perplexity: .* "
                         "-> 1.5")
        self.assertFalse(self.file.exists())

    def test_differences_missing_cells_and_unfinished_runs_are_listed(self):
        made = cells()
        run, gone = self.store("run", made[:7] + made[8:], ended_by=None), made[7]["candidate"]
        said = self.table("pack", run, "--output", self.file)
        self.assertIn(f"not finished yet:\n  {run}\nmissing cells:\n  {gone}, replicate 1\n", said)
        made[0]["measured"]["cpu_seconds"], made[1]["values"]["perplexity"] = 1e6, 1.5
        code, said, _ = self.run_program("table", "verify", self.file, self.store("whole", made))
        self.assertEqual(code, 2)
        self.assertIn(f"{made[0]['candidate']}, replicate 0: measured.cpu_seconds\n", said)
        self.assertIn(f"{made[1]['candidate']}, replicate 1: values.perplexity: 1.5 -> ", said)
        self.assertIn(f"{gone}, replicate 1: not in the table\n", said)
        self.assertIn("33 of 36 cells as recorded\n", said)
        said = self.table("verify", self.file, self.store("part", cells()[:5]))
        self.assertIn("5 of 5 cells as recorded\n30 cells of the table that none of these runs has:\n", said)
        self.assertTrue(said.endswith("\n  and 10 more\n"))

    def test_cells_that_cannot_be_are_refused(self):
        for change, said in ((lambda one: one["curve"].clear(),
                "it was finished, but its curve has no point"),
                             (lambda one: one["measured"].pop("train_seconds"),
                             "its train_seconds are missing"),
                             (lambda one: one["curve"][1]["valid"].update(correct=1001),
                             "its counts at step 20 (1001 correct of 1000 targets"),
                             (lambda one: one["curve"][1]["valid"].update(nll="nan"),
                             "a loss at step 20 = nan, must be finite"),
                             (lambda one: one["curve"][1].update(step=21),
                             "its curve has step 21, must have step 20 there"),
                             (lambda one: one["values"].update(Status=1.0),
                             "cannot be written: duplicate column name: ")):
            made = cells()
            change(made[3])
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.assertIn(said, self.refused("table", "pack", self.store("run", made), "--output",
                self.file))
            self.assertFalse(self.file.exists())

    def test_the_gates_of_the_task_are_kept(self):
        run, record = self.store("run"), self.folder / "gates.json"
        before, gates = self.packed(run), {"schema": 1, "verdict": "passed", "gates": [],
            "identity": None}
        for identity, said in ((None, 'corpus_hash is null, must be that of the runs: "abc"'),
                               ({**IDENTITY, "training": {"steps": 7}},
                               "training/steps is 7, must be that of the runs: 40"),
                               (IDENTITY, "")):
            gates["identity"] = identity
            record.write_text(json.dumps(gates))
            words = ("pack", run, "--output", self.file, "--gates", record)
            self.assertIn(said, self.refused("table", *words) if said else self.table(*words))
        self.assertEqual((Table(self.file).publication["gates"], Table(self.file).sha256),
            (gates, before.sha256))
        record.write_text('{"schema": 1}')
        self.assertIn("must be a record of nas-data gates", self.refused("table", *words))

    def test_wrong_words_and_files(self):
        run, notes = self.store("run"), self.folder / "notes.txt"
        notes.write_text("mine\n")
        self.table("pack", run, "--output", self.file)
        for words, said in (
                (["table"], "table: no command given, known: info, pack, verify"),
                (["table", "unpack"], "unknown command 'unpack'"),
                (["table", "pack", "x"], "--output FILE is missing"),
                (["table", "pack", "--output", "x"], "no store or folder of a run"),
                (["table", "verify"], "no table is given"),
                (["table", "info"], "one table must be given"),
                (["table", "pack", "/no/such", "--output", "x"],
                "nas-data: /no/such: no such store; give a run's folder\n"),
                (["table", "pack", run, "--output", notes], "is there and no table"),
                (["table", "pack", run, "--output", self.folder / "no" / "x"],
                "no/x: cannot be written"),
                (["table", "pack", self.file, "--output", "x"],
                f"{self.file}: is a table, must be a run's folder"),
                (["table", "info", run],
                 f"{run}: is a run, must be a table; nas-data table pack makes one of runs"),
                (["tabel"], "did you mean table?"),
                (["fetch"], "unknown command 'fetch', known: gates, get, info, list, table"),
                (["table", "pack", "x", "--ouput", "y"],
                "unrecognised option '--ouput'; did you mean --output?")):
            self.assertIn(said, self.refused(*words), words)
        database = sqlite3.connect(self.folder / "run" / "store.sqlite")
        database.execute("UPDATE evaluations SET reason = 'x' WHERE candidate = ?", (NAMES[0],))
        database.commit()
        database.close()
        self.assertIn("is damaged: its SHA-256 does not fit; put a copy",
            self.refused("table", "pack", run, "--output", self.file))
        code, out, _ = self.run_program("table", "info", "--help")
        self.assertEqual((code, out.splitlines()[2]), (0, "Usage: nas-data COMMAND"))
        code, _, err = self.run_program()
        self.assertEqual((code, err.splitlines()[2]), (2, "Usage: nas-data COMMAND"))


class Info(Case):
    def info(self, change=lambda one: None, facts=None, made=None, **publication):
        """What is said of the small table after a change of each cell."""
        made = cells() if made is None else made
        for one in made:
            change(one)
        content = packing.pack([write_store(pathlib.Path(tempfile.mkdtemp(dir=self.folder), "run"),
            made, facts)], "small").content
        content.publication = publication
        packing.write(content, self.file)
        return self.table("info", self.file)

    def test_what_is_said(self):
        said = self.info()
        self.assertTrue(said.startswith("small: 12 mechanisms x 3 replicates\n  semantics   corrected\n"))
        for line in ("cells       36 cells, 0 missing", "steps       [10, 20, 40]",
                "gates       no gates were recorded",
                     "chance      guessing by how often each token occurs: nll 3.689"):
            self.assertIn(f"\n  {line}\n", said)
        for words in ("best        dot|softmax|none|learned|bias|0: nll 2.6",
                "between mechanisms (ICC)", "over 3 pairs", "  nll         2.6"):
            self.assertIn(words, said)

    def test_further_replicates_of_the_best_are_none_that_the_others_lack(self):
        survivors = [evaluation(name, 3 + race) for race, count in enumerate((8, 2, 2, 1)) for name
            in NAMES[-count:]]
        said = self.info(made=[*cells(), *survivors])
        self.assertTrue(said.startswith("small: 12 mechanisms x 3 replicates, 8 of them up to 7\n"))
        self.assertIn("  cells       49 cells, 0 missing\n", said)
        self.assertIn("over 3 pairs", said)

    def test_which_functions_are_missing(self):
        genes = [{"name": name, "vanilla": [vanilla]} for name, vanilla in (
            ("similarity", "dot"), ("normalization", "softmax"), ("gating", "none"),
            ("temperature", "fixed"), ("bias", "bias"))]
        genes[3]["voided_by"] = {"normalization": ["relu_norm"]}
        facts = {**FACTS, "schema": {"genes": [*genes, {"name": "dropout"}]}}
        self.assertNotIn("missing  ", self.info(facts=facts))
        said = self.info(facts=facts, made=[one for one in cells() if one["candidate"] != NAMES[0]])
        self.assertIn("\n  missing     1 of the 12 functions that its options make have no training "
                      f"run, such as {NAMES[0]}\n", said)

    def test_the_tables_here_say_what_they_are_worth(self):
        recall = self.table("info", ROOT / "problems/tables/recall.table")
        for words in ("nll 0.693, accuracy 50.1 %",
                      "87 of 320 mechanisms (27.2 %) reach 90.0 % accuracy, mean over replicates, 139 (43.4 %) do so "
                      "with most replicates", "best of the other (35 divisions)",
                      "  model       context=8, dropout=0.0, feed_forward=4, "):
            self.assertIn(words, recall)

    def test_shares_of_variance_as_published(self):
        judged = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9],
            [6, 2, 4, 7]]  # Shrout & Fleiss (1979)
        self.assertAlmostEqual(info.intraclass_correlation(judged), 0.16574176840547544, 14)
        self.assertAlmostEqual(info.consistency_correlation(judged), 0.7148407148407149, 14)
        self.assertAlmostEqual(info.intraclass_correlation([[1, 2, 4], [7, 9], [3]]),
            0.8163606010016695, 14)
        self.assertEqual(info.intraclass_correlation([[1, 2], [1, 2]]), -1.0)
        for groups in ([[1], [2]], [[1, 2]], [[0.3, 0.1 + 0.2], [1, 1]]):
            self.assertTrue(math.isnan(info.intraclass_correlation(groups)))
        self.assertTrue(math.isnan(info.consistency_correlation([[1, 3], [2, 4]])),
            "nothing else varies")


@unittest.skipUnless((PROGRAMS / "nas-export").is_file(), "nas-export is not built")
class Corpora(Case):
    def setUp(self):
        super().setUp()
        environment = mock.patch.dict(os.environ, NAS_DATA_DIR=str(self.folder / "data"))
        environment.start()
        self.addCleanup(environment.stop)
        self.own = self.folder / "own"
        self.own.mkdir()
        for split, text in (("train", "a b a c\n"), ("valid", "a b\n"), ("test", "c\n")):
            (self.own / f"{split}.txt").write_text(text)

    def test_a_corpus_is_got_listed_and_described(self):
        self.assertIn("nas-data get wikitext-2\n", self.run_program("list")[1])
        self.assertIn("wikitext-2 is now in ", self.run_program("get", "wikitext-2", "--from",
            self.own)[1])
        self.assertIn("wikitext-2 is already in ", self.run_program("get", "wikitext-2")[1])
        self.assertIn(str(self.folder / "data/wikitext-2"), self.run_program("list")[1])
        said = self.run_program("info", "wikitext-2", "--context", 2, "layout=standard")[1]
        for words in ("train     4 tokens in 1 lines", "types     5 in train",
                "valid     2 windows, 3 scored targets", "licence   CC BY-SA",
                      f"source    {self.own}"):
            self.assertIn(words, said)

    def test_drawn_tasks_need_no_download(self):
        self.assertEqual(self.run_program("get", "mqar")[1], "mqar needs no download\n")
        said = self.run_program("info", "mqar", "--context", 64, "train_examples=7")[1]
        self.assertIn("train     7 windows, 28 scored targets", said)
        self.assertIn("chance    guessing among the values shown, by the place of the query: nll",
            said)

    def test_wrong_words(self):
        for words, said in ((["get", "wikitext2"], "did you mean wikitext-2?"),
                (["get", "brown", "extra"], "'extra' is not understood"),
                            (["get", "brown", "--from"], "--from has no value"),
                            (["get", "wikitext-2", "--from", "/no/such"],
                            "nas-data: --from /no/such: no such folder or archive\n")):
            self.assertIn(said, self.refused(*words))
