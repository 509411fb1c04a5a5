"""How noisy training runs are, and how early and by which split they can be judged."""

import dataclasses

import numpy as np
from scipy import stats

from attnas.analysis import statistics


@dataclasses.dataclass(frozen=True)
class Noise:
    """Where the variance of a single training run's value comes from, over k mechanisms that have
    all n >= 2 seeds. Mean squares: MSB between mechanisms, MSW within them, MSE of mechanisms by
    seeds (McGraw & Wong 1996). A ratio to a variance that is 0, but for rounding, is NaN: nothing
    was seen of what it is relative to."""

    mechanisms: int
    seeds: int
    between: float  # standard deviation of mechanisms, (MSB - MSE) / n, 0 where negative
    within: float  # sqrt(MSW): of seeds of one mechanism
    paired: float  # sqrt(MSE): the same without what a seed does to all mechanisms alike
    one_way: statistics.Interval  # ICC(1), (MSB - MSW) / (MSB + (n - 1) MSW)
    two_way: statistics.Interval  # ICC(C,1), (MSB - MSE) / (MSB + (n - 1) MSE)
    seed_f: float  # of the seeds' common effect
    seed_p: float
    spearman: tuple[float, float, float]  # between two seeds: mean, least, most
    growth: float  # rank correlation of mechanisms' own noise with their values

    @property
    def gain(self) -> float:
        """MSW / MSE: unpaired seeds that a paired one is worth when two mechanisms are compared."""
        return (self.within / self.paired) ** 2 if self.paired > 0 else np.nan


def common_seeds(values: np.ndarray) -> np.ndarray:
    """(r,) mask of the seeds that nearly all mechanisms have. Further seeds of a table are those of
    its best mechanisms: with them an analysis over all mechanisms would take what is missing for
    what has no noise, and what is said of seeds for what is so of the best.

    @param values  (m, r), NaN where missing.
    """
    counts = np.isfinite(values).sum(axis=0)
    return counts >= 0.9 * counts.max(initial=0)


def _complete(values: np.ndarray) -> np.ndarray:
    """The mechanisms that have all of the common seeds, with these."""
    values = values[:, common_seeds(values)]
    return values[np.isfinite(values).all(axis=1)]


def noise(values: np.ndarray, maximised: bool = False) -> Noise | None:
    """@param values (m, r) in minimisation form, NaN where missing. None for fewer than 2 complete
    mechanisms or seeds.
    @param maximised  whether the values themselves, with which noise grows or falls, have the other
        sign.
    """
    values = _complete(values)
    k, n = values.shape
    if k < 2 or n < 2:
        return None
    mean = values.mean(axis=1, keepdims=True)
    common = values.mean(axis=0) - values.mean()
    least = statistics.rounding(values)
    between, within, residual, seeds = (square if np.sqrt(square / n) > least else 0.0
                                        for square in (n * mean.var(ddof=1),
                                                       ((values - mean)**2).sum() / (k * (n - 1)),
                                                       ((values - mean - common)**2).sum() /
                                                       ((k - 1) * (n - 1)),
                                                       k * (common**2).sum() / (n - 1)))
    f = seeds / residual if residual > 0 else np.nan
    pairs = np.array([_spearman(values[:, i], values[:, j])
                      for i, j in zip(*np.triu_indices(n, 1))])
    return Noise(
        k, n, float(np.sqrt(max(between - residual, 0.0) / n)), float(np.sqrt(within)),
        float(np.sqrt(residual)), _icc(between, within, n, k - 1, k * (n - 1)),
        _icc(between, residual, n, k - 1, (k - 1) * (n - 1)), float(f),
        float(stats.f.sf(f, n - 1, (k - 1) * (n - 1))),
        (float(pairs.mean()), float(pairs.min()), float(pairs.max())),
        _spearman(-mean[:, 0] if maximised else mean[:, 0], (values - common).std(axis=1), least))


def agreement_among_best(values: np.ndarray, count: int = 20) -> list[float]:
    """How well other seeds rank the mechanisms that are best by one: for each seed the mean rank
    correlation (Spearman) of all pairs of the other seeds over the `count` mechanisms that it has
    best. What ranks of the best of a table are worth; empty for fewer than 3 seeds.

    @param values  (m, r) minimised, NaN where missing.
    """
    values = _complete(values)
    if values.shape[1] < 3 or len(values) < count:
        return []
    found = []
    for chooser in range(values.shape[1]):
        best = np.delete(values[np.argsort(values[:, chooser], kind="stable")[:count]], chooser, 1)
        found.append(float(np.mean([_spearman(best[:, i], best[:, j])
                                    for i, j in zip(*np.triu_indices(best.shape[1], 1))])))
    return found


