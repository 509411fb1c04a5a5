"""Pages of runs that differ in their settings."""

import json
import pathlib

from attnas.analysis.commands import sweep
from attnas.analysis.digest import BadInput
from attnas.analysis.run import Run
from page_fixture import RunFixture
from python_tests import FolderTest, said


class Sweep(FolderTest):
    def run_of(self, name: str, rate: float, seed: int, objectives: int = 1) -> pathlib.Path:
        made = RunFixture(self.folder / name, objectives=objectives)
        made.write()
        digest = json.loads(made.file.read_text(encoding="utf-8"))
        digest["config"] |= {"seed": seed, "training": {"learning_rate": rate, "steps": 50}}
        made.file.write_text(json.dumps(digest), encoding="utf-8")
        return self.folder / name

    def runs(self) -> list[pathlib.Path]:
        return [self.run_of(f"{rate},{seed}", rate, seed) for rate in (0.01, 0.02) for seed in (1, 2)]

    def test_a_row_for_each_value(self):
        paths, values = sweep.grouped([Run(path) for path in self.runs()])
        self.assertEqual(paths, ["training.learning_rate"])
        self.assertEqual([(value.settings, len(value.runs)) for value in values], [(("0.01",), 2), (("0.02",), 2)])
        run = values[0].runs[0]
        self.assertEqual(values[0].best(0)[0], run.ranking[0].values[0])
        self.assertEqual(values[0].baseline(0)[0], run.baseline.values[0])

    def test_several_seeds_are_asked_for_where_a_value_has_one_run(self):
        for runs, said_ in ((self.runs(), False), (self.runs()[:3], True)):
            text = " ".join(sweep.sentences(*sweep.grouped([Run(path) for path in runs])))
            self.assertEqual("One run of a value says little" in text, said_)

    def test_the_page_and_its_numbers(self):
        code, text, _ = said(sweep.main, *self.runs(), "-o", self.folder / "all")
        self.assertEqual(code, 0)
        self.assertIn("sweep.html, sweep.md, sweep.csv, 1 picture", text)
        words = (self.folder / "all" / "sweep.md").read_text(encoding="utf-8")
        self.assertIn("4 runs; 2 values of training.learning_rate.", words)
        self.assertIn("| 0.01 | 2 |", words)
        lines = (self.folder / "all" / "sweep.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[0], "training.learning_rate,seed,objective,best,baseline,candidate")
        self.assertEqual(len(lines), 5)

    def test_the_folder_of_a_multirun_stands_for_its_runs(self):
        for seed in (10, 2, 1):
            self.run_of(f"all/seed={seed}", 0.1, seed)
        (self.folder / "all" / "pictures").mkdir()
        found = sweep.runs_of(self.folder / "all")
        self.assertEqual([path.name for path in found], ["seed=1", "seed=2", "seed=10"])
        self.assertEqual(sweep.runs_of(found[0]), found[:1])
        code, text, _ = said(sweep.main, self.folder / "all", "-o", self.folder / "page")
        self.assertEqual(code, 0)
        self.assertIn("3 runs with the same settings", (self.folder / "page" / "sweep.md").read_text(encoding="utf-8"))
        code, _, error = said(sweep.main, self.folder / "all" / "pictures", "-o", self.folder / "none")
        self.assertEqual((code, "no such run" in error), (2, True), error)
        self.assertFalse((self.folder / "none").exists())

    def test_seeds_alone_are_one_row(self):
        paths, values = sweep.grouped([Run(self.run_of(str(seed), 0.1, seed)) for seed in (1, 2, 3)])
        self.assertEqual((paths, len(values)), ([], 1))

    def test_other_objectives_are_refused(self):
        with self.assertRaisesRegex(BadInput, "must be perplexity as in the first run"):
            sweep.grouped([Run(self.run_of("a", 0.1, 1)), Run(self.run_of("b", 0.2, 1, objectives=2))])
