"""The command line of nas-watch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from attnas import command_line
from attnas.analysis import packages
from attnas.analysis.digest import BadInput

_HELP = """\
nas-watch: shows runs in the browser, while other processes write them and after their end

Usage: nas-watch RUN [OPTIONS]
   or: nas-watch FOLDER... [OPTIONS]

RUN is a run's folder, or its store.sqlite. Prints the address of a page that follows the
run: how far it is, what trains, the front, learning curves, the latest evaluations. Only
who knows the address can read it. Reads the run and changes nothing of it. Ctrl-C, or another
signal to stop, ends it with exit code 0.

Of a FOLDER that holds runs, at most three folders deep, or of several runs, the page lists
them, those that begin meanwhile included: how far each is, its best mechanism beside the
baseline, and a picture of their best values so far. A row leads to the page of its run.

Examples:
  $ nas-watch runs/quickstart
  $ nas-watch runs/quickstart --port 8080
  $ nas-watch runs

Options:
  --port arg            where to listen (default: 0, any port that is free)
  --host arg            address to listen at, or localhost (default: 127.0.0.1,
                        for this machine alone)
  -h [ --help ]         print this text
  --version             print the version
"""
_END = command_line.HELP_END.replace(command_line.STOPPED_LINES, "")  # a signal ends it with 0
_OPTIONS = ("port", "host", "help", "version")
_SWITCHES = ("help", "version")


def _refused(why: str) -> BadInput:
    return BadInput(f"command line: {why}; nas-watch --help lists the options")


def _option(word: str) -> str:
    """The one that is named by a word, or by its beginning."""
    if word == "-h":
        return "help"
    found = [name for name in _OPTIONS if word.startswith("--") and name.startswith(word[2:])]
    if not found:
        raise _refused(f"unrecognised option '{word}'")
    if len(found) > 1:
        names = ", and ".join(f"'--{name}'" for name in found[::-1])
        raise _refused(f"option '{word}' is ambiguous and matches {names}")
    return found[0]


def _parsed(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by name, and the words between them. Raises BadInput."""
    given: dict[str, str] = {}
    words, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return given, words + rest
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        word, equals, text = word.partition("=")
        name = _option(word)
        if name in given:
            raise _refused(f"option '--{name}' cannot be specified more than once")
        if name in _SWITCHES:
            if equals:
                raise _refused(f"option '--{name}' does not take any arguments")
        elif equals and not text:
            raise _refused(f"the argument for option '--{name}' should follow immediately after "
                           "the equal sign")
        elif not equals and not rest:
            raise _refused(f"the required argument for option '--{name}' is missing")
        elif not equals:
            text = rest.pop(0)
            if not text:
                raise BadInput(f"command line: --{name} is empty, must have a value or be left out")
        given[name] = text
    return given, words


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        raise BadInput(f"command line: the argument ('{text}') for option '--port' is invalid, "
                       "must be an integer") from None
    if not 0 <= port <= 65535:
        raise BadInput(f"command line: --port = {port}, must be in [0, 65535]")
    return port


def run(arguments: list[str]) -> None:
    """Shows runs until a signal comes. Raises BadInput."""
    given, words = _parsed(arguments)
    port = _port(given.get("port", "0"))
    if "help" in given:
        print(command_line.wrapped(_HELP + _END, command_line.line_width(), True), end="")
        return
    if "version" in given:
        subprocess.run([command_line.program_file("nas-export"), "--version"], check=True)
        return
    if not words:
        raise BadInput(
            "command line: give a run, or a folder of runs, as in nas-watch runs/quickstart")
    if lacking := packages.missing("starlette", "uvicorn"):
        raise BadInput(lacking)
    from .listing import WatchList
    from .server import Server
    from .state import RunWatch
    exporter = Path(command_line.program_file("nas-export"))  # of the same build
    os.environ["PATH"] = f"{exporter.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    server = Server(given.get("host", "127.0.0.1"), port)
    first = Path(words[0])
    one = len(words) == 1 and (not first.is_dir() or (first / "store.sqlite").exists())
    watched = RunWatch(first) if one else WatchList(words)
    print(f"watching {' '.join(words)} at {server.url}\nCtrl-C ends it", flush=True)
    server.serve(watched)


if __name__ == "__main__":
    sys.exit(command_line.run_main("nas-watch", lambda: run(sys.argv[1:])))
