"""Says which components of attention mechanisms matter: a page, a text, a table, pictures.

    analysis/components.py TABLE|STORE... [-o FOLDER] [--objective NAME] [--split test|valid]
                           [--baseline MECHANISM]

TABLE is a packed table of trainings; STOREs are runs (folders, their store.sqlite or results.json),
whose trainings are put together. FOLDER receives components.html, components.md, components.csv and
the pictures as .svg.
"""

import argparse
import pathlib
import shlex
from collections.abc import Callable

import numpy as np

from attnas.analysis import figures, noise, tables
from attnas.analysis.ablations import ALPHA, MOST_LISTED, UNEVEN, Study
from attnas.analysis.arguments import program
from attnas.analysis.factorial import Term
from attnas.analysis.files import csv_text
from attnas.analysis.objectives import Objective, objective
from attnas.analysis.page import Bullets, Chapter, Code, Columns, Paragraph, Pictures, Report
from attnas.analysis.schema import place
from attnas.analysis.svg import Figure
from attnas.analysis.words import digits, joined, p_column


def _name(term: Term) -> str:
    return " x ".join(term)


def _interval(interval, form=digits) -> str:
    if interval is None:
        return "not recorded"
    point, low, high = (form(value) for value in interval)
    varies = interval[2] > interval[1]  # not so where they are unknown
    return f"{point} [{low}, {high}]" if varies else point


def _share(value: float) -> str:
    # + 0.0: no minus before a zero
    return "-" if np.isnan(value) else f"{round(100 * value, 1) + 0.0:.1f} %"


def _decimals(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)


def _told_apart(interval) -> bool:
    return interval.low > 0 or interval.high < 0


def verdict(study: Study) -> Chapter:
    """The findings in sentences."""
    items = [_what_decides(study)]
    if study.winners[0].against is not None:
        items.append(_best(study))
    if study.winners[0].ablations and study.estimate.freedom:
        items.append(_what_carries(study))
    if study.noise:
        items.append(_how_noisy(study.noise, study.goal))
    elif study.goal.values.shape[1] < 2 or study.balanced.freedom == 0:
        items.append("There is one value of each mechanism: " + (
            "nothing can be tested, and shares are not corrected for noise." if study.exact else
            "its noise is part of what is left unexplained."))
    if study.rungs and study.noise and np.isfinite(study.rungs[-1].tau):
        items.append(_how_early(study))
    if not study.exact:
        items.append(f"{_how_many_missing(study)}: there is no exact decomposition, but main "
                     "effects by least squares over the mechanisms that were evaluated, with "
                     "intervals. What is there was perhaps chosen by a search, which prefers what "
                     "is good. Read these numbers as hints.")
    if not study.common.all():
        items.append(f"Shares, means of options, noise and how early mechanisms can be judged are "
                     f"of the {study.common.sum()} seeds that "
                     "nearly all mechanisms have; the other seeds are those of the best.")
    if study.left_out:
        items.append(study.left_out)
    troubles = study.table.troubles(study.table.wanted)
    if troubles:
        items.append(f"Cells without a value: {len(troubles)} of {study.table.wanted.sum()}; a "
                     "mechanism is judged by those that it has. They are listed at the end.")
    return Chapter("verdict", "Verdict", [Bullets(items)])


def _how_many_missing(study: Study) -> str:
    """What of the space was not recorded; a space that is too large to list is only counted."""
    there = len(study.factorial.number)
    if study.factorial.combinations > MOST_LISTED:
        return (f"These options make {study.factorial.combinations:,} combinations, of which "
                f"{there} functions have been recorded")
    missing = len(study.factorial.missing())
    return (f"Of {missing + there} functions that these options make, {missing} have not been "
            "recorded")


