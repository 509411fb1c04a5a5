"""The form of results.json: names once, long lists in blocks of columns, read where they are
needed.

docs/files.md says how it is written. Records are read with names and ids in the place of numbers.
Of a long list no more than a block is in memory.
"""

from __future__ import annotations

import bisect
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, BinaryIO

VERSION = 1
_COUNT = re.compile(rb'"records":(\d+)\}$')
# Lists of blocks; "paused" and "rung_asks" are only of a search by rungs.
_LISTS = ("candidates", "evaluations", "paused", "ranking", "asks", "rung_asks", "rejected")
_NEEDED = ("candidates", "evaluations", "ranking", "asks", "rejected")


def expanded(column: Any, count: int) -> list:
    """The values of a column, one for each of `count` records."""
    if isinstance(column, list):
        if len(column) != count:
            raise ValueError(f"a column of {len(column)} values in a block of {count}")
        return column
    if "all" in column:
        return [column["all"]] * count
    parts = column["each"]
    if isinstance(parts, list):
        return [list(values) for values in zip(*(expanded(part, count) for part in parts))]
    return [dict(zip(parts, values))
            for values in zip(*(expanded(part, count) for part in parts.values()))]


class _File:
    """A file that is open as long as something reads it."""

    def __init__(self, file: BinaryIO):
        """@param file  may be closed before."""
        self._descriptor = os.dup(file.fileno())

    def read(self, place: int, length: int) -> bytes:
        """A part of it."""
        return os.pread(self._descriptor, length, place)

    def __del__(self):
        os.close(self._descriptor)


class Blocks:
    """The blocks of a list: read from a file one by one, or there already."""

    def __init__(self, file: _File | None = None):
        self.counts: list[int] = []
        self._file = file
        # place and length in the file, or the block itself
        self._where: list[tuple[int, int] | dict] = []

    def add(self, where: tuple[int, int] | dict, count: int) -> None:
        """Adds the next one."""
        self._where.append(where)
        self.counts.append(count)

    def columns(self, place: int) -> dict[str, Any]:
        """The columns of a block, see expanded()."""
        where = self._where[place]
        if isinstance(where, tuple):
            where = json.loads(self._file.read(*where))
        return where["columns"]


