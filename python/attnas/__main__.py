"""attnas COMMAND ...: commands of the Python package that are no program of their own."""

import sys

from attnas.prepare import __main__ as prepare

USAGE = """attnas: what prepares for searches and trainings of attnas

Usage: attnas COMMAND

Commands:
  prepare TEXT... --tokenizer NAME -o FOLDER
                          turns texts into token ids, which corpus: ids reads

attnas COMMAND --help says more. Programs: nas-run, nas-train, nas-data, nas-model and others.
"""
COMMANDS = {"prepare": prepare.main}


def main(words: list[str]) -> int:
    """Carries out a command line; returns the exit code."""
    if words[:1] and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    if words[:1] in (["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    given = f"unknown command '{words[0]}'" if words else "no command given"
    print(f"attnas: {given}, known: {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
