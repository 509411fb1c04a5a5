"""Workers by MPI: a run in one allocation comes to the same."""

import json
import shutil
import sys
import unittest
from concurrent.futures import Future
from unittest import mock

import runs

runs.need("mpi4py")
if not shutil.which("mpirun"):
    raise unittest.SkipTest("no mpirun")
sys.path.insert(0, str(runs.ROOT / "python/attnas"))
from engines import Faults  # noqa: E402
from engines import mpi as engine  # noqa: E402


class ErrorsOfAWorkersOwnTest(unittest.TestCase):
    """A broken machine is not the candidate's failure, and takes no order after order."""

    def test_they_are_counted_and_end_the_worker(self):
        lost = {"kind": "lost", "order": 7, "reason": "MemoryError('no room')", "machine": True}
        with mock.patch.object(engine, "Child", side_effect=MemoryError("no room")), \
                mock.patch.object(engine, "_faults", Faults()), mock.patch.object(engine.os, "_exit", side_effect=SystemExit):
            self.assertEqual(engine.measure({}, {"order": 7}), lost)
            self.assertEqual(engine.measure({}, {"order": 7}), lost)
            with self.assertRaises(SystemExit):
                engine.measure({}, {"order": 7})
            engine.os._exit.assert_called_once_with(75)

    def test_what_the_pool_itself_loses_blames_no_candidate(self):
        said, failed = [], Future()
        failed.set_exception(RuntimeError("broken"))
        lines = [{"kind": "run"}, {"kind": "order", "order": 7}, {"kind": "end"}]
        with mock.patch.multiple(engine, say=lambda **line: said.append(line), orders=lambda: iter(lines),
                                 _told=mock.Mock(iprobe=lambda: False)):
            engine._serve(mock.Mock(submit=lambda *what: failed), 2)
        self.assertEqual(said[1:], [{"kind": "lost", "order": 7, "reason": "broken", "machine": True}])


class MpiTest(runs.RunTest):
    ENGINE = ["cluster.engine=mpi"]
    MPI = {"NAS_MPIRUN": "-n 3 --oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def test_workers_come_to_the_same(self):
        alone = self.alone()
        self.ends(self.manager("run", **self.MPI), "run")
        self.assertEqual(self.export("run"), alone)
        self.assertIn("2 workers, 2 slots", self.said("run"))
        self.ends(self.manager("small", **(self.MPI | {"NAS_MPIRUN": "-n 1"})), "small", 75)
        self.assertIn("one slot, must be at least two", self.said("small"))

    def test_how_far_training_runs_are_is_told(self):
        engine = self.folder / "engine.sh"  # keeps what the engine says
        engine.write_text(f'#!/bin/sh\n{sys.executable} -B {runs.ROOT}/python/attnas/engines/mpi.py | tee {self.folder}/lines\n')
        engine.chmod(0o755)
        self.ends(self.manager("run", "training.steps=500", engine=[f"cluster.command=[{engine}]"], **self.MPI), "run")
        lines = [json.loads(line) for line in (self.folder / "lines").read_text().splitlines()]
        steps = {}
        for line in lines:
            if line["kind"] == "progress" and line["step"] > 0:
                steps.setdefault((line["order"], line["worker"]), []).append(line["step"])
        self.assertTrue(steps, "no order was said to advance")
        for told in steps.values():
            for before, after in zip(told, told[1:]):  # an order may hold several training runs, one after another
                self.assertTrue(before <= after or before == 500, told)
            self.assertLessEqual(told[-1], 500)
        self.assertEqual(len({worker for _, worker in steps}), 2)

    def test_a_useless_machine_ends_the_run_resumably(self):
        alone = self.alone()
        broken = self.folder / "nas-work"
        broken.write_text("#!/bin/sh\necho the disk is gone >&2\nexit 75\n")
        broken.chmod(0o755)
        self.ends(self.manager("run", NAS_WORK=str(broken), **self.MPI), "run", 75)
        self.assertRegex(self.said("run"), "the worker [^ ]+ is useless: 3 failures in a row, the last one: the disk is gone")
        self.assertIn("Everything finished is kept", self.said("run"))
        self.ends(self.manager("run", **self.MPI), "run")
        self.assertEqual(self.export("run"), alone)
