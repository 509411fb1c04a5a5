"""Reads finished searches, whoever ran them: runs (`store.sqlite`, or a run's folder) and
comparisons of many searches on one table (`comparison.sqlite`). Nothing is written.

Values are in minimisation form: an objective that is maximised has its sign turned round.
Candidates of all stores share one numbering, by name.
"""

import collections
import contextlib
import dataclasses
import json
import pathlib
import sqlite3
from collections.abc import Iterable

import numpy as np

from . import belief, digest, sqlite_files
from .digest import BadInput, Objective
from .schema import PENALTY, schema


class StoreError(BadInput):
    """A store that cannot be read, or that cannot stand beside the others. Names the file."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    """All candidates that the stores name, n of them."""

    names: list[str]
    labels: list[str]  # for people
    truth: np.ndarray | None  # (n, m): ground truth, for reports only; inf where unknown
    believed: np.ndarray | None  # (n, m): the mean of what a search may see; None = not recorded


@dataclasses.dataclass(frozen=True)
class Search:
    """One search; arrays have an entry for each of its asks, in order."""

    algorithm: str
    seed: int
    candidates: np.ndarray  # numbers into Searches.candidates
    # what is charged so far, this ask included: training runs, or their steps (load)
    trained: np.ndarray
    charged: np.ndarray  # training runs that this ask began
    seconds: np.ndarray  # seconds of training charged so far
    believed: np.ndarray  # (asked, m): of the candidate, after each ask; inf while nothing is
    truth: np.ndarray | None  # (asked, m): what is true of the candidates asked for
    labels: list[str]  # of all candidates, by number
    search_seconds: float  # the algorithm's own time; nan = not recorded
    replicates: int  # that a table has of each candidate, drawn one by one; 0 = it met none twice
    # by candidate's number (m,): means over fresh seeds, perplexity of the test split; of a run
    # with a re-test
    retested: dict
    draw: int | None = None  # of the table, that answered it; None = the recorded one did
    # its own, counted as `trained`; what it trained beyond belongs to its answer; 0 = not recorded
    budget: float = 0


@dataclasses.dataclass(frozen=True)
class Source:
    """A file that was read."""

    path: str
    kind: str  # "run", "comparison"
    table: dict | None  # name, file, sha256, ... of the table behind a comparison
    config: dict


@dataclasses.dataclass(frozen=True)
class Searches:
    """All that was read."""

    objectives: list[Objective]
    reference_point: float  # of the hypervolume over scaled objectives, in each of them
    searches: list[Search]
    candidates: Candidates
    # that a search was given, as `trained` counts; the most that one spent, where unlimited
    budget: int
    sources: list[Source]
    remarks: list[str]  # what a reader should know, in words
    by: str = "trainings"  # what they spend, see load()
    # Tables redrawn from the recorded one, which answered in turn: "tables", how many, and their
    # "seed"; None where it did itself.
    draws: dict | None = None

    def scaled(self, points: np.ndarray) -> np.ndarray:
        """Points (..., m) in minimisation form over the objectives' ranges."""
        columns = [goal.scaled(points[..., i]) for i, goal in enumerate(self.objectives)]
        return np.stack(columns, axis=-1)


