#!/usr/bin/env python3
"""What two blocks cost, each alone in one layer of a model, document by document.

    analysis/studies/single_layers.py RUN OTHER --groups certain=8,17 uncertain=2,10 -o FOLDER

RUN and OTHER are runs of problem convert by algorithm `listed` on the same documents and probes
(equal seed, context and probes), whose placements have one block in one layer. Documents that both
have measured are compared, also where a run was stopped; a group is the mean over its layers.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np

from attnas import convert
from attnas.analysis.arguments import program
from attnas.analysis.files import csv_text
from attnas.analysis.page import Chapter, Columns, Report
from attnas.analysis.run import Run
from attnas.errors import InputError
from attnas.judge.sequential import compare
from placements import said_of

MEASURES = ("kl", "recall")
ALIKE = ("base", "context", "probes", "split")  # of both runs' problems
HEAD = ["group", "layer", "n"]


class Alone(NamedTuple):
    """A block alone in layers: by layer and replicate the values."""

    block: str
    values: dict[int, dict[int, dict[str, float]]]


def alone(run: Run) -> Alone:
    """What a search asks besides is left out. @throws InputError unless one block is alone."""
    blocks, values = set(), {}
    for one in filter(lambda one: one.usable, run.evaluations):
        changed = {layer: word for layer, word in enumerate(convert.words_of(one.candidate))
                   if word != "full"}
        if len(changed) == 1:
            (layer, block), = changed.items()
            blocks.add(block)
            values.setdefault(layer, {})[one.replicate] = one.values
    if len(blocks) != 1:
        raise InputError(f"{', '.join(sorted(blocks)) or 'no block'} alone in a layer, must be one")
    return Alone(*blocks, values)


def groups_of(words: list[str]) -> dict[str, list[int]]:
    """Layers by group, of words as certain=8,17."""
    return {word.partition("=")[0]: [int(part) for part in word.partition("=")[2].split(",")]
            for word in words}


def rows_of(one: Alone, other: Alone, groups: dict[str, list[int]]) -> list[list[str]]:
    """Of each group its layers, then their mean over the documents that all of them have."""
    rows = []
    for group, layers in groups.items():
        shared = {layer: one.values.get(layer, {}).keys() & other.values.get(layer, {}).keys()
                  for layer in layers}
        parts = [(str(layer), [layer], sorted(shared[layer])) for layer in layers]
        parts.append(("mean", layers, sorted(set.intersection(*map(set, shared.values())))))
        for name, own, replicates in parts:
            row = [group, name, str(len(replicates))]
            for measure in MEASURES:
                sides = [np.array([np.mean([side.values[layer][replicate][measure]
                                            for layer in own]) for replicate in replicates])
                         for side in (one, other)]
                zero = np.zeros(len(replicates))
                row += [said_of(compare(side, zero)) for side in sides]
                row.append(said_of(compare(*sides)))
            rows.append(row)
    return rows


def main(arguments: list[str]) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="single_layers.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--groups", nargs="+", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    runs = [Run(given.run), Run(given.other)]
    for key in ALIKE:
        if runs[0].config["problem"][key] != runs[1].config["problem"][key]:
            raise InputError(f"{given.other}: problem.{key} must be that of {given.run}")
    one, other = map(alone, runs)
    head = HEAD + [word for measure in MEASURES
                   for word in (f"{measure}, {one.block}", f"{measure}, {other.block}", "more")]
    rows = rows_of(one, other, groups_of(given.groups))
    said = [f"{row[0]}: {one.block} alone in a layer costs {row[5]} nats of KL and {row[8]} of "
            f"recall more than {other.block}, on {row[2]} documents."
            for row in rows if row[1] == "mean"]
    values = [[block.block, str(layer), str(replicate), *(repr(found[key]) for key in MEASURES)]
              for block in (one, other) for layer, of in sorted(block.values.items())
              for replicate, found in sorted(of.items())]
    report = Report.of_findings("Two blocks, layer by layer", said,
                                [Chapter("layers", "Layers", [Columns(head, rows)])],
                                f"analysis/studies/single_layers.py {' '.join(arguments)}")
    beside = {"single_layers.csv": csv_text(["block", "layer", "replicate", *MEASURES], values)}
    print(*said, report.write(given.output, "single_layers", beside), sep="\n")


if __name__ == "__main__":
    sys.exit(program(main)(sys.argv[1:]))
