"""nas-watch: what it says of runs that are written, have stopped or ended, and to whom."""

import concurrent.futures
import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from attnas.analysis import packages
from attnas.analysis.digest import BadInput
from attnas.analysis.run import Run
from attnas.watch import listing, server, state, stored
from digest_file import said_by, write_store
from page_fixture import BASELINE, RunFixture
from python_tests import PROGRAMS as BIN, ROOT, FolderTest

if lacking := packages.missing("starlette", "uvicorn"):
    raise unittest.SkipTest(lacking)
COMMAND = """
problem: {type: command, parameters: [x = 0 .. 1, y = 0 .. 1], metrics: ['a = ^(\\S+) ', 'b = ^\\S+ (\\S+)', 'c = (\\S+)$'],
  command: [sh, -c, 'awk "BEGIN {x = $0; y = $1; if (x < 0.25) exit 1; print x, y - x, x * y}"', "{x}", "{y}", "{seed}"]}
objectives: [{name: a, range: [0, 1]}, {name: b, range: [-1, 1]}, {name: c, goal: maximise, range: [1, 0]}]
algorithm: {name: nsga2, population: 8, generations: 5}
evaluation: {replicates: 2, workers: 2}
"""
NOW = "%Y-%m-%dT%H:%M:%SZ"


class FakeRun:
    """A run whose store says what a test wants."""

    def __init__(self, folder: Path, asked: int = 3, objectives: int = 2):
        self.folder, self.store = folder, folder / "store.sqlite"
        self._own = RunFixture(folder, objectives, replicates=1, asked=asked, failures=False)
        self._own.file.rename(folder / "fixture.json")
        self._changes: dict = {"config": {"name": "fake"}, "ended_by": None, "sessions": [{}]}
        self._lock = None
        self.say()

    def say(self, **changes) -> dict:
        """Changes facts of the store. @return what its digest is."""
        self._changes |= changes
        found = said_by(self.folder / "fixture.json")
        baseline = {"evaluations": self._own.baseline, "fitness": self._own.baseline_fitness}
        facts = {"objectives": found["objectives"], "baseline": baseline} | self._changes
        new = self.folder / "new"
        write_store(new, facts, found["evaluations"], found["asks"])
        self.store.write_bytes(new.read_bytes())  # in its place, as it is locked
        new.unlink()
        return found

    def ask(self) -> None:
        """One more ask is answered."""
        (self.folder / "fixture.json").rename(self._own.file)
        self._own.ask(len(self._own.asks))
        self._own.write()
        self._own.file.rename(self.folder / "fixture.json")
        self.say()

    def begin(self) -> None:
        """Somebody writes it from now on."""
        self._lock = os.open(self.store, os.O_RDWR)
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 30) + 4096, 1, 0)
        fcntl.fcntl(self._lock, fcntl.F_OFD_SETLK, lock)

    def end(self) -> None:
        """And nobody from now on."""
        os.close(self._lock)


def array(*trainings: tuple[str, str], step: int = 5) -> dict:
    """What trains, by ids and candidates."""
    return {"trainings": [{"evaluation": id_, "candidate": name, "replicate": 0}
                          for id_, name in trainings],
            "started": time.strftime(NOW, time.gmtime(time.time() - 8)), "step": step, "steps": 10,
            "curve": [[1, 4.0], [5, 3.5]]}


def at_work(*arrays: dict, stage: str = "search", waiting: int = 0) -> dict:
    return {"stage": stage, "workers": 2, "waiting": waiting, "written": "", "arrays": list(arrays)}


class Watched(FolderTest):
    def setUp(self):
        super().setUp()
        for patch in (mock.patch.multiple(state, _BETWEEN=0, _SHARE=0),
                      mock.patch.multiple(listing, _BETWEEN=0, _SHARE=0, _BETWEEN_SCANS=0)):
            patch.start()
            self.addCleanup(patch.stop)

    def look(self, watch, since=-1):
        watch.look()
        return watch.state(since)


