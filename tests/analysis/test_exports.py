"""export.py's files, read back by the programs that they are for, and nas-export.

NAS_BIN, or the first argument, is the folder of nas-run and nas-export.
"""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from attnas.analysis import digest
from attnas.analysis.commands.export import FORMATS, main

PROGRAMS = Path(os.environ.get("NAS_BIN") or (sys.argv.pop(1) if len(sys.argv) > 1 else ""))
SOURCES = Path(__file__).resolve().parents[2]
SEARCHES = {
    "two": ("nsga2_zdt.yaml", "algorithm.population=8", "algorithm.generations=5", "seed=1"),
    "other": ("nsga2_zdt.yaml", "algorithm.population=8", "algorithm.generations=5", "seed=2"),
    "three": ("nsga2_zdt.yaml", "problem={type: dtlz, objectives: 3}", "algorithm.population=8",
              "algorithm.generations=3"),
    "attention": ("smoke.yaml", "objectives=[accuracy]", "algorithm.generations=3",
                  "model.width=8", "evaluation.workers=1", "constraints=[parameters <= 1300]"),
}


def missing() -> str:
    """What these tests cannot do without, or an empty text."""
    for program in ("nas-run", "nas-export"):
        if not (PROGRAMS / program).is_file():
            return f"{program}, in the folder NAS_BIN"
    for package in ("numpy", "pandas", "optuna"):
        if importlib.util.find_spec(package) is None:
            return f"Python's {package}"
    return ""


