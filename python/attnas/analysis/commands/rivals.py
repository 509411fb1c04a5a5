"""Runs the searches of other libraries on a table, as a comparison to lay beside one's own.

    analysis/rivals.py TABLE [-o FILE.sqlite] [--like COMPARISON | --objectives NAME[,NAME...]]
                       [--budget N] [--asks N] [--seeds N] [--first-seed S]
                       [--mode noisy|mean|paired] [--only NAME]... [--workers N]
    analysis/rivals.py TABLE --prune-from STEP --like COMPARISON [-o FILE.sqlite] [--seeds N]

DEAP's genetic algorithm (one objective) and NSGA-II, and Optuna's TPE, NSGA-II and random sampler,
each as the library has it by default, but for the population: every evolutionary algorithm gets
that of nas-compare's, and Optuna's NSGA-II its own default as well, in a row of its own. They
search the same combinations of options and see the same recorded noise of a mechanism as searches
of nas-compare with the same seed; a candidate that comes again answers as before and is free, and a
search may ask 50 times as often as it may train.
The libraries know no constraints: a comparison that has some is refused.
TPE, which asks again and again for what it believes best, may use all of that and take minutes for
one search: --asks 465 keeps it to five times. A stopped command goes on where it was. Then:

    analysis/compare.py ours/comparison.sqlite FILE.sqlite

With --prune-from, Optuna's median pruner and successive halving stop trainings at the validations
of the table from STEP on, beside random proposals and none of them: one objective, perplexity, by
one replicate for a whole search (mode paired), at equal steps paid. Beside searches by rungs:

    analysis/rivals.py TABLE --prune-from 150 --like rungs/comparison.sqlite -o pruners.sqlite
    analysis/compare.py rungs/comparison.sqlite pruners.sqlite --by steps
"""

import argparse
import dataclasses
import inspect
import multiprocessing
import os
import pathlib
import platform
import random
import shlex
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from attnas.analysis import pruners, sqlite_files, tables
from attnas.analysis.arguments import positive, program
from attnas.analysis.factorial import Factorial
from attnas.analysis.pruners import Spent
from attnas.analysis.replay import replay_order
from attnas.analysis.rival_store import RivalStore
from attnas.analysis.tables import MISSING, Table, TableError
from attnas.analysis.words import counted, duration

try:
    import deap
    from deap import algorithms, base, tools
except ImportError:
    deap = None
try:
    import optuna
except ImportError:
    optuna = None

PACKAGES = {"DEAP": "python3-deap", "Optuna": "python3-optuna"}
ASKS_PER_TRAINING = 50
FAILURE = 10.0  # scaled value of what could not be measured: ten times the range beyond the best
MODES = ("noisy", "mean", "paired")
SECONDS_BETWEEN_WORDS = 20
POPULATION = 12  # of every evolutionary algorithm: that of the published search, and of ours


@dataclasses.dataclass(frozen=True)
class Goal:
    """An objective with what the table says of it; arrays in minimisation form, NaN where missing.
    """

    record: dict  # name, key, unit, maximise, best, worst
    cells: np.ndarray  # (m, r) what a search sees
    believed: np.ndarray  # (m,) mean over the replicates: what it sees in the mode `mean`
    truth: np.ndarray  # (m,) the same on the test split where the table holds it for all
    split: str | None = None  # that the truth is of; None: no model's scores decide

    @property
    def failure(self) -> float:
        """The value of what could not be measured."""
        sign = -1.0 if self.record["maximise"] else 1.0
        best, worst = sign * self.record["best"], sign * self.record["worst"]
        return best + FAILURE * (worst - best)


