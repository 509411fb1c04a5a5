"""The genes of a run's mechanisms: which there are, and which option each mechanism has.

A mechanism's label is its options, one per gene: similarity|normalization|... Where names are
longer than the paper's six genes, the digest says what each mechanism has. A gene without effect
beside a mechanism's other options is not applicable to it: it has no option there. A gene of
numbers counts by thirds of its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from attnas.analysis.run import Run
from attnas.analysis.schema import place as place_of
from attnas.analysis.words import is_number


@dataclass(frozen=True)
class Gene:
    """One gene of the search space."""

    name: str
    place: int  # among what mechanisms have
    low: float = 0.0  # range, where it is a number
    high: float = 0.0
    options: tuple[str, ...] = ()  # of a categorical gene, as the space lists them, by their keys
    # What mechanisms have, by label.
    choices: Mapping[str, Sequence[str | None]] = field(default_factory=dict, compare=False,
                                                        repr=False)

    @property
    def numeric(self) -> bool:
        """Whether its options are numbers of a range."""
        return self.high > self.low

    def raw(self, label: str) -> str | None:
        """What a mechanism has of it, whose label is given; None: it is not applicable."""
        return self.choices[label][self.place]

    def option(self, label: str) -> str | None:
        """The option that a label has; of a number the third of the range."""
        raw = self.raw(label)
        if not self.numeric or raw is None:
            return raw
        third = min(2, int(3 * (float(raw) - self.low) / (self.high - self.low)))
        width = (self.high - self.low) / 3
        return f"{self.low + third * width:.3g} to {self.low + (third + 1) * width:.3g}"


def choices_by_label(run: Run) -> tuple[Sequence[str], Mapping[str, Sequence[str | None]]]:
    """Names of genes, and what each candidate has of them, by its label; both empty where that is
    not known of every candidate."""
    labels = run.evaluated_labels
    choices = _choices(run, labels)
    if not labels or not labels <= choices.keys():
        return (), {}
    return run.models.get("genes", run.schema.genes), choices


def genes(run: Run) -> list[Gene]:
    """The genes that vary; empty where it is not known what every candidate has of them."""
    names, choices = choices_by_label(run)
    labels = run.evaluated_labels
    recorded = {own["name"]: own for own in run.digest["genes"]}
    found = []
    for place, name in enumerate(names):
        if run.models and is_fixed(run.config.get("space", {}), name):
            continue
        own = recorded.get(name, {})
        gene = Gene(name, place, own.get("min", 0.0), own.get("max", 0.0),
                    tuple(run.schema.shown(name, option) for option in own.get("options", ())),
                    choices)
        raw = {gene.raw(label) for label in labels} - {None}
        if run.models:
            gene = replace(gene, options=tuple(option for option in gene.options if option in raw))
        if len(raw) > 1 and (not gene.numeric or all(map(is_number, raw))):
            found.append(gene)
    return found


def _choices(run: Run, labels: set[str]) -> dict[str, Sequence[str | None]]:
    """What each mechanism has, by label; empty where names of another form do not say it."""
    def shown(names: Sequence[str], own: Sequence[str | None]) -> list[str | None]:
        return [option and run.schema.shown(name, option) for name, option in zip(names, own)]

    if run.models:
        return {run.label(name): shown(run.models["genes"], own)
                for name, own in run.models["choices"].items()}
    names = run.schema.genes
    if any(label.count("|") + 1 != len(names) for label in labels):
        return {}
    return (
        {label: run.schema.function_of(shown(names, label.split("|")), names) for label in labels})


def is_fixed(space: Mapping[str, object], name: str) -> bool:
    """Whether the section `space` gives one value for a gene, perhaps of a slot ("slot0.window"): a
    baseline of another space may differ in it."""
    listed = space.get(place_of(name)[1])
    if isinstance(listed, list):
        return len(listed) == 1
    return listed is not None and not isinstance(listed, dict)
