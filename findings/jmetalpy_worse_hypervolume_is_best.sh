#!/usr/bin/env bash
# jMetalPy: its experiment tables take hypervolume for an indicator to be minimised. The algorithm with the smaller hypervolume is
# highlighted as the best, and the sign of the test says that it is significantly better.
#
# Versions: jmetalpy 1.9.0, moocore 0.3.2, scipy 1.17.1, pandas 3.1.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     ten runs each, all points of "worse" are 1 behind those of "better" in both objectives: hypervolume 61 against 78;
#           the dark cell of the LaTeX tables is that of "worse", and the test of "better" against it has "o", not "+".
# Source:   jmetal/lab/experiment.py: check_minimization() knows "HV" alone as maximised, but the summary has the name from
#           get_short_name(), which is "Hypervolume quality indicator" (core/quality_indicator.py; get_name() is "HV").
# Advice:   replace the name in QualityIndicatorSummary.csv by HV before tables are made from it, and read one of them by eye.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 moocore==0.3.2 jmetalpy==1.9.0
cd "$folder"
MPLBACKEND=agg "$folder/venv/bin/python" -W ignore - <<'END'
import logging
import sys
from importlib.metadata import version
from pathlib import Path

import numpy
from jmetal.core.quality_indicator import HyperVolume
from jmetal.lab import experiment

logging.disable(logging.WARNING)
print("versions:", *(f"{name} {version(name)}" for name in ("jmetalpy", "moocore", "scipy", "pandas", "numpy")))
noise = numpy.random.default_rng(0)
for algorithm, behind in (("better", 0), ("worse", 1)):
    runs = Path("data", algorithm, "P")
    runs.mkdir(parents=True)
    for run in range(10):
        points = numpy.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]) + behind + noise.normal(0, 0.05, (3, 2))
        numpy.savetxt(runs / f"FUN.{run}.tsv", points)
summary = Path("QualityIndicatorSummary.csv")


def tables():
    """Whose median is in the dark cell, and the test's sign of the row against the column."""
    experiment.generate_latex_tables(str(summary))
    experiment.compute_wilcoxon(str(summary))
    lines = next(Path("latex/statistical").glob("MedianIQR-*.tex")).read_text().splitlines()
    names = next(line for line in lines if "textbf" in line).split("&")[1:]
    cells = next(line for line in lines if "cellcolor" in line).split("&")[1:]
    dark = next(name for name, cell in zip(names, cells) if "gray95" in cell)
    test = next(Path("latex/wilcoxon").glob("*.csv")).read_text().split()
    return dark.split("{")[1].split("}")[0], f"{test[1]} against {test[0]}: {test[2]}"


experiment.generate_summary_from_experiment("data", [HyperVolume([10, 10])])
rows = summary.read_text().splitlines()
means = {
    name: float(numpy.mean([float(row.split(",")[-1]) for row in rows[1:] if row.startswith(name)]))
    for name in ("better", "worse")
}
seen = tables()
summary.write_text(summary.read_text().replace(HyperVolume([10, 10]).get_short_name(), "HV"))
renamed = tables()
print("mean hypervolumes:", {name: round(value, 1) for name, value in means.items()})
print("expected: best is the larger, as with the name HV:", renamed)
print("seen: best is", seen)
# Of the two signs, "+" is better and "o" worse, of the row.
plus = {"worse against better: o": "worse against better: +", "better against worse: +": "better against worse: o"}
if not (means["worse"] < means["better"] and seen[0] == "worse" and renamed[0] == "better" and plus[renamed[1]] == seen[1]):
    sys.exit("the behaviour has changed")
END
