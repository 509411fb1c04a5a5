"""How much of a mechanism's quality its components decide: analysis of variance over the factorial
of their options.

A mechanism f has a value in every seed, y_fs = mu_f + seed_s + noise_fs. Seeds are common to all
mechanisms, so what a seed does to all of them alike is no noise between them. Components count
uniformly: where an option voids another gene, so that several combinations of options are one
function, that function stands for all of them and has their weight.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from attnas.analysis import statistics
from attnas.analysis.schema import Schema

Term = tuple[str, ...]  # genes whose joint effect it is: one for a main effect


@dataclasses.dataclass(frozen=True)
class Means:
    """Least squares of y_fs = mu_f + seed_s + noise_fs over the cells that are there."""

    mean: np.ndarray  # (f,) of mu
    count: np.ndarray  # (f,) seeds that it has been trained with, at least 1
    noise: np.ndarray  # (f, s) residuals, 0 in missing cells
    variance: float  # of the noise; NaN where no mechanism has two seeds
    freedom: int  # of that estimate


def means(values: np.ndarray) -> Means:
    """@param values (f, s), NaN where a cell is missing; at least one in each row."""
    there = np.isfinite(values)
    count = there.sum(axis=1)
    own = np.where(there, values, 0.0).sum(axis=1) / count
    seeds = np.eye(values.shape[1])[None] * there[..., None]  # (f, s, seed)
    seeds = (seeds - seeds.sum(axis=1, keepdims=True) / count[:, None, None])[there]
    effects, _, rank, _ = np.linalg.lstsq(seeds, (values - own[:, None])[there], rcond=None)
    rest = np.where(there, values - effects, 0.0)
    mean = rest.sum(axis=1) / count
    noise = np.where(there, rest - mean[:, None], 0.0)
    if np.abs(noise).max() <= statistics.rounding(values[there]):
        noise = np.zeros_like(noise)
    freedom = int(there.sum() - len(values) - rank)
    return Means(mean, count, noise, (noise**2).sum() / freedom if freedom > 0 else np.nan, freedom)


class Factorial:
    """The genes of mechanisms and their coding by contrasts.

    A gene of k options has k - 1 orthonormal contrasts, each with mean 0 and mean square 1 over the
    options, and 0 where it is voided: its mean over the combinations that are that function. The
    contrasts of a term are the products of those of its genes.
    """

    def __init__(self, genes: pd.DataFrame, recorded: Schema):
        """@param genes     a row for each mechanism, a column for each gene, None where it is not
                            applicable; genes of one option do not count.
        @param recorded  says which options void which genes."""
        self._schema = recorded
        self.options = {gene: sorted(set(genes[gene].dropna())) for gene in genes.columns}
        self.options = {gene: own for gene, own in self.options.items() if len(own) > 1}
        functions = [self._function_of(row)
                     for row in genes[list(self.options)].itertuples(index=False)]
        self.number = {function: i for i, function in enumerate(functions)}
        self._open = [function for function in self.number if None in function]
        sizes = {gene: len(own) for gene, own in self.options.items()}
        self.combinations = math.prod(sizes.values())
        self.weights = np.array([np.prod([sizes[gene] for gene, option in
                                          zip(self.options, function) if option is None] or [1])
                                 for function in functions], dtype=float)
        self._functions = functions
        self._contrasts = {gene: self._coded(gene) for gene in self.options}

    def _function_of(self, options: Sequence[str]) -> tuple:
        return self._schema.function_of(options, list(self.options))

    @property
    def complete(self) -> bool:
        """Whether all combinations are there, each function once."""
        return (int(self.weights.sum()) == self.combinations
                and len(self.number) == len(self.weights))

    @property
    def voided(self) -> list[str]:
        """Genes that are not applicable to some mechanisms."""
        return [gene for at, gene in enumerate(self.options)
                if any(function[at] is None for function in self._functions)]

    def missing(self) -> list[tuple]:
        """Functions that are not there, their options in the order of `options`."""
        all_of_them = dict.fromkeys(self._function_of(options)
                                    for options in itertools.product(*self.options.values()))
        return [function for function in all_of_them if self._recorded_as(function) is None]

    def find(self, options: dict[str, str | None]) -> int | None:
        """The function of a combination of options, by gene; None where it is not there. An option
        of None is that of a gene without effect."""
        return self._recorded_as(self._function_of([options[gene] for gene in self.options]))

    def _recorded_as(self, function: tuple) -> int | None:
        """A function that leaves genes open is recorded under fewer options."""
        if function in self.number:
            return self.number[function]
        return next((self.number[own] for own in self._open if all(
            option is None or option == given for option, given in zip(own, function))), None)

    def terms(self, most: int | None = None) -> list[Term]:
        """Main effects, then interactions of two genes, and so on, up to those of `most`."""
        most = len(self.options) if most is None else min(most, len(self.options))
        return [term for size in range(1, most + 1)
                for term in itertools.combinations(self.options, size)]

    def contrasts(self, term: Term) -> np.ndarray:
        """(f, d) of a term, d the product of its genes' k - 1."""
        columns = np.ones((len(self.weights), 1))
        for gene in term:
            columns = np.einsum("fi,fj->fij", columns, self._contrasts[gene]).reshape(
                len(columns), -1)
        return columns

    def recorded(self, options: dict[str, str]) -> bool:
        """Whether there is a function with these options, by gene."""
        return bool(self._parts(options).any())

    def shares_of(self, options: dict[str, str]) -> np.ndarray:
        """(f,) weights, summing to 1, of the functions in the mean over all combinations with these
        options, by gene, of which there must be one; a function that voids a gene has its part in
        every option of it."""
        weights = self._parts(options)
        return weights / weights.sum()

    def _parts(self, options: dict[str, str]) -> np.ndarray:
        weights = self.weights.copy()
        for gene, option in options.items():
            at = list(self.options).index(gene)
            weights *= [1.0 if function[at] == option else
                        1.0 / len(self.options[gene]) if function[at] is None else 0.0
                        for function in self._functions]
        return weights

    def _coded(self, gene: str) -> np.ndarray:
        options = self.options[gene]
        at = list(self.options).index(gene)
        table = {option: row for option, row in zip(options, _helmert(len(options)))}
        return np.array([table[function[at]] if function[at] is not None
                         else np.zeros(len(options) - 1) for function in self._functions])


