"""What is in a table, and how noisy it is, in lines."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnas.analysis.words import counted, duration
from attnas.command_line import shortest
from attnas.data.packing import cells_of, common_replicates
from attnas.data.records import Evaluation, dumped
from attnas.table import Table

SOLVED = 0.9  # accuracy from which on a task that has chance levels counts as solved
BEST, MOST_REPLICATES = 10, 10  # of halves: 126 divisions

Line = tuple[str, str]  # a name and what is said of it


@dataclasses.dataclass(frozen=True)
class Final:
    """The score of a whole training run on the validation split."""

    nll: float  # per target
    accuracy: float
    solved_after: int | None  # steps


class Contents:
    """A table whose cells are known to be such as can be."""

    def __init__(self, table: Table):
        """@throws InputError"""
        self.table, self.cells = table, cells_of(table)
        self.replicates = common_replicates(self.cells)
        #: By mechanism, then by replicate.
        self.finals: list[dict[int, Final]] = [{} for _ in table.mechanisms]
        for row, name in enumerate(table.mechanisms):
            for replicate in table.runs[name]:
                if (cell := self.cells[name, replicate]).status == "ok" and cell.curve:
                    self.finals[row][replicate] = _final(cell)

    @property
    def nll(self) -> list[list[float]]:
        """Of every mechanism's replicates."""
        return [[final.nll for final in own.values()] for own in self.finals]

    def missing(self) -> int:
        """Cells that are not there, of replicates that most mechanisms have."""
        return sum(replicate not in own for own in self.table.runs.values()
                   for replicate in range(self.replicates))

    def size(self) -> str:
        """How many cells there are of each mechanism: "320 mechanisms x 5 replicates, 30 of them up
        to 20"."""
        runs = self.table.runs.values()
        text = f"{counted(len(runs), 'mechanism')} x {counted(self.replicates, 'replicate')}"
        most = max(map(max, runs)) + 1
        if most == self.replicates:
            return text
        return f"{text}, {sum(len(own) > self.replicates for own in runs)} of them up to {most}"


def _final(cell: Evaluation) -> Final:
    scores = [(point["step"], point["valid"]) for point in cell.curve]
    last = scores[-1][1]
    solved = (step for step, valid in scores if valid["correct"] / valid["tokens"] >= SOLVED)
    return Final(last["nll"] / last["tokens"], last["correct"] / last["tokens"], next(solved, None))


def lines(contents: Contents) -> list[Line]:
    """All that `nas-data table info` says below its first line."""
    table, counts = contents.table, {}
    for cell in contents.cells.values():
        if cell.status != "ok":
            counts[cell.status] = counts.get(cell.status, 0) + 1
    cells = [counted(len(table), "cell"), f"{contents.missing()} missing",
             *(f"{count} {status}" for status, count in sorted(counts.items()))]
    seconds = sum(_charged(cell) for cell in contents.cells.values())
    return [*_publication(table), *_facts(table), ("cells", ", ".join(cells)), *_missing(table),
            ("steps", _text(table.steps)), ("seconds", f"{duration(seconds)} of training"),
            *(("made on", machine) for machine in _machines(table)), *_variance(contents),
            *_ranks(contents), *_halves(contents), *_extremes(contents), *_quality(contents)]


def _charged(cell: Evaluation) -> float:
    """Seconds of training that a replay charges."""
    return cell.measured.get("cpu_seconds", cell.measured.get("train_seconds", 0.0))


def terms(corpus: str) -> str:
    """Those of a corpus that has known sources; else empty."""
    from attnas import prepare
    found = prepare.known().get(corpus)
    return found.licence if found else ""


