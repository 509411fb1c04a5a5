"""Writes a run for other programs.

    analysis/export.py RUN --format csv|latex [-o PATH] [--force]
    analysis/export.py MODEL --format huggingface -o FOLDER [--mechanism NAME] [--plugin FILE]
    [--force]

RUN is a run's folder, its store.sqlite or its results.json. Formats:

  csv     CSV, a line per ask
  latex   LaTeX, a table (booktabs) of the comparison with the baseline: of listed mechanisms, or
          of a re-test

MODEL is a folder that nas-export --format pytorch has written, or a run, whose model of NAME
(default: best) nas-export writes first. huggingface, which needs Python's torch, is a folder for
AutoModelForCausalLM, with trust_remote_code=True, and AutoTokenizer.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attnas.analysis import digest, exports, latex, model_forms
from attnas.analysis.arguments import program
from attnas.analysis.digest import BadInput
from attnas.errors import unwritable
from attnas.analysis.files import write_whole, write_whole_folder
from attnas.analysis.run import Run

FORMATS = ("csv", "latex", "huggingface")


def asks(path: str) -> str:
    """The asks of a run as CSV. Raises BadInput."""
    run = digest.read(path)
    if not run["asks"]:
        raise BadInput(f"{path}: nothing was asked for, as where mechanisms are listed, and "
                       "--format csv writes asks alone; latex and nas-export have training runs")
    return exports.asks_csv(run)


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Writes a folder of files whole or not at all. One that is there is replaced, unless it holds
    something else, which would be lost. Raises BadInput, OSError."""
    if folder.is_file():
        raise BadInput(f"{folder} is a file, must be a folder")
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        if not path.is_dir() and str(path.relative_to(folder)) not in files:
            raise BadInput(f"{folder} holds {path.relative_to(folder)}, which would be lost; "
                           "remove the folder or give another")
    write_whole_folder(folder, files)


def export(options: argparse.Namespace) -> None:
    """Does what the command line says. Raises BadInput, OSError."""
    form, output = options.format, options.output
    for name in ("mechanism", "plugin"):
        if getattr(options, name) and form != "huggingface":
            raise BadInput(f"--{name} belongs to --format huggingface, not to {form}")
    if form == "huggingface" and output is None:
        raise BadInput("--format huggingface is a folder: give --output PATH")
    if output is not None and output.exists() and not options.force:
        raise BadInput(f"{output} exists already; --force replaces it")
    if form == "huggingface":
        with model_folder(Path(options.run), options.mechanism, options.plugin) as folder:
            write_folder(output, model_forms.huggingface_files(folder, options.plugin))
        return
    write_text(output, latex.table(Run(Path(options.run))) if form == "latex" else
               asks(options.run))


def write_text(output: Path | None, text: str) -> None:
    """Writes a file, or to standard output. Raises BadInput, OSError."""
    if output is None:
        sys.stdout.buffer.write(text.encode())
    else:
        write_whole(output, text.encode())


@contextlib.contextmanager
def model_folder(given: Path, mechanism: str | None, plugins: list[str]) -> Iterator[Path]:
    """The folder of a model: what was given, or of a run what nas-export writes. Raises BadInput.
    """
    if (given / "model.safetensors").is_file():
        if mechanism is not None:
            raise BadInput(f"--mechanism {mechanism}: {given} is one model, must be a run")
        yield given
        return
    program = digest.program("nas-export")
    if program is None:
        raise BadInput(f"{given}: no model that nas-export --format pytorch has written, and no "
                       f"nas-export on PATH to write one")
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        command = [program, str(given), "--format", "pytorch", "--output",
                   str(folder), "--mechanism", mechanism or "best",
                   *(word for plugin in plugins for word in ("--plugin", plugin))]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            raise BadInput(done.stderr.strip().removeprefix("nas-export: "))
        yield folder


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="export.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("-o", "--output", type=Path, metavar="PATH",
                        help="instead of standard output; a folder needs it")
    parser.add_argument("--force", action="store_true", help="replace what is at PATH")
    parser.add_argument("--mechanism", metavar="NAME", help="huggingface: of a run, as of "
                                                            "nas-export (default: best)")
    parser.add_argument("--plugin", metavar="FILE", action="append", default=[], help="the same, "
                        "of a run with plug-ins")
    try:
        export(parser.parse_args(arguments))
    except OSError as error:
        raise unwritable(error.filename or "standard output", error) from error
