"""The package attnas against the programs and what they write."""

import contextlib
import io
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

from python_tests import FolderTest, PROGRAMS, ROOT, need

need(program="nas-run")

CONFIGS = ROOT / "configs"

import attnas
import pandas as pd
from attnas.analysis import latex
from attnas.analysis.curves import curves
from attnas.analysis.run import Run

ZDT = {"extends": str(CONFIGS / "nsga2_zdt.yaml"), "name": "from a dict",
       "algorithm": {"population": 8, "generations": 3}}


def wait_for(condition) -> None:
    """Until something is so."""
    deadline = time.monotonic() + 240
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


class Case(FolderTest):
    """With a folder of its own."""

    def program(self, lines: str) -> None:
        """nas-run is a few lines for the shell."""
        file = self.folder / "nas-run"
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)
        patch = mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"})
        patch.start()
        self.addCleanup(patch.stop)


class Smoke(unittest.TestCase):
    """One run with training, through attnas.run."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name) / "run"
        cls.shown = io.StringIO()
        with contextlib.redirect_stdout(cls.shown):
            cls.run_ = attnas.run(
                CONFIGS / "smoke.yaml", cls.folder, progress=True, seed=7,
                constraints=["parameters <= 4100"],
                **{"algorithm.population": 8, "evaluation.replicates": 2,
                   "training.checkpoints": [2]})
        cls.csv = pd.read_csv(cls.folder / "evaluations.csv", float_precision="round_trip")
        cls.digest = attnas.load(cls.folder).digest

    def test_settings_arrive(self):
        config = self.run_.config
        self.assertEqual((config["seed"], config["constraints"], config["algorithm"]["population"]),
                         (7, ["parameters <= 4100"], 8))
        self.assertEqual((self.run_.name, self.run_.path, self.run_.objectives),
                         ("smoke", self.folder, ["perplexity"]))

    def test_evaluations_are_those_of_the_csv(self):
        found = self.run_.evaluations
        self.assertEqual(found.id.tolist(), self.csv.id.tolist())
        for name in ("mechanism", "candidate", "replicate", "status", "steps", "batch",
                     "perplexity", "published_perplexity", "nll", "tokens", "accuracy", "parameters",
                     "flops", "attention_dropout"):
            pd.testing.assert_series_equal(found[name].astype(self.csv[name].dtype), self.csv[name])
        for name in ("train_seconds", "peak_bytes"):  # 0 in the file where nothing was trained
            self.assertEqual(found[name].fillna(0).tolist(), self.csv[name].tolist())
        self.assertEqual([" ".join(map(str, asks)) for asks in found.asks],
                         [re.sub(r"\.0$", "", text) for text in self.csv.asks.fillna("").astype(str)])
        self.assertEqual(found.reason.tolist(), self.csv.reason.fillna("").tolist())
        words = self.csv.mechanism.str.split("|", expand=True)
        for place, name in enumerate(("similarity", "normalization", "gating", "temperature", "bias")):
            known = found[name].notna()  # None: the gene has no effect beside the others
            self.assertEqual(found[name][known].tolist(), words[place][known].tolist())
            self.assertTrue(name == "temperature" or known.all(), name)
        self.assertIn("rejected", set(found.status), "the constraint is to reject some")
        self.assertEqual(found.usable.tolist(), (found.status == "ok").tolist())

    def test_candidates_are_the_ranking_and_all_others(self):
        found = self.run_.candidates
        known = [own["candidate"] for own in self.digest["ranking"]]
        self.assertEqual(found.candidate.tolist()[:len(known)], known)
        self.assertEqual(sorted(found.candidate), sorted(set(self.csv.candidate)))
        together = self.csv.dropna(subset="perplexity_mean").drop_duplicates("candidate")
        together = together.set_index("candidate").loc[found.candidate[found.n > 0]]
        scored = found[found.n > 0]
        self.assertEqual(scored.perplexity.tolist(), together.perplexity_mean.tolist())
        self.assertEqual(scored.perplexity_standard_error.tolist(),
                         together.perplexity_standard_error.tolist())
        self.assertEqual(scored.n.tolist(), together.n.tolist())
        bad = found[found.n == 0]
        self.assertEqual(set(bad.status), {"rejected"})
        self.assertTrue(bad.perplexity.isna().all() and bad.first_ask.notna().all())
        self.assertEqual(int(found.times_asked.sum()), len(self.digest["asks"]))
        baseline = found[found.candidate == self.digest["baseline"]["candidate"]]
        self.assertEqual(len(baseline), 1)

    def test_no_objective_can_have_the_name_of_a_column(self):
        frames = (self.run_.candidates, self.run_.evaluations, self.run_.asks)
        columns = {*latex.COLUMNS, *(f"perplexity_{end}" for end in ("low", "high", "mean"))}
        columns = sorted(columns.union(*frames) - {"state_bytes"})
        with self.assertRaises(attnas.InputError) as caught:
            attnas.run({"extends": str(CONFIGS / "smoke.yaml"), "objectives": [
                "perplexity", *({"name": "state_bytes", "as": name} for name in columns)]})
        for name in columns:
            self.assertRegex(str(caught.exception), rf"as = {name}, must be another|and {name} have a column")

    def test_asks_are_those_of_the_record(self):
        found, asks = self.run_.asks, self.digest["asks"]
        self.assertEqual(found.number.tolist(), [ask["number"] + 1 for ask in asks])
        self.assertEqual(found.fitness_perplexity.tolist(), [ask["fitness"][0] for ask in asks])
        self.assertEqual(found.perplexity.notna().tolist(), [ask["usable"] for ask in asks])
        self.assertEqual(found.attention_dropout.dtype, float)
        self.assertEqual(found.reused.tolist(), [ask["reused"] for ask in asks])

    def test_curves_agree_with_the_page(self):
        for own in curves(Run(self.folder)):
            frame = self.run_.curves[self.run_.curves.mechanism == own.label]
            means = frame.groupby("step").perplexity.mean()
            self.assertEqual(means.index.tolist(), list(own.points))
            for found, expected in zip(means, own.points.values()):
                self.assertAlmostEqual(found, expected)
        self.assertIn("<svg", self.run_.pictures["curves"])

    def test_says_what_came_out(self):
        run, best = self.run_, self.digest["ranking"][0]
        self.assertRegex(run.verdict, r"^After \d+ trainings the best mechanism is ")
        self.assertIn(best["mechanism"], run.verdict)
        self.assertNotIn("<", run.verdict)
        self.assertTrue(repr(run).startswith(f"<attnas run smoke in {self.folder}: evo_ga, "))
        self.assertIn(f"best perplexity {best['values']['perplexity']:.2f} {best['mechanism']}", repr(run))
        page = run._repr_html_()
        self.assertIn("<p>After ", page)
        self.assertIn("<table", page)
        self.assertIn("<svg", run.pictures["progress"])

    def test_one_line_showed_how_far_it_was(self):
        lines = self.shown.getvalue().rstrip("\n").split("\r")
        self.assertNotIn("\n", "".join(lines))
        self.assertRegex(lines[1], r"^\d+/15 asked, ")
        self.assertRegex(lines[-1], r"^15/15 asked, .*0 s left, best \d+\.\d+ ")

    def test_reads_a_run_whose_digest_is_missing(self):
        (self.folder / "results.json").rename(self.folder / "aside.json")
        try:
            run = attnas.load(self.folder)
        finally:
            (self.folder / "aside.json").rename(self.folder / "results.json")
        pd.testing.assert_frame_equal(run.candidates, self.run_.candidates)
        pd.testing.assert_frame_equal(run.evaluations, self.run_.evaluations)


class OtherRuns(Case):
    def test_content_in_place_of_a_file(self):
        with contextlib.chdir(self.folder):
            run = attnas.run(ZDT, progress=False)
            self.assertEqual(run.path, pathlib.Path("runs/from a dict"))
            again = attnas.run(ZDT, progress=False)
        self.assertEqual(again.asks.number.tolist(), list(range(1, 25)))
        self.assertEqual(run.objectives, ["f1", "f2"])
        self.assertTrue(len(run.front) > 1 and run.front.knee.sum() == 1)
        self.assertEqual(run.front.f1.tolist(), sorted(run.front.f1))
        self.assertTrue(run.curves.empty)
        self.assertIn('<img alt="front" src="data:image/svg+xml;base64,', run._repr_html_())
        self.assertIn(f"front of {len(run.front)} over f1, f2", repr(run))

    def test_installed_configurations_are_found_by_name(self):
        with contextlib.chdir(self.folder):
            extending = attnas.run({**ZDT, "extends": "nsga2_zdt"}, "extending", progress=False)
            named = attnas.run("nsga2_zdt", "named", progress=False, algorithm={"population": 8, "generations": 3})
        self.assertEqual(len(extending.asks), 24)
        self.assertEqual(len(named.asks), 24)

    def test_a_run_without_evaluations(self):
        file = self.folder / "results.json"
        attnas.run(ZDT, self.folder, progress=False)
        digest = json.loads(file.read_text())
        for key in ("asks", "evaluations", "ranking", "front", "batches"):
            digest[key] = []
        digest.update(baseline=None, ended_by=None, knee=None)
        other = self.folder / "other.json"
        other.write_text(json.dumps(digest))
        run = attnas.load(other)
        for frame in (run.candidates, run.evaluations, run.curves, run.front, run.asks):
            self.assertTrue(frame.empty)
        self.assertIn("No mechanism has been evaluated yet", run.verdict)
        self.assertIn("not ended", repr(run))
        self.assertIn("No mechanism", run._repr_html_())


class Errors(Case):
    def test_bad_settings(self):
        with self.assertRaises(attnas.InputError) as caught:
            attnas.run(ZDT, self.folder / "run", progress=False, **{"algorithm.crossover": 1.5})
        self.assertEqual(str(caught.exception), "command line: algorithm.crossover = 1.5, must be in [0, 1)")
        with self.assertRaises(attnas.InputError) as caught:
            attnas.run({**ZDT, "sed": 1}, self.folder / "run", progress=False)
        self.assertRegex(str(caught.exception), r"^config:1:\d+: sed: unknown key; did you mean seed\? Known: ")
        with self.assertRaises(attnas.InputError) as caught:
            attnas.run(ZDT, seed=math.nan)
        self.assertIn("nan is no value of a setting", str(caught.exception))
        self.assertFalse((self.folder / "run").exists())

    def test_no_such_run(self):
        with self.assertRaises(attnas.InputError) as caught:
            attnas.load(self.folder / "none")
        self.assertIn(f"{self.folder / 'none'}: no such run", str(caught.exception))

    def test_no_program(self):
        with mock.patch("attnas.launch.digest.program", return_value=None), \
                self.assertRaises(attnas.InputError) as caught:
            attnas.run(ZDT)
        self.assertIn("there is no nas-run on PATH", str(caught.exception))

    def test_exit_codes(self):
        for code, kind, text in ((2, attnas.InputError, "full disk"), (1, attnas.Error, "full disk"),
                                 (75, attnas.MachineError, "full disk"),
                                 (130, attnas.Stopped, "stopped; everything finished is kept, and the "
                                                       "same call continues")):
            self.program(f"echo 'nas-run: full disk' >&2; exit {code}")
            with self.assertRaises(attnas.Error) as caught:
                attnas.run("x.yaml", progress=False)
            self.assertIs(type(caught.exception), kind)
            self.assertEqual(str(caught.exception), text)
        self.program("kill -9 $$")
        with self.assertRaisesRegex(attnas.Error, "^nas-run ended with exit code -9$"):
            attnas.run("x.yaml", progress=False)

    def test_lines_of_status_come_where_our_own_terminal_is_dumb(self):
        self.program('echo "nas-run: a terminal of TERM=$TERM" >&2; exit 2')
        with mock.patch.dict(os.environ, {"TERM": "dumb"}), \
                self.assertRaisesRegex(attnas.InputError, "TERM=xterm"):
            attnas.run("x.yaml", progress=False)

    def test_warnings_are_passed_on(self):
        self.program(f"""echo 'warning: another LibTorch' >&2
            exec {PROGRAMS / "nas-run"} "$@" --quiet""")
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            run = attnas.run(ZDT, self.folder / "run", progress=False)
        self.assertEqual(errors.getvalue(), "warning: another LibTorch\n")
        self.assertEqual(len(run.asks), 24)

    def test_an_interrupt_stops_the_run_and_the_same_call_continues_it(self):
        def call(**settings):
            return attnas.run(CONFIGS / "smoke.yaml", self.folder / "run", progress=False,
                              **{"algorithm.generations": 2000, "evaluation.array": 1}, **settings)

        def interrupt():
            wait_for((self.folder / "run" / "store.sqlite").exists)
            time.sleep(1.0)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaisesRegex(attnas.Stopped, "stopped; everything finished is kept"):
            call()
        thread.join()
        stopped = attnas.load(self.folder / "run")
        self.assertIn("not ended", repr(stopped))
        asked = len(stopped.asks)
        self.assertLess(asked, 2000)
        self.assertGreater(len(call(**{"budget.asks": asked + 10}).asks), asked)

    def test_the_run_stops_where_its_caller_is_killed(self):
        script = ("import attnas, sys; attnas.run(sys.argv[1], sys.argv[2], progress=False, "
                  "**{'algorithm.generations': 2000})")
        ended, held = os.pipe()
        caller = subprocess.Popen([sys.executable, "-c", script, CONFIGS / "smoke.yaml",
                                   self.folder / "run"], pass_fds=[held])
        os.close(held)  # nas-run has it, too, until it ends
        store = self.folder / "run" / "store.sqlite"
        wait_for(lambda: store.exists() or caller.poll() is not None)
        caller.kill()
        caller.wait()
        with open(ended, "rb") as pipe:
            self.assertEqual(pipe.read(), b"")
        self.assertTrue(store.with_name("results.json").exists())  # written where it stops


class Package(Case):
    def test_version_is_that_of_the_programs(self):
        text = (ROOT / "CMakeLists.txt").read_text()
        version = re.search(r"project\(attnas VERSION (\S+)", text)[1]
        self.assertIn(f'\nversion = "{version}"\n', (ROOT / "python" / "pyproject.toml").read_text())

    def test_says_which_packages_are_missing(self):
        done = subprocess.run([sys.executable, "-S", "-c", "import attnas; attnas.load"], text=True,
                              capture_output=True, check=False)
        self.assertRegex(done.stderr, r"ImportError: attnas: \S+ has no numpy, scipy; install what is "
                         r"missing \(Debian: apt-get install python3-numpy python3-scipy; "
                         r"elsewhere: pip install numpy scipy\)\n$")
