"""Says what the attention of a trained model does.

    analysis/attention.py ANALYSIS [-o FOLDER]

ANALYSIS is an attention.json, or the folder where nas-analyse has written it. FOLDER receives
attention.html, attention.md and the pictures as .svg; it is that of ANALYSIS if left out.
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
from attnas.analysis.attention import Analysis, Estimate, Head, Sentence, Statistic, read
from attnas.analysis.digest import seed_number
from attnas.analysis.html import Html, element
from attnas.analysis.page import Bullets, Chapter, Code, Columns, Paragraph, Part, Pictures, Report
from attnas.analysis.words import counted, digits, listed

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
    heads = [(layer.index, h, head) for layer in analysis.attention if name in layer.statistics
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


def verdict(analysis: Analysis) -> Chapter:
    """The findings in sentences; none of sentences alone."""
    items = findings(analysis) if analysis.attention else []
    apart = [f"layer {layer.index} ({layer.left_out})"
             for layer in analysis.layers if layer.left_out]
    items += [f"Not looked into: {listed(apart, 8)}."] if apart else []
    return Chapter("verdict", "Verdict", [Bullets(items)] if items else [])


def pictures_of_maps(analysis: Analysis) -> Chapter:
    """Maps of one sequence."""
    below = "One held-out sequence; rows are queries, columns keys, both from the first token."
    if any(layer.recurrent for layer in analysis.attention):
        below += (" Of recurrent layers: what they do to values, written as weights, which need "
                  "not sum to 1 and may be negative, as shares of the largest of the head.")
    there = any(layer.maps.size for layer in analysis.attention)
    return Chapter("maps", "Maps",
                   [Pictures({"maps.svg": figures.maps(analysis, below)})] if there else [])


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
        choices = [("sentence", [" ".join(one.tokens) for one in shown]),
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


def pictures_of_sentences(analysis: Analysis) -> Chapter:
    """What heads look at in sentences."""
    parts: list[Part] = []
    if analysis.sentences:
        words = ("A row is a token that looks, a column one that is looked at; the stronger the "
                 "colour of a square, the larger the weight. Orange: below 0.")
        if any(head.relative for one in analysis.sentences for head in one.heads):
            words += " Of recurrent layers: as shares of the largest weight of the head."
        parts = [Paragraph(words), Sentences(analysis.sentences)]
    return Chapter("sentences", "Sentences", parts)


def pictures_of_distances(analysis: Analysis) -> Chapter:
    """Weight by distance, a picture a layer."""
    drawn = {f"distance_{layer.index}.svg": figures.profiles(layer)
             for layer in analysis.attention if layer.profile.size}
    return Chapter("distances", "Distances", [Pictures(drawn)] if drawn else [])


def pictures_by_layer(analysis: Analysis) -> Chapter:
    """Statistics of every layer."""
    drawn = {}
    for name, ends in DRAWN.items():
        if any(name in layer.statistics for layer in analysis.attention):
            drawn[f"{name}.svg"] = figures.by_layer(
                analysis, name, _words(name), MEANINGS[name] + ".", ends)
    words = "Bars: 95 % intervals over sequences of the mean over heads; small dots: heads."
    return Chapter("layers", "By layer", [Paragraph(words), Pictures(drawn)] if drawn else [])


def pictures_of_gates(analysis: Analysis) -> Chapter:
    """Histograms of gates."""
    drawn = {f"{gate.name}_{layer.index}.svg": figures.gate_histogram(analysis, layer.index, gate)
             for layer in analysis.attention for gate in layer.gates}
    return Chapter("gates", "Gates", [Pictures(drawn)] if drawn else [])


def _table(statistics: dict[str, Statistic]) -> Columns:
    most = max(len(each.heads) for each in statistics.values())
    return Columns(["statistic", "all heads", *(f"head {h}" for h in range(most))],
                   [[_words(name), _interval(each.layer), *(digits(head.mean) if math.isfinite(
                       head.mean) else "-" for head in each.heads)]
                    for name, each in sorted(statistics.items())])


def numbers(analysis: Analysis) -> Chapter:
    """Every statistic of every head."""
    parts = []
    for layer in analysis.attention:
        parts += [Paragraph(f"{analysis.label}, layer {layer.index}:"), _table(layer.statistics)]
        for gate in layer.gates:
            parts += [Paragraph(f"{_words(gate.name)}:"), _table(gate.statistics)]
    names = sorted({name for layer in analysis.attention
                    for found in (layer.statistics, *(gate.statistics for gate in layer.gates))
                    for name in found})
    known = [f"{_words(name)}: {MEANINGS[name]}" for name in names if name in MEANINGS]
    return Chapter("numbers", "Numbers", [*parts, Bullets(known)] if parts else [])


def making(analysis: Analysis, command: str) -> Chapter:
    """Where it comes from."""
    facts = analysis.facts
    words = f"{analysis.label}: weights {facts.get('weights')}."
    if analysis.attention:
        words = (
            f"{analysis.label}: seed {seed_number(facts['replicate'])} of run {facts.get('run')}, "
            f"weights {facts.get('weights')}, {facts.get('sequences')} sequences of "
            f"{facts.get('length')} tokens of the {facts.get('split')} split of "
            f"{facts.get('corpus')}; the first {facts.get('first_query')} queries are left out.")
    return Chapter("making", "How this was made", [Bullets([words]), Code(command)])


def report(analysis: Analysis, command: str) -> Report:
    """The page of an analysis."""
    parts = (pictures_of_sentences, pictures_of_maps, pictures_of_distances, pictures_by_layer,
             pictures_of_gates, numbers)
    return Report(f"Attention: {analysis.label}", [
        verdict(analysis), *(part(analysis) for part in parts), making(analysis, command)])


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="attention.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("analysis", metavar="ANALYSIS")
    parser.add_argument("-o", "--output", metavar="FOLDER")
    options = parser.parse_args(arguments)
    page = report(read(options.analysis), f"analysis/attention.py {shlex.join(arguments)}")
    first = pathlib.Path(options.analysis)
    folder = pathlib.Path(options.output or (first if first.is_dir() else first.parent))
    print(page.write(folder, "attention"))
