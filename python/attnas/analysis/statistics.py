"""Comparing algorithms by the scores of repeated searches.

A score is minimised: "better" is smaller. Scores of an algorithm are a (runs,) array, or
(runs, tasks) where several problems are pooled. Functions that summarise scores also take any
number of axes in front and keep them, which is how the bootstrap calls them. NaN is refused: a
search without a score has to be given one, or be left out, by who knows why.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FEW = 20  # scores, up to which those with ties are permuted


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval."""

    point: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray

    def within(self, least: float, most: float) -> "Interval":
        """With bounds that lie in what can be: [least, most]; those that are not known stay NaN."""
        return Interval(self.point, *(float(np.clip(end, least, most)) for end in self[1:]))


def iqm(scores: ArrayLike) -> np.ndarray:
    """Interquartile mean over all runs and tasks: the mean without the lowest and highest 25 %.

    Of n scores floor(n / 4) are left out at either end (Agarwal et al. 2021, rliable).
    """
    scores = _pooled(scores)
    count = scores.shape[-1]
    cut = count // 4
    middle = np.partition(scores, (cut, count - cut - 1), axis=-1)[..., cut:count - cut]
    return middle.mean(axis=-1)


def stratified_bootstrap(scores: Mapping[str, ArrayLike],
                         statistic: Callable[[np.ndarray], np.ndarray], resamples: int = 50_000,
                         seed: int = 0, confidence: float = 0.95) -> dict[str, Interval]:
    """Percentile bootstrap intervals of a statistic of every algorithm (Agarwal et al. 2021).

    A resample draws, for every task on its own, as many runs as there are, with replacement: tasks
    are fixed, runs are random. Algorithms with equal shapes see equal draws, so that an interval
    does not depend on which other algorithms are asked for; the intervals are one algorithm's each
    and say nothing about differences.

    scores: algorithm -> (runs,) or (runs, tasks).
    statistic: (..., runs, tasks) -> (...) or (..., k), indifferent to the order of the runs, such
        as iqm.

    Intervals of few runs are too short: for the IQM of normal scores, 95 % are about 89 % at 5 runs
    and 93 % at 10 (tests/analysis/test_coverage.py). Cost: 4 to 10 ns per resampled score.
    """
    ordered = {name: np.sort(_runs_by_tasks(array), axis=0) for name, array in scores.items()}
    replicates = {name: [] for name in ordered}
    for shape in sorted({array.shape for array in ordered.values()}):
        for draw in _draws(shape, resamples, np.random.default_rng(seed)):
            for name, array in ordered.items():
                if array.shape == shape:
                    drawn = array.T.ravel()[draw]  # (resamples, tasks, runs)
                    replicates[name].append(statistic(drawn.swapaxes(-1, -2)))
    tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
    return {name: Interval(statistic(array),
                           *np.quantile(np.concatenate(replicates[name]), tails, axis=0))
            for name, array in ordered.items()}


