"""Engines place the orders of a run on workers: one file each, found by its name
(docs/how-to/cluster.md). Here is what they share. No package is needed, and nothing of attnas, so
that a worker needs no more than its engine does."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

LONGEST = 16 << 20  # bytes of a line that nas-run takes

_output = threading.Lock()


def written(line: dict) -> bytes:
    """A line as nas-run gets it. @throws ValueError for a number that JSON does not have,
    RecursionError
    """
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode()


def say(**line) -> None:
    """Writes a line to nas-run."""
    text = written(line) + b"\n"
    with _output:
        os.write(1, text)


def orders():
    """The lines of nas-run until its end; where that is missing, nas-run has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: nas-run says what is to be done
    for text in sys.stdin:
        line = json.loads(text)
        yield line
        if line["kind"] == "end":
            return
    yield {"kind": "end", "save": True}


def need(package: str, debian: str) -> None:
    """Goes on with a Python that has a package, or says how to get it."""
    try:
        __import__(package)
    except ImportError:
        system = "/usr/bin/python3"
        if not os.environ.get("NAS_PYTHON") and sys.executable != system and os.path.exists(system):
            os.execv(system, [system, "-B", *sys.argv])
        sys.exit(f"this engine needs Python's package {package}: apt-get install {debian}, or pip "
                 f"install {package}; NAS_PYTHON names another Python than {sys.executable}")


class Died(Exception):
    """A worker's process ended, and nobody had asked it to.

    @param machine  whether the machine is to blame: it had not begun the order, or says so (exit
        code 75).
    """

    def __init__(self, reason: str, machine: bool = False) -> None:
        super().__init__(reason)
        self.machine = machine

    @classmethod
    def of(cls, error: Exception) -> Died:
        """What an error is to the order that a worker had: one of the worker's own is the machine's
        fault, and no candidate's.
        """
        return error if isinstance(error, cls) else cls(repr(error), machine=True)


class Left(Exception):
    """A worker's process was stopped, with its checkpoints written: another goes on from them."""

    machine = True


def lost(order: dict, why: Died | Left) -> dict:
    """The line of an order that a worker gives up."""
    return {"kind": "lost", "order": order["order"], "reason": str(why) or "it was stopped",
            "machine": why.machine}


class Faults:
    """Counts in a row what a worker's machine is to blame for: after some it gets nothing more,
    lest it takes order after order.
    """

    MOST = 3

    def __init__(self) -> None:
        self.count = 0

    def add(self, why: Died) -> str | None:
        """@return why the worker is set aside, once it is."""
        self.count = self.count + 1 if why.machine else 0
        return (f"{self.MOST} failures in a row, the last one: {why}"
                if self.count >= self.MOST else None)