def _spearman(a: np.ndarray, b: np.ndarray, least: float = 0.0) -> float:
    """NaN where one of them does not vary by more than rounding, and by more than `least`."""
    if any(np.ptp(side) <= max(statistics.rounding(side), least) for side in (a, b)):
        return np.nan
    return float(stats.spearmanr(a, b).statistic)


def _icc(between: float, error: float, n: int, freedom: int, error_freedom: int):
    """(F - 1) / (F + n - 1) for F = MSB / error, with the exact interval of normal values; NaN for
    no error.
    """
    if error == 0.0:
        return statistics.Interval(np.nan, np.nan, np.nan)
    f = between / error
    ends = (f, f / stats.f.ppf(0.975, freedom, error_freedom),
            f * stats.f.ppf(0.975, error_freedom, freedom))
    return statistics.Interval(*(float((end - 1) / (end + n - 1)) for end in ends))


@dataclasses.dataclass(frozen=True)
class Rung:
    """What one training run says at a step about the end."""

    step: int
    cost: float  # share of a whole training run's seconds
    tau: float  # Kendall's rank correlation with the end
    # Mean end of the mechanism that is best there minus the best end.
    regret: float


def ladder(steps: np.ndarray, curve: np.ndarray, seconds: np.ndarray, final: np.ndarray,
           ) -> list[Rung]:
    """The rungs of a fidelity ladder: means over the replicates.

    With several replicates the end that a run is judged by is the mean of the other ones, so that
    its own luck counts neither as agreement nor against regret. Replicates are those that nearly
    all mechanisms have (common_seeds).

    @param curve   (m, r, s) minimised; NaN where a run had ended: it counts as worst.
    @param seconds (m, r, s) since the run's beginning.
    @param final   (m, r) minimised, NaN where missing.
    """
    if not len(steps):
        return []
    common = common_seeds(final)
    curve, seconds, final = curve[:, common], seconds[:, common], final[:, common]
    cost = np.nanmean(seconds / seconds[..., -1:], axis=(0, 1))
    rungs = []
    for i, step in enumerate(steps):
        taus, regrets = [], []
        for r in range(final.shape[1]):
            there = np.isfinite(final[:, r])
            early = np.where(np.isfinite(curve[there, r, i]), curve[there, r, i], np.inf)
            others = np.delete(final[there], r, axis=1) if final.shape[1] > 1 else final[there]
            known = np.isfinite(others).any(axis=1)
            if known.sum() < 2:
                continue
            end = np.nanmean(others[known], axis=1)
            taus.append(stats.kendalltau(early[known], end).statistic)
            regrets.append(end[np.argmin(early[known])] - end.min())
        if taus:
            rungs.append(Rung(int(step), float(cost[i]), float(np.mean(taus)),
                              float(np.mean(regrets))))
    return rungs


@dataclasses.dataclass(frozen=True)
class Splits:
    """How well the validation split stands for the test split."""

    mechanisms: float  # Spearman's correlation of mechanisms' means
    luck: float  # Pearson's correlation of the noise of single training runs; NaN without noise
    best_is_best: bool  # the best mechanism of the one is that of the other


def splits(valid: np.ndarray, test: np.ndarray) -> Splits | None:
    """@param valid, test (m, r) minimised, of which the common seeds count. None where fewer than 3
    mechanisms have both.
    """
    common = common_seeds(valid)
    valid, test = valid[:, common], test[:, common]
    rows = (np.isfinite(valid) & np.isfinite(test)).all(axis=1)
    if rows.sum() < 3:
        return None
    valid, test = valid[rows], test[rows]
    rank = _spearman(valid.mean(axis=1), test.mean(axis=1))
    own = [_own(values).ravel() for values in (valid, test)]  # of one seed nothing is left
    varies = all(
        np.ptp(noise) > statistics.rounding(side) for noise, side in zip(own, (valid, test)))
    luck = np.corrcoef(*own)[0, 1] if varies else np.nan
    return Splits(rank, float(luck),
                  bool(valid.mean(axis=1).argmin() == test.mean(axis=1).argmin()))


def _own(values: np.ndarray) -> np.ndarray:
    """Without what is common to a mechanism or to a seed."""
    return (values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean())
