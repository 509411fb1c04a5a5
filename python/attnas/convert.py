"""Which layers of a trained transformer must attend: search, verdict on other documents, page and
model, by one command."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnas import command_line, config_form
from attnas.analysis.files import write_whole
from attnas.analysis.run import Run
from attnas.analysis.statistics import holm
from attnas.analysis.words import duration, number, range_text
from attnas.errors import InputError
from attnas.judge.sequential import compare, p_beyond
from attnas.launch import run as launched
from attnas.placement import MEASURES, completed, html, of_study, placed, text
from attnas.settings import overrides, told, written

ALPHA = 0.05
CONTROLS = ("local", "drop")
RANDOM = 5  # sets of as many layers
FRONT = 8  # placements of the front that are measured again, at most
FIRST = 4  # tokens, of windows that are a control of those without any
WITHOUT = "without first tokens"
MADE_BY = ("vocabulary", "unit", "pretokens", "tokenizer_file")  # ids of a text
FILES = {"path", "train", "valid", "test"}  # of a corpus
# Numbers of the command line: default and least, below which some have no interval.
COUNTS = {"stage1": ("0", 0), "stage2": ("0", 0), "trainings": ("4", 4), "context": (None, 2),
          "cache-context": (None, 1), "replicates": ("4", 2), "verdict": ("16", 4)}
LEAST_MARGIN = 0.1  # nats, below which a model does not copy


def controls_of(words: Sequence[str], seed: int = 0) -> dict[str, list[str]]:
    """By label placements with as many layers as they were, and the same with other blocks."""
    layers, kept = len(words), list(words).count("full")
    other = [word for word in words if word != "full"]
    sets = {"uniform": [(2 * i + 1) * layers // (2 * kept) for i in range(kept)],
            "first and last": [*range(-(-kept // 2)), *range(layers - kept // 2, layers)]}
    random = np.random.default_rng(seed)
    for i in range(RANDOM):
        sets[f"random {i + 1}"] = sorted(random.choice(layers, kept, replace=False).tolist())
    made = {}
    for label, full in sets.items():
        rest = iter(other)
        made[label] = ["full" if layer in full else next(rest) for layer in range(layers)]
    for block in CONTROLS:
        made[block] = ["full" if word == "full" else block for word in words]
    label, own = first_swapped(words)
    made[label] = own
    return {label: own for label, own in made.items() if own != list(words)}


def first_swapped(words: Sequence[str]) -> tuple[str, list[str]]:
    """The same windows without first tokens, or with some where none has any: label, placement."""
    windows = [re.fullmatch(r"window\{(\d+),(\d+)\}", word) for word in words]
    without = any(window and window[2] != "0" for window in windows)
    return (WITHOUT if without else f"with {FIRST} first tokens",
            [f"window{{{window[1]},{0 if without else FIRST}}}" if window else word
             for word, window in zip(words, windows)])


def worth_of_first(choice: dict[str, list[float]], other: dict[str, list[float]], label: str,
                   mean: float) -> str:
    """What the windows cost without first tokens beyond what they cost with them. @param mean  of
    what a text costs by the model."""
    with_them, without = (choice, other) if label == WITHOUT else (other, choice)

    def more(key: str, unit: float = 1.0) -> str:
        one = compare(np.array(without[key]) / unit, np.array(with_them[key]) / unit, ALPHA)
        return f"{number(one.mean)} ({range_text(one.low, one.high)})"

    return (f"Without first tokens these windows cost {more('kl')} more in KL, {more('recall')} in "
            f"recall and {more('text_nll', mean / 100)} % of a text than with them.")


def own_recall(margins: Sequence[float]) -> str:
    """Whether the model itself finds what it is asked for. @param margins  by how much likelier
    than another answer one is to it, a number an example."""
    one = compare(np.array(margins), np.zeros(len(margins)), ALPHA)
    size = f"{number(one.mean)} nats ({range_text(one.low, one.high)})"
    if one.low > LEAST_MARGIN:
        return f"To the model itself an answer to recall is likelier than another one by {size}."
    return (f"The model itself does not copy: to it an answer is likelier than another one by "
            f"{size}. Recall says nothing of it.")


def digits(words: Sequence[str], choices: Sequence[Sequence[str]]) -> str | None:
    """A placement as algorithm listed reads it, of layers that have a choice; None: a layer has no
    such block."""
    if any(word not in own for word, own in zip(words, choices)):
        return None
    return "".join(str(own.index(word)) for word, own in zip(words, choices) if len(own) > 1)


def verdicts(held: dict[str, dict[str, list[float]]], choice: str, whole: str,
             controls: dict[str, str], within: float, of: str = "held-out documents") -> list[str]:
    """What held-out documents and probes say: is the choice within a share of the model in what a
    text costs, and better than each control in KL and recall; Holm's correction over all.
    @param of  what the numbers of a candidate are of."""
    base, own = np.array(held[whole]["text_nll"]), np.array(held[choice]["text_nll"])
    text_cost = compare(own, base, ALPHA)
    bound = within * float(base.mean())
    tests = [("text", p_beyond(text_cost, bound))]
    paired = {}
    for label, name in controls.items():
        paired[label] = compare(np.array(held[choice]["loss"]), np.array(held[name]["loss"]), ALPHA)
        tests.append((label, paired[label].p))
    corrected = dict(zip([label for label, _ in tests], holm([p for _, p in tests])))
    mean = base.mean()
    shown = (f"{100 * text_cost.mean / mean:.1f} % ({100 * text_cost.low / mean:.1f} to "
             f"{100 * text_cost.high / mean:.1f})")
    end = "" if corrected["text"] <= ALPHA else " is not shown"
    said = [f"On {text_cost.n} {of} a text costs {shown} more than by the model: "
            f"within {100 * within:g} %{end}."]
    better = [label for label in controls if corrected[label] <= ALPHA and paired[label].mean < 0]
    worse = [label for label in controls if corrected[label] <= ALPHA and paired[label].mean > 0]
    rest = [label for label in controls if label not in better + worse]
    for labels, words in ((better, "better than"), (worse, "worse than"),
                          (rest, "not shown to be better than")):
        if labels:
            least = min(labels, key=lambda label: abs(paired[label].mean))
            one = paired[least]
            low, high = (-one.high, -one.low) if one.mean < 0 else (one.low, one.high)
            said.append(f"In KL and recall the choice is {words} {', '.join(labels)}: "
                        f"{number(abs(one.mean))} nats ({number(low)} to {number(high)}) "
                        f"{'less' if one.mean < 0 else 'more'} than {least}.")
    return said


def measured(run: Any) -> dict[str, dict[str, Any]]:
    """Values by candidate and name, a number a replicate."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in sorted(run.evaluations, key=lambda one: one.replicate):
        if one.usable:
            for key, value in one.values.items():
                found.setdefault(one.candidate, {}).setdefault(key, []).append(value)
    return found