class Records(Sequence):
    """A list of records, in blocks. They are made when they are asked for, and not kept."""

    def __init__(self, blocks: Blocks, convert: Mapping[str, Callable[[list], list]] | None = None,
                 derived: Mapping[str, tuple[str, Callable[[list], list]]] | None = None):
        """@param convert  what becomes of the values of a column, by its key.
        @param derived  keys that follow from others: from which, and what becomes of its values in
            the file."""
        self._blocks, self._convert, self._derived = blocks, convert or {}, derived or {}
        self._starts = [0, *itertools.accumulate(blocks.counts)]
        self._last: tuple[int, list[dict]] | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    def columns(self, *keys: str) -> Iterator[tuple[list, ...]]:
        """Values by key, some records at a time."""
        for place, count in enumerate(self._blocks.counts):
            own = self._blocks.columns(place)
            yield tuple(self._column(own, key, count) for key in keys)

    def _column(self, own: dict[str, Any], key: str, count: int) -> list:
        source, convert = self._derived.get(key, (key, self._convert.get(key)))
        values = expanded(own[source], count)
        if source == "genotype":  # of an ask: null where it is the name of what was asked for
            names = self._column(own, "candidate", count)
            return [name if value is None else value for name, value in zip(names, values)]
        return values if convert is None else convert(values)

    def _block(self, place: int) -> list[dict]:
        if self._last is None or self._last[0] != place:
            own, count = self._blocks.columns(place), self._blocks.counts[place]
            keys = [*own, *self._derived]
            rows = zip(*(self._column(own, key, count) for key in keys))
            self._last = place, [dict(zip(keys, row)) for row in rows]
        return self._last[1]

    def __iter__(self) -> Iterator[dict]:
        for place in range(len(self._blocks.counts)):
            yield from self._block(place)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        if not 0 <= index < len(self):
            raise IndexError(index)
        place = bisect.bisect_right(self._starts, index) - 1
        return self._block(place)[index - self._starts[place]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


class Digest(Mapping):
    """The keys of results.json. Its lists are Records; besides there are `labels` and `truth` by
    candidates' names, and of `models` the `choices` and `differences` likewise."""

    def __init__(self, facts: dict[str, Any], blocks: dict[str, Blocks]):
        """@param facts  all of it but for lists of blocks.
        @throws KeyError  where something is missing."""
        self._facts = facts
        self._blocks = blocks
        for key in ("front", "knee", "models", "identities", "baseline", *_NEEDED):
            (self._blocks if key in _NEEDED else self._facts)[key]
        self._kept: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._facts, *self._blocks, "labels", "truth"}))

    def __getitem__(self, key: str) -> Any:
        if key not in self._kept:
            self._kept[key] = self._made(key)
        return self._kept[key]

    def _made(self, key: str) -> Any:
        own = self._facts.get(key)
        if key in self._blocks:
            return self._records(key)
        if key == "labels":
            return self._of_candidates("mechanism")
        if key == "truth":
            return self._of_candidates("truth") or None
        if key == "models" and own:
            return {**own, "choices": self._of_candidates("choices"),
                    "differences": self._of_candidates("difference")}
        if key == "baseline":
            return own and self._named(own)
        return [self._named(one) for one in own or []] if key == "controls" else self._facts[key]

    def plain(self) -> dict[str, Any]:
        """The same with all lists in memory."""
        return {key: list(value) if isinstance(value, Records) else value
                for key, value in self.items()}

    def _records(self, key: str) -> Records:
        convert: dict[str, Callable[[list], list]] = {"candidate": self._candidates}
        if key not in ("evaluations", "paused"):
            convert |= {"evaluations": lambda lists: list(map(self._evaluations, lists)),
                        "evaluation": self._evaluations}
        if key == "candidates":
            convert = {}
        derived = {"mechanism":
            ("candidate", self._mechanisms)} if key in ("ranking", "rejected") else {}
        return Records(self._blocks[key], convert, derived)

    def _named(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of a candidate that is in none of the lists."""
        place = [record["candidate"]]
        return {
            **record, "candidate": self._candidates(place)[0], "mechanism": self._mechanisms(place)
            [0], "evaluations": self._evaluations(record["evaluations"])}

    def _candidates(self, places: list[int]) -> list[str]:
        return [self._names[place] for place in places]

    def _mechanisms(self, places: list[int]) -> list[str]:
        labels = self["labels"]
        return [labels.get(name, name) for name in self._candidates(places)]

    def _evaluations(self, numbers: list[int]) -> list[str]:
        return [self._ids[number] for number in numbers]

    @cached_property
    def _names(self) -> list[str]:
        """Of all candidates."""
        return [name for names, in self["candidates"].columns("candidate") for name in names]

    @cached_property
    def _ids(self) -> list[str]:
        """Of all evaluations, those that are paused last."""
        return [id_ for key in ("evaluations", "paused") if key in self._blocks
                for ids, in Records(self._blocks[key]).columns("id") for id_ in ids]

    def _of_candidates(self, key: str) -> dict[str, Any]:
        """What is known of candidates by their names."""
        values = (value for own, in self["candidates"].columns(key) for value in own)
        return {name: value for name, value in zip(self._names, values) if value is not None}


def parsed(file: BinaryIO) -> dict[str, Any] | Digest:
    """A digest that lies in a file; what is no digest of this version as JSON has it.

    @param file  is closed; what the digest needs of it stays open as long as the digest is there.
    @throws ValueError, KeyError, TypeError, RecursionError  where it is damaged.
    """
    with file:
        # a line for each key, block and record
        if file.readline() == b"{\n" and file.readline().startswith(b'"'):
            file.seek(0)
            facts, blocks = _scan(file)
        else:
            file.seek(0)
            facts, blocks = json.load(file), {}
    if not isinstance(facts, dict) or facts.get("schema") != VERSION:
        return facts
    for key in _LISTS:
        for block in facts.get(key, ()):
            blocks.setdefault(key, Blocks()).add(block, block["records"])
        if facts.pop(key, None) is not None:
            blocks.setdefault(key, Blocks())
    return Digest(facts, blocks)


def _scan(file: BinaryIO) -> tuple[dict[str, Any], dict[str, Blocks]]:
    """What a file says, but for its lists of blocks, of which it is noted where they are."""
    kept = _File(file)
    facts: dict[str, Any] = {}
    blocks: dict[str, Blocks] = {}
    key, records, place = "", None, 0
    for line in file:
        start, place = place, place + len(line)
        text = line.rstrip(b",\n")
        if records is None and text.startswith(b'"'):
            name, _, value = text.partition(b": ")
            key = json.loads(name)
            if value == b"[":
                records = []
            else:
                facts[key] = json.loads(value)
        elif records is None:
            if text not in (b"{", b"}"):
                raise ValueError("a line that belongs to no key")
        elif text == b"]":
            if records or key not in blocks:
                facts[key] = records
            records = None
        elif key in _LISTS and (found := _COUNT.search(text, max(0, len(text) - 40))):
            blocks.setdefault(key, Blocks(kept)).add((start, len(text)), int(found[1]))
        else:
            records.append(json.loads(text))
    if text != b"}":
        raise ValueError("its end is missing")
    return facts, blocks