def load(paths: list[str], force: bool = False, by: str | None = None) -> Searches:
    """Reads stores and puts their searches side by side.

    @param paths  run stores, comparison stores, or their folders; at least one.
    @param force  put runs on different data, or whose models, training or objectives have different
        settings, beside each other all the same; a remark says so.
    @param by  "trainings": what a search spends are training runs that it begins; "steps": their
        steps, in whole training runs, for searches that do not train all to the end; None: what
        their budgets limit.
    @throws StoreError  where a file is no such store or damaged, where stores differ in their
        objectives, tables or data, or where steps are wanted and not recorded.
    """
    if not paths:
        raise StoreError("no store was given")
    read = [_read(pathlib.Path(path)) for path in paths]
    if by is None:
        by = "steps" if all(store.train_steps and _has_steps(store)
                            for store in read) else "trainings"
    if by == "steps":
        for store in read:
            _count_steps(store)
    for store in read[1:]:
        _require_comparable(read[0], store)
    runs = [store for store in read if store.source.kind == "run"]
    forced = []
    for store in runs[1:]:
        if difference := _another_question(runs[0], store):
            if not force:
                raise StoreError(f"{difference}; their values cannot be compared (--force does)")
            forced.append(f"Beware, these values cannot be compared: {difference}.")
    _name_runs(runs)
    numbers: dict[str, int] = {}
    for store in read:
        for name in store.names:
            numbers.setdefault(name, len(numbers))
    candidates = _merged_candidates(read, numbers)
    searches = [search for store in read for search in _searches(store, numbers, candidates)]
    _require_different(searches)
    if not searches:
        raise StoreError(f"{paths[0]}: holds no search that asked for anything")
    budgets = [store.budget for store in read if store.budget]
    budget = min(budgets) if budgets else int(
        np.ceil(max(search.trained[-1] for search in searches)))
    return Searches(read[0].objectives, read[0].reference_point, searches, candidates, budget,
                    [store.source for store in read], forced + _remarks(read), by, read[0].draws)


@dataclasses.dataclass
class _Store:
    """One file as read: candidates and values by its own numbering."""

    source: Source
    objectives: list[Objective]
    reference_point: float
    names: list[str]
    labels: list[str]
    truth: np.ndarray | None
    truth_splits: dict  # by objective that scores decide: "test" or "validation"; empty: not said
    believed: np.ndarray | None
    table: dict  # what answered: its sha256, mode, ...; empty where training runs did
    settings: dict  # of a run, see _settings()
    budget: int  # 0 = none recorded
    # fields of Search, candidates by this store's numbers; and steps, as charged so far
    searches: list[dict]
    train_steps: int  # of a search's budget; 0 = none
    whole: int  # steps of a whole training run; 0 = not recorded
    draws: dict | None  # see Searches
    # of a comparison: how many searches of each algorithm were asked for; None = not recorded
    wanted: dict[str, int | None]


def _has_steps(store: _Store) -> bool:
    return store.whole > 0 and all(search["steps"] is not None for search in store.searches)


def _count_steps(store: _Store) -> None:
    """What searches have spent, and their budget, in steps of training over those of a whole run.
    """
    if not _has_steps(store):
        raise StoreError(f"{store.source.path}: records no steps of training; nas-compare and "
                         f"runs that train do")
    for search in store.searches:
        search["trained"] = search["steps"] / store.whole
    store.budget = store.train_steps // store.whole


def _read(path: pathlib.Path) -> _Store:
    try:
        if (path / "comparison.sqlite").is_file():
            path = path / "comparison.sqlite"
        if path.is_dir():
            return _read_run(str(path / "store.sqlite"), digest.read(path))
        if path.suffix == ".json":
            return _read_run(str(path), digest.read(path))
        if not path.is_file():
            raise StoreError(f"{path}: no such file; give a run's folder, its store.sqlite or "
                             "results.json, or a comparison.sqlite")
        with contextlib.closing(sqlite_files.open_read_only(path)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if {"meta", "algorithms", "candidates", "searches"} <= tables:
                return _read_comparison(str(path), database)
        if {"meta", "asks", "evaluations"} <= tables:
            return _read_run(str(path), digest.read(path))
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path}: cannot be read as a store: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: damaged: {type(error).__name__}: {error}") from None
    raise StoreError(f"{path}: neither the store of a run nor a comparison: it holds the tables "
                     f"{', '.join(sorted(tables)) or '(none)'}")


def _points(rows: Iterable, objectives: int) -> np.ndarray:
    """Rows of numbers as an array (n, objectives); what is null or missing is inf."""
    rows = list(rows)
    points = np.full((len(rows), objectives), np.inf)
    for point, row in zip(points, rows):
        if row is not None:
            point[:] = [np.inf if value is None else value for value in row]
    return np.where(np.isnan(points), np.inf, points)


