"""Runs with workers, for the tests of engines."""

import contextlib
import ipaddress
import json
import os
import pathlib
import signal
import struct
import subprocess
import time
import unittest

from python_tests import FolderTest, ROOT

BIN = pathlib.Path(os.environ.get("NAS_BIN_DIR", ROOT / "build/ci/bin"))
SECONDS = 300  # nothing takes that long


def need(module: str) -> None:
    try:
        __import__(module)
    except ImportError:
        raise unittest.SkipTest(f"no Python package {module} (scripts/setup --tests installs it)") from None


class RunTest(FolderTest):
    """Each test has a folder of its own, and leaves no process behind."""

    # Replicates and a re-test, so that there is something for several.
    OVERRIDES = ["evaluation.replicates=2", "retest.replicates=2", "training.steps=60", "training.checkpoint_minutes=0.002"]
    ENGINE: list[str] = []
    found_alone: "str | None" = None  # by all tests of a process

    def start(self, name, *command, **environment):
        """A process in a session of its own; what it says goes to a file of this name."""
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                       env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"} | environment)
        self.addCleanup(self.kill_all, process)
        return process

    @staticmethod
    def kill_all(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def said(self, name):
        return (self.folder / f"{name}.log").read_text()

    def command(self, name, *overrides, engine=None):
        engine = self.ENGINE if engine is None else engine
        return [BIN / "nas-run", ROOT / "configs/smoke.yaml", *self.OVERRIDES, *engine, *overrides, "--no-report", "--output",
                self.folder / name]

    def manager(self, name, *overrides, engine=None, **environment):
        return self.start(name, *self.command(name, *overrides, engine=engine), **environment)

    def workers(self, name, *options, log="workers", **environment):
        return self.start(log, ROOT / "scripts/workers", self.folder / name, *options, **environment)

    def ends(self, process, name, code=0):
        self.assertEqual(process.wait(SECONDS), code, self.said(name))

    def export(self, name):
        return subprocess.run([BIN / "nas-export", self.folder / name, "--canonical"], capture_output=True, text=True, check=True).stdout

    def alone(self):
        """What the run comes to on threads of one process."""
        if RunTest.found_alone is None:
            self.ends(self.manager("alone", engine=[]), "alone")
            RunTest.found_alone = self.export("alone")
        return RunTest.found_alone

    def until(self, holds, what):
        end = time.monotonic() + SECONDS
        while not holds():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def trained(self, name):
        """Evaluations that a run has stored."""
        import sqlite3
        try:
            with sqlite3.connect(f"file:{self.folder / name / 'store.sqlite'}?mode=ro", uri=True) as store:
                return store.execute("SELECT count(*) FROM evaluations").fetchone()[0]
        except sqlite3.Error:
            return 0

    def evaluations(self, name):
        """What a run has of each evaluation beside its result: who measured it, when, what."""
        import sqlite3
        with sqlite3.connect(f"file:{self.folder / name / 'store.sqlite'}?mode=ro", uri=True) as store:
            return [json.loads(text) for text, in store.execute("SELECT measured FROM evaluations")]

    def at_work(self, name):
        """Workers that train something, as far as a run has written it down."""
        import sqlite3
        try:
            with sqlite3.connect(f"file:{self.folder / name / 'store.sqlite'}?mode=ro", uri=True) as store:
                work = json.loads(store.execute("SELECT value FROM meta WHERE key = 'at_work'").fetchone()[0])
        except (sqlite3.Error, TypeError):
            return []
        return [array["worker"] for array in (work or {}).get("arrays", []) if array["step"] > 0 and "worker" in array]

    def listening(self, process):
        """(address, port) of each TCP socket on which a process's session listens."""
        sockets = set()
        for child in self.children(process, ""):
            for file in pathlib.Path(f"/proc/{child}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(file))
        found = set()
        tables = [pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
        for words in [line.split() for table in tables for line in table]:
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                address, port = words[1].split(":")
                values = struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address))
                found.add((str(ipaddress.ip_address(struct.pack(f"={len(values)}I", *values))), int(port, 16)))
        return found

    def children(self, process, word):
        """Processes of a process's session whose command has a word."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(entry.name)) == process.pid and word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (OSError, ProcessLookupError):
                pass
        return found
