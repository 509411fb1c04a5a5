"""Workers by Dask distributed, on this machine: who measures, and who of them dies, changes no result."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import sys
import unittest
from unittest import mock

import runs

runs.need("distributed")
sys.path.insert(0, str(runs.ROOT / "python/attnas"))
from engines import dask as engine  # noqa: E402


class DaskTest(runs.RunTest):
    ENGINE = ["cluster.engine=dask", "cluster.listen=127.0.0.1", "cluster.silence=10", "cluster.grace=10"]

    def setUp(self):
        super().setUp()
        (self.folder / "run").mkdir()

    def complete(self, manager, workers=()):
        self.ends(manager, "run")
        for one in workers:
            self.ends(one, "workers")  # they end with their run
        self.assertFalse((self.folder / "run/cluster.json").exists())

    def test_any_number_of_workers_comes_to_the_same(self):
        alone = self.alone()
        for workers, slots in (1, 3), (2, 1):
            with self.subTest(workers=workers, slots=slots):
                started = [self.workers("run", "--slots", slots) for _ in range(workers)]  # before there is a run
                self.complete(self.manager("run"), started)
                self.assertEqual(self.export("run"), alone)
                self.assertIn(f"{workers} worker{'s' if workers > 1 else ''}, {workers * slots} slot", self.said("run"))
                self.assertIn("scripts/workers", self.said("run"), "it says how to start them")
                self.assertEqual(list((self.folder / "run/checkpoints").glob("*")), [])
                for file in (self.folder / "run").glob("*.*"):
                    file.unlink()

    def test_workers_wait_for_a_folder_that_is_not_there_yet_so_long_as_they_say(self):
        early = self.workers("runs/later", "--slots", 2, log="early")
        self.until(lambda: "no run in" in self.said("early") or early.poll() is not None, "it does not say that it waits")
        self.assertIn("runs/later yet, waits 600 s for one", self.said("early"))
        manager = self.start("late", *self.command("runs/later"))
        self.ends(manager, "late")
        self.ends(early, "early")
        never = self.workers("runs/never", "--idle", 1, log="never")
        self.ends(never, "never", 2)
        self.assertIn("runs/never: there is no such folder, after 1 s", self.said("never"))

    def test_workers_that_are_killed_cost_nothing_but_their_work(self):
        alone = self.alone()
        dice = random.Random(1)
        manager = self.manager("run")
        workers = [self.workers("run", "--slots", 2) for _ in range(2)]
        for kill in range(2):
            before = self.trained("run")
            self.until(lambda: self.trained("run") >= before + 2 or manager.poll() is not None, "nothing is measured")
            victim = dice.randrange(2)
            if kill % 2:  # the process that trains
                for child in self.children(workers[victim], "nas-work")[:1]:
                    os.kill(child, signal.SIGKILL)
            else:  # all of a worker
                self.kill_all(workers[victim])
                workers[victim] = self.workers("run", "--slots", 2)
        self.complete(manager)
        self.assertEqual(self.export("run"), alone)

    def test_a_manager_that_is_killed_goes_on_with_the_same_command(self):
        alone = self.alone()
        workers = [self.workers("run", "--slots", 2)]
        for number in (signal.SIGKILL, signal.SIGTERM):
            manager = self.manager("run")
            before = self.trained("run")
            self.until(lambda: self.trained("run") >= before + 2, "nothing is measured")
            manager.send_signal(number)
            self.ends(manager, "run", -number if number == signal.SIGKILL else 130)
        self.complete(self.manager("run"), workers)
        self.assertEqual(self.export("run"), alone)

    def test_a_worker_that_is_stopped_leaves_its_work_to_others(self):
        alone = self.alone()
        manager = self.manager("run")
        first = self.workers("run", "--slots", 2)
        self.until(lambda: self.trained("run") >= 2, "nothing is measured")
        first.send_signal(signal.SIGTERM)
        self.ends(first, "workers", 143)
        self.complete(manager, [self.workers("run")])
        self.assertEqual(self.export("run"), alone)
        self.assertNotIn("failed", self.said("run").replace("0 failed", ""))

    def test_a_search_by_rungs_goes_on_elsewhere(self):
        rungs = ["objectives=[{name: perplexity, range: [1, 100]}, attention_flops]", "fidelity={rungs: [20, 60]}",
                 "algorithm={name: nsga2_async, population: 6, evaluations: 18, in_flight: 6}", "training.steps=180",
                 "training.checkpoints=[20, 60]"]
        self.ends(self.manager("alone", *rungs, engine=[]), "alone")
        manager = self.manager("run", *rungs)
        workers = [self.workers("run", "--slots", 2) for _ in range(2)]
        self.until(lambda: self.trained("run") >= 1 or manager.poll() is not None, "nothing comes to its end")
        self.kill_all(workers[0])  # what it had paused, the other one goes on with
        workers[0] = self.workers("run")
        self.complete(manager)
        self.assertIn("came to step 60, ", self.said("run"))
        self.assertEqual(self.export("run"), self.export("alone"))

    def test_broken_machines_and_processes_that_stand_still_cost_nothing(self):
        alone = self.alone()
        broken = self.folder / "nas-work"
        broken.write_text("#!/bin/sh\necho the disk is gone >&2\nexit 75\n")
        broken.chmod(0o755)
        manager = self.manager("run", "cluster.silence=3")
        outcast = self.workers("run", log="outcast", NAS_WORK=str(broken))
        self.ends(outcast, "outcast", 75)
        self.assertIn("set aside after 3 failures in a row, the last one: the disk is gone", self.said("outcast"))
        workers = [self.workers("run", "--slots", 2) for _ in range(2)]
        self.until(lambda: self.trained("run") >= 2, "nothing is measured")
        for child in self.children(workers[0], "nas-work"):
            os.kill(child, signal.SIGSTOP)  # for ever
        self.complete(manager, workers)
        self.assertEqual(self.export("run"), alone)
        self.assertRegex(self.said("run"), "the worker [^ ]+ is set aside: 3 failures in a row, the last one: the disk is gone")

    def test_one_manager_and_only_who_has_the_certificate(self):
        import distributed
        from distributed.security import Security
        manager = self.manager("run")
        file = self.folder / "run/cluster.json"
        self.until(file.exists, "there is no cluster.json")
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        said = file.read_text()
        address = json.loads(said)["address"]
        self.assertTrue(address.startswith("tls://"))
        strangers = Security.temporary()
        for how in {"address": address, "security": strangers}, {"address": address.replace("tls://", "tcp://")}:
            with self.assertRaises((OSError, TimeoutError)):
                distributed.Client(timeout=2, **how)
        second = self.start("second", runs.BIN / "nas-run", runs.ROOT / "configs/smoke.yaml", *self.OVERRIDES, *self.ENGINE, "--no-report",
                            "--output", self.folder / "run")
        self.ends(second, "second", 2)
        self.assertIn("is in use by another process", self.said("second"))
        self.assertEqual(file.read_text(), said)
        self.complete(manager, [self.workers("run", "--slots", 2)])

    def test_nothing_listens_elsewhere_and_nothing_answers_without_the_certificate(self):
        for listen, address in ("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("127.0.0.3", "127.0.0.3"), ("::1", "::1"):
            if ":" in address and address.replace(":", "").zfill(32) not in pathlib.Path("/proc/net/if_inet6").read_text():
                continue  # a machine without IPv6
            with self.subTest(listen=listen):
                manager = self.manager(listen, f"cluster.listen={listen}", "training.steps=100000")
                self.until((self.folder / listen / "cluster.json").exists, "there is no cluster.json")
                workers = self.workers(listen, *(["--listen", address] if address == "127.0.0.3" else []))
                self.until(lambda: self.children(workers, "nas-work"), "nothing is measured")
                sockets = [self.listening(process) for process in (manager, workers)]
                http = [at for found in sockets for at in found if self.answers_http(at)]
                self.kill_all(workers)
                self.kill_all(manager)
                self.assertEqual([[at for at, _ in found] for found in sockets], [[address], [address]], "a socket each, for TLS")
                self.assertEqual(http, [])

    @staticmethod
    def answers_http(at):
        for path in "/health", "/info/main/workers.html", "/json/identity.json", "/metrics":
            with contextlib.suppress(OSError), socket.create_connection(at, timeout=10) as stream:  # it is reset
                stream.sendall(f"GET {path} HTTP/1.1\r\nHost: manager\r\n\r\n".encode())
                if b"HTTP" in stream.recv(1000):
                    return True
        return False

    def test_who_would_measure_otherwise_is_refused_with_both_values(self):
        program = self.folder / "nas-work"
        program.write_text(f'#!/bin/sh\nexec {runs.BIN}/nas-work "$@" data.pairs=1\n')
        program.chmod(0o755)
        manager = self.manager("run")
        workers = self.workers("run", NAS_WORK=str(program))
        self.ends(manager, "run", 75)
        self.kill_all(workers)
        self.assertRegex(self.said("run"), "a worker would measure otherwise than this run: "
                                           'identity.corpus_hash = "[0-9a-f]+", must be "[0-9a-f]+"')


class ErrorsOfAWorkersOwnTest(unittest.TestCase):
    """A broken machine is not the candidate's failure, and takes no order after order."""

    def setUp(self):
        self.worker = mock.Mock()
        for name, other in ("bench", engine._Bench()), ("distributed", mock.Mock(get_worker=lambda: self.worker)):
            patch = mock.patch.object(engine, name, other)
            patch.start()
            self.addCleanup(patch.stop)

    def test_they_are_counted_and_set_the_worker_aside(self):
        with mock.patch.object(engine, "Child", side_effect=MemoryError("no room")):
            for order in range(3):
                self.assertIsNone(engine.bench.aside)
                line = engine.measure({"id": "run"}, {"order": order})
                self.assertEqual((line["kind"], line["order"], line["machine"]), ("lost", order, True))
                self.assertRegex(line["reason"], r"^on [^ ]+: MemoryError\('no room'\)$")
        self.assertEqual(engine.bench.aside, "3 failures in a row, the last one: MemoryError('no room')")
        self.worker.log_event.assert_called_once()

    def test_a_process_that_has_ended_gets_no_other_order(self):
        child = mock.Mock()
        child.alive.return_value = False
        child.measure.side_effect = OSError("the scheduler is gone")
        with mock.patch.object(engine, "Child", return_value=child):
            self.assertTrue(engine.measure({"id": "run"}, {"order": 7})["machine"])
        self.assertEqual(engine.bench.idle["run"], [])


