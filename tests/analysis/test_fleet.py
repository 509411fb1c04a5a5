"""The page of what a simulated fleet of workers does."""

import contextlib
import csv
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

from attnas.analysis.commands import fleet

ROWS = [{"algorithm": "nsga2" if in_flight == 0 else "nsga2_async", "in_flight": in_flight,
         "order": order, "cost": "flops", "workers": workers, "efficiency": 0.9 - in_flight / 10 + workers / 1e4}
        for workers in (64, 8) for in_flight, order in
        ((0.0, "virtual"), (1.5, "virtual"), (1.0, "arrival"))]


class Fleet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "out"

    def run_on(self, text: str) -> tuple[int, str]:
        errors = io.StringIO()
        with mock.patch("sys.stdin", io.StringIO(text)), contextlib.redirect_stderr(errors):
            return fleet.main(["-o", str(self.folder)]), errors.getvalue()

    def test_every_number_is_in_the_table_and_the_csv(self):
        code, _ = self.run_on("".join(json.dumps(row) + "\n" for row in ROWS))
        self.assertEqual(code, 0)
        with open(self.folder / "efficiency.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["efficiency"]) for row in rows],
                         [row["efficiency"] for row in ROWS])
        lines = (self.folder / "fleet.md").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[2], "| share of the workers at work | 8 | 64 |")
        self.assertIn("| generations | 0.901 | 0.906 |", lines)
        self.assertIn("| virtual, 1.5 out a worker, expected by FLOPs | 0.751 | 0.756 |", lines)
        picture = (self.folder / "efficiency.svg").read_text(encoding="utf-8")
        self.assertEqual(picture.count("<circle"), len(ROWS))

    def test_what_is_no_simulation_is_refused(self):
        for text in ("", "garbage\n", '{"workers": 8}\n', "[1]\n"):
            with self.subTest(text=text):
                code, errors = self.run_on(text)
                self.assertEqual(code, 2)
                self.assertIn("must be lines that fleet printed", errors)
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()
