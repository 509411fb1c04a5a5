#!/usr/bin/env python3
"""Says whether ranks of mechanisms transfer: does what is good in one setting stay good in another?

    analysis/studies/transfer.py A B [--value nll|accuracy|test_nll] [--top K] [--without OPTION]
    [-o FOLDER] analysis/studies/transfer.py A --spread N [--value nll|accuracy|test_nll] [--without
    OPTION]

A and B are a packed table of training runs each, or runs (folders, their store.sqlite or
results.json; several joined by commas): two tasks, two lengths of training, two sizes of the model.
Mechanisms are matched by name; those of equal similarity and normalization are one family, and the
verdict is for other families where there are several. --without leaves out the mechanisms that have
an option, as where a ranking hangs on one that fails. FOLDER receives transfer.html, transfer.md,
transfer.csv, mechanisms.csv and ranks.svg. With --spread it names N mechanisms from all over the
ranking of A, a line each, to train in a setting that costs more: nas-train takes them.
"""

import argparse
import itertools
import os
import pathlib
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from attnas.analysis import packages

packages.require(__doc__, "numpy", "scipy", "pandas")

import numpy as np

from attnas.analysis import figures, tables
from attnas.analysis.arguments import positive, program
from attnas.analysis.files import csv_text
from attnas.analysis.page import Bullets, Chapter, Code, Columns, Paragraph, Pictures, Report
from attnas.analysis.statistics import Interval
from attnas.analysis.svg import tip
from attnas.analysis.tables import Table
from attnas.analysis.transfer import (FAMILY, FEWEST_FAMILIES, RELIABLE, Matched, Side, Tau,
                                      Transfer, bracketed, matched, spread)
from attnas.analysis.words import counted, digits, listed, p_value


def _whole(value: float) -> str:
    return f"{value:.0f}"


def guidance(found: Transfer) -> str:
    """In a sentence: may one setting guide a search on the other?"""
    a, b = (side.label for side in found.sides)
    words = [_guides(found, guide) for guide in (0, 1)]
    alike = (f"{100 * found.alike:.0f} % of all pairs of mechanisms are ordered alike (Kendall's "
             f"tau {found.tau})")
    shared = (f"of the {found.top} best of either {found.overlap.point} are shared, "
              f"{'more' if found.shares else 'not clearly more'} than chance gives "
              f"({found.chance:.1f})")
    halves = "; ".join(f"in the better half of {side.label} tau is {tau}"
                       for side, tau in zip(found.sides, found.better_half) if tau)
    facts = "; ".join(filter(None, [alike, halves, shared])) + "."
    if words[0] == words[1]:
        return f"{a} {words[0].format(b)}, and the other way round: {facts}"
    return f"{a} {words[0].format(b)}; {b} {words[1].format(a)}: {facts}"


def _guides(found: Transfer, guide: int) -> str:
    """What may be said of one setting as a guide to the other, {}."""
    sign, seeds = found.tau.sign, found.tau_of_seeds
    if sign == 0 or not min(sign * seeds.low, sign * seeds.high) > 0:  # NaN: the noise is not known
        return "is not shown to guide a search on {}"
    if sign < 0:
        return "misleads a search on {} beyond noise"
    half = found.better_half[guide]
    if found.shares or half is not None and half.sign > 0:
        return "may guide a search on {}"
    return "may say what a search on {} can leave out, but not beyond noise what is best there"


