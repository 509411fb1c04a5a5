"""What to take from a space: numbers against what is known by hand, what is said, written or refused."""

import contextlib
import csv
import io
import pathlib
import tempfile
import unittest

import numpy as np
import take
from fake_tables import cell, functions, write_table
from nas_analysis.digest import BadInput

NAMES = functions()
NOISE = np.array([[0.3, -0.1, -0.2], [-0.2, 0.3, -0.1], [0.1, 0.1, -0.2]])  # of a gene's options by seeds; rows average to 0


def made_up(effects: dict[str, float], noise: float = 1.0) -> dict[str, list[float]]:
    """Perplexities of all mechanisms with three seeds: 100, what their options or pairs of options add, and noise."""
    found = {}
    for name in NAMES:
        options = name.split("|")[:5]
        pairs = {f"{a} {b}" for a in options for b in options}
        own = 100.0 + sum(value for key, value in effects.items() if key in options or key in pairs)
        found[name] = list(own + noise * NOISE[len(options[2]) % 3])
    return found


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def table(self, name: str, perplexity: dict[str, list[float]], failed=()) -> str:
        path = self.folder / f"{name}.table"
        write_table(path, {(mechanism, seed): cell(value, status="diverged" if (mechanism, seed) in failed else "ok")
                           for mechanism, values in perplexity.items() for seed, value in enumerate(values)}, facts={"name": name})
        return str(path)

    def study(self, *paths, genes=None) -> take.Study:
        return take.Study([take.read(path) for path in paths], genes)

    def refused(self, why, *paths, genes=None):
        with self.assertRaises(BadInput) as raised:
            self.study(*paths, genes=genes)
        self.assertIn(why, str(raised.exception))


class Numbers(Tables):
    def test_gains_of_pairs_are_those_that_were_put_in(self):
        path = self.table("one", made_up({"additive": 5.0, "sparsemax": -3.0, "additive sparsemax": -4.0, "highway": 0.5}))
        study = self.study(path)
        self.assertEqual(study.genes, ["similarity", "normalization"])
        gains = {cell.name: cell.gains[0] for cell in study.cells}
        self.assertEqual(len(gains), 15)
        for name, expected in (("dot sparsemax", 3.0), ("additive softmax", -5.0), ("additive sparsemax", 2.0), ("cosine softmax", 0.0)):
            np.testing.assert_allclose(gains[name].point, expected, atol=1e-9, err_msg=name)
        self.assertEqual({cell.name for cell in study.cells if cell.better(0)},
                         {"dot sparsemax", "silu_dot sparsemax", "cosine sparsemax", "additive sparsemax"})
        on_top = {choice.name: choice for choice in study.on_top}
        self.assertEqual(set(on_top), {"input_gate", "output_gate", "highway", "learned", "per_query", "no_bias"})
        np.testing.assert_allclose(on_top["highway"].gains[0].point, -0.5)
        self.assertLess(on_top["highway"].gains[0].low, -0.5, "gates have noise of their own here")

    def test_what_is_taken_is_worse_nowhere(self):
        first = self.table("first", made_up({"additive": -5.0, "sparsemax": -1.0}))
        second = self.table("second", made_up({"additive": 5.0, "sparsemax": -1.0}))
        study = self.study(first, second)
        self.assertEqual(study.taken.name, "dot sparsemax")
        np.testing.assert_allclose([gain.point for gain in study.alone.gains], [1.0, 1.0])
        said = take.verdict(study)
        self.assertIn("Take dot sparsemax instead of dot softmax", said[1])
        self.assertIn("additive softmax is better on first and worse on second", " ".join(said))

    def test_nothing_is_taken_where_all_is_worse_somewhere(self):
        first = self.table("first", made_up({"dot": -1.0, "softmax": 0.1}))
        second = self.table("second", made_up({"softmax": -1.0, "dot": 0.1}))
        study = self.study(first, second)
        self.assertIsNone(study.taken)
        self.assertIn("Keep dot softmax", take.verdict(study)[1])

    def test_no_claim_without_certainty(self):
        rng = np.random.default_rng(3)
        noisy = {name: [100.0 + value for value in rng.normal(0, 5, 3)] for name in NAMES}
        study = self.study(self.table("noise", noisy), genes=["similarity", "normalization"])
        said = " ".join(take.verdict(study))
        self.assertNotIn("Take ", said)
        self.assertIn("Worse than dot softmax beyond noise are 0 of 15 on some table and 0 on all.", said)

    def test_genes_are_those_that_decide_or_those_asked_for(self):
        path = self.table("gates", made_up({"output_gate": 4.0, "learned": 3.0}))
        self.assertEqual(self.study(path).genes, ["gating", "temperature"])
        asked = self.study(path, genes=["gating"])
        self.assertEqual([cell.name for cell in asked.cells][-1], "output_gate")
        self.assertEqual(asked.others, ["similarity", "normalization", "temperature", "bias"])

    def test_seeds_of_the_compared_alone_count(self):
        perplexity = made_up({"sparsemax": -1.0}, noise=0.0)
        more = {name: [*values, 100.0] if name.endswith("|none|fixed|bias|0") else values for name, values in perplexity.items()}
        study = self.study(self.table("raced", more))
        self.assertEqual(study.tasks[0].seeds, 3)
        np.testing.assert_allclose(study.alone.gains[0].point, 0.75)  # the fourth seed knows no difference
        np.testing.assert_allclose(study.taken.gains[0].point, 1.0)

    def test_what_is_maximised(self):
        path = self.table("one", made_up({"sparsemax": -1.0}))
        task = take.read(f"{path}:accuracy")
        self.assertTrue(task.goal.maximise)
        self.assertEqual(take.read(f"{path}:nll").goal.title, "test nll")


