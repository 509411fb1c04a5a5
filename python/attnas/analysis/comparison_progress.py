"""What searches have reached on the way to their budget: chapters and tables of a comparison."""

import numpy as np

from . import comparison, figures, statistics
from .comparison import Comparison
from .comparison_words import Words, bracketed, share_text
from .files import csv_text
from .page import Chapter, Columns, Paragraph, Pictures
from .svg import Figure
from .words import digits, joined


def anytime(result: Comparison, words: Words) -> Chapter:
    """Performance over what was spent."""
    pictures = {}
    axis = "trainings" if words.spent == "trainings" else "training steps, in whole training runs"
    for spent, name in (("trained", axis), ("seconds", "charged training seconds")):
        if (spent, "gap") not in result.algorithms[0].curves:
            continue
        for what in ("gap", "believed") if result.true or not result.several else ("gap",):
            pictures[f"{what}_by_{spent}.svg"] = _curves(result, words, spent, name, what)
    shares = [share for share in (0.25, 0.5, 1.0) if int(share * result.budget) >= 1]
    budgets = [max(int(share * result.budget), 1) for share in shares]
    rows = []
    for algorithm in result.algorithms:
        curve = algorithm.curves["trained", "gap"]
        places = np.searchsorted(curve.x, budgets, side="right") - 1
        rows.append([algorithm.name, *(
            bracketed(words.interval(statistics.Interval(curve.middle[i], curve.low[i],
                                                         curve.high[i]))) for i in places)])
    head = ["algorithm", *(f"after {budget} {words.spent}" for budget in budgets)]
    return Chapter("progress", "While the search goes on", [
        Pictures(pictures),
        Paragraph(f"{words.gap}, {words.whole}: median [quartiles] over searches."),
        Columns(head, rows)])


def _curves(result: Comparison, words: Words, spent: str, name: str, what: str) -> Figure:
    def shown(values):
        return words.quality(values) if what == "gap" else words.value(values)

    lines = []
    for algorithm in result.algorithms:
        curve, style = algorithm.curves[spent, what], words.styles[algorithm.name]
        with_band = algorithm.name in {result.algorithms[0].name, words.reference, *words.shown}
        bands = [shown(curve.low), shown(curve.high)] if with_band else [None, None]
        lines.append(figures.Line(algorithm.name, style, shown(curve.middle), *bands))
    x = result.algorithms[0].curves[spent, what].x
    floor, lowest = 0.0, ""
    if what == "gap" and not result.several:
        floor, lowest = _floor(result, lines)
    title = words.gap if what == "gap" else words.believed
    meaning = words.whole if what == "gap" or result.several else "what searchers see"
    return figures.curves(f"{title[0].upper()}{title[1:]}, by {name.split()[-1]}",
                          f"Median over searches ({meaning}); bands: quartiles.", x, name, title,
                          lines, floor, lowest)


def _floor(result: Comparison, lines: list) -> tuple[float, str]:
    """Lower end of a logarithmic axis of gaps, and its name where gaps lie below it."""
    values = np.concatenate([line.middle for line in lines]
                            + [line.low for line in lines if line.low is not None])
    positive = values[np.isfinite(values) & (values > 0)]
    finest = result.targets[-2] if len(result.targets) > 1 else 0.0
    floor = float(max(0.7 * np.min(positive, initial=np.inf if len(positive) else 1.0), finest))
    return floor, f"\u2264{floor:.2g}" if (values < floor).any() else ""


