"""The re-test on seeds that the search has not seen, beside the score that the search saw; or what
was listed in place of a search, on such seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnas.analysis import latex
from attnas.analysis.digest import Objective, seed_number
from attnas.analysis.html import Html, element, join, mechanism
from attnas.analysis.measures import Measure, measure_of
from attnas.analysis.page import Cell, Section, note, paragraph, table
from attnas.analysis.run import Run, finite_or
from attnas.analysis.sections.controls import counts
from attnas.analysis.sections.verdict import retest_lacks
from attnas.analysis.svg import Figure, Frame, Picture, tip, value_axis
from attnas.analysis.words import NOTHING, number, p_value, percent, range_text, shortened, signed

NAN = float("nan")


def section(run: Run) -> Section | None:
    """Search score beside re-test score, and the differences from the baseline."""
    retest = run.retest
    if run.noisy is None:
        return None
    if run.listed:
        return _comparison(run) if retest else None
    if retest_lacks(run):
        return Section("retest", "Re-test", paragraph(
            "The re-test, which trains the best mechanisms and the baseline again on held-out "
            "seeds, is not finished" + ("." if run.at_work else ": the same command continues.")))
    if not retest.get("candidates"):
        return None
    records = retest["candidates"]
    objective = run.objectives[run.noisy]
    return Section("retest", "Re-test", join(*(figure.html() for figure in pictures(run).values()),
                                             _bias(run, records, objective), _table(run, records),
                                             _reading(run), counts(run)))


def pictures(run: Run) -> dict[str, Figure]:
    """The picture of the re-test, or of what was listed, by the name of its file; none where there
    is none.
    """
    records = run.retest.get("candidates") or []
    if run.noisy is None or not records:
        return {}
    objective = run.objectives[run.noisy]
    words = f"Mean over the seeds, with its {_interval(run.retest)}."
    if not run.listed:
        beyond = " beyond the baseline's" if any(record["role"] == "baseline"
                                                 for record in records) else ""
        words = ("Hollow: the score that the search saw. Filled: mean over held-out seeds, with "
                 f"its {_interval(run.retest)}. A shift to the worse{beyond} is selection bias: "
                 "the best of many draws was also a lucky one.")
    found = {"retest": Figure(lambda width: _picture(run, records, objective, width), words)}
    pairs = _pairs(run, records)
    if pairs:
        found["pairs"] = Figure(
            lambda width: _paired_picture(pairs, measure_of(run.retest), width),
            f"A line is a seed: it joins the baseline's {measure_of(run.retest).title} (ring, "
            f"above) with the mechanism's (dot, below). Lines that all "
            "lean to one side are a difference; lines that cross are none." + _beyond(run),
            title="The same seeds, pair by pair")
    return found


def _beyond(run: Run) -> str:
    """That mechanisms have seeds of their own number, where they were added until something was
    decided.
    """
    if not run.retest.get("until"):
        return ""
    return (f" Seeds were added until each mechanism was decided to {100 * run.retest['until']:g} "
            f"{measure_of(run.retest).unit}.")


@dataclass(frozen=True)
class Pairs:
    """A mechanism's values on the test split and the baseline's: (seed, baseline, mechanism) each.
    """

    label: str
    seeds: list[tuple[int, float, float]]


def _pairs(run: Run, records: list[dict]) -> list[Pairs]:
    """Of each mechanism that was compared with the baseline, controls apart."""
    measure = measure_of(run.retest)

    def by_seed(record: dict) -> dict[int, float]:
        evaluations = (run.by_id[id_] for id_ in record["evaluations"] if id_ in run.by_id)
        return {seed_number(each.replicate): value for each in evaluations
                if each.usable and math.isfinite(value := measure.value(each.values))}

    baseline = next((by_seed(record) for record in records if record["role"] == "baseline"), {})
    found = []
    for record in records:
        if record["role"] in ("baseline", "control") or not record.get("against_baseline"):
            continue
        own = by_seed(record)
        shared = [(seed, baseline[seed], own[seed]) for seed in sorted(own) if seed in baseline]
        if shared:
            found.append(Pairs(record["label"], shared))
    return found


def _paired_picture(all_pairs: list[Pairs], measure: Measure, width: float) -> Picture:
    narrow = width < 600
    row = 64.0 if narrow else 50.0
    left = 8.0 if narrow else 400.0
    frame = Frame(left, 10, width - 14, 10 + row * len(all_pairs))
    picture = Picture(width, frame.bottom + 48, f"{measure.title} of each mechanism and the "
                                                f"baseline, seed by seed")
    values = [value for pairs in all_pairs for _, *both in pairs.seeds for value in both]
    x = value_axis(values, measure.accuracy, values)
    picture.bottom_axis(frame, x, measure.title, grid=True)
    for i, pairs in enumerate(all_pairs):
        above = frame.top + row * i + (30 if narrow else 14)
        below = above + 24
        if i % 2 == 1:
            picture.rectangle(0, frame.top + row * i, width, row, "band")
        picture.text(left if narrow else 2, above - 16 if narrow else above + 16,
                     shortened(pairs.label, 46 if narrow else 53), "code small label")
        for seed, baseline, own in pairs.seeds:
            words = tip(pairs.label, f"seed {seed}: {number(own)}, the baseline {number(baseline)}",
                        f"{signed(measure.between(own, baseline))} {measure.unit}")
            picture.path([(x(baseline), above), (x(own), below)], "line2 pair", words)
            picture.dot(x(baseline), above, 4, "ring", words)
            picture.dot(x(own), below, 4, "front", words)
    return picture


def _comparison(run: Run) -> Section:
    """Listed mechanisms beside the baseline."""
    records = run.retest["candidates"]
    return Section("comparison", "Comparison", join(
        *(figure.html() for figure in pictures(run).values()), _table(run, records), _reading(run),
        counts(run), _differences(run, records)))


def _probability(run: Run) -> str:
    """What the closing table calls it, too."""
    return "P(front)" if run.several else "P(best)"


def _reading(run: Run) -> Html:
    compared = latex.rows(run)
    often = " Intervals and p hold however often one looks, but those of controls."
    held = often if run.retest.get("until") else ""
    what = ("test accuracy, in points" if measure_of(run.retest).accuracy else
            "test perplexity (that of nll d, in nats, is exp(d) - 1)")
    shares = " p of shares: of an exact test of pairs of which one fails, by Holm, too." if any(
        row["p_shares"] == row["p_shares"] for row in compared) else ""
    best = (f" {_probability(run)}: the probability that the mechanism is "
            f"{'on the front' if run.several else 'the best'}, given the "
            f"noise, by values of the {run.retest['probability_split']} split." if any(
                row["probability"] == row["probability"] for row in compared) else "")
    return note(f"Differences are in {what}, paired over seeds; intervals stand each for itself, p "
                "is corrected by Holm over all comparisons of the verdict. Effect size: "
                "standardised mean difference of the pairs, Hedges-corrected; below zero is "
                f"better. {latex.note_of_runs(compared)}{shares}{best}{held}")


def _differences(run: Run, records: list[dict]) -> Html | None:
    """From the baseline, by each objective that training determines."""
    rows = []
    for place, objective in enumerate(run.objectives):
        for record in records:
            found = record["differences"][place]
            if found is None:
                continue
            low, high = (finite_or(found[key], NAN) for key in ("low", "high"))
            rows.append([
                Cell(mechanism(run.label(record["candidate"]), record["label"]), left=True),
                Cell(objective.title, left=True),
                Cell(_ranged(signed(found["difference"]), range_text(low, high))),
                Cell(p_value(found["p_holm"])), Cell(str(found["n"]))])
    if not rows:
        return None
    return join(
        table(["mechanism", "objective", f"difference ({_interval(run.retest)})", "p (Holm)", "n"],
              rows),
        note("Differences from the baseline on the validation split, in the objective's unit, by "
             f"{'' if run.retest.get('until') else 't-tests of '}pairs of equal seeds; p by Holm "
             f"over the mechanisms of each objective."))


def _ranged(value: str, interval: str) -> Html:
    """A value with its interval, which may stand below it."""
    return element("span", value, " ", element("span", f"({interval})"), class_="ranged")


def _interval(retest: dict[str, Any]) -> str:
    """What an interval is called."""
    return f"{100 * retest['confidence']:g} % interval"


def _scores(run: Run, record: dict[str, Any]) -> tuple[float, float, float, float]:
    """Search score, mean of the re-test and its interval, in the objective's own sense."""
    place = run.noisy or 0
    seen = finite_or(record["search"][place], NAN) if record["search"] else NAN
    found = record["retest"][place] or {}
    return (run.objectives[place].natural(seen), *(finite_or(found.get(key), NAN)
                                                   for key in ("mean", "low", "high")))