def goal(table: Table, record: dict) -> Goal:
    """An objective by its record; without a range, it gets that of the table's means.

    @throws TableError  where the table does not hold it.
    """
    name, key = record["name"], record.get("key", record["name"])
    sign = -1.0 if record.get("maximise", key in table.schema.maximised) else 1.0
    analytic, split = table.schema.is_analytic(key), None
    shape = table.status.shape
    usable = np.where(table.usable, 1.0, np.nan)
    with np.errstate(invalid="ignore"):
        if key == "perplexity":
            cells, split = np.exp(table.valid_nll[..., -1]) * usable, "validation"
        elif key in table.values and not analytic and not key.startswith("test_"):
            # Scores; whatever the objective is called here, they are recorded under its key.
            cells, split = table.values[key] * usable, "validation"
        elif name in table.measured:
            cells = np.broadcast_to(table.measured[name][:, None], shape) * usable
        elif name in table.values and analytic:
            cells = table.values[name] * usable
        else:
            known = sorted({*table.measured, *(value for value in table.values
                                               if not value.startswith("test_"))})
            raise TableError(f"{table.path}: no objective {name}; recorded are {', '.join(known)}")
        believed = truth = _mean(table, cells)
        test = _scored_on_test(table, key)
        if test is not None and np.isfinite(test[table.usable]).all():
            truth, split = _mean(table, test * usable), "test"
    known = believed[np.isfinite(believed)]
    if not len(known):
        raise TableError(f"{table.path}: no mechanism has {name} of all its replicates")
    best, worst = float(known.min()), float(known.max())
    if sign < 0:
        best, worst = worst, best
    full = {"unit": "1", "best": best, "worst": worst, **record, "name": name, "key": key,
            "maximise": sign < 0}
    return Goal(full, *(sign * values for values in (cells, believed, truth)), split)


def _scored_on_test(table: Table, key: str) -> np.ndarray | None:
    """(m, r): what the scores of the test split come to; None where the table does not hold it."""
    sums = table.values
    if key == "perplexity":
        return np.exp(table.test_nll)
    if key == "accuracy" and "test_correct" in sums:
        return sums["test_correct"] / sums["test_tokens"]
    if key == "published_perplexity" and "test_batches" in sums:
        return np.exp(sums["test_batch_mean_nll"] / sums["test_batches"])
    length = table.facts.get("test_bytes_per_token", 0.0)
    if key == "bits_per_byte" and length > 0 and not np.any(sums.get("test_unknown_tokens", 1)):
        return table.test_nll / np.log(2) / length
    return None


def _mean(table: Table, cells: np.ndarray) -> np.ndarray:
    """(m,) over the recorded replicates; NaN where one of them failed, as mean_evaluation in
    src/table/answer.cpp and the truth of problems/tabular.cpp have it: what diverges with four of
    five seeds is not to compete by its fifth."""
    recorded = table.status != MISSING
    return np.where(recorded, cells, 0.0).sum(axis=1) / recorded.sum(axis=1)


class Study:
    """What all searches have in common: the table, its space, the objectives, the budget."""

    def __init__(self, table: Table, goals: list[Goal], trainings: int, asks: int, mode: str):
        self.table, self.goals, self.trainings, self.mode = table, goals, trainings, mode
        self.asks, self.whole = asks, int(table.steps[-1])  # steps of a whole training
        space = Factorial(table.genes, table.schema)
        if not (space.options and space.complete):
            raise TableError(f"{table.path}: has {counted(len(space.number), 'function')}, must "
                             f"have all that the {space.combinations:,} combinations of its genes "
                             "make; libraries search all of them")
        self.options = space.options
        self._space = space
        self.fitness = self._stacked("cells")  # (m, r, objectives)
        self.believed = self._stacked("believed")  # (m, objectives)
        if mode != "mean":  # where a replicate that is missing answers as a failure
            self.believed[(table.status == MISSING).any(axis=1)] = [one.failure for one in goals]
        self.truth = self._stacked("truth")

    def _stacked(self, what: str) -> np.ndarray:
        """Values of all objectives on the last axis; failures where there are none."""
        values = [np.where(np.isfinite(getattr(one, what)), getattr(one, what), one.failure)
                  for one in self.goals]
        return np.stack(values, axis=-1)

    def mechanism(self, genotype: dict[str, str]) -> int:
        """The number of the function that a combination of options is."""
        return self._space.find(genotype)