def _text(value: Any) -> str:
    """As a configuration has it: `width=64, heads=2`, `[25, 50]`."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_text(value[key])}" for key in sorted(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else dumped(value)


def _fact(facts: dict, key: str) -> str:
    return _text(facts[key]) if key in facts else "unknown"


def _publication(table: Table) -> Iterator[Line]:
    """Version, changes and licence of the table itself, as far as it was published."""
    about = table.publication
    if "version" in about:
        yield "version", about["version"]
    for change in about.get("changelog", []):
        yield "", (f"{_fact(change, 'version')} ({_fact(change, 'date')}): {_fact(change, 'text')}")
    if "licence" in about:
        yield "licence", about["licence"]


def _facts(table: Table) -> Iterator[Line]:
    facts, about = table.facts, table.publication
    yield "semantics", _fact(facts, "semantics")
    yield "corpus", f"{_fact(facts, 'corpus')}, vocabulary {_fact(facts, 'vocabulary')}"
    # Of older tables as far as this program knows them.
    if own := about.get("corpus_licence", terms(_fact(facts, "corpus"))):
        yield "its terms", own
    yield "model", _fact(facts, "model")
    yield "training", _fact(facts, "training")
    yield "device", (f"{_fact(facts, 'device')}, numerical mode {_fact(facts, 'numerical_mode')}")
    yield "run seed", _fact(facts, "run_seed")
    for source in facts["sources"]:
        yield "source", (f"{_fact(source, 'name')}: {_fact(source, 'cells')} cells, SHA-256 "
                         f"{_fact(source, 'sha256')}")
    yield "SHA-256", table.sha256
    gates = about.get("gates")
    yield "gates", gates["verdict"] if gates else "no gates were recorded"
    for gate in gates["gates"] if gates else []:
        yield "", f"{gate['name']}: {gate['words']}"


def _missing(table: Table) -> Iterator[Line]:
    """Functions that the options of a table's mechanisms make and that it has no training run of. A
    field without effect has what the vanilla transformer has. Nothing without a schema."""
    genes = table.facts.get("schema", {}).get("genes", [])
    fields = [name.split("|") for name in table.mechanisms]
    if not genes or any(len(own) != len(genes) for own in fields):
        return
    chosen = [sorted(set(options)) for options in zip(*fields)]
    place = {gene["name"]: i for i, gene in enumerate(genes) if "name" in gene}
    rules = [(field, place[by], set(options)) for field, gene in enumerate(genes)
             for by, options in sorted(gene.get("voided_by", {}).items(),
                                       key=lambda rule: place.get(rule[0], -1)) if by in place]
    vanilla = [next((option for option in gene.get("vanilla", []) if option in options), options[0])
               for gene, options in zip(genes, chosen)]
    missing = set()
    for options in map(list, itertools.product(*chosen)):
        for field, by, voiding in rules:
            if options[by] in voiding:
                options[field] = vanilla[field]
        missing.add("|".join(options))
    missing -= set(table.mechanisms)
    if missing:
        yield "missing", (f"{len(missing)} of the {len(table.mechanisms) + len(missing)} functions "
                          f"that its options make have no training run, such as {min(missing)}")


def _machines(table: Table) -> list[str]:
    """Processors and libraries that the trainings ran on."""
    machines = set()
    for source in table.facts["sources"]:
        alone = [source["environment"]] if "environment" in source else []
        for own in [*source.get("environments", []), *alone]:
            keys = ("processor", "instruction_set", "device", "torch", "revision")
            machines.add(", ".join("LibTorch " * (key == "torch") + own[key] for key in keys
                                   if isinstance(own.get(key), str)))
    return sorted(machines)


def _variance(contents: Contents) -> Iterator[Line]:
    """How much of what differs is not the replicates' noise."""
    groups = [own for own in contents.nll if own]
    icc = intraclass_correlation(groups)
    if math.isnan(icc):  # one mechanism, or replicates that do not differ
        if any(len(own) > 1 for own in groups):
            yield "variance", "-"
        return
    said = " of that of the final validation nll is between mechanisms"
    text = f"{icc:.3f}{said} (ICC)" if icc > 0.0 else f"nothing{said} (ICC {icc:.3f})"
    paired = consistency_correlation([own for own in groups if len(own) == contents.replicates])
    if paired > 0.0:
        text += f"; {paired:.3f} without what a replicate does to all of them alike"
    yield "variance", text


