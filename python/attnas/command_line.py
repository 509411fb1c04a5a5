"""What programs of this package share with those in C++: words, lines, exit codes."""

from __future__ import annotations

import argparse
import decimal
import math
import os
import pathlib
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from attnas.analysis.digest import BadInput
from attnas.errors import InputError, MachineError

BAD_INPUT, MACHINE_FAILED, STOPPED = 2, 75, 130
ANY_WIDTH = sys.maxsize  # of lines that nothing limits, as those of files and pipes

STOPPED_LINES = """\
  130  stopped (SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU): everything finished is kept,
       the same command continues
"""
HELP_END = f"""
Exit codes:
  0    done
  1    an error that should not happen
  2    bad input; nothing was changed
  3    done, but a search found nothing to re-test, or a task's gates are not passed
  75   the machine failed (full disk, input or output, memory): everything finished is
       kept, the same command continues
{STOPPED_LINES}
Environment:
  NAS_DATA_DIR      folder of the corpora; else data/ of the current folder, if there is
                    one; else attnas/ of the user's cache, $XDG_CACHE_HOME or ~/.cache
  NAS_PYTHON        the Python that prepares texts and makes pages; else that of the
                    build, and of pages the first with numpy and scipy
  OMP_WAIT_POLICY, GOMP_SPINCOUNT
                    how threads wait; PASSIVE unless one of them is set
  COLUMNS           characters of a line on a terminal, where that has more
  CUDA_VISIBLE_DEVICES, CUBLAS_WORKSPACE_CONFIG, NVIDIA_TF32_OVERRIDE
                    of CUDA, where models are trained on a GPU
"""


def run_main(program: str, body: Callable[[], int | None]) -> int:
    """Runs a program's body. What it throws becomes a sentence on standard error, headed by the
    program's name, and an exit code, as docs/reliability.md has them. @return  the exit code."""
    def tell(what: object, code: int) -> int:
        shown = sys.stderr.isatty() and sys.stdout.isatty()
        width = line_width() if shown else ANY_WIDTH
        print(wrapped(f"{program}: {printable(str(what))}", width).rstrip("\n"), file=sys.stderr)
        return code

    _listen_to_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    try:
        code = body() or 0
        sys.stdout.flush()
        return code
    except BadInput as error:
        return tell(error, BAD_INPUT)
    except KeyboardInterrupt:
        return tell("stopped", STOPPED)
    except BrokenPipeError:  # nobody reads it any more
        _forget_output()
        return 0
    except MachineError as error:
        return tell(error, MACHINE_FAILED)
    except OSError as error:
        where = error.filename or "standard output: cannot be written"
        _forget_output()
        return tell(f"{where}: {error.strerror}", MACHINE_FAILED)
    except MemoryError:
        return tell("no memory left", MACHINE_FAILED)


def _listen_to_signals() -> None:
    def stop(_number, _frame):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, stop)


