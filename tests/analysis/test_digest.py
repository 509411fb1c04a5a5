"""Reading digests: which one counts, and what is said where there is none."""

import contextlib
import os
import pathlib
import sqlite3
from unittest import mock

from attnas.analysis import digest
from digest_file import text_of
from python_tests import FolderTest


class Digests(FolderTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder / "a run"
        self.folder.mkdir()
        self.programs = self.folder.with_name("programs")
        self.programs.mkdir()
        self.enterContext(contextlib.chdir(self.programs))
        for patch in (mock.patch.dict(os.environ, {"PATH": str(self.programs)}),
                      mock.patch.object(digest, "__file__", str(self.programs / "a/b/c/digest.py"))):
            patch.start()
            self.addCleanup(patch.stop)

    def write(self, name: str, seconds: float, text: str = "") -> pathlib.Path:
        """A file that was written at a time."""
        file = self.folder / name
        file.write_text(text or text_of({"warnings": [name]}))
        os.utime(file, (seconds, seconds))
        return file

    def program(self, lines: str) -> None:
        """nas-export, as a few lines for the shell."""
        file = self.programs / "nas-export"
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)

    def refusal(self, path: pathlib.Path) -> str:
        with self.assertRaises(digest.BadInput) as caught:
            digest.read(path)
        return str(caught.exception)

    def store(self, seconds: float, name: str = "store.sqlite") -> pathlib.Path:
        """What begins as a store does."""
        return self.write(name, seconds, "SQLite format 3\0")

    def test_the_one_beside_a_store_counts_where_nothing_was_written_since(self):
        self.write("results.json", 100)
        self.assertEqual(digest.read(self.folder)["warnings"], ["results.json"])
        store = self.store(100)
        for given in (self.folder, store, self.folder / "results.json"):
            self.assertEqual(digest.read(given)["warnings"], ["results.json"])
        self.write("store.sqlite-wal", 200).write_text("")
        self.assertEqual(digest.read(self.folder)["warnings"], ["results.json"])

    def test_else_nas_export_makes_one(self):
        self.program("echo '" + text_of({"warnings": ["GIVEN"]}).replace("GIVEN", "'\"$*\"'") + "'")
        store = self.store(100)
        fresh = [f"{store} --format json"]
        self.assertEqual(digest.read(self.folder)["warnings"], fresh, "there is none")
        self.write("results.json", 99)
        self.assertEqual(digest.read(self.folder)["warnings"], fresh, "older than the store")
        self.write("results.json", 101)
        self.assertEqual(digest.read(self.folder)["warnings"], ["results.json"])
        self.write("store.sqlite-wal", 102)
        self.assertEqual(digest.read(self.folder)["warnings"], fresh, "the store is being written")
        (self.folder / "store.sqlite-wal").unlink()
        self.write("results.json", 101, '{"schema": 2}')
        self.assertEqual(digest.read(self.folder)["warnings"], fresh, "of an older version")
        other = self.store(90, "other.sqlite")
        self.assertEqual(digest.read(other)["warnings"], [f"{other} --format json"])

    def test_one_that_lacks_what_a_store_holds_does_not_count_however_new_it_is(self):
        """As of a run that was extended, killed and copied without its times."""
        self.program("echo '" + text_of({"warnings": ["a new one"]}) + "'")
        store = self.folder / "store.sqlite"
        database = sqlite3.connect(store)
        self.addCleanup(database.close)
        database.executescript("CREATE TABLE asks (number); CREATE TABLE evaluations (id);"
                               "INSERT INTO asks VALUES (0), (1); INSERT INTO evaluations VALUES ('a'), ('b'), ('c')")
        for asks, rung_asks, evaluations, counts in ((2, 0, 3, True), (1, 1, 3, True), (1, 0, 3, False), (2, 0, 2, False)):
            self.write("results.json", store.stat().st_mtime + 100, text_of({
                "asks": [{"candidate": "a"}] * asks, "rung_asks": [{"candidate": "a"}] * rung_asks,
                "evaluations": [{"candidate": "a", "id": str(i)} for i in range(evaluations)], "warnings": ["as it was"]}))
            self.assertEqual(digest.read(self.folder)["warnings"], ["as it was" if counts else "a new one"])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["results.json", "store.sqlite"])

    def test_a_store_that_is_being_written_counts_as_its_writer_has_left_it(self):
        self.program("echo '" + text_of({"warnings": ["a new one"]}) + "'")
        store = self.folder / "store.sqlite"
        database = sqlite3.connect(store, isolation_level=None)
        self.addCleanup(database.close)
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE asks (number); CREATE TABLE evaluations (id)")
        database.execute("INSERT INTO asks VALUES (0)")
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO asks VALUES (1)")
        self.write("results.json", store.stat().st_mtime + 100,
                   text_of({"asks": [{"candidate": "a"}], "warnings": ["as it was"]}))
        self.assertEqual(digest.read(self.folder)["warnings"], ["as it was"])
        database.execute("COMMIT")
        self.assertEqual(digest.read(self.folder)["warnings"], ["a new one"])

    def test_what_nas_export_complains_about_is_passed_on(self):
        self.program("echo 'nas-export: x is damaged' >&2; exit 2")
        self.assertEqual(self.refusal(self.store(100)), "x is damaged")

    def test_programs_are_found_on_path_then_in_the_latest_build_here(self):
        for seconds, build in ((100, "a"), (200, "b"), (150, "c")):
            folder = self.folder / "build" / build / "bin"
            folder.mkdir(parents=True)
            (folder / "nas-export").touch(0o755)
            os.utime(folder, (seconds, seconds))
        with contextlib.chdir(self.folder):
            self.assertEqual(digest.program("nas-export"), f"{self.folder}/build/b/bin/nas-export")
            self.assertIsNone(digest.program("nas-none"))
            self.program("exit 0")
            self.assertEqual(digest.program("nas-export"), str(self.programs / "nas-export"))

    def test_without_nas_export_its_command_is_named(self):
        store = self.store(100)
        self.assertEqual(
            self.refusal(self.folder),
            f"{store}: there is no digest of all that it holds, and no nas-export on PATH that could make one; where "
            f"there is one: nas-export '{store}' --format json --force --output '{self.folder}/results.json'")

    def test_what_is_no_digest_is_refused(self):
        given = "; give a run's folder, its store.sqlite or its results.json"
        for path in (self.folder, self.folder / "absent", self.folder / "absent.json"):
            self.assertEqual(self.refusal(path), f"{path}: no such run{given}")
        text = self.write("notes.txt", 1, "no store")
        self.assertEqual(self.refusal(text), f"{text}: neither the store of a run nor a digest"
                         + given)
        for text, complaint in (
                ("[1]", "not a digest of a run"), ("{", "not a digest of a run: Expecting"),
                ("[" * 200000 + "]" * 200000, "not a digest of a run: maximum recursion"),
                ('{"schema": 2}', "not a digest of version 1 (its version is 2); nas-export RUN "
                 "--format json writes one")):
            path = self.write("x.json", 1, text)
            self.assertIn(f"{path}: {complaint}", self.refusal(path))