def probability_of_improvement(a: ArrayLike, b: ArrayLike, confidence: float = 0.95,
                               shared: float = 0.0) -> Interval:
    """Probability that a run of a is better than a run of b on a task, ties counted half.

        mean over tasks of P(a < b) + P(a = b) / 2 = mean over tasks of 1 - U / (n m)

    U is Mann and Whitney's statistic of a, n and m the numbers of runs (Agarwal et al. 2021).
    Runs count as independent: where those of a and b are paired and alike, the interval is longer
    than it must be.

    Instead of a bootstrap, which knows no doubt where every run of a beats every run of b, the
    interval is Student's on the logit scale with the variance of DeLong et al. (1988) and the
    degrees of freedom of Brunner & Munzel (2000). Where all pairs of runs of a task compare alike,
    so that this variance is 0, it is that of Clopper & Pearson for the min(n, m) disjoint pairs per
    task, which is exact for one task and wider than it must be. NaN bounds for fewer than two runs.

    a, b: (runs,) or (runs, tasks), with equal tasks.
    shared: variance of the estimate from what all runs have in common, such as the table that they
        search, known apart from them; it is added to that of the runs.
    """
    a, b = _runs_by_tasks(a), _runs_by_tasks(b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"{a.shape[1]} tasks and {b.shape[1]} tasks, must be equally many")
    num_tasks = a.shape[1]
    placements = [_placements(a[:, task], b[:, task]) for task in range(num_tasks)]
    point = float(np.mean([of_a.mean() for of_a, _ in placements]))
    fewest = min(len(a), len(b))
    if fewest < 2:
        return Interval(point, np.nan, np.nan)

    samples = [sample for pair in placements for sample in pair]
    freedom = np.array([len(sample) - 1 for sample in samples])
    variances = np.array([sample.var(ddof=1) / len(sample) for sample in samples]) / num_tasks**2
    variance = variances.sum()
    tail = (1.0 - confidence) / 2.0
    if variance == 0.0:
        unseen = share_interval(0, fewest * num_tasks, confidence).high
        margin = np.hypot(unseen, stats.norm.ppf(1.0 - tail) * np.sqrt(shared))
        return Interval(point, float(max(point - margin, 0.0)), float(min(point + margin, 1.0)))
    variance += shared
    quantile = stats.t.ppf(1.0 - tail, variance**2 / np.sum(variances**2 / freedom))
    logit = np.log(point / (1.0 - point))
    margin = quantile * np.sqrt(variance) / (point * (1.0 - point))
    low, high = 1.0 / (1.0 + np.exp([margin - logit, -margin - logit]))
    return Interval(point, float(low), float(high))


def clustered_iqm(scores: ArrayLike, noise: ArrayLike) -> Interval:
    """Interquartile mean of scores that are alike in groups, with an interval for other groups.

    Student's of the jackknife's pseudo-values, each without one group: of k groups the deviation
    counts as that of k values. NaN bounds for fewer than two groups.

    scores: (runs,). noise: (runs,) the group of each, such as the recorded noise that it met.
    """
    scores, noise = np.asarray(scores, dtype=float), np.asarray(noise)
    groups = np.unique(noise)
    point = float(iqm(scores))
    if len(groups) < 2:
        return Interval(point, np.nan, np.nan)
    left_out = np.array([iqm(scores[noise != group]) for group in groups])
    pseudo = len(groups) * point - (len(groups) - 1) * left_out
    margin = mean_interval(pseudo).high - pseudo.mean()
    return Interval(point, float(point - margin), float(point + margin))


