"""Checkpoints of other programs as tensors by name: a folder of safetensors, or a file of GGUF.

Files are of strangers: lengths, places, shapes and types are checked before anything is read by
them, and nothing is executed. Numbers are read tensor by tensor, and in pieces.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy

from attnas.errors import InputError

LARGEST_HEADER = 1 << 24  # bytes
LARGEST_JSON = {"config.json": 1 << 20, "model.safetensors.index.json": LARGEST_HEADER,
                "tokenizer.json": 1 << 26}
LONGEST_INTEGER = 40
LARGEST_WEIGHT = 1e15  # squares of more overflow in sums of float32
PIECE = 1 << 22  # numbers that are read at once
# Bytes of a number; of those that are not read only their lengths are of interest.
NUMBER_BYTES = {**dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
                **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
                **dict.fromkeys(("U32", "I32", "F32"), 4),
                **dict.fromkeys(("U64", "I64", "F64"), 8)}


def _halves(data: numpy.ndarray) -> numpy.ndarray:
    """(blocks, 2) bytes as (blocks, 1) of float16, widened."""
    return numpy.ascontiguousarray(data).view("<f2").astype(numpy.float32)


def _nibbles(data: numpy.ndarray) -> numpy.ndarray:
    """Low halves of all bytes, then the high ones."""
    return numpy.concatenate([data & 15, data >> 4], -1)


def _q4_0(blocks: numpy.ndarray) -> numpy.ndarray:
    """d (q - 8)"""
    return _halves(blocks[:, :2]) * (_nibbles(blocks[:, 2:]).astype(numpy.float32) - 8)


def _q4_1(blocks: numpy.ndarray) -> numpy.ndarray:
    """d q + m"""
    return (_halves(blocks[:, :2]) * _nibbles(blocks[:, 4:]).astype(numpy.float32)
            + _halves(blocks[:, 2:4]))


def _q8_0(blocks: numpy.ndarray) -> numpy.ndarray:
    """d q"""
    return _halves(blocks[:, :2]) * blocks[:, 2:].view(numpy.int8).astype(numpy.float32)


def _q4_k(blocks: numpy.ndarray) -> numpy.ndarray:
    """d s q - d' m: eight groups of 32, their s and m of 6 bits"""
    packed = blocks[:, 4:16].reshape(-1, 3, 4)
    first, second, high = packed[:, 0], packed[:, 1], packed[:, 2]
    scales = numpy.concatenate([first & 63, (high & 15) | (first >> 6 << 4)], -1)
    minima = numpy.concatenate([second & 63, (high >> 4) | (second >> 6 << 4)], -1)
    q = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).astype(numpy.float32)
    scales, minima = (_halves(blocks[:, at:at + 2]) * numbers.astype(numpy.float32)
                      for at, numbers in ((0, scales), (2, minima)))
    return scales[..., None] * q - minima[..., None]


def _q6_k(blocks: numpy.ndarray) -> numpy.ndarray:
    """d s (q - 32): sixteen groups of 16, q of 6 bits"""
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> numpy.array([0, 2, 4, 6],
                                                                   numpy.uint8).reshape(4, 1) & 3
    q = (low | high << 4).astype(numpy.float32).reshape(-1, 16, 16) - 32
    scales = blocks[:, 192:208].view(numpy.int8).astype(numpy.float32)
    return (_halves(blocks[:, 208:]) * scales)[..., None] * q


@dataclasses.dataclass(frozen=True)
class Form:
    """How numbers lie in a file: blocks of so many numbers and bytes."""

    name: str
    numbers: int
    size: int
    widened: Callable[[numpy.ndarray], numpy.ndarray]  # (blocks, bytes) to float32


PLAIN = {"F32": Form("F32", 1, 4, lambda blocks: blocks.view("<f4")),
         "F16": Form("F16", 1, 2, lambda blocks: blocks.view("<f2").astype(numpy.float32)),
         "BF16": Form("BF16", 1, 2, lambda blocks: (
             blocks.view("<u2").astype(numpy.uint32) << 16).view(numpy.float32))}
