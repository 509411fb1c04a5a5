"""Texts that are no UTF-8, or whose words are no words: refused, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from attnas.errors import InputError

_LOOKED = 1 << 20  # bytes that decide about an encoding
_SPACE = b" \t\n\v\f\r"
_BLOCK = 1 << 22
_END = re.compile(rb"[ \n]")
_CONTROL = bytes([*range(0x09), *range(0x0E, 0x1B)])

# Scripts without blanks: syllables (marks of Han, kana, Han), and letters (Thai, Lao, Tibetan,
# Myanmar, Khmer), with how many of them a word has at most on average where they are separated.
_SCRIPTS = (("\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af", 3),
            ("\u0e00-\u109f\u1780-\u17ff", 8))
_ENDS = "\x85\u2028\u2029"
_BLANKS = "\xa0\u1680\u2000-\u200b\u202f\u205f\u3000"


def blocks(text: bytes, ends: re.Pattern[bytes] = _END) -> Iterator[bytes]:
    """A text in pieces of some MB, which end as a pattern does: behind a blank or end of line."""
    start = 0
    while start < len(text):
        found = ends.search(text, start + _BLOCK)
        end = found.end() if found else len(text)
        yield text if end - start == len(text) else text[start:end]
        start = end


def first_foreign_byte(text: bytes) -> int | None:
    """Where the first byte is that is no UTF-8. A text whose last character was cut, as enwik8's
    may be, has none."""
    if text.isascii():
        return None
    start = 0
    for block in blocks(text):
        try:
            block.decode()
        except UnicodeDecodeError as error:
            at = start + error.start
            rest = text[at:at + 4]
            length = _sequence_length(rest[0])
            cut = 0 < at and at + length > len(text) and all(0x80 <= b < 0xC0 for b in rest[1:])
            return None if cut else at
        start += len(block)
    return None


def _sequence_length(first: int) -> int:
    """Bytes of the sequence of UTF-8 that a byte begins; 0 for one that begins none."""
    ranges = ((0x00, 0x7F, 1), (0xC2, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xF4, 4))
    return next((length for low, high, length in ranges if low <= first <= high), 0)


def _number(text: bytes, kinds: bytes) -> int:
    """How many bytes are of some kinds."""
    return len(text) - len(text.translate(None, kinds))


def _by_control_bytes(quarter: float, control: list[int]) -> str:
    """UTF-16 or UTF-32, or nothing, by how many control bytes are in each place of four."""
    def mostly(*places: int) -> bool:
        return quarter >= 1 and all(control[place] > 0.9 * quarter for place in places)
    if mostly(2, 3) or mostly(0, 1):
        return "UTF-32LE" if mostly(2, 3) else "UTF-32BE"
    even, odd, half = control[0] + control[2], control[1] + control[3], 2 * quarter
    if half < 1:
        return ""
    if odd > 0.3 * half and odd > 4 * even:
        return "UTF-16LE"
    return "UTF-16BE" if even > 0.3 * half and even > 4 * odd else ""


def wide_encoding(text: bytes) -> str:
    """UTF-16 or UTF-32 by byte-order mark, or by the control bytes that such a text has in every
    second or fourth place; empty for others."""
    marks = ((b"\xff\xfe\0\0", "UTF-32LE"), (b"\0\0\xfe\xff", "UTF-32BE"),
             (b"\xff\xfe", "UTF-16LE"), (b"\xfe\xff", "UTF-16BE"))
    for mark, name in marks:
        if text.startswith(mark):
            return name
    looked = text[:_LOOKED]
    return _by_control_bytes(len(looked) / 4, [_number(looked[i::4], _CONTROL) for i in range(4)])


def _place(text: bytes, position: int) -> str:
    return f"line {1 + text[:position].count(10)}"


def require_encoding(what: str, text: bytes, as_bytes: bool, warnings: list[str]) -> None:
    """Refuses UTF-16 and UTF-32, and what is no UTF-8, which of a text taken as bytes is a warning.

    @throws InputError
    """
    if wide := wide_encoding(text):
        raise InputError(f"{what} is {wide}{_conversion(wide)}")
    foreign = first_foreign_byte(text)
    if foreign is None:
        return
    told = f"{what} is no UTF-8 (byte 0x{text[foreign]:02X} in {_place(text, foreign)})"
    if not as_bytes:
        raise InputError(told + _conversion("ENCODING") + ", which `file -i` names")
    warnings.append(told + ": its bytes are taken as they are")


def _conversion(encoding: str) -> str:
    return f"; must be UTF-8: iconv -f {encoding} -t UTF-8"


@dataclass
class Found:
    """What a pattern finds: how often, the first character of the first, and its line."""

    pattern: re.Pattern[str]
    number: int = 0
    first: str = ""
    line: int = 0

    def scan(self, block: str, lines: int) -> None:
        """Adds those of a block, behind so many ends of lines."""
        for match in self.pattern.finditer(block):
            if not self.number:
                self.first = match[0][0]
                self.line = 1 + lines + block.count("\n", 0, match.start())
            self.number += 1

    @property
    def told(self) -> str:
        return f"{self.number} character" + ("s" if self.number != 1 else "")

    @property
    def name(self) -> str:
        return "\\r" if self.first == "\r" else f"U+{ord(self.first):04X}"


def _kind(characters: str) -> Found:
    return Found(re.compile(f"[{characters}]"))


class _Scan:
    """What matters of a text of words."""

    def __init__(self, text: bytes):
        self.lines = self.words = self.characters = 0
        self.nuls, self.returns = _kind("\0"), Found(re.compile("\r(?!\n)"))
        self.ends, self.blanks, self.marks = _kind(_ENDS), _kind(_BLANKS), _kind("\ufeff")
        self.scripts = [(_kind(characters), Found(re.compile(f"[{characters}][^ \t-\r]*")), most)
                        for characters, most in _SCRIPTS]
        for block in blocks(text):
            self._add(block)

    def _add(self, block: bytes) -> None:
        read = block.decode(errors="ignore")
        kinds = [self.nuls, self.returns]
        if not block.isascii():
            kinds += [self.ends, self.blanks, self.marks]
            kinds += [found for pair in self.scripts for found in pair[:2]]
        for kind in kinds:
            kind.scan(read, self.lines)
        self.lines += read.count("\n")
        self.words += len(block.split())
        self.characters += len(read) - _number(block, _SPACE)


def require_plain_text(what: str, text: bytes, piece: str, warnings: list[str]) -> None:
    """require_encoding(), and of `piece` "word" refuses a text that would be taken for another:
    with NUL bytes, other ends of lines, or of a script that puts no blanks between words. Warns of
    characters for blanks or ends of lines that separate no words, and of byte-order marks in it.

    @throws InputError
    """
    require_encoding(what, text, piece == "byte", warnings)
    if piece != "word":
        return
    if b"\x1b$" in text or b"\x1b(J" in text:
        raise InputError(f"{what} is ISO-2022-JP{_conversion('ISO-2022-JP')}")
    scan = _Scan(text)
    if scan.nuls.number:
        raise InputError(f"{what} has {scan.nuls.number} NUL bytes, the first in "
                         f"line {scan.nuls.line}: must be text")
    for end in (scan.returns, scan.ends):
        if end.number > scan.lines:
            alone = " alone" if end is scan.returns else ""
            raise InputError(f"{what} ends its lines with {end.name}{alone}, must end them with "
                             "\\n: it is cut there")
    _require_blanks(what, scan, warnings)
    for found, kind in ((scan.ends, "end lines elsewhere"), (scan.blanks, "are blanks elsewhere"),
                        (scan.marks, "are byte-order marks within the text")):
        if found.number:
            warnings.append(f"{what} has {found.told} that {kind} (the first {found.name} in line "
                            f"{found.line}): they are parts of words, which white space of ASCII "
                            "alone separates")


def _require_blanks(what: str, scan: _Scan, warnings: list[str]) -> None:
    """Refuses what has no blanks between its words."""
    must = (": must have blanks between its words, or data.tokenizer = byte, char or bpe, which "
            "need none")
    of_all = f" and {scan.words} words between blanks"
    for found, words, most in scan.scripts:
        if found.number <= most * words.number or found.number < 0.02 * scan.characters:
            continue
        told = (f"{what} has {found.told} of a script without blanks between words (the first "
                f"{found.name} in line {found.line}){of_all}")
        if found.number >= 0.33 * scan.characters:
            raise InputError(told + must)
        warnings.append(told + ", some of which are whole sentences; data.unit = byte needs no "
                        "blanks")
    if scan.characters > 200 * scan.words and scan.characters > 1000:
        raise InputError(f"{what} has {scan.characters} characters{of_all}{must}")
