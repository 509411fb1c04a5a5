"""The command line of nas-watch."""

from __future__ import annotations

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
them, those that begin meanwhile included: how far each is, and its best mechanism beside
the baseline. A row leads to the page of its run.

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


def _port(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) > 65535:
        raise BadInput(f"command line: --port = {text}, must be an integer in [0, 65535]")
    return int(text)


def run(arguments: list[str]) -> None:
    """Shows runs until a signal comes. Raises BadInput."""
    words = list(arguments)
    if not {"--help", "-h"}.isdisjoint(words):
        print(command_line.wrapped(_HELP + _END, command_line.line_width(), True), end="")
        return
    if "--version" in words:
        command_line.become("nas-export", ["--version"])
    command_line.require_options(words, ("--port", "--host", "--help", "--version"))
    port, host = (command_line.take_option(words, name) for name in ("--port", "--host"))
    port = _port("0" if port is None else port)
    if twice := next((word for word in words if word.startswith("-")), None):
        raise BadInput(f"command line: {twice} is no run; each option may be given once")
    if not words:
        raise BadInput(
            "command line: give a run, or a folder of runs, as in nas-watch runs/quickstart")
    if lacking := packages.missing("numpy", "starlette", "uvicorn"):
        raise BadInput(lacking)
    from .listing import WatchList
    from .server import Server
    from .state import RunWatch
    server = Server("127.0.0.1" if host is None else host, port)
    first = Path(words[0])
    one = len(words) == 1 and (not first.is_dir() or (first / "store.sqlite").exists())
    watched = RunWatch(first) if one else WatchList(words)
    print(f"watching {' '.join(words)} at {server.url}\nCtrl-C ends it", flush=True)
    server.serve(watched)


if __name__ == "__main__":
    sys.exit(command_line.run_main("nas-watch", lambda: run(sys.argv[1:])))