def over_draws(results: list[Comparison], words: Words) -> Chapter:
    """Algorithms against the reference on other draws of a table's seeds."""
    if not results or not results[-1].over_draws:
        return Chapter("draws", "On another draw of the seeds", [])
    last = results[-1]
    reference = last.algorithms[last.reference].name
    found = [
        dict(zip((a.name for a in result.algorithms), result.over_draws)) for result in results]
    names = [a.name for a in last.algorithms if a.name != reference]
    head = ["algorithm", *(f"{result.budget} {words.spent}" for result in results)]
    searches = len(last.algorithms[last.reference].traces)
    title = "On another draw of the seeds"
    if searches <= last.noises:  # each is better, or worse: no interval of such says anything
        rows = [[name, *(digits(each[name].another.point) for each in found)] for name in names]
        return Chapter("draws", title, [
            Paragraph(f"Share of {searches} draws of the table's seeds on which a search was "
                      f"better than one of {reference}, ties half. With one search on each, "
                      "another draw's cannot be told; twice as many --seeds as there are draws "
                      "have two."), Columns(head, rows)])
    return Chapter("draws", title, [
        Paragraph(f"Probability that a search is better than one of {reference} on the same draw, "
                  f"ties half, mean over {last.noises} draws of the table's seeds [95 % of what "
                  "would be true on another draw]: the spread between draws, without that of the "
                  "few searches on each."),
        Columns(head, [[name, *(bracketed(each[name].another) for each in found)]
                       for name in names]),
        Paragraph(f"{reference} has met one of the best {comparison.BEST} mechanisms in " + joined([
            f"{share_text(result.met_best)} of its searches at {result.budget}"
            for result in results
        ]) + "."),
        Paragraph("Held-out draws: the share that lies in the interval which the other half of the "
                  "draws gives [the interval by all of them], of what an algorithm's searches on a "
                  f"draw measure ({searches / last.noises:.3g} of each)."),
        Columns(head, [[
            name, *(f"{share_text(each[name].covered)} [{digits(each[name].measured.low)}, "
                    f"{digits(each[name].measured.high)}]" for each in found)
        ] for name in names])
    ])


def by_draws(results: list[Comparison]) -> str:
    """draws.csv: a row for each budget and algorithm, numbers unrounded."""
    rows = [[
        result.budget, algorithm.name, result.noises,
        len(algorithm.traces), result.met_best,
        *map(float, [*found.mean, *found.another[1:], *found.measured[1:], found.covered])
    ] for result in results for algorithm, found in zip(result.algorithms, result.over_draws)
            if found]
    return csv_text([
        "budget", "algorithm", "draws", "searches", "reference_met_best", "improvement",
        "improvement_low", "improvement_high", "another_draw_low", "another_draw_high",
        "measured_draw_low", "measured_draw_high", "held_out_covered"], rows)


def budgets(results: list[Comparison], pruned: list[list], words: Words) -> Chapter:
    """The same at several budgets of searches that were recorded to the largest.

    @param pruned  of each result, see pruned_of.
    """
    if not results:
        return Chapter("budgets", "At several budgets", [])
    first = results[-1]
    by_name = [{
        a.name: (_gap(result, i), result.fruitless.get(a.name, 0) / len(a.traces), lost)
        for i, (a, lost) in enumerate(zip(result.algorithms, losses))
    } for result, losses in zip(results, pruned)]
    names = [algorithm.name for algorithm in first.algorithms]
    noise = ", the table's noise in it" if first.against else ""
    parts = [
        Paragraph(f"Interquartile means of {words.gap} [95 %{noise}] after so many {words.spent}. "
                  "A search that was given more is judged by what it would return there; where "
                  "more than a fifth of the searches have nothing usable yet, that is said "
                  "instead."),
        Columns(["algorithm", *(str(result.budget) for result in results)], [[
            name, *(f"nothing in {share_text(nothing)}" if nothing > 0.2 else bracketed(
                words.interval(gap)) for gap, nothing, _ in (each[name] for each in by_name))
        ] for name in names])
    ]
    if first.true:
        count = min(comparison.BEST, len(first.searches.candidates.truth))
        best = "members of the true front" if first.several else f"best {count} mechanisms"
        parts += [
            Paragraph(f"Of the {best} a search begins on average so many, and does not train such "
                      f"a share of those to the end "
                      f"[95 % over {words.units}]. Which are the best is taken as exact."),
            Columns(["algorithm", *(str(result.budget) for result in results)], [[
                name, *(f"{digits(lost.begun)}: {bracketed(lost.share)}" if lost.begun else "0"
                        for _, _, lost in (each[name] for each in by_name))] for name in names])]
    return Chapter("budgets", "At several budgets", parts)


def _gap(result: Comparison, i: int) -> statistics.Interval:
    return result.against.gaps[i] if result.against else result.algorithms[i].iqm


def pruned_of(result: Comparison) -> list[comparison.Pruned | None]:
    """Of each algorithm what became of the best that it began; None without ground truth."""
    return comparison.pruned(result) if result.true else [None] * len(result.algorithms)