def verdict(common: Matched, found: Transfer) -> list[str]:
    """The findings in sentences, what matters first."""
    a, b = found.sides
    items = [guidance(found),
             f"Compared are {len(common.names)} mechanisms that {a.label} ({common.sizes[0]}, "
             f"{_seeds(a)}) and {b.label} ({common.sizes[1]}, {_seeds(b)}) both have, by the mean "
             f"{common.value} of their seeds" + (f"; left out are "
                                                 f"{common.rest}." if common.rest else ".")]
    if found.families is not None:
        items[-1] += (f" Those of equal {' and '.join(FAMILY)} are one family, and intervals over "
                      "families are for other families like these.")
    if found.ceiling is not None:
        corrected = found.corrected
        items.append(
            f"Two halves of its own seeds agree by tau {bracketed(a.halves[0])} in {a.label} and "
            f"{bracketed(b.halves[0])} in {b.label}. With noise like that, settings that rank "
            f"alike would show tau {found.ceiling:.2f}; " + (
                f"corrected for it, tau is {bracketed(corrected)}." if corrected else
                f"tau is not corrected for it, since noise is more than half of what "
                f"{_listed_sides(found)} measured."))
    for side, other, chosen in ((a, b, found.chosen[0]), (b, a, found.chosen[1])):
        items.append(
            f"The best of {side.label}, {common.briefs[chosen.row]}, has place "
            f"{bracketed(chosen.place, _whole)} of {len(common.names)} in {other.label}, "
            f"{digits(chosen.loss)} in {common.value} behind the best there.")
    single = [side.label for side in (a, b) if not side.repeated]
    if single:
        items.append(f"Not every mechanism of {listed(single)} has two seeds: how far other seeds "
                     "would rank otherwise is not known.")
    tied = [side.label for side in (a, b)
            if side.mean[side.order[found.top - 1]] == side.mean[side.order[found.top]]]
    if tied:
        items.append(f"In {listed(tied)} mechanisms of equal mean stand on both sides of place "
                     f"{found.top}: which of them count as best is arbitrary.")
    if common.failed:
        items.append(f"Left out, since a training run failed in one of the two: "
                     f"{listed(common.failed)}.")
    return items


def _seeds(side: Side) -> str:
    low, high = side.seeds.min(), side.seeds.max()
    return f"{counted(low, 'seed')} each" if low == high else f"{low} to {high} seeds"


def _listed_sides(found: Transfer) -> str:
    return listed([side.label for side, share in zip(found.sides, found.reliability)
                   if share < RELIABLE])


def numbers(found: Transfer) -> Chapter:
    """The table of measures, with what each interval leaves out."""
    a, b = (side.label for side in found.sides)
    halves = [side.halves[0] if side.halves else None for side in found.sides]
    clustered = found.families is not None
    over = ", interval over families" if clustered else ""
    p_of_shared = f"as many or more with {p_value(found.overlap_p)}"
    if clustered:
        p_of_shared += f" (over families {p_value(found.overlap_families_p)})"
    rows = [
        *([["tau, interval over families", str(found.tau)]] if clustered else []),
        ["tau, interval over mechanisms", found.tau.over_mechanisms],
        *([["tau of the means of families",
            str(found.between or "not known")],
           ["tau within a family, mean over families",
            bracketed(found.within)]] if clustered else []),
        ["tau, interval over seeds", bracketed(found.tau_of_seeds)],
        [f"tau of two halves of the seeds of {a}",
         bracketed(halves[0])], [f"tau of two halves of the seeds of {b}",
                                 bracketed(halves[1])],
        [
            "tau to expect where both rank alike",
            "not known" if found.ceiling is None else f"{found.ceiling:.2f}"
        ], [f"tau, corrected for noise{over}",
            bracketed(found.corrected)], *itertools.chain.from_iterable(
                _rows_of_half(f"tau in the better half of {label}", half, clustered)
                for label, half in zip((a, b), found.better_half)),
        [f"of the {found.top} best of either, shared",
         bracketed(found.overlap, _whole)],
        ["the same by chance", f"{found.chance:.2f}, {p_of_shared}"],
        [f"place in {b} of the best of {a}",
         bracketed(found.chosen[0].place, _whole)],
        [f"place in {a} of the best of {b}",
         bracketed(found.chosen[1].place, _whole)]
    ]
    return Chapter("numbers", "In numbers", [Columns(["", "value [95 %]"], rows), Bullets([
        "Intervals are of 95 %, each for itself. p is that of a permutation test; for few "
        "mechanisms it is exact, and intervals over mechanisms are wide.",
        *(_notes_on_families(found) if clustered else []),
        "Over mechanisms: for other mechanisms like these, each with as many seeds; so are those "
        "of halves of seeds. Here and in p they count as independent, though they share options, "
        "so that both are too sure.",
        "Over seeds: for these very mechanisms with as many other seeds, redrawn within each; it "
        "says nothing of other mechanisms. Intervals of counts and places are of this kind. Either "
        "kind leaves out what one seed does to many mechanisms alike.",
        "Halves have half of the seeds and agree less than all of them would; the tau to expect "
        "counts with all.",
        "The correction is a hint: it holds for jointly normal values, and takes the "
        "reliabilities, which are estimates, as known.",
        "The better half is chosen by the mean of one setting, noise included."])])


