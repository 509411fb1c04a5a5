"""Workers in a job array of a real Slurm, whose daemons run on this machine: one that is preempted comes back, and nothing is lost."""

import os
import random
import shutil
import subprocess
import time
import unittest

import runs

runs.need("distributed")
os.environ["PATH"] += ":/usr/sbin"
if os.geteuid() != 0:
    raise unittest.SkipTest("Slurm's daemons need root")
for program in "munged", "slurmctld", "slurmd", "sbatch", "srun":
    if not shutil.which(program):
        raise unittest.SkipTest(f"no {program} (apt-get install slurm-wlm munge)")

NODES = "node0", "node1"
CONFIGURATION = """
ClusterName=sandbox
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=3
PartitionName=spare Nodes={nodes} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=urgent Nodes={nodes} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


class Slurm:
    """Two nodes, a partition whose jobs another one preempts. @param folder  that user munge may enter."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        for name in "state", "spool", "munge":
            (folder / name).mkdir()
        key = folder / "munge/key"
        key.write_bytes(random.randbytes(1024))
        for path in folder / "munge", key:
            shutil.chown(path, "munge", "munge")
            path.chmod(0o400 if path == key else 0o755)
        port = 20000 + os.getpid() % 10000
        lines = [f"NodeName={name} NodeHostname={self.host()} NodeAddr=127.0.0.1 Port={port + 1 + i} CPUs={os.cpu_count()} State=UNKNOWN"
                 for i, name in enumerate(NODES)]
        configuration = folder / "slurm.conf"
        head, tail = CONFIGURATION.strip().split("PartitionName", 1)
        configuration.write_text((head + "\n".join(lines) + "\nPartitionName" + tail).format(
            host=self.host(), folder=folder, port=port, nodes=",".join(NODES)) + "\n")
        os.environ["SLURM_CONF"] = str(configuration)

    def up(self):
        munge = self.folder / "munge"
        self.start("runuser", "-u", "munge", "--", "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.until(lambda: (munge / "socket").exists())
        self.start("slurmctld", "-D", "-c")
        for name in NODES:
            self.start("slurmd", "-D", "-N", name)
        self.until(lambda: self.tell("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "spare") == str(len(NODES)))

    def down(self):
        self.tell("scancel", "--full", "--signal=KILL", "--user=root")  # steps outlive the daemons
        self.tell("scancel", "--user=root")
        end = time.monotonic() + 20
        while self.tell("squeue", "-h") and time.monotonic() < end:
            time.sleep(0.2)
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *command):
        with (self.folder / "daemons.log").open("a") as log:
            self.started.append(subprocess.Popen(command, stdout=log, stderr=log))

    def until(self, holds):
        end = time.monotonic() + 60
        while not holds():
            if time.monotonic() > end:
                logs = [*self.folder.glob("*.log"), self.folder / "munge/log"]
                raise AssertionError("Slurm does not start: " + "\n".join(log.read_text()[-1000:] for log in logs if log.exists()))
            time.sleep(0.1)

    @staticmethod
    def host():
        return os.uname().nodename.split(".")[0]

    @staticmethod
    def tell(*command):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


class SlurmTest(runs.RunTest):
    OVERRIDES = runs.RunTest.OVERRIDES + ["training.steps=400", "retest.replicates=0"]
    ENGINE = ["cluster.engine=dask", "cluster.listen=127.0.0.1", "cluster.silence=10", "cluster.grace=8"]

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        (self.folder / "slurm").mkdir()
        self.slurm = Slurm(self.folder / "slurm")
        self.addCleanup(self.slurm.down)
        self.slurm.up()

    def submit(self, *words):
        said = subprocess.run(["sbatch", "--parsable", f"--output={self.folder}/job-%A_%a.log", *map(str, words)], capture_output=True,
                              text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout.strip()

    def facts(self, job):
        """Of its tasks."""
        return [dict(word.split("=", 1) for word in text.split() if "=" in word)
                for text in self.slurm.tell("scontrol", "show", "job", job).split("\n\n") if text]

    def logs(self):
        return {file.name: file.read_text() for file in self.folder.glob("*.log")}

    def test_an_array_of_workers_of_which_one_is_preempted(self):
        alone = self.alone()
        manager = self.manager("run")
        array = self.submit("--array=0-1", "--exclusive", runs.ROOT / "scripts/slurm/workers", self.folder / "run", "--idle", 20)
        self.until(lambda: self.trained("run") >= 3 or manager.poll() is not None, "nothing is measured")
        urgent = self.submit("-p", "urgent", "--exclusive", "-w", NODES[1], "--wrap", "sleep 2")

        def requeued():
            return [task for task in self.facts(array) if task.get("Restarts") == "1"]
        self.until(requeued, f"no worker is requeued: {self.facts(array)} {self.logs()}")
        self.assertEqual(len(requeued()), 1, "the other worker goes on")
        self.until(lambda: all(task["JobState"] == "COMPLETED" for task in self.facts(urgent)), "nobody urgent")
        before = len(self.workers_started())
        self.slurm.tell("scontrol", "update", "JobId={ArrayJobId}_{ArrayTaskId}".format(**requeued()[0]), "StartTime=now")  # Slurm holds it back for two minutes
        self.until(lambda: len(self.workers_started()) > before or manager.poll() is not None, "it does not come back")
        self.ends(manager, "run")
        self.assertEqual(self.export("run"), alone)
        self.assertNotIn("failed", self.said("run").replace("0 failed", ""))

    def workers_started(self):
        return [line for text in self.logs().values() for line in text.splitlines() if line.startswith("workers: 1 slot")]
