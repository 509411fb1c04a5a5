"""Texts of others, as names of runs, folders, mechanisms and algorithms: they stay texts in pages, pictures, queries and files."""

import contextlib
import csv
import html.parser
import io
import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import unittest
import unittest.mock
import xml.etree.ElementTree

from attnas.analysis.commands import attention, compare, components, export
import numpy as np
from fake_stores import write_fake
from fake_tables import cell, functions, insert, write_table
from attnas.analysis import exports
from attnas.table import content_sha256
from attnas.analysis.files import write_whole, write_whole_folder
from page_fixture import BASELINE, RunFixture
from attnas.analysis.commands.report import main as report
from test_attention import analysis
from test_export_formats import A, run

MARKUP = "\"><img src=x onerror=alert(1)><script>alert(1)</script>&lt;' onmouseover='alert(1)"
FOLDER = MARKUP.replace("/", "")  # a file's name has none
LABEL = "x'); DROP TABLE asks;--"
from python_tests import PROGRAMS, ROOT, FolderTest, said


class Elements(html.parser.HTMLParser):
    """What a browser makes of a page: elements, attributes that are code, and texts, also those of attributes."""

    def __init__(self, page: str):
        super().__init__()
        self.names: list[str] = []
        self.code: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        for name, value in attrs:
            self.texts.append(value or "")
            if name.startswith("on") or (value or "").lstrip().lower().startswith("javascript:"):
                self.code.append(f"{name}={value}")

    def handle_data(self, data):
        self.texts.append(data)


class Hostile(FolderTest):
    def setUp(self):
        super().setUp()
        self.above = self.folder
        self.folder = self.above / FOLDER
        self.folder.mkdir()

    def run_main(self, main, *arguments) -> None:
        """Runs the program of a module, which must succeed."""
        code, _, err = said(main, *arguments)
        self.assertEqual(code, 0, err)

    def check(self, page: pathlib.Path, *texts: str) -> None:
        """A page runs its own script alone, and shows texts as they are; pictures beside it are well-formed, without scripts."""
        made = Elements(page.read_text(encoding="utf-8"))
        self.assertEqual(made.names.count("script"), 1, "its own")
        self.assertFalse({"img", "iframe", "object", "form"} & set(made.names))
        self.assertEqual(made.code, [])
        for text in texts:
            self.assertTrue(any(text in shown for shown in made.texts), f"{text} is not shown")
        for picture in page.parent.glob("*.svg"):
            names = {element.tag.rsplit("}")[-1] for element in xml.etree.ElementTree.parse(picture).iter()}
            self.assertFalse(names & {"script", "img", "foreignObject"}, picture)

    def table(self, name: str, made: dict) -> pathlib.Path:
        """A packed table, all texts of which are markup."""
        path = self.folder / name
        write_table(path, made, facts={"device": MARKUP, "corpus": MARKUP, "processor": MARKUP})
        database = sqlite3.connect(path)
        database.execute("UPDATE meta SET value = ? WHERE key = 'name'", (json.dumps(MARKUP),))
        database.execute("DELETE FROM meta WHERE key = 'sha256'")
        insert(database, "meta", [("sha256", json.dumps(content_sha256(database)))])
        database.commit()
        database.close()
        return path


class Pages(Hostile):
    def test_report(self):
        made = RunFixture(self.folder)
        made.set("config", {"name": MARKUP, "algorithm": {"name": MARKUP}, "space": {}})
        made.set("labels", {BASELINE: LABEL, made.candidates[1]: MARKUP, made.candidates[2]: LABEL})
        made.set("facts", {"corpus": MARKUP, "corpus_hash": MARKUP})
        made.set("ended_by", MARKUP)
        made.set("sessions", [{"environment": {"processor": MARKUP, "attnas": LABEL}, "host": MARKUP}])
        made.retest()
        self.run_main(report, self.folder, "--svg", self.folder / "svg")
        self.check(self.folder / "report.html", MARKUP, LABEL)
        for picture in (self.folder / "svg").glob("*.svg"):
            xml.etree.ElementTree.parse(picture)

    def test_compare(self):
        path = self.folder / "comparison.sqlite"
        write_fake(path, {"random_search": 0.0, LABEL: 1.0, MARKUP: 3.0}, 20, several=True)
        database = sqlite3.connect(path)
        database.execute("UPDATE candidates SET name = name || ?1, label = label || ?1", (LABEL + MARKUP,))
        database.execute("UPDATE meta SET value = json_set(value, '$.name', ?1, '$.file', ?1) WHERE key = 'table'",
                         (MARKUP,))
        database.commit()
        before = database.execute("SELECT * FROM searches").fetchall()
        self.run_main(compare.main, path, "--show", MARKUP, "--resamples", "200", "-o", self.folder / "out")
        self.assertEqual(database.execute("SELECT * FROM searches").fetchall(), before)
        database.close()
        self.check(self.folder / "out" / "compare.html", MARKUP, LABEL)
        self.assertEqual({file.parent for file in self.above.rglob("*.svg")}, {self.folder / "out"}, "no name leads out")

    def test_components(self):
        options = {"gating": ["none", "output_gate", MARKUP], "similarity": ["dot", LABEL]}
        random = np.random.default_rng(9)
        made = {(name, seed): cell(20 - 2 * (LABEL in name) + random.normal()) for name in functions(options)
                for seed in range(3)}
        self.run_main(components.main, self.table("of <object>.table", made), "-o", self.folder / "out")
        self.check(self.folder / "out" / "components.html", MARKUP, LABEL)

    def test_attention(self):
        (self.folder / "a").mkdir()
        what = analysis(label=f"a {MARKUP}", run=MARKUP, corpus=MARKUP, weights=LABEL, split=LABEL)
        (self.folder / "a" / "attention.json").write_text(json.dumps(what), encoding="utf-8")
        self.run_main(attention.main, self.folder / "a", "-o", self.folder / "out")
        self.check(self.folder / "out" / "attention.html", f"a {MARKUP}")