# By the number that GGUF has for them.
GGUF_FORMS = {
    0: PLAIN["F32"], 1: PLAIN["F16"], 30: PLAIN["BF16"],
    2: Form("Q4_0", 32, 18, _q4_0), 3: Form("Q4_1", 32, 20, _q4_1), 8: Form("Q8_0", 32, 34, _q8_0),
    12: Form("Q4_K", 256, 144, _q4_k), 14: Form("Q6_K", 256, 210, _q6_k),
}


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor in a file; of a form that is not read, `form` is its name."""

    name: str
    shape: tuple[int, ...]  # outputs first
    form: Form | str
    path: pathlib.Path
    begin: int

    def pieces(self) -> Iterator[numpy.ndarray]:
        """All numbers in order as float32. @throws InputError  if one is none, or too large."""
        if isinstance(self.form, str):
            raise InputError(f"{self.path}: {self.name} is of type {self.form}, must be one of "
                             f"{', '.join(PLAIN)}")
        at_once = max(PIECE // self.form.numbers, 1)
        blocks = math.prod(self.shape) // self.form.numbers
        with open(self.path, "rb") as file:
            file.seek(self.begin)
            for begin in range(0, blocks, at_once):
                count = min(at_once, blocks - begin)
                data = read_exactly(file, count * self.form.size, self.path)
                raw = numpy.frombuffer(data, numpy.uint8).reshape(count, self.form.size)
                with numpy.errstate(all="ignore"):
                    values = self.form.widened(raw).reshape(-1)
                    inside = -LARGEST_WEIGHT <= values.min() and values.max() <= LARGEST_WEIGHT
                if not inside:
                    raise InputError(f"{self.path}: {self.name} has a number that is none, or "
                                     f"beyond {LARGEST_WEIGHT:g}")
                yield values

    def values(self) -> numpy.ndarray:
        pieces = [*self.pieces()] or [numpy.empty(0, numpy.float32)]
        return numpy.concatenate(pieces).reshape(self.shape)


def read_exactly(file: BinaryIO, size: int, path: pathlib.Path) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise InputError(f"{path}: ends before byte {file.tell() + size - len(data)}")
    return data


def shown(value: object) -> str:
    """A value of a stranger, as messages have it."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def parse_json(data: bytes, where: object) -> Any:
    """@throws InputError  where it is no JSON, or says something twice."""
    def unique(pairs):
        found = {}
        for name, value in pairs:
            if name in found:
                raise InputError(f"{where}: {shown(name)} is there twice")
            found[name] = value
        return found

    def integer(text):
        if len(text) > LONGEST_INTEGER:  # many digits take long to read
            raise ValueError(f"an integer of {len(text)} digits")
        return int(text)

    def refuse(constant):
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique,
                          parse_int=integer, parse_constant=refuse)
    except RecursionError:
        raise InputError(f"{where}: its JSON is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where}: must be JSON: {error}") from None


def regular_file(path: pathlib.Path) -> int:
    """The size of a file. @throws InputError  if there is none."""
    if not os.path.isfile(path):  # False for a name that none can have, too
        raise InputError(f"{path}: no such file")
    return path.stat().st_size


def read_json(path: pathlib.Path) -> tuple[bytes, dict]:
    """A file of JSON and the map in it."""
    size, most = regular_file(path), LARGEST_JSON[path.name]
    if size > most:
        raise InputError(f"{path}: has {size} bytes, must have at most {most}")
    data = path.read_bytes()
    found = parse_json(data, path)
    if not isinstance(found, dict):
        raise InputError(f"{path}: must be a map")
    return data, found


def is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def stored_tensors(header: dict, path: pathlib.Path, begin: int, size: int) -> list[Stored]:
    """What the header of a file of safetensors says, whose numbers are `size` bytes from `begin`
    on. @throws InputError  unless tensors lie there side by side without gaps."""
    found, last = [], 0
    for name, entry in header.items():
        keys = entry.keys() if isinstance(entry, dict) else ()
        if {*keys} != {"dtype", "shape", "data_offsets"}:
            raise InputError(f"{path}: {shown(name)} must have dtype, shape and data_offsets")
        kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(kind, str) or kind not in NUMBER_BYTES:
            raise InputError(f"{path}: {shown(name)} is of type {shown(kind)}, must be one of "
                             f"{', '.join(PLAIN)}")
        if not isinstance(shape, list) or not isinstance(offsets, list) or len(
                offsets) != 2 or len(shape) > 8 or not all(
                    is_count(number, size) for number in (*shape, *offsets)):
            raise InputError(f"{path}: {shown(name)} has shape {shown(shape)} at {shown(offsets)}, "
                             f"must be integers in [0, {size}]")
        needed = NUMBER_BYTES[kind] * math.prod(shape)
        if offsets[1] - offsets[0] != needed:
            raise InputError(f"{path}: {shown(name)} has {offsets[1] - offsets[0]} bytes, must "
                             f"have {needed} for shape {shown(shape)} of {kind}")
        found.append((offsets, Stored(name, tuple(shape), PLAIN.get(kind, kind), path,
                                      begin + offsets[0])))
    for (first, end), tensor in sorted(found, key=lambda entry: entry[0]):
        if first != last:
            raise InputError(f"{path}: {shown(tensor.name)} begins at byte {first}, must at "
                             f"{last}, where the one before ends")
        last = end
    if last != size:
        raise InputError(f"{path}: has {size} bytes of numbers, its tensors {last}")
    return [tensor for _, tensor in found]


