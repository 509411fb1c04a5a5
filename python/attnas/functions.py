"""Functions of Python as objectives and as algorithms of a search in this process."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import random
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnas.errors import Error, InputError
from attnas.library import core

Genotype = dict[str, str | float]


@dataclass(frozen=True)
class Candidate:
    """What an objective is computed from before training."""

    name: str  # canonical, as in a run's column `candidate`
    # components by their keys, "none" where no layer has one; of other genes than the paper's six
    # what is not default
    genes: Genotype
    parameters: int
    flops: float  # of a forward pass of one sequence
    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int
    device: str
    threads: int


class SearchEnded(BaseException):
    """Leaves an algorithm in the middle of a question: the search has ended, which is no error."""


class Search:
    """A search as its algorithm sees it. Genotypes are maps from genes to values. Fitness is a
    number, or a tuple where the algorithm sees several objectives; less is better."""

    def __init__(self, asking: Any, seed: int):
        self._asking = asking
        genes = json.loads(asking.genes())
        self._logarithmic = {gene["name"] for gene in genes if gene.get("log")}
        #: Genes of the space: a list of options, or a pair of bounds.
        self.space: dict[str, list[str] | tuple[float, float]] = {
            gene["name"]: gene.get("options") or (gene["min"], gene["max"]) for gene in genes}
        #: Where all randomness must come from, so that the run can be continued.
        self.random = random.Random(seed)
        #: The initial population, which is asked for already: pairs of a genotype and its fitness.
        self.population = [(genotype, _fitness(values))
                           for genotype, values in json.loads(asking.initial())]

    def ask(self, genotypes: Sequence[Mapping[str, Any]]) -> list[float] | list[tuple[float, ...]]:
        """Fitness of some candidates, which are measured together. Does not return where the search
        ends, as by its budget.

        @param genotypes  a value of every gene of which there are several.
        @throws InputError  where one is not in the space.
        """
        if self._asking is None:
            raise InputError("the search has ended, so that nothing can be asked")
        return [
            _fitness(values) for values in json.loads(self._asking.ask(json.dumps(list(genotypes))))
        ]

    def draw(self) -> Genotype:
        """A genotype drawn uniformly, gene by gene; by their logarithms, where a gene's `log` is
        true.
        """
        return {name: self.random.choice(values) if isinstance(values, list) else self._number(
            name, *values) for name, values in self.space.items()}

    def _number(self, name: str, low: float, high: float) -> float:
        if name not in self._logarithmic:
            return self.random.uniform(low, high)
        return min(max(math.exp(self.random.uniform(math.log(low), math.log(high))), low), high)


@dataclass(frozen=True)
class _Objective:
    call: Callable[[Any], float]
    version: str
    source: str
    maximise: bool
    range: tuple[float, float] | None  # best, worst
    unit: str


@dataclass(frozen=True)
class _Algorithm:
    call: Callable[[Search], None]
    version: str
    objectives: str


# What attnas._core asks for by name.
objectives: dict[str, _Objective] = {}
algorithms: dict[str, _Algorithm] = {}


def objective(name: str, *, sense: str = "min", range: tuple[float, float] | None = None,
              unit: str = "1", source: str = "analytic",
              version: str | None = None) -> Callable[[Callable], Callable]:
    """Makes a function an objective, which configurations of this process name as any other.

    @param sense    "min" or "max".
    @param range    the least and the largest value to expect, which scales it.
    @param source   "analytic": of a Candidate, cheap, always the same; "measured": of a Candidate,
        called once for each that is about to be trained, and recorded; "trained": of the record of
        a finished evaluation, a dict with "candidate", "replicate", "values", "curve" and
        "measured".
    @param version  a run continues with the same one only; default: a hash of the function's
        source, which does not cover what it calls.
    @throws InputError  where an argument cannot be used, the name is taken, or attnas._core is
        missing.
    """
    _require("objective", name, "sense", sense, ("min", "max"))
    _require("objective", name, "source", source, ("analytic", "measured", "trained"))
    if range is not None and not (len(range) == 2 and all(map(math.isfinite, range))
                                  and range[0] < range[1]):
        raise InputError(f"objective {name}: range = {range}, must be the least and the largest "
                         f"value to expect")
    ends = None if range is None else tuple(map(float,
                                                range if sense == "min" else reversed(range)))

    def register(function: Callable) -> Callable:
        own = _Objective(function, _version("objective", name, function, version), source,
                         sense == "max", ends, unit)
        core().add_objective(name, _summary(function))
        objectives[name] = own
        return function
    return register


def algorithm(
        name: str, *, objectives: str = "any", version: str | None = None
) -> Callable[[Callable[[Search], None]], Callable[[Search], None]]:
    """Makes a function an algorithm, which configurations of this process name as any other. It is
    called with a Search, whose initial population is measured, and asks until it returns or the
    search ends. A run is continued by calling it again from the same seed.

    @param objectives  how many it takes: "one" (others are decomposed into one where the
        configuration says so), "several" or "any".
    @param version     as of objective().
    @throws InputError  as objective().
    """
    _require("algorithm", name, "objectives", objectives, ("one", "several", "any"))

    def register(function: Callable[[Search], None]) -> Callable[[Search], None]:
        own = _Algorithm(function, _version("algorithm", name, function, version), objectives)
        core().add_algorithm(name, _summary(function))
        algorithms[name] = own
        return function
    return register


def _candidate(facts: dict[str, Any]) -> Candidate:
    """The six genes are always there: what no layer of a model has, as of a control without a
    mixer, is "none" or 0.
    """
    without = {
        "similarity": "none", "normalization": "none", "gating": "none", "temperature": "none",
        "bias": "none", "attention_dropout": 0.0}
    return Candidate(**{**facts, "genes": {**without, **facts["genes"]}})


def value(name: str, argument: str) -> float:
    """Calls an objective, for attnas._core."""
    own = objectives[name]
    facts = json.loads(argument)
    try:
        return float(own.call(facts if own.source == "trained" else _candidate(facts)))
    except Exception as error:
        of = facts["candidate" if own.source == "trained" else "name"]
        raise Error(f"objective {name} of {of}: {type(error).__name__}: {error}") from error


def search(name: str, asking: Any, seed: int) -> None:
    """Calls an algorithm, for attnas._core."""
    own = Search(asking, seed)
    try:
        algorithms[name].call(own)
    except Error:
        raise
    except Exception as error:
        raise Error(f"algorithm {name}: {type(error).__name__}: {error}") from error
    finally:
        own._asking = None


def _fitness(values: list[float]) -> float | tuple[float, ...]:
    return values[0] if len(values) == 1 else tuple(values)


def _require(kind: str, name: str, what: str, given: str, allowed: tuple[str, ...]) -> None:
    if not name.isidentifier():
        raise InputError(f"{kind} {name!r}: must be a name of letters, digits and underscores")
    if given not in allowed:
        raise InputError(f"{kind} {name}: {what} = {given!r}, must be one of {', '.join(allowed)}")


def _version(kind: str, name: str, function: Callable, given: str | None) -> str:
    if given is not None:
        return str(given)
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise InputError(f"{kind} {name}: the source of {function!r} is not known, must be given "
                         f"a version") from None
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def _summary(function: Callable) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