def by_budget(results: list[Comparison], pruned: list[list]) -> str:
    """budgets.csv: a row for each budget and algorithm, numbers unrounded."""
    rows = []
    for result, losses in zip(results, pruned):
        for i, (algorithm, lost) in enumerate(zip(result.algorithms, losses)):
            against = result.against and result.against.returned[i]
            values = [*algorithm.iqm, *(result.against.gaps[i][1:] if result.against else
                                        (np.nan, ) * 2), *(against or (np.nan, ) * 3),
                      result.fruitless.get(algorithm.name, 0),
                      *([lost.begun, *lost.share] if lost else [np.nan] * 4)]
            rows.append([result.budget, algorithm.name, len(algorithm.traces), *map(float, values)])
    return csv_text([
        "budget", "algorithm", "searches", "gap_iqm", "gap_iqm_low", "gap_iqm_high",
        "gap_with_table_low", "gap_with_table_high", "improvement_with_table",
        "improvement_with_table_low", "improvement_with_table_high", "nothing", "best_begun",
        "best_pruned", "best_pruned_low", "best_pruned_high"
    ], rows)


def targets(result: Comparison, words: Words) -> Chapter:
    """When searches reach what."""
    optimum = "optimum" if result.true else "best seen"
    start = "the start of " + (words.reference or "all searches")
    lines = [figures.Line(a.name, words.styles[a.name], a.ecdf) for a in result.algorithms]
    picture = figures.curves(
        "Targets reached", f"Share of all pairs of a search and one of {len(result.targets)} "
        f"targets, from {start} to the {optimum}.", result.trainings, words.spent, "share reached",
        lines, y_range=(0.0, 1.0))
    head = ["algorithm"]
    for share in comparison.ERT_SHARES:
        head += [f"{words.spent} to {share_text(1 - share)}", "reached"]
    rows = [[
        a.name, *(text for time, success in zip(a.running_times, a.successes)
                  for text in ("never" if time == np.inf else digits(time), share_text(success)))
    ] for a in result.algorithms]
    gap = digits(result.start)
    return Chapter("targets", "Targets", [Pictures({"targets.svg": picture}), Paragraph(
        f"Expected {words.spent} until "
        f"{joined([share_text(1 - s) for s in comparison.ERT_SHARES])} "
        f"of the way from {start} (median gap {gap}) to the {optimum} are done, if "
        "searches that miss were begun anew; and the share of searches that get there. A "
        "target counts as reached when the gap stays at or below it for the rest of the "
        "search: an incumbent that is given up for a worse one has reached nothing."),
                                          Columns(head, rows)])


def attainment(result: Comparison, words: Words) -> Chapter:
    """Where in the plane of two objectives searches arrive."""
    if len(result.searches.objectives) != 2:
        return Chapter("attainment", "Attainment", [])
    algorithms = result.algorithms
    of_each = [comparison.surfaces(algorithm) for algorithm in algorithms]
    front = np.empty((0, 2))
    if result.true:
        truth = result.searches.candidates.truth
        front = truth[comparison.indicators.non_dominated(truth)]
    corners = np.concatenate([front, *(surface for each in of_each for surface in each)])
    on = figures.plane(result.searches.objectives, corners)
    dots = "; dots: the true front" if result.true else ""
    reference = None if result.reference is None else of_each[result.reference][1]
    dashed = "" if reference is None else f"; dashed: the median of {words.reference}"
    pictures = {"attainment.svg": figures.surfaces(
        "Attainment", f"Line: what half of the searches attain; band: from a quarter to three "
        f"quarters{dashed}{dots}.", on,
        [figures.Panel(a.name, words.styles[a.name], *each)
         for a, each in zip(algorithms, of_each)], reference, front)}
    if result.reference is not None:
        for i, algorithm in enumerate(algorithms):
            if i == result.reference or not (i == 0 or algorithm.name in words.shown):
                continue
            low, high, share = comparison.surface_difference(algorithm,
                                                             algorithms[result.reference])
            name = f"attainment_difference_{_file_name(algorithm.name)}.svg"
            pictures[name] = figures.difference(
                f"{algorithm.name} against {words.reference}",
                "Where one attains points more often: the deeper, the larger the difference of "
                f"shares (largest {share_text(np.max(np.abs(share), initial=0))}, white below "
                f"{share_text(0.1)}){dots}.", on, (algorithm.name, words.reference), low, high,
                share, front)
    values = "true" if result.true else "measured"
    return Chapter("attainment", "Attainment", [
        Paragraph(f"A search attains a point if something on the front that it returns is "
                  f"at least as good in both objectives, by {values} values."), Pictures(pictures)])


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def interval_columns(name: str, interval: statistics.Interval | None) -> dict[str, float]:
    """Columns of an interval."""
    point, low, high = interval or (np.nan,) * 3
    return {name: point, f"{name}_low": low, f"{name}_high": high}