def _read_run(file: str, own: dict) -> _Store:
    if not own["objectives"][0]["key"]:
        raise StoreError(f"{file}: the run ended before its first evaluation")
    objectives, asks = digest.objectives(own), _asks(own)
    truth, labels, table = own["truth"] or {}, own["labels"], own["facts"].get("table") or {}
    names = list(dict.fromkeys([*(ask["candidate"] for ask in asks), *truth]))
    numbers = {name: number for number, name in enumerate(names)}
    config = own["config"]
    search = {
        "algorithm": _method(config), "seed": int(config.get("seed", 0)),
        "candidates": np.array([numbers[ask["candidate"]] for ask in asks], dtype=np.int64),
        "trained": np.array([ask["trained"] for ask in asks],
                            dtype=np.int64), "charged": np.diff([ask["trained"] for ask in asks],
                                                                prepend=0),
        "seconds": np.array([ask["seconds"] for ask in asks]), "believed": _points(
            (ask["believed"] for ask in asks), len(objectives)), "search_seconds": np.nan,
        "replicates": _drawn(table), "steps": None, "retested": {
            numbers[name]: point for name, point in _retested(own, objectives).items()
            if name in numbers
        }
    }
    whole = 0 if table else int(config.get("training", {}).get("steps", 0))
    if whole:
        search["steps"] = _steps(own, asks)
    _require_ascending(file, search["algorithm"]["name"], search)
    budget = config.get("budget", {})
    return _Store(Source(file, "run", None, config), objectives, float(own["reference_point"]),
                  names, [labels.get(name, name) for name in names],
                  _points(map(truth.get, names), len(objectives)) if truth else None,
                  own["truth_splits"] or {}, None, table, _settings(own),
                  int(budget.get("evaluations", 0)), [search], int(budget.get("train_steps",
                                                                              0)), whole, None, {})


def _method(config: dict) -> dict:
    """How a run searched: its algorithm's settings, and those of rungs, where it has some."""
    algorithm = dict(config.get("algorithm", {"name": "unknown"}))
    if fidelity := config.get("fidelity"):
        algorithm.update(fidelity, name=f"{algorithm['name']} by rungs")
    return algorithm


# Settings on which no result of a search depends, as src/report/files.cpp has them, and the
# baseline, which is none of it.
WITHOUT_EFFECT = frozenset({
    "name", "budget", "cluster", "retest", "rates", "controls", "baseline", "evaluation.workers",
    "evaluation.array", "evaluation.device", "evaluation.keep_models", "evaluation.failure_window",
    "evaluation.retry_failed", "evaluation.retry_out_of_memory", "evaluation.retry_timed_out",
    "evaluation.retry_crashed", "evaluation.retry_lost", "training.checkpoint_minutes",
    "fidelity.checkpoint_space", "fidelity.audit"})
# What tells searches apart by itself: their names and seeds, see _method(). Plug-ins are places of
# files.
KNOWN_APART = frozenset({"algorithm", "fidelity", "seed", "plugins"})
# Values of runs that differ in one of these sections answer different questions, but for the
# settings below.
QUESTION = frozenset({"data", "problem", "semantics", "model", "training", "objectives"})
SAME_QUESTION = frozenset({
    "training.checkpoints", "training.score_test", "training.evaluation_batch_size",
    "training.early_stop_after", "training.early_stop_factor"})


