"""Whether, and how soon, training runs solve a task: shares with exact intervals, Kaplan and
Meier's curves, log-rank tests by permutation. What has not solved is censored at its last step. The
page of `analysis/studies/mixers.py survival`.

`python -m attnas.analysis.survival RUN...` reads names of models and prints "RATE NAME", the best
rate of their kind on runs at several.
"""

import argparse
import csv
import dataclasses
import re
import sys
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attnas.analysis import digest, figures, tuned
from attnas.analysis.digest import BadInput
from attnas.analysis.files import csv_text
from attnas.analysis.page import Bullets, Chapter, Columns, Pictures, Report
from attnas.analysis.statistics import Interval, holm, mean_interval, share_interval
from attnas.analysis.words import counted, joined, p_value, solved_text

ACCURACY = 0.9
PLACES = ("nowhere", "in attention", "in gdn", "everywhere")  # of short convolutions


@dataclasses.dataclass(frozen=True)
class Training:
    """One run of a model whose layers are attention or a recurrent mixer."""

    placement: str  # a letter a layer, A or g
    # which of PLACES describe its convolutions: two where all layers are alike
    places: tuple[str, ...]
    seed: int
    rate: float
    # the first of two validations in a row that reach ACCURACY; where there are none, the last one
    step: int
    solved: bool
    accuracy: float  # of the last validation


def share_text(count: int, of: int) -> str:
    """"4 of 5 (0.28 to 0.99)"."""
    return solved_text(count, of, *share_interval(count, of)[1:])


