"""What tests of compare.py share: a folder, the program run in it, and what it wrote."""

import csv
import io

from fake_stores import write_fake
from python_tests import FolderTest, said

from attnas.analysis.commands import compare


class Comparing(FolderTest):
    def compare(self, *arguments, exit_code=0):
        """Runs the program; its output folder is self.folder / "out". @return what it said."""
        code, _, err = said(compare.main, *arguments, "-o", self.folder / "out", "--resamples", 500)
        self.assertEqual(code, exit_code, err)
        return err

    def read(self, name):
        return (self.folder / "out" / name).read_text(encoding="utf-8")

    def summary(self):
        return {row["algorithm"]: row for row in csv.DictReader(io.StringIO(
            self.read("summary.csv")))}

    def fake(self, skills, **options):
        path = self.folder / "comparison.sqlite"
        write_fake(path, skills, 40, **options)
        return path