def _what_decides(study: Study) -> str:
    title = study.goal.title
    if not study.exact:
        terms = sorted(study.squares.terms, key=lambda term: -term.share)
        clear = [f"{_name(term.term)} ({_share(term.share)})" for term in terms
                 if term.p_holm <= ALPHA]
        found = f"clearly at work: {joined(clear)}" if clear else "no component is clearly at work"
        return (f"Of the variance of {title} over {len(study.names)} mechanisms, least squares "
                f"leaves {_share(study.squares.residual_share)} unexplained; {found}.")
    effects = sorted(study.effects, key=lambda effect: -effect.share.point)
    if not any(effect.share.point > 0 for effect in effects):
        known = all(np.isfinite(effect.variance) for effect in effects)
        why = ("values are too large to be squared" if not known else
               "there is none" if np.isnan(effects[0].share.point) else
               "it is no more than the noise's")
        return (
            f"The variance of {title} over all {study.factorial.combinations} combinations has no "
            f"shares: {why}.")
    testable = np.isfinite(effects[0].p)
    top = [effect for effect in effects if not testable or effect.p_holm <= ALPHA][:3]
    by_size = {size: sum(effect.share.point for effect in effects if len(effect.term) == size)
               for size in (1, 2)}
    named = joined([f"{_name(effect.term)} {_interval(effect.share, _share)}" for effect in top])
    text = (f"The largest shares of the variance of {title} over all "
            f"{study.factorial.combinations} combinations are those of {named}." if top else
            f"No component's effect on {title} stands out of the noise.")
    together = [by_size[1], by_size[2], 1 - by_size[1] - by_size[2]]
    below = any(round(share, 3) < 0 for share in together)
    return (f"{text} Main effects together: {_share(together[0])}; interactions of two: "
            f"{_share(together[1])}; of more: {_share(together[2])}."
            + (" These are estimates, the noise's part of each subtracted: below 0 means that none "
               "is shown, and then others may exceed 100 %." if below else ""))


def _best(study: Study) -> str:
    winner = study.winners[0]
    text = (f"Best mean: {study.briefs[winner.row]} with {study.goal.title} "
            f"{digits(study.goal.natural(winner.mean))}, better than the baseline by "
            f"{_interval(winner.against)}")
    known = np.isfinite(winner.against.low)
    text += ("." if not known or _told_apart(winner.against) else
             ", which is not distinguished from nothing.")
    if study.held_out:
        text += (" Being chosen may flatter it: the best of all seeds but one gains "
                 f"{digits(study.held_out.point)} in the seed left out, on average.")
    return text


def _what_carries(study: Study) -> str:
    ablations = study.winners[0].ablations
    known = [each for each in ablations if each.difference is not None]
    unknown = [each.gene for each in ablations if each.difference is None]
    clear = sorted((each for each in known if each.difference.low > 0),
                   key=lambda each: -each.difference.point)
    rest = [each.gene for each in known if each not in clear]
    text = "Of its components, "
    if clear:
        text += "it is clearly worse without " + joined(
            [f"{each.gene} (by {_interval(each.difference)})" for each in clear])
    else:
        text += "none is shown to make it better by itself"
    text += f"; no difference is shown for {joined(rest)}" if rest else ""
    text += f"; not recorded without {joined(unknown)}." if unknown else "."
    return text + " The intervals are not corrected, and these seeds have chosen the mechanism."


def _how_noisy(found: noise.Noise, goal: Objective) -> str:
    if found.within == 0.0:
        return (f"Seeds do not change the {goal.title} of a mechanism: there is no noise that "
                f"anything could be tested against. Between "
                f"mechanisms its standard deviation is {digits(found.between)}.")
    gain = ("What is left of noise where seeds are paired is rounding, and nothing can be tested "
            "against it" if np.isnan(found.gain) else
            f"Pairing by seeds is worth {digits(found.gain)} times as many trainings"
            if found.gain >= 1.1 else "Pairing by seeds buys next to nothing")
    scale = ""
    if found.growth > UNEVEN:
        scale = (f" Noise grows with {goal.name} (rank correlation {found.growth:.2f}), which "
                 "tests with one noise for all do not know")
        scale += ": look at --objective nll, too." if goal.name == "perplexity" else "."
    icc = found.one_way.point
    share = (f"{_share(icc)} of its variance is the mechanism's (ICC)" if icc > 0 else
             f"none of its variance is shown to be the mechanism's (ICC "
             f"{icc:.2f}){_without_seeds(found)}" if icc <= 0 else
             "how much of its variance is the mechanism's is not known")
    return (f"A single training's {goal.title} has a standard deviation of {digits(found.within)} "
            f"between seeds and {digits(found.between)} between mechanisms: {share}. {gain}; the "
            f"rank correlation of two seeds is {_decimals(found.spearman[0], '.2f')}.{scale}")