class States(Watched):
    def setUp(self):
        super().setUp()
        self.run_ = FakeRun(self.folder / "run")

    def now(self, **changes):
        """The state with other facts."""
        self.run_.say(**changes)
        return state.RunWatch(self.run_.folder).state(-1)

    def test_it_is_running_while_its_store_is_locked_and_what_trains_is_told(self):
        watch = state.RunWatch(self.run_.folder)
        self.assertEqual(self.look(watch)["phase"], "stopped")
        self.run_.begin()
        self.assertEqual(self.look(watch)["phase"], "running")
        done = self.run_.say()["evaluations"][0]
        work = at_work(array(("new", "candidate"), (done["id"], done["candidate"])))
        asks = [{"evaluations": ["new"]}, {"evaluations": [done["id"]]}]
        self.run_.say(at_work=work, asking={"batch": 7, "asks": asks}, planned_asks=8)
        found = self.look(watch)
        told = found["at_work"]
        self.assertEqual((told["batch"], told["asking"]), (7, 1), "the other one is answered")
        self.assertEqual(len(told["arrays"][0]["trainings"]), 1, "the other one has finished")
        numbers = {one["c"]: one["name"] for one in found["candidates"]}
        self.assertEqual(numbers[told["arrays"][0]["trainings"][0]["c"]], "candidate")
        os.utime(self.run_.store, (0, time.time() - 301))
        self.assertEqual(self.look(watch)["phase"], "silent")
        self.run_.end()
        self.run_.say(ended_by="8 asks", at_work=None)
        found = self.look(watch)
        self.assertEqual((found["phase"], found["ended_by"], found["at_work"]),
                         ("finished", "8 asks", None))
        version = found["version"]
        self.assertEqual(self.look(watch)["version"], version)

    def test_a_run_without_its_re_test_is_not_finished(self):
        config = {"retest": {"replicates": 3}}
        self.assertEqual(self.now(ended_by="the end", config=config)["phase"], "stopped")
        found = self.now(retest={"candidates": [], "verdict": "equal"})
        self.assertEqual((found["phase"], found["verdict"]), ("finished", "equal"))

    def test_only_what_has_changed_is_told_to_who_knows_the_rest(self):
        watch = state.RunWatch(self.run_.folder)
        whole = watch.state(-1)
        self.assertEqual((whole["whole"], len(whole["evaluations"])), (True, 4))
        self.run_.ask()
        news = self.look(watch, whole["version"])
        self.assertEqual((news["whole"], len(news["evaluations"]), len(news["candidates"])), (False, 1, 1))
        self.assertEqual(len(watch.state(news["version"] + 1000)["evaluations"]), 5, "no version of it")
        self.run_.say(sessions=[{}, {}])
        self.assertTrue(self.look(watch, news["version"])["whole"], "failures may be made again")
        later = state.RunWatch(self.run_.folder, watch.version)
        self.assertTrue(later.state(watch.version)["whole"] and later.version > watch.version)

    def test_a_page_has_its_rows_in_order_and_of_a_large_run_nothing_that_it_does_not_show(self):
        run = FakeRun(self.folder / "large", asked=40)
        watch = state.RunWatch(run.folder)
        asks = sorted((one["ask"] for one in watch.state(-1)["evaluations"] if not one["baseline"]), reverse=True)
        for most in (1000, 20):
            with mock.patch.multiple(state, _POINTS=10, _CURVES=4, _LARGE=most):
                found = watch.state(-1, state.Page(offset=3, rows=5))
                records = {one["id"]: one for one in found["evaluations"]}
                self.assertEqual([records[id_]["ask"] for id_ in found["rows"]], asks[3:8])
                self.assertEqual(found["of"]["evaluations"], len(asks) + 1, "the baseline's, too")
                self.assertEqual(len(records) == len(asks) + 1, most == 1000)
                self.assertLessEqual(len(records), most)
                known = {one["c"] for one in found["candidates"]}
                self.assertLessEqual({*found["front"], *found["top"], found["baseline"]["c"],
                                      *(one["c"] for one in records.values())}, known)
                self.assertEqual(len(known) < 20, most == 20)
                for sort, down in (("0", False), ("1", True), ("seconds", True)):
                    told = watch.state(-1, state.Page(0, sort, down))
                    values = [one["seconds"] if sort == "seconds" else one["values"][int(sort)]
                              for id_ in told["rows"] for one in told["evaluations"] if one["id"] == id_]
                    self.assertEqual(values, sorted(values, reverse=down))
                    self.assertEqual(len(values), 30)
        last = watch.state(-1, state.Page(1000, "99"))
        self.assertEqual(last["rows"], [])
        self.assertEqual(len(watch.state(found["version"])["evaluations"]), 0, "told in whole before")

    def test_what_can_not_be_read_any_more_is_said_and_what_was_read_stays(self):
        watch = state.RunWatch(self.run_.folder)
        self.run_.store.rename(self.folder / "elsewhere")
        found = self.look(watch)
        self.assertEqual(found["error"], f"{self.run_.store}: no such store any more")
        self.assertEqual(len(found["evaluations"]), 4)
        (self.folder / "elsewhere").rename(self.run_.store)
        self.assertIsNone(self.look(watch)["error"])
        self.run_.store.unlink()
        os.mkfifo(self.run_.store)  # which would be waited for
        self.assertIn(str(self.run_.store), self.look(watch)["error"])

    def test_training_runs_of_listed_mechanisms_are_counted(self):
        def progress(**retest):
            config = {"mechanisms": ["one"], **({"retest": retest} if retest else {})}
            return self.now(config=config)["progress"]

        unknown = {"done": 1, "of": None, "unit": "training run"}
        self.assertEqual(progress(), unknown)
        self.assertEqual(progress(replicates=2), unknown | {"of": 4, "at_most": False})
        self.run_.say(planned_trainings=24)
        self.assertEqual(progress(replicates=20, until=3), unknown | {"of": 24, "at_most": True})
        self.run_.say(ended_by="the end", retest={"verdict": ""})
        self.assertEqual(progress(replicates=20, until=3), unknown | {"of": 1, "at_most": False})

    def test_asks_that_known_evaluations_answer_are_free(self):
        for planned, budget, of, unit in ((3, 3, 3, "ask"), (2, 3, 3, "training run"), (2, 0, None, "ask")):
            found = self.now(planned_asks=planned, config={"budget": {"evaluations": budget}})
            self.assertEqual(found["progress"], {"done": 3, "of": of, "unit": unit})

    def test_the_time_left_is_what_remains_at_the_pace_of_the_last_ones_within_the_budget(self):
        self.run_.begin()
        done = self.run_.say()["evaluations"]
        seconds = [one["measured"]["train_seconds"] for one in done]
        # One half done since 8 s, and five asks to come, on two workers.
        work, asking = at_work(array(("new", "x"))), {"batch": 0, "asks": [{"evaluations": ["new"]}]}
        low, high = self.now(at_work=work, asking=asking, planned_asks=9)["left"]
        self.assertTrue(5.5 * min(seconds) / 2 <= low <= high <= 5.5 * 16.5 / 2, (low, high))
        low, high = self.now(config={"budget": {"train_seconds": sum(seconds[1:]) + 2.0}})["left"]
        self.assertTrue(0 < high < 5, "2 s are left, but what runs goes on to its end")
        beyond = at_work(array(("new", "x"), step=4_000_000), array(step=9), stage="re-test")
        self.assertEqual(self.now(at_work=beyond)["left"], [0, 0], "no time is taken back")
        self.assertIsNone(self.now(at_work=None)["left"])

    def test_numbers_are_those_of_the_run(self):
        found = self.now(ended_by="3 asks")
        own = self.run_.say()
        first = own["evaluations"][0]
        told = next(one for one in found["evaluations"] if one["id"] == first["id"])
        self.assertEqual(told["values"], list(first["objectives"].values()))
        self.assertEqual(told["curve"][-1][1], first["curve"][-1]["valid"]["nll"] / 1000)
        self.assertEqual(sum(one["baseline"] for one in found["evaluations"]), 1)
        self.assertEqual(sorted(one["ask"] for one in found["evaluations"] if not one["baseline"]), [0, 1, 2])

    def test_a_row_of_one_objective_has_its_best_values_and_those_of_listed_mechanisms(self):
        run = FakeRun(self.folder / "one", asked=8, objectives=1)
        found = state.RunWatch(run.folder).overview()
        own = run.say()
        best = own["ranking"][0]
        self.assertEqual(found["best"]["value"], best["values"]["perplexity"])
        listed = [one["candidate"] for one in own["ranking"]]
        run.say(config={"baseline": {"mechanism": BASELINE}, "mechanisms": listed}, baseline=None)
        found = state.RunWatch(run.folder).overview()
        self.assertEqual(found["best"]["name"], best["candidate"])
        self.assertIsNotNone(found["baseline"], "also before it is recorded")