def _helmert(options: int) -> np.ndarray:
    """(k, k - 1) contrasts: columns have mean 0, mean square 1 and are orthogonal."""
    columns = np.triu(np.ones((options, options - 1)))
    columns[np.arange(1, options), np.arange(options - 1)] = -np.arange(1, options)
    return columns / np.sqrt((columns**2).mean(axis=0))


@dataclasses.dataclass(frozen=True)
class Effect:
    """A term of an analysis of variance."""

    term: Term
    freedom: int
    variance: float  # that it explains, in squared units, the noise's part subtracted
    noise: float  # the part that was subtracted
    share: statistics.Interval  # of the variance of all terms together
    f: float
    p: float  # against the noise between replicates
    p_holm: float
    p_seeds: float  # against how the term's own contrasts differ from seed to seed


def decompose(factorial: Factorial, estimate: Means, resamples: int = 2000) -> list[Effect]:
    """Exact functional analysis of variance over all combinations of options, each as likely.

        f(x) = sum over terms U of f_U(x),    V_U = mean over all combinations of f_U(x)^2

    f_U depends on the genes of U alone and averages to 0 over each of them (Hooker 2007, Hutter et
    al. 2014); the V_U add up to the variance of f. There is no surrogate: every combination has
    been measured. Noise adds to each V_U in expectation

        sum over f of (weight_f / combinations)^2 |contrasts_Uf|^2 sigma^2 / count_f

    which is subtracted, so that a term without effect has an estimate about 0, perhaps below.

    F = (Wald statistic of the hypothesis f_U = 0) / (freedom sigma^2), exact for normal noise that
    is independent from mechanism to mechanism; sigma^2 is the mean square of mechanisms by seeds,
    with its degrees of freedom counted over functions. p_seeds needs no such independence: it
    sets a term against its own interaction with the seeds, with (seeds - 1) times its freedom.

    Intervals of shares: seeds are drawn again with replacement, deviations widened by
    sqrt(n / (n - 1)), and the standard error of the n seeds is taken times Student's quantile of
    n - 1 degrees of freedom: percentiles of so few seeds would be far too narrow. Clipped to
    [0, 1]; NaN for one seed and where seeds change nothing, as all tests are. Shares of no variance
    are NaN.
    """
    seeds = estimate.noise.shape[1]
    terms = factorial.terms()
    testable = estimate.variance > 0.0
    drawn = _drawn(estimate, resamples) if testable else None
    parts, samples, tests = [], [], []
    for term in terms:
        contrasts = _weighted(factorial, term)
        variance, noise = _explained(contrasts, estimate)
        if testable:
            sample = ((drawn @ contrasts) ** 2).sum(axis=1)
            samples.append(sample - sample.mean() + variance)
            tests.append(_tests(contrasts, estimate, seeds))
        parts.append((variance, noise))
    total = _variance(parts, estimate)
    if testable:
        drawn_shares = np.array(samples) / np.sum(samples, axis=0)
        margins = stats.t.ppf(0.975, seeds - 1) * drawn_shares.std(axis=1)
        adjusted = statistics.holm([test[1] for test in tests])
    effects = []
    for i, (term, (variance, noise)) in enumerate(zip(terms, parts)):
        share = variance / total if total > 0 else 0.0 if total < 0 else np.nan
        freedom = factorial.contrasts(term).shape[1]
        if testable:
            f, p, p_seeds = tests[i]
            interval = statistics.Interval(share, max(share - margins[i], 0.0),
                                           min(share + margins[i], 1.0))
            effects.append(Effect(term, freedom, variance, noise, interval, f, p,
                                  float(adjusted[i]), p_seeds))
        else:
            effects.append(Effect(term, freedom, variance, noise,
                                  statistics.Interval(share, np.nan, np.nan),
                                  np.nan, np.nan, np.nan, np.nan))
    return effects


