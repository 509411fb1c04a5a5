"""Optuna's pruners on the curves of a table, as `nas-data table audit` replays our own promotion: random proposals, one replicate
for a whole search, equal steps paid."""

import csv
import pathlib
from collections.abc import Callable

import numpy as np

from nas_analysis.tables import MISSING, Table, TableError

TOP = 16
BUDGETS = (10, 20, 40, 60, 93)  # in whole trainings


def pruners(optuna, rungs: list[int]) -> dict[str, Callable]:
    """What makes each pruner, by its name; None: trains everything to the end.

    Settings are Optuna's own, but that rungs of successive halving lie at powers of a whole factor from the first one."""
    version = ".".join(optuna.__version__.split(".")[:2])
    factor = max(2, round(rungs[1] / rungs[0]))
    return {f"none (Optuna {version})": optuna.pruners.NopPruner,
            f"median (Optuna {version})": optuna.pruners.MedianPruner,
            f"successive halving (Optuna {version})": lambda: optuna.pruners.SuccessiveHalvingPruner(
                min_resource=rungs[0], reduction_factor=factor)}


def check(table: Table, rungs: list[int]):
    """@throws TableError  where rungs are no steps of the table, or a training of it is missing."""
    steps = table.steps.tolist()
    if len(rungs) < 2 or rungs != sorted(set(rungs)) or not set(rungs) <= set(steps) or rungs[-1] != steps[-1]:
        raise TableError(f"--rungs {','.join(map(str, rungs))}, must be two or more of {', '.join(map(str, steps))}, ascending, "
                         f"the last one {steps[-1]}")
    if (table.status[:, :table.drawn] == MISSING).any():
        raise TableError(f"{table.path}: trainings are missing, and rungs need all")


def search(optuna, made, values: np.ndarray, rungs: list[int], order: np.ndarray, budget: int) -> tuple[list, list]:
    """Mechanisms that one search started and those that it trained to the end, in `budget` steps.

    @param values  (m, rungs): perplexity, NaN where the training did not come so far.
    """
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=made())
    started, finished = [], []
    paid = 0
    for mechanism in order:
        if paid + rungs[0] > budget:
            break
        started.append(mechanism)
        trial = study.ask()
        state = optuna.trial.TrialState.PRUNED
        for step, before, value in zip(rungs, [0, *rungs], values[mechanism]):
            if paid + step - before > budget:
                return started, finished
            paid += step - before
            if np.isnan(value):
                state = optuna.trial.TrialState.FAIL
                break
            trial.report(value, step)
            if step == rungs[-1]:
                state = optuna.trial.TrialState.COMPLETE
                finished.append(mechanism)
            elif trial.should_prune():
                break
        study.tell(trial, value if state == optuna.trial.TrialState.COMPLETE else None, state=state)
    return started, finished


def compare(optuna, table: Table, rungs: list[int], seeds: int) -> list[tuple]:
    """Rows as the CSV of `nas-data table audit` has them: part, of, at, quantity, value."""
    check(table, rungs)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    values = np.exp(table.valid_nll[:, :table.drawn][..., np.searchsorted(table.steps, rungs)])
    values[~table.usable[:, :table.drawn], -1] = np.nan
    end = values[..., -1]
    mechanisms, replicates = end.shape
    rows = []
    for budget in [one for one in BUDGETS if one <= mechanisms] or [mechanisms]:
        for name, made in pruners(optuna, rungs).items():
            sums = {"started": 0, "finished": 0, "top": 0, "pruned": 0}
            regrets, fresh = [], []
            for seed in range(seeds):
                replicate = seed % replicates
                order = np.random.default_rng(seed).permutation(mechanisms)
                started, finished = search(optuna, made, values[:, replicate], rungs, order, budget * rungs[-1])
                own = end[:, replicate]
                top = set(np.argsort(own)[:TOP]) & set(started)
                sums["started"] += len(started)
                sums["finished"] += len(finished)
                sums["top"] += len(top)
                sums["pruned"] += len(top - set(finished))
                if not finished:
                    regrets.append(np.nan)
                    continue
                best = finished[int(np.argmin(own[finished]))]
                regrets.append(own[best] - np.nanmin(own))
                if replicates > 1:
                    others = np.nanmean(np.delete(end, replicate, axis=1), axis=1)
                    fresh.append(others[best] - np.nanmin(others))
            found = {"started": sums["started"] / seeds, "finished": sums["finished"] / seeds,
                     "pruned_top_16": sums["pruned"] / sums["top"] if sums["top"] else np.nan,
                     "regret": np.mean(regrets), "fresh_regret": np.mean(fresh) if fresh else np.nan}
            rows += [("replayed", name, budget, quantity, value) for quantity, value in found.items()]
    return rows


def write(file: pathlib.Path, rows: list[tuple]):
    """The CSV; empty where there is no number."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("part", "of", "at", "quantity", "value"))
        writer.writerows((*row[:-1], "" if np.isnan(row[-1]) else f"{row[-1]:.12g}") for row in rows)
