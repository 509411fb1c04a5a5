"""The comparison of pairs that holds however often one looks at it.

The same as src/statistics/sequential.hpp, whose formulas, ranges and sources hold here: of n
differences with mean m, standard deviation s and t = sqrt(n) m / s,

    E_n = A^(-1/2) ((1 + t^2 / (n - 1)) / (1 + t^2 / (A (n - 1))))^(n / 2),   A = 1 + 4 n

exceeds 1 / alpha at any n with a probability of alpha at most where there is no effect, so that
1 / E_n is a p value. Functions of n and t take arrays, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from attnas.analysis.statistics import rounding

ALPHA = 0.05
FIRST = 4  # the least number of pairs that are within a bound
MOST_NEEDED = 1000  # pairs that are looked for


class Paired(NamedTuple):
    """Mean of n differences a - b, its standard error, its interval, and p of no difference."""

    n: int
    mean: float
    error: float
    low: float
    high: float
    p: float


def log_evidence(n, t):
    """ln E_n; n at least 2."""
    free, a = n - 1.0, 1.0 + 4.0 * n
    return 0.5 * (n * (np.log1p(t * t / free) - np.log1p(t * t / (a * free))) - np.log(a))


def quantile(n: int, alpha: float) -> float:
    """The |t| at which E_n = 1 / alpha; infinite where no t reaches it."""
    a = 1.0 + 4.0 * n
    c = (math.sqrt(a) / alpha) ** (2.0 / n) if n > 1 else math.inf
    return math.sqrt((n - 1.0) * (c - 1.0) / (1.0 - c / a)) if c < a else math.inf


def compare(a: np.ndarray, b: np.ndarray, alpha: float = ALPHA) -> Paired:
    """a - b, pair by pair. Of pairs that all differ by the same p is 2^(1 - n), by their signs."""
    n = len(a)
    if n < 2:
        mean = float(a[0] - b[0]) if n else math.nan
        return Paired(n, mean, math.inf, -math.inf, math.inf, 1.0)
    differences, least = a - b, rounding(a, b)
    mean = float(differences.mean())
    if np.ptp(differences) <= least:
        mean = 0.0 if abs(mean) <= least else mean
        return Paired(n, mean, 0.0, mean, mean, 2.0 ** (1 - n) if mean else 1.0)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    half = quantile(n, alpha) * error
    p = float(min(1.0, np.exp(-log_evidence(n, mean / error))))
    return Paired(n, mean, error, mean - half, mean + half, p)


def p_beyond(paired: Paired, bound: float) -> float:
    """p of a mean at least `bound` from 0; 1 where the mean itself is."""
    left = bound - abs(paired.mean)
    if paired.n < 2 or not left > 0.0:
        return 1.0
    if paired.error == 0.0:
        return 2.0 ** (1 - paired.n)
    return float(min(1.0, np.exp(-log_evidence(paired.n, left / paired.error))))


def pairs_to_decide(paired: Paired, alpha: float, bound: float = 0.0) -> int | None:
    """The least number of pairs above n that decides, were mean and deviation to stay."""
    if paired.n < 2 or not 0.0 < paired.error < math.inf:
        return None
    size, deviation = abs(paired.mean), paired.error * math.sqrt(paired.n)
    for n in range(paired.n + 1, MOST_NEEDED + 1):
        half = quantile(n, alpha) * deviation / math.sqrt(n)
        if half <= size or size + half <= bound:
            return n
    return None


def p_fails_more(only, other):
    """p that one of two fails no more often than the other, of pairs in which one of them fails:
    `only` the first, `other` the second. Against q = P(the first | one fails) <= 1 / 2 stands q
    uniform on (1 / 2, 1), whose likelihood ratio is at most 1 in the mean, at any number of pairs:

        E = 2^(a + b + 1) B(a + 1, b + 1) P(Beta(a + 1, b + 1) > 1 / 2)
    """
    log_e = (only + other + 1) * math.log(2.0) + special.betaln(only + 1, other + 1)
    return np.minimum(1.0, np.exp(-log_e) / special.betainc(other + 1, only + 1, 0.5))


def level(idea: int, kept: list[int], kind: str, alpha: float = ALPHA) -> float:
    """The level at which idea number `idea`, from 1, of a campaign may be kept, where those in
    `kept` were. Shares g_t = 20 / ((t + 19) (t + 20)) of alpha add up to it over all ideas; after t
    of them 20 / (t + 20) of it is left.

    fwer: a false keep at all has probability alpha at most. alpha g_t, and the level of the idea
        before where that was kept, which so is not spent (online fallback: Tian & Ramdas 2021,
        Statistical Methods in Medical Research 30(4)).
    fdr: false keeps are a share of alpha of all keeps, in expectation. alpha g_t (1 + keeps)
        (e-LOND: Xu & Ramdas 2024, Online multiple testing with e-values, AISTATS).
    """
    def share(t: int) -> float:
        return 20.0 / ((t + 19.0) * (t + 20.0))

    before = [one for one in kept if one < idea]
    if kind == "fdr":
        return alpha * share(idea) * (1 + len(before))
    first = idea
    while first - 1 in before:
        first -= 1
    return alpha * sum(share(one) for one in range(first, idea + 1))
