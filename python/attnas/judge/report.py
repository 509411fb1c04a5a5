"""What a judgement says: sentences, JSON and a page."""

from __future__ import annotations

import json
import math
from typing import Any

from attnas.analysis.statistics import share_interval
from attnas.analysis.words import (
    MINUS, NOTHING, counted, duration, number, p_column, p_value, percent)
from attnas.judge import sequential
from attnas.judge.trial import State, Trial


def change(trial: Trial, state: State, place: int = 0) -> tuple[list[float], str]:
    """A difference with its interval, more is better, and its unit: percent of the baseline's mean,
    or the metric's own."""
    paired, unit, scale = state.paired[place], "", -1.0
    seen = [one.values[place] for one in trial.outcomes.values() if one.values]
    if seen and (min(seen) > 0.0 or max(seen) < 0.0):  # no value changes the sign
        unit, scale = " %", -100.0 / abs(state.baseline[place])
    return [scale * paired.mean, scale * paired.high, scale * paired.low], unit


def _size(value: float, unit: str) -> str:
    return percent(abs(value) / 100, 2) if unit else number(abs(value))


def range_words(trial: Trial, state: State, place: int = 0) -> str:
    """between 1.2 % better and 0.4 % worse."""
    if not math.isfinite(state.paired[place].high):
        return "no interval yet"
    (_, low, high), unit = change(trial, state, place)
    if low == high == 0.0:
        return "no difference in any pair"
    best, worst = (f"{_size(end, unit)} {'better' if end > 0 else 'worse'}" for end in (high, low))
    return f"between {best} and {worst}"


def sentence(trial: Trial, state: State) -> str:
    """What became of a candidate."""
    against = f"the {trial.names[0]}" if trial.names[0] == "baseline" else trial.names[0]
    if state.decision == "worse" and state.p_fails <= sequential.ALPHA:
        text = (f"{state.name} is worse: it fails more often, {state.failed} of "
                f"{counted(state.pairs, 'run')}, {against} {state.baseline_failed}, "
                f"{p_value(state.p_fails)}")
    elif state.decision in ("better", "worse"):
        (mean, low, high), unit = change(trial, state)
        ends = sorted((abs(low), abs(high)))
        text = (f"{state.name} is {state.decision} than {against} by {_size(mean, unit)} "
                f"({_size(ends[0], unit)} to {_size(ends[1], unit)}), "
                f"{counted(state.paired[0].n, 'pair')}, {p_value(state.p)}")
    elif state.decision == "within":
        bound = f"{100 * trial.rules.within:g} %" if trial.rules.relative else \
            f"{trial.rules.within:g}"
        text = (f"{state.name} is within {bound} of {against}, {range_words(trial, state)}, "
                f"{counted(state.paired[0].n, 'pair')}")
    else:
        text = f"{state.name} is undecided {state.why}: {range_words(trial, state)}"
        if (more := trial.needed(state)) and not trial.rules.hopeless:
            text += f"; --most {more} would decide, were mean and deviation to stay"
    others = "".join(f" {metric.name}: {range_words(trial, state, place)}."
                     for place, metric in enumerate(trial.metrics) if place)
    return f"{text}.{_failures(state, against)}{others}"


def _failures(state: State, against: str) -> str:
    if state.failed or state.baseline_failed:
        why = f", the last by {state.reasons[-1]}" if state.reasons else ""
        return (f" {state.failed} of its {counted(state.pairs, 'run')} failed{why}; of {against} "
                f"{state.baseline_failed}.")
    most = share_interval(0, state.pairs, 0.9).high
    return (f" No run failed; of {state.pairs} that excludes a share above {100 * most:.0f} %."
            if state.decision in ("better", "within") else "")


