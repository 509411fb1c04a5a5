"""export.py's files, read back by the programs that they are for, and nas-export.
"""

import contextlib
import io
import subprocess
import tempfile
import unittest
from pathlib import Path

from attnas.analysis.commands.export import FORMATS, main
from python_tests import PROGRAMS, ROOT, need

need(program="nas-export")

SEARCHES = {
    "two": ("nsga2_zdt.yaml", "algorithm.population=8", "algorithm.generations=5", "seed=1"),
    "other": ("nsga2_zdt.yaml", "algorithm.population=8", "algorithm.generations=5", "seed=2"),
    "attention": ("smoke.yaml", "objectives=[accuracy]", "algorithm.generations=3",
                  "model.width=8", "evaluation.workers=1", "constraints=[parameters <= 1300]")}


class Exports(unittest.TestCase):
    """Each format against the store that it was written from."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        for name, (config, *overrides) in SEARCHES.items():
            subprocess.run([PROGRAMS / "nas-run", ROOT / "configs" / config, *overrides,
                            "--quiet", "--no-report", "--output", cls.folder / name],
                           check=True, capture_output=True)

    def export(self, *arguments: str, names: tuple[str, ...] = ("two",)) -> str:
        """What export.py prints."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out):
            self.assertEqual(main([*(str(self.folder / name) for name in names), *arguments]), 0)
            out.flush()
        return out.buffer.getvalue().decode()

    def record(self, *arguments: str, names: tuple[str, ...] = ("two",), code: int = 0) -> str:
        """What nas-export prints about runs; its complaint where it is to end with another code than 0."""
        done = subprocess.run([PROGRAMS / "nas-export", *(self.folder / name for name in names), *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_the_digest_of_a_store_is_that_of_the_run(self) -> None:
        for name in SEARCHES:
            written = (self.folder / name / "results.json").read_text()
            self.assertEqual(self.record("--format", "json", names=(name,)), written)

    def test_mistakes_are_named_and_write_nothing(self) -> None:
        taken = self.folder / "taken"
        taken.write_text("mine")
        before = sorted(self.folder.iterdir())
        for arguments, names, complaint in (
                (["--format", "cvs"], ("two",),
                 "--format cvs, must be one of canonical, json, evaluations"),
                (["--format", "latex"], ("two",),
                 f"; analysis/export.py writes {', '.join(FORMATS)}\n"),
                ([], ("two",), "give one run and one format"),
                (["--format", "json"], (), "give one run and one format"),
                (["--format", "json"], ("two", "other"), "give one run and one format"),
                (["--canonical", "--format", "json"], ("two",), "give one run and one format"),
                (["--format", "json", "-o", str(taken)], ("two",), "exists already; --force"),
                (["--format", "json"], ("nowhere",), "no such store")):
            with self.subTest(arguments=arguments, names=names):
                self.assertIn(complaint, self.record(*arguments, names=names, code=2))
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(taken.read_text(), "mine")

    def test_force_replaces(self) -> None:
        file = self.folder / "forced"
        for write, begin in ((self.record, "{"), (self.export, "number,")):
            file.write_text("old")
            form = "json" if write == self.record else "csv"
            write("--format", form, "-o", str(file), "--force")
            self.assertTrue(file.read_text().startswith(begin))
