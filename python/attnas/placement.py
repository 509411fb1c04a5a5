"""Which layers of a converted model must attend: what a conversion run says of it, as a page, as
text, and how sure it is.

    attnas convert-page RUN [CONTROL ...] [--cache 50%] [-o PAGE] [--json]

RUN is the folder of a run of problem convert, or of one with a convert.json, or that file. What the
runs CONTROL have placed, as those of algorithm uniform, are controls. Chosen is what costs least
in KL and recall within a share of the cache. PAGE is convert.html in that folder if left out. Its
text is printed, with --json its summary as JSON.

Statistics are over examples, documents of KL and probes of recall, which are drawn again apart from
each other and for all candidates alike, so that what all share does not count as doubt.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnas.analysis.arguments import program
from attnas.analysis.files import write_whole
from attnas.analysis.html import Html, element, join
from attnas.analysis.run import Run
from attnas.analysis.page import Cell, Section, note, page, paragraph, table
from attnas.analysis.svg import HALF, Axis, Figure, Frame, Picture, linear, tip, value_axis
from attnas.analysis.words import count, counted, joined, number, percent, range_text
from attnas.command_line import Parser
from attnas.errors import InputError

MEASURES = {"kl": "KL to the original, nats a token", "recall": "recall lost, nats a token"}
SHORT = {"kl": "KL", "recall": "recall"}
ROLES = ("front", "control", "baseline", "choice")
CERTAIN = 0.95
RESAMPLES = 2000

# Statistics. values: by candidate, of each measure a number an example.


def resampled(values: Mapping[str, Mapping[str, Sequence[float]]], names: Sequence[str],
              resamples: int = RESAMPLES, seed: int = 0) -> dict[str, np.ndarray]:
    """Means of each measure over examples drawn again, (resamples, names).

    Of n examples n - 1 are drawn, so that the variance of a mean is that of n (Rao & Wu 1988).
    @throws InputError  where candidates have not as many examples each, two at least.
    """
    found = {}
    for place, measure in enumerate(MEASURES):
        numbers = [np.asarray(values[name][measure], dtype=float) for name in names]
        n = len(numbers[0])
        for name, own in zip(names, numbers):
            if len(own) != n or n < 2 or not np.isfinite(own).all():
                raise InputError(f"values: {name}: {measure} has {len(own)} numbers, must have {n} "
                                 f"finite ones as {names[0]}, at least 2")
        random = np.random.default_rng([seed, place])
        drawn = random.multinomial(n - 1, np.full(n, 1 / n), size=resamples) / (n - 1)
        found[measure] = drawn @ np.stack(numbers, 1)
    return found


def interval(means: np.ndarray, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Percentile intervals of resampled means, the first axis being resamples."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail), axis=0)
    return low, high


def kept_shares(scores: np.ndarray, keep: int) -> np.ndarray:
    """Which layers the additive choice keeps, those of the `keep` largest scores: 1, 0, or, where
    layers of one score share fewer places, the share of each.

    @param scores  (..., layers), the cost of replacing each alone.
    """
    ordered = np.sort(scores, axis=-1)[..., ::-1]
    least = ordered[..., keep - 1:keep] if keep else np.full_like(ordered[..., :1], np.inf)
    above, equal = scores > least, scores == least
    left = keep - above.sum(-1, keepdims=True)
    return above + equal * left / np.maximum(equal.sum(-1, keepdims=True), 1)


def certainty(values: Mapping[str, Mapping[str, Sequence[float]]], names: Sequence[str], keep: int,
              weights: Mapping[str, float] | None = None, resamples: int = RESAMPLES,
              seed: int = 0) -> dict[str, Any]:
    """How sure it is which layers stay whole where the others are replaced.

    @param names    the candidates in which one layer alone is replaced, by layer.
    @param weights  of the measures in a layer's score, which is their sum; as a rule 1 of each.
    @return  kept: the choice, layers by number; probability: of each layer to be among those kept;
        same_set: that all of the choice are, and no other (layers of equal scores are no choice).
    """
    weights = weights or dict.fromkeys(MEASURES, 1.0)
    if not 0 <= keep <= len(names):
        raise InputError(f"keep = {keep}, must be in 0 to {len(names)}")
    means = resampled(values, names, resamples, seed)
    scores = sum(weight * means[measure] for measure, weight in weights.items())
    point = np.array([sum(weight * np.mean(values[name][measure])
                          for measure, weight in weights.items()) for name in names])
    chosen = sorted(np.argsort(-point, kind="stable")[:keep].tolist())
    shares = kept_shares(scores, keep)
    same = (shares[:, chosen] == 1).all(1)
    return {"kept": chosen, "probability": shares.mean(0).tolist(), "same_set": float(same.mean())}


def cheapest(scores: np.ndarray, costs: np.ndarray, limit: int) -> np.ndarray:
    """Of each draw the options of least summed score within a limit, (draws, layers): a knapsack
    of an option a layer, by dynamic programming; of equal ones the first.

    @param scores  (draws, layers, options).   @param costs  (layers, options), integers >= 0.
    """
    draws, layers, options = scores.shape
    best = np.full((draws, limit + 1), np.inf)
    best[:, 0] = 0.0
    taken = np.zeros((layers, draws, limit + 1), dtype=np.uint8)
    for layer in range(layers):
        reached = np.full_like(best, np.inf)
        for option in range(options):
            cost = costs[layer, option]
            if cost > limit or not np.isfinite(scores[0, layer, option]):
                continue
            with_it = best[:, :limit + 1 - cost] + scores[:, layer, option, None]
            better = with_it < reached[:, cost:]
            reached[:, cost:][better] = with_it[better]
            taken[layer][:, cost:][better] = option
        best = reached
    at, found = best.argmin(1), np.zeros((draws, layers), dtype=int)
    for layer in reversed(range(layers)):
        found[:, layer] = taken[layer, np.arange(draws), at]
        at = at - costs[layer, found[:, layer]]
    return found


def certainty_of_blocks(run: Mapping[str, Any], choice: Mapping[str, Any], whole: float,
                        seed: int = 0) -> dict[str, Any]:
    """The same where a layer may become several blocks: what costs least in each draw, of all that
    save as many bytes of `whole` as the choice.

    @param run  each of its scores has cache_bytes, of the model with that block alone.
    """
    blocks = list(run["blocks"])
    place = {(one["layer"], blocks.index(one["block"])): one for one in run["scores"]}
    saved = np.zeros((run["layers"], len(blocks)), dtype=np.int64)
    for at, one in place.items():
        saved[at] = round(whole - one["cache_bytes"])
    costs = saved.max(1, keepdims=True) - saved
    limit = int(saved.max(1).sum() - round(whole - choice["cache_bytes"]))
    unit = int(np.gcd.reduce(np.append(costs.ravel(), limit))) or 1
    costs, limit = costs // unit, limit // unit
    draws = int(np.clip(1e8 / (run["layers"] * (limit + 1)), 100, RESAMPLES))
    names = [f"{layer}:{blocks[block]}" for layer, block in place]
    means = resampled(run["values"], names, draws, seed)
    scores = np.full((draws, *saved.shape), np.inf)
    scores[:, :, blocks.index("full")] = 0.0
    scores[:, [layer for layer, _ in place], [block for _, block in place]] = sum(
        run.get("weights", {}).get(measure, 1.0) * means[measure] for measure in MEASURES)
    kept = cheapest(scores, costs, limit) == blocks.index("full")
    same = kept == [block == "full" for block in choice["placement"]]
    return {"probability": kept.mean(0).tolist(), "same_set": float(same.all(1).mean())}


def completed(run: dict[str, Any], resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Any]:
    """A run in which intervals, probabilities and the probability of the same set that it lacks
    are computed of its values, which have candidates by name, single blocks as LAYER:BLOCK."""
    values = run.get("values")
    if not values:
        return run
    run = {**run, "scores": [dict(one) for one in run["scores"]],
           "candidates": [dict(one) for one in run["candidates"]]}
    named = [(f"{one['layer']}:{one['block']}", one) for one in run["scores"]]
    named += [(one["name"], one) for one in run["candidates"]]
    groups: dict[tuple[int, ...], list] = {}  # that have as many examples
    for name, one in named:
        if name in values:
            counts = tuple(len(values[name][measure]) for measure in MEASURES)
            groups.setdefault(counts, []).append((name, one))
    for group in groups.values():
        means = resampled(values, [name for name, _ in group], resamples, seed)
        for measure, drawn in means.items():
            for (name, one), low, high in zip(group, *interval(drawn)):
                one.setdefault(measure, float(np.mean(values[name][measure])))
                one.setdefault(measure + "_low", float(low))
                one.setdefault(measure + "_high", float(high))
    sure = _sureness(run, seed, resamples) if "kept" not in run else None
    if sure:
        run["kept"] = [{"layer": layer, "probability": probability}
                       for layer, probability in enumerate(sure["probability"])]
        run["same_set"] = sure["same_set"]
    return run


def _sureness(run: Mapping[str, Any], seed: int, resamples: int) -> dict[str, Any] | None:
    choice, values = chosen_of(run), run["values"]
    if choice is None:
        return None
    others = [block for block in run["blocks"] if block != "full"]
    names = [f"{layer}:{others[0]}" for layer in range(run["layers"])] if len(others) == 1 else []
    if names and all(name in values for name in names):
        return certainty(values, names, choice["placement"].count("full"), run.get("weights"),
                         resamples, seed)
    whole = next((one["cache_bytes"] for one in run["candidates"] if one["role"] == "baseline"),
                 None)
    if whole is None or not run["scores"] or not all(
            "cache_bytes" in one and f"{one['layer']}:{one['block']}" in values
            for one in run["scores"]):
        return None
    return certainty_of_blocks(run, choice, whole, seed)


# Reading.


def read(path: str | Path, controls: Sequence[str | Path] = (),
         cache: float = 0.5) -> dict[str, Any]:
    """A run of a folder, or of a convert.json, checked and completed. @throws InputError"""
    path = Path(path)
    if path.is_dir():
        if not (path / "convert.json").is_file():
            return of_study(path, controls, cache)
        path = path / "convert.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        _check(run)
        return completed(run)
    except KeyError as error:
        raise InputError(f"{path}: has no {error.args[0]!r}") from None
    except (InputError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: {error}") from None


def placed(name: str) -> dict[int, str]:
    """Words by layer of the name that a conversion gives a placement. @throws InputError"""
    layers = {}
    for part in name.split(";"):
        word, _, places = part.strip().partition(" ")
        for place in places.split(","):
            ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", place.strip())
            numbers = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends else ()
            if not numbers or not layers.keys().isdisjoint(numbers):
                raise InputError(f"placement '{name}': '{part.strip()}', must be BLOCK LAYERS; "
                                 f"..., as window{{64,4}} 0-1,3, each layer once")
            layers.update(dict.fromkeys(numbers, word))
    return layers


def of_study(path: str | Path, controls: Sequence[str | Path] = (),
             cache: float = 0.5) -> dict[str, Any]:
    """The same of runs of problem convert. @throws InputError"""
    study = _convert_run(path)
    problem, layers = study.config["problem"], study.facts["layers"]
    measured = _measured(study)
    roles = {one.name: "front" for one in study.front}
    for each in controls:
        other = _convert_run(each)
        for key in ("weights", "corpus_hash", "layers"):
            if other.facts[key] != study.facts[key]:
                raise InputError(f"{each}: {key} is another one than of {path}, must be the same")
        roles |= {name: "control" for name in _measured(other) if name not in measured}
        measured = {**_measured(other), **measured}
    candidates, scores, values = [], [], {}
    most = max(len(own["kl"]) for own in measured.values())
    for name, own in measured.items():
        words = placed(name)
        if len(own["kl"]) == most:  # what was stopped early is no partner
            values[name] = {key: own[key] for key in MEASURES}
        means = {key: float(np.mean(own[key])) for key in MEASURES}
        other = {layer: word for layer, word in words.items() if word != "full"}
        whole = not other
        if len(other) == 1:
            layer, word = other.popitem()
            scores.append({"layer": layer, "block": word, **means,
                           "cache_bytes": own["cache_bytes"]})
            values |= {f"{layer}:{word}": values[name]} if name in values else {}
        if name in roles or whole:
            candidates.append({
                "name": name, "label": name, **means, "cache_bytes": own["cache_bytes"],
                "role": "baseline" if whole else roles[name],
                "cache_share": own["cache_bytes"] / study.facts["full_cache_bytes"],
                "placement": [words[layer] for layer in range(layers)]})
    within = [one for one in candidates if one["role"] == "front" and one["cache_share"] <= cache]
    if within:
        min(within, key=lambda one: sum(one[key] for key in MEASURES))["role"] = "choice"
    return completed({
        "model": Path(problem["base"]).name, "layers": layers, "context": problem["context"],
        "budget": {"cache": cache}, "scores": scores,
        "blocks": max(study.facts.get("choices", ()), key=len,
                      default=["full", *problem["blocks"]]),
        "candidates": candidates, "values": values, "replicates": most})


def _convert_run(path: str | Path) -> Run:
    study = Run(Path(path))
    kind = study.config.get("problem", {}).get("type", "attention")
    if kind != "convert":
        raise InputError(f"{path}: problem is {kind}, must be convert")
    return study


def _measured(study: Run) -> dict[str, dict[str, Any]]:
    """By candidate what its usable evaluations say, a number a replicate."""
    found: dict[str, dict[str, Any]] = {}
    for one in sorted(study.evaluations, key=lambda one: one.replicate):
        if one.usable and all(key in one.values for key in MEASURES):
            own = found.setdefault(one.candidate, {key: [] for key in MEASURES})
            for key in MEASURES:
                own[key].append(one.values[key])
            own["cache_bytes"] = one.values["cache_bytes"]
    if not found:
        raise InputError(f"{study.path}: nothing was measured yet")
    return found


def _check(run: dict[str, Any]) -> None:
    layers = run["layers"]
    if isinstance(layers, bool) or not isinstance(layers, int) or not 1 <= layers <= 10000:
        raise InputError(f"layers = {layers!r}, must be an integer in 1 to 10000")
    str(run["model"]), dict(run["budget"]), list(run["blocks"])
    for key in ("scores", "kept"):
        for place, one in enumerate(run.get(key, [])):
            if not isinstance(one["layer"], int) or not 0 <= one["layer"] < layers:
                raise InputError(f"{key}[{place}]: layer = {one['layer']!r}, must be in 0 to "
                                 f"{layers - 1}")
    for place, one in enumerate(run["candidates"]):
        if one["role"] not in ROLES:
            raise InputError(f"candidates[{place}]: role = {one['role']}, must be one of "
                             f"{', '.join(ROLES)}")
        if len(one["placement"]) != layers:
            raise InputError(f"candidates[{place}]: placement has {len(one['placement'])} layers, "
                             f"must have {layers}")
    for key, sizes in (("scores", ()), ("candidates", ("cache_bytes",)), ("kept", ())):
        for place, one in enumerate(run.get(key, [])):
            _check_numbers(f"{key}[{place}]", one, sizes)


def _check_numbers(where: str, one: Mapping[str, Any], needed: Sequence[str]) -> None:
    for name in (*(measure + end for measure in MEASURES for end in ("", "_low", "_high")),
                 "cache_share", "cache_bytes", "probability"):
        value = one[name] if name in needed else one.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InputError(f"{where}: {name} = {value!r}, must be a number")


def chosen_of(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """The candidate that was chosen."""
    return next((one for one in run["candidates"] if one["role"] == "choice"), None)


def _value(one: Mapping[str, Any], key: str) -> float:
    value = one.get(key)
    return math.nan if value is None else float(value)


def _ranged(one: Mapping[str, Any], measure: str) -> str:
    low, high = (_value(one, measure + end) for end in ("_low", "_high"))
    shown = number(_value(one, measure))
    return shown if math.isnan(low) else f"{shown} ({range_text(low, high)})"


# What is said.


def sentences(run: Mapping[str, Any]) -> list[str]:
    """What was chosen, how sure that is, and what it costs beside the controls."""
    choice = chosen_of(run)
    if choice is None:
        return [f"No placement of {run['model']} was chosen: none keeps the budget."]
    kept = [layer for layer, block in enumerate(choice["placement"]) if block == "full"]
    others = Counter(block for block in choice["placement"] if block != "full")
    became = joined([f"{n} become {block}" for block, n in others.most_common()])
    whole = (f"layers {_numbers(kept)} stay whole" if len(kept) > 1 else
             f"layer {kept[0]} stays whole" if kept else "no layer stays whole")
    share = _value(choice, "cache_share")
    cache = "" if math.isnan(share) else f"; the cache is {percent(share)} of what it was"
    said = [f"Of the {counted(run['layers'], 'layer')} of {run['model']}, {whole}"
            f"{' and ' + became if became else ''}{cache}."]
    return [*said, *_sure(run, kept), _cost(run, choice)]


def _numbers(layers: Sequence[int]) -> str:
    return joined([str(layer) for layer in layers])


def _sure(run: Mapping[str, Any], kept: Sequence[int]) -> list[str]:
    probability = {one["layer"]: _value(one, "probability") for one in run.get("kept", [])}
    if not probability:
        return ["How sure the choice is was not computed."]
    certain = [layer for layer in kept if probability.get(layer, 0) >= CERTAIN]
    open_ = sorted(layer for layer, p in probability.items()
                   if 1 - CERTAIN < p < CERTAIN or (p >= CERTAIN) != (layer in kept))
    places = len(kept) - len(certain)
    text = (f"Layers {_numbers(certain)} are" if len(certain) > 1 else
            f"Layer {certain[0]} is" if certain else "No layer is") + " certain"
    if open_ and places:
        text += (f"; {_numbers(open_)} share the other "
                 f"{'place' if places == 1 else f'{places} places'}")
    same = _value(run, "same_set")
    if not math.isnan(same):
        text += f"; with other examples the same set comes again with probability {same:.2f}"
    return [text + "."]


def rivals(run: Mapping[str, Any], choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Controls with as many bytes as the choice, to 2 %, the best first."""
    size = _value(choice, "cache_bytes")
    near = [one for one in run["candidates"] if one["role"] == "control"
            and abs(_value(one, "cache_bytes") - size) <= 0.02 * size]
    return sorted(near, key=lambda one: sum(_value(one, measure) for measure in MEASURES))