class Lists(Watched):
    def rows(self, watched) -> dict:
        """By their runs."""
        watched.look()
        while watched.state()["unread"]:
            watched.look()
        return {row["run"]: row for row in watched.state()["runs"]}

    def test_it_has_the_runs_at_most_three_folders_deep(self):
        for place in ("a/b/c", "a/b/other/deeper", ".hidden", "run/within", "run"):
            FakeRun(self.folder / "runs" / place)
        runs, outside = self.folder / "runs", FakeRun(self.folder / "outside")
        (runs / "linked").symlink_to(outside.folder)
        (runs / "circle").symlink_to(runs)
        (runs / "damaged").mkdir()
        (runs / "damaged" / "store.sqlite").write_text("no store", encoding="utf-8")
        rows = self.rows(listing.WatchList([str(runs)]))
        self.assertEqual(sorted(rows), ["a/b/c", "damaged", "linked", "run"])
        self.assertEqual(list(rows["damaged"])[0], "error")
        self.assertIn(str(runs / "damaged"), rows["damaged"]["error"])
        self.assertEqual(rows["a/b/c"]["phase"], "stopped")
        self.assertEqual(len(self.rows(listing.WatchList([str(outside.folder), str(runs)]))), 5)
        for words in (["none"], [str(runs / "a/b/other/deeper/none")], [str(self.folder / "bin")]):
            with self.assertRaisesRegex(BadInput, "no such store|holds no run"):
                listing.WatchList(words)

    def test_a_run_is_read_again_where_its_store_has_changed(self):
        run = FakeRun(self.folder / "runs" / "one")
        watched = listing.WatchList([str(self.folder / "runs")])
        self.assertEqual(self.rows(watched)["one"]["phase"], "stopped")
        version = watched.version
        self.rows(watched)
        self.assertEqual(watched.version, version)
        before = watched.open(0).version
        run.say(ended_by="3 asks")
        self.assertEqual(self.rows(watched)["one"]["phase"], "finished")
        self.assertGreater(watched.open(0).version, before)
        shutil.move(run.folder, self.folder / "runs" / "other")
        self.assertEqual(list(self.rows(watched)), ["other"])
        self.assertEqual((watched.contains(0), watched.contains(1)), (False, True))