def intraclass_correlation(groups: list[list[float]]) -> float:
    """ICC(1) of a one-way random effects model: the share of the variance of one measurement that
    is between groups (Shrout & Fleiss 1979). NaN where nothing but rounding varies within groups.
    """
    count, number = sum(map(len, groups)), len(groups)
    if number < 2 or count == number:
        return math.nan
    total = sum(map(sum, groups)) / count
    means = [sum(own) / len(own) for own in groups]
    between = sum(len(own) * (mean - total) ** 2 for own, mean in zip(groups, means))
    within = sum((value - mean) ** 2 for own, mean in zip(groups, means) for value in own)
    between, within = between / (number - 1), within / (count - number)
    if not within > (1e-12 * max(abs(value) for own in groups for value in own)) ** 2:
        return math.nan
    size = (count - sum(len(own) ** 2 for own in groups) / count) / (number - 1)
    return (between - within) / (between + (size - 1) * within)


def consistency_correlation(groups: list[list[float]]) -> float:
    """ICC(C,1) of a two-way model: the same without what a column does to all groups alike (McGraw
    & Wong 1996). @param groups  of one length."""
    values = np.array(groups)
    if values.ndim < 2 or min(values.shape) < 2:
        return math.nan
    rows, columns = values.shape
    own = values.mean(axis=1, keepdims=True)
    between = columns * ((own - values.mean()) ** 2).sum() / (rows - 1)
    rest = ((values - own - values.mean(axis=0) + values.mean()) ** 2).sum()
    rest /= (rows - 1) * (columns - 1)
    if not rest > (1e-12 * np.abs(values).max()) ** 2:
        return math.nan
    return float((between - rest) / (between + (columns - 1) * rest))


def rank_correlation(a: Any, b: Any) -> float:
    """Spearman's; equal values share their mean rank. NaN where one side is constant."""
    from scipy import stats
    ranks = [stats.rankdata(side) - (len(side) + 1) / 2 for side in (a, b)]
    squares = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1])) if len(a) else 0.0
    return float(ranks[0] @ ranks[1]) / squares if squares > 0.0 else math.nan


def _ranks(contents: Contents) -> Iterator[Line]:
    """How alike replicates rank the mechanisms, over all pairs of them."""
    pairs = []
    for a, b in itertools.combinations(range(contents.replicates), 2):
        both = [(own[a].nll, own[b].nll) for own in contents.finals if a in own and b in own]
        pairs.append(rank_correlation(*zip(*both)) if both else math.nan)
    known = [pair for pair in pairs if not math.isnan(pair)]
    if known:
        yield "ranks", (f"Spearman {statistics.fmean(known):.3f} between replicates, "
                        f"{min(known):.3f} to {max(known):.3f} over {counted(len(known), 'pair')}")
    elif pairs:
        yield "ranks", "-"


