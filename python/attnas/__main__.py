"""attnas COMMAND ...: commands of the Python package that are no program of their own."""

import importlib
import sys

USAGE = """attnas: is a change better, and what prepares for searches and trainings of attnas

Usage: attnas COMMAND

Commands:
  expected FOLDER -o FILE
                          what transformers computes of a checkpoint, for nas-model check
  judge --baseline COMMAND --candidate COMMAND --metric PATTERN [--within 1%]
                          is a change of any training better? In pairs of equal seeds
  prepare TEXT... --tokenizer NAME -o FOLDER
                          turns texts into token ids, which corpus: ids reads
  convert-page RUN [CONTROL ...] [--cache 50%] [-o PAGE]
                          which layers of a converted model must attend, as a page

attnas COMMAND --help says more. Programs: nas-run, nas-train, nas-data, nas-model and others.
"""
COMMANDS = {"convert-page": "placement", "expected": "expected", "judge": "judge.__main__",
            "prepare": "prepare.__main__"}


def main(words: list[str]) -> int:
    """Carries out a command line; returns the exit code."""
    if words[:1] and words[0] in COMMANDS:
        return importlib.import_module(f"attnas.{COMMANDS[words[0]]}").main(words[1:])
    if words[:1] in (["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    given = f"unknown command '{words[0]}'" if words else "no command given"
    print(f"attnas: {given}, known: {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


def console() -> int:
    """The script that a wheel installs."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(console())
