"""What a token of a text is: words, characters, letters of an alphabet, bytes, pairs of bytes.

UNITS has a maker for each. Ids are decided by the training split and the settings alone: ties are
broken by a stated rule, since the ids are part of every evaluation's identity.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnas.errors import InputError

from . import byte_pairs
from .encodings import blocks
from .tokenizer import Ids, Tokenizer

UNKNOWN = "<unk>"
_SPACES = re.compile(r"[ \t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")


@dataclass(frozen=True)
class Unit:
    """A kind of tokenizer, before it has seen a text."""

    many: str  # what its tokens are called
    train: Callable[[bytes, Mapping[str, Any]], Tokenizer]  # @throws InputError  of settings
    piece: str = "byte"  # what a text must be, and where it may be cut: "byte", "character", "word"
    file: str | None = None
    settings: tuple[str, ...] = ()  # that no other has


class _Known(dict):
    """Ids of tokens; of others that of <unk>."""

    def __init__(self, ids: Mapping[Any, int], unknown: int):
        super().__init__(ids)
        self.unknown = unknown

    def __missing__(self, token: object) -> int:
        return self.unknown


def _words(train: bytes, settings: Mapping[str, Any]) -> Tokenizer:
    """Special tokens, then words by falling count, ties in the order of first showing."""
    published = settings["layout"] == "published"
    special = [*(["<pad>"] if published else []), UNKNOWN, "<eos>"]
    size = settings["vocabulary"]
    if size != 0 and size <= len(special):
        raise InputError(f"data.vocabulary = {size}, must be 0 (every word) or at least "
                         f"{len(special) + 1}")
    counts: Counter[bytes] = Counter()
    for block in blocks(train):
        counts.update(block.split())
    del counts[UNKNOWN.encode()]
    words = sorted(counts, key=counts.__getitem__, reverse=True)
    words = [name.encode() for name in special] + words[:size - len(special) if size else None]
    end, unknown = len(special) - 1, len(special) - 2
    ids = _Known({word: i for i, word in enumerate(words) if i > end}, unknown)

    def encode_words(text: bytes) -> Ids:
        return array("i", map(ids.__getitem__, text.split()))

    def encode(text: bytes) -> Ids:
        found, left = array("i"), len(text)
        for block in blocks(text):
            left -= len(block)
            for line in block.split(b"\n"):
                found.extend(map(ids.__getitem__, line.split()))
                found.append(end)
            if left or block.endswith(b"\n"):
                found.pop()  # the line goes on, or is none
        return found

    def keeps(text: bytes) -> bool:
        return all(b" ".join(line.split()) == line for line in text.split(b"\n"))
    return Tokenizer(len(words), end, encode, b"".join(word + b"\n" for word in words),
                     pad=0 if published else -1, unknown=unknown, end=end,
                     encode_words=encode_words, keeps=keeps)


def _characters(characters: list[str], normal: bool) -> Tokenizer:
    """<unk>, then characters in their order; whatever is no UTF-8 is <unk>, too."""
    tokens = [UNKNOWN, *characters]
    ids = _Known({c: i + 1 for i, c in enumerate(characters)}, 0)

    def encode(text: bytes) -> Ids:
        found = array("i")
        for read in _normal_blocks(text, normal):
            found.extend(map(ids.__getitem__, read))
        return found
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": {"type": "NFC"} if normal else None,
            # Of Oniguruma: any character, ends of lines too.
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?m:.)"},
                              "behavior": "Isolated", "invert": False},
            "post_processor": None, "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)},
                      "unk_token": UNKNOWN}}
    text = json.dumps(file, indent=1, ensure_ascii=False) + "\n"

    def keeps(given: bytes) -> bool:
        return "".join(_normal_blocks(given, normal)).encode(errors="surrogateescape") == given
    return Tokenizer(len(tokens), ids["\n"], encode, text.encode(), unknown=0, keeps=keeps)


def _normal_blocks(text: bytes, normal: bool) -> Iterable[str]:
    """A text as characters, in NFC if `normal`; bytes that are no UTF-8 as lone surrogates. Blocks
    end with ASCII, behind which NFC begins anew."""
    for block in blocks(text):
        read = block.decode(errors="surrogateescape")
        yield unicodedata.normalize("NFC", read) if normal else read


def _learned_characters(train: bytes, settings: Mapping[str, Any]) -> Tokenizer:
    """The most frequent characters, ties by code point: no more than the vocabulary has room for,
    and as many as make up the share `coverage` of the text."""
    size = settings["vocabulary"]
    if size == 1:
        raise InputError("data.vocabulary = 1, must be 0 (every character) or at least 2")
    counts: Counter[str] = Counter()
    for read in _normal_blocks(train, True):
        counts.update(read)
    wanted = settings["coverage"] * counts.total()
    known = [c for c in counts if not "\udc80" <= c <= "\udcff"]
    characters: list[str] = []
    covered = 0
    for character in sorted(known, key=lambda c: (-counts[c], c)):
        if covered >= wanted or size > 0 and len(characters) == size - 1:
            break
        characters.append(character)
        covered += counts[character]
    return _characters(characters, normal=True)


def _residues(_: bytes, settings: Mapping[str, Any]) -> Tokenizer:
    """The alphabet is given: <unk>, the end of a line, then the letters in their order."""
    alphabet = settings["alphabet"]
    letters = ["\n"]
    for letter in alphabet:
        if _SPACES.match(letter) or letter in letters or "\ud800" <= letter <= "\udfff":
            raise InputError(f"data.alphabet = '{alphabet}': character {len(letters)}, must be a "
                             "letter that is there once, and no white space")
        letters.append(letter)
    if len(letters) < 2:
        raise InputError("data.alphabet is empty, must have a letter")
    return _characters(letters, normal=False)


def _bytes(_: bytes, __: Mapping[str, Any]) -> Tokenizer:
    def encode(text: bytes) -> Ids:
        ids = array("i", [0]) * len(text)
        memoryview(ids).cast("B")[0 if sys.byteorder == "little" else 3::4] = text
        return ids
    return Tokenizer(256, ord("\n"), encode)


def _pairs(train: bytes, settings: Mapping[str, Any]) -> Tokenizer:
    """Learned pairs, or a published tokenizer."""
    if settings["tokenizer_file"]:
        return byte_pairs.read(settings["tokenizer_file"], settings["pretokens"])
    size = settings["vocabulary"]
    if size != 0 and size < 257:
        raise InputError(f"data.vocabulary = {size}, must be 0 (every pair that is there twice) or "
                         "at least 257")
    return byte_pairs.train(train, size, settings["pretokens"])


UNITS = {
    "bpe": Unit("byte pairs and bytes", _pairs, file="tokenizer.json",
                settings=("pretokens", "tokenizer_file")),
    "byte": Unit("bytes", _bytes),
    "char": Unit("characters", _learned_characters, "character", "tokenizer.json", ("coverage",)),
    "residue": Unit("residues", _residues, "character", "tokenizer.json", ("alphabet",)),
    "word": Unit("words", _words, "word", "vocabulary.txt"),
}
