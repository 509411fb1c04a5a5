#!/usr/bin/env python3
"""What attnas judge keeps of ideas without effect, and what it costs to keep those with one.

    analysis/studies/judge.py FOLDER

Simulates campaigns, runs normal with deviation 1, all independent; also with one in eight failing,
or ending 10 worse; beside rules that are in use. Then ideas with an effect, in deviations of a run,
held against an oracle, which knows it: its t-test has the same power at the same level.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import numpy as np
from scipy import optimize, stats

from attnas.analysis.files import csv_text
from attnas.analysis.page import Chapter, Columns, Report
from attnas.judge import sequential

CAMPAIGNS, IDEAS, MOST = 200, 100, 60
RULES = {"lower once": 1, "best of 3 means": 3, "fixed t-test": 5}  # runs of an idea
HEADS = (["rule", "runs", "with a false keep", "false keeps", "runs an idea"],
         ["runs", "effect", "idea", "level", "most", "power", "pairs", "oracle", "times"])
KINDS = ("normal", "one in eight fails", "one in eight ends 10 worse")


def runs(rng, shape: tuple, kind: str, effect: float = 0.0) -> np.ndarray:
    """Values, less is better; NaN of what fails."""
    values, hit = rng.normal(-effect, 1.0, shape), rng.random(shape) < 0.125 * (kind != KINDS[0])
    return np.where(hit, np.nan if kind == KINDS[1] else values + 10.0, values)


def judged(a: np.ndarray, b: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(kept, pairs) of ideas a against champions b, (n, most) each: trial.py's rules, in arrays."""
    fails, most = (np.isnan(a), np.isnan(b)), a.shape[1]
    d = np.where(fails[0] | fails[1], 0.0, a - b)
    n = (~(fails[0] | fails[1])).cumsum(axis=1)
    mean = d.cumsum(axis=1) / n
    error = np.sqrt(((d * d).cumsum(axis=1) / n - mean * mean) / (n - 1))
    p = np.where(n > 1, np.exp(-sequential.log_evidence(n, mean / error)), 1.0)
    p_fails = sequential.p_fails_more(*((fails[i] & ~fails[1 - i]).cumsum(axis=1) for i in (0, 1)))
    worse = (p_fails <= 0.05) | (p <= 0.05) & (mean > 0)
    better = (p <= level[:, None]) & (mean < 0) & (p_fails > 0.5)
    needed = np.array([sequential.quantile(most, one) for one in level])[:, None] / np.sqrt(most)
    left = (n >= sequential.FIRST) & (needed * error * np.sqrt(n) >= error - mean)
    first = np.where((ends := better | worse | left).any(axis=1), ends.argmax(axis=1), most - 1)
    return (better & ~worse)[np.arange(len(a)), first], first + 1


def campaigns(rng: np.random.Generator, rule: str, kind: str) -> list:
    """A row: of campaigns of ideas without effect the share with a keep, keeps, runs an idea."""
    shape, spent = (CAMPAIGNS, RULES.get(rule, MOST)), 0.0
    champion, kept_by = runs(rng, shape, kind), [[] for _ in range(CAMPAIGNS)]
    for idea in range(1, IDEAS + 1):
        own, pairs = runs(rng, shape, kind), np.array(RULES.get(rule, 0) / 2)
        if rule in RULES:
            kept = own.mean(axis=1) < champion.mean(axis=1)
            if rule == "fixed t-test":
                kept &= stats.ttest_rel(own, champion, axis=1).pvalue < 0.05
            champion = np.where(kept[:, None], own, champion)
        else:
            level = np.array([sequential.level(idea, one, rule) for one in kept_by])
            kept, pairs = judged(own, runs(rng, shape, kind), level)
        for i in np.flatnonzero(kept):
            kept_by[i].append(idea)
        spent += 2.0 * pairs.mean() / IDEAS
    keeps = np.array([*map(len, kept_by)])
    return [rule, kind, (keeps > 0).mean(), keeps.mean(), spent]


def costs(rng: np.random.Generator, effect: float, idea: int, kind: str) -> list:
    """A row: power, pairs, and those of the oracle. The most are twice what it needs for 0.9."""
    def missing(n: float, wanted: float) -> float:  # of the power of a two-sided paired t-test
        t = stats.t.ppf(1.0 - level / 2.0, n - 1)
        return stats.nct.sf(t, n - 1, effect * (n / 2.0)**0.5) - wanted

    level = sequential.level(idea, [], "fwer")
    shape = (2000, 2 * int(np.ceil(optimize.brentq(missing, 2.05, 5e3, 0.9))))
    kept, pairs = judged(runs(rng, shape, kind, effect), runs(rng, shape, kind),
                         np.full(shape[0], level))
    oracle = np.ceil(optimize.brentq(missing, 2.05, 5e3, min(kept.mean(), 0.999)))
    spent = pairs.mean()
    return [kind, effect, idea, level, shape[1], kept.mean(), spent, oracle, spent / oracle]


def main(folder: str) -> None:
    """The program."""
    rng, _ = np.random.default_rng(1), np.seterr(all="ignore")
    nulls = [campaigns(rng, rule, kind) for kind in KINDS for rule in (*RULES, "fwer", "fdr")]
    paid = [costs(rng, effect, idea, kind) for kind in KINDS[:2] for effect in (0.5, 1.0, 2.0)
            for idea in (1, 10, 100)]
    once, fwer = (max(row[2] for row in nulls if row[0] == rule) for rule in (*RULES, "fwer")[::3])
    said = [f"Of {CAMPAIGNS} campaigns of {IDEAS} ideas without effect attnas judge keeps one in "
            f"{100 * fwer:.1f} % at most, what is lower once is kept in up to {100 * once:.0f} %.",
            f"An effect takes at most {max(row[-1] for row in paid):.2f} times an oracle's pairs."]
    tables = (("nulls", "Ideas without effect", HEADS[0], nulls),
              ("effects", "Ideas with an effect", HEADS[1], paid))
    report = Report.of_findings("What does a campaign keep?", said, [
        Chapter(key, title, [Columns(head, [[f"{cell:.3g}" if isinstance(cell, float) else str(cell)
                                             for cell in row] for row in rows])])
        for key, title, head, rows in tables], f"analysis/studies/judge.py {folder}")
    beside = {f"{key}.csv": csv_text(head, rows) for key, _, head, rows in tables}
    print(*said, report.write(Path(folder), "judge", beside), sep="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