def _forget_output() -> None:
    """What could not be written is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def program_file(name: str) -> str:
    """A program of attnas: beside the one that was called, else where an installation has it.

    @throws InputError  where there is none.
    """
    from attnas.analysis import digest
    beside = pathlib.Path(os.environ.get("NAS_BIN", ""), name)
    found = str(beside) if "NAS_BIN" in os.environ and beside.is_file() else digest.program(name)
    if found is None:
        raise InputError(f"{name}, which does this, is not installed")
    return found


def become(name: str, words: Sequence[str]) -> NoReturn:
    """Lets another program of attnas take this process over."""
    found = program_file(name)
    sys.stdout.flush()
    os.execv(found, [found, *words])


def take_option(words: list[str], name: str) -> str | None:
    """Takes `--name VALUE`, or `--name=VALUE`, out of the words of a command line.

    @throws InputError  where the value is missing.
    """
    for place, word in enumerate(words):
        if word.startswith(f"{name}="):
            return words.pop(place)[len(name) + 1:]
        if word == name:
            if place + 1 == len(words):
                raise InputError(f"{name} has no value, must be followed by one")
            words.pop(place)
            return words.pop(place)
    return None


def require_options(words: Sequence[str], known: Sequence[str]) -> None:
    """@throws InputError  where a word is an option, but none of those."""
    for word in words:
        name = word.partition("=")[0]
        if word.startswith("--") and name not in known:
            hint = did_you_mean(name, known) or f", known: {', '.join(known)}"
            raise InputError(f"unrecognised option '{name}'{hint}")


class Parser(argparse.ArgumentParser):
    """Whose message on an unknown option names the nearest one."""

    def error(self, message: str) -> NoReturn:
        super().error(self.hinted(message))

    def hinted(self, message: str) -> str:
        """A message with what an unknown option was meant as."""
        found = re.search(r"unrecognized arguments: .*?(--[\w-]+)", message)
        return message + (did_you_mean(found[1], [*self._option_string_actions]) if found else "")


def did_you_mean(word: str, candidates: Sequence[str]) -> str:
    """"; did you mean NAME?" where a candidate is near enough; else nothing."""
    guess, least = "", math.inf
    for candidate in candidates:
        distance = _edit_distance(word, candidate)
        near = distance <= max(2, len(word) // 3) or _belongs_to(word, candidate)
        if near and distance < least:
            guess, least = candidate, distance
    return f"; did you mean {guess}?" if word and guess else ""


def _edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            substituted = diagonal + (letter != other)
            diagonal = row[j]
            row[j] = min(row[j] + 1, row[j - 1] + 1, substituted)
    return row[-1]


def _belongs_to(given: str, name: str) -> bool:
    """Whether what was given abbreviates a name, or goes on behind it."""
    begins_a_word = len(given) >= 3 and f"_{given}" in f"_{name}"
    initials = "".join(part[:1] for part in name.split("_"))
    goes_on = len(name) >= 3 and given.startswith(name)
    return begins_a_word or goes_on or (len(given) > 1 and given == initials)


def printable(text: str) -> str:
    """A text that may be another's, as a terminal can show it without obeying it: U+FFFD stands for
    each control character but the ends of lines and tabs, and for bytes that are no UTF-8."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


def line_width() -> int:
    """Characters that a line may have on standard output: as many as a terminal shows, at least
    20."""
    if not sys.stdout.isatty():
        return ANY_WIDTH
    width = os.get_terminal_size(sys.stdout.fileno()).columns
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        width = min(width or int(given), int(given))
    return max(20, width or 100)


def wrapped(text: str, width: int, paragraphs: bool = False) -> str:
    """A text with its lines folded at blanks. A line goes on below the beginning of its last
    column, which two blanks set apart, unless that leaves less than half of the width.

    @param paragraphs  a line that was folded goes on in the next one where that stands as far to
        the right.
    """
    if width == ANY_WIDTH:
        return text
    made, begun = [], ""  # the last line of a paragraph so far
    for line in text.splitlines():
        if begun and _indent(line) == _indent(begun):
            line = f"{begun} {line.lstrip(' ')}"
        elif begun:
            made.append(begun)
        lines = _folded(line, width, _hanging_indent(line, width))
        begun = lines.pop() if paragraphs and len(lines) > 1 else ""
        made += lines
    made += [begun] * bool(begun)
    return "".join(f"{line}\n" for line in made)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _hanging_indent(line: str, width: int) -> int:
    item = 2  # of a list; what belongs to it stands further to the right
    indent = line.rfind("  ") + 2 if "  " in line else 0
    return 2 * item if indent == item or indent > width // 2 else indent


def _folded(line: str, width: int, indent: int) -> list[str]:
    lines, line = [], line.rstrip(" ")
    while len(line) > width:
        word = _indent(line)
        end = line.rfind(" ", 0, width + 1)
        if end <= word:
            end = line.find(" ", max(width, word))
            if end < 0:
                break
        lines.append(line[:end].rstrip(" "))
        line = " " * indent + line[end:].lstrip(" ")
    return [*lines, line]


def human_bytes(size: int) -> str:
    """319 MiB, 2.50 GiB."""
    for unit, digits in (("KiB", ".0f"), ("MiB", ".0f"), ("GiB", ".2f"), ("TiB", ".4g")):
        size /= 1024.0
        if size < 1024.0:
            return f"{size:{digits}} {unit}"
    return f"{size / 1024.0:.4g} PiB"


def shortest(value: float) -> str:
    """The shortest decimal that reads back equal: 0.1, 3e-04, 1."""
    if not math.isfinite(value):
        return str(value)
    number = decimal.Decimal(repr(value)).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    exponent = number.adjusted() if number else 0
    point = "." if len(digits) > 1 else ""
    scientific = f"{'-' * number.is_signed()}{digits[0]}{point}{digits[1:]}e{exponent:+03}"
    return min(f"{number:f}", scientific, key=len)
