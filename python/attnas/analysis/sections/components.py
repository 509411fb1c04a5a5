"""The objective by the option of each gene."""

from __future__ import annotations

from statistics import median

from attnas.analysis.effects import effects
from attnas.analysis.genes import Gene, genes
from attnas.analysis.html import Html, join
from attnas.analysis.page import Cell, Section, folded, note, table
from attnas.analysis.run import Candidate, Run
from attnas.analysis.sections.front import describe
from attnas.analysis.svg import Frame, Picture, figure, thinned, value_axis
from attnas.analysis.words import listed, number, p_value, range_text, shortened, signed


def section(run: Run) -> Section | None:
    """One dot per mechanism, the median of each option, and how many mechanisms have it."""
    found = genes(run)
    if not found or len(run.comparable) < 2:
        return None
    objective = run.noisy or 0
    return Section("components", "Components", join(
        figure(lambda width: _picture(run, found, objective, width),
               "A dot a mechanism, its mean over replicates; bar: median. Right: the median and "
               "the number of mechanisms; arrows lie beyond the axis."),
        note("A search asks more often for combinations that did well, so that an option's dots "
             "also show its company: these are distributions, not effects."),
        _not_applicable(run, found),
        _effects(run, objective),
    ))


def _not_applicable(run: Run, found: list[Gene]) -> Html | None:
    """Which genes have no effect in some mechanisms."""
    names = [gene.name.replace("_", " ") for gene in found
             if any(gene.raw(candidate.label) is None for candidate in run.comparable)]
    if not names:
        return None
    verb = "is" if len(names) == 1 else "are"
    return note(f"{listed(names, 8)} {verb} not applicable to mechanisms in which another option "
                "leaves nothing to choose. Their rows leave these mechanisms out.")


def _effects(run: Run, objective: int) -> Html | None:
    found = effects(run, objective)
    if not found:
        return None
    rows = [[Cell(each.gene.replace("_", " "), left=True), Cell(each.option, left=True),
             Cell(each.instead_of, left=True), Cell(signed(each.value)),
             Cell(range_text(each.low, each.high)), Cell(p_value(each.p_holm)),
             Cell(f"{each.n} and {each.n_instead}")] for each in found]
    return folded("Effects of options across mechanisms", join(
        table(["gene", "option", "instead of", f"changes {run.objectives[objective].title} by",
               "95 % interval", "p (Holm)", "mechanisms"], rows),
        note("Least squares over all genes; what options do only together counts as error, and "
             "that a search chose the mechanisms is not known to it. A gene that is not applicable "
             "adds nothing. Intervals stand each for itself.")))


def by_option(run: Run, gene: Gene) -> dict[str, list[Candidate]]:
    """The comparable candidates to which a gene applies by its option, in the space's order, then
    as found."""
    groups: dict[str, list[Candidate]] = {option: [] for option in gene.options}
    for candidate in run.comparable:
        if (option := gene.option(candidate.label)) is not None:
            groups.setdefault(option, []).append(candidate)
    if gene.numeric:
        groups = dict(sorted(groups.items(), key=lambda item: float(item[0].split(" ")[0])))
    return groups


def _picture(run: Run, found: list[Gene], objective: int, width: float) -> Picture:
    narrow = width < 600
    described = run.objectives[objective]
    groups = [(gene, by_option(run, gene)) for gene in found]
    row, head = 25.0, 30.0
    height = sum(head + row * len(options) for _, options in groups)
    left, right = (112.0, 84.0) if narrow else (170.0, 130.0)
    frame = Frame(left, 4, width - right, 4 + height)
    picture = Picture(width, height + 56, f"{described.name} by component")
    values = [candidate.values[objective] for candidate in run.comparable]
    x = value_axis(values, described.maximise,
                   [run.baseline.values[objective]] if run.baseline else [])
    picture.bottom_axis(frame, x, described.title, grid=True)
    if run.baseline:
        place = x(run.baseline.values[objective])
        picture.line(place, frame.top, place, frame.bottom, "dashed")
        picture.text(place, frame.top + 12, "baseline", "baseline-text label small", "middle")
    y = frame.top
    for gene, options in groups:
        picture.text(2, y + 20, gene.name.replace("_", " "), "head label")
        y += head
        for option, candidates in options.items():
            _row(picture, run, option, candidates, objective, x, y + row / 2)
            y += row
    return picture


def _row(picture: Picture, run: Run, option: str, candidates: list[Candidate], objective: int,
         x, y: float) -> None:
    narrow = picture.narrow
    picture.text(x.start - 10, y + 4, shortened(option, 15 if narrow else 22), "small label",
                 "end")
    if not candidates:
        picture.text(x.start + 4, y + 4, "nothing to compare", "muted")
        return
    for i, candidate in enumerate(thinned(candidates, 200)):
        value = candidate.values[objective]
        words = describe(run, candidate)
        jitter = 2.0 * (candidate.rank * 7 % 5 - 2)  # so that equal values stay apart
        if x.holds(value):
            picture.dot(x(value), y + jitter, 3.5, "pale", words, candidate.rank)
        else:
            picture.sign(x(value), y, "\u2192" if value > x.high else "\u2190", "edge-text",
                         words, candidate.rank)
    middle = median(candidate.values[objective] for candidate in candidates)
    picture.line(x(middle), y - 9, x(middle), y + 9, "median")
    picture.text(picture.width - 2, y + 4,
                 f"{number(middle)}{', n = ' if not narrow else ' · '}{len(candidates)}",
                 "small", "end")