def _settings(own: dict) -> dict:
    """What the values of a run depend on besides how it searched, by path: "training.steps". A
    corpus is named by its hash, where that is known, and not by where its text lies; ranges of
    objectives are compared by themselves."""
    config, facts, found = own["config"], own["facts"], {}

    def add(path: str, value) -> None:
        if path in WITHOUT_EFFECT | KNOWN_APART:
            return
        if isinstance(value, dict):
            for key, each in value.items():
                add(f"{path}.{key}" if path else key, each)
        else:
            found[path] = value

    goals = [goal if isinstance(goal, dict) else {"name": goal}
             for goal in config.get("objectives") or []]
    add(
        "", {
            **config, "objectives": {
                goal.get("as", goal["name"]):
                    {key: value for key, value in goal.items() if key != "range"} for goal in goals
            }
        })
    if facts.get("corpus_hash"):
        found = {path: value for path, value in found.items() if not path.startswith("data.")}
        found["data"] = f"{facts.get('corpus_description', '')} {facts['corpus_hash'][:12]}".strip()
    if facts.get("table"):
        found.pop("problem.table", None)
    return found


def _asks(own: dict) -> list[dict]:
    """All asks of a run in their order. Those that were answered at a rung, which a digest keeps
    apart, are asks as those of a comparison are: they begin training runs, and leave what is
    believed of a candidate as it was."""
    at_rung = own.get("rung_asks") or []
    if not at_rung:
        return own["asks"]
    found, believed = [], {}
    for ask in sorted([*own["asks"], *at_rung], key=lambda ask: ask["number"]):
        paused = "step" in ask
        ids = [ask["evaluation"]] if paused else ask["evaluations"]
        if not paused:
            believed[ask["candidate"]] = ask["believed"]
        found.append({**ask, "evaluations": ids, "believed": believed.get(ask["candidate"])})
    return found


def _steps(own: dict, asks: list[dict]) -> np.ndarray:
    """Steps of training up to each of all asks of a run, by its learning curves."""
    curves = {
        one["id"]: one["curve"] for one in [*own.get("evaluations", []), *own.get("paused", [])]}
    paid: dict = {}  # by evaluation
    spent, total = [], 0
    for ask in asks:
        for one in ask["evaluations"]:
            before = paid.get(one, 0)
            values = [point["step"] for point in curves.get(one, [])
                      if point["step"] <= ask.get("step", np.inf)]
            paid[one] = max(before, *values[-1:], 0)
            total += paid[one] - before
        spent.append(total)
    return np.array(spent)


def _require_ascending(file: str, algorithm: str, search: dict) -> None:
    """Refuses a search of which less was charged after an ask than before it: nothing could be said
    of it by what was spent.
    """
    for name in ("trained", "seconds", "steps"):
        if search[name] is None:
            continue
        before = np.concatenate([[0], search[name]])
        falling = np.flatnonzero(~(search[name] >= before[:-1]))  # NaN is no more than anything
        if len(falling):
            i = falling[0]
            raise StoreError(f"{file}: {algorithm}, seed {search['seed']}: `{name}` of ask "
                             f"{i + 1} is {search[name][i]:g} after "
                             f"{before[i]:g}, must not fall: it counts what was charged so far")


def _retested(own: dict, objectives: list[Objective]) -> dict[str, np.ndarray]:
    """Means over fresh seeds in minimisation form, by candidate: what a search did not see. None of
    what has too few.
    """
    found = {}
    for candidate in (own.get("retest") or {}).get("candidates", []):
        means = [value and value["mean"] for value in candidate["retest"]]
        test = (candidate.get("test") or {}).get("mean")
        means = [test if goal.name == "perplexity" and test is not None else mean
                 for goal, mean in zip(objectives, means)]
        if None not in means:
            found[candidate["candidate"]] = np.array(
                [goal.natural(mean) for goal, mean in zip(objectives, means)])
    return found


