"""Whether attention matters on the task of a table, by the gates of that task which the table keeps."""

from __future__ import annotations

import math
import typing

import numpy as np

from . import statistics
from .measures import best_counts
from .page import Bullets, Chapter, Columns
from .words import digits

if typing.TYPE_CHECKING:
    from . import tables


def chapter(table: tables.Table | None) -> Chapter:
    """Rows of the baseline, its controls and the best count model beside the table's best mechanism; empty without a record."""
    gates = table.publication.get("gates") if table is not None else None
    if not gates:
        return Chapter("controls", "The task and its controls", [])
    accuracy = gates.get("measure") == "accuracy"
    name = "accuracy" if accuracy else "perplexity"
    value = "accuracy" if accuracy else "nll"  # of the record
    rows = [[model["name"], f"{model['learning_rate']:g}", *_mean(model[f"test_{value}"], accuracy)] for model in gates["models"]]
    counts = best_counts(gates["count_models"], accuracy)
    if counts:
        tested = counts[f"test_{value}"]
        rows.append([f"counts of order {counts['order']}", "-", digits(tested if accuracy else math.exp(tested)), "-"])
    rows += _best(table, accuracy)
    return Chapter("controls", "The task and its controls", [
        Bullets([f"Of the table's task: {gates['verdict']}",
                 f"Test {name} [95 %]. Baseline and controls have the best of five learning rates each, those of the table's mechanisms "
                 f"are what it says; the {'largest' if accuracy else 'least'} of many noisy means is too {'high' if accuracy else 'low'}."]),
        Columns(["model", "learning rate", f"test {name}", "n"], rows)])


def _mean(values: list[float | None], accuracy: bool) -> list[str]:
    """Mean accuracy, or the geometric mean of perplexities, over seeds that ended, with its interval, and how many."""
    ended = [value for value in values if value is not None]
    if not ended:
        return ["-", "0"]
    point, low, high = (min(max(one, 0.0), 1.0) if accuracy else max(math.exp(one), 1.0) for one in statistics.mean_interval(ended))
    return [digits(point) + (f" [{digits(low)}, {digits(high)}]" if len(ended) > 1 else ""), str(len(ended))]


def _best(table: tables.Table, accuracy: bool) -> list[list[str]]:
    """The mechanism with the best mean, where every training run was tested."""
    values = table.test_nll
    if accuracy:
        unknown = np.full(table.usable.shape, np.nan)
        values = table.values.get("test_correct", unknown) / table.values.get("test_tokens", unknown)
    tested = np.where(table.usable, values, np.nan)
    there = np.isfinite(tested).any(axis=1)
    if not there.any():
        return []
    means = np.full(len(tested), np.inf)
    means[there] = np.nanmean(tested[there], axis=1) * (-1 if accuracy else 1)
    place = int(means.argmin())
    own = tested[place]
    return [[f"best of the table, {table.brief(table.mechanisms[place])}", "-", *_mean(own[np.isfinite(own)].tolist(), accuracy)]]
