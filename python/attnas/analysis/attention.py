"""What a trained model's attention does, or its recurrent layers as attention: attention.json as
nas-analyse writes it, and how two models differ.

docs/files.md says what each key is. A statistic of a layer is one number for each sequence, a mean
over the layer's heads; those of two models on the same sequences are compared pair by pair. What
is compared so are two trained models, each of one seed: whether their mechanisms differ in general
takes models of several seeds.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from attnas.analysis.digest import BadInput
from attnas.analysis.statistics import holm

SCHEMA = 1
FILE = "attention.json"
SIGNIFICANCE = 0.05
FEWEST = 3  # sequences that a test is made of


@dataclass(frozen=True)
class Estimate:
    """A mean over sequences with its interval; NaN where it is not known."""

    mean: float
    low: float
    high: float
    n: int
    values: np.ndarray | None = None  # one per sequence, NaN where it has none


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

    def on_the_same(self, other: Analysis) -> bool:
        """Whether both were computed on the same sequences."""
        return all(self.facts.get(key) == other.facts.get(key)
                   for key in ("corpus_hash", "split", "windows", "length", "token_seed"))


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _estimate(given: dict[str, Any]) -> Estimate:
    values = given.get("values")
    return Estimate(*(_number(given[key]) for key in ("mean", "low", "high")), int(given["n"]),
                    None if values is None else np.array([_number(value) for value in values]))


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
        return Layer(given["layer"], given["mixer"])
    profile = [[_number(value) for value in head] for head in given["profile"]]
    gates = [Gate(gate["name"], _statistics(gate["statistics"]), np.array(gate["histogram"]))
             for gate in given["gates"]]
    return Layer(given["layer"], given["mixer"], _statistics(given["statistics"]),
                 np.array(profile), gates, _maps(given["example"]))


def _sentence(given: dict[str, Any], recurrent: set[int]) -> Sentence:
    heads = [
        Head(layer["layer"], number, [[_number(weight) for weight in row]
                                      for row in rows], layer["layer"] in recurrent)
        for layer in given["layers"] for number, rows in enumerate(layer["maps"])
    ]
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
        facts = {
            key: value for key, value in found.items()
            if key not in ("model", "layers", "sentences")
        }
        layers = [_layer(layer) for layer in found["layers"]]
        recurrent = {layer.index for layer in layers if layer.recurrent}
        return Analysis(str(file), found["mechanism"], facts,
                        {name: _estimate(each) for name, each in found["model"].items()},
                        layers, [_sentence(each, recurrent) for each in found.get("sentences", [])])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{file}: not an analysis of attention of version {SCHEMA}: "
                       f"{type(error).__name__} {error}") from None


@dataclass
class Difference:
    """A statistic of a layer in two models: a minus b."""

    name: str
    layer: int | None  # None: of the whole model
    a: float
    b: float
    value: float
    low: float  # of a 95 % interval
    high: float
    # value / standard deviation of the differences; of both samples where not paired; NaN where
    # that is 0
    size: float
    p: float
    n: int
    paired: bool
    p_holm: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether it is distinguished from zero after Holm's correction."""
        return self.p_holm < SIGNIFICANCE


def _paired(x: np.ndarray, y: np.ndarray) -> tuple | None:
    both = np.isfinite(x) & np.isfinite(y)
    pairs = x[both] - y[both]
    if len(pairs) < FEWEST:
        return None
    spread = float(pairs.std(ddof=1))
    return (x[both].mean(), y[both].mean(), spread, spread / math.sqrt(len(pairs)),
            len(pairs) - 1, len(pairs))


def _apart(x: np.ndarray, y: np.ndarray) -> tuple | None:
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    if min(len(x), len(y)) < FEWEST:
        return None
    variances = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    error = math.sqrt(sum(variances))
    freedom = (error**4 / (variances[0]**2 / (len(x) - 1) + variances[1]**2 / (len(y) - 1))
               if error > 0 else 1.0)
    pooled = math.sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2)
    return x.mean(), y.mean(), pooled, error, freedom, min(len(x), len(y))


def _difference(name: str, layer: int | None, a: Estimate, b: Estimate,
                paired: bool) -> Difference | None:
    if a.values is None or b.values is None:
        return None
    paired = paired and len(a.values) == len(b.values)
    found = _paired(a.values, b.values) if paired else _apart(a.values, b.values)
    if found is None:
        return None
    mean_a, mean_b, spread, error, freedom, n = found
    value = float(mean_a - mean_b)
    # What differs by rounding alone is equal: sums of a softmax's rows, say.
    if abs(value) <= 1e-9 * max(abs(mean_a), abs(mean_b), 1e-300):
        return Difference(name, layer, float(mean_a), float(mean_b), value, value, value, 0.0, 1.0,
                          n, paired)
    if spread <= 1e-9 * abs(value):
        # the least of a test of signs, or of ranks
        p = 2.0 ** (1 - n) if paired else 2.0 / math.comb(2 * n, n)
        return Difference(name, layer, float(mean_a), float(mean_b), value, value, value, math.nan,
                          p, n, paired)
    margin = float(stats.t.ppf(0.975, freedom)) * error
    p = float(2 * stats.t.sf(abs(value) / error, freedom))
    return Difference(name, layer, float(mean_a), float(mean_b), value, value - margin,
                      value + margin, value / spread, p, n, paired)


def differences(a: Analysis, b: Analysis) -> list[Difference]:
    """Every statistic that both have, of the model and of each layer; Holm over all of them."""
    paired = a.on_the_same(b)
    found = [_difference(name, None, a.model[name], b.model[name], paired)
             for name in a.model if name in b.model]
    others = {layer.index: layer for layer in b.attention}
    for layer in a.attention:
        other = others.get(layer.index)
        if other is None:
            continue
        found += [_difference(name, layer.index, layer.statistics[name].layer,
                              other.statistics[name].layer, paired)
                  for name in layer.statistics if name in other.statistics]
    known = [each for each in found if each is not None]
    if known:
        for each, p in zip(known, holm([each.p for each in known])):
            each.p_holm = float(p)
    return known
