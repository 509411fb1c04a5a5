"""Folders of ids: made once, kept by all that they depend on (see attnas.prepare)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnas.errors import InputError

from . import data_sets, images, texts
from .corpora import TEXTS
from .files import SPLITS, fresh, publish, staging, write_file
from .tokenizer import Ids
from .units import UNITS

FORMAT = 1
KEPT_BYTES = 20 << 30
_DAY = 86400
Texts = tuple[bytes, ...]


def defaults(name: str) -> dict[str, Any]:
    """The settings of a corpus where nothing else is said. @throws InputError  if there is none."""
    if name == "text_file":
        return texts.OF_TEXTS | texts.OF_FILES
    if name == "fashion_mnist":
        return dict(images.DEFAULTS)
    if name not in TEXTS:
        raise InputError(f"corpus: unknown '{name}', known: "
                         f"{', '.join(sorted([*TEXTS, 'fashion_mnist', 'text_file']))}")
    tokenizer = TEXTS[name].tokenizer
    return texts.OF_TEXTS | {"tokenizer": "unit" if tokenizer == "word" else tokenizer}


class _Source:
    """A corpus before it is ids: its texts, what they are, and what is warned of."""

    def __init__(self, name: str, settings: Mapping[str, Any], data: Path):
        self.name, self.settings = name, settings
        self.warnings: list[str] = []
        if name == "text_file":
            unit = UNITS.get(texts.unit_of(settings), UNITS["byte"])
            self.text, self.splits = texts.read_own(settings, unit.piece, self.warnings)
            self.sha256 = data_sets.sha256_of(self.splits)
            return
        files, self.splits, self.sha256 = data_sets.read(name, data)
        self.text = TEXTS[name].text if name in TEXTS else ""
        if name in TEXTS:
            texts.require_known(files, self.splits)

    def key(self, context: int) -> str:
        """A digest of all that the folder depends on."""
        has_context = self.settings.get("layout") == "published" or self.name == "fashion_mnist"
        file = self.settings.get("tokenizer_file")
        parts = [FORMAT, self.name, self.text, self.sha256, dict(self.settings),
                 context if has_context else None, list(map(len, self.splits)),
                 hashlib.sha256(Path(file).read_bytes()).hexdigest()
                 if file and Path(file).is_file() else None]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """What the card says of it."""
        return {"name": self.name, "settings": dict(self.settings),
                "bytes": {split: len(text) for split, text in zip(SPLITS, self.splits)},
                "source_sha256": self.sha256, "warnings": self.warnings}

    def prepared(self, context: int) -> texts.Prepared:
        """@throws InputError"""
        if self.name == "fashion_mnist":
            return _pictures(self.settings, self.splits, context)
        return texts.encode(self.name, self.text, self.splits, self.settings, context)


def _pictures(settings: Mapping[str, Any], splits: Texts, context: int) -> texts.Prepared:
    form = images.Form.of(settings, context)
    most = (settings["train_examples"], settings["valid_examples"], 10_000)
    examples = {split: form.examples(bytes_, number)
                for split, bytes_, number in zip(SPLITS, splits, most)}
    made = texts.Prepared(form.description, "", "", form.vocabulary,
                          {split: ids for split, (ids, _) in examples.items()}, layout="examples")
    if not form.asks_pixels:
        made.labels = {split: labels for split, (_, labels) in examples.items()}
        made.classes = images.CLASSES
    return made


def prepare_corpus(name: str, settings: Mapping[str, Any], context: int, data: Path,
                   kept: Path | None = None) -> Path:
    """The folder of a corpus, made where it is not kept already as KEPT/HASH.

    @param settings  others have their defaults.   @param kept  .prepared of the data folder, or,
        where that cannot be written, of the user's cache.
    @throws InputError  if something was given wrongly; MachineError if the disk is full, say.
    """
    settings = _complete(name, settings)
    if name == "fashion_mnist":
        images.Form.of(settings, context)
    source = _Source(name, settings, data)
    if name != "fashion_mnist":
        texts.require_settings(settings, context)
    key = source.key(context)
    kept = kept or _kept_folder(data)
    if is_whole(kept / key):
        with suppress(OSError):
            os.utime(kept / key)
        return kept / key
    made = source.prepared(context)
    with staging(kept, key) as stage:
        ready = fresh(stage, "ready")
        _write(ready, source.facts(), made, context)
        if not is_whole(kept / key):  # another process may be first
            shutil.rmtree(kept / key, ignore_errors=True)
        publish(ready, kept / key)
    _trim(kept)
    return kept / key


def _trim(kept: Path) -> None:
    """Removes what was not used for longest, until KEPT_BYTES are left or all was used today."""
    found = sorted((-folder.stat().st_mtime, folder) for folder in kept.iterdir()
                   if is_whole(folder))
    size = 0
    for used, folder in found:
        size += sum(file.stat().st_size for file in folder.iterdir())
        if size > KEPT_BYTES and time.time() + used > _DAY:
            shutil.rmtree(folder, ignore_errors=True)


def _kept_folder(data: Path) -> Path:
    place = data.absolute()
    while not place.exists():
        place = place.parent
    return (data if os.access(place, os.W_OK) else data_sets.cache_folder()) / ".prepared"


def _complete(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    settings = defaults(name)
    for key, value in given.items():
        if key not in settings:
            raise InputError(f"unknown setting '{key}', known: {', '.join(sorted(settings))}")
        kind = type(settings[key])
        if not isinstance(value, (kind, int) if kind is float else kind) or value is True:
            raise InputError(f"data.{key} = {json.dumps(value)}, must be a {kind.__name__}")
        settings[key] = kind(value)
    if str(settings.get("tokenizer")).endswith(".json"):
        settings |= {"tokenizer": "bpe", "tokenizer_file": settings["tokenizer"]}
    return settings


def is_whole(folder: Path) -> bool:
    """Whether a folder is there with its card, and its files are as long as that says."""
    try:
        card = json.loads((folder / "card.json").read_bytes())
        return card["format"] == FORMAT and "keeps" in card and all(
            (folder / f"{split}.bin").stat().st_size == 4 * card["tokens"][split]
            for split in SPLITS)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def prepare(given: list[str], tokenizer: str, settings: Mapping[str, Any],
            folder: Path) -> dict[str, Any]:
    """Writes the folder of one text, which is cut, or of three: train, valid and test.

    @param tokenizer  word, char, byte, residue or bpe, or the file of a published one.
    @return the card.   @throws InputError  also where the folder exists.
    """
    if len(given) not in (1, 3):
        raise InputError(f"{len(given)} texts, must be 1, which is cut, or 3: train, valid, test")
    if folder.exists():
        raise InputError(f"{folder} exists, must be a new folder")
    chosen = ({"tokenizer": tokenizer} if tokenizer in UNITS
              else {"tokenizer": "bpe", "tokenizer_file": tokenizer})
    files = {"path": given[0]} if len(given) == 1 else dict(zip(SPLITS, given))
    source = _Source("text_file", _complete("text_file", {**settings, **chosen, **files}), folder)
    return _write_new(folder, source.facts(), source.prepared(2))


def write_ids(folder: Path | str, ids: Mapping[str, Sequence[int]], vocabulary: int, *,
              description: str, sizes: Mapping[str, int], many: str = "tokens", unknown: int = -1,
              ) -> dict[str, Any]:
    """Writes the folder of a stream of ids for each of train, valid and test, however they were
    made: the first of each is input only.

    @param sizes  bytes of the three texts, for bits per byte.   @param unknown  id of what the
        vocabulary lacks, if there is one.   @return the card.
    @throws InputError  if an id is none, a split is missing or empty, or the folder exists.
    """
    for split in SPLITS:
        if len(ids.get(split, ())) < 2:
            raise InputError(f"{split} has {len(ids.get(split, ()))} ids, must have 2 or more")
        if not 0 <= min(ids[split]) <= max(ids[split]) < vocabulary:
            raise InputError(f"{split} has ids from {min(ids[split])} to {max(ids[split])}, must "
                             f"be in [0, {vocabulary})")
    made = texts.Prepared(description, "", many, vocabulary,
                          {split: array("i", ids[split]) for split in SPLITS},
                          (-1, unknown, -1), ids["train"][0])
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder} exists, must be a new folder")
    facts = {"name": "ids", "settings": {}, "bytes": dict(sizes), "source_sha256": "",
             "warnings": []}
    return _write_new(folder, facts, made)


def _write_new(folder: Path, facts: dict[str, Any], made: texts.Prepared) -> dict[str, Any]:
    with staging(folder.parent, folder.name) as stage:
        ready = fresh(stage, "ready")
        card = _write(ready, facts, made, 2)
        if not publish(ready, folder):
            raise InputError(f"{folder} exists, must be a new folder")
    return card


def _write(folder: Path, facts: dict[str, Any], made: texts.Prepared,
           context: int) -> dict[str, Any]:
    """Writes the files and the card that says what they are. @throws InputError  where most of a
    split is unknown; MachineError"""
    shares = _unknown_share(made)
    for split, share in shares.items():
        if share > 0.5:
            raise InputError(
                f"{facts['name']}: {100 * share:.1f} % of the {split} split are <unk>, must be at "
                "most 50 %; take a larger vocabulary, the alphabet of the text (capital and small "
                "letters differ), or data.tokenizer = bpe or byte, which know all")
    sha256 = {}

    def write(name: str, content: bytes | memoryview) -> None:
        write_file(folder / name, content)
        sha256[name] = hashlib.sha256(content).hexdigest()
    kinds = {"bin": made.ids, "lines.bin": made.lines, "labels.bin": made.labels}
    for ending, arrays in kinds.items():
        for split, numbers in arrays.items():
            write(f"{split}.{ending}", _little_endian(numbers))
    if made.tokenizer_file and made.file is not None:
        write(made.tokenizer_file, made.file)
    card = {"format": FORMAT, **facts, "description": made.description, "unit": made.unit,
            "many": made.many, "vocabulary": made.vocabulary,
            "special": dict(zip(("pad", "unknown", "end_of_sentence"), made.special)),
            "first": made.first if made.layout == "standard" else -1, "layout": made.layout,
            "context": None if made.layout == "standard" else context,
            "tokens": {split: len(ids) for split, ids in made.ids.items()},
            "unknown_share": shares, "keeps": made.keeps, "tokenizer_file": made.tokenizer_file,
            "sha256": sha256,
            "task": "classification" if made.classes else "next_token", "labels": made.classes,
            "least_nll": 0}
    write_file(folder / "card.json",
               (json.dumps(card, indent=1, ensure_ascii=False) + "\n").encode())
    return card


def _little_endian(numbers: Ids) -> memoryview:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return memoryview(numbers).cast("B")


def _unknown_share(made: texts.Prepared) -> dict[str, float]:
    unknown, head = made.special[1], made.layout == "standard"
    if unknown < 0:
        return {}
    return {split: (ids.count(unknown) - (head and made.first == unknown)) / (len(ids) - head)
            for split, ids in made.ids.items()}
