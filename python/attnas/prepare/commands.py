"""What nas-data says of texts: the commands get and list, and the files of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from attnas.command_line import human_bytes, line_width, printable, take_option, wrapped
from attnas.errors import InputError

from . import data_sets
from .downloads import Progress

Row = tuple[str, str]


def shown(rows: Sequence[Row]) -> None:
    """Prints "  NAME      VALUE", a line each."""
    for name, value in rows:
        sys.stdout.write(wrapped(f"  {name:<9} {printable(value)}\n", line_width()))


def get(words: list[str]) -> None:
    """NAME [--from PATH]: puts a data set into the data folder, and says so."""
    source = take_option(words, "--from")
    name, *rest = words
    if rest:
        raise InputError(f"get: '{rest[0]}' is not understood")
    if name not in data_sets.known():
        print(f"{name} needs no download")
        return
    got = data_sets.get(name, data_sets.default_folder(), source, _progress())
    for warning in got.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{name} is {'already' if got.already_present else 'now'} in {got.folder}")
    if not got.already_present:
        shown([("source", got.provenance.source),
               ("content", f"SHA-256 {got.provenance.content_sha256}"),
               ("licence", data_sets.known()[name].licence)])


def _progress() -> Progress | None:
    """On a terminal a line says how far a transfer is."""
    if not sys.stderr.isatty():
        return None

    def show(address: str, received: int, total: int) -> None:
        of = f" of {human_bytes(total)}" if total else ""
        end = "\n" if received == total else ""
        sys.stderr.write(f"\r\x1b[K{human_bytes(received)}{of}  {address}"[:line_width()] + end)
    return show


def list_(words: list[str]) -> None:
    """KEY SUMMARY ...: corpora, and where those are that are data sets."""
    folder = data_sets.default_folder()
    for key, summary in zip(words[::2], words[1::2]):
        print(key)
        shown([("what", summary)])
        data_set = data_sets.known().get(key)
        if not data_set:
            shown([("where", "needs no download")])
            continue
        files = data_sets.find(key, folder)
        how = f"nas-data get {key}{'' if data_set.sources else ' --from PATH'}"
        shown([("in", f"{data_set.language}, {human_bytes(data_set.bytes)}"),
               ("terms", data_set.licence),
               ("where", str(files[0].parent) if files else f"not in {folder}; {how}")])


def files(words: list[str]) -> None:
    """NAME: folder, source and size of a data set; nothing of other corpora."""
    name, = words
    data_set = data_sets.known().get(name)
    if not data_set:
        return
    found, texts, sha256 = data_sets.read(name, data_sets.default_folder())
    recorded = data_sets.provenance(found)
    shown([("folder", str(found[0].parent)),
           ("source", recorded.source if recorded else "the user's own files"),
           ("licence", data_set.licence), ("content", f"SHA-256 {sha256}")])
    if name == "fashion_mnist":
        return
    for split, text in zip(("train", "valid", "test"), texts):
        lines = text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
        shown([(split, f"{len(text.split()):,} tokens in {lines:,} lines, "
                       f"{human_bytes(len(text))}")])
    kinds = len(set(texts[0].split()) | {b"<unk>", b"<eos>"})
    shown([("types", f"{kinds:,} in train, with <unk> and <eos>")])
