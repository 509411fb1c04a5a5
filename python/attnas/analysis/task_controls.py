"""Whether attention matters on the task of a table, by the gates of that task which the table
keeps.
"""

from __future__ import annotations

import math
import typing

import numpy as np

from . import statistics
from .measures import best_counts
from .page import Bullets, Chapter, Columns
from .words import digits, solved_text

if typing.TYPE_CHECKING:
    from . import tables


def chapter(table: tables.Table | None) -> Chapter:
    """Rows of the baseline, its controls and the best count model beside the table's best
    mechanism; empty without a record.
    """
    gates = table.publication.get("gates") if table is not None else None
    if not gates:
        return Chapter("controls", "The task and its controls", [])
    accuracy = gates.get("measure") == "accuracy"
    name = "accuracy" if accuracy else "perplexity"
    value = "accuracy" if accuracy else "nll"  # of the record
    runs = {model["name"]: _losses(model[f"test_{value}"], accuracy) for model in gates["models"]}
    best, of_best = _best(table, accuracy)
    plateau = min((float(runs[one].mean()) for one in PLATEAUS if one in runs and len(runs[one])),
                  default=math.nan)
    line = statistics.failure_line([runs["baseline"], of_best], plateau)
    rows = [[model["name"], f"{model['learning_rate']:g}",
             *_cells(runs[model["name"]], accuracy, line, plateau)] for model in gates["models"]]
    counts = best_counts(gates["count_models"], accuracy)
    if counts:
        tested = counts[f"test_{value}"]
        rows.append([f"counts of order {counts['order']}", "-",
                     digits(tested if accuracy else math.exp(tested)), "-", "-"])
    rows += [[f"best of the table, {best}", "-", *_cells(of_best, accuracy, line, plateau)]
             ] if best else []
    head, solved = ["model", "learning rate", f"test {name}", "solved", "n"], ""
    if math.isinf(line):
        head, rows = [*head[:3], "n"], [[*row[:3], row[4]] for row in rows]
    else:
        solved = (f" Solved: runs with a test {name} {'above' if accuracy else 'below'} "
                  f"{digits(1.0 - line if accuracy else math.exp(line))}, with the Clopper-Pearson "
                  "interval of their share, which intervals of means include.")
    return Chapter("controls", "The task and its controls", [
        Bullets([f"Of the table's task: {gates['verdict']}",
                 f"Test {name} [95 %]. Baseline and controls have the best of five learning rates "
                 f"or more each, those of the table's mechanisms "
                 f"are what it says; the {'largest' if accuracy else 'least'} of many noisy means "
                 f"is too {'high' if accuracy else 'low'}.{solved}"]), Columns(head, rows)])


PLATEAUS = ("no mixer", "window 2", "window 4")  # what needs no attention


def _losses(values: list[float | None], accuracy: bool) -> np.ndarray:
    """Nll, or shares of errors, of seeds that ended."""
    ended = np.array([value for value in values if value is not None], dtype=float)
    return 1.0 - ended if accuracy else ended


def _cells(losses: np.ndarray, accuracy: bool, line: float, plateau: float) -> list[str]:
    """Mean accuracy, or the geometric mean of perplexities, over seeds, with its interval; how many
    solve the task, and how many there are.
    """
    if not len(losses):
        return ["-", "-", "0"]
    found = (statistics.mean_with_failures(losses, losses > line, plateau) if math.isfinite(line)
             else statistics.mean_interval(losses)).within(0.0, 1.0 if accuracy else math.inf)
    point, *ends = (1.0 - one if accuracy else math.exp(one) for one in found)
    low, high = sorted(ends)
    solved = int((losses <= line).sum())
    return [digits(point) + (f" [{digits(low)}, {digits(high)}]" if len(losses) > 1 else ""),
            solved_text(solved, len(losses), *statistics.share_interval(solved, len(losses))[1:]),
            str(len(losses))]


def _best(table: tables.Table, accuracy: bool) -> tuple[str, np.ndarray]:
    """The mechanism with the best mean, where every training run was tested, and its _losses();
    empty where none was.
    """
    values = table.test_nll
    if accuracy:
        unknown = np.full(table.usable.shape, np.nan)
        values = 1.0 - table.values.get("test_correct", unknown) / table.values.get(
            "test_tokens", unknown)
    tested = np.where(table.usable, values, np.nan)
    there = np.isfinite(tested).any(axis=1)
    if not there.any():
        return "", np.array([])
    means = np.full(len(tested), np.inf)
    means[there] = np.nanmean(tested[there], axis=1)
    place = int(means.argmin())
    return table.brief(table.mechanisms[place]), tested[place][np.isfinite(tested[place])]
