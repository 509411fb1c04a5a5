"""Rows of a comparison that were trained at several learning rates with the same seeds: each row at
a rate of its own.

A rate is chosen for each seed by the row's other seeds on the validation split, so that no luck of
a seed chooses what it is judged by; judged is the test split. Every row has as many trials.
"""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from attnas.analysis import statistics, tables
from attnas.analysis.statistics import Interval
from attnas.analysis.tables import Table, TableError

FEWEST_SEEDS = 2  # one to choose by, one to judge by
# what a row is judged by, and whether more is better
VALUES = {"accuracy": True, "perplexity": False}
SAME = ("corpus_hash", "model", "numerical_mode", "results_version", "semantics", "run_seed")
SIZES = ("window", "globals", "stride", "block", "key_width", "favor_features")


@dataclasses.dataclass(frozen=True)
class Row:
    """One mechanism with n seeds that were trained at all k rates."""

    name: str
    label: str
    # (k, n) of the validation split; the worst, an infinity, where it was not trained to the end
    valid: np.ndarray
    # (k, n) of the test split; of what was not trained to the end the worst: no answer right, or
    # infinity
    test: np.ndarray
    sizes: dict[str, float]  # of the model: objectives that no seed changes, and parameters

    @property
    def seeds(self) -> int:
        """n"""
        return self.valid.shape[1]

    @property
    def family(self) -> str:
        """The label without the sizes that a family grows by."""
        without = re.sub(rf"[{{,](?:{'|'.join(SIZES)})=\d+", lambda found: "{"
                         if found[0][0] == "{" else "", self.label)
        return without.replace("{,", "{").replace("{}", "")


@dataclasses.dataclass(frozen=True)
class Tuned:
    """Rows at k rates, ascending."""

    rows: list[Row]
    rates: list[float]
    value: str
    baseline: str  # name of its row
    facts: dict
    left_out: list[str]  # labels of rows with fewer seeds than can be judged

    @property
    def better(self) -> int:
        """1 where more is better, else -1."""
        return 1 if VALUES[self.value] else -1

    def own(self, row: Row) -> np.ndarray:
        """(n,): each seed on the test split, at the rate that the row's other seeds do best with;
        the lowest of equal ones.
        """
        found = np.empty(row.seeds)
        for seed in range(row.seeds):
            chosen = (self.better * np.delete(row.valid, seed, axis=1).mean(axis=1)).argmax()
            found[seed] = row.test[chosen, seed]
        return found

    def favourite(self, row: Row) -> int:
        """Which rate has the best mean over all seeds."""
        return int((self.better * row.valid.mean(axis=1)).argmax())

    def at_an_end(self, row: Row) -> bool:
        """Whether the best rate is the lowest or the highest, and no other is as good: what lies
        beyond is not known.
        """
        means = self.better * row.valid.mean(axis=1)
        inside = means[1:-1].max(initial=-np.inf)
        return len(means) > 1 and bool(max(means[0], means[-1]) > inside)

    def mean(self, row: Row) -> Interval:
        """The mean of own() for other seeds: Student's interval; of accuracies that of
        mean_with_failures(), the plateau being chance.
        """
        found = self.own(row)
        if not VALUES[self.value]:
            return statistics.mean_interval(found)
        chance = (self.facts.get("chance") or {}).get("accuracy", np.nan)
        line = statistics.failure_line([1.0 - self.own(one) for one in self.rows], 1.0 - chance)
        return statistics.mean_with_failures(found, 1.0 - found > line,
                                             chance if np.isfinite(line) else np.nan).within(
                                                 0.0, 1.0)

    def row(self, name: str) -> Row | None:
        """By its name."""
        return next((row for row in self.rows if row.name == name), None)


def read(runs: Sequence[str], value: str) -> Tuned:
    """Runs (folders, their store.sqlite or results.json) of the same rows with the same seeds,
    which differ in the learning rate. Runs that are not finished count with what they have: a row
    has the seeds that it has at every rate.

    @throws BadInput  where runs are not of that kind, or no row has two seeds.
    """
    loaded = sorted((tables.load([run]) for run in runs), key=_rate)
    rates = [_rate(one) for one in loaded]
    if len(set(rates)) < len(rates):
        raise TableError(f"{', '.join(runs)}: the rates are "
                         f"{', '.join(f'{rate:g}' for rate in rates)}, must be each once")
    first = loaded[0]
    for one in loaded[1:]:
        for key in SAME:
            if one.facts.get(key) != first.facts.get(key):
                raise TableError(f"{one.path}: {key} is {one.facts.get(key)}, must be that of "
                                 f"{first.path}, {first.facts.get(key)}")
        if _without_rate(one) != _without_rate(first):
            raise TableError(f"{one.path}: differs from {first.path} in training beside the rate")
    names = [name for name in first.mechanisms if all(name in one.mechanisms for one in loaded)]
    baseline = first.facts.get("baseline") or names[0]
    rows, left_out = [], []
    labels = [label(name, baseline) for name in names]
    for name, short in zip(names, labels):
        row = _row(name, short if labels.count(short) == 1 else name, loaded, value)
        rows.append(row) if row.seeds >= FEWEST_SEEDS else left_out.append(row.label)
    missing = {name for one in loaded for name in one.mechanisms} - {*names}
    left_out += [label(name, baseline) for name in sorted(missing)]
    if not rows:
        raise TableError(f"{', '.join(runs)}: no row has {FEWEST_SEEDS} seeds at every rate yet")
    return Tuned(rows, rates, value, baseline, first.facts, left_out)


