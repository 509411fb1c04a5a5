"""Workers on hosts of their own, made of namespaces: one is cut off, others cannot write the run's folder, and nothing is lost."""

import os
import shutil
import subprocess
import time
import unittest

import runs

runs.need("distributed")
if os.geteuid() != 0 or not shutil.which("ip"):
    raise unittest.SkipTest("network namespaces need root and ip (apt-get install iproute2)")


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=True)


class Hosts:
    """Hosts 1 to N with addresses 10.77.0.1 to N, joined by a switch in a namespace of its own."""

    def __init__(self, count):
        self.prefix = f"attnas{os.getpid()}"
        self.spaces = []
        self.switch = self.add("switch")
        ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "br0", "up")
        for host in range(1, count + 1):
            space = self.add(host)
            ip("-n", self.switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", self.switch, "link", "set", f"port{host}", "master", "br0", "up")
            ip("-n", space, "addr", "add", f"10.77.0.{host}/24", "dev", "eth0")
            for device in "lo", "eth0":
                ip("-n", space, "link", "set", device, "up")
            ip("-n", space, "route", "add", "default", "via", "10.77.0.254")  # says which address is a host's own

    def add(self, name):
        space = f"{self.prefix}-{name}"
        ip("netns", "add", space)
        self.spaces.append(space)
        return space

    def on(self, host):
        """Words before a command that is to run there."""
        return ["ip", "netns", "exec", self.spaces[host], "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', f"host{host}"]

    def connect(self, host, connected):
        ip("-n", self.switch, "link", "set", f"port{host}", "up" if connected else "down")

    def remove(self):
        for space in self.spaces:
            ip("netns", "del", space)


try:
    Hosts(1).remove()
except subprocess.CalledProcessError as error:
    raise unittest.SkipTest(f"no network namespaces here: {error.stderr.strip()}")


class NamespacesTest(runs.RunTest):
    OVERRIDES = runs.RunTest.OVERRIDES + ["training.steps=2000", "retest.replicates=0"]
    ENGINE = ["cluster.engine=dask", "cluster.silence=5", "cluster.grace=5"]

    def setUp(self):
        super().setUp()
        (self.folder / "run").mkdir()
        self.hosts = Hosts(4)
        self.addCleanup(self.hosts.remove)

    def start(self, name, *command, host=None, **environment):
        return super().start(name, *(self.hosts.on(host) if host else []), *command, **environment)

    def test_a_host_that_is_cut_off_leaves_its_work_to_others(self):
        alone = self.alone()
        manager = self.start("run", *self.command("run"), host=1)
        for host in 2, 3, 4:
            self.start(f"workers{host}", runs.ROOT / "scripts/workers", self.folder / "run", host=host)
        self.until(lambda: "3 workers, 3 slots" in self.said("run"), "they do not find each other")
        self.until(lambda: any(worker.startswith("host3:") for worker in self.at_work("run")), "it does nothing")
        self.hosts.connect(3, False)
        self.until(lambda: "2 workers, 2 slots" in self.said("run").rpartition("3 workers, 3 slots")[2], "nobody misses it")
        time.sleep(1)
        self.hosts.connect(3, True)
        self.ends(manager, "run")
        self.assertEqual(self.export("run"), alone)
        self.assertNotIn("failed", self.said("run").replace("0 failed", ""))

    def test_a_folder_that_workers_cannot_write_costs_checkpoints_alone(self):
        alone = self.alone()
        manager = self.start("run", *self.command("run"), host=1)
        read_only = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && ! touch "$0/x" && exec "$@"',
                     self.folder / "run"]
        for host in 2, 3:
            self.start(f"workers{host}", *self.hosts.on(host), *read_only, runs.ROOT / "scripts/workers", self.folder / "run")
        self.ends(manager, "run")
        self.assertEqual(self.export("run"), alone)
        for host in 2, 3:
            self.assertIn("Read-only file system", self.said(f"workers{host}"))
        self.assertEqual(list((self.folder / "run/checkpoints").glob("*")), [])
