"""Writes one self-contained page about a run.

    report.py RUN [-o report.html] [--svg FOLDER] [--pdf FOLDER]

RUN is a run's folder, its store.sqlite or its results.json. FOLDER receives the pictures of its
re-test, its progress, its front and its learning curves, each as a file; PDF is made by
rsvg-convert (Debian: apt-get install librsvg2-bin).

Needs numpy and scipy. Exit code 2 where the run cannot be read or the page not written.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import subprocess
from pathlib import Path

from attnas.analysis import digest
from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.errors import unwritable
from attnas.analysis.files import write_whole
from attnas.analysis.page import page
from attnas.analysis.run import Run
from attnas.analysis.sections import (controls, curves, effort, failures, front, mechanisms,
                                      progress, replicates, reproducibility, retest, rungs,
                                      verdict)
from attnas.analysis.words import counted, listed

SECTIONS = (verdict, retest, controls, front, progress, rungs, curves, replicates, failures,
            mechanisms, effort, reproducibility)

CONVERTER = "rsvg-convert"


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


def write_pictures(folder: Path, run: Run, kind: str) -> None:
    """Writes the pictures of re-test, progress, front and curves, each as a file. Raises BadInput.

    @param kind  svg or pdf.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    drawn = {
        **retest.pictures(run), **progress.pictures(run), **front.pictures(run),
        **curves.pictures(run)
    }
    for name, each in drawn.items():
        content = each.file(run.name).encode()
        write(folder / f"{name}.{kind}", pdf_of(content) if kind == "pdf" else content)


def pdf_of(svg: bytes) -> bytes:
    """A picture as PDF. Raises BadInput."""
    done = subprocess.run([CONVERTER, "--format", "pdf"], input=svg, capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise BadInput(f"{CONVERTER}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


@program
def main(words: list[str]) -> None:
    """Reads the command line, writes the page, says where."""
    parser = argparse.ArgumentParser(description="writes one page about a run")
    parser.add_argument("run", type=Path, help=digest.RUN)
    parser.add_argument("-o", "--output", type=Path,
                        help="the page (default: report.html beside these)")
    parser.add_argument("--svg", type=Path, metavar="FOLDER",
                        help="write the pictures of re-test, progress, front and curves there, too")
    parser.add_argument("--pdf", type=Path, metavar="FOLDER", help="the same as PDF, by "
                                                                   "rsvg-convert")
    arguments = parser.parse_args(words)
    if arguments.pdf and not shutil.which(CONVERTER):
        raise BadInput(f"--pdf {arguments.pdf}: needs {CONVERTER}, which is not on PATH (Debian: "
                       f"apt-get install librsvg2-bin)")
    folder = arguments.run if arguments.run.is_dir() else arguments.run.parent
    output = arguments.output or folder / "report.html"
    gc.disable()  # which takes half of the time of a large run, and finds nothing
    run = Run(arguments.run)
    write(output, report(run).encode())
    for kind in ("svg", "pdf"):
        if folder := getattr(arguments, kind):
            write_pictures(folder, run, kind)
    print(f"written to {output}")