def _rate(table: Table) -> float:
    rate = table.facts.get("training", {}).get("learning_rate")
    if rate is None:
        raise TableError(f"{table.path}: does not say its learning rate")
    return float(rate)


def _without_rate(table: Table) -> dict:
    return {key: value for key, value in table.facts["training"].items() if key != "learning_rate"}


def _row(name: str, label_: str, loaded: Sequence[Table], value: str) -> Row:
    """With the seeds that ended, well or not, at every rate."""
    places = [one.mechanisms.index(name) for one in loaded]
    ended = [{
        number for number, status in zip(one.numbers, one.status[place]) if status != tables.MISSING
    } for one, place in zip(loaded, places)]
    seeds = sorted(set.intersection(*ended))
    valid, test = (np.empty((len(loaded), len(seeds))) for _ in range(2))
    sizes: dict[str, float] = {}
    for k, (one, place) in enumerate(zip(loaded, places)):
        cells = [one.numbers.index(number) for number in seeds]
        usable = one.usable[place, cells]
        found = {key: values[place, cells] for key, values in one.values.items()}
        if any(f"test_{key}" not in found for key in ("nll", "correct", "tokens")):
            raise TableError(f"{one.path}: the test split was not scored, must be "
                             f"(training.score_test)")
        if value == "accuracy":
            valid[k] = np.where(usable, one.valid_accuracy[place, cells, -1], -np.inf)
            test[k] = np.where(usable,
                               found["test_correct"] / np.maximum(found["test_tokens"], 1.0), 0.0)
        else:
            valid[k] = np.where(usable, np.exp(one.valid_nll[place, cells, -1]), np.inf)
            test[k] = np.where(usable, np.exp(found["test_nll"]), np.inf)
        sizes |= {key: float(values[usable][0]) for key, values in found.items()
                  if usable.any() and key in ("parameters", "flops", "state_bytes")}
        sizes |= {
            key: float(values[place]) for key, values in one.measured.items()
            if np.isfinite(values[place])
        }
    return Row(name, label_, valid, test, sizes)


def layers_of(name: str) -> list[str]:
    """The layers of a model's name, equal neighbours one by one."""
    layers = []
    for layer in name.split("/")[1:] if name.startswith("model") else name.split("/"):
        count, rest = re.fullmatch(r"(?:(\d+)\*)?(.*)", layer).groups()
        layers += [rest] * int(count or 1)
    return layers


def period(name: str) -> int:
    """After how many layers a model begins anew: 1 where all are alike, their number where it is no
    cycle.
    """
    layers = layers_of(name)
    return next(p for p in range(1,
                                 len(layers) + 1)
                if len(layers) % p == 0 and layers == layers[:p] * (len(layers) // p))


def label(name: str, baseline: str) -> str:
    """A name of a model layer by layer, without its frame and what the baseline has of short
    convolutions and feed-forward layers: "gdn", "swa{window=8}", "gdn/gdn/attn/gdn",
    "conv+none"."""
    common = layers_of(baseline)[0]
    layers = [
        _mixer(layer, _convolution(common)) + _feed_forward(layer, common)
        for layer in layers_of(name)
    ]
    return layers[0] if len(set(layers)) == 1 else "/".join(layers)


def _convolution(layer: str) -> str:
    found = re.search(r"conv=\d+", layer)
    return found[0] if found else "conv=0"


def _feed_forward(layer: str, common: str) -> str:
    """"+none" where the other layer has another one."""
    own, other = (re.search(r"\+[^+]*$|$", one)[0] for one in (layer, common))
    return "" if own == other else own or "+gelu"


def _mixer(layer: str, common: str) -> str:
    """One layer's mixer by its usual name, without what a comparison's frame says."""
    mixer, genes, _ = re.fullmatch(r"([^{+]*)(?:\{([^}]*)\})?(\+.*)?", layer).groups()
    left = {
        gene for gene in (genes or "").split(",")
        if gene and not gene.startswith(("dropout=", "conv="))
    }
    if _convolution(layer) != common and mixer in ("attn", "recurrent"):
        left.add(_convolution(layer))
    for alias, own in ALIASES:
        if mixer == own[0] and own[1] <= left:
            mixer, left = alias, left - own[1]
            break
    return mixer + (f"{{{','.join(sorted(left))}}}" if left else "")


ALIASES = [(alias, (mixer, set(genes.split(",")))) for alias, mixer, genes in (
    ("kda", "recurrent", "gating=swish_gate,decay=channel,update=delta"),
    ("gdn2", "recurrent", "gating=sigmoid_gate,decay=channel,update=delta2"),
    ("gdn", "recurrent", "gating=swish_gate,decay=scalar,update=delta"),
    ("gla", "recurrent", "gating=swish_gate,decay=channel"),
    ("retnet", "recurrent", "gating=swish_gate,position=rope,decay=fixed"),
    ("deltanet", "recurrent", "update=delta"),
    ("ssd", "recurrent", "decay=scalar"),
    ("performer", "recurrent", "feature=favor"),
    ("linear", "recurrent", "feature=elu1"),
    ("based", "recurrent", "feature=taylor2"),
    ("swa", "attn", "pattern=window"))]