def chosen(found: dict[str, dict[str, Any]], cache: float) -> str:
    """The placement of least loss within the budget. @throws InputError where none is."""
    within = [name for name, own in found.items() if own["cache_share"][0] <= cache]
    if not within:
        least = min(own["cache_share"][0] for own in found.values())
        raise InputError(f"--cache {100 * cache:g}%: the least of what was searched is "
                         f"{100 * least:.0f} %")
    return min(within, key=lambda name: float(np.mean(found[name]["loss"])))


def report(folder: Path, cache: float, within: float, asked: dict[tuple[str, ...], str],
           of: str) -> dict[str, Any]:
    """What both runs say, as convert.json has it. @param asked  see asked_again(). @param of  as
    of verdicts()."""
    said = of_study(folder / "search", (), cache)
    held = measured(Run(folder / "held_out"))
    names = {words_of(name): name for name in held}
    labels = {names[words]: label for words, label in asked.items() if words in names}
    choice = next(name for name, label in labels.items() if label == "choice")
    whole = next(name for name, label in labels.items() if label == "whole")
    controls = {label: name for name, label in labels.items()
                if label not in ("choice", "whole", "front")}
    candidates = []
    for name, label in labels.items():
        role = {"choice": "choice", "whole": "baseline", "front": "front"}.get(label, "control")
        candidates.append({
            "name": name, "label": label if role == "control" else name, "role": role,
            "placement": [*words_of(name)],
            **{key: float(np.mean(held[name][key])) for key in MEASURES},
            "cache_bytes": held[name]["cache_bytes"][0],
            "cache_share": held[name]["cache_share"][0]})
    values = {key: own for key, own in said["values"].items() if ":" in key}
    spoken = verdicts(held, choice, whole, controls, within, of)
    for label in (WITHOUT, f"with {FIRST} first tokens"):
        if label in controls:
            spoken.append(worth_of_first(held[choice], held[controls[label]], label,
                                         float(np.mean(held[whole]["text_nll"]))))
    if margins := held[whole].get("recall_margin"):  # not in runs of earlier versions
        spoken.append(own_recall(margins))
    sure = {key: said[key] for key in ("kept", "same_set") if key in said}
    for one in candidates:
        one |= intervals({key: held[one["name"]][key] for key in MEASURES})
    return completed({**said, **sure, "candidates": candidates, "values": values,
                      "held_out": len(held[choice]["kl"]), "verdicts": spoken})


