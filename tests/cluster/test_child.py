"""What a worker's process does wrong, and whom it is laid to: the part that engines share, without any of them."""

import os
import sys
import tempfile
import time
from unittest import mock

from python_tests import ROOT, FolderTest

sys.path.insert(0, str(ROOT / "python/attnas"))
import engines  # noqa: E402
from engines import Child, Died, Faults, Left, lost  # noqa: E402

BEGINS = """read run; read order; echo '{"kind": "progress", "order": 7, "step": 0}'; """


class ChildTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "nas-work"
        self.addCleanup(os.environ.pop, "NAS_WORK", None)
        os.environ["NAS_WORK"] = str(self.program)

    def child(self, script, grace=10.0, silence=60.0):
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)
        child = Child({"kind": "run", "grace": grace, "config": {"cluster": {"silence": silence}}}, [])
        self.addCleanup(self.clear, child)
        return child

    @staticmethod
    def clear(child):
        child.wait(0)
        for stream in child.process.stdin, child.process.stdout, child.errors:
            try:
                stream.close()
            except BrokenPipeError:
                pass  # what it had not read

    def death(self, script, **how):
        with self.assertRaises(Died) as raised:
            self.child(script, **how).measure({"kind": "order", "order": 7}, lambda line: None)
        return str(raised.exception), raised.exception.machine

    def test_what_had_not_begun_is_the_machines_fault(self):
        self.assertEqual(self.death("echo no libtorch >&2; exit 127"), ("no libtorch", True))
        self.assertEqual(self.death("exit 75"), ("exit code 75", True))
        self.assertEqual(self.death("""echo '{"kind": "progress", "order": 6, "step": 3}'; exit 1"""), ("exit code 1", True),
                         "it was at another order")
        self.assertEqual(self.death("echo Welcome to node3; sleep 100"), (r"nas-work wrote b'Welcome to node3\n'", True))

    def test_what_is_no_line_is_the_machines_fault(self):
        wrote = "read run; read order; "
        begun = time.monotonic()
        self.assertEqual(self.death(wrote + "head -c 17000000 /dev/zero | tr '\\0' x; sleep 100"),
                         ("nas-work wrote a line of more than 16 MiB", True))
        self.assertEqual(self.death(wrote + "cat /dev/zero"), ("nas-work wrote a line of more than 16 MiB", True))
        self.assertLess(time.monotonic() - begun, 60)
        for line in '[{"kind": "finished"}]', '{"order": 7}', '{"kind": 1}', '{"kind": "finished", "order": 7, "loss": NaN}', \
                '{"kind": "finished", "order": 7, "loss": 1e999}':
            self.assertEqual(self.death(wrote + f"echo '{line}'; sleep 100"), (f"nas-work wrote {(line + chr(10)).encode()!r}", True))
        deep = wrote + "head -c 200000 /dev/zero | tr '\\0' '['; echo; sleep 100"
        self.assertEqual(self.death(deep), (f"nas-work wrote {b'[' * 100!r}", True))

    def test_what_finishes_another_order_is_the_machines_fault(self):
        self.assertEqual(self.death("""echo '{"kind": "finished", "order": 6}'; sleep 100"""),
                         ("nas-work finished order 6, must be 7", True))
        self.assertEqual(self.death("""echo '{"kind": "finished"}'; sleep 100"""),
                         ("nas-work finished order None, must be 7", True))

    def test_what_had_begun_is_it_where_the_worker_says_so(self):
        self.assertEqual(self.death(BEGINS + "echo no space left >&2; exit 75"), ("no space left", True))
        self.assertEqual(self.death(BEGINS + "exit 1"), ("exit code 1", False))
        self.assertEqual(self.death(BEGINS + "kill -SEGV $$"), ("killed by signal 11", False))

    def test_a_program_that_is_not_there_is_the_machines_fault(self):
        path, os.environ["PATH"] = os.environ["PATH"], ""
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        with self.assertRaisesRegex(Died, "there is no nas-work on PATH") as raised:
            Child({}, [])
        self.assertTrue(raised.exception.machine)
        self.program.write_text("\x7fELF of another machine")
        self.program.chmod(0o755)
        with self.assertRaisesRegex(Died, "nas-work cannot be started: .*Exec format error") as raised:
            Child({}, [])
        self.assertTrue(raised.exception.machine)

    def test_a_machine_without_room_for_a_process_is_at_fault_and_none_is_left(self):
        self.program.write_text("#!/bin/sh\nexec sleep 100\n")
        self.program.chmod(0o755)
        with mock.patch.object(tempfile, "tempdir", "/nowhere"), \
                self.assertRaisesRegex(Died, "nas-work cannot be started: .*No such file or directory: '/nowhere/") as raised:
            Child({}, [])
        self.assertTrue(raised.exception.machine)
        started = []

        def start(*words, **how):
            started.append(popen(*words, **how))
            return started[-1]

        popen = engines.subprocess.Popen
        with mock.patch.object(engines.subprocess, "Popen", start), \
                mock.patch.object(engines.threading.Thread, "start", side_effect=RuntimeError("can't start new thread")), \
                self.assertRaisesRegex(Died, "nas-work cannot be watched: can't start new thread") as raised:
            Child({}, [])
        self.assertTrue(raised.exception.machine)
        process, = started
        self.assertEqual(process.returncode, -9)
        self.assertTrue(process.stdin.closed and process.stdout.closed)

    def test_what_hangs_at_its_end_is_ended(self):
        begun = time.monotonic()
        self.assertEqual(self.death(BEGINS + "exec >&-; sleep 100", grace=0.2), ("killed by signal 9", False))
        child = self.child("trap '' TERM; read run; exec sleep 100")
        child.leave()
        child.wait(0.2)
        self.assertFalse(child.alive())
        self.assertLess(time.monotonic() - begun, 30)

    def test_a_process_that_stands_still_gives_up_its_order(self):
        stops = "read run; echo '{\"kind\": \"workers\"}'; read order; "
        still = "nas-work stood still, it said nothing for 0.4 s (cluster.silence)", True
        self.assertEqual(self.death(stops + "kill -STOP $$", silence=0.4), still)
        self.assertEqual(self.death(stops + BEGINS.removeprefix("read run; read order; ") + "kill -STOP $$", silence=0.4), still)
        child = self.child("read run; kill -STOP $$")  # one that nobody waits for
        child.leave()
        child.wait(0.2)
        self.assertFalse(child.alive())

    def test_what_says_that_it_lives_may_take_long(self):
        says = """echo '{"kind": "progress", "order": 7, "step": 0}'; sleep 0.2; """
        child = self.child("read run; sleep 1; read order; " + says * 6 + """echo '{"kind": "finished", "order": 7}'; sleep 1""", silence=0.4)
        self.assertEqual(child.measure({"order": 7}, lambda line: None)["kind"], "finished")
        time.sleep(0.8)
        self.assertTrue(child.alive(), "without an order it has nothing to say")

    def test_an_error_of_who_is_told_ends_the_process(self):
        def told(line):
            raise OSError("the scheduler is gone")

        child = self.child(BEGINS + "exec sleep 100")
        with self.assertRaisesRegex(OSError, "the scheduler is gone"):
            child.measure({"order": 7}, told)
        self.assertFalse(child.alive(), "it is in the middle of the order")
        child = self.child("""read run; read order; echo '{"kind": "finished", "order": 6}'; exec sleep 100""")
        with self.assertRaisesRegex(Died, "finished order 6"):
            child.measure({"order": 7}, told)
        self.assertIsNotNone(child.process.returncode, "it gets no other order")

    def test_who_was_stopped_is_no_fault(self):
        with self.assertRaises(Left) as raised:
            self.child("exit 143").measure({"order": 7}, lambda line: None)
        self.assertEqual(lost({"order": 7}, raised.exception), {"kind": "lost", "order": 7, "reason": "it was stopped", "machine": True})

    def test_an_error_of_the_workers_own_is_the_machines_fault(self):
        error = Died.of(RuntimeError("can't start new thread"))
        self.assertEqual((str(error), error.machine), ("""RuntimeError("can't start new thread")""", True))
        died = Died("exit code 1")
        self.assertIs(Died.of(died), died)

    def test_a_machine_with_faults_in_a_row_gets_nothing_more(self):
        faults, broken = Faults(), Died("exit code 75", machine=True)
        self.assertIsNone(faults.add(broken))
        self.assertIsNone(faults.add(broken))
        self.assertIsNone(faults.add(Died("killed by signal 11")), "that was the mechanism")
        self.assertIsNone(faults.add(broken))
        self.assertIsNone(faults.add(broken))
        self.assertEqual(faults.add(broken), "3 failures in a row, the last one: exit code 75")
