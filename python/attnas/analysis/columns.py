"""Version 4 of results.json: names once, long lists in blocks of columns, read where they are needed.

docs/files.md says how it is written. What it holds is read as version 3 had it: records with names and ids
in the place of numbers. Of a long list no more than a block is in memory.
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

VERSION = 4
_CHUNK = 1000  # records that columns() takes at once of a list that is in memory
_SCHEMA = b'"schema": '
_COUNT = re.compile(rb'"records":(\d+)\}$')
# Lists of blocks; "paused" and "rung_asks" are only of a search by rungs.
_LISTS = ("candidates", "evaluations", "paused", "ranking", "asks", "rung_asks", "rejected")
_NOT_OF_THE_FRONT = ("on_front", "replicates", "first_ask", "times_asked", "facts")


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
    return [dict(zip(parts, values)) for values in zip(*(expanded(part, count) for part in parts.values()))]


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
        self._where: list[tuple[int, int] | dict] = []  # place and length in the file, or the block itself

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
        @param derived  keys that follow from others: from which, and what becomes of its values in the file."""
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


def columns(records: Sequence, *keys: str) -> Iterator[tuple[list, ...]]:
    """Values of records by key, some records at a time: of a list in memory, or of Records."""
    if isinstance(records, Records):
        yield from records.columns(*keys)
        return
    for start in range(0, len(records), _CHUNK):
        some = records[start:start + _CHUNK]
        yield tuple([record[key] for record in some] for key in keys)


class Digest(Mapping):
    """A digest of version 4, as if it were one of version 3."""

    def __init__(self, facts: dict[str, Any], blocks: dict[str, Blocks]):
        """@param facts  all of it but for lists of blocks.
        @throws KeyError  where something is missing."""
        self._facts, self._blocks = {**facts, "schema": 3}, {key: blocks.get(key, Blocks()) for key in _LISTS if key in {*facts, *blocks}}
        self._kept: dict[str, Any] = {}
        self._keys = {*self._facts, *self._blocks, "labels", "truth"} - {"candidates", "knee"}
        for key in ("front", "knee", "failures", "models", "identities"):
            self._facts[key]
        for key in ("candidates", "evaluations", "ranking", "asks", "rejected"):
            self._blocks[key]

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._kept:
            make = {"labels": self._labels, "truth": self._truth, "models": self._models, "front": self._front,
                    "failures": self._failures}.get(key)
            self._kept[key] = make() if make else self._records(key) if key in self._blocks else self._facts[key]
        return self._kept[key]

    def knee(self) -> str | None:
        """See knee()."""
        place = self._facts["knee"]
        return None if place is None else self["ranking"][place]["candidate"]

    def plain(self) -> dict[str, Any]:
        """The same with all lists in memory."""
        return {key: list(value) if isinstance(value, Records) else value for key, value in self.items()}

    def _records(self, key: str) -> Records:
        def candidates(places: list[int]) -> list[str]:
            names = self._names
            return [names[place] for place in places]

        def mechanisms(places: list[int]) -> list[str]:
            labels = self["labels"]
            return [labels.get(name, name) for name in candidates(places)]

        def ids(numbers: list[int]) -> list[str]:
            known = self._ids
            return [known[number] for number in numbers]

        convert = {"candidate": candidates}
        if key not in ("evaluations", "paused"):
            convert |= {"evaluations": lambda lists: [ids(numbers) for numbers in lists], "evaluation": ids}
        derived = {"mechanism": ("candidate", mechanisms)} if key in ("ranking", "rejected") else {}
        return Records(self._blocks[key], convert, derived)

    @cached_property
    def _names(self) -> list[str]:
        """Of all candidates; their labels are kept as well."""
        found: list[str] = []
        labels = self._kept["labels"] = {}
        for names, mechanisms in Records(self._blocks["candidates"]).columns("candidate", "mechanism"):
            found += names
            labels.update((name, label) for name, label in zip(names, mechanisms) if label is not None)
        return found

    @cached_property
    def _ids(self) -> list[str]:
        """Of all evaluations, those that are paused last."""
        return [id_ for key in ("evaluations", "paused") if key in self._blocks
                for ids, in Records(self._blocks[key]).columns("id") for id_ in ids]

    def _of_candidates(self, key: str) -> dict[str, Any]:
        """What is known of candidates by their names."""
        values = (value for own, in Records(self._blocks["candidates"]).columns(key) for value in own)
        return {name: value for name, value in zip(self._names, values) if value is not None}

    def _labels(self) -> dict[str, str]:
        return self._names and self._kept["labels"] or {}

    def _truth(self) -> dict[str, list] | None:
        return self._of_candidates("truth") or None

    def _models(self) -> dict[str, Any] | None:
        own = self._facts["models"]
        return own and {**own, "choices": self._of_candidates("choices"), "differences": self._of_candidates("difference")}

    def _front(self) -> list[dict]:
        knee, ranking = self._facts["knee"], self["ranking"]
        return [{**{key: value for key, value in own.items() if key not in _NOT_OF_THE_FRONT}, "knee": place == knee}
                for place in self._facts["front"] for own in (ranking[place],)]

    def _failures(self) -> list[dict]:
        wanted, found = set(self._facts["failures"]), {}
        for number, own in enumerate(self["evaluations"] if wanted else ()):
            if number in wanted:
                found[number] = {"mechanism": self["labels"].get(own["candidate"], own["candidate"]), "status": own["status"],
                                 "reason": own["reason"], "evaluation": own["id"]}
        return [found[number] for number in self._facts["failures"]]


def knee(digest: Mapping[str, Any]) -> str | None:
    """The candidate at the knee of the front, if there is one: its name."""
    if isinstance(digest, Digest):
        return digest.knee()  # one record; digest["front"] reads many
    return next((one["candidate"] for one in digest["front"] if one["knee"]), None)


def scan(file: BinaryIO) -> Digest | None:
    """A digest that lies in a file as nas-run writes it: a line for each key, block and record; None where it is another file.

    @param file  is closed where it is one; what the digest needs of it stays open as long as the digest is there.
    @throws ValueError, KeyError, TypeError  where it is damaged.
    """
    for line in file:
        if line.startswith(_SCHEMA):
            break
        if not line.startswith(b'"') and line[:1] not in b"{[]}":
            return None
    else:
        return None
    if line[len(_SCHEMA):].strip(b", \n") != str(VERSION).encode():
        return None
    file.seek(0)
    return Digest(*_scan(file))


def of(own: dict[str, Any]) -> Digest:
    """The same of a file that was read whole, as where its lines were rearranged."""
    blocks: dict[str, Blocks] = {}
    for key in _LISTS:
        for block in own.get(key, []):
            blocks.setdefault(key, Blocks()).add(block, block["records"])
    return Digest({key: value for key, value in own.items() if key not in blocks}, blocks)


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
            if key not in _LISTS:
                facts[key] = records
            records = None
        elif key in _LISTS:
            found = _COUNT.search(text, max(0, len(text) - 40))
            if not found:
                raise ValueError(f"a line of {key} is no block")
            blocks.setdefault(key, Blocks(kept)).add((start, len(text)), int(found[1]))
        else:
            records.append(json.loads(text))
    if text != b"}":
        raise ValueError("its end is missing")
    file.close()
    return facts, blocks
