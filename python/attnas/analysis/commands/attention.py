"""Says what the attention of a trained model does, or how that of two models differs.

    analysis/attention.py ANALYSIS [ANALYSIS] [-o FOLDER]

ANALYSIS is an attention.json, or the folder where nas-analyse has written it. FOLDER receives
attention.html, attention.md and the pictures as .svg; it is that of the first ANALYSIS if left out.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import shlex
from dataclasses import dataclass

from attnas.analysis import attention_figures as figures
from attnas.analysis.arguments import program
from attnas.analysis.attention import (
    Analysis, Difference, Estimate, Head, Sentence, Statistic, differences, read)
from attnas.analysis.digest import BadInput, seed_number
from attnas.analysis.html import Html, element
from attnas.analysis.page import Bullets, Chapter, Code, Columns, Paragraph, Part, Pictures, Report
from attnas.analysis.words import counted, digits, listed, p_value, signed

SINK = 0.3  # of a row, on the first token: a sink (Gu et al. 2024)
CLEAR = 0.4  # of the weight, from which on a head is named after what it looks at

# What each statistic is, and what stands below its picture.
MEANINGS = {
    "row_mass": "sum of a query's weights; below 1: it abstains",
    "light_rows": "share of queries whose weights sum to less than 0.5",
    "entropy": "entropy of a query's weights, nats",
    "entropy_ratio": "entropy over that of uniform attention to all visible keys: 1 is uniform, 0 "
                     "a single key",
    "effective_keys": "number of keys that attention amounts to, exp(entropy)",
    "sink_mass": "weight of the first token; heads above 0.3 have a sink",
    "sink_rate": "share of heads with a sink",
    "mean_distance": "tokens that attention reaches back, a mean over weights",
    "within_8": "share of the weight on the last 8 tokens, the query's own among them",
    "within_32": "the same of the last 32",
    "within_128": "the same of the last 128",
    "distance_slope": "slope of log weight on log distance",
    "previous_token": "share of the weight on the token before, on repeated random tokens",
    "duplicate_token": "share of the weight on earlier occurrences of the same token",
    "induction": "share of the weight on what followed the same token before",
    "score_sd": "standard deviation of the scores of a query: how sharp they are",
    "score_maximum": "largest score of a sequence",
    "gate_mean": "mean of the gate, 0 shut to 1 open",
    "gate_sd": "standard deviation of the gate",
    "gate_shut": "share of gates below 0.1",
    "gate_open": "share of gates above 0.9",
    "memory_length": "tokens that are not forgotten: of forget gates, a mean over queries; of a "
                     "state's decay, 1 / (1 - alpha)",
    "half_life": "tokens after which forgetting has halved a weight",
    "forget_mean": "mean of the forget gate or of the decay alpha; 1: nothing is forgotten",
    "beta_mean": "mean of the delta rule's gate: 1 replaces what a key had, 0 keeps it",
    "beta_sd": "standard deviation of that gate",
    "erase_mean": "mean of the gate that erases what a key had",
    "erase_sd": "standard deviation of that gate",
    "write_mean": "mean of the gate that writes values",
    "write_sd": "standard deviation of that gate",
    "state_used": "directions that a state amounts to at the end of a sequence, as a share of its "
                  "rows",
    "nll": "mean nll of the held-out sequences, nats",
    "in_context_score": "nll of the first copy minus that of the second, on repeated random tokens",
}
DRAWN = {"entropy_ratio": (0.0, 1.0), "sink_mass": None, "mean_distance": None, "row_mass": None,
         "previous_token": (0.0, 1.0), "induction": (0.0, 1.0), "score_sd": None,
         "memory_length": None, "beta_mean": None, "state_used": None}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _interval(found: Estimate) -> str:
    if not math.isfinite(found.low):
        return digits(found.mean) if math.isfinite(found.mean) else "not defined"
    return f"{digits(found.mean)} [{digits(found.low)}, {digits(found.high)}]"


def _strongest(analysis: Analysis, name: str) -> tuple[int, int, Estimate] | None:
    """The head with the largest mean of a statistic, by layer and number."""
    heads = [(layer.index, h, head) for layer in analysis.attention
             if name in layer.statistics
             for h, head in enumerate(layer.statistics[name].heads) if math.isfinite(head.mean)]
    return max(heads, key=lambda each: each[2].mean, default=None)


def _named_heads(analysis: Analysis) -> list[str]:
    sentences = []
    for name, words in (("previous_token", "looks at the token before"),
                        ("duplicate_token", "looks at earlier occurrences of its token"),
                        ("induction", "looks at what followed its token before")):
        found = _strongest(analysis, name)
        if found is None:
            continue
        layer, head, score = found
        clear = score.mean >= CLEAR
        sentences.append(
            f"Head {head} of layer {layer} {words} with {_interval(score)} of its weight"
            + ("." if clear else f": the most of all heads, and less than {CLEAR}."))
    return sentences


def _sinks(analysis: Analysis) -> str | None:
    heads = [head.mean for layer in analysis.attention
             if "sink_mass" in layer.statistics and not layer.recurrent
             for head in layer.statistics["sink_mass"].heads]
    if not heads:
        return None
    sinks = sum(mean > SINK for mean in heads)
    return (f"{sinks} of {counted(len(heads), 'head')} give more than {SINK} of their weight to "
            "the first token on average: sinks.")


def _mass(analysis: Analysis) -> str | None:
    light = [(layer.index, layer.statistics["light_rows"].layer) for layer in analysis.attention
             if "light_rows" in layer.statistics and not layer.recurrent]
    light = [(index, each) for index, each in light if each.mean > 0.005]
    if not light:
        return None
    return "Queries abstain, their weights summing to less than 0.5: " + listed(
        [f"{100 * each.mean:.0f} % of them in layer {index}" for index, each in light]) + "."


def _states(analysis: Analysis) -> list[str]:
    """What recurrent layers remember."""
    sentences = []
    for layer in analysis.attention:
        if not layer.recurrent:
            continue
        used, half = layer.statistics["state_used"].layer, layer.statistics.get("half_life")
        if not math.isfinite(used.mean):
            continue
        forgets = (f" and forgets half in {_interval(half.layer)} tokens"
                   if half is not None and math.isfinite(half.layer.mean) else "")
        sentences.append(f"The state of layer {layer.index} uses {_interval(used)} of its "
                         f"rows{forgets}.")
    return sentences


def findings(analysis: Analysis) -> list[str]:
    """What is said first of a model."""
    items = []
    ratio = [(layer.index, layer.statistics["entropy_ratio"].layer) for layer in analysis.attention
             if "entropy_ratio" in layer.statistics]
    if ratio:
        items.append("Entropy of attention over that of uniform attention: " + listed(
            [f"{_interval(each)} in layer {index}" for index, each in ratio], 8) + ".")
    items += [each for each in (_sinks(analysis), _mass(analysis)) if each]
    items += _states(analysis)
    items += _named_heads(analysis)
    score = analysis.model.get("in_context_score")
    if score is not None and math.isfinite(score.mean):
        items.append(f"Having seen random tokens once makes their repetition easier by "
                     f"{_interval(score)} nats.")
    return items


def verdict(analyses: list[Analysis], found: list[Difference]) -> Chapter:
    """The findings in sentences."""
    if not any(each.attention for each in analyses):  # sentences alone
        return Chapter("verdict", "Verdict", [])
    if len(analyses) == 1:
        return Chapter("verdict", "Verdict", [Bullets(findings(analyses[0]))])
    a, b = analyses
    clear = sorted((each for each in found if each.significant), key=lambda each: -abs(each.size))
    items = [f"{len(clear)} of {counted(len(found), 'statistic')} differ significantly between "
             f"{a.label} and {b.label} (Holm over all of them, 5 %)."]
    items += [f"{_where(each)}: {digits(each.a)} against {digits(each.b)}, a difference of "
              f"{signed(each.value)}." for each in clear[:6]]
    items.append("What is compared are two trained models on "
                 + ("the same sequences" if found and found[0].paired else "different sequences")
                 + ": what another seed would have learned is not in these intervals.")
    parts = [Bullets(items)]
    for each in analyses:
        parts += [Paragraph(f"{each.label}:"), Bullets(findings(each))]
    return Chapter("verdict", "Verdict", parts)


def _where(each: Difference) -> str:
    name = _words(each.name)
    return f"{name} of the model" if each.layer is None else f"{name} of layer {each.layer}"


def _letters(number: int) -> str:
    return "ab"[number]


def pictures_of_maps(analyses: list[Analysis]) -> Chapter:
    """Maps of one sequence."""
    below = "One held-out sequence; rows are queries, columns keys, both from the first token."
    if any(layer.recurrent for each in analyses for layer in each.attention):
        below += (" Of recurrent layers: what they do to values, written as weights, which need "
                  "not sum to 1 and may be negative, as shares of the largest of the head.")
    drawn = {}
    for i, each in enumerate(analyses):
        if any(layer.maps.size for layer in each.attention):
            name = f"maps_{_letters(i)}.svg" if len(analyses) > 1 else "maps.svg"
            drawn[name] = figures.maps(each, below)
    return Chapter("maps", "Maps", [Pictures(drawn)] if drawn else [])


@dataclass(frozen=True)
class Sentences(Part):
    """Maps with tokens on both axes: one sentence and one head at a time."""

    sentences: list[Sentence]

    def html(self) -> Html:
        shown = [
            Sentence([_visible(token) for token in one.tokens], one.heads) for one in self.sentences
        ]
        data = json.dumps([{
            "tokens": one.tokens, "heads": [{
                "rows": [[None if math.isnan(weight) else weight for weight in row]
                         for row in head.drawn]
            } for head in one.heads]
        } for one in shown]).replace("<", "\\u003c")
        choices = [
            ("sentence", [" ".join(one.tokens) for one in shown]),
            ("head", [f"layer {head.layer}, head {head.number}" for head in shown[0].heads])]
        return element(
            "div", element("script", Html(data), type="application/json"),
            element(
                "div",
                *(element(
                    "label", f"{name} ",
                    element(
                        "select",
                        *(element("option", words, value=number)
                          for number, words in enumerate(all_words))))
                  for name, all_words in choices), class_="choices", hidden=True),
            element("div", element("svg"), class_="map scroll"), class_="sentences")

    def markdown(self) -> str:
        rows = [[" ".join(map(_visible, one.tokens)), f"{head.layer}, "
                                                      f"{head.number}", *_strongest_link(one, head)]
                for one in self.sentences for head in one.heads]
        return Columns(["sentence", "layer, head", "looks most at what came "
                                                   "before", "weight"], rows).markdown()


def _visible(token: str) -> str:
    """A token that can be seen: also one that is blank."""
    return token.replace("\n", "\u21b5").replace("\t", "\u21e5").replace(" ", "\u2423") or "\u2205"


def _strongest_link(sentence: Sentence, head: Head) -> list[str]:
    """The largest weight on another token: who looks at what, and the weight."""
    links = [(weight, i, j) for i, row in enumerate(head.rows) for j, weight in enumerate(row[:-1])
             if math.isfinite(weight)]
    if not links:
        return ["-", "-"]
    weight, query, key = max(links)
    words = [_visible(token) for token in sentence.tokens]
    return [f"{words[query]} at {words[key]}", digits(weight)]


def pictures_of_sentences(analyses: list[Analysis]) -> Chapter:
    """What heads look at in sentences, of each analysis."""
    parts: list[Part] = []
    for each in analyses:
        if each.sentences:
            if len(analyses) > 1:
                parts.append(Paragraph(f"{each.label}:"))
            parts.append(Sentences(each.sentences))
    if parts:
        words = ("A row is a token that looks, a column one that is looked at; the stronger the "
                 "colour of a square, the larger the weight. Orange: below 0.")
        if any(head.relative for each in analyses for one in each.sentences for head in one.heads):
            words += " Of recurrent layers: as shares of the largest weight of the head."
        parts.insert(0, Paragraph(words))
    return Chapter("sentences", "Sentences", parts)


def pictures_of_distances(analyses: list[Analysis]) -> Chapter:
    """Weight by distance, a picture a layer."""
    layers = sorted({layer.index for each in analyses for layer in each.attention
                     if layer.profile.size})
    drawn = {f"distance_{index}.svg": figures.profiles(analyses, index) for index in layers}
    return Chapter("distances", "Distances", [Pictures(drawn)] if drawn else [])


def pictures_by_layer(analyses: list[Analysis]) -> Chapter:
    """Statistics of every layer."""
    drawn = {}
    for name, ends in DRAWN.items():
        if any(name in layer.statistics for each in analyses for layer in each.attention):
            drawn[f"{name}.svg"] = figures.by_layer(
                analyses, name, _words(name), MEANINGS[name] + ".", ends)
    words = "Bars: 95 % intervals over sequences of the mean over heads; small dots: heads."
    return Chapter("layers", "By layer", [Paragraph(words), Pictures(drawn)] if drawn else [])


def pictures_of_gates(analyses: list[Analysis]) -> Chapter:
    """Histograms of gates."""
    drawn = {}
    for i, each in enumerate(analyses):
        for layer in each.attention:
            for gate in layer.gates:
                suffix = f"_{_letters(i)}" if len(analyses) > 1 else ""
                drawn[f"{gate.name}_{layer.index}{suffix}.svg"] = figures.gate_histogram(
                    each, layer.index, gate)
    return Chapter("gates", "Gates", [Pictures(drawn)] if drawn else [])


def comparison(analyses: list[Analysis], found: list[Difference]) -> Chapter:
    """All differences, the significant ones as a picture."""
    if len(analyses) < 2:
        return Chapter("differences", "Differences", [])
    rows = [[_where(each), digits(each.a), digits(each.b),
             f"{signed(each.value)} [{digits(each.low)}, {digits(each.high)}]",
             p_value(each.p_holm), str(each.n)]
            for each in sorted(found, key=lambda each: (each.p_holm, -abs(each.size)))]
    parts = []
    names = tuple(each.label for each in analyses)
    if any(each.significant and math.isfinite(each.size) for each in found):
        parts.append(Pictures({"differences.svg": figures.sizes(found, names)}))
    parts.append(Columns(["statistic", "first", "second", "difference [95 %]", "Holm", "sequences"],
                         rows))
    return Chapter("differences", "Differences", parts)


def _table(statistics: dict[str, Statistic]) -> Columns:
    most = max(len(each.heads) for each in statistics.values())
    return Columns(["statistic", "all heads", *(f"head {h}" for h in range(most))],
                   [[_words(name), _interval(each.layer), *(digits(head.mean) if math.isfinite(
                       head.mean) else "-" for head in each.heads)]
                    for name, each in sorted(statistics.items())])


def numbers(analyses: list[Analysis]) -> Chapter:
    """Every statistic of every head."""
    parts = []
    for each in analyses:
        for layer in each.attention:
            parts += [Paragraph(f"{each.label}, layer {layer.index}:"), _table(layer.statistics)]
            for gate in layer.gates:
                parts += [Paragraph(f"{_words(gate.name)}:"), _table(gate.statistics)]
    names = sorted({name for each in analyses for layer in each.attention
                    for found in (layer.statistics, *(gate.statistics for gate in layer.gates))
                    for name in found})
    known = [f"{_words(name)}: {MEANINGS[name]}" for name in names if name in MEANINGS]
    return Chapter("numbers", "Numbers", [*parts, Bullets(known)] if parts else [])


def making(analyses: list[Analysis], command: str) -> Chapter:
    """Where it comes from."""
    items = []
    for each in analyses:
        facts = each.facts
        if not each.attention:
            items.append(f"{each.label}: weights {facts.get('weights')}.")
            continue
        items.append(
            f"{each.label}: seed {seed_number(facts['replicate'])} of run {facts.get('run')}, "
            f"weights {facts.get('weights')}, {facts.get('sequences')} sequences of "
            f"{facts.get('length')} tokens of the {facts.get('split')} split of "
            f"{facts.get('corpus')}; the first {facts.get('first_query')} queries are left out.")
    return Chapter("making", "How this was made", [Bullets(items), Code(command)])


def report(analyses: list[Analysis], command: str) -> Report:
    """The page of one analysis, or of two side by side."""
    found = differences(*analyses) if len(analyses) == 2 else []
    title = " and ".join(each.label for each in analyses)
    return Report(f"Attention: {title}", [
        verdict(analyses, found),
        pictures_of_sentences(analyses),
        pictures_of_maps(analyses),
        pictures_of_distances(analyses),
        pictures_by_layer(analyses),
        pictures_of_gates(analyses),
        comparison(analyses, found),
        numbers(analyses),
        making(analyses, command)
    ])


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="attention.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("analyses", nargs="+", metavar="ANALYSIS")
    parser.add_argument("-o", "--output", metavar="FOLDER")
    options = parser.parse_args(arguments)
    if len(options.analyses) > 2:
        raise BadInput(f"{len(options.analyses)} analyses, must be one or two")
    page = report([read(each) for each in options.analyses],
                  f"analysis/attention.py {shlex.join(arguments)}")
    first = pathlib.Path(options.analyses[0])
    folder = pathlib.Path(options.output or (first if first.is_dir() else first.parent))
    print(page.write(folder, "attention"))