def _cost(run: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    text = f"It costs {_ranged(choice, 'kl')} in KL and {_ranged(choice, 'recall')} in recall"
    controls = rivals(run, choice)
    if not controls:
        return text + "; no control has as many bytes of cache."
    best = controls[0]
    text += (f"; of {counted(len(controls), 'control')} with as many bytes the best, "
             f"{best.get('label') or best['name']}, costs {_ranged(best, 'kl')} and "
             f"{_ranged(best, 'recall')}")
    worse = [SHORT[measure] for measure in MEASURES
             if _value(best, measure + "_low") > _value(choice, measure + "_high")]
    return text + (f": shown to be worse in {joined(worse)}." if worse else
                   ": not shown to be worse.")


def heading(run: Mapping[str, Any]) -> str:
    """Sizes and budget in a line."""
    limits = [f"{name} at most {percent(value) if name == 'cache' else value}"
              for name, value in run["budget"].items()]
    context = [f"context {run['context']}"] if run.get("context") else []
    examples = [f"n = {run['replicates']}"] if run.get("replicates") else []
    return ", ".join([counted(run["layers"], "layer"), *context, *limits, *examples])


def summary(run: Mapping[str, Any]) -> dict[str, Any]:
    """What programs read: the sentences, the choice, certain and open layers, controls."""
    choice = chosen_of(run)
    return {"model": run["model"], "sentences": sentences(run), "choice": choice,
            "kept": run.get("kept"), "same_set": run.get("same_set"),
            "controls": rivals(run, choice) if choice else [],
            "verdicts": list(run.get("verdicts", []))}


def text(run: Mapping[str, Any]) -> str:
    """For terminals."""
    lines = [f"{run['model']}: {heading(run)}", "", *sentences(run), *run.get("verdicts", []), ""]
    probability = {one["layer"]: _value(one, "probability") for one in run.get("kept", [])}
    rows = [["layer", "block", "KL", "recall", "kept"]]
    for one in sorted(run["scores"], key=lambda one: (one["layer"], one["block"])):
        p = probability.get(one["layer"], math.nan)
        rows.append([str(one["layer"]), one["block"], *(_ranged(one, key) for key in MEASURES),
                     "" if math.isnan(p) else f"{p:.2f} {'#' * round(10 * p)}"])
    lines += [*_columns(rows), ""] if len(rows) > 1 else []
    rows = [["placement", "role", "cache", "KL", "recall"]]
    for one in _ordered(run):
        rows.append([one.get("label") or one["name"], one["role"], _cache(one),
                     *(_ranged(one, key) for key in MEASURES)])
    return "\n".join([*lines, *_columns(rows)]) + "\n"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows]