def _without_seeds(found: noise.Noise) -> str:
    """What is the mechanism's where seeds are blocks, if anything."""
    share = found.two_way.point
    return (f", but {_share(share)} without what a seed does to all mechanisms "
            f"alike" if share > 0 else "")


def _how_early(study: Study) -> str:
    last = study.rungs[-1]
    half = next((rung for rung in study.rungs if rung.tau >= 0.9 * last.tau), last)
    return (f"At the end one training ranks mechanisms with Kendall's tau {last.tau:.2f} to the "
            f"mean of its other seeds, and its best has a regret of {digits(last.regret)}; nine "
            f"tenths of that tau are reached at step {half.step}, after {_share(half.cost)} of the "
            "time.")


def importance(study: Study) -> Chapter:
    """Main effects and interactions."""
    parts = _exact_tables(study) if study.exact else _least_squares_table(study)
    if study.factorial.voided:
        parts.insert(0, Paragraph(_not_applicable(study)))
    pictures = {"main_effects.svg": _main_effects(study)}
    if study.exact:
        shown = [effect for effect in study.effects if effect.share.point >= 0.005]
        shown = sorted(shown, key=lambda effect: -effect.share.point)[:14]
        pictures = {"shares.svg": figures.intervals(
            "What decides", f"Share of the variance of {study.goal.title} over all combinations, "
            "with 95 % interval; the noise's part is subtracted. The largest terms.",
            "share of variance",
            [figures.Row(_short(effect.term), f"c{len(effect.term) - 1}", *effect.share)
             for effect in shown], [(0.0, "")]), **pictures}
    for term in _strongest_pairs(study):
        pictures[f"{'_'.join(term)}.svg"] = _heat_map(study, term)
    return Chapter("components", "Which components decide", [Pictures(pictures), *parts])


def _short(term: Term) -> str:
    if len(term) == 1:
        return term[0]
    return " x ".join(map(_abbreviated, term))


def _abbreviated(gene: str) -> str:
    prefix, name = place(gene)
    return f"{prefix}{name[:4]}."


def _alone(study: Study, gene: str, option: str) -> str:
    """An option where its gene does not stand beside it."""
    genes = sum(option in options for options in study.factorial.options.values())
    speaks = genes == 1 and option.isidentifier() and option != "none"
    if speaks:
        return option
    return f"{option} ({_abbreviated(gene) if place(gene)[0] else gene})"


def _strongest_pairs(study: Study) -> list[Term]:
    """At most three, none that the noise explains, none with a pair of options not recorded."""
    pairs = ([(effect.share.point, effect.p_holm, effect.term) for effect in study.effects]
             if study.exact else
             [(term.share, term.p_holm, term.term) for term in study.squares.terms if term.freedom])
    pairs = sorted((pair for pair in pairs if len(pair[2]) == 2), reverse=True)
    return [term for _, p, term in pairs[:3] if not p > ALPHA and all(
        study.factorial.recorded({term[0]: row, term[1]: column})
        for row in study.factorial.options[term[0]] for column in study.factorial.options[term[1]])]