def _on_axis(records: list[dict], scores: list[tuple[float, float, float, float]]) -> list[float]:
    """The values that the axis has to show. Controls may be so far off that nothing could be seen
    of the others: their means stand at the edge then."""
    def known(controls: bool) -> list[float]:
        return [value for record, score in zip(records, scores)
                if (record["role"] == "control") == controls for value in score if value == value]

    own = known(False)
    if not own:
        return known(True)
    low, high = min(own), max(own)
    near = 2 * (high - low)
    return own + [value for value in known(True) if low - near <= value <= high + near]


def _picture(run: Run, records: list[dict], objective: Objective, width: float) -> Picture:
    narrow = width < 600
    row = 38.0 if narrow else 27.0
    left = 8.0 if narrow else 400.0
    frame = Frame(left, 10, width - 14, 10 + row * len(records))
    picture = Picture(width, frame.bottom + 48, f"{objective.name} of every mechanism" if run.listed
                      else "search score and re-test score")
    scores = [_scores(run, record) for record in records]
    shown = _on_axis(records, scores)
    x = value_axis(shown, objective.maximise, shown)
    picture.bottom_axis(frame, x, objective.title, grid=True)
    for i, (record, (seen, mean, low, high)) in enumerate(zip(records, scores)):
        y = frame.top + row * (i + 0.5) + (7 if narrow else 0)
        is_baseline = record["role"] == "baseline"
        label = record["label"]
        picture.text(left if narrow else 2, y - 10 if narrow else y + 4,
                     shortened(label, 46 if narrow else 53),
                     "code small label" + (" baseline-text" if is_baseline else ""))
        words = tip(label, "" if run.listed else
                    f"search {number(seen)} (n = {record['search_n']})",
                    f"{'mean' if run.listed else 're-test'} {number(mean)}, "
                    f"{_interval(run.retest)} {range_text(low, high)}", record["role"])
        if mean > x.high:
            picture.text(frame.right - 4, y + 4, f"{number(mean)} \u2192", "small", "end")
            continue
        if mean < x.low:
            picture.text(frame.left + 4, y + 4, f"\u2190 {number(mean)}", "small")
            continue
        if low == low and high == high:
            picture.line(x(low), y, x(high), y, "baseline" if is_baseline else "interval")
        if seen == seen:
            if mean == mean:
                picture.line(x(seen), y, x(mean), y, "axis")
            picture.dot(x(seen), y, 5, "hollow", words)
        if mean == mean:
            picture.dot(x(mean), y, 5.5, "ring" if is_baseline else "front", words)
    return picture