class EngineOfOnesOwnTest(runs.RunTest):
    def setUp(self):
        super().setUp()
        text = (runs.ROOT / "docs/how-to/own-engine.md").read_text()
        (self.folder / "own").mkdir()
        file = self.folder / "own/pool.py"
        file.write_text(re.search(r"```python\n(# python/attnas/engines/pool.py\n.*?)```", text, re.DOTALL)[1])
        self.pool = [f"cluster.command=[{sys.executable}, {file}]"]
        self.path = {"PYTHONPATH": str(runs.ROOT / "python/attnas")}

    def test_the_documented_example(self):
        alone = self.alone()
        self.ends(self.manager("run", engine=self.pool, **self.path), "run")
        self.assertEqual(self.export("run"), alone)

    def test_what_needs_no_training_is_measured_by_workers_and_so_is_the_width_of_arrays(self):
        latency = "constraints=[latency <= 100000]"
        self.ends(self.manager("alone", latency, engine=[]), "alone")
        program, lines = self.folder / "nas-work", self.folder / "orders"
        lines.mkdir()
        program.write_text(f'#!/bin/bash\nset -o pipefail\ntee {lines}/$$ | {runs.BIN}/nas-work "$@"\n')
        program.chmod(0o755)
        self.ends(self.manager("run", latency, engine=self.pool, NAS_WORK=str(program), **self.path), "run")
        self.assertEqual(self.export("run"), self.export("alone"))
        said = [json.loads(line) for file in lines.iterdir() for line in file.read_text().splitlines()]
        orders = [line for line in said if line["kind"] == "order"]

        def function(one):  # dropout changes none
            return one["task"]["candidate"].rpartition("|")[0]
        measured = [function(order["tasks"][0]) for order in orders if order.get("measure") == "latency"]
        trained = {function(one) for order in orders if "measure" not in order for one in order["tasks"]}
        self.assertEqual(set(measured), trained)
        self.assertEqual([order.get("measure") for order in orders].count("array_width"), 1, "the first worker tells")
        for one in self.evaluations("run"):
            self.assertGreater(one["latency"]["value"], 0.0)
            self.assertIn("worker_seconds", one)

    def test_what_another_device_has_otherwise_is_refused_where_any_may_measure(self):
        for what in ("objectives=[perplexity, latency]", "algorithm={name: nsga2, population: 8}"), ("constraints=[latency <= 5]",):
            self.ends(self.manager("run", *what, engine=["cluster.command=cat", "cluster.device=mixed"]), "run", 2)
            self.assertIn("cluster.device = mixed, must be one model for latency, which another model has otherwise", self.said("run"))

    def test_garbage_ends_the_run_and_the_same_command_goes_on(self):
        alone = self.alone()
        command = "cluster.command=[sh, -c, 'echo oops >&2; echo Traceback']"
        self.ends(self.manager("run", engine=[command]), "run", 75)
        self.assertIn("wrote what is no line of its protocol: Traceback", self.said("run"))
        self.assertIn("it said last:\noops", self.said("run"))
        self.assertIn("Everything finished is kept", self.said("run"))
        self.ends(self.manager("run", engine=[]), "run")
        self.assertEqual(self.export("run"), alone)