class Connections(unittest.TestCase):
    """Of one server, with less patience."""

    def setUp(self):
        for patch in (mock.patch.multiple(server, _PATIENCE=0.5, _MOST=3),
                      mock.patch.object(signal, "signal")):
            patch.start()
            self.addCleanup(patch.stop)
        self.server = server.Server("127.0.0.1", 0)
        where = re.fullmatch(r"http://127.0.0.1:(\d+)/(\?token=.*)", self.server.url)
        self.port, self.path = int(where[1]), f"/state.json{where[2]}"

    def served(self, ask, text="", takes=0.0):
        """What `ask` returns beside a server whose state is a text, and takes so many seconds."""
        watched = mock.Mock(version=1, **{"state.return_value": text, "look.side_effect": lambda: time.sleep(takes)})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(ask)
            asked.add_done_callback(lambda _: self.server._stop())
            self.server.serve(watched)
            return asked.result()

    def connected(self):
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        made.connect()
        self.addCleanup(made.close)
        return made

    def answer(self, connection):
        connection.request("GET", self.path)
        return connection.getresponse().read()

    def test_a_request_that_comes_byte_by_byte_holds_nobody_and_is_ended(self):
        def ask():
            slow = self.connected().sock
            began = time.monotonic()
            with self.assertRaises(OSError):
                for byte in "GET /" + 1000 * "a":
                    self.assertEqual(self.answer(self.connected()), b'"short"')
                    slow.sendall(byte.encode())
                    time.sleep(0.05)
            return time.monotonic() - began

        self.assertLess(self.served(ask, "short"), 5.0)

    def test_an_answer_that_is_not_taken_is_cut_which_its_length_tells(self):
        def ask():
            slow = self.connected()
            slow.request("GET", self.path)
            begun = slow.getresponse()
            time.sleep(3.0)
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                begun.read()

        self.served(ask, 50_000_000 * "a")

    def test_who_waits_for_an_answer_is_not_ended(self):
        def ask():
            with concurrent.futures.ThreadPoolExecutor() as pool:
                return [each.result() for each in [pool.submit(lambda: self.answer(self.connected())) for _ in range(3)]]

        self.assertEqual(self.served(ask, "late", takes=1.0), 3 * [b'"late"'])

    def test_one_connection_too_many_is_refused_and_the_others_are_answered(self):
        def ask():
            first = [self.connected() for _ in range(3)]
            with self.assertRaises((http.client.HTTPException, ConnectionError)):
                self.answer(self.connected())
            return [self.answer(one) for one in first]

        self.assertEqual(self.served(ask), 3 * [b'""'])