class Oracle:
    """Answers one search by whole trainings and keeps what it asked for and saw."""

    def __init__(self, study: Study, seed: int):
        self._study, self._seed = study, seed
        self._answers: dict[int, np.ndarray] = {}
        self._seconds = 0.0
        self.inside = 0.0  # processor seconds spent here
        self.candidates, self.trained, self.seconds, self.fitness, self.steps = [], [], [], [], []

    def __call__(self, genotype: dict[str, str]) -> tuple[float, ...]:
        """Fitness in minimisation form. @throws Spent."""
        start = time.process_time()
        try:
            return self._answer(self._study.mechanism(genotype))
        finally:
            self.inside += time.process_time() - start

    def _answer(self, mechanism: int) -> tuple[float, ...]:
        study = self._study
        if len(self.candidates) >= study.asks:
            raise Spent(f"{study.asks} asks")
        if mechanism not in self._answers:
            if len(self._answers) >= study.trainings:
                raise Spent(f"{study.trainings} evaluations")
            self._answers[mechanism] = self._train(mechanism)
        answer = self._answers[mechanism]
        self.candidates.append(mechanism)
        self.trained.append(len(self._answers))
        self.seconds.append(self._seconds)
        self.fitness.append(answer)
        self.steps.append(len(self._answers) * study.whole)
        return tuple(float(value) for value in answer)

    def _train(self, mechanism: int) -> np.ndarray:
        study, table = self._study, self._study.table
        if study.mode == "mean":
            self._seconds += float(np.nan_to_num(np.nanmean(table.seconds[mechanism])))
            return study.believed[mechanism]
        name = table.mechanisms[mechanism] if study.mode == "noisy" else ""
        replicate = replay_order(self._seed, name, table.drawn)[0]
        self._seconds += float(np.nan_to_num(table.seconds[mechanism, replicate]))
        return study.fitness[mechanism, replicate]


@dataclasses.dataclass(frozen=True)
class Rival:
    """A search algorithm of a library."""

    name: str
    library: str
    settings: dict
    search: Callable[[Study, Oracle | pruners.Curves, int], None]  # until Spent is thrown
    prunes: bool = False  # whether it is told of each validation


def rivals(several: bool) -> list[Rival]:
    """All algorithms of the libraries that are installed, for one or several objectives."""
    found = []
    if deap is not None:
        version = deap.__version__
        if not several:
            found.append(Rival(f"GA (DEAP {version})", "DEAP",
                               {"algorithm": "eaSimple", "population": POPULATION,
                                "selection": "selTournament, 3", "crossover": "cxTwoPoint, 0.5",
                                "mutation": "mutUniformInt, 0.2, each gene 1 / genes"},
                               _deap_ga))
        found.append(Rival(f"NSGA-II (DEAP {version})", "DEAP",
                           {"algorithm": "selNSGA2", "population": POPULATION,
                            "selection": "selTournamentDCD", "crossover": "cxTwoPoint, 0.9",
                            "mutation": "mutUniformInt, each gene 1 / genes"}, _deap_nsga2))
    if optuna is not None:
        version = ".".join(optuna.__version__.split(".")[:2])
        default = inspect.signature(optuna.samplers.NSGAIISampler).parameters["population_size"]
        for short, sampler, given in (
                ("TPE", "TPESampler", {}),
                ("NSGA-II", "NSGAIISampler", {"population_size": POPULATION}),
                (f"NSGA-II of {default.default}", "NSGAIISampler", {}),
                ("random", "RandomSampler", {})):
            made = getattr(optuna.samplers, sampler)
            found.append(Rival(f"{short} (Optuna {version})", "Optuna",
                               {"sampler": sampler, "version": optuna.__version__,
                                **_defaults(made), **given}, _optuna_search(made, given)))
    return found


def pruning_rivals(first: int) -> list[Rival]:
    """Optuna's pruners beside random proposals. @throws TableError  without Optuna."""
    if optuna is None:
        raise TableError(f"--prune-from: Optuna is not installed (Debian package "
                         f"{PACKAGES['Optuna']})")
    version = ".".join(optuna.__version__.split(".")[:2])
    return [
        Rival(
            f"{name} (Optuna {version})", "Optuna",
            {"sampler": "RandomSampler", "pruner": name, "version": optuna.__version__, **settings},
            pruners.search(optuna, made, optuna.samplers.RandomSampler), prunes=True)
        for name, (made, settings) in pruners.pruners(optuna, first).items()
    ]


