"""What a trained model's attention does, or its recurrent layers as attention: attention.json as
nas-analyse writes it.

docs/files.md says what each key is. A statistic of a layer is one number for each sequence, a mean
over the layer's heads.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnas.analysis.digest import BadInput

SCHEMA = 1
FILE = "attention.json"


@dataclass(frozen=True)
class Estimate:
    """A mean over sequences with its interval; NaN where it is not known."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Statistic:
    """One number of a layer's attention."""

    layer: Estimate  # mean over the heads
    heads: list[Estimate]


@dataclass(frozen=True)
class Gate:
    """The values of one gate of a layer."""

    name: str
    statistics: dict[str, Statistic]
    histogram: np.ndarray  # (H, bins) shares of the gate's values in equal parts of [0, 1]


@dataclass(frozen=True)
class Layer:
    """One layer; what has no maps has its name only."""

    index: int
    mixer: str
    statistics: dict[str, Statistic] = field(default_factory=dict)
    profile: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (H, T) a(n)
    gates: list[Gate] = field(default_factory=list)
    maps: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))  # (H, T, T), one sequence
    left_out: str = ""  # why it has no maps, though it has heads

    @property
    def recurrent(self) -> bool:
        """Whether its maps are what a state amounts to, in a scale of their own."""
        return self.mixer == "recurrent" or "state_used" in self.statistics


@dataclass(frozen=True)
class Head:
    """What one head does in one sentence."""

    layer: int
    number: int
    rows: list[list[float]]  # of each token the weights of those up to it
    relative: bool = False  # whether the weights have a scale of their own: of a recurrent layer

    @property
    def drawn(self) -> list[list[float]]:
        """The weights, or their shares of the largest."""
        if not self.relative:
            return self.rows
        most = max((abs(weight) for row in self.rows
                    for weight in row if math.isfinite(weight)), default=0.0) or 1.0
        return [[weight / most for weight in row] for row in self.rows]


@dataclass(frozen=True)
class Sentence:
    """A text with the maps of every head."""

    tokens: list[str]
    heads: list[Head]


@dataclass(frozen=True)
class Analysis:
    """A trained model's attention."""

    path: str
    label: str
    facts: dict[str, Any]  # everything but the numbers
    model: dict[str, Estimate]
    layers: list[Layer]
    sentences: list[Sentence] = field(default_factory=list)

    @property
    def attention(self) -> list[Layer]:
        """The layers that have maps."""
        return [layer for layer in self.layers if layer.statistics]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _estimate(given: dict[str, Any]) -> Estimate:
    return Estimate(*(_number(given[key]) for key in ("mean", "low", "high")), int(given["n"]))


def _statistics(given: dict[str, Any]) -> dict[str, Statistic]:
    return {name: Statistic(_estimate(each["layer"]), [_estimate(head) for head in each["heads"]])
            for name, each in given.items()}


def _maps(heads: list[list[list[float]]]) -> np.ndarray:
    """Rows of i + 1 weights as square maps."""
    size = len(heads[0]) if heads else 0
    maps = np.zeros((len(heads), size, size))
    for own, rows in zip(maps, heads):
        for i, row in enumerate(rows):
            own[i, :len(row)] = row
    return maps


def _layer(given: dict[str, Any]) -> Layer:
    if "statistics" not in given:
        return Layer(given["layer"], given["mixer"], left_out=str(given.get("left_out", "")))
    profile = [[_number(value) for value in head] for head in given["profile"]]
    gates = [Gate(gate["name"], _statistics(gate["statistics"]), np.array(gate["histogram"]))
             for gate in given["gates"]]
    return Layer(given["layer"], given["mixer"], _statistics(given["statistics"]),
                 np.array(profile), gates, _maps(given["example"]))


def _sentence(given: dict[str, Any], recurrent: set[int]) -> Sentence:
    heads = [Head(layer["layer"], number, [[_number(weight) for weight in row] for row in rows],
                  layer["layer"] in recurrent)
             for layer in given["layers"] for number, rows in enumerate(layer["maps"])]
    tokens = [str(token) for token in given["tokens"]]
    if any([len(row) for row in head.rows] != list(range(1, len(tokens) + 1)) for head in heads):
        raise ValueError("the rows of a map are not those of its tokens")
    return Sentence(tokens, heads)


def read(given: str | os.PathLike) -> Analysis:
    """An analysis.

    @param given  attention.json, or the folder where it lies.
    @throws BadInput  where there is none.
    """
    path = pathlib.Path(given)
    file = path / FILE if path.is_dir() else path
    try:
        found = json.loads(file.read_bytes())
    except OSError:
        raise BadInput(f"{file}: no such file; nas-analyse RUN MECHANISM writes one") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: not an analysis of attention: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or "layers" not in found:
        raise BadInput(f"{file}: not an analysis of attention of version {SCHEMA}")
    try:
        facts = {key: value for key, value in found.items()
                 if key not in ("model", "layers", "sentences")}
        layers = [_layer(layer) for layer in found["layers"]]
        recurrent = {layer.index for layer in layers if layer.recurrent}
        return Analysis(str(file), found["mechanism"], facts,
                        {name: _estimate(each) for name, each in found["model"].items()},
                        layers, [_sentence(each, recurrent) for each in found.get("sentences", [])])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: not an analysis of attention of version {SCHEMA}: "
                       f"{type(error).__name__} {error}") from None