class Child:
    """A nas-work that measures one order after the other, with corpus and device ready.

    @param run      the line `run`.
    @param options  of nas-work.
    """

    def __init__(self, run: dict, options: list[str]) -> None:
        program, folder = _program(run), run.get("current_folder", ".")
        self.errors = None
        self.grace = run.get("grace", 25.0)
        try:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen([program, *options], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.errors,
                                            cwd=folder if os.path.isdir(folder) else None,
                                            env={"OMP_WAIT_POLICY": "PASSIVE"} | os.environ)
        except OSError as error:
            if self.errors:
                self.errors.close()
            raise Died(f"nas-work cannot be started: {error}", machine=True) from None
        self.silence = run.get("config", {}).get("cluster", {}).get("silence", 60.0)
        self.heard: float | None = None  # when it said something last, while it has an order
        self.ready = self.still = False
        self.send(run)
        try:
            threading.Thread(target=self.watch, daemon=True).start()
        except RuntimeError as error:  # the machine has no thread left
            self.close()
            raise Died(f"nas-work cannot be watched: {error}", machine=True) from None

    def close(self) -> None:
        """Ends the process at once, and leaves nothing of it open."""
        self.wait(0)
        for stream in self.process.stdin, self.process.stdout, self.errors:
            with contextlib.suppress(OSError):  # what it had not read
                stream.close()

    def watch(self) -> None:
        """Ends the process where it stands still: one that lives says so every few seconds."""
        late = 0
        while self.alive():
            time.sleep(min(1.0, self.silence / 4))
            heard = self.heard
            late = late + 1 if heard is not None and time.monotonic() - heard > self.silence else 0
            if late > 1:  # not this process, which may have stood still, too
                self.still = True
                self.process.kill()

    def send(self, line: dict) -> None:
        try:
            self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended, which its output tells

    def read(self) -> dict | None:
        """@return its next line, none where it has ended. @throws Died where it writes what nas-run
        would take for the engine's own.
        """
        text = self.process.stdout.readline(LONGEST + 1)
        if not text:
            return None
        if len(text) > LONGEST:
            self.process.kill()
            raise Died(f"nas-work wrote a line of more than {LONGEST >> 20} MiB", machine=True)
        try:
            line = json.loads(text)
            if isinstance(line["kind"], str) and len(written(line)) < LONGEST:
                return line
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        self.process.kill()
        raise Died(f"nas-work wrote {text[:100]!r}", machine=True)

    def measure(self, order: dict, progressed) -> dict:
        """@param progressed  is told the lines `progress`. @return the line `finished` or
        `refused`.
        @throws Died, Left, and what `progressed` does. The process has then ended: it may have been
            in the middle of the order."""
        try:
            return self._measured(order, progressed)
        except Exception:
            self.wait(0)
            raise

    def _measured(self, order: dict, progressed) -> dict:
        self.send(order)
        begun = False
        # what loads a corpus says nothing meanwhile
        self.heard = time.monotonic() if self.ready else None
        while (line := self.read()) is not None:
            self.ready = True
            self.heard = time.monotonic()
            if line["kind"] == "progress" and line.get("order") == order["order"]:
                begun = True
                progressed(line)
            elif line["kind"] == "finished" and line.get("order") != order["order"]:
                self.process.kill()
                raise Died(f"nas-work finished order {str(line.get('order'))[:100]}, must be "
                           f"{order['order']}", machine=True)
            elif line["kind"] in ("finished", "refused"):
                self.heard = None
                return line
        self.wait(self.grace)  # it has nothing more to say
        code = self.process.returncode
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip()
        if said:
            print(said, file=sys.stderr, flush=True)
        if self.still:
            raise Died(f"nas-work stood still, it said nothing for {self.silence:g} s "
                       f"(cluster.silence)", machine=True)
        if code == 143:
            raise Left
        raise Died(
            said.splitlines()[-1] if said and code > 0 else
            f"killed by signal {-code}" if code < 0 else f"exit code {code}", machine=not begun
            or code == 75)

    def alive(self) -> bool:
        return self.process.poll() is None

    def leave(self, save: bool = True) -> None:
        """Asks it to end: with checkpoints written, or once it has done what it has."""
        self.send({"kind": "end", "save": save})

    def wait(self, seconds: float) -> None:
        """Waits for its end, and makes it end then."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _program(run: dict) -> str:
    """The nas-work of this machine: $NAS_WORK, that beside the manager's nas-run, or that on PATH.
    """
    named = os.environ.get("NAS_WORK") or run.get("program", "")
    if not (named and os.access(named, os.X_OK)):
        named = shutil.which("nas-work")
    if not named:
        raise Died("there is no nas-work on PATH; NAS_WORK may name it", machine=True)
    return named


def place(run: dict, folder: str | None, scratch: str | None, slot: int) -> list[str]:
    """Options of nas-work for a place to keep checkpoints: the run's folder if this machine sees
    it.
    """
    folder = folder or run.get("folder", "")
    options = ["--device", "auto", "--slot", str(slot)]
    if scratch:
        return ["--scratch", str(pathlib.Path(scratch) / str(slot)), *options]
    return (["--folder", folder] if os.path.isdir(folder) else []) + options
