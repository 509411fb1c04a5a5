"""Everything that was evaluated, the worst included."""

from __future__ import annotations

from attnas.analysis.html import Html, element, join, mechanism
from attnas.analysis.page import Cell, Section, note, table
from attnas.analysis.run import Run
from attnas.analysis.sections.front import change
from attnas.analysis.words import duration, number

MOST_ROWS = 1000


def section(run: Run) -> Section | None:
    """A row per mechanism."""
    return Section("mechanisms", "All mechanisms", _all(run)) if run.ranking else None


def _all(run: Run) -> Html:
    shown = run.ranking[:MOST_ROWS]
    header = ["#", "mechanism", *(o.title for o in run.objectives)]
    if run.baseline:
        header.append("to baseline")
    header += ["n", "first ask"] if run.trained else ["first ask"]
    if run.trained:
        header.append("trained")
    if run.several:
        header.append("front")
    rows = []
    for candidate in shown:
        row = [Cell(candidate.rank + 1, candidate.rank),
               Cell(mechanism(candidate.label, candidate.brief), candidate.label, left=True)]
        row += [Cell(number(value), value) for value in candidate.values]
        if run.baseline:
            row.append(Cell(candidate.stop_text or change(candidate.values[0],
                                                          run.baseline.values[0]),
                            candidate.values[0]))
        if run.trained:
            row.append(Cell(candidate.n_text, candidate.n))
        row.append(Cell(candidate.first_ask + 1, candidate.first_ask))
        if run.trained:
            row.append(Cell(duration(candidate.seconds), candidate.seconds))
        if run.several:
            row.append(Cell("\u25cf" if candidate.on_front else "", int(candidate.on_front)))
        rows.append(row)
    filter_ = element("input", type="search", placeholder="filter: sparsemax highway",
                      aria_label="filter the mechanisms", data_filters="all",
                      data_counts="shown", class_="screen")
    cut = (note(f"The first {MOST_ROWS} of {len(run.ranking):,}; evaluations.csv has all.")
           if len(run.ranking) > MOST_ROWS else None)
    printed = element("p", "On paper the first 30 rows.", class_="note paper")
    return join(element("h3", "Table"), filter_, " ",
                element("span", f"{len(shown)} of {len(shown)}", id="shown", class_="note screen"),
                table(header, rows, sortable=True, marked=[c.rank for c in shown], id="all"), cut,
                printed if len(shown) > 30 else None)
