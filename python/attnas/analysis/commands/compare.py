"""Compares search algorithms by their finished searches: a page, a text, a table, pictures.

    analysis/compare.py STORE... [-o FOLDER] [--reference ALGORITHM] [--show ALGORITHM]...
                                 [--budget N] [--at N,N,...] [--by trainings|steps] [--resamples N]
                                 [--force]

STORE is a comparison of many searches on one table (comparison.sqlite), or a run's folder, its
store.sqlite or its results.json. FOLDER receives compare.html, compare.md, summary.csv and the
pictures as .svg; with --at budgets.csv, too, and draws.csv where draws of a table answered.
"""

import argparse
import dataclasses
import math
import pathlib
import shlex

import numpy as np
from scipy.stats import norm, t

from attnas.analysis import comparison, digest, figures, replay, statistics, stores, task_controls
from attnas.analysis.arguments import ascending, positive, program
from attnas.analysis.comparison import ALPHA, MEANINGFUL, Algorithm, Comparison
from attnas.analysis.comparison_progress import (anytime, attainment, budgets, by_budget, by_draws,
                                                 interval_columns, over_draws, pruned_of, targets)
from attnas.analysis.comparison_words import (NOT_DISTINGUISHED, Words, bracketed, improvement,
                                              is_certain, knows_unseen, share_text,
                                              unseen_improvement, unseen_mean)
from attnas.analysis.files import csv_text
from attnas.analysis.page import (Bullets, Chapter, Code, Columns, Folded, Paragraph, Pictures,
                                  Report)
from attnas.analysis.schema import schema
from attnas.analysis.words import counted, digits, joined, p_column


def beware(result: Comparison) -> Chapter:
    """What the stores differ in besides their algorithms, above all findings."""
    remarks = [remark for remark in result.searches.remarks if remark.startswith("Beware")]
    return Chapter("beware", "Before anything else", [Bullets(remarks)] if remarks else [])


def verdict(result: Comparison, at: list[Comparison], words: Words) -> Chapter:
    """The findings in sentences. @param at  the same at several budgets."""
    algorithms = result.algorithms
    counts = [len(algorithm.traces) for algorithm in algorithms]
    each = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    items = [f"Algorithms: {len(algorithms)}. Searches of each: {each}. {words.spent.capitalize()} "
             f"of a search: at most {result.budget}{_spending_less(result)}.",
             "Judged is what a search returns, as its own record lets it believe: "
             + ("the front of what it believes." if result.several else
                "the candidate that it believes best.")]
    if result.searches.draws:
        items.append(f"{result.noises} draws of the table's seeds answered in turn, a table each "
                     "whose replicates were redrawn within each mechanism; the units of all "
                     "intervals and tests are these draws, not the searches." + _judges(result))
    elif result.noises:
        items.append(f"In this mode one of the table's replicates ({result.noises} were drawn) "
                     "answers a search for all candidates, so that searches with the same one meet "
                     "the same noise: the units of all intervals and tests are these replicates, "
                     "not the searches.")
    if result.fruitless:
        each = joined([f"{count} of {name}" for name, count in result.fruitless.items()])
        items.append(f"Searches that found nothing usable: {each}. They count as if they had "
                     "returned a failure.")
    if result.reference is not None and len(algorithms) > 1:
        items += _against_reference(result, words)
    if result.true:
        items += _of_everything(result, words)
        items += _headline(at, result) if result.over_draws else []
        items += [] if _exact(result) else [_bias(result, words), *_limits(result)]
    recycled = sum(trace.recycled for algorithm in algorithms for trace in algorithm.traces)
    if recycled:
        items.append(f"{recycled} evaluations met a recorded training of their mechanism again, "
                     "since the table has no more of it.")
    if knows_unseen(result) and not _exact(result):
        items.append(_unseen_verdict(result, words))
    items += [remark for remark in result.searches.remarks if not remark.startswith("Beware")]
    first = _answer(result, words)
    if not first:
        return Chapter("verdict", "Verdict", [Bullets(items)])
    return Chapter("verdict", "Verdict", [Bullets(first), Folded("What this rests on", items)])