def clustered_improvement(a: ArrayLike, b: ArrayLike, noise_of_a: ArrayLike, noise_of_b: ArrayLike,
                          shared: float = 0.0) -> tuple[Interval, float]:
    """Probability of improvement of runs that are alike in groups, and p that it is 1 / 2.

        mean over groups of P(a < b) + P(a = b) / 2 within the group

    over the groups that both have, with Student's interval and t test on the logit scale, where
    probabilities near 0 and 1 have less room on one side. Where all groups say the same, p is that
    of a sign test, and the interval as wide as that of Clopper & Pearson for groups of which all
    hit. NaN bounds and p for fewer than two groups. Of 5 groups which differ more than the runs
    within them do, the interval holds what it estimates in some 87 % of the cases where that is
    0.83, in 95 % near 1 / 2.

    a, b: (runs,). noise_of_a, noise_of_b: (runs,) the group of each.
    shared: as in probability_of_improvement.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    noise_of_a, noise_of_b = np.asarray(noise_of_a), np.asarray(noise_of_b)
    groups = np.intersect1d(noise_of_a, noise_of_b)
    if not len(groups):
        return Interval(np.nan, np.nan, np.nan), np.nan
    each = np.array(
        [_placements(a[noise_of_a == group], b[noise_of_b == group])[0].mean() for group in groups])
    k, point = len(groups), float(each.mean())
    if k < 2:
        return Interval(point, np.nan, np.nan), np.nan
    if np.ptp(each) == 0.0:
        margin = np.hypot(share_interval(0, k).high, stats.norm.ppf(0.975) * np.sqrt(shared))
        p = 1.0 if point == 0.5 else 2.0 ** (1 - k)
        return Interval(point, float(max(point - margin, 0.0)), float(min(point + margin, 1.0))), p
    logit = np.log(point / (1.0 - point))
    error = np.sqrt([each.var(ddof=1) / k, each.var(ddof=1) / k + shared]) / (point * (1.0 - point))
    margin = stats.t.ppf(0.975, k - 1) * error[1]
    low, high = 1.0 / (1.0 + np.exp([margin - logit, -margin - logit]))
    return Interval(point, float(low),
                    float(high)), float(2.0 * stats.t.sf(abs(logit) / error[0], k - 1))


def improvement_by_group(a: ArrayLike, b: ArrayLike,
                         groups: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Of each group P(a < b) + P(a = b) / 2 within it, and the variance of that estimate for other
    pairs of runs, NaN for a single pair: (groups,) each, by group. The variance is that of DeLong
    et al. (1988), which counts what a run of a and one of b have to do with each other alone twice,
    less this once: they are few.

    a, b: (runs,), in pairs that have more in common than their group, such as a seed. groups:
    (runs,) of each pair.
    """
    a, b, groups = np.asarray(a, dtype=float), np.asarray(b, dtype=float), np.asarray(groups)
    each, variances = [], []
    for group in np.unique(groups):
        of_a, of_b = a[groups == group][:, None], b[groups == group]
        better = (of_a < of_b) + 0.5 * (of_a == of_b)
        rows, columns, n = better.mean(axis=1), better.mean(axis=0), len(of_b)
        each.append(better.mean())
        if n < 2:
            variances.append(np.nan)
            continue
        rest = better - rows[:, None] - columns + better.mean()
        variances.append((rows + columns).var(ddof=1) / n - (rest**2).sum() / (n * (n - 1)) ** 2)
    return np.array(each), np.array(variances)


def another_group(each: ArrayLike, variances: ArrayLike,
                  confidence: float = 0.95) -> tuple[Interval, Interval]:
    """Mean over groups, with prediction intervals of one more group: for what is true of it, and
    for what as many runs as in these groups would measure of it. Student's, of probabilities: no
    bound lies outside [0, 1].

        variance of the truth = variance over groups - mean variance of an estimate, at least 0

    A difference of variances is not as well known as they are: its degrees of freedom are (k - 1)
    (difference / variance over groups)^2, at least 1 (Satterthwaite 1946). The first interval is
    never longer than the second.

    each, variances: (groups,) as improvement_by_group gives them. Where variances are NaN, the
    first interval is the second; NaN bounds for fewer than two groups.
    """
    each = np.asarray(each, dtype=float)
    k, point = len(each), float(each.mean())
    if k < 2:
        return (Interval(point, np.nan, np.nan),) * 2
    total = each.var(ddof=1)
    noise = np.mean(variances)
    between = total if np.isnan(noise) else max(total - noise, 0.0)
    margins = [stats.t.ppf((1.0 + confidence) / 2.0,
                           max((k - 1) * (variance / total)**2, 1.0) if total > 0.0 else k - 1) *
               np.sqrt(variance + total / k) for variance in (between, total)]
    return tuple(Interval(point, float(max(point - margin, 0.0)), float(min(point + margin, 1.0)))
                 for margin in (min(margins), margins[1]))


def held_out_coverage(each: ArrayLike, confidence: float = 0.95) -> float:
    """Share of groups, measured as they are, that lie within the prediction interval of the other
    half of the groups (another_group): those at even places by those at odd ones, and the other way
    round. NaN for fewer than four groups.

    each: (groups,) in an order that says nothing of them.
    """
    each = np.asarray(each, dtype=float)
    if len(each) < 4:
        return np.nan
    within = []
    for known, held_out in ((each[::2], each[1::2]), (each[1::2], each[::2])):
        _, (_, low, high) = another_group(known, np.full(len(known), np.nan), confidence)
        within.append((held_out >= low) & (held_out <= high))
    return float(np.concatenate(within).mean())