def lines(trial: Trial, pairs: int) -> list[str]:
    """Of each candidate that was looked at after so many pairs, how it stands."""
    seed = trial.rules.first_seed + pairs - 1
    likely, most = trial.seconds_left()
    left = f"{duration(min(likely, most))} left, at most {duration(most)}"

    def shown(variant: int) -> str:
        outcome = trial.outcomes[variant, seed]
        return f"failed: {outcome.failed}" if outcome.failed else f"{outcome.values[0]:.6g}"

    return [f"pair {pairs}: {state.name} {shown(variant)}, {trial.names[0]} {shown(0)}; "
            f"{range_words(trial, state)}; {state.decision or left}"
            for variant, state in enumerate(trial.states, 1) if state.pairs == pairs]


def rows(trial: Trial) -> list[dict[str, Any]]:
    """A record of each candidate, for programs; what is not known is None."""
    def told(state: State, place: int) -> dict[str, Any]:
        values, unit = change(trial, state, place)
        paired = state.paired[place]
        found = dict(zip(("better_by", "low", "high", "baseline", "p"), (
            *values, state.baseline[place], paired.p if place else state.p)))
        return {"unit": unit.strip() or "its own", "pairs": paired.n, **{
            name: value if math.isfinite(value) else None for name, value in found.items()}}

    return [{"candidate": state.name, "decision": state.decision, "pairs": state.pairs,
             "failed": state.failed, "baseline_failed": state.baseline_failed,
             "p_fails_more": state.p_fails, "sentence": sentence(trial, state),
             "metrics": {metric.name: told(state, place)
                         for place, metric in enumerate(trial.metrics)}} for state in trial.states]


def json_text(trial: Trial) -> str:
    """All of it, with every run."""
    runs = [{"variant": trial.names[variant], "seed": seed, "seconds": one.seconds,
             "values": one.values, "failed": one.failed or None}
            for (variant, seed), one in sorted(trial.outcomes.items())]
    return json.dumps({"baseline": trial.names[0], "level": trial.rules.level,
                       "candidates": rows(trial), "runs": runs}, indent=1) + "\n"


def _cells(trial: Trial, state: State) -> list[str]:
    cells = [state.name]
    for place in range(len(trial.metrics)):
        values, unit = change(trial, state, place)
        mean, low, high = (f"{value:+.2f}".replace("-", MINUS) if math.isfinite(value) else NOTHING
                           for value in values)
        cells.append(f"{mean}{unit} ({low} to {high})")
    return [*cells, p_column(state.p), f"{state.pairs}", f"{state.failed}", state.decision]


def _heads(trial: Trial) -> list[str]:
    return ["candidate", *(one.name for one in trial.metrics), "p", "n", "failed", "verdict"]


def page_text(trial: Trial, command: str) -> str:
    """A page."""
    from attnas.analysis import figures
    from attnas.analysis.page import Chapter, Columns, Pictures, Report
    name, unit = trial.metrics[0].name, change(trial, trial.states[0])[1] or " in its unit"
    shown = [figures.Row(state.name, "c0", *change(trial, state)[0]) for state in trial.states
             if math.isfinite(state.paired[0].high)]
    picture = figures.intervals("Difference from the baseline",
                                "95 % intervals that hold at any number of pairs",
                                f"better{unit}: {name}", shown, [(0.0, "no change")])
    pictures = [Pictures({"differences.svg": picture})] if shown else []
    runs = [[f"{seed}", trial.names[variant], f"{one.seconds:.1f} s",
             one.failed or ", ".join(f"{value:.6g}" for value in one.values)]
            for (variant, seed), one in sorted(trial.outcomes.items(), key=lambda x: x[0][::-1])]
    return Report.of_findings("Is the change better?", [sentence(trial, one)
                                                        for one in trial.states], [
        Chapter("candidates", "Candidates", [
            *pictures, Columns(_heads(trial), [_cells(trial, one) for one in trial.states])]),
        Chapter("runs", "Runs", [Columns(["seed", "variant", "time", name], runs, "All runs")])
    ], command).html()
