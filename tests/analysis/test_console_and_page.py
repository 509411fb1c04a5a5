"""What nas-compare prints and what the pages of its comparison say are the same figures.
"""

import contextlib
import csv
import io
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from attnas.analysis.commands import compare
from python_tests import PROGRAMS, ROOT, need

need(program="nas-compare")


def console(text: str) -> dict[str, list[str]]:
    """The closing table's cells by algorithm: searches, returned, of everything, ..."""
    rows = [re.split(r"  +", line.strip()) for line in text.splitlines() if line.startswith("  ")]
    return {name: cells for name, *cells in rows}


class ConsoleAndPage(unittest.TestCase):
    def check(self, config: str, names: str, decimals: int, several: bool):
        """@return what the console said, and the page in Markdown."""
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run(
                [PROGRAMS / "nas-compare", ROOT / "configs" / config, "--seeds", "5", "--algorithms", names,
                 "--no-report", "--quiet", "--output", folder], cwd=ROOT, text=True,
                capture_output=True, check=True).stdout
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(compare.main([f"{folder}/comparison.sqlite", "--output", folder,
                                               "--resamples", "100"]), 0)
            summary = (Path(folder) / "summary.csv").read_text(encoding="utf-8")
            page = (Path(folder) / "compare.md").read_text(encoding="utf-8")
        table = console(said)
        rows = {row["algorithm"]: row for row in csv.DictReader(io.StringIO(summary))}
        self.assertEqual(sorted(rows), sorted(names.split(",")))
        for name, row in rows.items():
            searches, *medians = table[name][:3]
            self.assertEqual(searches, row["searches"])
            gaps = [float(row[key]) for key in ("gap_median", "everything_median")]
            self.assertEqual(medians, [f"{1 - gap if several else gap:.{decimals}f}"
                                       for gap in gaps], name)
        return said, page

    def test_one_objective(self):
        said, page = self.check("compare_text.yaml", "random_search,evo_ga (paper),"
                                "evo_ga (published),evo_ga (best score),motpe", 3, several=False)
        met = re.search(r"^(\d+) evaluations met a recorded training run again", said, re.MULTILINE)
        self.assertIn(f"- {met.group(1)} evaluations met a recorded training of their mechanism again", page)

    def test_two_objectives(self):
        self.check("compare_text_ppl_flops.yaml", "random_search,nsga2,moead,motpe", 4,
                   several=True)
