"""nas-analyse: looks into the attention of a model that a run has trained

Usage: nas-analyse RUN MECHANISM [KEY.PATH=VALUE ...] [OPTIONS]

RUN is a run's folder. MECHANISM is best, baseline, or the name or label of one that the run
has trained; of several objectives, best is the first of the front. Weights that the run has
kept (evaluation.keep_models) are taken; else the training run is made again. What is
different on this machine is given as overrides, such as evaluation.device=cpu.

Writes attention.json, with statistics of every head on held-out sequences, and a page with
pictures of it. analysis/attention.py A B compares two such folders. Needs Python with numpy,
scipy and torch.

Examples:
  $ nas-analyse runs/quickstart best
  $ nas-analyse runs/quickstart best --sequences 256

Options:
  -o [ --output ] arg   folder of the analysis (default: RUN/attention/MECHANISM)
  --sequences arg (=64) held-out sequences
  --replicate arg       number of the training run (default: one whose weights are
                        kept, else the first)
  --plugin arg          a shared library of plug-ins; may be given several times
  --no-report           do not write attention.html, the page with pictures
  -h [ --help ]         print this text
  --version             print versions
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from attnas.analysis import packages
from attnas.analysis.files import write_whole
from attnas.analysis.words import counted
from attnas.command_line import (
    HELP_END, become, line_width, program_file, require_options, run_main, take_option, wrapped)
from attnas.errors import InputError

SCHEMA = 1  # of attention.json
TOKEN_SEED = 1  # the same for every model
CONFIDENCE = 0.95
SENTENCES, SENTENCE_TOKENS = 4, 32  # of held-out text that are shown
SHOWN = ("entropy_ratio", "row_mass", "sink_mass", "mean_distance", "previous_token", "induction",
         "memory_length", "state_used")


class Ended(Exception):
    """nas-model has said why there is no model; the argument is its exit code."""


def held_out(words: list[str], folder: str) -> dict[str, Any]:
    """What `nas-model take` puts into a folder: a model of a run, and sequences that it has not
    seen. It may train for long, and is stopped with this program.

    @throws Ended  where it ends otherwise than well.
    """
    process = subprocess.Popen([program_file("nas-model"), "take", *words, "--output", folder],
                               stderr=subprocess.PIPE, text=True, errors="surrogateescape",
                               start_new_session=True)  # so that it is stopped once
    try:
        for line in process.stderr:
            line = re.sub("^nas-model: ", "nas-analyse: ", line)
            print(line, end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGTERM)
        print(process.stderr.read().replace("nas-model: ", "nas-analyse: "), end="",
              file=sys.stderr)
    if status := process.wait():
        raise Ended(status if status > 0 else 128 - status)
    return json.loads(Path(folder, "held_out.json").read_bytes())


def rounded(rows: Any) -> Any:
    """Three digits: what a picture shows of a weight; null where it is none."""
    if isinstance(rows, list):
        return [rounded(row) for row in rows]
    return float(f"{rows:.3g}") if math.isfinite(rows) else None


def finite(value: float) -> float | None:
    """A number of JSON: null where it is none."""
    return value if math.isfinite(value) else None


def estimate(values: list[float], with_values: bool) -> dict[str, Any]:
    """The mean of what is defined, with its interval over sequences."""
    from attnas.analysis.statistics import mean_interval
    defined = [value for value in values if math.isfinite(value)]
    ends = mean_interval(defined, CONFIDENCE) if defined else (math.nan,) * 3
    return {**{name: finite(float(end)) for name, end in zip(("mean", "low", "high"), ends)},
            "n": len(defined),
            **({"values": [finite(value) for value in values]} if with_values else {})}


def over_heads(heads: list[list[float]]) -> list[float]:
    """Of each sequence the mean over the heads in which a statistic is defined."""
    finite_ones = ([value for value in values if math.isfinite(value)] for values in zip(*heads))
    return [sum(values) / len(values) if values else math.nan for values in finite_ones]


def estimates(statistics: dict[str, list]) -> dict[str, Any]:
    """Of a layer and its heads, by name."""
    return {name: {"layer": estimate(over_heads(heads), True),
                   "heads": [estimate(head, False) for head in heads]}
            for name, heads in statistics.items()}


def left_out(genes: dict[str, Any]) -> str:
    """Why a layer with heads has no maps; empty where it has, or no heads."""
    if genes["mixer"] == "pair":
        return "mixer pair"
    return f"near = {genes['near']}" if genes.get("near") else ""


def layer_json(number: int, genes: dict[str, Any],
               found: dict[str, Any] | None = None) -> dict[str, Any]:
    """A layer of attention.json."""
    why = left_out(genes)
    json_of_layer = {"layer": number, "mixer": genes["mixer"], **({"left_out": why} if why else {})}
    if found is None:
        return json_of_layer
    gates = [{"name": genes["gating"], "statistics": estimates(found["gate"]),
              "histogram": rounded(found["histogram"])}] if found["gate"] else []
    return {**json_of_layer, "statistics": estimates(found["statistics"]),
            "profile": rounded(found["profile"]), "gates": gates,
            "example": rounded(found["example"])}


def sentence_json(model: Any, form: Any, ids: list[int]) -> dict[str, Any]:
    """What a model attends to in a sentence, as `sentences` of attention.json."""
    import torch

    from attnas import maps
    _, records = maps.recorded(model, torch.tensor([ids]))
    return {"tokens": [form.text([number]) for number in ids],
            "layers": [{"layer": each.layer, "maps": rounded(maps.maps_of(each.weights[0]))}
                       for each in records]}


def analysis_json(folder: str, taken: dict[str, Any]) -> dict[str, Any]:
    """attention.json of a model and sequences in a folder."""
    import torch

    from attnas import maps
    from attnas.analysis import model_forms
    model, config, module = model_forms.load(Path(folder))
    sequences = taken.pop("input"), taken.pop("target")
    tokens, targets = (torch.tensor(rows) for rows in sequences)
    of_model, of_layers = maps.analysis(model, tokens, targets, config["model"]["vocabulary"],
                                        TOKEN_SEED)
    sentences = []
    if config["text"] is not None:
        form = module.Text(folder, config)
        sentences = [sentence_json(model, form, row[:SENTENCE_TOKENS])
                     for row in sequences[0][:SENTENCES]]
    return {"schema": SCHEMA, **taken, "sequences": len(tokens), "length": tokens.shape[1],
            "token_seed": TOKEN_SEED, "first_query": maps.FIRST_QUERY, "confidence": CONFIDENCE,
            "model": {name: estimate(values, True) for name, values in of_model.items()},
            "layers": [layer_json(number, genes, of_layers.get(number))
                       for number, genes in enumerate(config["layers"])], "sentences": sentences}


def table(found: dict[str, Any]) -> str:
    """The analysis for people: a row for each layer."""
    def cell(layer: dict[str, Any], name: str) -> str:
        mean = layer["statistics"].get(name, {"layer": {"mean": None}})["layer"]["mean"]
        return "" if mean is None else f"{mean:.3f}"

    layers = [layer for layer in found["layers"] if "statistics" in layer]
    columns = [["layer", *(str(layer["layer"]) for layer in layers)]]
    for name in SHOWN:
        cells = [cell(layer, name) for layer in layers]
        if any(cells):
            columns.append([name.replace("_", " "), *(each or "-" for each in cells)])
    what = (f"{found['mechanism']}, replicate {found['replicate']}, weights {found['weights']}, "
            f"{counted(found['sequences'], 'sequence')} of the {found['split']} split; means over "
            "heads\n\n")
    if apart := [f"layer {layer['layer']} ({layer['left_out']})" for layer in found["layers"]
                 if "left_out" in layer]:
        what += f"not looked into: {', '.join(apart)}\n\n"
    lines = ("  ".join(each.rjust(max(map(len, column))) for each, column in zip(row, columns))
             for row in zip(*columns))
    return wrapped(what + "".join(f"{line}\n" for line in lines), line_width())


def write_page(folder: Path) -> None:
    """The page of an analysis."""
    from attnas.analysis.commands import attention
    with contextlib.redirect_stdout(io.StringIO()):
        status = attention.main([str(folder)])
    if status == 0:
        print(f"and {folder / 'attention.html'}, to be opened in a browser")


def write_json(folder: Path, found: dict[str, Any]) -> None:
    """attention.json of a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    write_whole(folder / "attention.json", (text + "\n").encode(errors="replace"))