class Program(unittest.TestCase):
    """The program on a small run that nas-run makes."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.run_ = cls.folder / "runs" / "smoke"
        subprocess.run([BIN / "nas-run", ROOT / "configs/smoke.yaml", "--output", cls.run_],
                       capture_output=True, check=True)
        cls.results = json.loads(subprocess.run([BIN / "nas-export", cls.run_, "--format", "json"],
                                                capture_output=True, check=True).stdout)

    def watch(self, folder: Path, *options: str, **settings) -> subprocess.Popen:
        program = subprocess.Popen([BIN / "nas-watch", folder, *options], stdout=subprocess.PIPE,
                                   text=True, **settings)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        line = program.stdout.readline()
        self.port, self.token = re.search(r"http://127\.0\.0\.1:(\d+)/(\?token=\w{32})$", line).groups()
        return program

    def get(self, target: str, method: str = "GET", token: bool = True, headers=None):
        """The answer, with its `text`."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, target + (self.token if token else ""), headers=headers or {})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def ends(self, program, name=signal.SIGINT) -> None:
        program.send_signal(name)
        self.assertEqual(program.wait(30), 0)

    def files(self, folder: Path) -> dict:
        return {file: hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
                for file in folder.rglob("*")}

    def test_a_finished_run_has_the_numbers_of_its_results_and_nothing_of_it_is_touched(self):
        before = self.files(self.run_)
        (self.run_ / "results.json").rename(self.folder / "aside.json")
        try:
            program = self.watch(self.run_)
            found = json.loads(self.get("/state.json").text)
        finally:
            (self.folder / "aside.json").rename(self.run_ / "results.json")
        self.assertEqual((found["phase"], found["name"]), ("finished", self.results["config"]["name"]))
        for count in ("asked", "evaluated", "reused", "rejected", "stopped_early"):
            self.assertEqual(found["counts"][count], self.results["counts"][count])
        self.assertEqual(found["version"], json.loads(self.get("/state.json").text)["version"])
        self.ends(program)
        self.assertEqual(self.files(self.run_), before)

    def test_it_answers_who_knows_the_token_and_nobody_else(self):
        program, page = self.watch(self.run_), self.get("/")
        self.assertEqual((page.status, page.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertTrue(page.text.endswith("</html>\n"))
        for text in ("{{", "smoke", "innerHTML"):  # what the run says comes as data alone
            self.assertNotIn(text, page.text)
        for target in ("/", "/state.json", "/?token=", "/?token=0", "/elsewhere", f"/?other=1&token={'0' * 32}"):
            answer = self.get(target, token=False)
            self.assertEqual(answer.status, 403, target)
            self.assertNotIn("{", answer.text)
        self.assertEqual(self.get("/elsewhere").status, 404)
        head = self.get("/", "HEAD")
        self.assertEqual((head.status, head.text, head.headers["Content-Length"]), (200, "", str(len(page.text.encode()))))
        post = self.get("/", "POST")
        self.assertEqual((post.status, post.headers["Allow"]), (405, "GET, HEAD"))
        tag = self.get("/state.json").headers["ETag"]
        again = self.get("/state.json", headers={"If-None-Match": tag})
        self.assertEqual((again.status, again.text), (304, ""))
        self.token += "&page=1&sort=0&down=0"
        page = json.loads(self.get("/state.json", headers={"If-None-Match": tag}).text)
        self.assertEqual(len(page["rows"]), len(page["evaluations"]) - 1, "another answer, from the second row on")
        self.ends(program, signal.SIGTERM)

    def test_a_run_is_read_from_its_store_as_nas_export_has_it(self):
        folders, table = [self.run_], f"problem.table={ROOT / 'problems/tables/text.table'}"
        (self.folder / "command.yaml").write_text(COMMAND, encoding="utf-8")
        for words in ([self.folder / "command.yaml"], ["tabular_ga.yaml", table], ["nsga2_zdt.yaml", "algorithm.generations=4"],
                      ["tabular_nsga2.yaml", table, 'constraints=["attention_flops <= 2.2e6"]'], ["smoke.yaml", *(
                          f"training.{own}" for own in ("steps=20", "checkpoints=[5,10]", "early_stop_after=5", "early_stop_factor=1"))],
                      ["tabular_ga.yaml", table, "evaluation.repeated=retrain"], ["tabular_asha.yaml", table],
                      ["tabular_nsga2.yaml", table, "objectives=[perplexity, parameters, flops, attention_flops]"]):
            folders.append(self.folder / f"run{len(folders)}")
            subprocess.run([BIN / "nas-run", ROOT / "configs" / words[0], *words[1:], "--output", folders[-1],
                            "--no-report"], capture_output=True, check=True)

        def told(some: list) -> list:
            return [(one.name, one.label, one.fitness, one.values, one.first_ask, one.n, one.stopped_at) for one in some]

        for folder in folders:
            own, found = Run(folder), stored.StoredRun(folder / "store.sqlite", False)
            self.assertEqual(told(found.candidates(found.ranked)), told(own.ranking))
            self.assertEqual(told(found.candidates(found.front)), told(own.front))
            self.assertEqual([dataclasses.replace(one, identity={}) for one in own.evaluations], found.evaluations)
            self.assertEqual(*((one.digest["counts"], outside["evaluated"], len(outside["failures"])) for one in (found, own)
                               for outside in [one.digest["outside_the_search"]]))
            self.assertAlmostEqual(found.train_seconds, own.digest["train_seconds"], 6)
            self.assertEqual(found.paused.keys(), {one["id"] for one in own.digest.get("paused", ())})
            self.assertEqual(found.indicators, own.indicators[-1:])
            self.assertEqual(*(one and (one.name, one.values, [each.id for each in one.evaluations])
                               for one in (found.baseline, own.baseline)))
            self.assertEqual(found.asked, {id_: ask.number for ask in reversed(own.asks) for id_ in ask.evaluations})
        folder = folders[3]
        with contextlib.closing(sqlite3.connect(folder / "store.sqlite")) as writer, mock.patch.object(
                state, "_LARGE", 3):
            writer.execute("PRAGMA journal_mode = WAL")
            for sql, text in (("DELETE FROM asks WHERE number >= 200", ""),
                              ("UPDATE evaluations SET reason = 'x'", "is damaged: its SHA-256 does not fit"),
                              ("PRAGMA user_version = 2", "not a store of version 1 (its version is 2)")):
                writer.execute(sql)
                writer.commit()
                before = self.files(folder)
                with self.assertRaisesRegex(BadInput, re.escape(text)) if text else contextlib.nullcontext():
                    found = state.RunWatch(folder).state(-1, state.Page())
                self.assertEqual(self.files(folder), before, "what is read is a copy, with its journal")
            lengths = [len(one["name"]) for one in found["candidates"]]
            self.assertEqual((found["counts"]["asked"], min(lengths), max(lengths) > 300), (200, 101, True))

    def test_runs_of_a_list_are_known_by_their_numbers_alone(self):
        program = self.watch(self.folder / "runs")
        while json.loads(self.get("/runs.json").text)["unread"]:
            pass
        row, = json.loads(self.get("/runs.json").text)["runs"]
        goal = self.results["objectives"][0]["name"]
        self.assertEqual(row["baseline"], self.results["baseline"]["values"][goal])
        for target in ("/", "/runs.json", "/run/0/", "/run/0/state.json", "/run/9/"):
            self.assertEqual(self.get(target, token=False).status, 403, target)
        for target in ("/state.json", "/run/9/", "/run/", "/run/0", "/run/x/", "/run/-1/", "/run/0/store.sqlite", "/run/a/",
                       "/run/0/../1/", "/run//", "/run/18446744073709551616/", "/a/"):
            self.assertEqual(self.get(target).status, 404, target)
        for target in ("/", "/run/0/", "/runs.json", "/run/0/state.json"):
            self.assertEqual(self.get(target).status, 200, target)
        self.ends(program)

    def test_a_run_is_seen_while_it_trains_and_after_it_was_killed(self):
        folder = self.folder / "training"
        run = subprocess.Popen([BIN / "nas-run", ROOT / "configs/smoke.yaml", "--output", folder, "--no-report",
                                "training.steps=200000", "evaluation.workers=1", "evaluation.array=1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        while not (folder / "store.sqlite").exists():
            time.sleep(.05)
        program = self.watch(folder)
        for phase, right in (
                ("running", lambda work: work["arrays"] and work["arrays"][0]["step"] > 0),
                ("stopped", lambda work: work is None)):
            for _ in range(600):
                found = json.loads(self.get("/state.json").text)
                if found["phase"] == phase and (found["at_work"] or phase == "stopped") and right(found["at_work"]):
                    break
                time.sleep(.1)
            else:
                self.fail(json.dumps(found)[:2000])
            run.kill()
        self.assertEqual(found["evaluations"], [])
        self.ends(program)

    def test_what_it_can_not_show_is_bad_input(self):
        (self.folder / "empty" / "deep").mkdir(parents=True, exist_ok=True)
        self.watch(self.run_, "--host", "localhost")
        taken = os.strerror(errno.EADDRINUSE)
        table = ROOT / "problems/tables/recall.table"
        for words, text in (
            ([self.folder / "none"], "no such store"),
            ([], "give a run, or a folder of runs"),
            ([self.folder / "empty"], "holds no run; give a run's folder, or one that holds runs"),
            ([table], f"{table}: is a table, must be a run's folder"),
            ([self.run_, "--port", "70000"], "--port = 70000, must be an integer in [0, 65535]"),
            ([self.run_, "--port", "x"], "--port = x, must be an integer in"),
            ([self.run_, "--ports"], "unrecognised option '--ports'; did you mean --port?"),
            ([self.run_, "--port"], "--port has no value, must be followed by one"),
            ([self.run_, "--port", "1", "--port=2"], "--port=2 is no run; each option may be given"),
            ([self.run_, "--host", "nowhere"], "--host nowhere, must be an address"),
            ([self.run_, "--port", self.port], f"port {self.port}: {taken}; --port 0 takes"),
        ):
            done = subprocess.run([BIN / "nas-watch", *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)
        def printed(name, word):
            return subprocess.run([BIN / name, word], capture_output=True, text=True, check=True).stdout

        self.assertIn("  --port arg            where to listen (default: 0, any port that is free)\n", printed("nas-watch", "--help"))
        self.assertEqual(*(printed(name, "--version").splitlines()[0] for name in ("nas-watch", "nas-run")))
