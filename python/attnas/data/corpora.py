"""`nas-data get`, `list` and `info`: where corpora are, and what is in one."""

from __future__ import annotations

import subprocess
import sys

from attnas import prepare
from attnas.command_line import did_you_mean, line_width, program_file, take_option, wrapped
from attnas.errors import InputError
from attnas.prepare import commands


def _described(words: list[str]) -> str:
    """What the library, which makes corpora, says of one; without words of which it knows: a line
    each, "NAME: SUMMARY". @throws SystemExit  where it has said what is wrong."""
    made = subprocess.run([program_file("nas-export"), "corpus", *words], check=False,
                          stdout=subprocess.PIPE)
    if made.returncode != 0:
        sys.exit(made.returncode)
    return made.stdout.decode()


def _summaries(plugins: list[str]) -> dict[str, str]:
    lines = (line.partition(": ") for line in _described(plugins).splitlines())
    return {name: summary for name, _, summary in lines}


def _require_name(words: list[str], command: str, known: list[str]) -> None:
    """Whether the first word is the corpus that a command is about."""
    if not words:
        raise InputError(f"{command}: no name given, known: {', '.join(known)}")
    if words[0] not in known:
        raise InputError(f"unknown corpus '{words[0]}', known: {', '.join(known)}"
                         + did_you_mean(words[0], known))


def get(words: list[str], plugins: list[str]) -> int:
    """Downloads a corpus, or takes it from a folder or an archive."""
    source = take_option(words, "--from")
    known = prepare.known() if words and words[0] in prepare.known() else _summaries(plugins)
    _require_name(words, "get", list(known))
    commands.get([*words, *(["--from", source] if source else [])])
    return 0


def show_list(words: list[str], plugins: list[str]) -> int:
    """Corpora that are known, and where they are."""
    known = _summaries(plugins)
    if words:
        raise InputError(f"list: '{words[0]}' is not understood")
    commands.list_([word for item in known.items() for word in item])
    return 0


def info(words: list[str], plugins: list[str]) -> int:
    """Sizes, windows, hashes, source and licence of a corpus."""
    context = take_option(words, "--context")
    known = _summaries(plugins)
    _require_name(words, "info", list(known))
    given = ["--context", context] if context is not None else []
    described = _described([*plugins, *given, *words])
    print(f"{words[0]}: {known[words[0]]}")
    commands.files(words[:1])
    print(wrapped(described, line_width()), end="")
    return 0