def read_safetensors(path: pathlib.Path) -> list[Stored]:
    """The tensors of a file, whose numbers are not read yet."""
    size = regular_file(path)
    with open(path, "rb") as file:
        if size < 8:
            raise InputError(f"{path}: has {size} bytes, must have 8 before the header")
        length = int.from_bytes(read_exactly(file, 8, path), "little")
        if length > min(size - 8, LARGEST_HEADER):
            raise InputError(f"{path}: has a header of {length} bytes, must have at most "
                             f"{min(size - 8, LARGEST_HEADER)}")
        header = parse_json(read_exactly(file, length, path), f"{path}: header")
    if not isinstance(header, dict):
        raise InputError(f"{path}: header must be a map")
    header.pop("__metadata__", None)
    return stored_tensors(header, path, 8 + length, size - 8 - length)


@dataclasses.dataclass
class Checkpoint:
    """What a source says: configuration as Hugging Face has it, tensors, files."""

    config: dict
    tensors: dict[str, Stored]
    files: list[pathlib.Path]
    where: str  # of the configuration
    tokenizer: bytes | None = None  # tokenizer.json
    notes: list[str] = dataclasses.field(default_factory=list)
    permuted: bool = False  # rows of queries and keys, pairs beside each other as in GGUF of llama


def by_name(tensors: list[Stored]) -> dict[str, Stored]:
    found = {}
    for tensor in tensors:
        if tensor.name in found:
            raise InputError(f"{tensor.path}: {shown(tensor.name)} is in "
                             f"{found[tensor.name].path.name}, too")
        found[tensor.name] = tensor
    return found


def _read_shards(folder: pathlib.Path, index_path: pathlib.Path) -> list[Stored]:
    places = read_json(index_path)[1].get("weight_map")
    if not isinstance(places, dict) or not places:
        raise InputError(f"{index_path}: weight_map = {shown(places)}, must be a map of tensors to "
                         f"files")
    for shard in places.values():
        # no folder but this one
        if not isinstance(shard, str) or os.path.basename(shard) != shard or not shard.endswith(
                ".safetensors") or not shard.isprintable() or len(shard) > 255:
            raise InputError(f"{index_path}: weight_map names {shown(shard)}, must be files of "
                             f"safetensors beside it")
    tensors = []
    for shard in sorted({*places.values()}):
        tensors += read_safetensors(folder / shard)
    found = by_name(tensors)
    for name, shard in places.items():
        if name not in found or found[name].path.name != shard:
            raise InputError(f"{folder / shard}: has no tensor {shown(name)}, which "
                             f"{index_path.name} says")
    if others := sorted({*found} - {*places}):
        raise InputError(f"{found[others[0]].path}: has a tensor {shown(others[0])}, which "
                         f"{index_path.name} does not name")
    return tensors


def read_folder(folder: pathlib.Path) -> Checkpoint:
    """A folder of Hugging Face's layout."""
    _, config = read_json(folder / "config.json")
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        tensors = read_safetensors(whole)
    elif index.is_file():
        tensors = _read_shards(folder, index)
    else:
        others = sorted(path.name for path in folder.glob("*.bin"))[:1]
        raise InputError(f"{folder}: has neither model.safetensors nor {index.name}" + (
            f"; {others[0]} is a program of pickle, which is not run" if others else ""))
    paths = sorted({tensor.path for tensor in tensors})
    tokens = folder / "tokenizer.json"
    found = Checkpoint(config, by_name(tensors), [folder / "config.json", *paths],
                       str(folder / "config.json"))
    if index.is_file() and not whole.is_file():
        found.files.append(index)
    if tokens.is_file():
        found.tokenizer = read_json(tokens)[0]
        found.files.append(tokens)
    else:
        found.notes.append("the folder has no tokenizer.json: the model takes ids")
    return found


def header_of(tensors: Iterable[tuple[str, str, Sequence[int]]]) -> bytes:
    """What a file of safetensors begins with. @param tensors  name, type and shape in the order of
    their numbers."""
    header: dict = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, kind, shape in tensors:
        begin, end = end, end + NUMBER_BYTES[kind] * math.prod(shape)
        header[name] = {"dtype": kind, "shape": [*shape], "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
