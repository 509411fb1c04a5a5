"""attnas judge, campaigns and attnas.decide, on trainings of milliseconds."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import attnas
from attnas.judge import __main__ as program
from attnas.judge import campaign, processes, report, sequential

# train.py SEED EFFECT [SHARE THAT FAILS]: seeds shift both sides alike
TRAINING = """import random, sys
seed, effect, fails = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3:] and sys.argv[3] or 0)
own = random.Random(f"{seed} {effect} {fails}")
print("step 1 loss: 9.5")
if own.random() < fails: sys.exit("CUDA out of memory")
print(f"loss: {3 + random.Random(seed).gauss(0, 0.3) + effect + own.gauss(0, 0.02):.5f}, accuracy 0.5")
"""


class Case(unittest.TestCase):

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(work.name)
        pathlib.Path("train.py").write_text(TRAINING)

    @staticmethod
    def command(*words):
        return " ".join([sys.executable, "-S", "train.py", "{seed}", *map(str, words)])

    def judge(self, *words, candidates=(("-0.1",),), metric="loss: ([0-9.]+)", campaign=None):
        """Exit code, standard output and error."""
        given = [word for one in candidates for word in ("--candidate", self.command(*one))]
        if campaign is None or not pathlib.Path(campaign, "judge.jsonl").exists():
            given += ["--baseline", self.command(0), "--metric", metric]
        given += ["--campaign", campaign] if campaign else []
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
                mock.patch.object(program, "run_main", lambda name, body: body()):
            try:
                code = program.main([*given, *words])
            except attnas.InputError as error:
                return 2, out.getvalue(), str(error)
        return code, out.getvalue(), err.getvalue()


class Statistics(unittest.TestCase):

    def test_the_numbers_of_the_programs_in_cpp(self):
        """compare_anytime, p_beyond and seeds_to_decide of src/statistics say these, of the first n."""
        a, b = np.array([3.1, 2.9, 3.3, 3.05, 2.75, 3.2, 3.4]), np.array([3.15, 3.0, 3.31, 3.2, 2.8, 3.22, 3.55])
        for n, low, high, p, beyond, needed in ((1, -math.inf, math.inf, 1.0, 1.0, None), (2, -math.inf, math.inf, 0.60000000000000275,
                                                                                           0.43589743589743696, 6),
                                                (4, -0.29665752891813507, 0.14165752891813482, 0.52193013575347347, 0.17399663749869676,
                                                 10), (7, -0.17269439452285429, 0.021265823094282779, 0.15014955207067535,
                                                       0.015385007104272245, 10)):
            paired = sequential.compare(a[:n], b[:n])
            found = (paired.low, paired.high, paired.p, sequential.p_beyond(paired, 0.2))
            np.testing.assert_allclose(found, (low, high, p, beyond), rtol=1e-12)
            self.assertEqual(sequential.pairs_to_decide(paired, 0.05, 0.1), needed)
        self.assertEqual(sequential.quantile(3, 0.05), math.inf)
        values = np.array([0.9, 1.3, 0.2, 1.1, 0.7, 0.4])
        for end in sequential.compare(values, 0 * values, 0.1)[3:5]:
            self.assertAlmostEqual(sequential.compare(values, 0 * values + end, 0.1).p, 0.1, 9)
        for given, p in (([1, 2, 3, 4], 0.125), ([0, 1, 2, 3], 1.0), ([0], 1.0)):
            self.assertEqual(sequential.compare(np.array(given), np.arange(len(given))).p, p)
        equal = sequential.Paired(4, 0.01, 0.0, 0.01, 0.01, 0.125)
        self.assertEqual([sequential.p_beyond(equal, one) for one in (0.03, 0.01)], [0.125, 1.0])

    def test_evidence_of_failures_is_fair_at_one_half(self):
        for n in (1, 2, 5, 9):  # the mean over all outcomes of n fair coins is 1
            mean = sum(
                math.comb(n, a) / 2**n / max(sequential.p_fails_more(a, n - a), 1e-300) for a in range(n + 1)
                if sequential.p_fails_more(a, n - a) < 1)
            self.assertLessEqual(mean, 1.0 + 1e-9)
        self.assertAlmostEqual(sequential.p_fails_more(7, 0), 8 / 255, 9)

    def test_levels_spend_one_budget(self):
        for kind in ("fwer", "fdr"):
            spent = sum(sequential.level(t, [], kind) for t in range(1, 101))
            self.assertAlmostEqual(spent, 0.05 * (1 - 20 / 120), 12)
        self.assertAlmostEqual(sequential.level(3, [2], "fwer"), sequential.level(2, [], "fwer") + sequential.level(3, [], "fwer"))
        self.assertAlmostEqual(sequential.level(9, [2, 5], "fdr"), 3 * sequential.level(9, [], "fdr"))


class Judge(Case):

    def test_verdicts_and_exit_codes(self):
        for candidate, words, code, said in ((("-0.1",), (), 0, r"-0.1 is better than the baseline by \d.\d\d % \("),
                                             (("0.1",), (), 5, "0.1 is worse than the baseline"),
                                             (("0.001",), ("--within", "3%"), 4, "0.001 is within 3 % of the baseline, between"),
                                             (("1e-9",), ("--most", "3"), 6, "1e-9 is undecided after 3 pairs"),
                                             (("-1", "1"), (), 5, "it fails more often, 7 of 7 runs, the baseline 0")):
            with self.subTest(said):
                found, out, _ = self.judge(*words, candidates=[candidate])
                self.assertEqual(found, code, out)
                self.assertRegex(out.splitlines()[-1], said)

    def test_nothing_depends_on_jobs_and_runs_are_not_made_again(self):
        words = ["--most", "8", "--json", "-"]
        said = [
            self.judge(*words, "--jobs", str(jobs), "--output", f"at{jobs}", candidates=[("-0.01",), ("0.01", "0.5")])[1]
            for jobs in (1, 3)
        ]
        one, three = ([record["candidates"] for record in map(json.loads, said)])
        self.assertEqual(one, three)
        self.assertGreater(one[1]["failed"], 0)
        before = pathlib.Path("at1/judge.jsonl").read_bytes()
        self.assertEqual(self.judge(*words, "--output", "at1", candidates=[("-0.01",), ("0.01", "0.5")])[1], said[0])
        self.assertEqual(pathlib.Path("at1/judge.jsonl").read_bytes(), before)

    def test_killed_it_goes_on_and_ends_what_it_left(self):
        pathlib.Path("train.py").write_text("import time, sys\n" + TRAINING.replace("print(\"step", "time.sleep(0.1)\nprint(\"step"))
        words = ["--baseline", self.command(0), "--candidate", self.command(-0.1), "--metric", "loss", "--output", "run", "--jobs", "2"]
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(attnas.__file__).parents[1])}
        for which in (signal.SIGKILL, signal.SIGINT):
            started = subprocess.Popen([sys.executable, "-m", "attnas", "judge", *words], env=environment, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            journal, size = pathlib.Path("run/judge.jsonl"), 0
            while size < 2 + (which == signal.SIGINT) * 4:
                time.sleep(0.02)
                size = journal.read_bytes().count(b'"run"') if journal.exists() else 0
            started.send_signal(which)
            self.assertEqual(started.wait(10), -9 if which == signal.SIGKILL else 130)
        with open(journal, "ab") as file:
            file.write(b'{"run": [1, 9], "val')  # what a killed process may leave
        code, out, _ = self.judge("--output", "run", metric="loss")
        self.assertEqual(code, 0, out)
        runs = [tuple(record["run"]) for record in map(json.loads, journal.read_text().splitlines()) if "run" in record]
        self.assertEqual(len(runs), len(set(runs)), "none was made twice")
        for record in map(json.loads, journal.read_text().splitlines()):
            if "start" in record:
                self.assertNotEqual(processes.born(record["pid"]), record["born"], "ended")

    def test_what_is_printed(self):
        found = processes.found
        loss = processes.metric("loss: ([0-9.]+)", False)
        for text, value in (("loss: 3\nloss: 2.5\n", 2.5), ("loss: 1e-3", 1e-3), ("loss: 2.", 2.0),
                            ("loss: 2\nloss: nan", "loss is not finite"), ("loss: 2\nloss: -inf", "loss is not finite"),
                            ("loss: nan\nloss: 2", 2.0), ("nothing", "no line matches 'loss: ([0-9.]+)'"), ("loss: .",
                                                                                                            "loss is no number: '.'")):
            self.assertEqual(found(loss, text), value, text)
        self.assertEqual(found(processes.metric("val_bpb", False), "val_bpb = -1.5e2\n"), -150.0)

    def test_what_almost_diverged_is_short(self):
        self.assertEqual(report._size(-12.345, " %"), "12.35 %")
        self.assertEqual(report._size(3.5e141, " %"), "3.50e+141 %")

    def test_reports(self):
        self.judge("--higher", "accuracy ([0-9.]+)", "--page", "p.html")
        self.assertIn("accuracy: no difference in any pair.", pathlib.Path("p.html").read_text())


# What is changed in a right command line, by OPTION VALUE, none: left out; and what is said of it.
MISUSE = """
--baseline none                               => no --baseline is given
--candidate none                              => no --candidate is given
--metric none                                 => no --metric is given, such as
--candidate TRAIN                             => is the baseline's command: both would run the same code
--baseline PYTHON train.py 1 0                => has no {seed}, must have {seed}
--baseline PYTHON train.py {sed} 0            => has {sed}, must have {seed}
--baseline TRAIN 'x                           => no closing quotation
--baseline TRAIN | tee log                    => '|' is for a shell; add --shell
--baseline TRAIN > log                        => '>' is for a shell
--baseline TRAIN && true                      => '&&' is for a shell
--baseline TRAIN 2>&1                         => '2>&1' is for a shell
--baseline TRAIN $HOME                        => '$HOME' is for a shell
--baseline X=1 TRAIN                          => begin with env NAME=VALUE
--baseline cd best TRAIN                      => env -C FOLDER
--baseline pyton train.py {seed}              => no program pyton; did you mean python?
--baseline PYTHON silent.py {seed}            => (nothing printed)
--baseline PYTHON broken.py {seed}            => No module named 'no_such_module'
--baseline PYTHON missing.py {seed}           => No such file
--metric loss: (                              => is no regular expression
--metric x*                                   => matches an empty text, must have a number in parentheses
--metric bpb: ([0-9.]+)                       => the first run of baseline failed: no line matches
--metric los                                  => no line matches 'los' and a number behind it; did you mean loss?
--output train.py                             => train.py: is no folder
--page none/page.html                         => none/page.html: there is no such folder
--within 1 percent                            => --within = 1 percent, must be a share as 1%
--within 0                                    => must be a share as 1%, or a number above 0
--timeout soon                                => --timeout = soon, must be as 90, 90s, 30m or 2h
--timeout 0.001                               => timed out after 0.001 s
--most 1                                      => --most = 1, must be at least 2
--jobs 0                                      => --jobs = 0, must be at least 1
--error fdr                                   => --error is of a campaign
--campaign c --output o                       => a campaign has its own folder
--campaign c --baseline none                  => the first command must have --baseline
"""


class Misuse(Case):

    def test_commands(self):
        pathlib.Path("silent.py").write_text("")
        pathlib.Path("broken.py").write_text("import no_such_module")
        for line in MISUSE.strip().splitlines():
            words, said = re.split(" +=> ", line)
            given = {"--baseline": "TRAIN", "--candidate": self.command(1), "--metric": "loss"}
            given |= dict(re.findall(r"(--\w+) (.*?)(?= --|$)", words))
            given = {key: value.replace("TRAIN", self.command(0)).replace("PYTHON", sys.executable) for key, value in given.items()}
            with self.subTest(line), contextlib.redirect_stdout(io.StringIO()), self.assertRaises(attnas.InputError) as caught:
                program._judge([word for pair in given.items() if pair[1] != "none" for word in pair])
            self.assertIn(said, str(caught.exception))

    def test_what_has_changed_since(self):
        self.assertEqual(self.judge("--output", "run", "--most", "2")[0], 6)
        self.assertIn("was tried here and cannot be left out", self.judge("--output", "run", candidates=[("0.2",)])[2])
        self.assertIn("has metrics", self.judge("--output", "run", metric="loss")[2])
        self.assertIn("holds a judgement without --campaign", self.judge(campaign="run")[2])
        pathlib.Path("train.py").write_text(TRAINING + "# better")
        self.assertIn("train.py: has changed since run was begun", self.judge("--output", "run")[2])
        with open("run/judge.jsonl", "a") as file:
            file.write("?\n")
        self.assertIn("is no record; nothing was changed", self.judge("--output", "run")[2])

    def test_what_looks_wrong_is_noted(self):
        pathlib.Path("train.py").write_text("print('accuracy 0.5')")
        _, out, err = self.judge("--most", "3", metric="accuracy")
        self.assertIn("a bound of 1 is 200 % of the baseline's 0.5", self.judge("--within", "1", metric="accuracy")[2])
        for said in ("give --higher in place of --metric", "does {seed} reach the script?", "does the change reach the script?"):
            self.assertIn(said, err)
        self.assertIn("no difference in any pair", out)


class Campaigns(Case):

    def test_the_log_the_champion_and_the_budget(self):
        for candidate, kept in (("0.0",), 0), (("-0.1",), 1), (("-0.05",), 0), (("-0.3",), 1):
            code, out, err = self.judge(candidates=[candidate], campaign="ideas")
            self.assertEqual(code == 0, bool(kept), out + err)
        self.assertIn("4 ideas, 2 kept; 83 % of 5 % for a false keep at all is left", out)
        log = attnas.load("ideas")
        self.assertEqual([row["kept"] for row in log], [0, 1, 0, 1])
        self.assertEqual(log[2]["champion"], log[1]["candidate"])
        self.assertEqual(log[2]["level"], sequential.level(3, [2], "fwer"))
        seeds = [
            set(
                json.loads(line)["start"][1] for line in pathlib.Path(f"ideas/idea-{i}/judge.jsonl").read_text().splitlines()
                if "start" in line) for i in range(1, 5)
        ]
        self.assertEqual(sum(map(len, seeds)), len(set.union(*seeds)), "no seed serves two ideas")
        with open("ideas/ideas.csv", newline="") as file:
            self.assertEqual(len(list(csv.reader(file))), 5)
        code, out, _ = self.judge(candidates=[("-0.3",)], campaign="ideas")
        self.assertIn("was judged as idea 4: better; nothing was run", out)
        self.assertIn("one budget is for one question", self.judge("--error", "fdr", campaign="ideas")[2])
        self.assertIn("ideas: holds a campaign", self.judge("--output", "ideas")[2])

    def test_an_idea_that_was_left_has_spent_its_level(self):
        with mock.patch.object(campaign.session, "judge", side_effect=KeyboardInterrupt), \
                self.assertRaises(KeyboardInterrupt):
            self.judge(campaign="ideas")
        self.assertEqual(self.judge(candidates=[("-0.2",)], campaign="ideas")[0], 0)
        self.assertEqual([(row["idea"], row["decision"]) for row in attnas.load("ideas")], [(1, "undecided"), (2, "better")])


class Decide(unittest.TestCase):

    @staticmethod
    def train(effect, seed):
        return 3 + random.Random(seed).gauss(0, 0.3) + effect + random.Random(f"{seed}{effect}").gauss(0, 0.02)

    def test_labels_are_free_and_a_folder_goes_on(self):
        variants = {"full": 0.0, "swa": -0.1, "my own": 0.001}
        with tempfile.TemporaryDirectory() as folder:
            found = attnas.decide(self.train, variants, until="3%", output=folder, on_progress=None)
            self.assertEqual(found.decisions, {"swa": "better", "my own": "within"})
            self.assertRegex(str(found), r"swa is better than full by \d.\d\d %")
            again = attnas.decide(mock.Mock(side_effect=AssertionError), variants, until="3%", output=folder, on_progress=None)
            self.assertEqual(str(again), str(found))

    def test_the_contract(self):
        two = {"a": 0, "b": 1}
        for train, options, said in ((lambda v, s: None, {}, "train returned None, must be a number"), (lambda v, s: {}, {},
                                                                                                        "an empty dict"),
                                     (lambda v, s: True, {}, "returned True"), (lambda v, s: {"x": 1}
                                                                                if v else {"y": 1}, {}, "returned x, before y"),
                                     (lambda v, s: 3.0 + 300 * v, {}, "is one a sum over tokens?"), (lambda v, s: 0.0, {
                                         "until": "1%"
                                     }, "whose mean is 0"), (lambda v, s: 1.0, {"until": "much"}, "until = much, must be a share"),
                                     (lambda v, s: 1.0, {"values": "sum"}, "must be 'mean'"), (lambda v, s: 1.0, {"most":
                                                                                                                  1}, "at least 2")):
            with self.subTest(said), self.assertRaisesRegex(attnas.InputError, re.escape(said)):
                attnas.decide(train, two, on_progress=None, **options)
        with self.assertRaisesRegex(attnas.InputError, "1 labels, must have at least 2"):
            attnas.decide(self.train, {"a": 0})
        with self.assertRaises(ZeroDivisionError):
            attnas.decide(lambda v, s: 1 / v, two, on_progress=None)
        found = attnas.decide(lambda v, s: 1 / 0 if v and s > 1 else 1.0 + s, two, on_progress=None)
        self.assertEqual(found.decisions, {"b": "worse"})
        self.assertIn("ZeroDivisionError", found.rows[0]["sentence"])
