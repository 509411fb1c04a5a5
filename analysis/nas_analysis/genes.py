"""The genes of a run's mechanisms: which there are, and which option each mechanism has.

A mechanism's label is its options, one per gene: similarity|normalization|... A gene of numbers
counts by thirds of its range.
"""

from __future__ import annotations

from dataclasses import dataclass

from nas_analysis.run import Run


@dataclass(frozen=True)
class Gene:
    """One gene of the search space."""

    name: str
    place: int  # in a label
    low: float = 0.0  # range, where it is a number
    high: float = 0.0
    options: tuple[str, ...] = ()  # of a categorical gene, as the space lists them

    @property
    def numeric(self) -> bool:
        """Whether its options are numbers of a range."""
        return self.high > self.low

    def raw(self, label: str) -> str:
        """What a label says of it."""
        return label.split("|")[self.place]

    def option(self, label: str) -> str:
        """The option that a label has; of a number the third of the range."""
        raw = self.raw(label)
        if not self.numeric:
            return raw
        third = min(2, int(3 * (float(raw) - self.low) / (self.high - self.low)))
        width = (self.high - self.low) / 3
        return f"{self.low + third * width:.3g} to {self.low + (third + 1) * width:.3g}"


def genes(run: Run) -> list[Gene]:
    """The genes that vary; empty where candidates are no mechanisms of one layer kind."""
    space = run.config.get("space") or {}
    labels = [run.label(evaluation.candidate) for evaluation in run.evaluations]
    if not labels or any(label.count("|") + 1 != len(run.schema.genes) for label in labels):
        return []
    found = []
    for place, name in enumerate(run.schema.genes):
        given = space.get(name)
        if isinstance(given, dict):
            gene = Gene(name, place, float(given.get("min", 0)), float(given.get("max", 0)))
            varies = gene.numeric and all(_is_number(gene.raw(label)) for label in labels)
        else:
            options = tuple(str(option) for option in given or ())
            if name == "bias":
                options = tuple({"True": "bias", "False": "no_bias"}.get(o, o) for o in options)
            gene = Gene(name, place, options=options)
            varies = len({gene.raw(label) for label in labels}) > 1
        if varies:
            found.append(gene)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
