"""The confirmatory claims as one family."""

import csv
import json
import math
import pathlib
import tempfile
import unittest

from attnas.analysis.commands import claims
from attnas.analysis.digest import BadInput
from scripts import said


def candidate(label: str, difference: float, p: float) -> dict:
    contrast = {"difference": difference, "low": difference - 0.01, "high": difference + 0.01, "p": p, "p_holm": p, "n": 8}
    return {"label": label, "role": "listed", "against_baseline": contrast, "against_control": None}


class Claims(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "run").mkdir()
        run = {"retest": {"candidates": [candidate("better", -0.05, 0.01), candidate("other", 0.02, 0.03),
                                         candidate("like", 0.001, 0.5)]}}
        (self.folder / "run/results.json").write_text(json.dumps(run))

    def claim(self, label: str, expects: str, against: str = "baseline") -> dict:
        return {"claim": f"{label} is {expects}", "run": "run/results.json", "label": label, "against": against,
                "expects": expects}

    def write(self, listed: list) -> tuple[int, str]:
        (self.folder / "claims.json").write_text(json.dumps(listed))
        code, _, errors = said(claims.main, str(self.folder / "claims.json"), "-o", str(self.folder / "out"))
        return code, errors

    def test_all_are_corrected_together_and_none_is_confirmed_against_its_sign(self):
        self.assertEqual(self.write([self.claim("better", "lower"), self.claim("other", "lower"),
                                     self.claim("like", "lower")])[0], 0)
        with open(self.folder / "out/claims.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["p_holm"]) for row in rows], [0.03, 0.06, 0.5])
        self.assertEqual([row["confirmed"] for row in rows], ["yes", "no", "no"])
        self.assertAlmostEqual(float(rows[0]["difference"]), math.expm1(-0.05))
        text = (self.folder / "out/claims.md").read_text()
        self.assertIn("| better is lower | -4.9 % (-5.8 to -3.9) | 8 | 0.030 | confirmed |", text)
        # Alone the same test would be significant, with the wrong sign it confirms nothing.
        self.assertEqual(claims.family([self.claim("other", "higher")], self.folder)[0]["confirmed"], "yes")
        self.assertEqual(claims.family([self.claim("other", "lower")], self.folder)[0]["confirmed"], "no")

    def test_a_family_has_at_most_six(self):
        self.assertEqual(self.write([self.claim("better", "lower")] * 7)[0], 2)
        self.assertFalse((self.folder / "out").exists())
        with self.assertRaisesRegex(BadInput, "0 claims, must be 1 to 6"):
            claims.family([], self.folder)

    def test_what_no_run_compares_is_named(self):
        code, errors = self.write([self.claim("unknown", "lower")])
        self.assertEqual(code, 2)
        self.assertIn("no re-test of unknown, known: better, other, like", errors)
        code, errors = self.write([self.claim("better", "lower", "control")])
        self.assertEqual(code, 2)
        self.assertIn("better is not compared with the control", errors)


if __name__ == "__main__":
    unittest.main()