def _exact_tables(study: Study) -> list:
    head = ["term", "share of variance [95 %]", "degrees of freedom", "F", "p (Holm)",
            "p against seeds"]
    rows = [[_name(effect.term), _interval(effect.share, _share), str(effect.freedom),
             digits(effect.f), p_column(effect.p_holm), p_column(effect.p_seeds)]
            for effect in sorted(study.effects, key=lambda effect: -effect.share.point)]
    voided = study.factorial.combinations - len(study.names)
    text = ("Exact functional analysis of variance: every combination counts alike, nothing is "
            "modelled. The part of each variance that noise alone would give is subtracted, so a "
            "term without effect may come out below 0. F is taken against the noise between seeds "
            f"({study.balanced.freedom} degrees of freedom, what a seed does to all mechanisms "
            "alike taken out), which counts mechanisms as independent; p against seeds sets a term "
            "against its own change from seed to seed, without that assumption and with less "
            "power, and is not corrected for the number of terms.")
    if voided:
        text += (f" Some options cancel a gene: the {study.factorial.combinations} combinations "
                 f"are {len(study.names)} functions. Combinations of one function share its "
                 "value, and degrees of freedom of the noise count functions. Where a gene is "
                 "cancelled by some options of another, any effect it has is an interaction with "
                 "that one too.")
    if not study.balanced.variance > 0:
        why = ("Seeds change nothing" if study.balanced.freedom else "There is one value of each "
               "mechanism")
        text = ("Exact functional analysis of variance: every combination counts alike, nothing is "
                f"modelled. {why}: no test, and nothing that noise adds is subtracted.")
    shown = [row for row in rows if row[0].count(" x ") < 2]
    return [Paragraph(text), Columns(head, shown), Columns(head, rows, "All terms")]


def _not_applicable(study: Study) -> str:
    names = study.factorial.voided
    return (f"{joined(names)} {'is' if len(names) == 1 else 'are'} not applicable to mechanisms in "
            "which other options leave no effect to choose. Such a mechanism counts for no option "
            "of that gene, and for the mean over its options where other genes are compared.")


def _least_squares_table(study: Study) -> list:
    rows = [[_name(term.term), _share(term.share), str(term.freedom), digits(term.f),
             p_column(term.p_holm)] for term in study.squares.terms]
    rows.append(["residual", _share(study.squares.residual_share),
                 str(study.squares.residual_freedom), "", ""])
    return [Columns(["term (type II)", "share of sum of squares", "degrees of freedom", "F",
                     "p (Holm)"], rows)]


def _main_effects(study: Study) -> Figure:
    rows = []
    for i, (gene, options) in enumerate(study.factorial.options.items()):
        each = [figures.Row(_alone(study, gene, option), f"c{i % figures.NUM_COLOURS}",
                            *study.option_mean(gene, option)) for option in options]
        rows += sorted(each, key=lambda row: study.goal.natural(row.point))
    how = ("over all combinations with it; 95 % interval over seeds, without what a seed does to "
           "all" if study.exact else "least squares, the other genes averaged; 95 % interval")
    overall = float(np.average(study.balanced.mean, weights=study.factorial.weights))
    return figures.intervals("Main effects", f"Mean {study.goal.title} of each option, {how}. "
                             f"Colours: {joined(list(study.factorial.options))}.",
                             study.goal.title, rows, [(study.goal.natural(overall), "all")])


def _heat_map(study: Study, term: Term) -> Figure:
    rows, columns = (study.factorial.options[gene] for gene in term)
    of_rows, of_columns = term
    if len(columns) > len(rows):
        rows, columns, of_rows, of_columns = columns, rows, of_columns, of_rows

    def mean(**options):
        return float(study.factorial.shares_of(options) @ study.balanced.mean)

    means = np.array([[mean(**{of_rows: row, of_columns: column}) for column in columns]
                      for row in rows])
    sums = (np.array([mean(**{of_rows: row}) for row in rows])[:, None]
            + np.array([mean(**{of_columns: column}) for column in columns])[None] - mean())
    what = "" if study.exact else " that was recorded, other genes as they came"
    return figures.interaction(
        f"{of_rows} x {of_columns}", f"Mean {study.goal.title} of each pair{what}; blue: better "
        f"than the two effects add up to, orange: worse (at most by "
        f"{digits(np.abs(means - sums).max())}).", rows, columns, study.goal.natural(means),
        sums - means)