def vargha_delaney(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Interval:
    """Effect size A12 = P(a < b) + P(a = b) / 2 of two samples (Vargha & Delaney 2000).

    In [0, 1]: 1 where every score of a is better, 0.5 where neither is; 0.56, 0.64 and 0.71 are
    called small, medium and large. The interval is that of probability_of_improvement.
    """
    return probability_of_improvement(np.ravel(a), np.ravel(b), confidence)


def mann_whitney(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of Mann and Whitney's U test for two independent samples.

    Exact, over all ways to divide the ranks, where both have up to 20 scores, without ties also
    where one has up to 8. Otherwise normal, corrected for ties and continuity. 1 where all scores
    are equal.
    """
    a, b = _runs_by_tasks(np.ravel(a))[:, 0], _runs_by_tasks(np.ravel(b))[:, 0]
    both = np.concatenate([a, b])
    if np.ptp(both) == 0.0:
        return 1.0
    if max(len(a), len(b)) <= FEW:
        ranks = stats.rankdata(both)
        return _p_of_sum(_subsets(ranks)[len(a)], ranks[:len(a)].sum())
    return float(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue)


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test for paired samples.

    Differences of zero, frequent among searches on one table, are ranked and then left out (Pratt
    1959). Exact for up to 50 pairs without zeros and ties, and over all signs of the ranks for up
    to 20 with them; otherwise normal. 1 where all pairs are equal.
    """
    a, b = _runs_by_tasks(np.ravel(a))[:, 0], _runs_by_tasks(np.ravel(b))[:, 0]
    if len(a) != len(b):
        raise ValueError(f"wilcoxon: {len(a)} and {len(b)} scores, must be pairs")
    sizes = np.unique(np.abs(a - b))
    if sizes[-1] == 0.0:
        return 1.0
    untied = len(sizes) == len(a) and sizes[0] > 0.0
    if not untied and len(a) <= FEW:
        ranks = stats.rankdata(np.abs(a - b))
        return _p_of_sum(_subsets(ranks[a != b]).sum(axis=0), ranks[a > b].sum())
    exact = untied and len(a) <= 50
    method = "exact" if exact else "approx"
    return float(stats.wilcoxon(a, b, zero_method="pratt", method=method).pvalue)


def signed_rank_sum(a: ArrayLike, b: ArrayLike) -> float:
    """Sum of the signed ranks of a - b, as wilcoxon ranks them: negative where it speaks for a."""
    differences = np.ravel(a).astype(float) - np.ravel(b)
    return float(np.sign(differences) @ stats.rankdata(np.abs(differences)))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Adjusted p values in the order given, in [0, 1]; the family-wise error is held (Holm 1979).

        p_(i) -> max over j <= i of min((m - j + 1) p_(j), 1)

    NaN, of what cannot be tested, stays and does not count.
    """
    p_values = np.asarray(p_values, dtype=float)
    known = np.isfinite(p_values)
    if not known.all():
        adjusted = np.full(len(p_values), np.nan)
        adjusted[known] = holm(p_values[known])
        return adjusted
    order = np.argsort(p_values)
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


class Friedman(NamedTuple):
    """What Friedman's test found."""

    statistic: float
    p: float
    mean_ranks: np.ndarray  # one per algorithm, in [1, k]; small is good


def friedman(table: ArrayLike) -> Friedman:
    """Friedman's test of k >= 2 algorithms on paired runs (or problems), and their mean ranks.

        (k - 1) sum over j of (R_j - n (k + 1) / 2)^2 / (sum of all ranks squared - n k (k+1)^2 / 4)

    R_j is the sum of the ranks of algorithm j over n runs, ties get their mean rank; chi-squared
    with k - 1 degrees of freedom (Friedman 1937; Conover 1999, which is corrected for ties).

    table: (runs, algorithms).
    """
    table = _runs_by_tasks(table)
    num_runs, num_algorithms = table.shape
    if num_algorithms < 2:
        raise ValueError(f"friedman: the table has the shape {table.shape}, must have at least two "
                         "columns")
    ranks = stats.rankdata(table, axis=1)
    middle = (num_algorithms + 1) / 2.0
    between = np.sum((ranks.sum(axis=0) - num_runs * middle) ** 2)
    within = np.sum((ranks - middle) ** 2)
    statistic = (num_algorithms - 1) * between / within if within > 0.0 else 0.0
    p = float(stats.chi2.sf(statistic, num_algorithms - 1))
    return Friedman(float(statistic), p, ranks.mean(axis=0))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Nemenyi's: mean ranks of k algorithms over n runs differ where they are farther apart.

        CD = q_alpha sqrt(k (k + 1) / (6 n))

    q is the studentised range for infinite degrees of freedom over sqrt(2) (Demsar 2006). Its
    verdict on two algorithms depends on which others are compared (Benavoli et al. 2016): prefer
    pairwise tests with holm.
    """
    q = stats.studentized_range.ppf(1.0 - alpha, k, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * n)))


def cliques(ranks: ArrayLike, p_adjusted: ArrayLike, alpha: float = 0.05) -> list[list[int]]:
    """Groups for the bars of a critical-difference diagram: neighbours in rank, no pair
    distinguished.

    The longest runs of at least two algorithms, ordered by rank, in which every pair has an
    adjusted p > alpha; as indices, best rank first. Within a bar nothing is distinguished;
    two algorithms without a common bar may still not be where a third between them is: that
    only p_adjusted says.

    ranks: (k,) mean ranks. p_adjusted: (k, k), symmetric; the diagonal is not read.
    """
    order = np.argsort(ranks, kind="stable")
    alike = np.asarray(p_adjusted, dtype=float)[np.ix_(order, order)] > alpha
    groups, reached = [], 1
    for begin in range(len(order)):
        end = begin + 1
        while end < len(order) and alike[begin:end, end].all():
            end += 1
        if end > max(reached, begin + 1):
            groups.append(order[begin:end].tolist())
            reached = end
    return groups


def kendall(a: ArrayLike, b: ArrayLike, confidence: float = 0.95,
            groups: ArrayLike | None = None) -> Interval:
    """Kendall's rank correlation tau-b of two measurements of n things, in [-1, 1].

    The interval is for another sample of such things: Student's of the jackknife's pseudo-values,
    on the scale of Fisher's z. Where tau is the same whichever thing is left out, as where all
    pairs are ordered alike, the jackknife says nothing of other samples. The interval is then 2
    share_interval(m (1 + tau) / 2, m) - 1 of m = floor(n / 2) disjoint pairs, so many of which are
    ordered alike. Without ties tau is the mean over all ways to divide things into pairs, which
    varies no more than what one of them gives (Hoeffding 1963, section 5), so that this is wider
    than it must be. NaN where one of the measurements does not vary, NaN bounds for fewer than 4
    things. Where things are alike in groups, the interval is for other groups: the jackknife leaves
    out one group each, and groups take the place of things in all that is counted. Cost: 20 ns per
    pair.

    a, b: (n,). groups: (n,) the group of each thing; without, each stands for itself.
    """
    a, b = (_runs_by_tasks(np.ravel(x))[:, 0] for x in (a, b))
    if len(a) != len(b):
        raise ValueError(f"kendall: {len(a)} and {len(b)} values, must be pairs")
    own = _ordered(a, b)
    score, untied_a, untied_b = whole = own.sum(axis=0)
    if untied_a == 0 or untied_b == 0:
        return Interval(np.nan, np.nan, np.nan)
    tau = float(score / np.sqrt(untied_a * untied_b))
    if groups is None:
        without = whole - 2.0 * own
    else:
        members = [np.asarray(groups) == group for group in np.unique(groups)]
        # Pairs within a group were taken away twice.
        without = np.array([
            whole - 2.0 * own[one].sum(axis=0) + _ordered(a[one], b[one]).sum(axis=0)
            for one in members])
    k = len(without)
    if k < 4:
        return Interval(tau, np.nan, np.nan)
    tail = (1.0 - confidence) / 2.0
    with np.errstate(invalid="ignore"):
        left_out = np.nan_to_num(without[:, 0] / np.sqrt(without[:, 1] * without[:, 2]))
    if abs(tau) > 1.0 - 1e-12 or np.ptp(left_out) < 1e-12:
        _, low, high = share_interval(k // 2 * (1.0 + round(tau, 12)) / 2.0, k // 2, confidence)
        return Interval(tau, 2.0 * low - 1.0, 2.0 * high - 1.0)
    pseudo = k * tau - (k - 1) * left_out
    margin = (stats.t.ppf(1.0 - tail, k - 1) * pseudo.std(ddof=1) / np.sqrt(k)) / (1.0 - tau**2)
    low, high = np.tanh(np.arctanh(tau) + np.array([-margin, margin]))
    return Interval(tau, float(low), float(high))


def mean_interval(x: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of a sample with Student's t interval; NaN bounds for fewer than two values."""
    x = np.asarray(x, dtype=float)
    mean = float(x.mean())
    if len(x) < 2:
        return Interval(mean, np.nan, np.nan)
    quantile = stats.t.ppf((1.0 + confidence) / 2.0, len(x) - 1)
    margin = float(quantile * x.std(ddof=1) / np.sqrt(len(x)))
    return Interval(mean, mean - margin, mean + margin)


def share_interval(count: float, of: float, confidence: float = 0.95) -> Interval:
    """count / of, of > 0, with the exact interval of Clopper & Pearson (1934), by the beta
    distribution, so that counts need not be whole.
    """
    tail = (1.0 - confidence) / 2.0
    return Interval(
        count / of,
        float(stats.beta.ppf(tail, count, of - count + 1.0)) if count > 0 else 0.0,
        float(stats.beta.ppf(1.0 - tail, count + 1.0, of - count)) if count < of else 1.0)


def failure_line(rows: Iterable[ArrayLike], plateau: float) -> float:
    """The loss or share of errors above which a training run fails, as failures_of() of
    src/statistics/failures.hpp has it: half of the way from what solves a task, the least lower
    quartile of the rows, to the plateau. Infinite where that is not known, or is less than four
    times what the deviation of the runs below it is at most, with 90 % confidence: then runs differ
    continuously.

    rows: (n,) of each model, NaN where a run came to nothing. plateau: mean of what needs no
    attention, or chance; NaN: not known.
    """
    rows = [np.where(np.isfinite(row), row, np.inf) for row in rows]
    solved = min((np.sort(row)[len(row) // 4] for row in rows if len(row)), default=np.inf)
    if not solved < plateau < np.inf:
        return np.inf
    line = (solved + plateau) / 2.0
    below = [row[row <= line] for row in rows]
    freedom = sum(len(row) - 1 for row in below if len(row))
    squares = sum(row.var() * len(row) for row in below if len(row))
    deviation = np.sqrt(squares / stats.chi2.ppf(0.1, freedom)) if freedom else np.inf
    return float(line) if line - solved >= 4.0 * deviation else np.inf


def mean_with_failures(x: ArrayLike, fails: ArrayLike, plateau: float,
                       confidence: float = 0.95) -> Interval:
    """Mean of values of which some fail, as estimate_with_failures() of src/statistics/failures.hpp
    has it: the share of failures has the interval of Clopper & Pearson, the mean of the others
    Student's; what fails counts as those seen do, or as the plateau, whichever is farther.
    Student's alone where fewer than two do not fail, or nothing is known of what a failure has.

    x: (n,) in any sense. fails: (n,) booleans. plateau: in the same sense; NaN: not known.
    """
    x, fails = np.asarray(x, dtype=float), np.asarray(fails, dtype=bool)
    plain, costs = mean_interval(x, confidence), [plateau] if np.isfinite(plateau) else []
    if fails.any():
        costs.append(x[fails].mean())
    if (~fails).sum() < 2 or not costs:
        return plain
    others = mean_interval(x[~fails], confidence)
    ends = [(1.0 - share) * other + share * cost
            for share in share_interval(fails.sum(), len(x), confidence)[1:] for cost in costs
            for other in others[1:]]
    return Interval(plain.point, min(ends), max(ends))


def rounding(*samples: ArrayLike) -> float:
    """Differences of these values that are no larger are none: 1e-12 of the largest."""
    return 1e-12 * max(float(np.abs(sample).max()) for sample in samples)


def paired_test(differences: np.ndarray, least: float,
                exact: bool = False) -> tuple[Interval, float]:
    """Mean of paired differences with Student's interval, and the two-sided p of his test that it
    is 0.

    Differences that are equal but for rounding, whose rest would pass for noise beside which
    anything is significant, do not say how far off another would be: p is then that of a sign test,
    2^(1 - n); 0 of values that no seed changes; 1 where the differences are 0.

    differences: (n,), n >= 2. least: rounding() of the values that they come from. exact: whether
    no seed changes these values.
    """
    if np.ptp(differences) > least:
        return mean_interval(differences), float(stats.ttest_1samp(differences, 0.0).pvalue)
    value = float(np.min(differences))
    if abs(value) <= least:
        return Interval(0.0, 0.0, 0.0), 1.0
    return Interval(value, value, value), 0.0 if exact else 2.0 ** (1 - len(differences))


def _subsets(ranks: np.ndarray) -> np.ndarray:
    """(n + 1, s + 1): how many subsets of n ranks have a size and twice a sum, which is whole
    though ties may share half a rank.

    Cost: n^2 s steps, 5 ms for 40 ranks.
    """
    doubled = np.rint(2.0 * ranks).astype(int)
    counts = np.zeros((len(doubled) + 1, doubled.sum() + 1))
    counts[0, 0] = 1.0
    for rank in doubled:
        counts[1:, rank:] += counts[:-1, :-rank]
    return counts


def _p_of_sum(counts: np.ndarray, ranks: float) -> float:
    """Two-sided p of a sum of ranks: twice the smaller tail of all the sums that are as likely,
    counted by twice their value.
    """
    at = round(2.0 * ranks)
    return float(min(2.0 * min(counts[:at + 1].sum(), counts[at:].sum()) / counts.sum(), 1.0))


def _runs_by_tasks(scores: ArrayLike) -> np.ndarray:
    """(..., runs, tasks), a bare (runs,) as one task; ValueError for NaN or for nothing."""
    array = np.asarray(scores, dtype=float)
    if array.size == 0 or np.isnan(array.min()):
        raise ValueError(f"scores of the shape {array.shape} hold NaN or nothing, must be numbers")
    return array[:, None] if array.ndim == 1 else array


def _pooled(scores: ArrayLike) -> np.ndarray:
    """(..., runs * tasks), task by task: sorted runs stay in order, which np.partition rewards."""
    array = _runs_by_tasks(scores).swapaxes(-1, -2)
    return array.reshape(*array.shape[:-2], -1)


def _draws(shape: tuple[int, int], resamples: int, generator: np.random.Generator):
    """Yields positions in a (tasks, runs) array flattened, as (some resamples, tasks, runs).

    Positions of a task ascend: small integers sort in linear time, and all that works on the drawn
    scores afterwards is several times faster on scores in order.
    """
    num_runs, num_tasks = shape
    at_once = max(200_000 // (num_runs * num_tasks), 1)
    offsets = np.arange(num_tasks)[:, None] * num_runs
    for begin in range(0, resamples, at_once):
        count = min(at_once, resamples - begin)
        draw = generator.integers(num_runs, size=(count, num_tasks, num_runs),
                                  dtype=np.min_scalar_type(num_runs))
        draw.sort(axis=-1, kind="stable")
        yield draw + offsets


def _ordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, 3) of each thing: by how many it is ordered alike rather than oppositely, and not tied in
    a, and in b."""
    return np.array([(np.dot(x, y), np.dot(x, x), np.dot(y, y)) for x, y in
                     ((np.sign(a - a[i]), np.sign(b - b[i])) for i in range(len(a)))])


def _placements(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every score of a the share of b that is worse, for every score of b the share of a that
    is better, ties counted half: both have the mean P(a < b) + P(a = b) / 2."""
    return 1.0 - _share_below(a, np.sort(b)), _share_below(b, np.sort(a))


def _share_below(scores: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    below = np.searchsorted(ascending, scores, "left") + np.searchsorted(ascending, scores, "right")
    return below / (2.0 * len(ascending))
