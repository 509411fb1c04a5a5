"""Optuna's pruners on the curves of a table: trainings are stopped for good as they come by, at
equal steps paid.
"""

import time
from collections.abc import Callable

import numpy as np

from attnas.analysis.replay import replay_order
from attnas.analysis.tables import MISSING, Table, TableError


class Spent(Exception):
    """The budget of a search is used up. Says by what."""


class Curves:
    """Answers one search validation by validation, by one replicate as in the mode `paired`, and
    keeps what it asked for.
    """

    def __init__(self, table: Table, trainings: int, asks: int, seed: int):
        """@param trainings  the budget, in whole training runs."""
        self._table, self._asks = table, asks
        self._whole = int(table.steps[-1])
        self._budget = trainings * self._whole
        self._replicate = replay_order(seed, "", table.drawn)[0]
        self._ends: dict[int, int] = {}  # step at which a mechanism's training ended
        self._seconds = 0.0
        self.inside = 0.0  # processor seconds spent here
        self.candidates, self.trained, self.seconds, self.fitness, self.steps = [], [], [], [], []

    def train(self, mechanism: int, pruned: Callable[[int, float], bool]) -> float:
        """The perplexity in the end; NaN where there is none. What was trained before answers as
        before and is free.

        @param pruned  is told step and perplexity at each validation, and says whether that is the
            end of the training.
        @throws Spent.
        """
        if len(self.candidates) >= self._asks:
            raise Spent(f"{self._asks} asks")
        start = time.process_time()
        known = self._ends.get(mechanism)
        value, end = np.nan, 0
        for step, nll in zip(self._table.steps.tolist(),
                             self._table.valid_nll[mechanism, self._replicate].tolist()):
            if np.isnan(nll) or end == known:
                break
            paid = sum(self.steps[-1:]) + step
            if known is None and paid > self._budget:
                raise Spent(f"{self._budget} training steps")
            value, end = float(np.exp(nll)), step
            self.inside += time.process_time() - start
            stop = pruned(step, value)
            start = time.process_time()
            if stop and known is None and step < self._whole:
                break
        if end < self._whole or not self._table.usable[mechanism, self._replicate]:
            value = np.nan
        if known is None:
            self._ends[mechanism] = end
            self._seconds += end / self._whole * float(
                np.nan_to_num(self._table.seconds[mechanism, self._replicate]))
        self.candidates.append(mechanism)
        self.trained.append(len(self._ends))
        self.seconds.append(self._seconds)
        self.fitness.append((value,))
        self.steps.append(sum(self.steps[-1:]) + (end if known is None else 0))
        self.inside += time.process_time() - start
        return value


def check(table: Table, first: int):
    """@throws TableError  where `first` is no validation step before the end, or a training is
    missing.
    """
    steps = table.steps.tolist()[:-1]
    if first not in steps:
        raise TableError(f"--prune-from {first}, must be one of {', '.join(map(str, steps))}")
    if (table.status[:, :table.drawn] == MISSING).any():
        raise TableError(f"{table.path}: trainings are missing, and pruning needs all")


def pruners(optuna, first: int) -> dict[str, tuple[Callable, dict]]:
    """Of each pruner by its name what makes it, and its settings. All are Optuna's own, but that
    trainings are pruned from the validation step `first` on, and by a third where ours are, where a
    factor of 4 is the default."""
    halving = {"min_resource": first, "reduction_factor": 3}
    return {
        "no pruner": (optuna.pruners.NopPruner, {}), "median pruner":
            (lambda: optuna.pruners.MedianPruner(n_warmup_steps=first), {"n_warmup_steps": first}),
        "successive halving": (lambda: optuna.pruners.SuccessiveHalvingPruner(**halving), halving)
    }


def search(optuna, pruner: Callable, sampler: Callable) -> Callable:
    """A search by Optuna: until Spent is thrown, every training is reported to the pruner at each
    validation.
    """
    def run(study, curves: Curves, seed: int):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        states = optuna.trial.TrialState
        made = optuna.create_study(sampler=sampler(seed=seed), pruner=pruner())
        while True:
            trial = made.ask()
            mechanism = study.mechanism({
                gene: trial.suggest_categorical(gene, options)
                for gene, options in study.options.items()
            })

            def pruned(step, value):
                trial.report(value, step)
                return trial.should_prune()

            value = curves.train(mechanism, pruned)
            if np.isfinite(value):
                made.tell(trial, value)
            else:
                made.tell(trial, state=states.PRUNED)

    return run