def shares(factorial: Factorial, estimate: Means) -> dict[Term, float]:
    """Those of decompose() alone, without tests and intervals."""
    parts = {term: _explained(_weighted(factorial, term), estimate) for term in factorial.terms()}
    total = _variance(list(parts.values()), estimate)
    return {term: part / total if total > 0 else 0.0 if total < 0 else np.nan
            for term, (part, _) in parts.items()}


def _variance(parts: list[tuple[float, float]], estimate: Means) -> float:
    """Of all terms together, the noise's part subtracted; 0 where there is no noise and the rest is
    rounding.
    """
    total, noise = (sum(each) for each in zip(*parts))
    return 0.0 if noise == 0.0 and np.sqrt(total) <= statistics.rounding(estimate.mean) else total


def _weighted(factorial: Factorial, term: Term) -> np.ndarray:
    """(f, d) contrasts of a term, each function by how many combinations it is."""
    return factorial.contrasts(term) * (factorial.weights / factorial.combinations)[:, None]


def _explained(contrasts: np.ndarray, estimate: Means) -> tuple[float, float]:
    """A term's variance without the part of the noise, and that part."""
    raw = ((estimate.mean @ contrasts) ** 2).sum()
    if estimate.freedom <= 0:
        return float(raw), 0.0
    noise = estimate.variance * ((contrasts**2).sum(axis=1) / estimate.count).sum()
    return float(raw - noise), float(noise)


def _drawn(estimate: Means, resamples: int) -> np.ndarray:
    """(resamples, f) means over seeds drawn again, deviations widened."""
    seeds = estimate.noise.shape[1]
    counts = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), resamples)
    shift = (counts / seeds - 1 / seeds) * np.sqrt(seeds / (seeds - 1))
    return estimate.mean + shift @ estimate.noise.T


def _tests(contrasts: np.ndarray, estimate: Means, seeds: int) -> tuple[float, float, float]:
    """F and p against the noise, and p against the term's interaction with the seeds."""
    root = np.sqrt(estimate.count)
    _, sizes, rows = np.linalg.svd((contrasts / root[:, None]).T, full_matrices=False)
    rows = rows[sizes > 1e-9 * sizes[0]]
    freedom = len(rows)
    square = ((rows @ (root * estimate.mean)) ** 2).sum() / freedom
    f = square / estimate.variance
    changes = ((rows @ estimate.noise) ** 2).sum() / (freedom * (seeds - 1))
    own = square / changes if np.sqrt(changes) > statistics.rounding(estimate.mean) else np.nan
    return (float(f), float(stats.f.sf(f, freedom, estimate.freedom)),
            float(stats.f.sf(own, freedom, freedom * (seeds - 1))))


@dataclasses.dataclass(frozen=True)
class Adjusted:
    """A term of a least-squares analysis of variance of type II."""

    term: Term
    freedom: int
    share: float  # of the sum of squares around the mean; shares need not add up
    f: float
    p: float
    p_holm: float