def kaplan_meier(steps: ArrayLike, solved: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which something is solved, ascending, and the share that is not solved behind
    each (Kaplan & Meier 1958).
    """
    steps, solved = np.asarray(steps), np.asarray(solved, bool)
    times = np.unique(steps[solved])
    return times, np.cumprod(
        [1.0 - (solved & (steps == time)).sum() / (steps >= time).sum() for time in times])


def median(steps: ArrayLike, solved: ArrayLike) -> float:
    """The step by which half is solved; infinite where the shares do not come so far."""
    times, left = kaplan_meier(steps, solved)
    return float(next((time for time, rest in zip(times, left) if rest <= 0.5 + 1e-12), np.inf))


def log_rank_scores(steps: ArrayLike, solved: ArrayLike) -> np.ndarray:
    """1 for what is solved, 0 for the rest, less Nelson and Aalen's hazard until its step: the
    sooner the more, 0 in sum.
    """
    steps, solved = np.asarray(steps), np.asarray(solved, bool)
    times = np.unique(steps[solved])
    hazards = np.array([(solved & (steps == time)).sum() / (steps >= time).sum() for time in times])
    return solved - np.array([hazards[times <= step].sum() for step in steps])


def permutation_p(values: ArrayLike, x: ArrayLike, strata: Sequence[Hashable],
                  draws: int = 9999) -> float:
    """Two-sided p that values do not go with x, x exchanged within each stratum; the statistic is
    the sum of values times x, x less its stratum's mean. With the log-rank scores of each stratum
    it is a stratified log-rank test."""
    values, x = np.asarray(values, float), np.asarray(x, float)
    generator = np.random.default_rng(0)
    own, drawn = 0.0, np.zeros(draws)
    for members in _groups(strata):
        centred = x[members] - x[members].mean()
        own += float(centred @ values[members])
        drawn += generator.permuted(np.tile(centred, (draws, 1)), axis=1) @ values[members]
    return float((1 + (np.abs(drawn) >= abs(own) - 1e-9).sum()) / (1 + draws))


def _groups(of: Sequence[Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = {}
    for i, one in enumerate(of):
        found.setdefault(one, []).append(i)
    return list(found.values())


@dataclasses.dataclass(frozen=True)
class Effect:
    """What one more of x does, within strata of a seed each. Intervals are Student's over seeds."""

    runs: int
    seeds: int
    ratio: Interval  # of the steps, those of what has not solved being its last: too near to 1 then
    soon: float  # p of the stratified log-rank test
    points: Interval  # of the share that solves
    whether: float  # p of the same test of what is solved in the end


def effect(trainings: Sequence[Training], x: Sequence[float],
           strata: Sequence[Hashable]) -> Effect | None:
    """@param strata  of equal seeds each; those in which x is the same count for nothing. @return
    None where x is the same in all.
    """
    xs = np.array(x, float)
    groups = [members for members in _groups(strata) if np.ptp(xs[members]) > 0]
    if not groups:
        return None
    steps, solved = np.array([one.step
                              for one in trainings]), np.array([one.solved for one in trainings])
    scores = np.zeros(len(trainings))
    for members in groups:
        scores[members] = log_rank_scores(steps[members], solved[members])
    kept = np.concatenate(groups)
    seeds = {trainings[i].seed for i in kept}

    def slope(values: np.ndarray) -> Interval:
        """On x within strata, of each seed."""
        found = []
        for seed in seeds:
            centred = [(members, xs[members] - xs[members].mean()) for members in groups
                       if trainings[members[0]].seed == seed]
            found.append(
                sum(own @ values[members] for members, own in centred) / sum(own @ own
                                                                             for _, own in centred))
        return mean_interval(found)

    names = [strata[i] for i in kept]
    return Effect(len(kept), len(seeds), Interval(*np.exp(slope(np.log(steps)))),
                  permutation_p(scores[kept], xs[kept], names),
                  slope(solved.astype(float)).within(-1.0, 1.0),
                  permutation_p(solved[kept], xs[kept], names))


def places_of(trainings: Sequence[Training]) -> list[str]:
    """Those of PLACES of which there are models of both mixers."""
    return [place for place in PLACES if any(one.places == (place,) for one in trainings)]


def effects(trainings: Sequence[Training]) -> list[tuple[str, Effect]]:
    """Of what is asked about placements and convolutions, as far as trainings tell; p are Holm's
    over all, soon and whether.
    """
    found = []
    for place in places_of(trainings):
        here = [one for one in trainings if place in one.places]
        count = [one.placement.count("A") for one in here]
        found += [(f"convolutions {place}: attention in the first layer, where the number of "
                   f"attention layers is given",
                   effect(here, [one.placement[0] == "A" for one in here],
                          [(one.seed, n) for one, n in zip(here, count)])),
                  (f"convolutions {place}: one more layer of attention in place of gdn",
                   effect(here, count, [one.seed for one in here]))]
    for words, before, after in (("a convolution in attention, none in "
                                  "gdn", "nowhere", "in attention"),
                                 ("a convolution in gdn, none in attention", "nowhere", "in gdn"),
                                 ("a convolution in attention, one in gdn", "in gdn",
                                  "everywhere"), ("a convolution in gdn, one in attention",
                                                  "in attention", "everywhere")):
        if not {before, after} <= {*places_of(trainings)}:
            continue
        here = [one for one in trainings if (before in one.places) != (after in one.places)]
        found.append((words,
                      effect(here, [after in one.places for one in here],
                             [(one.seed, one.placement) for one in here])))
    known = [(words, one) for words, one in found if one]
    ps = holm([p for _, one in known for p in (one.soon, one.whether)]) if known else []
    return [(words, dataclasses.replace(one, soon=float(ps[2 * i]), whether=float(ps[2 * i + 1])))
            for i, (words, one) in enumerate(known)]


def best_rates(trainings: Sequence[Training]) -> dict[tuple[str, str], float]:
    """Of each of PLACES and mixer of the first layer, A or g, the rate at which most is solved, and
    among these the soonest by the geometric mean of steps; among equal ones the most accurate, then
    the lowest."""
    found: dict[tuple[str, str], dict[float, list[Training]]] = {}
    for one in trainings:
        found.setdefault((one.places[0], one.placement[0]), {}).setdefault(one.rate, []).append(one)

    def cost(runs: list[Training]) -> tuple[float, float, float]:
        return (-float(np.mean([one.solved for one in runs])),
                float(np.mean([np.log(one.step)
                               for one in runs])), -float(np.mean([one.accuracy for one in runs])))

    return {
        group: min(sorted(rates), key=lambda rate: cost(rates[rate]))
        for group, rates in found.items()
    }


COLUMNS = ("placement", "convolutions", "seed", "rate", "step", "solved", "accuracy")


def written(trainings: Sequence[Training]) -> str:
    """As CSV, which read() takes: a row for each."""
    return csv_text(COLUMNS, ([
        one.placement, "; ".join(one.places), one.seed, f"{one.rate:g}", one.step,
        int(one.solved), f"{one.accuracy:.4f}"
    ] for one in trainings))


def read(path: str) -> list[Training]:
    """Of a run of nas-train, but for its baseline, or of a file of written(). @throws BadInput"""
    if not path.endswith(".csv"):
        run = digest.read(path)
        return [
            of_evaluation(one, run["identities"][one["identity"]]["training"]["learning_rate"])
            for one in run["evaluations"]
            if one["curve"] and one["candidate"] in run["config"]["mechanisms"]
        ]
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [
                Training(row["placement"], tuple(row["convolutions"].split("; ")), int(row["seed"]),
                         float(row["rate"]), int(row["step"]), row["solved"] == "1",
                         float(row["accuracy"])) for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: {error}, must be a file of survival.csv") from None


def model_of(name: str) -> tuple[str, tuple[str, ...]]:
    """Of a model's name its placement, and where its convolutions are."""
    layers = tuned.layers_of(name)
    placement = "".join("A" if layer.startswith("attn") else "g" for layer in layers)
    has = [{
        bool(re.search(r"conv=[1-9]", layer)) for layer, own in zip(layers, placement)
        if own == kind
    } for kind in "Ag"]
    return placement, tuple(place for place, both in zip(PLACES, ((False, False), (True, False),
                                                                  (False, True), (True, True)))
                            if all(own <= {one} for own, one in zip(has, both)))


def of_evaluation(evaluation: dict, rate: float) -> Training:
    """What a digest says of an evaluation."""
    curve = [(point["step"], point["valid"]["correct"] / point["valid"]["tokens"])
             for point in evaluation["curve"]]
    step = next(
        (step for (step, now), (_, then) in zip(curve, curve[1:]) if min(now, then) >= ACCURACY),
        None)
    return Training(*model_of(evaluation["candidate"]), digest.seed_number(evaluation["replicate"]),
                    float(rate), step or curve[-1][0], step is not None, curve[-1][1])


def whole_seeds(trainings: Sequence[Training]) -> tuple[list[Training], int]:
    """Those of seeds that all models have, in order, and how many others there are; all where no
    seed is whole.
    """
    of_seed: dict[int, set] = {}
    for one in trainings:
        of_seed.setdefault(one.seed, set()).add((one.placement, one.places))
    models = set().union(*of_seed.values())
    whole = [seed for seed, own in of_seed.items() if own == models] or list(of_seed)
    kept = sorted((one for one in trainings if one.seed in whole), key=lambda one:
                  (one.seed, one.places, one.placement))
    return kept, len(trainings) - len(kept)


def page_of(options: argparse.Namespace, command: str) -> tuple[list[str], Report, dict[str, str]]:
    """The page of runs, or of a file that was written with one."""
    trainings, going = whole_seeds([one for run in options.runs for one in read(run)])
    here, seeds = places_of(trainings), {one.seed for one in trainings}
    if not here:
        raise BadInput(f"{options.runs[0]}: no training run of a model of both mixers has a "
                       f"validation yet")
    censored = [one.step for one in trainings if not one.solved]
    number = counted(len({(one.placement, one.places) for one in trainings}), "model")
    sentences = [f"{counted(len(trainings), 'training run')} of {number}, "
                 f"{counted(len(seeds), 'seed')}. A run solves the task at the first "
                 f"of two validations in a row of at least {ACCURACY}; "
                 + (f"{len(censored)} that have not by step {max(censored)} are "
                    f"censored." if censored else "all do.")]
    if going:
        sentences.append(f"Left out are {counted(going, 'run')} of seeds that not all models have.")
    at = np.unique([0, *(one.step for one in trainings)])
    lines, groups = [], []
    for i, place in enumerate(here):
        for first in "Ag":
            runs = [
                one for one in trainings if one.places == (place, ) and one.placement[0] == first
            ]
            if not runs:
                continue
            solved = [one.solved for one in runs]
            times, left = kaplan_meier([one.step for one in runs], solved)
            groups.append(
                [f"{place}, {first} first",
                 share_text(sum(solved), len(runs)),
                 _median(runs)])
            lines.append(
                figures.Line(groups[-1][0], f"c{i}",
                             np.array([1 - [1, *left][(times <= step).sum()] for step in at])))
    sentences += [
        f"Convolutions {name}: {solved} solve, median step {step}." for name, solved, step in groups
    ]
    below = (f"Share of runs that have solved the task by a step (Kaplan and Meier), models of "
             f"both mixers, attention (A) or gdn (g) first, "
             f"by where short convolutions are; {counted(len(seeds), 'seed')}.")
    picture = figures.curves("How soon placements recall", below, at, "step", "solved", lines,
                             y_range=(-0.02, 1.04))
    rows = [[
        placement,
        *(_cell([one for one in trainings if one.placement == placement and place in one.places])
          for place in here)
    ] for placement in sorted({one.placement
                               for one in trainings}, key=lambda own: (own.count("A"), own))]
    tests = [[
        words,
        str(one.runs),
        _text(one.ratio),
        p_value(one.soon),
        _text(one.points),
        p_value(one.whether)
    ] for words, one in effects(trainings)]
    chapter = Chapter("placements", "Placement by placement", [
        Pictures({"survival.svg": picture}),
        Columns(["first layer first", *(f"convolutions {place}" for place in here)], rows),
        Columns([
            "what", "runs", "times as many steps [95 %]", "soon, p", "more solve [95 "
            "%]", "whether, p"
        ], tests),
        Bullets([
            "Cells: how many seeds solve, the median step (Kaplan and Meier), the learning "
            "rate. Models of one mixer stand in two.",
            "Intervals of shares are Clopper and Pearson's, as if runs of one seed were "
            "independent; others are Student's over seeds. p are of permutations within seeds, "
            "log-rank tests and the same of what is solved, by Holm over all of them.",
            "Ratios of steps count what has not solved with its last step: they are too near "
            "to 1 where that is often."
        ])
    ])
    report = Report.of_findings("Does placement change whether, or how soon?", sentences, [chapter],
                                command)
    return sentences, report, {"survival.csv": written(trainings)}


def _text(one: Interval) -> str:
    return f"{one.point:.2f} ({one.low:.2f} to {one.high:.2f})" if np.isfinite(
        one.low) else f"{one.point:.2f}"


def _cell(runs: Sequence[Training]) -> str:
    if not runs:
        return "-"
    return (
        f"{sum(one.solved for one in runs)} of {len(runs)}, {_median(runs)}, "
        f"{joined(sorted({f'{one.rate:g}' for one in runs}))}")


def _median(runs: Sequence[Training]) -> str:
    found = median([one.step for one in runs], [one.solved for one in runs])
    return f"{found:.0f}" if np.isfinite(found) else f"> {max(one.step for one in runs)}"


if __name__ == "__main__":
    rates = best_rates([one for run in sys.argv[1:] for one in read(run)])
    for model in sys.stdin.read().split():
        letters, kinds = model_of(model)
        # gdn alone is of two kinds
        own = next(rates[kind, letters[0]] for kind in kinds if (kind, letters[0]) in rates)
        print(f"{own:g}", model)