def _read_comparison(file: str, database: sqlite3.Connection) -> _Store:
    meta = sqlite_files.meta(database)
    if meta.get("kind") != "comparison" or meta.get("version") != 1:
        raise StoreError(f"{file}: kind {meta.get('kind')!r}, version {meta.get('version')!r}; "
                         "this reads kind 'comparison', version 1")
    objectives = [_objective(own) for own in meta["objectives"]]
    rows = list(database.execute(
        "SELECT number, name, label, truth, believed FROM candidates ORDER BY number"))
    if [row[0] for row in rows] != list(range(len(rows))):
        raise ValueError("candidates are not numbered from 0 without gaps")
    algorithms = {number: (name, json.loads(settings)) for number, name, settings in
                  database.execute("SELECT number, name, settings FROM algorithms")}
    searches = []
    for number, seed, asked, own, *blobs in database.execute(
            "SELECT algorithm, seed, asked, search_seconds, candidates, trained, seconds, fitness, "
            "steps FROM searches ORDER BY algorithm, seed"):
        candidates, trained, seconds, fitness, steps = (
            None if blob is None else np.frombuffer(blob, dtype=kind)
            for blob, kind in zip(blobs, ("<i4", "<i4", "<f8", "<f8", "<i8")))
        if not (len(candidates) == len(trained) == len(seconds) == asked
                and len(fitness) == asked * len(objectives)):
            raise ValueError(f"search {number}, seed {seed}: {asked} asks, but arrays of "
                             f"{len(candidates)}, {len(trained)}, {len(seconds)}, {len(fitness)}")
        if asked and not 0 <= candidates.min() <= candidates.max() < len(rows):
            raise ValueError(f"search {number}, seed {seed}: asks for a candidate that is not "
                             "there")
        name, settings = algorithms[number]
        answers = _usable(fitness.reshape(asked, len(objectives)), objectives)
        rule = belief.rule(settings.get("evaluation") or {}, settings.get("belief", ""))
        searches.append({
            "algorithm": name, "seed": seed, "candidates": candidates, "trained": trained,
            "charged": np.diff(trained, prepend=0), "seconds": seconds,
            "believed": belief.beliefs(candidates.tolist(), answers,
                                       rule), "search_seconds": np.nan if own is None else own,
            "replicates": _drawn(meta.get("table", {})),
            "steps": steps if steps is not None and len(steps) == asked else None, "retested": {},
            "draw": draw_of(seed, meta["draws"]) if "draws" in meta else None})
        _require_ascending(file, name, searches[-1])
    truth, believed = (_column([row[i] for row in rows], len(objectives)) for i in (3, 4))
    config = meta.get("config") or {}
    return _Store(Source(file, "comparison", meta.get("table", {}), config), objectives,
                  float(meta.get("reference_point",
                                 schema(None).reference_point)), [row[1] for row in rows],
                  [row[2] or row[1] for row in rows], truth,
                  meta.get("truth_splits") or {}, believed, meta.get("table", {}), {},
                  int(meta.get("budget", {}).get("trainings", 0)), searches,
                  int(meta.get("budget", {}).get("train_steps", 0)),
                  int(meta.get("table",
                               {}).get("training_steps", 0)), meta.get("draws"), {
                                   **{name: None for name, _ in algorithms.values()}, **{
                                       own["label"]: int(own["seeds"]) for own in config.get(
                                           "algorithms", []) if "seeds" in own
                                   }
                               })


def draw_of(seed: int, draws: dict) -> int:
    """The draw that answers the searches of a seed, as src/study/comparison_study.cpp has it."""
    return (seed - draws["seed"]) % draws["tables"]


def _objective(record: dict) -> Objective:
    """Of a comparison."""
    maximise = bool(record.get("maximise", False))
    best, worst = float(record["best"]), float(record["worst"])
    penalty = best + PENALTY * (worst - best)
    return Objective(record["name"], record.get("unit", "1"), maximise, best, worst,
                     -penalty if maximise else penalty)


def _usable(fitness: np.ndarray, objectives: list[Objective]) -> np.ndarray:
    """Answers (n, m) as a search may believe them: a penalty says only that the candidate failed or
    broke a constraint, NaN that it was paused at a rung, and both become inf."""
    penalty = [objective.penalty for objective in objectives]
    penalised = np.isclose(fitness, penalty, rtol=1e-12, atol=0.0).all(axis=1)
    return np.where(penalised[:, None] | np.isnan(fitness), np.inf, fitness)


