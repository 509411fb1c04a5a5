"""The known corpora that are texts: a row each, and how what is downloaded becomes their splits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from attnas.errors import InputError

from . import images
from .files import file_below, read_file, read_gzip

Texts = tuple[bytes, bytes, bytes]  # train, valid, test
Prepare = Callable[[Path], Texts]  # of a folder; @throws InputError  if it has not what is needed


@dataclass(frozen=True)
class Corpus:
    """A text with known sources (sources.json)."""

    text: str  # what it is, in descriptions of prepared folders
    prepare: Prepare | None = None  # none: the sources have the three files
    tokenizer: str = "word"  # by default


def deal(parts: Iterable[bytes]) -> Texts:
    """Deals the parts of a text (articles, sequences, sayings) to its splits in turn, so that what
    it is about is alike in all of them: of twenty the tenth goes to valid, the last to test.

    @throws InputError  that there are fewer than twenty.
    """
    dealt = list(parts)
    if len(dealt) < 20:
        raise InputError(f"holds {len(dealt)} parts of a text, must be at least 20")
    train = b"".join(part for i, part in enumerate(dealt) if i % 20 not in (9, 19))
    return train, b"".join(dealt[9::20]), b"".join(dealt[19::20])


def as_utf8(text: bytes) -> bytes:
    """A text with U+FFFD for each byte that is in no character of UTF-8."""
    read = text.decode(errors="surrogateescape")
    return re.sub("[\udc80-\udcff]", "\ufffd", read).encode()


def _lines(text: bytes) -> list[bytes]:
    """Lines with an end each; the last one may lack it."""
    lines = text.split(b"\n")
    return [line + b"\n" for line in (lines if lines[-1] else lines[:-1])]


def _behind(lines: Iterable[bytes], begins: Callable[[bytes], bool]) -> Iterator[bytes]:
    """Parts that begin with such a line; what comes before the first is left out."""
    part: list[bytes] = []
    for line in lines:
        if begins(line):
            if part:
                yield b"".join(part)
            part = [line]
        elif part:
            part.append(line)
    if part:
        yield b"".join(part)


def _brown(folder: Path) -> Texts:
    """500 texts ca01 .. cr09 in order of name, of WORD/TAG, cut by number of tokens; a sentence
    across a cut becomes two lines."""
    found = sorted((path for path in folder.rglob("c[a-r][0-9][0-9]") if path.is_file()),
                   key=lambda path: path.name)
    if len(found) != 500:
        raise InputError(f"holds {len(found)} texts of the Brown corpus (ca01 ... cr09), must hold "
                         "500")
    splits: list[list[bytes]] = [[], [], []]
    room = [800_000, 200_000, 1 << 62]  # words
    split = 0
    for path in found:
        for line in read_file(path).split(b"\n"):
            # A word may contain '/' itself, a tag does not.
            words = [word.rpartition(b"/")[0] if b"/" in word else word for word in line.split()]
            while words:
                taken, words = words[:room[split]], words[room[split]:]
                room[split] -= len(taken)
                if taken:
                    splits[split].append(b" ".join(taken) + b"\n")
                split += room[split] == 0 and bool(words)
    return tuple(map(b"".join, splits))


def _dictionary(folder: Path) -> Texts:
    """Articles: "Abacus \\Ab"a*cus\\, n." is the first line of one, behind an empty one."""
    before = b"\n"

    def begins(line: bytes) -> bool:
        nonlocal before
        behind_empty, before = before == b"\n", line
        return behind_empty and line[:1] not in (b" ", b"\n") and b"\\" in line
    return deal(_behind(_lines(as_utf8(read_gzip(file_below(folder, "gcide.dict.dz")))), begins))


def _sayings(folder: Path) -> Texts:
    """Separated by "%", without what colours a terminal: ESC [ ... m."""
    sayings = []
    for name in ("chinese", "song100", "tang300"):
        plain = re.sub(rb"\x1b[^m]*m?", b"", read_file(file_below(folder, name)))
        for is_end, lines in groupby(_lines(as_utf8(plain)), lambda line: line == b"%\n"):
            sayings += [] if is_end else [b"".join(lines)]
    return deal(sayings)


def _proteins(folder: Path) -> Texts:
    """FASTA: "> name" before each sequence, which may take several lines."""
    lines = _lines(read_gzip(file_below(folder, "DB.fasta.gz")))
    sequences = (b"".join(b"".join(part).split())
                 for is_name, part in groupby(lines, lambda line: line.startswith(b">"))
                 if not is_name)
    return deal(sequence + b"\n" for sequence in sequences if sequence)


def _sources(folder: Path) -> Texts:
    """Files of C in order of their paths, so that those of one folder are in all splits."""
    found = [Path(below) / name for below, _, names in os.walk(folder) for name in names
             if name.endswith((".c", ".h"))]
    texts = [as_utf8(read_file(path)) for path in sorted(found, key=lambda path: path.parts)]
    return deal(text if text.endswith(b"\n") or not text else text + b"\n" for text in texts)


def _hundred_million_bytes(name: str, text: str) -> Corpus:
    """Of Wikipedia, which the user gives, cut into 90, 5 and 5 million, as is usual."""
    def prepare(folder: Path) -> Texts:
        path = file_below(folder, name)
        found = read_file(path)
        if len(found) != 100_000_000:
            raise InputError(f"{path}: has {len(found)} bytes, must have 100000000")
        return found[:90_000_000], found[90_000_000:95_000_000], found[95_000_000:]
    return Corpus(text, prepare, "byte")


def _debian_reference(package: str, language: str) -> Corpus:
    """Debian's reference manual, 343 sections, the same ones in every language: those of valid and
    test are too. A section begins with "1.4.12. Heading", not indented."""
    def prepare(folder: Path) -> Texts:
        text = as_utf8(read_gzip(file_below(folder, f"debian-reference.{package}.txt.gz")))
        begins = re.compile(rb"(?:[0-9]+\.){3}(?![0-9])").match
        return deal(_behind(_lines(text), lambda line: bool(begins(line))))
    return Corpus(f"Debian's reference manual 2.100 in {language}", prepare, "byte")


LANGUAGES = {"de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian",
             "ja": "Japanese", "pt": "Portuguese", "zh-cn": "simplified Chinese",
             "zh-tw": "traditional Chinese"}
TEXTS = {
    "brown": Corpus("Brown corpus without tags", _brown),
    **{f"debian_reference_{package.replace('-', '_')}": _debian_reference(package, language)
       for package, language in LANGUAGES.items()},
    "enwik8": _hundred_million_bytes("enwik8", "the first 100 million bytes of Wikipedia of 2006"),
    "fortunes_zh": Corpus("Chinese sayings and poems of fortunes-zh 2.98", _sayings, "char"),
    "gcide": Corpus("GNU Collaborative International Dictionary of English 0.48", _dictionary),
    "proteins": Corpus("sequences of UniProt, as mmseqs2 14 has them for examples", _proteins,
                       "residue"),
    "sqlite": Corpus("C source of SQLite 3.40.1", _sources, "byte"),
    "text8": _hundred_million_bytes("text8",
                                    "Wikipedia of 2006 as 100 million small letters and blanks"),
    "wikitext-2": Corpus("WikiText-2, tokenised edition"),
}
PREPARATIONS: dict[str, Prepare] = {"fashion_mnist": images.prepare} | {
    name: corpus.prepare for name, corpus in TEXTS.items() if corpus.prepare}
