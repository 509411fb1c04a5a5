"""Workers by MPI: a run in one allocation comes to the same."""

import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import runs

runs.need("mpi4py")
if not shutil.which("mpirun"):
    print("skipped: no mpirun")
    sys.exit(77)


class MpiTest(runs.RunTest):
    ENGINE = ["cluster.engine=mpi"]

    def test_workers_come_to_the_same(self):
        alone = self.alone()
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.ends(self.manager("run", NAS_MPIRUN="-n 3 --oversubscribe", **root), "run")
        self.assertEqual(self.export("run"), alone)
        self.assertIn("2 workers, 2 slots", self.said("run"))
        self.ends(self.manager("small", NAS_MPIRUN="-n 1", **root), "small", 75)
        self.assertIn("one slot, must be at least two", self.said("small"))


if __name__ == "__main__":
    unittest.main()
