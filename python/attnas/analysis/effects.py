"""What options do across the mechanisms of a run: a question that one seed each can answer, since
many mechanisms share an option.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from attnas.analysis.genes import Gene, genes
from attnas.analysis.run import Candidate, Run
from attnas.analysis.statistics import holm, rounding

LEAST_MECHANISMS = 3  # that have an option, for it to be judged
LEAST_FREEDOM = 10  # mechanisms beyond what is estimated


@dataclass
class Effect:
    """An objective with an option minus the same with another one, in the objective's own sense,
    with its 95 % interval."""

    gene: str
    option: str
    instead_of: str
    value: float
    low: float
    high: float
    p: float
    n: int  # mechanisms with the option
    n_instead: int
    p_holm: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether it is distinguished from zero after Holm's correction over all options."""
        return self.p_holm < 0.05


def effects(run: Run, objective: int) -> list[Effect]:
    """The options of all categorical genes against those of the baseline (where it has one that was
    tried, else the most frequent), the clearest first.

    Least squares over all genes, a number as a straight line, with standard errors that allow each
    mechanism its own variance (HC3; Long & Ervin 2000) and Holm's correction. Where a gene is not
    applicable, it adds nothing; elsewhere its options add deviations from their mean, so that an
    option beside which it has no effect is compared with the mean of its options. What remains, the
    seeds' noise and what options do only together, is the error that the intervals are made of. A
    search chose the mechanisms, which such a sum of effects does not know. Mechanisms that were
    stopped early or lie beyond the upper outlier fence (exploded training runs) and options with
    fewer than 3 mechanisms are left out; empty where fewer than 10 mechanisms are left beyond the
    effects.
    """
    found = genes(run)
    candidates = _without_outliers(run, objective)
    rare = True
    while rare:
        counts = {gene: Counter(_applicable(gene, candidates))
                  for gene in found if not gene.numeric}
        rare = {(gene, option) for gene, each in counts.items() for option, n in each.items()
                if n < LEAST_MECHANISMS}
        candidates = [c for c in candidates
                      if not any(gene.raw(c.label) == option for gene, option in rare)]
    columns, terms = [np.ones(len(candidates))], []
    for gene, each in counts.items():
        instead = _reference(run, gene, each)
        for option in each:
            if option != instead:
                columns.append(_column(gene, candidates, lambda own: own == option, 1 / len(each)))
                terms.append((len(columns) - 1, gene, option, instead, each))
    for gene in found:
        if gene.numeric:
            values = [float(own) for own in _applicable(gene, candidates)]
            if len(set(values)) > 1:
                columns.append(_column(gene, candidates, float, np.mean(values)))
    design = np.stack(columns, axis=1)
    freedom = len(design) - design.shape[1]
    if not terms or freedom < LEAST_FREEDOM or \
            np.linalg.matrix_rank(design) < design.shape[1]:
        return []
    values = np.array([candidate.values[objective] for candidate in candidates])
    estimates, errors = _least_squares(design, values)
    quantile = stats.t.ppf(0.975, freedom)
    least = rounding(values)  # what is no more is none
    result = []
    for column, gene, option, instead, each in terms:
        value, error = float(estimates[column]), float(errors[column])
        # What options explain without a rest leaves nothing to test against.
        p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error > least else 1.0 if abs(
            value) <= least else np.nan
        result.append(Effect(gene.name, option, instead, value, value - quantile * error,
                             value + quantile * error, p, each[option], each[instead]))
    for each, p in zip(result, holm([each.p for each in result])):
        each.p_holm = float(p)
    return sorted(result, key=lambda each: (np.isnan(each.p), each.p_holm, each.p))


def _applicable(gene: Gene, candidates: list[Candidate]) -> list[str]:
    """What candidates have of a gene, without those to which it is not applicable."""
    return [own for c in candidates if (own := gene.raw(c.label)) is not None]


def _column(gene: Gene, candidates: list[Candidate], coded: Callable[[str], float],
            middle: float) -> np.ndarray:
    """A code of what candidates have of a gene, minus its middle; 0 where it is not applicable."""
    own = [gene.raw(c.label) for c in candidates]
    return np.array([0.0 if raw is None else coded(raw) - middle for raw in own])


def _without_outliers(run: Run, objective: int) -> list[Candidate]:
    sense = -1.0 if run.objectives[objective].maximise else 1.0
    values = [sense * candidate.values[objective] for candidate in run.comparable]
    if not values:
        return []
    low, high = np.quantile(values, [0.25, 0.75])
    return [c for c, value in zip(run.comparable, values) if value <= high + 3 * (high - low)]


def _reference(run: Run, gene: Gene, counts: Counter) -> str:
    own = gene.raw(run.baseline.label) if run.baseline else ""
    return own if own in counts else counts.most_common(1)[0][0] if counts else ""


def _least_squares(design: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and their HC3 standard errors."""
    inverse = np.linalg.inv(design.T @ design)
    estimates = inverse @ design.T @ values
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residuals = (values - design @ estimates) / np.maximum(1.0 - leverage, 1e-9)
    middle = design.T @ (design * residuals[:, None] ** 2)
    return estimates, np.sqrt(np.diag(inverse @ middle @ inverse))