def _deap_toolbox(study: Study, oracle: Oracle):
    """Individuals are lists of options' numbers."""
    sizes = [len(options) for options in study.options.values()]

    class Fitness(base.Fitness):
        weights = (-1.0,) * len(study.goals)

    class Individual(list):
        def __init__(self, numbers):
            super().__init__(numbers)
            self.fitness = Fitness()

    def evaluate(individual):
        return oracle({gene: options[number] for (gene, options), number in
                       zip(study.options.items(), individual)})

    toolbox = base.Toolbox()
    toolbox.register("individual", lambda: Individual(random.randrange(size) for size in sizes))
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    toolbox.register("evaluate", evaluate)
    toolbox.register("mate", tools.cxTwoPoint)
    toolbox.register("mutate", tools.mutUniformInt, low=[0] * len(sizes),
                     up=[size - 1 for size in sizes], indpb=1 / len(sizes))
    return toolbox


def _deap_ga(study: Study, oracle: Oracle, seed: int):
    random.seed(seed)
    toolbox = _deap_toolbox(study, oracle)
    toolbox.register("select", tools.selTournament, tournsize=3)
    algorithms.eaSimple(toolbox.population(n=POPULATION), toolbox, cxpb=0.5, mutpb=0.2,
                        ngen=study.asks, verbose=False)


def _deap_nsga2(study: Study, oracle: Oracle, seed: int):
    random.seed(seed)
    toolbox = _deap_toolbox(study, oracle)

    def evaluated(individuals):
        for individual in individuals:
            if not individual.fitness.valid:
                individual.fitness.values = toolbox.evaluate(individual)
        return individuals

    population = tools.selNSGA2(evaluated(toolbox.population(n=POPULATION)), POPULATION)
    for _ in range(study.asks):
        parents = tools.selTournamentDCD(population, POPULATION)
        children = algorithms.varAnd(parents, toolbox, cxpb=0.9, mutpb=1.0)
        population = tools.selNSGA2(population + evaluated(children), POPULATION)


def _defaults(made: Callable) -> dict:
    """The settings that a sampler has where nothing is given, those that JSON can hold."""
    return {
        name: parameter.default for name, parameter in inspect.signature(made).parameters.items()
        if isinstance(parameter.default, (bool, int, float, str))
    }


def _optuna_search(sampler: Callable, settings: dict):
    def search(study: Study, oracle: Oracle, seed: int):
        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def objective(trial):
            return oracle({gene: trial.suggest_categorical(gene, options)
                           for gene, options in study.options.items()})

        made = optuna.create_study(sampler=sampler(seed=seed, **settings),
                                   directions=["minimize"] * len(study.goals))
        made.optimize(objective, n_trials=study.asks + 1)

    return search


def run(rival: Rival, study: Study, seed: int) -> tuple:
    """One search as a row of the store, but for the algorithm's number."""
    oracle = pruners.Curves(study.table, study.trainings, study.asks,
                            seed) if rival.prunes else Oracle(study, seed)
    start = time.process_time()
    try:
        rival.search(study, oracle, seed)
        ended_by = "its algorithm"
    except Spent as spent:
        ended_by = str(spent)
    own = time.process_time() - start - oracle.inside
    return (seed, len(oracle.candidates), max(own, 0.0), ended_by,
            np.asarray(oracle.candidates, "<i4").tobytes(),
            np.asarray(oracle.trained, "<i4").tobytes(),
            np.asarray(oracle.seconds, "<f8").tobytes(),
            np.asarray(oracle.fitness, "<f8").tobytes(),
            np.asarray(oracle.steps, "<i8").tobytes())


class Searches:
    """The searches of some libraries, each in one of several processes."""

    def __init__(self, chosen: list[Rival], study: Study):
        self.chosen, self.study = chosen, study

    def __call__(self, which: tuple[int, int]) -> tuple[int, tuple]:
        number, seed = which
        return number, run(self.chosen[number], self.study, seed)

    def each(self, wanted: list[tuple[int, int]], workers: int) -> Iterator[tuple[int, tuple]]:
        """The number of its algorithm and the row of each search, as they end."""
        if workers == 1:
            yield from map(self, wanted)
            return
        global _SEARCHES
        # what the libraries made cannot be pickled: processes get it as they begin
        _SEARCHES = self
        with futures.ProcessPoolExecutor(workers, multiprocessing.get_context("fork"),
                                         signal.signal,
                                         (signal.SIGINT, signal.SIG_IGN)) as processes:
            try:
                for search in futures.as_completed(
                    [processes.submit(_one_search, which) for which in wanted]):
                    yield search.result()
            except BaseException:  # what is begun would be waited for
                processes.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise


