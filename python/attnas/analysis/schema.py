"""What a record says of the things in it: genes, objectives, statuses, the reference point.

A run writes it into its store (meta key "schema"), a packed table keeps that of its first run among
its facts. Components and objectives that somebody adds are therefore known here without being
named here. A record that lacks a part of it has what stands in OLD.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Scaled value of what has no quality, see ObjectiveSet in src/search/objective_set.hpp: of
# comparisons, whose stores do not say it.
PENALTY = 10.0

OLD: dict[str, Any] = {
    "genes": [
        {"name": "similarity", "vanilla": ["dot"], "options": []},
        {"name": "normalization", "vanilla": ["softmax"],
         "options": [{"key": "relu_norm", "voids": ["temperature"]}]},
        {"name": "gating", "vanilla": ["none"], "options": []},
        {"name": "temperature", "vanilla": ["fixed", "sqrt_d"], "options": []},
        {"name": "bias", "vanilla": ["bias"], "options": []},
        {"name": "attention_dropout", "kind": "number"}],
    "objectives": {
        **{key: {"source": "analytic", "maximise": False}
           for key in ("attention_flops", "flops", "non_embedding_parameters", "parameters",
                       "state_bytes")}, "accuracy": {"source": "trained", "maximise": True}},
    "statuses": [{"name": name}
                 for name in ("ok", "stopped_early", "diverged", "out_of_memory", "rejected",
                              "failed", "timed_out", "crashed")], "reference_point": 1.1}


@dataclass(frozen=True)
class Schema:
    """The digested form."""

    genes: tuple[str, ...]  # the paper's, in the order of a mechanism's name
    numbers: frozenset[str]  # genes whose options are real numbers
    # (gene, another word for an option): its key, which is shown
    keys: Mapping[tuple[str, str], str]
    # (gene, key of an option): genes without effect beside
    voids: Mapping[tuple[str, str], frozenset[str]]
    vanilla: Mapping[str, frozenset[str]]  # what the vanilla transformer has, of categorical genes
    sources: Mapping[str, str]  # objective: "analytic", "measured" or "trained"
    maximised: frozenset[str]  # objectives of which more is better
    statuses: tuple[str, ...]
    reference_point: float  # of hypervolumes, in scaled objectives

    def is_analytic(self, objective: str) -> bool:
        """Whether it follows from the architecture by formula: replicates do not differ in it."""
        return self.sources.get(objective) == "analytic"

    def is_number(self, gene: str) -> bool:
        """Whether a gene's options are real numbers; "slot1.rope_base" is one of rope_base."""
        return place(gene)[1] in self.numbers

    def shown(self, gene: str, option: str) -> str:
        """The one word for an option that is given by its key, the paper's word or as a number."""
        return self.keys.get((place(gene)[1], option), option)

    def stored(self, option: str) -> str:
        """The key of an option that is given by it or by the paper's word."""
        return next((key for (_, word), key in self.keys.items() if word == option), option)

    def function_of(self, options: Sequence[str | None], order: Sequence[str]) -> tuple:
        """What two combinations of options share where they are one function: a gene without effect
        is None.

        @param options  one per entry of `order`, which names their genes.
        """
        voided: set[str] = set()
        for gene, option in zip(order, options):
            prefix, name = place(gene)
            voided |= {prefix + other for other in self.voids.get((name, option), ())}
        return tuple(None if gene in voided else option for gene, option in zip(order, options))


def place(gene: str) -> tuple[str, str]:
    """Which layers have a gene, and what it is in them: "slot1." and "window" of "slot1.window",
    "" and "window" of "window", which is of all layers."""
    prefix, dot, name = gene.rpartition(".")
    return (prefix + dot, name) if prefix != "training" else ("", gene)


def training_of(candidate: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """The section `training` of a candidate, whose genes of it are in the head of its name."""
    head = re.match(r"model\{([^}]*)\}/", candidate)
    genes = dict(gene.split("=", 1) for gene in head[1].split(",")) if head and head[1] else {}
    own = {key: read(genes[key]) for key, read in (("learning_rate", float), ("optimizer", str))
           if key in genes}
    return {**section, **own}


def schema(record: Mapping[str, Any] | None) -> Schema:
    """That of a record; None: one that says nothing of it."""
    record = {**OLD, **(record or {})}
    genes = record["genes"]
    options = [(gene["name"], option["key"], option) for gene in genes
               for option in gene.get("options", ())]
    keys = {(gene, option["label"]): key for gene, key, option in options
            if option.get("label", key) != key}
    voids = {(gene, key): frozenset(option.get("voids", ())) for gene, key, option in options}
    return Schema(
        genes=tuple(gene["name"] for gene in genes if gene.get("paper", True)),
        numbers=frozenset(gene["name"] for gene in genes if gene.get("kind") == "number"),
        keys=keys,
        voids=voids,
        vanilla={gene["name"]: frozenset(gene["vanilla"]) for gene in genes if "vanilla" in gene},
        sources={key: own["source"] for key, own in record["objectives"].items()},
        maximised=frozenset(key for key, own in record["objectives"].items() if own["maximise"]),
        statuses=tuple(status["name"] for status in record["statuses"]),
        reference_point=float(record["reference_point"]),
    )