def _drawn(table: dict) -> int:
    """Replicates of a table that answers by one of them at a time, else 0."""
    return int(table.get("replicates", 0)) if table.get("mode") in ("noisy", "paired") else 0


def _column(texts: list, objectives: int) -> np.ndarray | None:
    """A column of JSON arrays as points; None where it is empty throughout."""
    rows = [None if text is None else json.loads(text) for text in texts]
    return _points(rows, objectives) if any(row is not None for row in rows) else None


def _require_comparable(first: _Store, other: _Store) -> None:
    def senses(store):
        return [(goal.name, goal.unit, goal.maximise) for goal in store.objectives]

    def names(store):
        return ", ".join(f"{goal.quantity}, max" if goal.maximise else goal.quantity
                         for goal in store.objectives)

    if senses(first) != senses(other):
        raise StoreError(f"{other.source.path}: objectives {names(other)}, but "
                         f"{first.source.path} has {names(first)}; only searches for the same "
                         "objectives can be compared")
    if first.draws != other.draws:
        shown = [f"{store.draws['tables']} draws of seed {store.draws['seed']}"
                 if store.draws else "the recorded table" for store in (other, first)]
        raise StoreError(f"{other.source.path}: answered by {shown[0]}, but {first.source.path} by "
                         f"{shown[1]}; only searches that the same tables answer can be compared")
    tables = [store.table.get("sha256") for store in (first, other)]
    if all(tables) and tables[0] != tables[1]:
        raise StoreError(f"{other.source.path}: another table (SHA-256 {tables[1][:12]}) than "
                         f"that of {first.source.path} ({tables[0][:12]})")


def _another_question(first: _Store, other: _Store) -> str:
    """In what the values of two runs answer different questions; an empty text where they do not.
    """
    asked = [
        path for path in _differing_settings([first, other]) if _is_question(path, [first, other])]
    if not asked:
        return ""
    each = ", ".join(f"{path} = {_shown(other.settings.get(path))} in place of "
                     f"{_shown(first.settings.get(path))}" for path in asked)
    return f"{other.source.path}: {each} of {first.source.path}"


def _differing_settings(stores: list[_Store]) -> list[str]:
    """Paths of the settings in which runs differ."""
    return sorted({path for store in stores for path in {*store.settings, *stores[0].settings}
                   if store.settings.get(path) != stores[0].settings.get(path)})


def _is_question(path: str, stores: list[_Store]) -> bool:
    """Whether the values of runs that differ in a setting answer different questions."""
    section = path.split(".")[0]
    return section in QUESTION and path not in SAME_QUESTION and not (section == "problem"
                                                                      and any(store.table
                                                                              for store in stores))


def _shown(value) -> str:
    """A setting's value."""
    return "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)


def _require_different(searches: list[Search]) -> None:
    seen = set()
    for search in searches:
        if (search.algorithm, search.seed) in seen:
            raise StoreError(f"{search.algorithm} with seed {search.seed} is there twice, with the "
                             "same settings of the algorithm; give each search once, and other "
                             "settings of comparisons one by one")
        seen.add((search.algorithm, search.seed))


def _name_runs(runs: list[_Store]) -> None:
    """Names the algorithms of runs by their keys, and where one key has several settings among
    them, its own or the run's, by those that differ too: "nsga2, population 24"."""
    searches = [store.searches[0] for store in runs]
    settings = [{**store.settings, **search["algorithm"]} for store, search in zip(runs, searches)]
    for search, own in zip(searches, settings):
        same_key = [other for other in settings if other["name"] == own["name"]]
        differing = [key for key in sorted(own, key=lambda key: (key in SAME_QUESTION, key))
                     if any(other.get(key) != own[key] for other in same_key)]
        search["algorithm"] = ", ".join([own["name"], *(f"{key.split('.')[-1]} "
                                                        f"{own[key]}" for key in differing)])