_SEARCHES: Searches | None = None


def _one_search(which: tuple[int, int]) -> tuple[int, tuple]:
    assert _SEARCHES is not None
    return _SEARCHES(which)


def record(store: RivalStore, searches: Searches, seeds: range, workers: int):
    """Runs the searches that are not recorded yet, and says how far they are."""
    known = store.known()
    # Algorithms in turn: their searches take different times, and the time left is of them all.
    wanted = [(number, seed) for seed in seeds for number in range(len(searches.chosen))
              if (number, seed) not in known]
    if known:
        print(f"{len(seeds) * len(searches.chosen) - len(wanted)} searches are there "
              f"already", file=sys.stderr, flush=True)
    start = said = time.monotonic()
    for done, (number, row) in enumerate(searches.each(wanted, workers), 1):
        store.add(number, row)
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_WORDS:
            said = now
            left = (now - start) / done * (len(wanted) - done)
            print(f"{done} of {len(wanted)} searches, {duration(now - start)} elapsed, "
                  f"{duration(left)} left", file=sys.stderr, flush=True)
    store.finish(seeds)


def _like(path: str) -> dict:
    """What a comparison was about, and its first seed."""
    file = pathlib.Path(path)
    if not file.is_file():
        raise TableError(f"--like {file}: no such file; give a comparison.sqlite")
    try:
        database = sqlite_files.open_read_only(file)
        meta = sqlite_files.meta(database)
        if "draws" in meta:
            raise TableError(f"--like {file}: its searches were answered by draws of the table, "
                             f"must be by the recorded one (draws: 0)")
        first, = database.execute("SELECT min(seed) FROM searches").fetchone()
        database.close()
        budget, whole = meta["budget"], meta["table"].get("training_steps", 0)
        by_steps = bool(budget.get("train_steps") and whole)
        return {"objectives": meta["objectives"], "by_steps": by_steps,
                "budget": budget["train_steps"] // whole if by_steps else budget["trainings"],
                "mode": meta["table"]["mode"], "sha256": meta["table"]["sha256"],
                "reference_point": meta["reference_point"], "first_seed": first or 0,
                "constraints": (meta.get("config") or {}).get("constraints") or []}
    except (sqlite3.DatabaseError, KeyError) as error:
        raise TableError(f"--like {file}: not a comparison: {error}") from None


def _chosen(only: list[str], several: bool, prune_from: int | None) -> list[Rival]:
    missing = [] if prune_from else [
        name for name, module in (("DEAP", deap), ("Optuna", optuna)) if module is None
    ]
    for name in missing:
        print(f"rivals.py: {name} is not installed and left out (Debian package "
              f"{PACKAGES[name]})", file=sys.stderr)
    found = pruning_rivals(prune_from) if prune_from else rivals(several)
    if not found:
        raise TableError("no library to run; install one of the Debian packages "
                         f"{', '.join(PACKAGES.values())}")
    chosen = [rival for rival in found if not only or any(
        rival.name.lower().startswith(word.lower()) for word in only)]
    if not chosen:
        raise TableError(f"--only {', '.join(only)}: none of "
                         f"{'; '.join(rival.name for rival in found)}")
    return chosen


