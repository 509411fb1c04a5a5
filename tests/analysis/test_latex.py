"""The comparison of a run as a table of LaTeX, set by pdflatex where that is installed."""

import copy
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from attnas.analysis import latex
from attnas.analysis.commands import export
from attnas.analysis.digest import BadInput
from attnas.analysis.run import Run
from attnas.analysis.sections import curves, retest
from page_fixture import BASELINE, PageTest
from python_tests import said

SET = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{textcomp,booktabs,graphicx}
\begin{document}
%s
\end{document}
"""


class Tables(PageTest):
    """Of a re-test of four mechanisms and the baseline: p = 0.0123 of each."""

    def setUp(self):
        super().setUp()
        self.made = self.fixture()
        self.made.retest()

    def run_(self) -> Run:
        return Run(self.folder)

    def change(self, place: int, **values) -> None:
        retest = copy.deepcopy(self.run_().retest)
        retest["candidates"][place] |= values
        self.made.set("retest", retest)

    def lines(self) -> list[str]:
        return latex.table(self.run_()).splitlines()

    def test_rows_are_those_of_the_digest(self):
        first, *_, last = latex.rows(self.run_())
        record = self.run_().retest["candidates"][0]
        self.assertEqual((first["difference"], first["low"], first["high"], first["p_holm"], first["n"], first["unit"]),
                         (-0.1, -0.2, -0.01, 0.0123, 5, "nats"))
        self.assertAlmostEqual(first["percent"], -9.516258, 6)  # 100 (e^-0.1 - 1)
        self.assertEqual((first["perplexity"], first["test_perplexity"]), (record["retest"][0]["mean"], record["test"]["mean"]))
        self.assertTrue(first["distinguished"])
        self.assertEqual((last["role"], last["n"], last["distinguished"]), ("baseline", None, False))

    def test_no_objective_takes_the_place_of_another_column(self):
        objectives = self.run_().digest["objectives"]
        for name in ("distinguished", "p_holm", "percent_low", f"{objectives[0]['name']}_low"):
            self.made.set("objectives", [*objectives, {**objectives[0], "name": name}])
            with self.assertRaisesRegex(BadInput, f"{name}: the comparison has two columns"):
                latex.rows(self.run_())

    def test_every_part_calls_a_mechanism_as_the_verdict_does(self):
        name = self.run_().retest["candidates"][0]["candidate"]
        self.change(0, label="sparsemax+rope")
        run = self.run_()
        rows = [line for line in self.lines() if "texttt" in line]
        self.assertIn("sparsemax+", rows[0])
        self.assertNotIn(name.split("|")[1], rows[0])
        self.assertIn('title="' + name + '">sparsemax+<wbr>rope<', retest.section(run).body)
        self.assertIn(">sparsemax+rope<", retest.pictures(run)["retest"].file())
        self.assertIn(">sparsemax+rope<", curves.section(run).body)
        self.assertEqual(run.brief(name), "sparsemax+rope")

    def test_decisions_are_the_records_else_those_of_p(self):
        own = self.run_().retest["candidates"][0]["against_baseline"]
        self.change(0, against_baseline={**own, "p_holm": 0.2})
        self.change(1, against_baseline={**own, "p_holm": 0.2}, decision="within")
        self.change(2, against_baseline={**own, "p_holm": 0.01, "difference": 0.1})
        self.assertEqual([row["decision"] for row in latex.rows(self.run_())], ["open", "within", "worse", "better", ""])

    def test_what_is_better_is_bold(self):
        contrast = {**self.run_().retest["candidates"][0]["against_baseline"], "p_holm": 0.0501}
        self.change(0, against_baseline=contrast)
        first, second = [line for line in self.lines() if " to " in line and "texttt" in line][:2]
        self.assertIn("& $-$9.52 ($-$18.13 to $-$1.00) & 0.050 & 5", first)
        self.assertNotIn("textbf", first)
        self.assertIn(r"\textbf{$-$11.31 ($-$18.13 to $-$1.00)} & 0.012 & 5", second)

    def test_accuracy_is_compared_in_points(self):
        nats = latex.rows(self.run_())
        run = self.run_()
        run.retest["measure"] = "test accuracy"
        own = latex.rows(run)
        compared = [(one, other) for one, other in zip(own, nats) if one["n"] is not None]
        self.assertTrue(compared)
        for one, other in compared:
            self.assertEqual(one["unit"], "share of errors")
            self.assertEqual(one["percent"], -100 * other["difference"], "fewer errors are more points")
            self.assertEqual((one["percent_low"], one["percent_high"]), (-100 * other["high"], -100 * other["low"]))
        text = latex.table(run)
        self.assertIn("Change (points)", text)
        self.assertIn("accuracy on the test split", text)
        self.assertNotIn("erplexity on the test split", text)

    def test_without_a_comparison_there_is_no_table(self):
        self.made.set("retest", None)
        self.assertEqual(latex.rows(self.run_()), [])
        with self.assertRaisesRegex(BadInput, "has no comparison with its baseline; nas-train compares"):
            latex.table(self.run_())
        code, out, err = said(export.main, self.folder, "--format", "latex")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("has no comparison with its baseline", err)

    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "no pandas")
    def test_a_frame_has_the_same_rows(self):
        import attnas
        loaded, expected = attnas.load(self.folder), latex.rows(self.run_())
        found = loaded.comparison
        self.assertEqual(found.mechanism.tolist(), [row["mechanism"] for row in expected])
        for name in ("difference", "percent", "p_holm", "test_perplexity", "perplexity", "perplexity_high"):
            known = [row[name] if row[name] == row[name] else -1 for row in expected]
            self.assertEqual(found[name].fillna(-1).tolist(), known, name)
        self.assertEqual(found.n.tolist()[:4], [5] * 4)
        self.assertTrue(found.n.isna().tolist()[4])
        self.assertEqual(found.distinguished.tolist(), [True] * 4 + [False])
        self.assertEqual(loaded.to_latex(), latex.table(self.run_()))
        self.made.set("retest", None)
        again = attnas.load(self.folder)
        self.assertEqual((len(again.comparison), again.comparison.columns.tolist()), (0, found.columns.tolist()))
        with self.assertRaisesRegex(attnas.InputError, "has no comparison"):
            again.to_latex()

    @unittest.skipUnless(shutil.which("pdflatex"), "no pdflatex")
    def test_pdflatex_sets_every_letter(self):
        odd = "".join(map(chr, range(32, 127)))
        self.change(0, label=odd, role="control")
        self.made.set("facts", {**self.run_().facts, "corpus": "a_b & 100 % #1 $x^2$ {~}"})
        found = self.pdf(latex.table(self.run_()))
        for letters in (odd[1:], BASELINE, "a_b & 100 % #1 $x^2$ {~}", "(baseline)"):
            self.assertIn(letters.replace(" ", ""), found)

    def pdf(self, table: str, overfull: bool = True) -> str:
        """The text of a table as pdflatex sets it, without blanks, with the box that is overfull or without any."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "t.tex").write_text(SET % table, encoding="utf-8")
            done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=folder, text=True,
                                  capture_output=True, check=False, errors="replace")
            self.assertEqual(done.returncode, 0, done.stdout[-2000:])
            self.assertEqual(overfull, "Overfull" in done.stdout, done.stdout[-2000:])
            self.assertNotIn("Missing character", done.stdout)
            if not shutil.which("pdftotext"):
                self.skipTest("no pdftotext")
            done = subprocess.run(["pdftotext", "-raw", "t.pdf", "-"], cwd=folder, capture_output=True, check=True)
            return "".join(done.stdout.decode().split())