def body(words: list[str]) -> None:
    """The program."""
    if {"-h", "--help"} & set(words):
        print(wrapped(__doc__ + HELP_END, line_width(), paragraphs=True), end="")
        return
    if "--version" in words:
        become("nas-model", ["--version"])
    words, report = [word for word in words if word != "--no-report"], "--no-report" not in words
    words = ["--output" if word == "-o" else word for word in words]
    require_options(words, ("--output", "--sequences", "--replicate", "--plugin"))
    output = take_option(words, "--output")
    if output == "":
        raise InputError("command line: --output is empty, must have a value or be left out")
    if len(words) < 2:
        raise InputError("command line: give a run and a mechanism; for example: nas-analyse "
                         "runs/quickstart best")
    if lacking := packages.missing("numpy", "scipy", "torch"):
        raise InputError(lacking)
    with tempfile.TemporaryDirectory() as parent:
        taken = held_out(words + (["--keep", output] if output else []), str(Path(parent, "model")))
        folder = Path(taken.pop("folder"))
        found = analysis_json(str(Path(parent, "model")), taken)
    write_json(folder, found)
    print(f"{table(found)}\nwritten to {folder / 'attention.json'}", flush=True)
    if report:
        write_page(folder)


def main() -> NoReturn:
    """nas-analyse; ends the process."""
    try:
        sys.exit(run_main("nas-analyse", lambda: body(sys.argv[1:])))
    except Ended as ended:
        sys.exit(ended.args[0])


if __name__ == "__main__":
    main()