@dataclasses.dataclass(frozen=True)
class LeastSquares:
    """An analysis of variance of what happens to be there."""

    terms: list[Adjusted]
    most: int  # genes in the largest term of the model
    residual_share: float  # of the sum of squares that the model leaves unexplained
    residual_freedom: int
    option_means: dict[tuple[str, str], statistics.Interval]  # (gene, option), others averaged


def least_squares(factorial: Factorial, mean: np.ndarray,
                  covariates: dict[str, np.ndarray] | None = None) -> LeastSquares:
    """Analysis of variance of type II for mechanisms that are no full factorial.

    A term's sum of squares is what it explains beyond all terms that do not contain it; its F is
    against the residual of the whole model, which holds the noise and all higher interactions.
    Main effects and interactions of two genes, or main effects alone where those leave fewer than
    10 degrees of freedom. Means of options are those of the main effects' model. To the value of a
    mechanism a gene that is not applicable adds nothing.

    @param mean        (f,) value of each mechanism.
    @param covariates  numbers of each mechanism that take part linearly; NaN: not applicable.
    """
    lines = {(name,): np.nan_to_num(column - np.nanmean(column))[:, None]
             for name, column in (covariates or {}).items()}
    for most in (2, 1):
        blocks = {**{term: factorial.contrasts(term) for term in factorial.terms(most)}, **lines}
        residual, rank = _residual(list(blocks.values()), mean)
        freedom = len(mean) - rank
        if freedom >= 10:
            break
    total = ((mean - mean.mean()) ** 2).sum()
    total, residual = (square if np.sqrt(square / len(mean)) > statistics.rounding(mean) else 0.0
                       for square in (total, residual))
    rows = []
    for term in blocks:
        others = [block for other, block in blocks.items() if not set(term) <= set(other)]
        without, rank_without = _residual(others, mean)
        within, rank_with = _residual([*others, blocks[term]], mean)
        own = rank_with - rank_without
        f = (without - within) / own / (residual /
                                        freedom) if own and freedom > 0 and residual > 0 else np.nan
        rows.append((term, own, (without - within) / total if total > 0 else np.nan, f,
                     stats.f.sf(f, own, freedom)))
    known = [i for i, row in enumerate(rows) if np.isfinite(row[4])]
    adjusted = np.full(len(rows), np.nan)
    adjusted[known] = statistics.holm([rows[i][4] for i in known])
    return LeastSquares([Adjusted(*map(_plain, row), float(p)) for row, p in zip(rows, adjusted)],
                        most, residual / total if total > 0 else np.nan, freedom,
                        _option_means(factorial, mean, list(lines.values())))


def _plain(value):
    return float(value) if isinstance(value, np.floating) else value


def _residual(blocks: list[np.ndarray], mean: np.ndarray) -> tuple[float, int]:
    """Residual sum of squares of a model with a constant, and its rank."""
    design = np.concatenate([np.ones((len(mean), 1)), *blocks], axis=1)
    fit, _, rank, _ = np.linalg.lstsq(design, mean, rcond=1e-10)
    return float(((mean - design @ fit) ** 2).sum()), int(rank)


def _option_means(factorial: Factorial, mean: np.ndarray, lines: list[np.ndarray]) -> dict:
    blocks = [factorial.contrasts((gene,)) for gene in factorial.options]
    design = np.concatenate([np.ones((len(mean), 1)), *blocks, *lines], axis=1)
    fit, _, rank, _ = np.linalg.lstsq(design, mean, rcond=1e-10)
    freedom = len(mean) - rank
    spread = np.linalg.pinv(design.T @ design)
    variance = ((mean - design @ fit) ** 2).sum() / freedom if freedom > 0 else np.nan
    quantile = stats.t.ppf(0.975, freedom) if freedom > 0 else np.nan
    result, begin = {}, 1
    for gene, options in factorial.options.items():
        width = len(options) - 1
        for option, code in zip(options, _helmert(len(options))):
            row = np.zeros(design.shape[1])
            row[0], row[begin:begin + width] = 1.0, code
            margin = quantile * np.sqrt(variance * (row @ spread @ row))
            point = float(row @ fit)
            result[gene, option] = statistics.Interval(point, point - margin, point + margin)
        begin += width
    return result