def _cache(one: Mapping[str, Any]) -> str:
    share, size = _value(one, "cache_share"), count(_value(one, "cache_bytes")) + "B"
    return size if math.isnan(share) else f"{percent(share)}, {size}"


def _ordered(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sorted(run["candidates"],
                  key=lambda one: (-_value(one, "cache_bytes"), ROLES.index(one["role"])))


# The page.


def html(run: Mapping[str, Any]) -> str:
    """The page, one file."""
    verdict = join(*(paragraph(one) for one in [*sentences(run), *run.get("verdicts", [])]))
    parts = [Section("verdict", "In short", verdict)]
    if run["scores"]:
        parts.append(Section("layers", "The layers", join(
            Figure(lambda width: _layers(run, width)).html(), note(
                "Bars: what it costs to replace this layer alone, with 95 % intervals over "
                "examples. Below them: how probable it is that the layer is among those kept, were "
                "the examples others; and what the choice makes of it, dark where it stays "
                "whole."))))
    figures = [Figure(lambda width, key=key: _front(run, key, width), wide=HALF).html()
               for key in MEASURES]
    parts.append(Section("front", "Cost against cache", join(
        element("div", *figures, class_="pictures"), note(
        "Lower and further to the left is better. Green: the front; ringed: the choice; pale: "
        "controls; the cross: the model as it was. Lines: 95 % intervals."), _table(run))))
    return page(f"Which layers of {run['model']} must attend?", heading(run), parts, broad=True)


def _layers(run: Mapping[str, Any], width: float) -> Picture:
    """Bars of both measures above the probability of each layer and the choice."""
    blocks = list(dict.fromkeys(one["block"] for one in run["scores"]))
    several = len(blocks) > 1
    picture = Picture(width, 440 + 18 * several, "cost of replacing each layer, and how sure")
    left, right = 52, width - 8
    step = (right - left) / run["layers"]
    gap = 0.12 * step
    probability = {one["layer"]: _value(one, "probability") for one in run.get("kept", [])}
    tops = (30, 190)
    for top, (measure, name) in zip(tops, MEASURES.items()):
        ends = [_value(one, measure + end) for one in run["scores"]
                for end in ("", "_low", "_high")]
        frame = Frame(left, top, right, top + 118)
        axis = linear(ends, include=[0.0])
        picture.left_axis(frame, axis, name, most=4)
        for one in run["scores"]:
            thick = (step - 2 * gap) / len(blocks)
            x = left + one["layer"] * step + gap + blocks.index(one["block"]) * thick
            value = _value(one, measure)
            if math.isnan(value):
                continue
            zero, end = axis(0.0), axis(value)
            p = probability.get(one["layer"], math.nan)
            words = tip(f"layer {one['layer']}: {one['block']}", f"{name}: {_ranged(one, measure)}",
                        "" if math.isnan(p) else f"among those kept: {p:.2f}")
            picture.rectangle(x, min(zero, end), thick, abs(zero - end),
                              f"fill c{blocks.index(one['block']) % 5}", words)
            low, high = (_value(one, measure + end) for end in ("_low", "_high"))
            if not math.isnan(low):
                picture.line(x + thick / 2, axis(low), x + thick / 2, axis(high), "median")
        picture.line(left, axis(0.0), right, axis(0.0), "axis")
    _strips(run, picture, left, step, probability)
    for i, block in enumerate(blocks if several else []):
        x = left + i * (right - left) / len(blocks)
        picture.rectangle(x, 430, 10, 10, f"fill c{i % 5}")
        picture.text(x + 14, 440, block, "small")
    return picture


def _strips(run: Mapping[str, Any], picture: Picture, left: float, step: float,
            probability: Mapping[int, float]) -> None:
    choice = chosen_of(run)
    picture.text(4, 338, "probability to be kept", "name")
    picture.text(4, 388, "the choice", "name")
    for layer in range(run["layers"]):
        x, wide = left + layer * step, step - min(2.0, 0.2 * step)
        p = probability.get(layer, math.nan)
        picture.rectangle(x, 346, wide, 22, "band")
        if not math.isnan(p):
            picture.rectangle(x, 346 + 22 * (1 - p), wide, 22 * p, "fill-best",
                              tip(f"layer {layer}", f"among those kept: {p:.2f}"))
        if choice:
            block = choice["placement"][layer]
            picture.rectangle(x, 396, wide, 12, "ink" if block == "full" else "pale",
                              tip(f"layer {layer}", block))
        every = 1 if step >= 20 else 2 if step >= 13 else max(5, 5 * round(14 / step / 5))
        if layer % every == 0:
            picture.text(x + wide / 2, 423, layer, "tick", "middle")


def _front(run: Mapping[str, Any], measure: str, width: float) -> Picture:
    picture = Picture(width, 330, f"{MEASURES[measure]} against cache")
    frame = Frame(52, 30, width - 14, 330 - 46)
    known = [one for one in run["candidates"] if not math.isnan(_value(one, measure))]
    shares = all(not math.isnan(_value(one, "cache_share")) for one in known)

    def across(one: Mapping[str, Any]) -> float:
        return 100 * _value(one, "cache_share") if shares else _value(one, "cache_bytes")

    ends = [value for one in known for value in (_value(one, measure + "_low"),
                                                 _value(one, measure + "_high"),
                                                 _value(one, measure)) if not math.isnan(value)]
    y = value_axis(ends, False, ends)
    x = linear([across(one) for one in known])
    picture.left_axis(frame, y, MEASURES[measure])
    picture.bottom_axis(frame, x, "cache, % of the original's" if shares else "cache, bytes",
                        grid=True)
    front = sorted((one for one in known if one["role"] != "control"), key=across)
    best, corners = math.inf, []
    for one in front:
        if _value(one, measure) < best:
            best = _value(one, measure)
            corners.append((x(across(one)), y(best)))
    if corners:
        picture.steps([*corners, (frame.right, corners[-1][1])], "line")
    for one in sorted(known, key=lambda one: ("control", "baseline", "front",
                                              "choice").index(one["role"])):
        _point(picture, one, measure, x(across(one)), y)
    return picture


def _point(picture: Picture, one: Mapping[str, Any], measure: str, place: float, y: Axis) -> None:
    words = tip(one.get("label") or one["name"], _cache(one),
                *(f"{name}: {_ranged(one, key)}" for key, name in MEASURES.items()))
    low, high = (_value(one, measure + end) for end in ("_low", "_high"))
    if not math.isnan(low):
        picture.line(place, y(low), place, y(high), "interval")
    value, role = y(_value(one, measure)), one["role"]
    if role == "baseline":
        picture.cross(place, value, words)
        return
    picture.dot(place, value, 4 if role == "control" else 6,
                "pale" if role == "control" else "front", words)
    if role == "choice":
        picture.dot(place, value, 10, "ring", words)


def _table(run: Mapping[str, Any]) -> Html:
    rows = []
    for one in _ordered(run):
        kept = [layer for layer, block in enumerate(one["placement"]) if block == "full"]
        rows.append([Cell(one.get("label") or one["name"], left=True), Cell(one["role"], left=True),
                     Cell(_cache(one), _value(one, "cache_bytes")),
                     *(Cell(element("span", _ranged(one, key), class_="ranged"), _value(one, key))
                       for key in MEASURES),
                     Cell("all" if len(kept) == run["layers"] else " ".join(map(str, kept)) or
                          "none", left=True)])
    return table(["placement", "role", "cache", *SHORT.values(), "whole layers"], rows,
                 sortable=True)


@program
def main(arguments: list[str]) -> None:
    """Writes the page of a run and prints its text."""
    parser = Parser(prog="attnas convert-page", allow_abbrev=False, description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("controls", metavar="CONTROL", nargs="*")
    parser.add_argument("--cache", default="50%", help="share of the cache (default: 50%%)")
    parser.add_argument("-o", "--output", metavar="PAGE")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    given = parser.parse_intermixed_args(arguments)
    share = re.fullmatch(r"(\d+(?:\.\d+)?)%", given.cache)
    if not share or not 0 < float(share[1]) <= 100:
        raise InputError(f"--cache {given.cache}, must be a share in (0%, 100%]")
    run = read(given.run, given.controls, float(share[1]) / 100)
    folder = Path(given.run) if Path(given.run).is_dir() else Path(given.run).parent
    target = Path(given.output) if given.output else folder / "convert.html"
    write_whole(target, html(run).encode())
    print(json.dumps(summary(run), indent=2) if given.json else text(run), end="\n" * given.json)
    print(f"page: {target}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
