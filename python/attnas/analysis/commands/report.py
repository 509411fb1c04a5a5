"""Writes one self-contained page about a run.

    report.py RUN [-o report.html] [--svg FOLDER]

RUN is a run's folder, its store.sqlite or its results.json. FOLDER receives the pictures of its
re-test, its progress, its front and its learning curves, each as a file.

Needs numpy and scipy. Exit code 2 where the run cannot be read or the page not written.
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path

from attnas.analysis import digest
from attnas.analysis.arguments import program
from attnas.errors import unwritable
from attnas.analysis.files import write_whole
from attnas.analysis.page import page
from attnas.analysis.run import Run
from attnas.analysis.sections import (controls, curves, effort, failures, front, mechanisms,
                                      progress, replicates, reproducibility, retest, rungs, verdict)
from attnas.analysis.words import counted, listed

SECTIONS = (verdict, retest, controls, front, progress, rungs, curves, replicates, failures,
            mechanisms, effort, reproducibility)

def report(run: Run) -> str:
    """The page of a run."""
    sections = [found for each in SECTIONS if (found := each.section(run)) is not None]
    algorithm = (run.config.get("algorithm") or {}).get("name", "")
    below = ", ".join(part for part in (
        f"algorithm {algorithm}" if algorithm else "",
        f"{'objectives' if run.several else 'objective'} "
        f"{listed([objective.name for objective in run.objectives])}",
        f"corpus {run.facts['corpus']}" if run.facts.get("corpus") else "",
        counted(run.num_trained, "training") if run.listed else counted(run.num_asked, "ask"),
    ) if part)
    return page(f"Better than the baseline? ({run.name})" if run.listed else run.name, below,
                sections)


def write(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all. Raises BadInput, MachineError."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise unwritable(path, error) from error


def write_pictures(folder: Path, run: Run) -> None:
    """Writes the pictures of re-test, progress, front and curves, each as a file. Raises BadInput.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    drawn = {**retest.pictures(run), **progress.pictures(run), **front.pictures(run),
             **curves.pictures(run)}
    for name, each in drawn.items():
        write(folder / f"{name}.svg", each.file(run.name).encode())


@program
def main(words: list[str]) -> None:
    """Reads the command line, writes the page, says where."""
    parser = argparse.ArgumentParser(description="writes one page about a run")
    parser.add_argument("run", type=Path, help=digest.RUN)
    parser.add_argument("-o", "--output", type=Path,
                        help="the page (default: report.html beside these)")
    parser.add_argument("--svg", type=Path, metavar="FOLDER",
                        help="write the pictures of re-test, progress, front and curves there, too")
    arguments = parser.parse_args(words)
    folder = arguments.run if arguments.run.is_dir() else arguments.run.parent
    output = arguments.output or folder / "report.html"
    gc.disable()  # which takes half of the time of a large run, and finds nothing
    run = Run(arguments.run)
    write(output, report(run).encode())
    if arguments.svg:
        write_pictures(arguments.svg, run)
    print(f"written to {output}")