def _answer(result: Comparison, words: Words) -> list[str]:
    """What is best, by how much, and what would tell more."""
    algorithms = result.algorithms
    if len(algorithms) < 2:
        return []
    if max(len(algorithm.traces) for algorithm in algorithms) == 1:
        return ["One search of each says nothing of the algorithms: another seed may turn their "
                "order round. Give several seeds of each."]
    best = algorithms[0]
    level = [algorithms[j].name for j in range(1, len(algorithms))
             if words.verdict(0, j) == NOT_DISTINGUISHED]
    items = [f"Best: {best.name}, {words.gap} {bracketed(words.interval(best.iqm))} "
             f"(interquartile mean, 95 %)"
             + (f"; not distinguished from it: {joined(level)}." if level else
                "." if np.isnan(result.pairs.p[0]).any() else
                "; every other is distinguished from it.")]
    j = result.reference
    if j is not None:
        i = 1 if j == 0 else 0
        chosen = "" if j else " The reference is the best by its mean."
        items.append(f"A search of {algorithms[i].name} is better than one of {words.reference} "
                     f"with probability {bracketed(improvement(result, i))}.{chosen}")
    return items + _what_would_decide(result, words, level)


def _what_would_decide(result: Comparison, words: Words, level: list[str]) -> list[str]:
    """How many searches would tell the best from those that are not distinguished from it."""
    if not level:
        return []
    if result.noises:
        return [_more_searches(result, words, level)]
    algorithms, pairs = result.algorithms, result.pairs
    needed = [searches_to_tell(pairs.probability[0, j],
                               len(algorithms) * (len(algorithms) - 1) // 2)
              for j, algorithm in enumerate(algorithms) if algorithm.name in level]
    least = min(needed)
    now = max(len(algorithm.traces) for algorithm in algorithms)
    if least <= now:
        return []
    if least > MOST_SEARCHES:
        return [f"To tell the best from another would take more than {MOST_SEARCHES:,} searches "
                f"of each: they are as good, or nearly so."]
    return [f"About {least:,} searches of each would tell the best from another, of {now:,} here "
            f"(power 80 %)."]


def _more_searches(result: Comparison, words: Words, level: list[str]) -> str:
    """Whether searches beyond these could order what draws of the table, or its replicates, have
    answered.
    """
    searches, best, n = result.searches, result.algorithms[0], result.noises
    most = searches.draws["tables"] if searches.draws else max(search.replicates
                                                               for search in searches.searches)
    if n < most:
        return (
            f"More searches may order them: {n} of the table's {most} {words.units} have answered.")
    if any(_beyond_the_table(best, other) for other in result.algorithms if other.name in level):
        return f"More searches may order them, on the same {n} {words.units} of the table's seeds."
    return f"More searches would not order them: the table's {n} {words.units} differ too much."


def _beyond_the_table(a: Algorithm, b: Algorithm) -> bool:
    """Whether infinitely many searches on the same draws could tell two algorithms apart: the
    interval over draws, without what few searches add to it, does not hold 1/2; or how much they
    add is not known."""
    _, rows, columns = np.intersect1d(a.seeds, b.seeds, return_indices=True)
    each, variances = statistics.improvement_by_group(a.final[rows], b.final[columns],
                                                      a.noise[rows])
    between = each.var(ddof=1) - variances.mean() if len(each) > 1 else math.nan
    return not abs(each.mean() -
                   0.5) <= t.ppf(1 - ALPHA / 2,
                                 len(each) - 1) * math.sqrt(max(between, 0.0) / len(each))


MOST_SEARCHES = 100_000


def searches_to_tell(probability: float, pairs: int) -> float:
    """Searches of each of two algorithms with which a rank-sum test finds that one is better with a
    probability: Noether's formula (1987), power 80 %, Bonferroni's level for so many pairs."""
    distance = abs(probability - 0.5)
    if not distance > 0:
        return math.inf
    sizes = norm.ppf(1 - ALPHA / pairs / 2) + norm.ppf(0.8)
    return math.ceil(sizes ** 2 / (6 * distance ** 2))


def _judges(result: Comparison) -> str:
    """What judged on draws, where that was not always a replicate which answers no search of the
    draw.
    """
    if not result.spared:
        return ""
    text = " What is returned is judged by its replicates that answer no search of the draw"
    others, none = result.spared
    if others or none:
        text += (f"; {100 * (others + none):.2g} % of it have none, since their mechanism has no "
                 f"more replicates than answer: judged by those "
                 "that the very search has not seen" + (f", or where there is none of these "
                                                        f"either ({100 * none:.2g} %), by "
                                                        f"all" if none else ""))
    return text + "."


def _headline_of(results: list[Comparison]) -> Comparison:
    """That of the largest budget at which the reference does not yet meet one of the best with
    certainty; the smallest where it always does."""
    uncertain = [result for result in results if not is_certain(result)]
    return uncertain[-1] if uncertain else results[0]


def _headline(at: list[Comparison], result: Comparison) -> list[str]:
    """Which budget says most of the algorithms, why, and what it says."""
    results = at or [result]
    chosen = _headline_of(results)
    reference = chosen.algorithms[chosen.reference].name
    met = joined([f"{share_text(each.met_best)} at {each.budget}" for each in results])
    why = (f"does not yet meet one of the best {comparison.BEST} mechanisms with certainty"
           if not is_certain(chosen) else
           f"meets one of the best {comparison.BEST} mechanisms with certainty, as it does at "
           f"each that was looked at")
    findings = {"better": [], "worse": []}
    for algorithm, found in zip(chosen.algorithms, chosen.over_draws):
        if found and (found.another.low > 0.5 or found.another.high < 0.5):
            findings["better" if found.another.low > 0.5 else "worse"].append(
                f"{algorithm.name} {bracketed(found.another)}")
    said = "; ".join(f"{side}: {joined(names)}" for side, names in findings.items() if names)
    return [
        f"The budget to look at is {chosen.budget}, the "
        f"{'smallest' if is_certain(chosen) else 'largest'} at which {reference} {why}: of "
        f"its searches {met}. There, P(better than {reference}) with the interval of another "
        f"draw of the seeds, " +
        (f"{said}; of every other, another draw may turn it round." if said else "another draw may "
         "turn every one round.")
    ]


def _spending_less(result: Comparison) -> str:
    less = [f"{algorithm.name} {digits(algorithm.trainings.mean())}"
            for algorithm in result.algorithms if algorithm.trainings.mean() < 0.95 * result.budget]
    return f"; on average less: {joined(less)}" if less else ""


def _grouped(findings: dict[str, str]) -> dict[str, list[str]]:
    """Algorithms by what was found of them, best first."""
    order = ("meaningfully better", "better", NOT_DISTINGUISHED, "worse", "meaningfully worse",
             "one search: no test")
    return {finding: [name for name, own in findings.items() if own == finding]
            for finding in order if finding in findings.values()}


def _against_reference(result: Comparison, words: Words) -> list[str]:
    others = [(i, algorithm) for i, algorithm in enumerate(result.algorithms)
              if i != result.reference]
    groups = _grouped({a.name: words.verdict(i, result.reference) for i, a in others})
    where = ", on this very table," if result.against else ","
    items = [f"Against {words.reference}{where} {finding}: {joined(names)}."
             for finding, names in groups.items()]
    if result.against is None:
        return items
    groups = _grouped({a.name: words.finding(result.against.returned[i]) for i, a in others})
    if not groups:  # one search each
        return items
    if list(groups) == [NOT_DISTINGUISHED]:
        return [*items, "This table cannot order these algorithms: with the noise of its own means "
                f"in the intervals, none is distinguished from {words.reference}."]
    each = "; ".join(f"{finding}: {joined(names)}" for finding, names in groups.items())
    return [*items, f"With the noise of the table's own means in the intervals, {each}."]


def _of_everything(result: Comparison, words: Words) -> list[str]:
    if result.reference is None or len(result.algorithms) < 2:
        return []
    found = {a.name: result.improvement(i, "everything").point
             for i, a in enumerate(result.algorithms) if i != result.reference}
    least, most = min(found, key=found.get), max(found, key=found.get)
    return ["By the best of everything that it evaluated, which a search cannot know, a "
            f"search is better than one of {words.reference} with probability "
            f"{digits(found[least])} ({least}) to {digits(found[most])} ({most})."]


def _limits(result: Comparison) -> list[str]:
    if result.searches.draws:
        items = ["Draws are of the training runs that the table has: of a mechanism with no more "
                 "replicates than answer all draws hold the same ones, so that the spread between "
                 "draws is that of mechanisms which have more. It is one task and one space."]
    elif result.against:
        items = ["Intervals with the table's noise come from drawing each mechanism's replicates "
                 "again and judging by these what the recorded searches returned. Two things are "
                 "left out: on another table searches would have chosen something else, and this "
                 "is one task and one space."]
    else:
        items = ["All this holds for this table: its means over a few seeds are taken as exact, "
                 "and intervals are over searches. Which mechanism is really the best, it cannot "
                 "say to such a precision."]
    if result.agreement:
        each = joined([f"{value:.2f}" for value in result.agreement])
        items.append("Among the 20 mechanisms that are best by one replicate, the other replicates "
                     f"agree by Spearman {each} (one for each replicate): one seed "
                     + ("cannot rank" if np.median(result.agreement) < 0.5 else "ranks in part")
                     + " the best.")
    return items


def _exact(result: Comparison) -> bool:
    """Whether formulas give all objectives, as the number of parameters: no seed changes them."""
    found = replay.table_of(result.searches)
    recorded = found[0].schema if found else schema(None)
    return all(recorded.is_analytic(goal.name) for goal in result.searches.objectives)


def _compared(searches: stores.Searches, budget: int, reference: str | None,
              resamples: int) -> Comparison:
    """Everything found; of objectives by formula nothing of the table's noise, since it has none.
    """
    result = comparison.compare(searches, budget, reference, resamples)
    return dataclasses.replace(result, against=None, agreement=[]) if _exact(result) else result


def _unseen_verdict(result: Comparison, words: Words) -> str:
    text = ("Judged by re-tests on fresh seeds, which know nothing of the choice, "
            "" if result.retested else
            "The truth contains the training that answered. Judged by the other replicates alone, "
            "which know nothing of the choice, ")
    means = {algorithm.name: unseen_mean(algorithm, words)[0] for algorithm in result.algorithms
             if unseen_mean(algorithm, words)[1]}
    least, most = min(means, key=means.get), max(means, key=means.get)
    what = ("fronts have a mean hypervolume" if result.several else f"winners have a mean "
            f"{words.goal.quantity}")
    text += f"{what} from {digits(means[least])} ({least}) to {digits(means[most])} ({most})"
    groups = {} if result.reference is None else _grouped({
        a.name: words.finding(unseen_improvement(result, i))
        for i, a in enumerate(result.algorithms) if i != result.reference})
    if not groups:
        return text + "."
    each = "; ".join(f"{finding}: {joined(names)}" for finding, names in groups.items())
    return (f"{text}; against {words.reference}"
            + (", the table's noise in the intervals" if result.against else "") + f", {each}.")


def _bias(result: Comparison, words: Words) -> str:
    means = {algorithm.name: result.mean_optimism(algorithm).point
             for algorithm in result.algorithms if np.isfinite(result.optimism(algorithm)).any()}
    if not means:
        return "No search has measured anything."
    # Who averaged all replicates that answer believes what is then expected: no luck can show.
    blind = [name for name, mean in means.items() if abs(mean) < 1e-9]
    if len(blind) == len(means):
        blind = []
    means = {name: mean for name, mean in means.items() if name not in blind}
    least, most = min(means, key=means.get), max(means, key=means.get)
    what = "front looks" if result.several else "winner looks"
    unit = "of the whole hypervolume" if result.several else words.goal.quantity
    text = f"Selection bias: the {what} better than it is by {digits(means[least])} ({least})"
    if most != least:
        text += f" to {digits(means[most])} ({most})"
    text += f" {unit} on average, since noisy values were compared"
    return text + (f"; not known of {joined(blind)}, whose means hold all seeds that answer."
                   if blind else ".")


def quality(result: Comparison, words: Words) -> Chapter:
    """What the searches have reached when the budget is spent."""
    parts = _ranking(result, words)
    algorithms, styles = result.algorithms, words.styles
    pictures = {"final_quality.svg": figures.intervals(
        "Final quality", f"Interquartile mean and 95 % interval over {words.units} of {words.gap} "
        f"({words.whole}).", words.gap,
        [figures.Row(a.name, styles[a.name], *words.interval(a.iqm), _fruitless(result, a))
         for a in algorithms])}
    if result.reference is not None and len(algorithms) > 1:
        j = result.reference
        pictures["improvement.svg"] = figures.intervals(
            f"Better than {words.reference}?",
            f"Probability that a search is better than one of {words.reference}, ties half, with "
            "95 % interval" + (", the table's noise in it." if result.against else "."),
            "probability of improvement",
            [figures.Row(a.name, styles[a.name], *improvement(result, i))
             for i, a in enumerate(algorithms) if i != j],
            [(0.5, "as good"), (MEANINGFUL, "meaningful")], (0.0, 1.0))
    names = [algorithm.name for algorithm in algorithms]
    if result.friedman:
        pictures["critical_difference.svg"] = figures.critical_difference(
            "Mean ranks", "Bars on the right join algorithms that pairwise tests (Holm, "
            f"{share_text(ALPHA)}) do not distinguish.", names, [styles[name] for name in names],
            result.friedman.mean_ranks, result.friedman.groups)
    return Chapter("quality", "Final quality", [*parts, Pictures(pictures), *_tests(result, words)])


def _fruitless(result: Comparison, algorithm: Algorithm) -> str:
    """Words, where so many searches returned a failure that its penalty is in their mean."""
    nothing, searches = result.fruitless.get(algorithm.name, 0), len(algorithm.traces)
    return f"nothing usable in {nothing} of {searches}" if nothing > 0.2 * searches else ""


def _ranking(result: Comparison, words: Words) -> list:
    """The algorithms, best first; and where the table's noise is in the intervals there, a second
    table without it."""
    j, against = result.reference, result.against
    counts = [len(algorithm.traces) for algorithm in result.algorithms]
    uneven = len(set(counts)) > 1  # else the verdict says how many
    head = ["algorithm", *(["searches"] if uneven else []), f"{words.gap}: median", "IQM [95 %]"]
    alone = _on_this_table(result, words)
    if j is not None and against:
        head += [f"P(better than {words.reference}) [95 %, the table's noise in it]", "finding"]
    else:
        head += alone.head[1:]
    if result.true:
        head.append("of everything evaluated: IQM [95 %]")
        if j is not None:
            head.append(f"P(better than {words.reference}) there [95 %]")
    rows = []
    for i, algorithm in enumerate(result.algorithms):
        row = [algorithm.name, *([str(counts[i])] if uneven else []),
               digits(words.quality(np.median(algorithm.final))),
               bracketed(words.interval(algorithm.iqm))]
        if against:
            row += ["", "reference"] if i == j else [
                bracketed(improvement(result, i)), words.finding(improvement(result, i))]
        else:
            row += alone.rows[i][1:]
        if result.true:
            row.append(bracketed(words.interval(algorithm.everything)))
            if j is not None:
                row.append("" if i == j else bracketed(result.improvement(i, "everything")))
        rows.append(row)
    if not against:
        return [Columns(head, rows)]
    return [Columns(head, rows),
            Paragraph("On this very table, its means taken as exact, so that intervals are "
                            f"over {words.units} alone:"), alone]


def _on_this_table(result: Comparison, words: Words) -> Columns:
    """Ranks and tests over searches."""
    j, pairs = result.reference, result.pairs
    head = ["algorithm"] + (["mean rank"] if result.friedman else [])
    if j is not None:
        head += [f"P(better than {words.reference}) [95 %]", "p (Holm)", "finding"]
    rows = []
    for i, algorithm in enumerate(result.algorithms):
        row = [algorithm.name]
        if result.friedman:
            row.append(f"{result.friedman.mean_ranks[i]:.2f}")
        if j is not None:
            row += ["", "", "reference"] if i == j else [
                bracketed((pairs.probability[i, j], pairs.low[i, j], pairs.high[i, j])),
                p_column(pairs.p[i, j]), words.verdict(i, j)]
        rows.append(row)
    return Columns(head, rows)


def _tests(result: Comparison, words: Words) -> list:
    pairs, names = result.pairs, [algorithm.name for algorithm in result.algorithms]
    if not pairs.tests:
        return [Paragraph("With one search an algorithm nothing can be tested; differences "
                                "may be luck.")] if len(names) > 1 else []
    text = (f"Two algorithms are distinguished where {' and '.join(sorted(pairs.tests))}, gives p "
            f"<= {ALPHA} after Holm's correction over all {len(names) * (len(names) - 1) // 2} "
            "pairs. A difference is called meaningful where moreover the probability that one "
            f"search is better than the other is {MEANINGFUL} or more (Bouthillier et al. 2021); "
            "that probability is Vargha and Delaney's A12. p is corrected, intervals stand each "
            "for itself.")
    if result.friedman:
        units = result.friedman.units
        text += (
            " Friedman's test over "
            f"{counted(units, words.units[:-1] if result.noises else 'common seed')}: chi-squared "
            f"{digits(result.friedman.statistic)}, p {p_column(result.friedman.p)}. Nemenyi's "
            f"critical difference of mean ranks would be {digits(result.friedman.nemenyi)}; it is "
            "not used, since its verdict on two algorithms depends on the others.")
    rows = [[f"{names[i]} against {names[j]}",
             bracketed((pairs.probability[i, j], pairs.low[i, j], pairs.high[i, j])),
             p_column(pairs.p[i, j]), words.verdict(i, j)]
            for i in range(len(names)) for j in range(i + 1, len(names))]
    return [Paragraph(text),
            Columns(["pair", "A12 [95 %]", "p (Holm)", "finding"], rows, "All pairs")]


def believed_against_true(result: Comparison, words: Words) -> Chapter:
    """What searchers believe of their results, and what is so."""
    if not result.true:
        return _retested(result, words)
    if _exact(result):
        return Chapter("beliefs", "Believed against true", [])
    what = "front's hypervolume" if result.several else f"winner's {words.goal.quantity}"
    known = result.searches.candidates.believed is not None
    unseen = knows_unseen(result)
    rows, bars = [], []
    for i, algorithm in enumerate(result.algorithms):
        interval = result.mean_optimism(algorithm)
        means = [words.value(algorithm.units(algorithm.each(name)).mean())
                 for name in ("end_believed", "end_expected", "end_true")]
        rows.append([algorithm.name, bracketed(interval), digits(means[0]),
                     *([digits(means[1])] if known else []), digits(means[2])])
        if unseen:
            mean, count = unseen_mean(algorithm, words)
            rows[-1].append(f"{mean:.4g} (n = {count})" if count else "(n = 0)")
            if result.reference is not None:
                rows[-1].append("reference" if i == result.reference
                                else bracketed(unseen_improvement(result, i)))
        bars.append(figures.Row(algorithm.name, words.styles[algorithm.name], *interval))
    head = ["algorithm", "optimism [95 %]", f"{what}, believed",
            *(["mean of all replicates"] if known else []), "true",
            *(["on unseen replicates (searches that left some)"] if unseen else []),
            *([f"P(better than {words.reference}) there [95 %"
               + (", the table's noise in it]" if result.against else "]")]
              if unseen and result.reference is not None else [])]
    against = ("the mean of all replicates of the same candidates on the same split" if known
               else "their true values")
    picture = figures.intervals(
        "Optimism", f"By how much the {'front' if result.several else 'winner'} looks better to "
        "the searcher than it is; mean and 95 % interval over " + words.units + ".",
        "relative hypervolume" if result.several else words.goal.quantity, bars, [(0.0, "none")])
    return Chapter("beliefs", "Believed against true", [Paragraph(
        f"Optimism is how much better the result looked than {against}: the best of many "
        f"noisy values is partly the luckiest. Means over {words.units}. Between the means "
        "of the replicates and what is true lies the step from one split of the data to "
        "another." if known else
        f"Optimism is how much better the result looked than {against}: the best of many "
        f"noisy values is partly the luckiest. Means over {words.units}."), Paragraph(
            "The mean contains the training that answered, so that optimism is understated; of r "
            "replicates of which a search sees one, by a factor of (r - 1) / r."
            + (f" Unseen replicates are the others of the "
               f"{'members of the front' if result.several else 'winner'}, on the test "
               f"split; searches that have seen all of "
               f"{'those of one' if result.several else 'them'} are left out there."
               if unseen else "")), Pictures({"optimism.svg": picture}), Columns(head, rows)])


def _retested(result: Comparison, words: Words) -> Chapter:
    """What runs returned, by their re-tests."""
    rows = []
    for i, algorithm in enumerate(result.algorithms):
        values = algorithm.each("end_unseen")
        values = words.unseen(values[np.isfinite(values)])
        mean = statistics.mean_interval(values).within(
            *digest.limits("" if result.several else words.goal.key)) if len(values) else None
        rows.append([algorithm.name, str(len(values)), bracketed(mean) if mean else "",
                     *([] if result.reference is None else ["reference"]
                       if i == result.reference else [bracketed(unseen_improvement(result, i))])])
    what = "hypervolume" if result.several else words.goal.quantity
    return Chapter("beliefs", "Re-tested", [
        Paragraph(f"The {'front' if result.several else 'candidate'} that a search returns, "
                  f"trained again on fresh seeds, which "
                  "had no part in choosing it: means of these, perplexity of the test split"
                  + (", in the hypervolume of the front of all searches together as they measured "
                     "it." if result.several else ".") + " Intervals are over searches."),
        Columns(["algorithm", "re-tested searches", f"{what}, mean [95 %]",
                 *([] if result.reference is None else [f"P(better than {words.reference}) [95 "
                                                        f"%]"])], rows)]
                   if knows_unseen(result) else [])


def effort(result: Comparison, words: Words) -> Chapter:
    """What the searches cost besides their training runs."""
    rows = []
    for algorithm in result.algorithms:
        asked = algorithm.each("asked")
        own = algorithm.each("search_seconds").sum() / asked.sum() * 1000
        rows.append([algorithm.name, digits(asked.mean()), digits(algorithm.trainings.mean()),
                     f"{algorithm.trainings.sum() / asked.sum():.2f}",
                     share_text(algorithm.each("repeated").mean()),
                     digits(np.mean([trace.seconds[-1] for trace in algorithm.traces])),
                     "-" if np.isnan(own) else digits(own), str(algorithm.each("recycled").sum())])
    return Chapter("effort", "Effort", [Columns(
        ["algorithm", "asks", words.spent, f"{words.spent} an ask", "repeated asks",
         "charged seconds", "own time an ask, ms", "trainings met again"], rows)])


def making(result: Comparison, words: Words, resamples: int, command: str) -> Chapter:
    """What all this was made from, and how to make it again."""
    searches = result.searches
    seeds = sorted({search.seed for search in searches.searches})
    items = [f"{len(searches.searches)} searches of {len(result.algorithms)} algorithms; "
             f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}."]
    for source in searches.sources:
        table = source.table or {}
        sha256 = f", SHA-256 {table['sha256']}" if "sha256" in table else ""
        items.append(f"{source.path}: {source.kind}"
                     + (f" on the table {table.get('name', '')}{sha256}" if table else ""))
    if words.spent != "trainings":
        items.append("What a search spends is counted in steps of training, in whole training "
                     "runs: "
                     "candidates that were paused at a rung, too, count what they have taken.")
    items += [f"Budget: {result.budget} {words.spent}; a search that ends earlier keeps what it "
              f"has.",
              "What a searcher believes of a candidate is the latest answer it got for it; where "
              "every ask was a training of its own, the mean over its answers, or where that is "
              "its setting `belief: best_answer`, the best of them.",
              f"Intervals: bootstrap of {resamples} resamples for interquartile means, DeLong's "
              "variance for probabilities, Student's t for means; none is corrected for their "
              "number."]
    if result.several:
        ranges = ", ".join(f"{goal.quantity} {digits(goal.best)} to {digits(goal.worst)}"
                           for goal in searches.objectives)
        items.append(f"Hypervolume over objectives scaled by the ranges {ranges}; reference point "
                     f"{searches.reference_point} in each.")
    return Chapter("making", "How this was made", [Bullets(items), Code(command)])


def summary(result: Comparison, words: Words) -> str:
    """summary.csv: a row for each algorithm, numbers unrounded and unscaled."""
    def row(i: int, algorithm: Algorithm) -> dict:
        pairs, j = result.pairs, result.reference
        against = (np.nan,) * 4 if j is None or i == j else (
            pairs.probability[i, j], pairs.low[i, j], pairs.high[i, j], pairs.p[i, j])
        optimism = result.mean_optimism(algorithm)
        asked = algorithm.each("asked")
        fields = {
            "algorithm": algorithm.name, "searches": len(algorithm.traces),
            "trainings": algorithm.trainings.mean(), "asks": asked.mean(),
            "gap_median": np.median(algorithm.final), "gap_iqm": algorithm.iqm.point,
            "gap_iqm_low": algorithm.iqm.low, "gap_iqm_high": algorithm.iqm.high,
            "gap_with_table_low": result.against.gaps[i].low if result.against else np.nan,
            "gap_with_table_high": result.against.gaps[i].high if result.against else np.nan,
            "believed_mean": words.value(algorithm.each("end_believed").mean()),
            "expected_mean": words.value(algorithm.each("end_expected").mean()),
            "true_mean": words.value(algorithm.each("end_true").mean()), "unseen_mean": unseen_mean(
                algorithm, words)[0], "unseen_searches": unseen_mean(algorithm, words)
                                                         [1], "optimism": optimism.point,
            "optimism_low": optimism.low, "optimism_high": optimism.high, "improvement": against[0],
            "improvement_low": against[1],
            "improvement_high": against[2], "p_holm": against[3], **interval_columns(
                "improvement_with_table", result.against and result.against.returned[i]),
            **interval_columns("unseen_improvement",
                               None if j is None or i == j else unseen_improvement(result, i)),
            "everything_median": np.median(
                algorithm.each("everything")), "everything_iqm": algorithm.everything.point,
            "everything_iqm_low": algorithm.everything.low, "everything_iqm_high":
                algorithm.everything.high, **interval_columns(
                    "everything_improvement", None if j is None or i == j else result.improvement(
                        i, "everything")), "mean_rank": result.friedman.mean_ranks[i]
                                                        if result.friedman else np.nan
        }
        for share, time, success in zip(comparison.ERT_SHARES, algorithm.running_times,
                                        algorithm.successes):
            fields[f"ert_{100 * (1 - share):.0f}"] = time
            fields[f"reached_{100 * (1 - share):.0f}"] = success
        return {**fields, "repeated": algorithm.each("repeated").mean(),
                "recycled": int(algorithm.each("recycled").sum()),
                "trainings_per_ask": algorithm.trainings.sum() / asked.sum(), "search_ms_per_ask":
                1000 * algorithm.each("search_seconds").sum() / asked.sum()}

    rows = [row(i, algorithm) for i, algorithm in enumerate(result.algorithms)]
    return csv_text(list(rows[0]), (fields.values() for fields in rows))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="compare.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("-o", "--output", default="comparison", metavar="FOLDER")
    parser.add_argument("--reference", metavar="ALGORITHM",
                        help="what the others are compared with; random_search if it is there")
    parser.add_argument("--show", action="append", default=[], metavar="ALGORITHM",
                        help="one to highlight, and to compare with the reference in the plane")
    parser.add_argument("--budget", type=positive, metavar="N",
                        help="trainings a search may use; all it was given if left out")
    parser.add_argument("--at", type=ascending, default=[], metavar="N,N,...",
                        help="smaller budgets at which the same is said in a table, too")
    parser.add_argument("--by", choices=("trainings", "steps"),
                        help="what a search spends: training runs, or their steps in whole "
                             "training runs; what the searches' budgets limit if left out")
    parser.add_argument("--resamples", type=positive, default=50_000, metavar="N",
                        help="of the bootstrap (default: %(default)s)")
    parser.add_argument("--force", action="store_true",
                        help="compare runs all the same whose data, model, training or objectives "
                             "differ")
    options = parser.parse_args(arguments)
    searches = stores.load(options.stores, options.force, options.by)
    names = list(dict.fromkeys(search.algorithm for search in searches.searches))
    shown = [comparison.find(name, names) for name in options.show]
    budget = options.budget or searches.budget
    most = max(searches.budget, math.ceil(max(search.trained[-1] for search in searches.searches)))
    if budget > most:
        raise stores.StoreError(f"--budget {budget}, must be at most {most}, the most that a "
                                f"search had")
    if options.at and options.at[-1] > budget:
        raise stores.StoreError(f"--at {options.at[-1]}, must be at most the budget, {budget}")
    result = _compared(searches, budget, options.reference, options.resamples)
    at = [
        _compared(searches, each, options.reference, options.resamples) if each < budget else result
        for each in options.at]
    words = Words(result, shown)
    pruned = [pruned_of(each) for each in at]
    command = f"analysis/compare.py {shlex.join(arguments)}"
    page = Report("Comparison of search algorithms", [
        beware(result),
        verdict(result, at, words),
        task_controls.chapter(next(iter(replay.table_of(searches) or ()), None)),
        over_draws(at or [result], words),
        quality(result, words),
        budgets(at, pruned, words),
        anytime(result, words),
        targets(result, words),
        attainment(result, words),
        believed_against_true(result, words),
        effort(result, words),
        making(result, words, options.resamples, command)
    ])
    beside = {
        "summary.csv": summary(result,
                               words), **({"budgets.csv": by_budget(at, pruned)} if at else {}),
        **({"draws.csv": by_draws(at or [result])} if result.over_draws else {})
    }
    print(page.write(pathlib.Path(options.output), "compare", beside))
