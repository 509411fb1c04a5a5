"""How alike the candidates of a generation are."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from attnas.analysis.genes import Gene, genes
from attnas.analysis.html import join
from attnas.analysis.page import Section, note, paragraph
from attnas.analysis.run import Ask, Run
from attnas.analysis.svg import Axis, Frame, Picture, figure, tip
from attnas.analysis.words import counted, percent

MOST_GROUPS = 60


@dataclass
class Diversity:
    """Of one group of asks."""

    name: str
    asked: int
    hamming: float  # mean share of genes in which two members differ
    distinct: float  # share of members that differ from all earlier ones
    entropy: list[float]  # of each gene where it applies, 1 = all its options equally often


def section(run: Run) -> Section | None:
    """Hamming distance, distinct share and entropy of each gene, by batch."""
    found = genes(run)
    if not found or run.listed:
        return None
    groups = _groups(run)
    if len(groups) < 2:
        return Section("diversity", "Population diversity", paragraph(
            "The search has one batch only: nothing to follow."))
    series = [measure(run, name, asks, found) for name, asks in groups]
    return Section("diversity", "Population diversity", join(
        figure(lambda width: _lines(series, width),
               "Mean Hamming distance: the share of genes in which two members of a batch "
               "differ. Distinct: the share of its members that are not copies."),
        figure(lambda width: _entropy(series, found, width),
               "Entropy of each gene, by batch: full colour = all options equally often, none "
               "= only one is left."),
        note("A number such as attention dropout counts by thirds of its range. Diversity that "
             "vanishes early says that the search converged; whether to the right place it does "
             "not say."),
    ))


def _groups(run: Run) -> list[tuple[str, list[Ask]]]:
    """Batches; as many asks as a population where the algorithm asks one by one."""
    batches: dict[int, list[Ask]] = {}
    for ask in run.asks:
        batches.setdefault(ask.batch, []).append(ask)
    groups = list(batches.values())
    if len(groups) > MOST_GROUPS or len(run.asks) < 3 * len(groups):
        population = (run.config.get("algorithm") or {}).get("population")
        size = population if isinstance(population, int) and population > 1 else 20
        size = max(size, math.ceil(len(run.asks) / MOST_GROUPS))
        groups = [run.asks[i:i + size] for i in range(0, len(run.asks), size)]
        if len(groups) > 1 and len(groups[-1]) < size / 2:  # too few to compare
            groups[-2:] = [groups[-2] + groups[-1]]
        return [(f"asks {g[0].number + 1} to {g[-1].number + 1}", g) for g in groups]
    return [(f"batch {group[0].batch}", group) for group in groups]


def measure(run: Run, name: str, asks: list[Ask], found: list[Gene]) -> Diversity:
    labels = [run.label(ask.candidate) for ask in asks]
    members = [tuple(gene.option(label) for gene in found) for label in labels]
    n = len(members)
    entropy, distance = [], 0.0
    for place, gene in enumerate(found):
        counts = Counter(member[place] for member in members)
        if n > 1:  # pairs that differ, of all pairs
            distance += (1 - sum((count / n) ** 2 for count in counts.values())) * n / (n - 1)
        having = n - counts.pop(None, 0)
        shares = [count / having for count in counts.values()]
        options = max(3 if gene.numeric else len(gene.options), len(counts), 2)
        entropy.append(-sum(s * math.log(s) for s in shares) / math.log(options))
    return Diversity(name, n, distance / len(found), len(set(members)) / n,
                      [abs(value) for value in entropy])


def _lines(series: list[Diversity], width: float) -> Picture:
    picture = Picture(width, 270, "diversity by batch")
    frame = Frame(52, 34, width - 14, 224)
    y = Axis(0.0, 1.0)
    x = Axis(-0.5, len(series) - 0.5, whole=True)
    picture.left_axis(frame, y, "share", most=5)
    picture.bottom_axis(frame, x, series[0].name.split(" ")[0])
    legend = frame.right
    for name, key, line, fill in (("distinct", "distinct", "line2", "fill-point"),
                                  ("Hamming distance", "hamming", "line", "fill-best")):
        points = [(x(i), y(getattr(each, key))) for i, each in enumerate(series)]
        picture.path(points, line)
        for (px, py), each in zip(points, series):
            picture.dot(px, py, 3.5, fill, tip(
                each.name, f"mean Hamming distance {percent(each.hamming)}",
                f"distinct {percent(each.distinct)}", counted(each.asked, "candidate")))
        picture.text(legend, 18, name, "small", "end")
        legend -= 6.8 * len(name) + 10
        picture.line(legend - 18, 14, legend, 14, line)
        legend -= 34
    return picture


def _entropy(series: list[Diversity], found: list[Gene], width: float) -> Picture:
    names = 7.0 * max(len(gene.name) for gene in found) + 10
    left, row = max(112.0 if width < 600 else 150.0, names), 24.0
    cell = min(48.0, (width - left - 10) / len(series))
    picture = Picture(width, row * len(found) + 26, "entropy of each gene by batch")
    for i, gene in enumerate(found):
        picture.text(left - 8, row * i + 17, gene.name.replace("_", " "), "small", "end")
        for j, each in enumerate(series):
            picture.rectangle(left + cell * j, row * i + 2, cell - 1, row - 3, "fill-best",
                              tip(gene.name.replace("_", " "), each.name,
                                  f"entropy {percent(each.entropy[i])} of the most possible"),
                              fill_opacity=round(0.04 + 0.86 * each.entropy[i], 3))
    bottom = row * len(found) + 18
    picture.text(left, bottom, series[0].name, "tick")
    if cell * len(series) > 150:
        picture.text(left + cell * len(series), bottom, series[-1].name, "tick", "end")
    return picture
