"""The program nas-data."""

from __future__ import annotations

import pathlib
import sys

from attnas import command_line
from attnas.analysis.words import counted
from attnas.command_line import (did_you_mean, human_bytes, line_width, printable, take_option,
                                 wrapped)
from attnas.data import packing
from attnas.data.records import is_table, store_file
from attnas.errors import InputError
from attnas.table import Table

USAGE = """nas-data: the text that models are trained on, and tables of finished training runs

Usage: nas-data COMMAND

Commands:
  list                    corpora that are known, and where they are
  get NAME [--from PATH]  downloads a corpus, or takes it from a folder or an archive
  info NAME [--context L] [SETTING=VALUE ...]
                          sizes, windows, hashes, source and licence
  gates CONFIG [KEY.PATH=VALUE ...] [--output FOLDER] [--record FILE]
                          whether attention matters on a task: a pilot that trains
                          (nas-train --gates), a verdict and a record; 3 if not
  table pack STORE|FOLDER ... --output FILE [--name NAME] [--gates FILE]
                          packs the training runs of searches into one table;
                          --gates: keeps the record of its task's gates
  table verify FILE [STORE|FOLDER ...]
                          checksum; whether it says what the runs say, and which of
                          its cells none of them has
  table info FILE         what is in a table, and how noisy it is

Examples:
  $ nas-data get brown
  $ nas-data get wikitext-2 --from wikitext-2-v1.zip
  $ nas-data info text_file path=mytext.txt vocabulary=2000
  $ nas-data gates configs/quickstart.yaml
  $ nas-data table pack runs/first runs/second --output mine.table

Options:
  --plugin FILE.so        loads a shared library with further corpora
  -h [ --help ]           print this text
  --version               print the version
"""
OPTIONS = ("--plugin", "--from", "--context", "--output", "--name", "--gates")
COMMANDS = ("gates", "get", "info", "list", "table")
MOST_LISTED = 20


def run(words: list[str]) -> int:
    """The program, but for what is common to all. @throws InputError"""
    asks_for_help = not {"--help", "-h"}.isdisjoint(words)
    if words[:1] == ["gates"] and not asks_for_help:  # pilots train, which nas-train can
        command_line.become("nas-train", ["--gates", *words[1:]])
    if asks_for_help:
        print(wrapped(USAGE + command_line.HELP_END, line_width(), paragraphs=True), end="")
        return 0
    if "--version" in words:
        command_line.become("nas-export", ["--version"])
    command_line.require_options(words, OPTIONS)
    if not words:
        print(USAGE, end="", file=sys.stderr)
        return command_line.BAD_INPUT
    plugins = []
    while (plugin := take_option(words, "--plugin")) is not None:
        plugins += ["--plugin", plugin]
    command = words.pop(0) if words else ""
    if command == "table":
        return table(words)
    if command in ("get", "info", "list"):
        from attnas.data import corpora
        does = {"get": corpora.get, "info": corpora.info, "list": corpora.show_list}
        return does[command](words, plugins)
    raise InputError(f"unknown command '{command}', known: {', '.join(COMMANDS)}"
                     + did_you_mean(command, COMMANDS))


def table(words: list[str]) -> int:
    """`nas-data table COMMAND ...`. @return  the exit code: 2 where `verify` found a difference."""
    known = {"info": info, "pack": pack, "verify": verify}
    if not words:
        raise InputError(f"table: no command given, known: {', '.join(known)}")
    if words[0] not in known:
        raise InputError(f"table: unknown command '{words[0]}', known: {', '.join(known)}")
    return known[words[0]](words[1:])


def listed(what: str, items: list[str]) -> None:
    """"WHAT:" and the items below it, the first ones of many."""
    if not items:
        return
    print(f"{what}:")
    for item in items[:MOST_LISTED]:
        print(f"  {printable(item)}")
    if len(items) > MOST_LISTED:
        print(f"  and {len(items) - MOST_LISTED} more")


def read_table(word: str) -> Table:
    """@throws InputError  where a run is named, or the file is no table that can be read."""
    if pathlib.Path(word).name == "store.sqlite" or pathlib.Path(word, "store.sqlite").exists():
        raise InputError(f"{word}: is a run, must be a table; nas-data table pack makes one of "
                         "runs")
    return Table(word)


def pack(words: list[str]) -> int:
    """Packs training runs into one table."""
    from attnas.data.info import Contents, terms
    output = take_option(words, "--output")
    if output is None:
        raise InputError("table pack: --output FILE is missing")
    file = pathlib.Path(output)
    name = take_option(words, "--name") or file.stem
    gates = take_option(words, "--gates")
    if not words:
        raise InputError("table pack: no store or folder of a run is given")
    for word in words:
        store_file(word)
    if file.is_file() and file.stat().st_size > 0 and not is_table(file):
        raise InputError(f"table pack: --output {file} is there and no table, must be a new file "
                         "or a table, which is replaced")
    packed = packing.pack(words, name)
    if own := terms(packed.content.identity.get("corpus", "")):
        packed.content.publication["corpus_licence"] = own
    if gates is not None:
        packed.content.publication["gates"] = packing.read_gates(gates, packed.content.identity)
    packing.write(packed.content, file)
    listed("left out, since a table holds mechanisms of the paper's six genes without attention "
           "dropout only", packed.left_out)
    listed("not finished yet", packed.unfinished)
    listed("missing cells", packed.missing)
    print(f"{file}: {Contents(Table(file)).size()}, {counted(len(packed.content.cells), 'cell')}, "
          f"{len(packed.missing)} missing, {human_bytes(file.stat().st_size)}")
    return 0


def verify(words: list[str]) -> int:
    """Compares a table with the runs that it was made from."""
    if not words:
        raise InputError("table verify: no table is given")
    for word in words[1:]:
        store_file(word)
    read = read_table(words[0])
    cells, met, same = packing.cells_of(read), set(), True
    print(f"{words[0]}: checksum {read.sha256} matches")
    for store in words[1:]:
        checked = packing.check(cells, store)
        listed(f"{store} differs", checked.differences)
        same, met = same and not checked.differences, met | checked.met
        print(f"{store}: {checked.cells - len(checked.differences)} of "
              f"{counted(checked.cells, 'cell')} as recorded")
    if words[1:]:
        unmet = [cell.name for place, cell in sorted(cells.items()) if place not in met]
        listed(f"{counted(len(unmet), 'cell')} of the table that none of these runs has", unmet)
    return 0 if same else command_line.BAD_INPUT


def info(words: list[str]) -> int:
    """Says what is in a table."""
    from attnas.data.info import Contents, lines
    if len(words) != 1:
        raise InputError("table info: one table must be given")
    contents = Contents(read_table(words[0]))
    print(f"{printable(contents.table.name)}: {contents.size()}")
    for name, said in lines(contents):
        print(wrapped(f"  {name:11} {printable(said)}\n", line_width()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(command_line.run_main("nas-data", lambda: run(sys.argv[1:])))
