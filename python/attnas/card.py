"""The README.md of an exported model: what it is made of, its scores with n beside the baseline's,
the verdict of a re-test, data and training, and how to use it. Its numbers are the record's.

    python -m attnas.card FOLDER      # as nas-export calls it, which has written what it reads
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnas.analysis import words
from attnas.analysis.digest import seed_number
from attnas.analysis.run import Candidate, Evaluation, Run
from attnas.analysis.schema import training_of
from attnas.analysis.words import counted
from attnas.command_line import run_main, shortest
from attnas.prepare.images import class_names, recipe

KINDS = {"language": ("Language model", "A transformer language model"),
         "classifier": ("Classifier", "A transformer that gives a sequence one of some labels"),
         "sequences": ("Sequence model", "A transformer that continues sequences of tokens")}


@dataclass
class Model:
    """What a card is of."""

    run: Run
    evaluation: Evaluation  # the training run that the weights are of
    config: dict[str, Any]  # config.json
    origin: str  # of the weights: "kept by the run"
    summaries: dict[str, str]  # of options, by "gene option"
    lacking: list[str]  # options that plug-ins compute, and model.py does not
    licence: str  # of the corpus; empty: not known

    @property
    def kind(self) -> str:
        """Of KINDS: what it is for."""
        task = self.run.facts.get("task")
        if isinstance(task, dict) and task["name"] == "classification":
            return "classifier"
        return "sequences" if self.config["text"] is None else "language"

    @property
    def ranked(self) -> Candidate | None:
        """Its mechanism as the search ranks it."""
        return next((one for one in self.run.ranking if one.name == self.evaluation.candidate),
                    None)


def number(value: float) -> str:
    """A value for people."""
    return words.number(value).replace(words.MINUS, "-")


def value_text(value: Any) -> str:
    """A setting: a text as it is."""
    return (value if isinstance(value, str) else
            json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def place(model: Model) -> str:
    """What the mechanism is in its run."""
    run, found = model.run, model.ranked
    baseline = run.baseline is not None and run.baseline.name == model.evaluation.candidate
    if run.listed:
        return ("the baseline, which others are compared with" if baseline else
                "compared with the baseline")
    first, usable = run.objectives[0].name, f"{len(run.ranking):,} usable ones"
    if found is None:
        return ("the baseline, which nothing selected" if baseline else
                "one that was trained beside it")
    front = f"{len(run.front)} on the non-dominated front"
    if found is run.ranking[0]:
        return (f"the best by {first} of the {front}" if run.several else
                f"what it returns, believed the best by {first} of {usable}")
    if run.several and found.on_front:
        return f"one of the {front}"
    return f"number {found.rank + 1} of {usable}, by {first}"


def layers(model: Model) -> Iterator[str]:
    """Those that are alike together: their genes, with what the options compute."""
    distinct: list[tuple[dict[str, Any], list[int]]] = []
    for i, layer in enumerate(model.config["layers"]):
        if layer not in (known for known, _ in distinct):
            distinct.append((layer, []))
        next(numbers for known, numbers in distinct if known == layer).append(i)
    for layer, numbers in distinct:
        if len(distinct) > 1:
            yield f"\nLayers {', '.join(map(str, numbers))}:"
        yield ""
        yield from genes_of(layer, model.summaries)


def genes_of(layer: dict[str, Any], summaries: dict[str, str]) -> Iterator[str]:
    """A line each; what the parts of a layer have stands below."""
    for gene, value in layer.items():
        if gene != "parts":
            option = value_text(value)
            summary = summaries.get(f"{gene} {option}") if isinstance(value, str) else None
            yield f"- {gene} `{option}`" + (f": {summary}" if summary is not None else "")
    for part in layer.get("parts", ()):
        yield "- some of the heads:"
        yield from ("  " + line for line in genes_of(part, summaries))


def architecture(model: Model) -> Iterator[str]:
    """The chapter of the model."""
    config = model.config
    sizes = "".join(f", {name} {value_text(value)}" for name, value in config["model"].items())
    count = len(config["layers"])
    yield (f"\n## Model\n\n`{config['candidate']}`, semantics {config['semantics']}: "
           f"{counted(count, 'layer')}, "
           f"{int(model.evaluation.values['parameters']):,} parameters{sizes}.")
    yield from layers(model)


def rows(model: Model) -> Iterator[str]:
    """Of the table of scores."""
    digest = model.run.digest
    for name, records, candidate in (("this one", digest["ranking"], model.ranked),
                                     ("the baseline", [digest["baseline"]], model.run.baseline)):
        if candidate is None:
            continue
        errors = next(own["standard_errors"] for own in records
                      if own["candidate"] == candidate.name)
        deviations = [errors[objective.name] for objective in model.run.objectives]
        cells = [number(value) + (f" ± {number(error)}" if error is not None else "")
                 for value, error in zip(candidate.values, deviations)]
        yield f"| {name} | {' | '.join([str(candidate.n), *cells])} |"


def retest(model: Model) -> Iterator[str]:
    """Scores of the test split with seeds that selected nothing: those of a re-test, or in a run of
    listed mechanisms all that it has trained."""
    run, listed, trained_again = model.run, model.run.listed, False
    measure = "test accuracy" if run.retest.get("measure") == "test accuracy" else "test perplexity"
    for one in run.retest.get("candidates", ()):
        test = one["test"]
        if one["candidate"] != model.evaluation.candidate or test["mean"] is None:
            continue
        trained_again = True
        seeds = counted(test["n"], "seed" if listed else "fresh seed")
        interval = "" if test["low"] is None else (
            f" ({shortest(100.0 * run.retest['confidence'])} % interval {number(test['low'])} to "
            f"{number(test['high'])})")
        yield (f"\nTrained {'' if listed else 'again '}on {seeds}: {measure} "
               f"{number(test['mean'])}{interval}.")
    if not trained_again and not listed:
        yield ("\nThe mechanism was not trained again on fresh seeds. What a search selects looks "
               "better than it is.")
    if verdict := run.retest.get("verdict"):
        yield f"\nVerdict{'' if listed else ' of the re-test'}: {verdict}"


def scores(model: Model) -> Iterator[str]:
    """The chapter of scores."""
    run, values = model.run, model.evaluation.values
    believed = "" if run.listed else ", as the search believes them"
    yield (f"\n## Scores\n\nOf the validation split{believed}: means over n training runs, ± "
           "standard error.\n")
    yield "| | n" + "".join(f" | {objective.title}" for objective in run.objectives) + " |"
    yield "|---|---" + "|---" * len(run.objectives) + "|"
    yield from rows(model)
    shown = ["accuracy"] if model.kind == "classifier" else [
        "perplexity", "accuracy", "test_perplexity"]
    recorded = ", ".join(f"{name} {number(values[name])}" for name in shown if name in values)
    seed = seed_number(model.evaluation.replicate)
    yield (f"\nThese weights, {model.origin}, are of one training run (seed {seed}), which is "
           f"recorded with {recorded}.")
    chance = run.facts.get("chance")
    if isinstance(chance, dict):
        yield f"\nFor comparison, {chance['by']} has accuracy {number(chance['accuracy'])}."
    for warning in run.warnings:
        yield f"\n{warning}"
    yield from retest(model)


def without_folders(text: str, settings: dict[str, Any]) -> str:
    """A text in which the files that a corpus is read from have their names alone."""
    for value in settings.values():
        if isinstance(value, str) and "/" in value:
            text = text.replace(value, value.rpartition("/")[2])
    return text


def training(model: Model) -> Iterator[str]:
    """The chapter of data and training."""
    identity, run = model.evaluation.identity, model.run
    corpus = without_folders(run.facts.get("corpus_description", identity["corpus"]),
                             run.config.get("data", {}))
    yield f"\n## Data and training\n\n- corpus: {corpus}; SHA-256 {identity['corpus_hash']}"
    if model.licence:
        yield f"- licence of the corpus: {model.licence}"
    for setting, value in training_of(model.evaluation.candidate, identity["training"]).items():
        yield f"- {setting}: {value_text(value)}"
    yield (f"- run seed {identity['run_seed']}, replicate {model.evaluation.replicate}, numerical "
           f"mode {identity['numerical_mode']}\n"
           f"- weights: {model.origin} (evaluation {model.evaluation.id})")


def attention_call(config: dict[str, Any]) -> str:
    """The first layer of attention, untrained, as Python makes it; empty where none attends."""
    for layer in config["layers"]:
        if layer["mixer"] == "attn":
            genes = {gene: value for gene, value in layer.items()
                     if gene not in ("mixer", "ffn", "hidden")}
            sizes = {name: config["model"][name] for name in ("width", "context")}
            given = (f"{name}={json.dumps(value)}" for name, value in {**sizes, **genes}.items())
            return f"Attention({', '.join(given)})"
    return ""


def classes(model: Model) -> Iterator[str]:
    """The chapter of what a classifier is asked."""
    names = class_names(model.config["data"])
    if names:
        yield (f"\n## Classes\n\nRow c of the first {len(names)} of the logits at a sequence's "
               f"last position, `logits[:, -1, :{len(names)}]`, is class c: the largest is the "
               f"answer. The other rows stand for tokens, and have no part.\n\n"
               f"- classes from 0: {', '.join(names)}\n- tokens: {recipe(model.config['data'])}")


def use(model: Model) -> Iterator[str]:
    """The chapter of what to do with it."""
    yield "\n## Use\n"
    if model.lacking:
        yield (f"PyTorch cannot build this model: `model.py` lacks {', '.join(model.lacking)}, "
               "which plug-ins of attnas compute, until it is added there. `nas-model evaluate` "
               "scores the model, given the plug-in by `--plugin FILE.so`.")
        return
    yield ("Python 3.9 and torch 1.13, or later ones, are all that it needs.\n\n```python\n"
           "from model import Attention, load\n\n"
           "model = load(\".\")  # logits (B, T, V) of tokens (B, T)")
    if call := attention_call(model.config):
        yield ("# The mechanism, untrained, for another transformer: (B, T, width) to (B, T, "
               f"width), causal.\nattention = {call}")
    yield "```"
    if model.config["text"] is not None:
        yield ("\n```sh\npython3 model.py . --text FILE                        # perplexity\n"
               "python3 model.py . --generate \"a prompt\" --tokens 20  # the likeliest words "
               "behind a prompt\n```\n\n"
               "With attnas `nas-model evaluate` and `nas-model generate` do the same.")


def card(model: Model) -> str:
    """The text."""
    title, what = KINDS[model.kind]
    head = (f"# {title} `{model.config['mechanism']}`\n\n{what} in plain PyTorch, trained by "
            f"attnas. In the {'run' if model.run.listed else 'search'} "
            f"`{model.run.config['name']}` its mechanism is {place(model)}.")
    parts = (part(model) for part in (architecture, classes, scores, training, use))
    return "\n".join([head, *(line for part in parts for line in part)]) + "\n"


def main() -> None:
    """Writes README.md of a folder with config.json and, as nas-export has written them,
    record.json and card.json."""
    folder = Path(sys.argv[1])
    given, run = json.loads((folder / "card.json").read_bytes()), Run(folder / "record.json")
    evaluation = run.by_id[given.pop("evaluation")]
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "README.md").write_text(card(Model(run, evaluation, config, **given)),
                                      encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_main("attnas.card", main))