def _rows_of_half(what: str, half: Tau | None, clustered: bool) -> list[list[str]]:
    if not clustered or half is None:
        return [[what, str(half or "not known")]]
    return [[f"{what}, interval over families", str(half)],
            [f"{what}, interval over mechanisms", half.over_mechanisms]]


def _notes_on_families(found: Transfer) -> list[str]:
    return [
        f"Over families, mechanisms of equal {' and '.join(FAMILY)}: for other families like the "
        f"{found.tau.families} here. The verdict goes by it. It is, as that over mechanisms, "
        "Student's of the jackknife on the scale of Fisher's z; this one leaves out a family at a "
        f"time and has one degree of freedom fewer than families. Below {FEWEST_FAMILIES} families "
        "there is none. Families that share one of their two options count as independent, so that "
        "it is still rather too sure.",
        "p over families of the number shared is that of a t test of what each family adds to it "
        "beyond chance, or p over mechanisms where that is larger."]


def ranks(common: Matched, found: Transfer) -> Chapter:
    """A picture of all mechanisms, and the best ones by name."""
    a, b = found.sides
    best = [{*side.order[:found.top].tolist()} for side in found.sides]
    styles = [(f"best {found.top} of both", "c2"), (f"of {a.label}", "c0"), (f"of {b.label}", "c1")]

    def style(row: int) -> str:
        return {(True, True): "c2", (True, False): "c0", (False, True): "c1"}.get(
            (row in best[0], row in best[1]), "other")

    dots = [figures.Dot(float(a.rank[i]), float(b.rank[i]), style(i), tip(
        common.briefs[i], *(f"{side.label}: place {side.rank[i]}, {common.value} "
                           f"{digits(common.natural(side.mean[i]))}" for side in found.sides)))
            for i in range(len(common.names))]
    picture = figures.scatter(
        "Ranks in both", f"A dot for each mechanism, by its mean {common.value}; place 1 is the "
        f"best. Ranks that transfer lie on the diagonal.", f"place in {a.label}",
        f"place in {b.label}", dots, styles, (0.0, len(common.names) + 1.0))
    shown = sorted(best[0] | best[1], key=lambda i: a.rank[i] + b.rank[i])
    rows = [[common.briefs[i], *itertools.chain.from_iterable(
        (str(side.rank[i]), digits(common.natural(side.mean[i]))) for side in found.sides)]
            for i in shown]
    return Chapter("ranks", "Mechanism by mechanism", [
        Pictures({"ranks.svg": picture}),
        Paragraph(f"The {found.top} best of either:"),
        Columns(["mechanism", f"place in {a.label}", common.value, f"place in {b.label}",
                 common.value], rows)])


def making(tables_read: Sequence[Table], common: Matched, command: str) -> Chapter:
    """What all this was made from, and how to make it again."""
    items = []
    for table in tables_read:
        facts = [f"{key} {table.facts[key]}" for key in ("corpus", "semantics", "numerical_mode",
                                                         "run_seed") if key in table.facts]
        items.append(", ".join([table.path, f"{int(table.steps[-1])} steps", *facts,
                                *([f"SHA-256 {table.sha256}"] if table.sha256 else [])]))
    if common.rest:
        items.append(f"left out: {common.rest}")
    return Chapter("making", "How this was made", [Bullets(items), Code(command)])


