"""Programs and the types of their command-line arguments."""

import argparse
import functools
import inspect
import pathlib
import sys
import warnings
from collections.abc import Callable

from attnas.command_line import BAD_INPUT, MACHINE_FAILED, printable
from attnas.errors import MachineError

from .digest import BadInput


def program(main: Callable[[list[str]], None]) -> Callable[[list[str]], int]:
    """A script's main, which from now on returns the exit code: 2 for bad input and 75 for a full
    disk, which are said.
    What comes of values too large to be squared the pages say; NumPy does not."""
    @functools.wraps(main)
    def run(arguments: list[str]) -> int:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                main(arguments)
        except (BadInput, MachineError) as error:
            print(f"{pathlib.Path(inspect.getfile(main)).name}: {printable(str(error))}",
                  file=sys.stderr)
            return MACHINE_FAILED if isinstance(error, MachineError) else BAD_INPUT
        return 0
    return run


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}, must be an integer of at least 1")
    return int(text)


def ascending(text: str) -> list[int]:
    """Integers of at least 1 by commas, ascending."""
    values = [positive(part) for part in text.split(",")]
    if values != sorted(set(values)):
        raise argparse.ArgumentTypeError(f"{text}, must be ascending, each once")
    return values
