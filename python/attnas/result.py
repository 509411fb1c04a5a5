"""A run as data frames."""

from __future__ import annotations

import base64
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnas.analysis import latex, run as record
from attnas.analysis.digest import BadInput
from attnas.analysis.html import Html, element, join, plain, text
from attnas.analysis.words import counted, number

import attnas
from attnas.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN = 10


def load(path: str | os.PathLike) -> Run | list[dict[str, Any]]:
    """Reads a run, or the log of a campaign of attnas judge.

    @param path  the folder of a campaign or of a run, its store.sqlite or its results.json. Where
        the store knows more than results.json, as of a run that goes on, nas-export is asked.
    @throws InputError  where there is no run, or no nas-export where it takes one.
    """
    if os.path.isfile(os.path.join(path, "ideas.csv")):
        from attnas.judge import campaign
        return campaign.load(Path(path))
    return Run(path)


class Run:
    """A run as it was when it was read. Frames are made when they are first asked for, and then
    kept. Values are in natural units and in an objective's own sense; asks count from 1, as in
    evaluations.csv."""

    def __init__(self, path: str | os.PathLike):
        """As load()."""
        try:
            self._record = record.Run(Path(path))
        except BadInput as error:
            raise InputError(str(error)) from None
        self.path = Path(path)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self._record.name

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, complete: every setting with its effective value."""
        return self._record.config

    @cached_property
    def digest(self) -> dict[str, Any]:
        """All that results.json says (docs/files.md), with records in the place of blocks, names
        and ids in that of numbers: in memory, once it is asked for."""
        return self._record.digest.plain()

    @property
    def objectives(self) -> list[str]:
        """Names of the objectives, which are columns of the attnas.frames."""
        return [objective.name for objective in self._record.objectives]

    @cached_property
    def verdict(self) -> str:
        """What came out, in words, with what can be said for certain."""
        return "\n\n".join(plain(paragraph) for paragraph in self._words)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """A row per candidate: the usable ones the best first, the baseline, its controls (named in
        the column `control`), then what failed or was rejected."""
        return attnas.frames.candidates(self._record)

    @cached_property
    def front(self) -> pd.DataFrame:
        """The non-dominated candidates, and which is the knee; with one objective the best."""
        front = self.candidates[self.candidates.on_front].rename(columns={"on_front": "knee"})
        return front.assign(knee=front.candidate == self._record.knee)

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """A row per candidate measured once: the columns of evaluations.csv, and what else is
        recorded of it."""
        return attnas.frames.evaluations(self._record)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """A row per validation of a training run."""
        return attnas.frames.curves(self._record)

    @cached_property
    def asks(self) -> pd.DataFrame:
        """A row per question of the algorithm."""
        return attnas.frames.asks(self._record)

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """A row per mechanism of what was listed in place of a search, or trained again after it on
        fresh seeds: how far it is from the baseline, with interval and p. Empty where a run has
        neither."""
        return attnas.frames.comparison(self._record)

    def to_latex(self) -> str:
        """The comparison as a table of LaTeX (booktabs), as analysis/export.py --format latex.

        @throws InputError  where there is none.
        """
        try:
            return latex.table(self._record)
        except BadInput as error:
            raise InputError(str(error)) from None

    @cached_property
    def pictures(self) -> dict[str, str]:
        """SVG by name: how the search came on, its front or ranking, and learning curves."""
        from attnas.analysis.sections import curves, front, progress
        drawn = {name: each for section in (front, progress, curves)
                 for name, each in section.pictures(self._record).items()}
        return {name: each.file(self.name) for name, each in drawn.items()}

    @cached_property
    def _words(self) -> list[Html]:
        from attnas.analysis.sections import verdict  # SciPy takes a second, which frames need not
        return verdict.words(self._record)

    def __repr__(self) -> str:
        run = self._record
        counts = run.digest["counts"]
        algorithm = run.config.get("algorithm", {}).get("name", "")
        parts = [f"{algorithm}, {counted(counts['asked'], 'ask')}" if algorithm else
                 counted(counts["asked"], "ask"),
                 counted(counts["evaluated"], "evaluation"), f"{counts['failures']} failed"]
        if run.listed:
            parts = [counted(run.num_trained, "evaluation"), f"{len(run.failures)} failed"]
        elif run.several:
            parts.append(f"front of {len(run.front)} over {', '.join(self.objectives)}")
        elif run.ranking:
            best = run.ranking[0]
            parts.append(f"best {self.objectives[0]} {number(best.values[0])} {best.label}")
        if not run.ended_by:
            parts.append("not ended")
        return f"<attnas run {self.name} in {self.path}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        shown = self.front if self._record.several and not self._record.listed else self.candidates
        left = len(shown) - _MOST_SHOWN
        columns = ["mechanism", *self.objectives, "n", "first_ask"]
        table = Html(shown.head(_MOST_SHOWN).to_html(columns=columns, index=False, border=0))
        name = next((name for name in self.pictures if name.startswith("front")), None)
        picture = name and element("img", alt=name, src="data:image/svg+xml;base64," +
                                   base64.b64encode(self.pictures[name].encode()).decode())
        return join(element("h4", text(self.name)), *self._words, picture, table,
                    element("p", f"and {left} more") if left > 0 else None)
