"""Whether mechanisms differ by more than the noise between training seeds.

Replicates of equal number share their initial values and data order as far as their architectures
allow (common random numbers), so that mechanisms with two shared replicates are compared by a
paired t test, others with two replicates each by Welch's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from attnas.analysis.run import Candidate, Run
from attnas.analysis.statistics import holm, paired_test, rounding

SIGNIFICANCE = 0.05


@dataclass
class Difference:
    """Mean of a minus mean of b, in the objective's own sense, with a 95 % interval."""

    a: Candidate
    b: Candidate
    value: float
    low: float
    high: float
    p: float
    n: int  # pairs, or the smaller sample
    paired: bool
    p_holm: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether it is distinguished from zero after Holm's correction."""
        return self.p_holm < SIGNIFICANCE


def difference(run: Run, a: Candidate, b: Candidate, objective: int) -> Difference | None:
    """The difference of two candidates; None where there are too few replicates, or one measurement
    is in all of them. Where nothing varies but by rounding, which says nothing of how far off
    another seed would be, p is the smallest of a test of signs, of ranks where seeds are not
    shared; 0 of values that no seed changes."""
    if run.measured_once(objective):
        return None
    of_a, of_b = run.replicates(a, objective), run.replicates(b, objective)
    exact = run.objectives[objective].source == "analytic"  # as FLOPs, which no seed changes
    shared = sorted(of_a.keys() & of_b.keys())
    if len(shared) >= 2:
        x, y = (np.array([values[replicate] for replicate in shared]) for values in (of_a, of_b))
        (value, low, high), p = paired_test(x - y, rounding(x, y), exact)
        return Difference(a, b, float(value), float(low), float(high), p, len(shared), True)
    if min(len(of_a), len(of_b)) < 2:
        return None
    x, y = np.array(list(of_a.values())), np.array(list(of_b.values()))
    value = float(x.mean() - y.mean())
    if max(np.ptp(x), np.ptp(y)) <= rounding(x, y):
        value = 0.0 if abs(value) <= rounding(x, y) else value
        p = 1.0 if value == 0 else 0.0 if exact else 2.0 / math.comb(len(x) + len(y), len(x))
        return Difference(a, b, value, value, value, p, min(len(x), len(y)), False)
    variances = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    error = math.sqrt(sum(variances))
    freedom = error**4 / (variances[0] ** 2 / (len(x) - 1) + variances[1] ** 2 / (len(y) - 1))
    margin = float(stats.t.ppf(0.975, freedom)) * error
    p = float(2 * stats.t.sf(abs(value) / error, freedom))
    return Difference(a, b, value, value - margin, value + margin, p, min(len(x), len(y)), False)


def _adjusted(found: list[Difference]) -> list[Difference]:
    if found:
        for each, p in zip(found, holm([each.p for each in found])):
            each.p_holm = float(p)
    return found


def one_measurement(run: Run, objective: int) -> str:
    """Why nothing is compared by an objective that was measured once of each mechanism, without a
    full stop.
    """
    return (f"Of each mechanism there is one measurement of {run.objectives[objective].name}, "
            f"which its replicates share: how far two "
            "measurements would lie apart is not known, and no p can be given")


def from_baseline(run: Run, objective: int) -> list[Difference]:
    """Every comparable candidate against the baseline, Holm over all of them, in the ranking's
    order."""
    if run.baseline is None:
        return []
    found = [difference(run, candidate, run.baseline, objective) for candidate in run.comparable
             if candidate.name != run.baseline.name]
    return _adjusted([each for each in found if each is not None])