@unittest.skipUnless((PROGRAMS / "nas-run").is_file(), "nas-run, in the folder NAS_BIN")
class Programs(Hostile):
    def test_a_run_of_a_hostile_name_in_a_hostile_folder(self):
        file = self.above / "own.yaml"
        file.write_text(f"extends: {ROOT}/configs/smoke.yaml\nname: {json.dumps(FOLDER + LABEL)}\n", encoding="utf-8")
        subprocess.run([PROGRAMS / "nas-run", file, "-q", "--no-report", "training.steps=2", "--output", self.folder], check=True,
                       capture_output=True)
        store = sqlite3.connect(self.folder / "store.sqlite")
        self.assertGreaterEqual(store.execute("SELECT count(*) FROM asks").fetchone()[0], 4)
        store.close()
        self.run_main(report, self.folder)
        self.check(self.folder / "report.html", FOLDER + LABEL)


class Files(Hostile):
    def test_csv_has_no_formulas(self):
        made = run()
        made["labels"] = {A: '=HYPERLINK("http://x")'}
        made["asks"][1]["status"] = "-2+3"
        made["genes"][5]["name"] = "@dropout"
        made["asks"][0]["genotype"] = A.removesuffix("0.1") + "-0.1"
        head, first, second, *_ = csv.reader(io.StringIO(exports.asks_csv(made)))
        self.assertIn("'@dropout", head)
        self.assertIn('\'=HYPERLINK("http://x")', first)
        self.assertIn("-0.1", first, "a number")
        self.assertIn("'-2+3", second)
        self.assertIn("-0.25", second, "a number")

    def planted(self, name: str) -> pathlib.Path:
        """A file of somebody's, to which links lead from the names under which another file could be made."""
        victim = self.above / "victim"
        victim.write_text("of somebody")
        for end in ("", ".tmp", f".{socket.gethostname()}.{os.getpid()}.tmp"):
            (self.folder / (name + end)).symlink_to(victim)
        return victim

    def test_a_result_is_written_through_no_link(self):
        victim = self.planted("report.html")
        RunFixture(self.folder)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report([str(self.folder)]), 0)
        self.assertEqual(victim.read_text(), "of somebody")
        self.assertFalse((self.folder / "report.html").is_symlink())
        self.check(self.folder / "report.html")

    def test_an_export_is_written_through_no_link(self):
        victim = self.planted("asks.csv")
        RunFixture(self.above / "run")
        (self.folder / "asks.csv").unlink()
        self.run_main(export.main, self.above / "run", "--format", "csv", "-o", self.folder / "asks.csv")
        self.assertTrue((self.folder / "asks.csv").read_bytes().startswith(b"number,batch,"))
        self.assertEqual(victim.read_text(), "of somebody")

    def test_what_cannot_be_made_anew_is_not_written_to(self):
        file = self.folder / "a.txt"
        write_whole(file, b"one")
        with unittest.mock.patch("attnas.analysis.files._remove"):  # as in a folder of which only owners remove files
            self.planted("b.txt")
            with self.assertRaises(FileExistsError) as raised:
                write_whole(self.folder / "b.txt", b"two")
            self.assertEqual(raised.exception.filename, str(self.folder / "b.txt"))
        self.assertEqual((self.above / "victim").read_text(), "of somebody")
        self.assertEqual(file.read_bytes(), b"one")

    def test_what_is_no_file_of_ours_is_not_replaced(self):
        RunFixture(self.folder)
        pipe, link, store = (self.above / name for name in ("pipe", "link", "store.sqlite"))
        os.mkfifo(pipe)
        link.symlink_to(pipe)
        with contextlib.closing(sqlite3.connect(store)) as connection:
            connection.execute("CREATE TABLE own (id)")
        before = store.read_bytes()
        for file, complaint in ((pipe, "must be a regular file"), (link, "must be a regular file"),
                                (store, "is an SQLite database, as runs and tables are, must be another file")):
            with self.subTest(file.name), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(report([str(self.folder), "-o", str(file)]), 2)
                self.assertEqual(said.getvalue(), f"report.py: {file}: {complaint}\n")
        self.assertTrue(pipe.is_fifo())
        self.assertTrue(link.is_symlink())
        self.assertEqual(store.read_bytes(), before)
        with self.assertRaises(IsADirectoryError):
            write_whole(self.folder, b"text")

    def test_a_folder_is_written_through_no_link(self):
        elsewhere = self.above / "elsewhere"
        elsewhere.mkdir()
        (self.folder / f"out.{socket.gethostname()}.{os.getpid()}.tmp").symlink_to(elsewhere)
        write_whole_folder(self.folder / "out", {"a/b.txt": b"one"})
        self.assertEqual((self.folder / "out" / "a" / "b.txt").read_bytes(), b"one")
        self.assertEqual(list(elsewhere.iterdir()), [])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out"])