def winners(study: Study) -> Chapter:
    """The best mechanisms, and what each of their components is worth."""
    against = study.baseline is not None
    head = ["mechanism", study.goal.title, *(["better than the baseline by [95 %]"] if against
                                             else [])]
    rows = []
    for winner in study.winners:
        gain = "the baseline" if winner.row == study.baseline else _interval(winner.against)
        rows.append([study.briefs[winner.row], digits(study.goal.natural(winner.mean)),
                     *([gain] if against else [])])
    parts: list = [Columns(head, rows)]
    if study.briefs != study.names:
        parts.append(Paragraph("Mechanisms are named by what differs from the baseline "
                               f"{study.table.facts['baseline']}."))
    if not against:
        vanilla = study.table.facts.get("baseline") or "dot, softmax, none, fixed, bias"
        parts.append(Paragraph(f"The baseline ({vanilla}) has not been recorded, so nothing can be "
                               "left out for it; --baseline names another."))
        return Chapter("best", "The best mechanisms", parts)
    bars = [figures.Row(f"{i + 1}: {each.gene}", f"c{i % figures.NUM_COLOURS}", *each.difference)
            for i, winner in enumerate(study.winners) for each in winner.ablations
            if each.difference is not None]
    pictures = {}
    if bars:
        pictures["ablations.svg"] = figures.intervals(
            "Leaving a component out", "By how much each of the best mechanisms, numbered as in "
            "the table, is worse with the baseline's option in place of its own; 95 % interval "
            f"over paired seeds ({study.values.shape[1]}).", study.goal.title, bars,
            [(0.0, "no difference")])
    if study.path:
        pictures["path.svg"] = figures.intervals(
            "From the baseline to the best", "Gain of each step, in the order of the largest gain "
            "first; 95 % interval over paired seeds.", f"gain in {study.goal.title}",
            [figures.Row(f"+ {_alone(study, step.gene, step.option)}",
                         "c0" if step.gain.low > 0 else "plain", *step.gain)
             for step in study.path], [(0.0, "no gain")])
    parts.append(Pictures(pictures))
    parts += _ablation_tables(study)
    return Chapter("best", "The best mechanisms", parts)


def _ablation_tables(study: Study) -> list:
    rows = [[f"{i + 1}", each.gene, study.options[winner.row][each.gene], each.option,
             _interval(each.difference)]
            for i, winner in enumerate(study.winners) for each in winner.ablations]
    parts: list = []
    if rows:
        parts.append(Columns(["mechanism", "component", "its option", "the baseline's",
                                  "worse with that by [95 %]"], rows))
    if study.path:
        rows = [["the baseline", "",
                 digits(study.goal.natural(study.estimate.mean[study.baseline]))]]
        rows += [[f"+ {step.gene} {step.option}", _interval(step.gain),
                  digits(study.goal.natural(step.mean))] for step in study.path]
        parts.append(Columns(["step", "gain [95 %]", study.goal.title], rows))
    parts += [Paragraph(study.path_note)] if study.path_note else []
    text = ("Intervals are Student's over paired seeds, each for itself. The best mechanisms were "
            "chosen by the same seeds, so their advantages look larger than they are; the verdict "
            "says what is left of the first one's in a seed that did not choose it.")
    if study.numbers and (study.path or rows):
        text += f" Such mechanisms may differ in {joined(study.numbers)}, too, which is no option."
    if study.noise and study.noise.paired > 0:
        least = 1.96 * study.noise.paired * np.sqrt(2 / study.noise.seeds)
        text += (f" Few seeds make such intervals long. If all mechanisms were equally noisy, one "
                 f"difference beyond {digits(least)} would stand out of the noise.")
    parts.append(Paragraph(text))
    return parts