def _halves(contents: Contents) -> Iterator[Line]:
    """How far the ranking can be trusted: all ways to divide the first replicates into two halves,
    and how alike the means of the halves rank the mechanisms."""
    whole = sorted(next(i for i in range(MOST_REPLICATES + 1)
                        if i == MOST_REPLICATES or i not in own) for own in contents.finals)
    # As many as nine mechanisms of ten have; the others are left out.
    count = whole[len(whole) // 10]
    values = np.array([[own[i].nll for i in range(count)] for own in contents.finals
                       if all(i in own for i in range(count))])
    divisions = [half for half in itertools.combinations(range(count), (count + 1) // 2)
                 if count % 2 or 0 in half]
    if len(values) <= BEST or count < 1:
        return
    agreement, overlap = [], []
    for half in divisions:
        others = [i for i in range(count) if i not in half]
        if not others:
            return
        means = [values[:, side].mean(axis=1) for side in (list(half), others)]
        agreement.append(rank_correlation(*means))
        best = [set(np.argsort(side, kind="stable")[:BEST].tolist()) for side in means]
        overlap.append(len(best[0] & best[1]))
    alike = statistics.fmean(agreement)
    yield "halves", (f"of the first {counted(count, 'replicate')}: Spearman "
                     f"{'-' if math.isnan(alike) else f'{alike:.3f}'}; of the {BEST} best by one "
                     f"half {statistics.fmean(overlap):.1f} are among the best of the other "
                     f"({counted(len(divisions), 'division')})")


def _extremes(contents: Contents) -> Iterator[Line]:
    """The mechanisms of the least and of the largest mean nll."""
    means = [(statistics.fmean(own), name) for own, name in
             zip(contents.nll, contents.table.mechanisms) if own]
    for what, (nll, name) in zip(("best", "worst"), (min(means), max(means)) if means else ()):
        yield what, f"{name}: nll {nll:.3f}, perplexity {math.exp(nll):.3f}"


def _chance(facts: dict) -> tuple[str, float, float] | None:
    """What the table's corpus says is chance: by what, its nll and its accuracy."""
    if chance := facts.get("chance"):
        return chance["by"], chance["nll"], chance["accuracy"]
    # Older tables have what the task was in the description only.
    pairs = re.search(r"\b([1-9][0-9]{0,5}) pairs in ", facts.get("corpus_description", ""))
    if facts.get("corpus") != "mqar" or not pairs:
        return None
    return "guessing among the values shown", math.log(int(pairs[1])), 1.0 / int(pairs[1])


def _quality(contents: Contents) -> Iterator[Line]:
    """How good the mechanisms are, and whether that is more than chance."""
    finals = [list(own.values()) for own in contents.finals if own]
    if not finals:
        return
    nll = sorted(statistics.fmean(final.nll for final in own) for own in finals)
    accuracy = sorted(statistics.fmean(final.accuracy for final in own) for own in finals)
    yield "nll", (f"{nll[0]:.3f} best mechanism, {statistics.median(nll):.3f} median (means over "
                  "replicates)")
    yield "accuracy", (f"{_percent(accuracy[-1])} best mechanism, "
                       f"{_percent(statistics.median(accuracy))} median")
    facts = contents.table.facts
    if chance := _chance(facts):
        yield from _solved(finals)
        by, of_chance, share = chance
        yield "chance", f"{by}: nll {of_chance:.3f}, accuracy {_percent(share)}"
    elif facts.get("unigram_perplexity", 0.0) > 1.0:
        by, of_chance = "guessing by how often each token occurs", math.log(
            facts["unigram_perplexity"])
        yield "chance", f"{by}: nll {of_chance:.3f}"
    else:
        return
    better = sum(own < of_chance for own in nll)
    yield "", (f"{better} of {counted(len(nll), 'mechanism')} ({_percent(better / len(nll))}) do "
               f"better than {by}, by their nll" if better else
               f"no mechanism does better than {by}, by its nll")


def _solved(finals: list[list[Final]]) -> Iterator[Line]:
    """Which mechanisms solve the task, and how early."""
    solving = sum(statistics.fmean(final.accuracy for final in own) >= SOLVED for own in finals)
    after = [[final.solved_after for final in own if final.solved_after is not None]
             for own in finals]
    mostly = sum(2 * len(some) > len(own) for some, own in zip(after, finals))
    yield "solved", (f"{solving} of {counted(len(finals), 'mechanism')} "
                     f"({_percent(solving / len(finals))}) reach {_percent(SOLVED)} accuracy, mean "
                     f"over replicates, {mostly} ({_percent(mostly / len(finals))}) do so with "
                     "most replicates")
    if steps := sorted(itertools.chain(*after)):
        yield "", (f"{len(steps)} trainings do, the first after {shortest(steps[0])} steps, half "
                   f"of them by {shortest(steps[(len(steps) - 1) // 2])}")


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"