def has_eaf() -> bool:
    """Whether R is here with its package eaf."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(eaf)"], capture_output=True).returncode == 0


class Exports(unittest.TestCase):
    """Each format against the store that it was written from."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name)
        for name, (config, *overrides) in SEARCHES.items():
            subprocess.run([PROGRAMS / "nas-run", SOURCES / "configs" / config, *overrides,
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

    CANONICAL: dict[str, list[dict]] = {}  # by run: one that is written does not change

    def canonical(self, name: str) -> list[dict]:
        """The records of a run's canonical form."""
        if name not in self.CANONICAL:
            self.CANONICAL[name] = [*map(json.loads, self.record("--canonical", names=(name,)).splitlines())]
        return self.CANONICAL[name]

    def asks(self, name: str) -> list[dict]:
        """The asks of a run."""
        return [line for line in self.canonical(name) if "ask" in line]

    def results(self, name: str) -> dict:
        """The run's results.json."""
        return digest.read(self.folder / name / "results.json").plain()

    def rejected(self, name: str) -> set[str]:
        """Ids of the evaluations that a constraint rejected."""
        return {line["id"] for line in self.canonical(name) if line.get("status") == "rejected"}

    # CSV

    def table(self, name: str) -> "pandas.DataFrame":
        """The asks of a run, from the CSV file."""
        text = self.export("--format", "csv", names=(name,))
        return pandas.read_csv(io.StringIO(text), float_precision="round_trip")

    def test_csv_has_a_row_an_ask(self) -> None:
        for name in SEARCHES:
            table = self.table(name)
            asks = self.asks(name)
            self.assertEqual(table.number.tolist(), list(range(1, len(asks) + 1)))
            self.assertEqual(table.reused.tolist(), [bool(ask["reused"]) for ask in asks])
            fitness = table.filter(like="fitness_").to_numpy()
            self.assertEqual(fitness.tolist(), [ask["fitness"] for ask in asks])
            self.assertEqual(table.trained.iloc[-1], self.results(name)["counts"]["evaluated"])
            self.assertTrue((table.trained.diff().dropna() >= 0).all())

    def test_csv_shows_values_in_their_own_sense_and_genes(self) -> None:
        table = self.table("attention")
        ok = table[table.status == "ok"]
        self.assertEqual(ok.accuracy.tolist(), (-ok.fitness_accuracy).tolist())
        self.assertTrue(table[table.status != "ok"].accuracy.isna().all())
        genes = ["similarity", "normalization", "gating", "temperature", "bias",
                 "attention_dropout"]
        asked = table[genes].astype(str).agg("|".join, axis=1).str.removesuffix(".0")
        self.assertEqual(asked.tolist(), [self.stored(ask).removesuffix(".0") for ask in self.asks("attention")])

    def stored(self, ask: dict) -> str:
        """What was asked for, options by the names that are stored."""
        words = {"multiplicative": "silu_dot", "sigmoid": "sigmoid_norm", "adaptive": "per_query"}
        return "|".join(words.get(word, word) for word in ask["genotype"].split("|"))

    # Point sets

    @unittest.skipUnless(has_eaf(), "no R with the package eaf")
    def test_point_sets_are_read_by_eaf(self) -> None:
        for names, options in ((("two", "other"), []), (("two", "other"), ["--all-points"]),
                               (("three",), [])):
            file = self.folder / "points.txt"
            self.export("--format", "points", "-o", str(file), "--force", *options, names=names)
            script = (f'write.csv(eaf::read_datasets("{file}"), row.names = FALSE)')
            text = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True,
                                  text=True).stdout
            read = pandas.read_csv(io.StringIO(text))
            for number, name in enumerate(names, 1):
                members = [one for one in self.results(name)["ranking"]
                           if options or one["on_front"]]
                expected = numpy.array([list(member["values"].values()) for member in members])
                found = read[read.set == number].drop(columns="set").to_numpy()
                numpy.testing.assert_allclose(found, expected, rtol=1e-14)

    def test_points_after_some_trainings(self) -> None:
        cut = self.folder / "ten.json"
        self.record("--format", "json", "--trainings", "10", "-o", str(cut), "--force")
        text = self.export("--format", "points", "--all-points", names=("ten.json",))
        points = [[float(number) for number in line.split()] for line in text.splitlines()
                  if line and line[0] != "#"]
        expected = {tuple(ask["fitness"]) for ask in self.asks("two")[:10]}
        self.assertEqual({tuple(point) for point in points}, expected)
        self.assertEqual(len(points), 10)

    # IOHprofiler

    def read_ioh(self, folder: Path) -> list[tuple[dict, list]]:
        """(meta file, runs as arrays) of every meta file, or a failure: the format to the letter.

        A run begins with a line of the columns' names (IOHanalyzer) and with evaluation 1
        (iohinspector); every field of every line is a number. An evaluation may have no line.
        """
        found = []
        for file in sorted(folder.rglob("*.json")):
            meta = json.loads(file.read_text())
            for key, kind in (("version", str), ("suite", str), ("function_id", int),
                              ("function_name", str), ("maximization", bool),
                              ("attributes", list), ("scenarios", list)):
                self.assertIsInstance(meta[key], kind, key)
            self.assertGreaterEqual(tuple(map(int, meta["version"].split("."))), (0, 3, 3))
            self.assertEqual(set(meta["algorithm"]), {"name", "info"})
            self.assertEqual(file.name, f"IOHprofiler_f{meta['function_id']}_{meta['function_name']}.json")
            self.assertEqual(meta["attributes"][:2], ["evaluations", "raw_y"])
            (scenario,) = meta["scenarios"]
            parts = (file.parent / scenario["path"]).read_text().split(
                " ".join(meta["attributes"]) + "\n")
            self.assertEqual(parts[0], "")
            runs = [numpy.array([[float(field) for field in line.split(" ")]
                                 for line in part.splitlines()]) for part in parts[1:]]
            self.assertEqual(len(runs), len(scenario["runs"]))
            for run, description in zip(runs, scenario["runs"]):
                self.assertEqual(run.shape[1], len(meta["attributes"]))
                self.assertEqual(run[0, 0], 1)
                self.assertTrue((numpy.diff(run[:, 0]) > 0).all())
                self.assertLessEqual(run[-1, 0], description["evals"])
                best = description["best"]
                better = max if meta["maximization"] else min
                self.assertEqual(best["y"], better(run[:, 1]))
                self.assertEqual(run[run[:, 0] == best["evals"], 1].tolist(), [best["y"]])
                self.assertEqual(len(best["x"]), scenario["dimension"])
                self.assertEqual(set(description) - set(meta["run_attributes"]),
                                 {"instance", "evals", "best"})
            found.append((meta, runs))
        return found

    def test_ioh_of_several_runs_and_objectives(self) -> None:
        folder = self.folder / "ioh"
        self.export("--format", "ioh", "-o", str(folder), names=("two", "other"))
        ((meta, runs),) = self.read_ioh(folder)
        self.assertEqual(meta["function_name"], "ZDT1")
        self.assertEqual(meta["attributes"], ["evaluations", "raw_y", "F2", "trained", "seconds"])
        self.assertEqual([run["seed"] for run in meta["scenarios"][0]["runs"]], [1, 2])
        for name, run in zip(("two", "other"), runs):
            self.assertEqual(run[:, 1:3].tolist(), [ask["fitness"] for ask in self.asks(name)])

    def test_ioh_of_one_objective(self) -> None:
        folder = self.folder / "ioh_one"
        self.export("--format", "ioh", "-o", str(folder), names=("attention",))
        ((meta, (run,)),) = self.read_ioh(folder)
        self.assertTrue(meta["maximization"])
        self.assertEqual(run[:, 2].tolist(), numpy.maximum.accumulate(run[:, 1]).tolist())
        # What a constraint rejected has no line.
        rejected, asks = self.rejected("attention"), self.asks("attention")
        lines = [(number, -ask["fitness"][0]) for number, ask in enumerate(asks, 1)
                 if not rejected.issuperset(ask["evaluations"])]
        self.assertLess(len(lines), len(asks))
        self.assertEqual(list(map(tuple, run[:, :2].tolist())), lines)
        self.assertEqual(meta["scenarios"][0]["runs"][0]["evals"], len(asks))

    # Optuna

    def studies(self, *names: str) -> list:
        """The studies of a journal of these runs."""
        file = self.folder / ("_".join(names) + ".journal")
        self.export("--format", "optuna", "-o", str(file), "--force", names=names)
        storage = optuna.storages.JournalStorage(optuna.storages.JournalFileStorage(str(file)))
        return [optuna.load_study(study_name=summary.study_name, storage=storage)
                for summary in optuna.get_all_study_summaries(storage)]

    def test_optuna_reads_a_search_of_several_objectives(self) -> None:
        studies = self.studies("two", "other")
        self.assertEqual([study.study_name for study in studies],
                         ["nsga2_zdt, seed 1", "nsga2_zdt, seed 2"])
        for study, name in zip(studies, ("two", "other")):
            asks = self.asks(name)
            self.assertEqual([trial.values for trial in study.trials],
                             [ask["fitness"] for ask in asks])
            self.assertEqual([list(trial.params.values()) for trial in study.trials],
                             [[float(x) for x in ask["genotype"].split("|")] for ask in asks])
            self.assertEqual([direction.name for direction in study.directions],
                             ["MINIMIZE", "MINIMIZE"])
            front = {tuple(member["values"].values()) for member in self.results(name)["ranking"] if member["on_front"]}
            self.assertEqual({tuple(trial.values) for trial in study.best_trials}, front)

    def test_optuna_reads_a_search_under_a_constraint(self) -> None:
        (study,) = self.studies("attention")
        results, asks = self.results("attention"), self.asks("attention")
        self.assertEqual(study.direction.name, "MAXIMIZE")
        self.assertEqual(len(study.trials), len(asks))
        rejected = self.rejected("attention")
        self.assertTrue(rejected and results["ranking"])
        for trial, ask in zip(study.trials, asks):
            trial._validate()
            breaks = rejected.issuperset(ask["evaluations"])
            self.assertEqual(trial.state.name, "COMPLETE")
            self.assertEqual(trial.system_attrs["constraints"], [1.0 if breaks else 0.0])
            self.assertEqual("|".join(map(str, trial.params.values())),
                             self.stored(ask) if "." in ask["genotype"] else self.stored(ask) + ".0")
            self.assertGreaterEqual(trial.duration.total_seconds(), 0)
            self.assertEqual(trial.user_attrs["reused"], bool(ask["reused"]))
            self.assertEqual(bool(trial.user_attrs["reason"]), breaks)
        self.assertEqual(study.best_value, results["ranking"][0]["values"]["accuracy"])
        self.assertEqual(list(study.best_trial.intermediate_values), [5])
        self.assertEqual(study.trials[0].distributions["bias"].choices, ("bias", "no_bias"))

    # The program

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
                (["--format", "ioh"], ("two",),
                 f"; analysis/export.py writes {', '.join(FORMATS)}\n"),
                ([], ("two",), "give one run and one format"),
                (["--format", "json"], (), "give one run and one format"),
                (["--format", "json"], ("two", "other"), "give one run and one format"),
                (["--canonical", "--format", "json"], ("two",), "give one run and one format"),
                (["--canonical", "--trainings", "5"], ("two",), "belongs to --format json"),
                (["--format", "json", "--trainings", "0"], ("two",), "0, must be >= 1"),
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


if __name__ == "__main__":
    if missing():
        print("skipped: no", missing())
        sys.exit(77)
    import numpy
    import optuna
    import pandas
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    unittest.main(warnings="ignore")  # Optuna calls its journal experimental