def noise_section(study: Study) -> Chapter:
    """How noisy values are."""
    found, parts = study.noise, []
    if found:
        def three(value):
            return _decimals(value, ".3f")

        rows = [["between mechanisms, standard deviation", digits(found.between)],
                ["between seeds of one mechanism", digits(found.within)],
                ["the same without the seeds' common effect", digits(found.paired)],
                ["ICC, one-way [95 %]", _interval(found.one_way, three)],
                ["ICC, two-way, seeds a common effect [95 %]", _interval(found.two_way, three)],
                ["seeds' common effect: F, p", f"{digits(found.seed_f)}, {p_column(found.seed_p)}"],
                ["unpaired trainings that a paired one is worth", digits(found.gain)],
                ["Spearman between seeds: mean, least, most",
                 ", ".join(map(three, found.spearman))],
                ["rank correlation of a mechanism's noise with its value",
                 _decimals(found.growth, ".2f")],
                [f"difference of two means of {found.seeds} paired seeds: standard error",
                 digits(found.paired * np.sqrt(2 / found.seeds) if found.paired > 0 else np.nan)]]
        best = study.goal.natural(float(np.nanmin(study.values)))
        rows.append(
            ["the best single training", f"{best:.3f}" if abs(best) < 1e9 else digits(best)])
        if agreement := noise.agreement_among_best(study.values):
            rows.append(["Spearman of the other seeds among the 20 mechanisms best by one, for "
                         "each", ", ".join(_decimals(value, ".2f") for value in agreement)])
        parts.append(Columns([f"{found.mechanisms} mechanisms, {found.seeds} seeds",
                                  study.goal.title], rows))
    if study.splits:
        luck = "" if np.isnan(study.splits.luck) else (
            f" What is luck in one training's validation value is luck in its test value to a "
            f"correlation of {study.splits.luck:.2f}.")
        same = "is" if study.splits.best_is_best else "is not"
        parts.append(Paragraph(
            "Means on the validation split rank mechanisms as those on the test split do to "
            f"Spearman's {_decimals(study.splits.mechanisms, '.3f')}; the best of the one {same} "
            f"the best of the other.{luck}"))
    return Chapter("noise", "How noisy trainings are", parts)


def early(study: Study) -> Chapter:
    """What is known before the end."""
    if not study.rungs:
        return Chapter("early", "How early mechanisms can be judged", [])
    rows = [[str(rung.step), _share(rung.cost), _decimals(rung.tau, ".3f"), digits(rung.regret)]
            for rung in study.rungs]
    end = ("the mean of the other seeds' end" if study.values.shape[1] > 1 else
           "its own end (there is one seed, whose luck counts as agreement)")
    steps = np.array([rung.step for rung in study.rungs], dtype=float)
    parts: list = []
    if len(steps) > 1:
        parts.append(Pictures({
            "fidelity.svg": figures.curves(
                "Rank correlation with the end", "Kendall's tau of one training's validation value "
                f"at a step with {end}.", steps, "step", "tau",
                [figures.Line("tau", "c0", np.array([rung.tau for rung in study.rungs]))],
                y_range=(float(np.nanmin([0.0, *(rung.tau for rung in study.rungs)])), 1.0)),
            "regret.svg": figures.curves(
                "Regret of choosing early", f"Mean {study.goal.title} of the mechanism that is "
                "best at a step in one training, minus the best mean of all.", steps, "step",
                f"regret in {study.goal.title}",
                [figures.Line("regret", "c1", np.array([rung.regret for rung in study.rungs]))],
                y_range=(0.0, 1.05 * max(rung.regret for rung in study.rungs) or 1.0))}))
    parts.append(Columns(["step", "share of the time", "tau", "regret"], rows))
    parts.append(Paragraph("Each rung is a checkpoint of the whole training: a shorter "
                                 "training with its own schedule may rank differently."))
    return Chapter("early", "How early mechanisms can be judged", parts)


