"""How busy workers are, by the way in which a search asks.

    build/ci/bin/fleet TABLE WORKERS... | analysis/fleet.py -o FOLDER

Writes efficiency.csv (a row for each way and number of workers), efficiency.svg and fleet.md.
"""

import argparse
import json
import pathlib
import sys

from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.svg import HALF, Axis, Figure, Frame, Picture

COLUMNS = ("algorithm", "in_flight", "order", "cost", "workers", "efficiency")


def name_of(row: dict) -> str:
    """A way to ask in words."""
    if row["in_flight"] == 0:
        return "generations"
    cost = {"flops": ", expected by FLOPs", "known": ", expected by mean seconds"}
    return (f"{row['order']}, {row['in_flight']:g} out a worker"
            + (cost[row["cost"]] if row["order"] == "virtual" else ""))


def lines_of(rows: list[dict]) -> dict[str, list[dict]]:
    """The rows of each way, by rising numbers of workers."""
    lines: dict[str, list[dict]] = {}
    for row in sorted(rows, key=lambda row: row["workers"]):
        lines.setdefault(name_of(row), []).append(row)
    return lines


def picture(rows: list[dict]) -> Figure:
    """Efficiency over the number of workers."""
    lines = lines_of(rows)
    workers = sorted({row["workers"] for row in rows})

    def draw(width: float) -> Picture:
        frame = Frame(58, 30, width - 14, 300)
        picture_ = Picture(width, frame.bottom + 62 + 18 * len(lines), "Efficiency over workers")
        up = Axis(0.0, 1.0)
        across = Axis(workers[0], max(workers[-1], workers[0] + 1), logarithmic=True)
        picture_.left_axis(frame, up, "share of the workers at work")
        across.start, across.end = frame.left, frame.right
        for count in workers:
            picture_.text(across(count), frame.bottom + 18, count, "tick", "middle")
        picture_.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
        picture_.text((frame.left + frame.right) / 2, frame.bottom + 37, "workers (log scale)",
                      "name", "middle")
        for i, (name, line) in enumerate(lines.items()):
            style = "reference" if line[0]["in_flight"] == 0 else f"c{(i - 1) % 5}"
            points = [(across(row["workers"]), up(row["efficiency"])) for row in line]
            picture_.path(points, f"stroke {style}", name)
            for x, y in points:
                picture_.dot(x, y, 2.5, f"fill {style}")
            below = frame.bottom + 62 + 18 * i
            picture_.line(frame.left, below - 4, frame.left + 22, below - 4, f"stroke {style}")
            picture_.text(frame.left + 30, below, name)
        return picture_

    return Figure(draw, "", "How busy workers are, by the way of asking", HALF)


def table(rows: list[dict]) -> str:
    """The numbers in Markdown."""
    lines = lines_of(rows)
    workers = sorted({row["workers"] for row in rows})
    text = ["| share of the workers at work | " + " | ".join(map(str, workers)) + " |",
            "|---|" + "---|" * len(workers)]
    for name, line in lines.items():
        shares = {row["workers"]: f"{row['efficiency']:.3f}" for row in line}
        text.append(f"| {name} | "
                    + " | ".join(shares.get(count, "") for count in workers) + " |")
    return "\n".join(text) + "\n"


@program
def main(arguments: list[str]) -> None:
    """Reads what fleet prints."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="folder", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    try:
        rows = [json.loads(line) for line in sys.stdin if line.strip()]
        if not rows or any(set(COLUMNS) - set(row) for row in rows):
            raise ValueError(f"each must have {', '.join(COLUMNS)}")
        drawn = picture(rows).file()
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"standard input: must be lines that fleet printed: {error}") from error
    numbers = csv_text(COLUMNS, ([row[column] for column in COLUMNS] for row in rows))
    words = ("# How busy workers are\n\n" + table(rows) + "\n![Efficiency over workers](efficiency.svg)\n\n"
             "Searches in simulated time, by `fleet TABLE WORKERS... | analysis/fleet.py -o FOLDER`.\n")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for name, content in {"efficiency.csv": numbers, "efficiency.svg": drawn, "fleet.md": words}.items():
            write_whole(options.folder / name, content.encode())
    except OSError as error:
        raise BadInput(f"{options.folder}: cannot be written: {error.strerror}") from error
