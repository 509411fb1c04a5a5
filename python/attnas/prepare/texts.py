"""Three texts and settings become ids: the rules that every corpus of text shares."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnas.errors import InputError

from .encodings import require_encoding, require_plain_text
from .files import SPLITS, read_file, require_memory, shown
from .tokenizer import Ids, Tokenizer
from .units import UNITS, Unit

_MARK = b"\xef\xbb\xbf"
OF_TEXTS = {"vocabulary": 10000, "unit": "word", "tokenizer": "unit", "layout": "standard",
            "alphabet": "ACDEFGHIKLMNPQRSTVWY", "coverage": 1.0, "pretokens": "gpt2",
            "tokenizer_file": ""}
OF_FILES = {"path": "", "valid_share": 0.1, "test_share": 0.1, "train": "", "valid": "", "test": ""}


@dataclass
class Prepared:
    """What a folder will hold, split by split."""

    description: str
    unit: str
    many: str
    vocabulary: int
    ids: dict[str, Ids]
    special: tuple[int, int, int] = (-1, -1, -1)  # pad, unknown, end of sentence
    first: int = -1
    layout: str = "standard"
    tokenizer_file: str | None = None
    file: bytes | None = None  # its bytes
    lines: dict[str, Ids] = field(default_factory=dict)
    labels: dict[str, Ids] = field(default_factory=dict)
    classes: int = 0
    keeps: dict[str, bool] = field(default_factory=dict)


def unit_of(settings: Mapping[str, Any]) -> str:
    """The key of the tokenizer: what data.tokenizer says, else data.unit."""
    return settings["unit"] if settings["tokenizer"] == "unit" else settings["tokenizer"]


def require_settings(settings: Mapping[str, Any], context: int) -> Unit:
    """The unit that settings name.

    @throws InputError  if they do not fit each other: those of other tokenizers, say, which would
        have no effect.
    """
    if not 2 <= context <= 1e9:
        raise InputError(f"model.context = {context}, must be in [2, 1e+09]")
    key = unit_of(settings)
    if key not in UNITS:
        raise InputError(f"unknown tokenizer '{key}', known: {', '.join(UNITS)}")
    if settings["layout"] == "published" and key != "word":
        raise InputError(f"data.layout = published, must be standard where data.unit = {key}")
    if settings["unit"] not in (key, "word"):
        raise InputError(f"data.unit = {settings['unit']}, must be left out where data.tokenizer = "
                         f"{key}")
    if ((key in ("byte", "residue") or settings["tokenizer_file"])
            and settings["vocabulary"] not in (OF_TEXTS["vocabulary"], 0)):
        raise InputError(f"data.vocabulary = {settings['vocabulary']}, must be left out: "
                         f"{settings['tokenizer_file'] or key} has its own ids")
    for other, unit in UNITS.items():
        for name in unit.settings:
            if other != key and settings[name] != OF_TEXTS[name]:
                raise InputError(f"data.{name} = {shown(settings[name])}, must be left out where "
                                 f"data.unit = {key}: it is of {other}")
    return UNITS[key]


def encode(name: str, description: str, texts: tuple[bytes, ...], settings: Mapping[str, Any],
           context: int) -> Prepared:
    """Ids of three texts by a tokenizer that learns from the first.

    @param name  of the corpus, which begins errors.   @throws InputError  if the settings do not
        fit each other, or a split is left without a token.
    """
    unit = require_settings(settings, context)
    tokenizer = unit.train(texts[0], settings)
    key, published = unit_of(settings), settings["layout"] == "published"
    for split, text in zip(SPLITS[1:], texts[1:]):
        if tokenizer.end >= 0 and text and not text.strip(b" \t\n\v\f\r"):
            raise InputError(f"{name}: the {split} split has no {key}")
    made = Prepared(description, key, tokenizer.many or unit.many, tokenizer.size, {},
                    (tokenizer.pad, tokenizer.unknown, tokenizer.end), tokenizer.first,
                    settings["layout"], unit.file, tokenizer.file)
    for split, text in zip(SPLITS, texts):
        header = re.search(rb"^>[^\n]{,60}", text, re.MULTILINE)
        if key == "residue" and header and ">" not in settings["alphabet"]:
            raise InputError(f"{name}: the {split} split has the line "
                             f"'{header[0].decode(errors='replace')}', must be residues alone: "
                             "headers of FASTA must be left out (grep -v '^>')")
        if split != "train":
            made.keeps[split] = tokenizer.keeps(text)
        if published:
            made.ids[split], made.lines[split] = _long_lines(text, tokenizer, context)
        else:
            made.ids[split] = tokenizer.encode(text)
            made.ids[split].insert(0, tokenizer.first)
    _require_tokens(name, made, context)
    return made


def _long_lines(text: bytes, tokenizer: Tokenizer, context: int) -> tuple[Ids, Ids]:
    """The words of all lines of more than `context`, and where each begins."""
    ids, begins = array("i"), array("q")
    encode_words: Callable[[bytes], Ids] | None = tokenizer.encode_words
    assert encode_words
    for line in text.split(b"\n"):
        words = encode_words(line)
        if len(words) > context:
            begins.append(len(ids))
            ids.extend(words)
    return ids, begins


def _require_tokens(name: str, made: Prepared, context: int) -> None:
    published = made.layout == "published"
    for split in SPLITS:
        if len(made.ids[split]) > (0 if published else 1):
            continue
        what = (f"no line of more than {context} words (the context), which layout = published "
                "needs" if published else "no text")
        raise InputError(f"{name}: the {split} split has {what}")
    if made.vocabulary == sum(i >= 0 for i in made.special):
        raise InputError(f"{name}: the train split has no {made.unit} but <unk>")


def cut(text: bytes, valid_share: float, test_share: float, piece: str) -> tuple[bytes, ...]:
    """Train, valid and test of a text, which is cut at ends of lines, or where these are too far
    apart, so that a split would be empty or differ from its share by more than the half, between
    words, characters, or bytes.

    @throws InputError  if the shares leave nothing to train.
    """
    if valid_share + test_share >= 1:
        raise InputError(f"data.valid_share + data.test_share = {shown(valid_share + test_share)}, "
                         "must be less than 1")
    size = len(text)
    wanted = (int(size * (1.0 - valid_share - test_share)), int(size * (1.0 - test_share)))

    def ends(end: Callable[[int], int]) -> tuple[int, int]:
        train_end = end(wanted[0])
        return train_end, max(train_end, end(wanted[1]))

    def is_far(length: int, share: float) -> bool:
        return abs(length - share * size) > 0.5 * share * size
    train_end, valid_end = ends(lambda at: _behind(text, at, b"\n"))
    if is_far(valid_end - train_end, valid_share) or is_far(size - valid_end, test_share):
        cuts = {"word": lambda at: _behind(text, at, b" \t\n\v\f\r"),
                "character": lambda at: _begin_of_character(text, at), "byte": lambda at: at}
        train_end, valid_end = ends(cuts[piece])
    return text[:train_end], text[train_end:valid_end], text[valid_end:]


def _behind(text: bytes, position: int, bytes_: bytes) -> int:
    """Behind the first of some bytes at or after a position; the end where there is none."""
    found = re.compile(b"[" + bytes_ + b"]").search(text, position)
    return found.end() if found else len(text)


def _begin_of_character(text: bytes, position: int) -> int:
    """The first byte at or after a position that is inside no character of UTF-8. Bytes of no such
    text are characters."""
    for length in range(1, min(4, position + 1)):
        begin = position - length
        for end in range(position + 1, begin + 5):
            try:
                if len(text[begin:end].decode()) == 1:
                    return end
            except UnicodeDecodeError:
                continue
    return position


def read_own(settings: Mapping[str, Any], piece: str,
             warnings: list[str]) -> tuple[str, tuple[bytes, ...]]:
    """What a text of one's own is, and its splits: one file, or three.

    @throws InputError  naming the file, or the settings that do not fit each other.
    """
    path, *three = (settings[name] for name in ("path", *SPLITS))
    if not path and any(settings[name] != OF_FILES[name] for name in ("valid_share", "test_share")):
        raise InputError("text_file: data.valid_share, data.test_share, must be left out beside "
                         "train, valid and test: they cut path")
    if not all(three) if not path else any(three):
        raise InputError(f"text_file: data.path = '{path}', train = '{three[0]}', valid = "
                         f"'{three[1]}', test = '{three[2]}', must be path alone, or train, valid "
                         "and test without path")
    sizes = [Path(file).stat().st_size for file in (path, *three) if Path(file).is_file()]
    # Each byte has a token of int32, too; one text is there beside its splits.
    require_memory("text_file: " + (path or ", ".join(three)),
                   sum(sizes) * (5.0 if piece != "word" else 2.0 if path else 1.0))
    marked = False

    def read(setting: str) -> bytes:
        nonlocal marked
        text = read_file(settings[setting])
        if text.startswith(_MARK):  # no part of the first word
            marked, text = True, text[len(_MARK):]
        what = f"text_file: data.{setting} = {settings[setting]}"
        if not text:
            raise InputError(f"{what} is empty")
        require_plain_text(what, text, piece, warnings)
        return text
    texts = (cut(read("path"), settings["valid_share"], settings["test_share"], piece) if path
             else tuple(map(read, SPLITS)))
    return (path or three[0]) + (" without its byte-order mark" if marked else ""), texts


def require_known(files: tuple[Any, ...], texts: tuple[bytes, ...]) -> None:
    """Texts of a known corpus are UTF-8. @throws InputError  naming the file."""
    for file, text in zip(files, texts):
        require_encoding(str(file), text, False, [])
