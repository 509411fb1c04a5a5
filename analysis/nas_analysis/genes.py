"""The genes of a run's mechanisms: which there are, and which option each mechanism has.

A mechanism's label is its options, one per gene: similarity|normalization|... Where names are longer
than the paper's six genes, the digest says what each mechanism has. A gene of numbers counts by
thirds of its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nas_analysis.run import Run


@dataclass(frozen=True)
class Gene:
    """One gene of the search space."""

    name: str
    place: int  # in a label
    low: float = 0.0  # range, where it is a number
    high: float = 0.0
    options: tuple[str, ...] = ()  # of a categorical gene, as the space lists them
    # What mechanisms have, by label; None: their labels say it.
    choices: Mapping[str, Sequence[str]] | None = field(default=None, compare=False, repr=False)

    @property
    def numeric(self) -> bool:
        """Whether its options are numbers of a range."""
        return self.high > self.low

    def raw(self, label: str) -> str:
        """What a mechanism has of it, whose label is given."""
        chosen = label.split("|") if self.choices is None else self.choices[label]
        return chosen[self.place]

    def option(self, label: str) -> str:
        """The option that a label has; of a number the third of the range."""
        raw = self.raw(label)
        if not self.numeric:
            return raw
        third = min(2, int(3 * (float(raw) - self.low) / (self.high - self.low)))
        width = (self.high - self.low) / 3
        return f"{self.low + third * width:.3g} to {self.low + (third + 1) * width:.3g}"


def genes(run: Run) -> list[Gene]:
    """The genes that vary; empty where it is not known what every candidate has of them."""
    labels = [run.label(evaluation.candidate) for evaluation in run.evaluations]
    names, choices = run.schema.genes, None
    if run.models:
        names = run.models["genes"]
        choices = {run.label(name): own for name, own in run.models["choices"].items()}
    if not labels or any(label not in choices if choices is not None else
                         label.count("|") + 1 != len(names) for label in labels):
        return []
    recorded = {own["name"]: own for own in run.digest["genes"]}
    found = []
    for place, name in enumerate(names):
        if choices is not None and is_fixed(run.config.get("space", {}), name):
            continue
        own = recorded.get(name, {})
        gene = Gene(name, place, own.get("min", 0.0), own.get("max", 0.0),
                    tuple(own.get("options", ())), choices)
        raw = {gene.raw(label) for label in labels}
        if choices is not None:  # an option may be another name of one, as kv_heads = heads of 0
            gene = replace(gene, options=tuple(option for option in gene.options if option in raw))
        if all(map(_is_number, raw)) if gene.numeric else len(raw) > 1:
            found.append(gene)
    return found


def is_fixed(space: Mapping[str, object], name: str) -> bool:
    """Whether the section `space` gives one value for a gene, perhaps of a slot ("slot0.window").

    Beside options that leave it without effect, such a gene reads as its default: as if it varied.
    """
    listed = space.get(name.rsplit(".", 1)[-1])
    if isinstance(listed, list):
        return len(listed) == 1
    return listed is not None and not isinstance(listed, dict)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
