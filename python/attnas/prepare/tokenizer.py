"""What every tokenizer is, once it was trained or read."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

Ids = array  # of int32, type code "i"


@dataclass(frozen=True)
class Tokenizer:
    """How a text becomes ids 0 .. size - 1."""

    size: int
    first: int  # the id that a stream begins with
    encode: Callable[[bytes], Ids]  # of whole lines
    file: bytes | None = None  # as model folders have it
    pad: int = -1
    unknown: int = -1
    end: int = -1
    encode_words: Callable[[bytes], Ids] | None = None  # of a line whose end has no id
    many: str | None = None  # what its tokens are called, where not as those of its unit
    keeps: Callable[[bytes], bool] = lambda _: True  # whether the ids of a text give it back