def _remarks(stores: list[_Store]) -> list[str]:
    remarks = []
    truths = [store.truth is not None for store in stores]
    if not any(truths):
        remarks.append("No store holds ground truth: what is compared is what the searches "
                       "measured, noise and luck included.")
    elif not all(truths):
        remarks.append("Some stores hold no ground truth, so none is used: what is compared is "
                       "what the searches measured, noise and luck included.")
    on_validation = sorted({name for store in stores
                            for name, split in store.truth_splits.items() if split == "validation"})
    if on_validation and all(truths):
        remarks.append(f"Beware: {', '.join(on_validation)} judged on the validation split, as "
                       "searched: the table does not hold what the test split says.")
    if any(store.objectives != stores[0].objectives for store in stores):
        remarks.append("The stores scale their objectives by different ranges; those of "
                       f"{stores[0].source.path} are used for all.")
    remarks += [remark for store in stores if (remark := _missing(store))]
    remarks += _differing("answers of their tables", "mode",
                          [(store, store.table.get("mode", "none")) for store in stores])
    remarks += _differing("budgets", "trainings",
                          [(store, store.budget or "unlimited") for store in stores])
    runs = [store for store in stores if store.source.kind == "run"]
    others = [f"{path} "
              f"({', '.join(dict.fromkeys(_shown(store.settings.get(path)) for store in runs))})"
              for path in _differing_settings(runs) if not _is_question(path, runs)]
    if others:
        remarks.append(f"Beware: the runs differ not only in their algorithms, but also in "
                       f"{', '.join(others)}.")
    return remarks


def _missing(store: _Store) -> str:
    """A warning of the searches that a comparison was to have and has not, as one that was
    interrupted; else an empty text.
    """
    there = collections.Counter(search["algorithm"] for search in store.searches)
    lacking = [f"of {name} {there[name]} of {wanted}" if wanted else f"of {name} none"
               for name, wanted in store.wanted.items() if there[name] < (wanted or 1)]
    if not lacking:
        return ""
    return (f"Beware: {store.source.path} does not hold all searches that were asked for, and "
            f"judged is what it holds: {', '.join(lacking)}.")


def _differing(what: str, name: str, values: list[tuple[_Store, object]]) -> list[str]:
    """A warning where stores have several values of something, with a store of each."""
    first: dict = {}
    for store, value in values:
        first.setdefault(value, store.source.path)
    if len(first) < 2:
        return []
    each = "; ".join(f"{name} {value} in {path}" for value, path in first.items())
    return [f"Beware: the searches differ in the {what}: {each}."]


def _merged_candidates(stores: list[_Store], numbers: dict[str, int]) -> Candidates:
    labels = [""] * len(numbers)
    for store in reversed(stores):
        for name, label in zip(store.names, store.labels):
            labels[numbers[name]] = label

    def merged(columns):
        if any(column is None for column in columns):
            return None
        result = np.full((len(numbers), len(stores[0].objectives)), np.inf)
        for store, column in zip(reversed(stores), reversed(columns)):
            result[[numbers[name] for name in store.names]] = column
        return result

    return Candidates(list(numbers), labels, merged([store.truth for store in stores]),
                      merged([store.believed for store in stores]))


def _searches(store: _Store, numbers: dict[str, int], candidates: Candidates) -> list[Search]:
    renumber = np.array([numbers[name] for name in store.names], dtype=np.int64)
    result = []
    for fields in store.searches:
        if len(fields["candidates"]) == 0:
            continue
        asked = renumber[fields["candidates"]]
        truth = None if candidates.truth is None else candidates.truth[asked]
        own = {key: value for key, value in fields.items() if key != "steps"}
        own |= {"candidates": asked, "budget": store.budget,
                "retested": {int(renumber[one]): point for one, point in own["retested"].items()}}
        result.append(Search(**own, truth=truth, labels=candidates.labels))
    return result