@program
def main(arguments: list[str]) -> None:
    """The program; nothing is written where input is bad."""
    parser = argparse.ArgumentParser(prog="rivals.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="(default: rivals.sqlite)")
    parser.add_argument("--like", metavar="COMPARISON",
                        help="whose objectives, ranges, budget, mode and first seed are taken")
    parser.add_argument("--objectives", default="perplexity", metavar="NAMES",
                        help="by commas, without --like (default: %(default)s)")
    parser.add_argument("--budget", type=positive, metavar="N",
                        help="trainings of a search (default: 93)")
    parser.add_argument("--asks", type=positive, metavar="N",
                        help="that a search may make (default: 50 times its trainings)")
    parser.add_argument("--seeds", type=positive, default=100, metavar="N",
                        help="searches of each algorithm (default: %(default)s)")
    parser.add_argument("--workers", type=positive, default=len(os.sched_getaffinity(0)),
                        metavar="N",
                        help="searches at a time (default: one per core, %(default)s here)")
    parser.add_argument("--first-seed", type=int, metavar="S", help="(default: 42)")
    parser.add_argument("--mode", choices=MODES, help="what answers (default: noisy)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="algorithms whose name begins so")
    parser.add_argument("--prune-from", type=positive, metavar="STEP", help="Optuna's pruners "
                                                                            "instead")
    options = parser.parse_args(arguments)
    like = _like(options.like) if options.like else {}
    if like.get("constraints"):
        raise TableError(f"--like {options.like}: has constraints "
                         f"({', '.join(like['constraints'])}), which the libraries' searches "
                         "would not respect")
    table = tables.load([options.table])
    if like and table.sha256 != like["sha256"]:
        raise TableError(f"--like {options.like}: is about another table (SHA-256 "
                         f"{like['sha256'][:12]}) than {table.path} ({table.sha256[:12]})")
    names = [name.strip() for name in options.objectives.split(",")]
    if again := [name for name in names if names.count(name) > 1]:
        raise TableError(f"--objectives: {again[0]} is given twice, must be once")
    records = like.get("objectives") or [{"name": name} for name in names]
    trainings = options.budget or like.get("budget") or 93
    mode = options.mode or like.get("mode", "paired" if options.prune_from else "noisy")
    if options.prune_from and (mode != "paired"
                               or [record.get("key", record["name"])
                                   for record in records] != ["perplexity"]):
        raise TableError("--prune-from stops trainings by their perplexity in the mode paired: "
                         "objectives "
                         f"{', '.join(record['name'] for record in records)}, mode {mode}")
    if options.prune_from:
        pruners.check(table, options.prune_from)
    study = Study(table, [goal(table, record) for record in records], trainings,
                  options.asks or ASKS_PER_TRAINING * trainings, mode)
    chosen = _chosen(options.only, len(records) > 1, options.prune_from)
    first = options.first_seed if options.first_seed is not None else like.get("first_seed", 42)
    meta = {
        "kind": "comparison", "version": 1, "objectives": [one.record for one in study.goals],
        "truth_splits": {one.record["name"]: one.split for one in study.goals if one.split},
        "config": {"command": f"analysis/rivals.py {shlex.join(arguments)}"},
        "reference_point": like.get("reference_point", 1.1), "budget": {
            "trainings": trainings, "asks": study.asks,
            "train_steps": trainings *
                           study.whole if options.prune_from or like.get("by_steps") else 0
        }, "table": {
            "name": table.facts.get("name", ""), "file": table.path, "sha256": table.sha256,
            "mechanisms": len(table.mechanisms), "replicates": table.drawn, "mode": mode,
            "training_steps": study.whole
        }, "environment": {
            "python": platform.python_version(), "numpy": np.__version__,
            **({"deap": deap.__version__} if deap else {}),
            **({"optuna": optuna.__version__} if optuna else {})
        }
    }
    file = pathlib.Path(options.output or "rivals.sqlite")
    store = RivalStore(file, meta, list(zip(table.mechanisms, study.truth, study.believed)),
                       [(rival.name, rival.library, rival.settings) for rival in chosen])
    finished = f"{file}.part has every finished search; the same command continues."
    try:
        record(store, Searches(chosen, study), range(first, first + options.seeds), options.workers)
    except KeyboardInterrupt:
        print(f"\nStopped. {finished}", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenProcessPool:
        print(f"A process was killed, perhaps for its memory (--workers). "
              f"{finished}", file=sys.stderr)
        raise SystemExit(75) from None
    finally:
        store.close()
    print(f"written to {file}: {options.seeds} searches each of "
          f"{'; '.join(rival.name for rival in chosen)}")