def intervals(values: dict[str, list[float]]) -> dict[str, float]:
    """95 % intervals of the means, which hold at any number of documents."""
    found = {}
    for key, own in values.items():
        one = compare(np.array(own), np.zeros(len(own)), ALPHA)
        found |= {f"{key}_low": one.low, f"{key}_high": one.high} if np.isfinite(one.low) else {}
    return found


def words_of(name: str) -> tuple[str, ...]:
    """The blocks of a placement, layer by layer."""
    words = placed(name)
    return tuple(words[layer] for layer in range(len(words)))


def asked_again(search: Run, choice: str, trains: bool) -> dict[tuple[str, ...], str]:
    """Placements that are measured on held-out documents, and what each is: "choice", "whole" (the
    model as it was), some of the "front" unless each trains, or a control's label."""
    found, words = measured(search), words_of(choice)
    asked = {words: "choice", ("full",) * len(words): "whole"}
    front = sorted((one.name for one in search.front
                    if not trains and words_of(one.name) not in asked),
                   key=lambda name: found[name]["cache_share"][0])
    for name in front[::max(1, len(front) // FRONT)]:
        asked.setdefault(words_of(name), "front")
    for label, own in controls_of(words).items():
        asked.setdefault(tuple(own), label)
    return asked


def measure_again(config: dict[str, Any], choices: Sequence[Sequence[str]],
                  asked: Iterable[Sequence[str]], replicates: int, folder: Path,
                  settings: dict[str, Any], reuse: Path | None = None) -> None:
    """Measures placements of a run's configuration, split included; those with a block that its
    layer does not have are left out. @param choices  of each layer."""
    points = filter(None, (digits(words, choices) for words in asked))
    launched({**config, "algorithm": {"name": "listed", "points": " ".join(points)},
              "evaluation": {"replicates": replicates}}, folder, reuse=reuse, **settings)


def held_out_of(given: argparse.Namespace, config: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """What is measured again, on documents of another split, after stage 2 where there is one, and
    its replicates: documents, or trainings of which each has its share of them."""
    problem = {**config["problem"], "split": "test"}
    if given.stage2:
        problem |= {"fidelity": "trained", "stage2_tokens": given.stage2,
                    "stage2_documents": given.verdict // given.trainings}
    return ({**config, "name": "held_out", "problem": problem},
            given.trainings if given.stage2 else given.verdict)


def plans(given: argparse.Namespace, config: dict[str, Any], about: dict[str, Any],
          settings: dict[str, Any]) -> str:
    """What both runs would take, of as many placements as are measured again. The second one's
    plan has stage 1 of all blocks, of which most learn before the first."""
    more = added(given.blocks, given.blocks, about)
    blocks = [*more, *given.blocks]
    again, replicates = held_out_of(given, {
        **config, "problem": {**config["problem"], "blocks": blocks}})
    asked = 4 + RANDOM + len(more) + (0 if given.stage2 else FRONT)
    search = {**config, "name": "search", "problem": {**config["problem"], "stage1_tokens": 0}}
    said, total = [], 0
    for one, algorithm, count in (
            (search, {"name": given.selector}, given.replicates),
            (again, {"name": "random_search", "evaluations": asked}, replicates)):
        one = {**one, "algorithm": algorithm, "evaluation": {"replicates": count}}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [command_line.program_file("nas-run"), str(written(one, folder)), "--dry-run",
                 "--output", str(Path(given.output, one["name"])), *overrides(settings)],
                capture_output=True, text=True, check=False)
            if done.returncode:
                raise InputError(told(done.stderr.split("nas-run: ")[-1], folder))
        said.append(done.stdout.rstrip())
        for unit, seconds in {"d": 86400, "h": 3600, "min": 60, "s": 1}.items():
            found = re.search(rf"(\d+) {unit}\b[^,]* in all", done.stdout)
            total += seconds * int(found[1]) if found else 0
    model = sum(file.stat().st_size for file in Path(given.model).glob("*.safetensors"))
    bytes_of = {"models": model * (3 if given.stage2 else 1)}  # that, the choice and MODEL trained
    if given.stage1:  # q, k, v, output and gate, of a head a query
        width = about["model"]["width"]
        inner = about["model"]["heads"] * about["layers"][0].get("head_width", 0) or width
        bytes_of["blocks, at most"] = 20 * width * inner * len(about["layers"]) * len(blocks)
    disk = ", ".join(f"{size / 2**20:.0f} MiB for {what}" for what, size in bytes_of.items())
    return "\n".join([*said, f"both: about {duration(total)}; on disk about {disk}"])


def data_of(given: argparse.Namespace, about: dict[str, Any]) -> dict[str, Any]:
    """Documents in the model's own tokens. @param about  its config.json.   @throws InputError"""
    own, tokenizer = about["data"], Path(given.model, "tokenizer.json")
    imported = own["corpus"] == "imported"
    corpus = given.corpus or ("wikitext-2" if imported else own["corpus"])
    data = {"corpus": corpus}
    if given.text:
        data = {"corpus": "text_file", "path": os.path.abspath(given.text)}
    elif corpus == own["corpus"]:
        data |= own["settings"]
        other = any(word.startswith("data") for word in given.settings)  # which may be files
        for setting in () if other else FILES & {name for name, value in data.items() if value}:
            if not os.path.exists(data[setting]):
                raise InputError(f"{given.model}: {data[setting]} of its corpus is not here: give "
                                 f"data.{setting}=FILE, or the command in the folder of that file")
            data[setting] = os.path.abspath(data[setting])
    if tokenizer.is_file():  # whose ids need none of what has made them
        return {**{key: value for key, value in data.items() if key not in MADE_BY},
                "tokenizer": str(tokenizer.resolve())}
    unit = (about["text"] or {}).get("unit")
    if unit == "word" and given.text and own["corpus"] == "text_file":
        if os.path.basename(given.text) != (file := own["settings"].get("path", "")):
            raise InputError(f"{given.model}: its words are those of its own text {file}, others "
                             f"than those of --text {given.text}")
        return {**own["settings"], **data}
    if not imported and data["corpus"] != own["corpus"] and unit != "byte":
        raise InputError(f"{given.model}: its tokens are those of {own['corpus']}, which has made "
                         f"them: give neither --corpus nor --text")
    return {**data, "tokenizer": "byte"} if unit == "byte" else data


def added(words: Sequence[str], blocks: Sequence[str], about: dict[str, Any]) -> list[str]:
    """Blocks that controls of a placement have beyond those of the search."""
    more = [*CONTROLS]
    if all(layer.get("pattern") != "window" for layer in about["layers"]):  # else one may be full
        more += sorted({*first_swapped(words)[1]} - {"full"})
    return [block for block in dict.fromkeys(more) if block not in blocks]


def problem_of(given: argparse.Namespace, about: dict[str, Any]) -> dict[str, Any]:
    """The problem with sizes that the model has room for."""
    sizes = about["model"]
    probed = min(sizes["context"], sizes["vocabulary"] // 2)
    return {"type": "convert", "base": str(Path(given.model).resolve()), "blocks": given.blocks,
            "context": given.context or min(512, sizes["context"]),
            "cache_context": given.cache_context or min(2048, sizes["context"]),
            "probes": [f"copy{{{min(128, probed // 2)}}}", f"pairs{{{min(32, probed // 4)}}}"]}


def convert(given: argparse.Namespace) -> None:
    """Carries out the command, and prints what convert.json says, or the plan."""
    model, folder = Path(given.model), Path(given.output)
    about = json.loads((model / "config.json").read_bytes())
    if not isinstance(about.get("model"), dict):
        raise InputError(f"{model}: no folder of a model of attnas; nas-model import makes one")
    if given.original and (given.stage1 or given.stage2):
        raise InputError(f"command line: --original keeps the weights, and "
                         f"--stage{1 if given.stage1 else 2} changes them")
    if given.original:  # is refused before anything is measured
        layers = len(about["layers"])
        original = config_form.read_original(Path(given.original), model)
        original.config((["full", *given.blocks] * layers)[:layers])
    problem = problem_of(given, about)
    if given.stage1:
        problem |= {"stage1_tokens": given.stage1,
                    "stage1_folder": str((folder / "stage1").resolve())}
    settings = settings_of(given.settings)
    config = {"data": data_of(given, about), "problem": problem,
              "objectives": ["loss", "cache_share"]}
    if given.dry_run:
        print(plans(given, config, about, settings))
        return
    launched({**config, "name": "search", "algorithm": {"name": given.selector},
              "evaluation": {"replicates": given.replicates}}, folder / "search", **settings)
    search = Run(folder / "search")
    choice = chosen(measured(search), given.cache)
    blocks = max(search.facts["choices"], key=len)[1:]
    more = added([*placed(choice).values()], blocks, about)
    choices = [[*own, *more] if layer["mixer"] == "attn" else own
               for own, layer in zip(search.facts["choices"], about["layers"])]
    asked = asked_again(search, choice, bool(given.stage2))
    again, replicates = held_out_of(given, {**config, "problem": {
        **problem, "blocks": [*blocks, *more]}})
    first = folder / "trained" if given.stage2 else None
    if first:  # whose weights are kept, of one training
        kept = {"stage2_folder": str((folder / "stage2").resolve())}
        measure_again({**again, "name": "trained", "problem": {**again["problem"], **kept}},
                      choices, [words_of(choice)], 1, first, settings)
    measure_again(again, choices, asked, replicates, folder / "held_out", settings, first)
    of = (f"trainings, each on {given.verdict // given.trainings} held-out documents,"
          if given.stage2 else "held-out documents")
    said = report(folder, given.cache, given.within, asked, of)
    write_whole(folder / "convert.json", json.dumps(said, indent=1).encode())
    write_whole(folder / "convert.html", html(said).encode())
    if given.original and not (folder / "transformers").exists():
        config_form.write_form(model, choice, Path(given.original), folder / "transformers",
                               said["verdicts"])
    if not (folder / "model").exists():
        place = [command_line.program_file("nas-model"), "place", str(model), choice]
        if first:
            place += ["--trained", str(folder / "stage2" / Run(first).facts["stage2"] / "0")]
        elif given.stage1:
            place += ["--trained", str(folder / "stage1" / search.facts["stage1"] / "0")]
        subprocess.run([*place, "--output", str(folder / "model")], check=True)
    print(f"{text(said)}\npage: {folder / 'convert.html'}\nmodel: {folder / 'model'}")


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """Settings by key of words KEY.PATH=VALUE."""
    return {word.split("=", 1)[0]: _value(word.split("=", 1)[1]) for word in words}


def _value(word: str) -> Any:
    """What a setting is on a command line: as JSON, a number, say, or a text."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def count_of(name: str, word: str, least: int) -> int:
    """A number from `least` as 500000, 500k or 2M. @throws InputError"""
    match = re.fullmatch(r"(\d+)([kMG]?)", word)
    number_of = int(match[1]) * 1000 ** " kMG".index(match[2] or " ") if match else -1
    if not least <= number_of <= 1e12:
        raise InputError(f"command line: --{name} {word}, must be a number from {least} to 1e12, "
                         f"as 500000, 500k or 2M")
    return number_of


def share_of(word: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", word)
    if not match or not 0 < float(match[1]) <= 100:
        raise InputError(f"{word}, must be a share in (0%, 100%]")
    return float(match[1]) / 100


_HELP = """\
nas-convert: which layers of a trained transformer must attend

Usage: nas-convert MODEL [OPTIONS] [KEY.PATH=VALUE ...]

MODEL is a folder of nas-model import, or one that nas-export --format pytorch has written. What
each block costs in the place of each layer is measured on documents and probes of recall, without
training or, with --stage1, after it has learned from the layer; what is chosen within the budget is
measured again, with controls of as many layers, on other documents; with --stage2 after each of
these has learned as a whole to say what MODEL says. FOLDER then has search/ and held_out/, the runs
of nas-run; convert.json and convert.html, what they say; model/, the model of the choice. The same
command goes on where it was stopped. KEY.PATH=VALUE are settings of all runs, as of nas-run.

Examples:
  $ nas-model import SmolLM2-135M -o smollm2
  $ nas-convert smollm2 --cache 50%
  $ nas-convert smollm2 --text mytext.txt --blocks 'window{128,4}' drop evaluation.workers=2
  $ nas-convert smollm2 --blocks gdn share --stage1 500k --stage2 2M --dry-run

Options:
  -o [ --output ] arg   FOLDER (default: runs/MODEL-convert)
  --cache arg           share of the cache that may be used (default: 50%)
  --blocks arg...       what a layer may become (default: window{64,4})
  --original arg        what MODEL was imported from: of windows without first tokens,
                        --blocks 'window{64,0}', FOLDER then has transformers/, which is it
                        with another config.json
  --stage1 arg          tokens from which each block learns to add what its layer adds, as
                        500k or 2M (default: 0, none does)
  --stage2 arg          tokens from which the choice and each control learn as a whole
                        (default: 0, none does)
  --trainings arg       of that, of each: each on other tokens, and measured on its share of
                        the held-out documents (default, and at least: 4)
  --dry-run             print what both runs would take, time, memory and disk; write nothing
  --context arg         tokens of a document (default: 512, or the model's context)
  --cache-context arg   tokens after which the cache is counted (default: 2048, or that)
  --corpus arg          documents (default: what MODEL was trained on, else wikitext-2)
  --text arg            a file with documents of your own
  --selector arg        what chooses, an algorithm (default: one_block)
  --replicates arg      documents of the search (default: 4)
  --verdict arg         held-out documents (default: 16)
  --within arg          of what a text costs, for the verdict (default: 1%)
  -h [ --help ]         print this text
  --version             print the version
"""


def run(words: list[str]) -> None:
    """The program nas-convert. Raises InputError."""
    if not {"--help", "-h"}.isdisjoint(words):
        text_of_help = _HELP + command_line.HELP_END
        print(command_line.wrapped(text_of_help, command_line.line_width(), True), end="")
        return
    if "--version" in words:
        subprocess.run([command_line.program_file("nas-export"), "--version"], check=True)
        return
    parser = command_line.Parser(prog="nas-convert", allow_abbrev=False, add_help=False)
    parser.add_argument("model")
    parser.add_argument("settings", nargs="*")
    parser.add_argument("-o", "--output")
    parser.add_argument("--blocks", nargs="+", default=["window{64,4}"])
    for name, default in (("cache", "50%"), ("corpus", None), ("text", None), ("original", None),
                          ("selector", "one_block"), ("within", "1%")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--dry-run", action="store_true")
    for name, (number_of, _) in COUNTS.items():
        parser.add_argument(f"--{name}", default=number_of)
    given = parser.parse_intermixed_args(words)
    if wrong := [word for word in given.settings if "=" not in word]:
        raise InputError(f"command line: {wrong[0]}, must be KEY.PATH=VALUE")
    for name, (_, least) in COUNTS.items():
        place = name.replace("-", "_")
        if (word := getattr(given, place)) is not None:
            setattr(given, place, count_of(name, word, least))
    if given.stage2 and given.verdict < given.trainings:
        raise InputError(f"command line: --verdict {given.verdict}, must be at least the "
                         f"{given.trainings} of --trainings, which share these documents")
    given.cache, given.within = share_of(given.cache), share_of(given.within)
    if not Path(given.model, "config.json").is_file():
        raise InputError(f"{given.model}: no folder of a model; nas-model import makes one")
    given.output = given.output or f"runs/{Path(given.model).resolve().name}-convert"
    convert(given)


if __name__ == "__main__":
    sys.exit(command_line.run_main("nas-convert", lambda: run(sys.argv[1:])))
