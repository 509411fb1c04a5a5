"""Trainings that are commands: their words, their processes, and what they print."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from attnas.command_line import did_you_mean
from attnas.errors import InputError

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
NOT_FINITE = r"[-+]?(?:nan|inf(?:inity)?)\b"
BEHIND = rf"[\s:=]+({NUMBER}|{NOT_FINITE})"
PATIENCE = 5.0  # seconds between the request to end and the end


class Metric(NamedTuple):
    """A number that a training prints: what its pattern's first group matches last."""

    pattern: str
    name: str
    higher: bool  # more is better


class Outcome(NamedTuple):
    """What a run came to: a value of each metric, or why there are none."""

    values: tuple[float, ...] | None
    failed: str
    seconds: float


def metric(text: str, higher: bool) -> Metric:
    """A metric by its pattern, or by a name that a number follows.

    @throws InputError  where the pattern is none, or could match nothing.
    """
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise InputError(f"--metric {text}: is no regular expression: {error}") from None
    if re.search(text, ""):
        raise InputError(f"--metric {text!r}: matches an empty text, must have a number in "
                         "parentheses, as 'val_loss: ([0-9.]+)'")
    pattern = text if groups else text + BEHIND
    name = re.search(r"[A-Za-z_][\w/.-]*", re.sub(r"\\.|\(.*", " ", text))
    return Metric(pattern, name[0].strip("/.-") if name else text, higher)


def found(one: Metric, text: str) -> float | str:
    """The last value of a metric in a text, or why there is none. The number where the group
    begins counts whole, 1e-3 and not 1; a NaN that is printed later in its place is the last."""
    matches = list(re.finditer(one.pattern, text, re.MULTILINE))
    end = matches[-1].end() if matches else 0
    with contextlib.suppress(re.error):  # what stands before the group may be no pattern itself
        before = one.pattern.partition("(")[0]
        if before and re.search(f"(?:{before}){NOT_FINITE}", text[end:], re.IGNORECASE):
            return f"{one.name} is not finite"
    if not matches:
        said = re.findall(r"([A-Za-z_][\w/.-]*)[\s:=]+[-+.]?\d", text)
        words = one.pattern.removesuffix(BEHIND)
        return (f"no line matches {words!r}" + " and a number behind it" * (words != one.pattern)
                + did_you_mean(one.name, said))
    whole = re.compile(NUMBER).match(text, matches[-1].start(1))
    with contextlib.suppress(ValueError, TypeError):
        value = float(whole[0] if whole else matches[-1][1])
        return value if math.isfinite(value) else f"{one.name} is not finite"
    return f"{one.name} is no number: {matches[-1][1]!r}"


class Commands:
    """Runs commands, each in a process group of its own, whose output goes to a file."""

    def __init__(self, texts: list[str], metrics: list[Metric], logs: Path,
                 timeout: float = math.inf, shell: bool = False):
        """@throws InputError  where a command cannot be run, or lacks {seed}."""
        self.texts, self.metrics, self.logs = texts, metrics, logs
        self.timeout, self.shell = timeout, shell
        self.words = [self._words(text) for text in texts]
        self._running: dict[int, subprocess.Popen] = {}
        self._lock = threading.Lock()
        self._stopped = False

    def _words(self, text: str) -> list[str]:
        try:
            words = ["/bin/sh", "-c", text] if self.shell else shlex.split(text)
        except ValueError as error:
            raise InputError(f"{text}: {str(error).lower()}") from None
        if "{seed}" not in text:
            near = re.search(r"\{\w*\}", text)
            raise InputError(f"{text}: has {near[0] if near else 'no {seed}'}, must have {{seed}} "
                             "where the seed stands: else all runs are one")
        special = [w for w in words if re.fullmatch(r"[|&;<>]+|\d?>+\S*|.*\$[({\w].*", w)] + [
            w for w in words[:1] if re.match(r"\w+=|cd$", w)]
        if special and not self.shell:
            raise InputError(f"{text}: '{special[0]}' is for a shell; add --shell, or begin with "
                             "env NAME=VALUE, or env -C FOLDER")
        if shutil.which(words[0].replace("{seed}", "1")) is None:
            raise InputError(f"{text}: no program {words[0]}"
                             + did_you_mean(words[0], ("python", "python3", "torchrun", "bash")))
        return words

    def files(self) -> dict[str, str]:
        """Digests of the files that the commands name, by which a change is found out."""
        names = {word for words in self.words for word in words if os.path.isfile(word)}
        return {name: hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16]
                for name in sorted(names) if os.path.getsize(name) < 1 << 20}

    def run(self, variant: int, seed: int, started) -> Outcome:
        """A run. @param started  is told the process's number and birth before it is waited for."""
        began = time.monotonic()
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{variant}-{seed}.log"
        words = [word.replace("{seed}", str(seed)) for word in self.words[variant]]
        with open(log, "wb") as output:
            with self._lock:
                if self._stopped:
                    raise KeyboardInterrupt
                process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=subprocess.STDOUT, start_new_session=True)
                self._running[process.pid] = process
            started(process.pid, born(process.pid))
            failed = ""
            try:
                process.wait(self.timeout if self.timeout < math.inf else None)
            except subprocess.TimeoutExpired:
                failed = f"timed out after {self.timeout:g} s"
            end(process)
        with self._lock:
            del self._running[process.pid]
        if self._stopped:
            raise KeyboardInterrupt
        seconds = time.monotonic() - began
        if not failed and process.returncode:
            failed = f"exit code {process.returncode}" if process.returncode > 0 else \
                f"signal {-process.returncode}"
        return self._judged(log, failed, seconds)

    def _judged(self, log: Path, failed: str, seconds: float) -> Outcome:
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", log.read_text("utf-8", "replace"))
        values = [] if failed else [found(one, text) for one in self.metrics]
        failed = failed or next((value for value in values if isinstance(value, str)), "")
        if failed:
            last = [line for line in text.splitlines() if line.strip()][-1:]
            failed += f" ({last[0].strip()[:200]})" if last else " (nothing printed)"
            return Outcome(None, failed, seconds)
        return Outcome(tuple(values), "", seconds)

    def stop(self) -> None:
        """Ends what runs, and starts nothing more."""
        with self._lock:
            self._stopped = True
            running = list(self._running.values())
        for process in running:
            end(process)


def end(process: subprocess.Popen) -> None:
    """Ends a process and what it has started, if anything of it is left."""
    def signalled(which) -> None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, which) if hasattr(os, "killpg") else process.terminate()

    if process.poll() is None:
        signalled(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    signalled(getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def born(pid: int) -> str:
    """When a process that runs began, as the system counts it; empty where it does not say."""
    with contextlib.suppress(OSError, IndexError):
        state, *more = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return more[18] if state != "Z" else ""
    return ""


def end_left_over(records: list[dict]) -> None:
    """Ends the process groups that a killed judgement has left, those that are these still."""
    ended = [record["run"] for record in records if "run" in record]
    for one in records:
        if "start" in one and one["start"] not in ended and one["born"] and \
                born(one["pid"]) == one["born"]:
            with contextlib.suppress(OSError):
                os.killpg(one["pid"], signal.SIGKILL)