class Output(Tables):
    def script(self, *arguments) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = take.main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def test_what_is_written(self):
        first = self.table("first", made_up({"sparsemax": -1.0, "additive": 1.0}))
        second = self.table("second", made_up({"sparsemax": 2.0, "additive": 1.0}))
        code, said, why = self.script(first, f"{second}:nll", "-o", str(self.folder / "out"))
        self.assertEqual((code, why), (0, ""))
        self.assertIn("take.html, take.md, take.csv, 2 pictures", said)
        with open(self.folder / "out/take.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["list"] for row in rows}, {"choice", "on_top"}, "nothing is taken")
        self.assertEqual(sum(row["list"] == "choice" for row in rows), 15 * 2)
        self.assertEqual({row["table"] for row in rows}, {"first", "second"})

    def test_nothing_is_written_for_bad_input(self):
        path = self.table("one", made_up({}))
        for arguments, why in (((path, path), "called one and one"), ((f"{path}:bleu",), "no bleu"),
                               ((path, "--genes", "head"), "--genes head: head is not one of similarity,"),
                               ((str(self.folder / "none.table"),), "none.table")):
            code, said, error = self.script(*arguments, "-o", str(self.folder / "out"))
            self.assertEqual((code, said), (2, ""))
            self.assertIn(why, error)
        self.assertFalse((self.folder / "out").exists())


class Refusals(Tables):
    def test_tables_of_a_part_of_the_space(self):
        some = {name: values for name, values in made_up({}).items() if name != NAMES[7]}
        self.refused("every combination", self.table("some", some))

    def test_a_single_seed(self):
        whole = made_up({})
        failed = {(NAMES[0], 0), (NAMES[1], 1)}
        self.refused("1 seed with a test perplexity of every mechanism, must be at least 2", self.table("few", whole, failed))

    def test_tables_of_other_spaces(self):
        fewer = {name: values for name, values in made_up({}).items() if "cosine" not in name}
        self.refused("has not the options and the baseline", self.table("whole", made_up({})), self.table("fewer", fewer))


if __name__ == "__main__":
    unittest.main()
