#!/usr/bin/env python3
"""Sums the times of kernels that ncu wrote by name: which share of a step each has.

    ncu --csv --log-file step.csv --metrics gpu__time_duration.sum --clock-control none PROGRAM --record 0 ...
    bench/gpu_kernels.py --output FOLDER --mode tf32 --array 8 step.csv

Adds a line for the step to FOLDER/kernels.jsonl, in place of one of the same mode and array, and writes FOLDER/kernels.md of all
lines: for each mode, microseconds per model, share and number of launches of each kernel, by array. Standard library only.

Exit status: 0; 2 for bad input, with nothing written.
"""

import argparse
import csv
import datetime
import json
import os
import re
import sys

METRIC = "gpu__time_duration.sum"
UNITS = {"second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6, "nsecond": 1e-9, "ns": 1e-9}
LONGEST = 90
SHOWN = 40


class BadInput(Exception):
    """Text: what was given, and what is allowed."""


def short(kernel):
    """A kernel's name without its result, its arguments and what makes templates long; two that differ there alone are one."""
    name = re.sub(r"^(void|int|float) ", "", kernel)
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::|at::native::|at::cuda::|std::|cuda::|nas::", "", name)
    depth = 0
    for index, letter in enumerate(name):  # to the list of arguments; parentheses of types are within angle brackets
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0 and index > 0:
            name = name[:index]
            break
    return name if len(name) <= LONGEST else name[:LONGEST - 3] + "..."


def read(path):
    """[name, seconds] of every launch in ncu's table; BadInput where there is none."""
    launches, columns = [], None
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if "Kernel Name" in row and "Metric Value" in row:
                    columns = {name: index for index, name in enumerate(row)}
                elif columns and len(row) == len(columns) and row[columns["Metric Name"]] == METRIC:
                    unit = row[columns["Metric Unit"]]
                    if unit not in UNITS:
                        raise BadInput(f"{path}: unit '{unit}' of {METRIC}, must be of {', '.join(UNITS)}")
                    seconds = float(row[columns["Metric Value"]].replace(",", "")) * UNITS[unit]
                    launches.append((row[columns["Kernel Name"]], seconds))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    if not launches:
        raise BadInput(f"{path}: no line of {METRIC}, must be a table of ncu --csv")
    return launches


def summed(launches):
    """{name: [launches, seconds]}."""
    sums = {}
    for kernel, seconds in launches:
        entry = sums.setdefault(short(kernel), [0, 0.0])
        entry[0] += 1
        entry[1] += seconds
    return sums


def load(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def table(steps):
    """Markdown of the steps of one mode."""
    steps = sorted(steps, key=lambda step: step["array"])
    totals = [sum(seconds for _, seconds in step["kernels"].values()) for step in steps]
    counts = [sum(launches for launches, _ in step["kernels"].values()) for step in steps]
    lines = ["| kernel | " + " | ".join(f"array of {step['array']}" for step in steps) + " |", "|---|" + "---|" * len(steps),
             "| all | " + " | ".join(f"{1e6 * total / step['array']:,.1f} us per model, {count} launches"
                                     for step, total, count in zip(steps, totals, counts)) + " |"]
    names = {name for step in steps for name in step["kernels"]}

    def weight(name):
        return max(step["kernels"].get(name, (0, 0.0))[1] / total for step, total in zip(steps, totals))

    ordered = sorted(names, key=lambda name: (-weight(name), name))
    for name in ordered[:SHOWN]:
        cells = []
        for step, total in zip(steps, totals):
            launches, seconds = step["kernels"].get(name, (0, 0.0))
            cells.append(f"{1e6 * seconds / step['array']:,.1f} us, {seconds / total:.1%}, {launches}" if launches else "")
        lines.append("| `" + name.replace("|", "\\|") + "` | " + " | ".join(cells) + " |")
    if len(ordered) > SHOWN:
        lines.append(f"| {len(ordered) - SHOWN} more, each below {weight(ordered[SHOWN - 1]):.1%} |" + " |" * len(steps))
    return lines


def report(steps):
    lines = ["# Kernels of a step", "", "Microseconds per model, share of the step's kernels, launches per step.", ""]
    for mode in dict.fromkeys(step["mode"] for step in steps):
        ours = [step for step in steps if step["mode"] == mode]
        cards = sorted({f"{step['device']}, {step['date']}" for step in ours})
        lines += [f"## {mode}", "", "; ".join(cards), "", *table(ours), ""]
    return "\n".join(lines).rstrip() + "\n"


def write(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", metavar="CSV", help="of ncu --csv")
    parser.add_argument("--output", metavar="FOLDER", required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--array", type=int, required=True)
    parser.add_argument("--device", default="unknown", help="the card's name")
    options = parser.parse_args(argv)
    if options.array < 1:
        parser.error(f"--array {options.array}: must be at least 1")
    try:
        step = {"mode": options.mode, "array": options.array, "device": options.device,
                "date": datetime.date.today().isoformat(), "kernels": summed(read(options.csv))}
    except BadInput as error:
        parser.error(str(error))
    path = os.path.join(options.output, "kernels.jsonl")
    steps = [old for old in load(path) if (old["mode"], old["array"]) != (step["mode"], step["array"])] + [step]
    write(path, "".join(json.dumps(one) + "\n" for one in steps))
    write(os.path.join(options.output, "kernels.md"), report(steps))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
