"""Whether attention matters on the task of a table, by the gates of that task which the table keeps."""

from __future__ import annotations

import math
import typing

import numpy as np

from . import statistics
from .page import Bullets, Chapter, Columns
from .words import digits

if typing.TYPE_CHECKING:
    from . import tables


def chapter(table: tables.Table | None) -> Chapter:
    """Rows of the baseline, its controls and the best count model beside the table's best mechanism; empty without a record."""
    gates = table.publication.get("gates") if table is not None else None
    if not gates:
        return Chapter("controls", "The task and its controls", [])
    rows = [[model["name"], f"{model['learning_rate']:g}", *_perplexity(model["test_nll"])] for model in gates["models"]]
    counts = min(gates["count_models"] or [], key=lambda model: model["valid_nll"], default=None)
    if counts:
        rows.append([f"counts of order {counts['order']}", "-", digits(math.exp(counts["test_nll"])), "-"])
    rows += _best(table)
    return Chapter("controls", "The task and its controls", [
        Bullets([f"Of the table's task: {gates['verdict']}",
                 "Test perplexity [95 %]. Baseline and controls have the best of five learning rates each, those of the table's mechanisms "
                 "are what it says; the least of many noisy means is too low."]),
        Columns(["model", "learning rate", "test perplexity", "n"], rows)])


def _perplexity(nlls: list[float | None]) -> list[str]:
    """Geometric mean over seeds that ended, with its interval, and how many."""
    ended = [nll for nll in nlls if nll is not None]
    if not ended:
        return ["-", "0"]
    point, low, high = (max(math.exp(one), 1.0) for one in statistics.mean_interval(ended))
    return [digits(point) + (f" [{digits(low)}, {digits(high)}]" if len(ended) > 1 else ""), str(len(ended))]


def _best(table: tables.Table) -> list[list[str]]:
    """The mechanism with the least mean, where every training run was tested."""
    tested = np.where(table.usable, table.test_nll, np.nan)
    there = np.isfinite(tested).any(axis=1)
    if not there.any():
        return []
    means = np.full(len(tested), np.inf)
    means[there] = np.nanmean(tested[there], axis=1)
    place = int(means.argmin())
    own = tested[place]
    return [[f"best of the table, {table.brief(table.mechanisms[place])}", "-", *_perplexity(own[np.isfinite(own)].tolist())]]