def making(study: Study, command: str) -> Chapter:
    """What all this was made from, and how to make it again."""
    table = study.table
    items = [f"{table.path}: {len(table.mechanisms)} mechanisms, {table.replicates} replicates"
             + (f", SHA-256 {table.sha256}" if table.sha256 else "")]
    facts = [f"{key} {table.facts[key]}" for key in ("corpus", "semantics", "numerical_mode",
                                                     "run_seed") if key in table.facts]
    items += [", ".join(facts)] if facts else []
    troubles = table.troubles(table.wanted)
    missing = [] if study.exact or study.factorial.combinations > MOST_LISTED else [
        "|".join(option or "*" for option in function) for function in study.factorial.missing()]
    parts = [Bullets(items), Code(command)]
    if troubles:
        parts.append(Columns(["cells without a value"], [[text] for text in troubles],
                                 f"{len(troubles)} cells without a value"))
    if missing:
        parts.append(Columns(["functions that are not recorded"], [[text] for text in missing],
                                 f"{len(missing)} functions that are not recorded"))
    return Chapter("making", "How this was made", parts)


def summary(study: Study) -> str:
    """components.csv: a row for each number, unrounded; differences in minimisation form."""
    rows = []

    def add(kind, name, interval, **more):
        values = dict(zip(("value", "low", "high"), interval or (np.nan,) * 3))
        rows.append({"kind": kind, "name": name, **values, **more})

    for effect in study.effects:
        add("share", _name(effect.term), effect.share, freedom=effect.freedom,
            variance=effect.variance, noise=effect.noise, f=effect.f, p=effect.p,
            p_holm=effect.p_holm, p_seeds=effect.p_seeds)
    for term in study.squares.terms if study.squares else []:
        add("type_two", _name(term.term), (term.share, np.nan, np.nan), freedom=term.freedom,
            f=term.f, p=term.p, p_holm=term.p_holm)
    for gene, options in study.factorial.options.items():
        for option in options:
            add("option", f"{gene} {option}", study.option_mean(gene, option))
    for i, name in enumerate(study.names):
        value = study.goal.natural(study.estimate.mean[i])
        add("mechanism", name, (value, np.nan, np.nan))
    for winner in study.winners:
        for each in winner.ablations:
            add("ablation", f"{study.names[winner.row]}: {each.gene} -> {each.option}",
                each.difference)
    for step in study.path:
        add("path", f"{step.gene} {step.option}", step.gain)
    if study.held_out:
        add("held_out", "gain", study.held_out)
    _add_noise(study, add)
    for rung in study.rungs:
        add("tau", str(rung.step), (rung.tau, np.nan, np.nan))
        add("regret", str(rung.step), (rung.regret, np.nan, np.nan))
    columns = ["kind", "name", "value", "low", "high", "freedom", "variance", "noise", "f", "p",
               "p_holm", "p_seeds"]
    return csv_text(columns, ([row.get(column) for column in columns] for row in rows))


def _add_noise(study: Study, add: Callable) -> None:
    if study.noise:
        add("icc", "one-way", study.noise.one_way)
        add("icc", "two-way", study.noise.two_way)
        add("noise", "within", (study.noise.within, np.nan, np.nan))
        add("noise", "paired", (study.noise.paired, np.nan, np.nan))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="components.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", metavar="TABLE|STORE")
    parser.add_argument("-o", "--output", default="components", metavar="FOLDER")
    parser.add_argument("--objective", default="perplexity", metavar="NAME",
                        help="what is explained: perplexity, nll, accuracy, ... "
                        "(default: %(default)s)")
    parser.add_argument("--split", choices=["test", "valid"],
                        help="whose values; the test split's where they are recorded, if left out")
    parser.add_argument("--baseline", metavar="MECHANISM",
                        help="what components are replaced by; the vanilla transformer if left out")
    options = parser.parse_args(arguments)
    table = tables.load(options.tables)
    study = Study(table, objective(table, options.objective, options.split), options.baseline)
    page = Report(f"Components: {table.facts.get('name') or table.path}", [
        verdict(study), importance(study), winners(study), noise_section(study),
        early(study), making(study, f"analysis/components.py {shlex.join(arguments)}")])
    print(page.write(pathlib.Path(options.output), "components",
                     {"components.csv": summary(study)}))
