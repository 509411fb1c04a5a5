"""Runs nas-run and shows how far it is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ
from typing import Any

from attnas.analysis import digest
from attnas.analysis.words import shortened

from attnas.errors import Error, InputError, MachineError, Stopped
from attnas.result import Run, load
from attnas.settings import overrides, told, written

_ERRORS = {2: InputError, 75: MachineError, 130: Stopped}
_REWRITTEN = b"\x1b[J"  # what nas-run's status lines end with
_STATUS = re.compile(rb"\r([^\r\n]*)\x1b\[K\r?\n([^\r\n]*)\x1b\[J")
_FOLDER = re.compile(rb"^written to (.+): results\.json, ", re.MULTILINE)
_SECONDS_BETWEEN_LINES = 0.2


def run(config: str | os.PathLike | Mapping[str, Any], output: str | os.PathLike | None = None,
        progress: bool | None = None, reuse: str | os.PathLike | None = None,
        **settings: Any) -> Run:
    """Runs an experiment by nas-run, or continues it, and reads its result.

    @param config    a configuration file, the name of an installed one, or its content; what that
        extends counts from the current folder, then from the installation. It should have a name:
        without one and without `output` the folder is runs/python.
    @param output    the run's folder; default: runs/NAME. The same call continues what is there.
    @param progress  whether one line shows how far it is; default: in a terminal and in a notebook.
    @param reuse     the folder of a run, whose evaluations are not made again.
    @param settings  as on nas-run's command line: **{"algorithm.population": 8}, seed=1.
    @throws InputError    where nas-run refuses what was given, or there is no nas-run.
    @throws MachineError  where the machine failed: everything finished is kept.
    @throws Stopped       where it was stopped, as by KeyboardInterrupt: the same.
    """
    program = digest.program("nas-run")
    if program is None:
        raise InputError("there is no nas-run on PATH, beside this package's installation or in "
                         "build/*/bin of the current folder; build attnas, or add its folder to "
                         "PATH")
    if progress is None:
        terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        progress = terminal or "ipykernel" in sys.modules
    line = _Line() if progress else None
    with tempfile.TemporaryDirectory() as folder:
        command = [program, os.fspath(written(config, folder)), *overrides(settings)]
        if output is not None:
            command += ["--output", os.fspath(output)]
        if reuse is not None:
            command += ["--reuse", os.fspath(reuse)]
        try:
            status, said, complaint = _watched(command, line.show if line else lambda text: None)
        finally:
            if line:
                line.end()
    if status in (0, 3):  # 3: nothing was found to re-test, which the complaint says
        sys.stderr.write(complaint)
        return load(os.fsdecode(_FOLDER.search(said)[1]))
    what = told(complaint.removeprefix("nas-run: "), folder)
    if status == 130:
        what = "stopped; everything finished is kept, and the same call continues"
    raise _ERRORS.get(status, Error)(what or f"nas-run ended with exit code {status}")


def _watched(command: list[str], show: Callable[[str], None]) -> tuple[int, bytes, str]:
    """Runs nas-run on a terminal of its own, since there it says all the time how far it is. If
    this process ends, that terminal hangs up, and nas-run stops as it does on SIGHUP.

    @param show  receives each status that differs from the one before.
    @return  exit code, the end of what it printed, and its standard error.
    """
    ours, theirs = os.openpty()
    said = b""
    with tempfile.TemporaryFile() as errors:
        try:
            ioctl(theirs, TIOCSWINSZ, pack("HHHH", 24, 1000, 0, 0))  # wide: lines are whole
            environment = {**os.environ, "TERM": "xterm"}  # ours may be dumb
            environment.pop("COLUMNS", None)  # of the caller's terminal
            process = os.posix_spawn(command[0], command, environment, setsid=True, file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0),  # becomes its terminal
                (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, errors.fileno(), 2)])
            os.close(theirs)
            while True:
                try:
                    part = _read(ours)
                    if not part:
                        break
                    said += part
                    if found := _STATUS.findall(said):
                        show(_status(*(line.decode(errors="replace") for line in found[-1])))
                    if (end := said.rfind(_REWRITTEN)) >= 0:
                        said = said[end + len(_REWRITTEN):]
                except KeyboardInterrupt:
                    os.kill(process, signal.SIGINT)  # a second one ends it at once
        finally:
            os.close(ours)  # hangs up
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        errors.seek(0)
        return status, said.replace(b"\r\n", b"\n"), errors.read().decode(errors="replace")


def _read(terminal: int) -> bytes:
    """What has come; empty where nothing will."""
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so where nobody holds the other end
        return b""


def _status(times: str, quality: str) -> str:
    """nas-run's two lines as one: what is done, time left, the best."""
    parts = [part for part in times.split(", ")
             if not re.search(r"^gen | (elapsed|trained|known)$", part)]
    parts.sort(key=lambda part: " left" in part or "unknown" in part)
    best = quality.partition(" | ")[0]
    return ", ".join([*parts, best] if re.match("best |HV ", best) else parts)


class _Line:
    """A line of standard output that is rewritten; notebooks do as terminals at a carriage return.
    """

    def __init__(self) -> None:
        self.shown = self.last = ""
        self.at = 0.0

    def show(self, text: str) -> None:
        """Shows a text in place of the one before, not more often than an eye can follow."""
        self.last = text
        if time.monotonic() - self.at >= _SECONDS_BETWEEN_LINES:
            self._write()

    def end(self) -> None:
        """Leaves the last text."""
        if self.last:
            self._write()
            print(flush=True)

    def _write(self) -> None:
        text = shortened(self.last, shutil.get_terminal_size().columns - 1)
        if text != self.shown:
            print("\r" + text.ljust(len(self.shown)), end="", flush=True)
        self.shown, self.at = text, time.monotonic()
