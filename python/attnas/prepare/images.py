"""Fashion-MNIST as sequences of pixels: 785 bytes for each image, its class and its pixels."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnas.errors import InputError

from .files import file_below, read_gzip
from .tokenizer import Ids

_SIDE = 28
_PIXELS = _SIDE * _SIDE
_IMAGE = 1 + _PIXELS
NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
         "Ankle boot")
CLASSES = len(NAMES)
_VALID = 5000
_MOST_PATCHES = 65536  # different ones
DEFAULTS = {"asks": "class", "side": 14, "levels": 16, "patch": 1, "train_examples": 55000,
            "valid_examples": 5000}


def class_names(data: Mapping[str, Any]) -> list[str]:
    """Of `data` in a model's config.json: classes that it tells apart; empty where it does not."""
    if data["corpus"] == "fashion_mnist":
        return list(NAMES) if {**DEFAULTS, **data["settings"]}["asks"] == "class" else []
    return [f"class {i}" for i in range(data.get("labels", 0))]


def recipe(data: Mapping[str, Any]) -> str:
    """How what is classified becomes tokens, in words."""
    if data["corpus"] != "fashion_mnist":
        return "ids as in the corpus"
    side, levels, patch = ({**DEFAULTS, **data["settings"]}[name]
                           for name in ("side", "levels", "patch"))
    step = _SIDE // side
    tokens = f"a pixel of level l is token {CLASSES} + l" if patch == 1 else (
        f"patches of {patch} x {patch} pixels, row by row, are tokens: {CLASSES} + the sum of "
        f"level times {levels}^n over the patch's pixels n = 0, 1, ..., row by row")
    return (f"{_SIDE} x {_SIDE} grey values of 0 to 255 become {side} x {side} pixels, means of "
            f"{step} x {step} values, rounded down; the level of a pixel is its mean times "
            f"{levels} / 256, rounded down; row by row {tokens}")


def _read_idx(path: Path, magic: int, head: int, size: int) -> bytes:
    """What an IDX file holds behind its head, of `size` bytes an item."""
    found = read_gzip(path)
    items = int.from_bytes(found[4:8], "big")
    if int.from_bytes(found[:4], "big") != magic or len(found) != head + size * items:
        raise InputError(f"{path}: is no IDX file of {size} bytes an item")
    return found[head:]


def _read_images(folder: Path, name: str) -> bytes:
    pixels = _read_idx(file_below(folder, f"{name}-images-idx3-ubyte.gz"), 0x803, 16, _PIXELS)
    classes = _read_idx(file_below(folder, f"{name}-labels-idx1-ubyte.gz"), 0x801, 8, 1)
    if len(pixels) != len(classes) * _PIXELS:
        raise InputError(f"{name}: {len(classes)} labels, must be as many as images: "
                         f"{len(pixels) // _PIXELS}")
    return b"".join(classes[i:i + 1] + pixels[i * _PIXELS:(i + 1) * _PIXELS]
                    for i in range(len(classes)))


def prepare(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Of those to train the last 5,000 go to valid. @throws InputError"""
    train, test = _read_images(folder, "train"), _read_images(folder, "t10k")
    if len(train) <= _VALID * _IMAGE:
        raise InputError(f"holds {len(train) // _IMAGE} images to train, must be above {_VALID}")
    cut = len(train) - _VALID * _IMAGE
    return train[:cut], train[cut:], test


@dataclass(frozen=True)
class Form:
    """How images become tokens. Ids: the classes, the patches, then what comes before them. A patch
    of p x p pixels of L levels is a number of p^2 digits to base L, row by row, the first lowest.
    """

    side: int
    levels: int
    patch: int
    asks_pixels: bool

    @staticmethod
    def of(settings: Mapping[str, Any], context: int) -> Form:
        """@throws InputError  if sizes do not fit each other, or the context."""
        form = Form(settings["side"], settings["levels"], settings["patch"],
                    settings["asks"] == "pixels")
        form._require()
        if context != form.length:
            patch = f", data.patch = {form.patch}" if form.patch > 1 else ""
            raise InputError(f"fashion_mnist: model.context = {context}, must be the pixels of an "
                             f"image: {form.length} where data.side = {form.side}{patch}")
        return form

    def _require(self) -> None:
        if _SIDE % self.side != 0:
            raise InputError(f"fashion_mnist: data.side = {self.side}, must divide 28: 7, 14 or 28")
        if self.side % self.patch != 0:
            raise InputError(f"fashion_mnist: data.patch = {self.patch}, must divide data.side = "
                             f"{self.side}")
        if self.patches > _MOST_PATCHES:
            raise InputError(f"fashion_mnist: data.levels = {self.levels} to the power "
                             f"{self.patch ** 2}, the pixels of a patch, must be at most "
                             f"{_MOST_PATCHES}")

    @property
    def length(self) -> int:
        """Tokens of an image."""
        return (self.side // self.patch) ** 2

    @property
    def patches(self) -> int:
        """How many different ones there are."""
        return self.levels ** (self.patch ** 2)

    @property
    def vocabulary(self) -> int:
        return CLASSES + self.patches + self.asks_pixels

    @property
    def description(self) -> str:
        patches = f", in patches of {self.patch} x {self.patch}" if self.patch > 1 else ""
        return (f"Fashion-MNIST, {self.side} x {self.side} pixels of {self.levels} levels, row by "
                f"row{patches}")

    def examples(self, split: bytes, most: int) -> tuple[Ids, Ids]:
        """Ids and classes of the first images. @throws InputError  if they are none."""
        if len(split) % _IMAGE != 0:
            raise InputError(f"fashion_mnist: a split has {len(split)} bytes, must be a multiple "
                             f"of {_IMAGE}: move its folder away and get it again with: nas-data "
                             "get fashion_mnist")
        split = split[:most * _IMAGE]
        classes = array("i", list(split[::_IMAGE]))
        for i, label in enumerate(classes):
            if label >= CLASSES:
                raise InputError(f"fashion_mnist: image {i + 1} of a split is of class {label}, "
                                 "must be below 10")
        stride = self.length + self.asks_pixels
        ids = array("i", [CLASSES + self.patches]) * (stride * len(classes))
        for place, numbers in enumerate(self._patches(split)):
            ids[place + self.asks_pixels::stride] = numbers
        return ids, classes

    def _patches(self, split: bytes) -> list[Ids]:
        """Of each place, row by row, the ids of all images."""
        step = _SIDE // self.side
        sums = range(255 * step * step + 1)
        square = [row * _SIDE + column for row in range(step) for column in range(step)]
        scaled = [[total // step ** 2 * self.levels // 256 * self.levels ** digit for total in sums]
                  for digit in range(self.patch ** 2)]

        def of(row: int, column: int) -> Ids:
            number = array("i", [CLASSES]) * (len(split) // _IMAGE)
            for digit, levels in enumerate(scaled):
                corner = ((row + digit // self.patch * step) * _SIDE
                          + column + digit % self.patch * step)
                pixels = [split[1 + corner + place::_IMAGE] for place in square]
                number = array("i", [n + levels[total] for n, total
                                     in zip(number, map(sum, zip(*pixels)))])
            return number
        places = range(0, _SIDE, step * self.patch)
        return [of(row, column) for row in places for column in places]
