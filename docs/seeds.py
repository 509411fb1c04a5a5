#!/usr/bin/env python3
"""seeds.py: when do further seeds pay? Writes analysis/studies/records/seeds_pay/seeds.csv from the packed tables, in a minute of a core.

Random search spends a budget of training runs on candidates with five seeds each, or on five times as many with one, and returns the one
with the least mean perplexity. The share of pairs of searches in which five seeds return a better mechanism, by the mean perplexity over all
its seeds, ties half: of each of 40 redrawn tables (seeds drawn with repetition within each mechanism), their mean and the middle 95 %.
A table is a task for each step at which its runs were validated, as if they ended there. `icc`: the share of the variance of ln perplexity
that is between mechanisms; `solved`: of runs with a perplexity below 1.02; `normal`: the same mechanisms with normal noise of the same
variance in place of their seeds.
"""

import csv
import math
import pathlib
import random
import sqlite3
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
TASKS = (("recall", 100), ("recall", 200), ("recall", 300), ("recall", 500), ("text", 200), ("text", 600), ("text", 1200))
BUDGETS = (10, 20, 40, 93)
SEEDS, DRAWS, PAIRS, REPLICATES = 5, 40, 200, 5


def trained(table, step):
    """ln perplexity on validation by mechanism and seed."""
    rows = {}
    with sqlite3.connect(f"file:{ROOT}/problems/tables/{table}.table?mode=ro", uri=True) as store:
        for mechanism, nll in store.execute("SELECT mechanism, nll / tokens FROM curves WHERE step = ? "
                                            "ORDER BY mechanism, replicate", (step,)):
            rows.setdefault(mechanism, []).append(nll)
    return list(rows.values())


def variances(rows):
    """Between mechanisms and within one, of the seeds that all have."""
    within = statistics.fmean(statistics.variance(row[:REPLICATES]) for row in rows)
    means = statistics.variance(statistics.fmean(row[:REPLICATES]) for row in rows)
    return means - within / REPLICATES, within


def found(rows, truth, chosen, seeds, rng):
    """What a search returns, by the truth."""
    return truth[min(chosen, key=lambda mechanism: sum(rng.sample(rows[mechanism], seeds)))]


def pays(rows, truth, budget, rng):
    """Share of pairs in which five seeds are better than one."""
    rows = [[math.exp(value) for value in row] for row in rows]
    wins = 0.0
    for _ in range(PAIRS):
        five = found(rows, truth, rng.sample(range(len(rows)), budget // SEEDS), SEEDS, rng)
        one = found(rows, truth, rng.sample(range(len(rows)), budget), 1, rng)
        wins += 1.0 if five < one else 0.5 if five == one else 0.0
    return wins / PAIRS


def interval(values):
    """Mean and the middle 95 %."""
    ordered = sorted(values)
    cut = len(ordered) // 40
    return statistics.fmean(ordered), ordered[cut], ordered[-1 - cut]


def lines():
    """Rows of the file."""
    for table, step in TASKS:
        rng = random.Random(step)
        rows = trained(table, step)
        between, within = variances(rows)
        truth = [statistics.fmean(math.exp(value) for value in row) for row in rows]
        runs = [value for row in rows for value in row[:REPLICATES]]
        solved = sum(value < math.log(1.02) for value in runs) / len(runs)
        for budget in BUDGETS:
            drawn = [pays([rng.choices(row, k=len(row)) for row in rows], truth, budget, rng) for _ in range(DRAWS)]
            normal = [pays([[rng.gauss(math.log(mean), within ** 0.5) for _ in range(SEEDS)] for mean in truth], truth, budget, rng)
                      for _ in range(DRAWS)]
            yield [table, step, budget, round(between / (between + within), 2), round(solved, 3),
                   *(round(value, 2) for value in (*interval(drawn), *interval(normal)))]


if __name__ == "__main__":
    folder = ROOT / "analysis" / "results" / "seeds_pay"
    folder.mkdir(exist_ok=True)
    with open(folder / "seeds.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("table step budget icc solved pays low high normal normal_low normal_high".split())
        writer.writerows(lines())