def _bias(run: Run, records: list[dict], objective: Objective) -> Html | None:
    shifts = [mean - seen for record in records if record["role"] in ("front", "top")
              for seen, mean, *_ in [_scores(run, record)] if mean == mean and seen == seen]
    if not shifts:
        return None
    average = sum(shifts) / len(shifts)
    worse = sum(objective.is_better(0.0, shift) for shift in shifts)
    text = (f"From search to re-test {objective.name} moved by {signed(average)} on average over "
            f"the {len(shifts)} selected mechanisms; {worse} of them became worse.")
    common = [mean - seen for record in records if record["role"] == "baseline"
              for seen, mean, *_ in [_scores(run, record)] if mean == mean and seen == seen]
    if common:
        text += (f" The baseline, which nothing selected, moved by {signed(common[0])}: that much "
                 f"the seeds have in common, and {signed(average - common[0])} is what selection "
                 "adds.")
    return paragraph(text)


def _table(run: Run, records: list[dict]) -> Html:
    measure, compared = measure_of(run.retest), latex.rows(run)
    more = dict(latex.columns_of_runs(compared))
    scores = [[row[objective.name] for row in compared] for objective in run.objectives]
    titles = [objective.title for objective in run.objectives]
    if not run.listed:
        scores, titles = zip(*(_scores(run, record)[:2]
                               for record in records)), ["search", "re-test"]

    def cells(key: str, text: Callable[[float], object]) -> list[object]:
        return [NOTHING if row[key] is None or row[key] != row[key] else text(row[key])
                for row in compared]

    columns = [
        ("mechanism",
         [mechanism(run.label(row["candidate"]), row["mechanism"]) for row in compared]),
        ("role", [row["role"] for row in compared]),
        (f"difference, {measure.unit} ({_interval(run.retest)})", [
            _ranged(signed(row["percent"]), range_text(row["percent_low"], row["percent_high"]))
            if row["n"] else NOTHING for row in compared
        ]), ("p (Holm)", cells("p_holm", p_value)), ("n", cells("n", str)),
        ("solved", [
            _ranged(*cell[:-1].split(" (")) if "(" in cell else cell
            for cell in more.get("solved", [])
        ]), ("rate", more.get("rate", [])),
        *((title, [*map(number, own)]) for title, own in zip(titles, scores)),
        (measure.title, cells("test_perplexity", number)),
        ("median of solved", more.get("median of solved", [])), ("p of shares", cells("p_shares",
                                                                               p_value)),
        (f"{_probability(run)}, {run.retest['probability_split']}", cells("probability", percent)),
        ("effect size", cells("effect_size", signed))
    ]
    said = [(head, own) for head, own in columns if {*own} - {NOTHING}]
    return table([head for head, _ in said], [[Cell(cell, left=i < 2) for i, cell in enumerate(row)]
                                              for row in zip(*(own for _, own in said))])
