"""Writes runs for other programs.

    analysis/export.py RUN... --format FORMAT [-o PATH] [--force] [--all-points]
    analysis/export.py MODEL --format onnx|huggingface -o PATH [--mechanism NAME] [--plugin FILE]
    [--force]

RUN is a run's folder, its store.sqlite or its results.json. Formats:

  csv     CSV, a line per ask
  points  point sets, for moocore and R's eaf; several runs
  latex   LaTeX, a table (booktabs) of the comparison with the baseline: of listed mechanisms, or
          of a re-test
  tensorboard
          TensorBoard's folder of event files, a run per training run; several runs

MODEL is a folder that nas-export --format pytorch has written, or a run, whose model of NAME
(default: best) nas-export writes first. Formats, which need Python's torch:

  onnx    ONNX, a file: a graph from tokens to logits, of any batch and length, compared with the
          model where there is onnxruntime; needs onnx, and onnxscript from PyTorch 2.5 on
  huggingface
          a folder for AutoModelForCausalLM, with trust_remote_code=True, and AutoTokenizer
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

FORMATS = ("csv", "points", "tensorboard", "latex", "onnx", "huggingface")
MODELS = ("onnx", "huggingface")
SINGLE = ("csv", "latex", *MODELS)  # of one run


def subject(run: exports.Digest) -> str:
    """What runs that are written together must have in common."""
    goals = ", ".join(goal.title for goal in digest.objectives(run))
    return f"{goals} on {exports.function(run)}"


def read(paths: list[str], form: str) -> list[exports.Digest]:
    """The digests of runs. Raises BadInput."""
    runs = [digest.read(path) for path in paths]
    for path, run in zip(paths, runs):
        if form == "csv" and not run["asks"]:
            raise BadInput(f"{path}: nothing was asked for, as where mechanisms are listed, and "
                           "--format csv writes asks alone; tensorboard, latex and nas-export have "
                           "training runs")
        if form == "points" and subject(run) != subject(runs[0]):
            raise BadInput(f"{path} is a search of {subject(run)}, {paths[0]} of "
                           f"{subject(runs[0])}; runs that are written together must agree")
    return runs


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
    if len(options.runs) > 1 and form in SINGLE:
        raise BadInput(f"--format {form} takes one run, not {len(options.runs)}")
    if options.all_points and form != "points":
        raise BadInput(f"--all-points belongs to --format points, not to {form}")
    for name in ("mechanism", "plugin"):
        if getattr(options, name) and form not in MODELS:
            raise BadInput(f"--{name} belongs to --format {' and '.join(MODELS)}, not to {form}")
    if form in ("tensorboard", *MODELS) and output is None:
        raise BadInput(f"--format {form} is a {'file of bytes' if form == 'onnx' else 'folder'}: "
                       "give --output PATH")
    if output is not None and output.exists() and not options.force:
        raise BadInput(f"{output} exists already; --force replaces it")
    if form in MODELS:
        with model_folder(Path(options.runs[0]), options.mechanism, options.plugin) as folder:
            if form == "onnx":
                write_whole(output, model_forms.onnx_file(folder))
            else:
                write_folder(output, model_forms.huggingface_files(folder))
        return
    if form == "latex":
        write_text(output, latex.table(Run(Path(options.runs[0]))))
        return
    runs = read(options.runs, form)
    if form == "tensorboard":
        write_folder(output, exports.tensorboard_files(runs))
        return
    write_text(output, exports.asks_csv(runs[0]) if form == "csv" else
               exports.point_sets(runs, options.all_points))


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
        command = [
            program,
            str(given), "--format", "pytorch", "--output",
            str(folder), "--mechanism", mechanism or "best",
            *(word for plugin in plugins for word in ("--plugin", plugin))
        ]
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
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("-o", "--output", type=Path, metavar="PATH",
                        help="instead of standard output; a folder needs it")
    parser.add_argument("--force", action="store_true", help="replace what is at PATH")
    parser.add_argument("--mechanism", metavar="NAME", help="onnx, huggingface: of a run, as of "
                                                            "nas-export (default: best)")
    parser.add_argument("--plugin", metavar="FILE", action="append", default=[], help="the same, "
                        "of a run with plug-ins")
    parser.add_argument("--all-points", action="store_true",
                        help="points: all candidates, not the non-dominated ones alone")
    try:
        export(parser.parse_args(arguments))
    except OSError as error:
        raise unwritable(error.filename or "standard output", error) from error