def summary(found: Transfer) -> str:
    """transfer.csv: a row for each number, unrounded."""
    nothing = Interval(np.nan, np.nan, np.nan)
    halves = [side.halves[0] if side.halves else nothing for side in found.sides]
    reliability = found.reliability or (np.nan, np.nan)
    halves_of = [tau.interval if tau else nothing for tau in found.better_half]
    families_of_halves = [tau.of_families if tau else nothing for tau in found.better_half]
    rows = {
        "mechanisms": found.size, "families": found.tau.families,
        "tau_families": found.tau.of_families, "tau_mechanisms": found.tau.interval,
        "tau_p": found.tau.p, "tau_between_families": found.between and found.between.interval,
        "tau_between_families_p": found.between and found.between.p, "tau_within_families":
            found.within, "tau_seeds": found.tau_of_seeds, "tau_corrected": found.corrected,
        "tau_ceiling": found.ceiling, "ordered_alike": found.alike, "halves_a": halves[0],
        "halves_b": halves[1], "reliability_a": reliability[0], "reliability_b": reliability[1],
        "better_half_a": halves_of[0], "better_half_b": halves_of[1],
        "better_half_families_a": families_of_halves[0],
        "better_half_families_b": families_of_halves[1], "top": found.top, "overlap": found.overlap,
        "overlap_chance": found.chance, "overlap_p": found.overlap_p,
        "overlap_families_p": found.overlap_families_p, "best_of_a_in_b": found.chosen[0].place,
        "best_of_b_in_a": found.chosen[1].place, "loss_of_best_of_a_in_b": found.chosen[0].loss,
        "loss_of_best_of_b_in_a": found.chosen[1].loss
    }
    filled = {name: Interval(value, np.nan, np.nan) if isinstance(value, (int, float)) else
              value or nothing for name, value in rows.items()}
    return csv_text(["name", "value", "low", "high"],
                    ([name, *map(_short, value)] for name, value in filled.items()))


def of_mechanisms(common: Matched) -> str:
    """mechanisms.csv: a row for each mechanism; `a` and `b` as on the command line."""
    columns = [(common.natural(side.mean), side.seeds, side.rank) for side in common.sides]
    return csv_text(["mechanism", *(f"{side}_{what}" for side in "ab" for what in
                                    (common.value, "seeds", "place"))],
                    ([name, *(_short(values[i]) for side in columns for values in side)]
                     for i, name in enumerate(common.names)))


def _short(value: float) -> float:
    """Counts without decimals."""
    return int(value) if np.isfinite(value) and value == int(value) else float(value)


def _load(text: str) -> Table:
    return tables.load([text] if os.path.exists(text) else text.split(","))


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="transfer.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="A")
    parser.add_argument("second", metavar="B", nargs="?")
    parser.add_argument("--spread", type=positive, metavar="N",
                        help="name mechanisms from all over the ranking of A instead")
    parser.add_argument("--value", default="nll", choices=["nll", "accuracy", "test_nll"],
                        help="by which mechanisms are ranked; nll and accuracy are those of the "
                        "validation split (default: %(default)s)")
    parser.add_argument("--top", type=positive, default=10, metavar="K",
                        help="how many count as best, at most half of the mechanisms "
                        "(default: %(default)s)")
    parser.add_argument("--without", action="append", default=[], metavar="OPTION",
                        help="leave out mechanisms with this option in their name, as additive is; "
                             "may be given several times")
    parser.add_argument("-o", "--output", default="transfer", metavar="FOLDER")
    options = parser.parse_args(arguments)
    if (options.second is None) == (options.spread is None):
        parser.error("two settings must be given, or one and --spread")
    read = [_load(text) for text in (options.first, options.second) if text is not None]
    without = [*dict.fromkeys(map(read[0].schema.stored, options.without))]
    if options.spread:
        named = spread(*read, options.value, options.spread, without)
        print("\n".join(name if "|" in name or name.startswith("model{") else f"model{{}}/{name}"
                        for name in named))
        return
    common = matched(*read, options.value, without)
    found = Transfer(common.sides, options.top, families=common.families)
    sentences = verdict(common, found)
    page = Report(" and ".join(side.label for side in found.sides)
                  + (f", without {' or '.join(without)}" if without else "") + ": do ranks "
                                                                               "transfer?", [
        Chapter("verdict", "Verdict", [Bullets(sentences)]), numbers(found),
        ranks(common, found),
        making(read, common, f"analysis/studies/transfer.py {shlex.join(arguments)}")])
    written = page.write(pathlib.Path(options.output), "transfer",
                         {"transfer.csv": summary(found), "mechanisms.csv": of_mechanisms(common)})
    width = min(shutil.get_terminal_size().columns, 100)
    for sentence in sentences:
        print(textwrap.fill(sentence.replace(" %", "\u00a0%"), width, break_long_words=False,
                            break_on_hyphens=False))
    print(written)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
