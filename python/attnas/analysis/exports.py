"""Runs in the forms of other programs, from their digests."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import logging
import math
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterable, Iterator

from attnas.analysis import packages
from attnas.analysis.digest import (FIRST_HELD_OUT, BadInput, Objective, flat, objectives,
                                    perplexity, seed_number, short_names)
from attnas.analysis.event_files import event_file
from attnas.analysis.schema import schema
from attnas.analysis.words import is_number

Digest = dict[str, Any]

IOH_VERSION = "0.3.17"  # of IOHexperimenter: readers recognise the format by it


def title(run: Digest) -> str:
    """A run for people: "quickstart, seed 42"."""
    name = run["config"].get("name", "run")
    return f"{name}, seed {run['config']['seed']}" if "seed" in run["config"] else name


def function(run: Digest) -> str:
    """What was searched on, for people: "ZDT1", or the problem and its corpus."""
    problem = run["config"].get("problem", {}).get("type", "problem")
    return run["facts"].get("function") or f"{problem} {run['facts'].get('corpus', '')}".strip()


def shortest(value: float) -> str:
    """The shortest decimals that read back equal."""
    return repr(float(value)).removesuffix(".0")


def _constrained(run: Digest) -> bool:
    return bool(run["config"].get("constraints"))


def _algorithm(run: Digest) -> dict[str, Any]:
    return run["config"].get("algorithm", {})


def _genes(run: Digest) -> list[dict[str, Any]]:
    """Those of a run. Options have the names that are stored (`stored`), whatever the configuration
    calls them.
    """
    shown = schema(run.get("record_schema")).shown
    stored = [{option: shown(gene["name"], option) for option in gene.get("options", ())}
              for gene in run["genes"]]
    return [{**gene, **({"options": list(words.values()), "stored": words} if words else {})}
            for gene, words in zip(run["genes"], stored)]


def _asked(genes: list[dict[str, Any]], ask: dict[str, Any]) -> list[str]:
    """As asked for, one per gene."""
    return [
        gene.get("stored", {}).get(value, value)
        for gene, value in zip(genes, ask["genotype"].split("|"))
    ]


def _natural(goals: list[Objective], fitness: list[float]) -> list[float]:
    return [goal.natural(value) for goal, value in zip(goals, fitness)]


# CSV (RFC 4180)

def ask_columns(run: Digest) -> list[str]:
    """Names of what ask_rows() has of each."""
    goals = [goal.name for goal in objectives(run)]
    return [
        "number", "batch", "candidate", "label", *(gene["name"] for gene in run["genes"]),
        "replicates", "status", *goals, *(f"fitness_{name}" for name in goals), "trained",
        "train_seconds", "reused"
    ]


def ask_rows(run: Digest) -> Iterator[list]:
    """A row per ask: its number from 1, batch, candidate, label, the genes as
    asked, the number of evaluations that answered, status, each objective in its own sense (None
    where nothing was measured), each in minimisation form as the algorithm saw it, evaluations and
    seconds of training that the asks so far have caused, and whether it was answered by what
    earlier asks had caused."""
    goals, genes = objectives(run), _genes(run)
    for ask in run["asks"]:
        yield [ask["number"] + 1, ask["batch"], ask["candidate"],
               run["labels"].get(ask["candidate"], ask["candidate"]), *_asked(genes, ask),
               len(ask["evaluations"]), ask["status"],
               *(_natural(goals, ask["fitness"]) if ask["usable"] else [None] * len(goals)),
               *ask["fitness"], ask["trained"], ask["seconds"], ask["reused"]]


def asks_csv(run: Digest) -> str:
    """The same as CSV; what is None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_cell(value) for value in row]
                     for row in itertools.chain([ask_columns(run)], ask_rows(run)))
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") and not is_number(value):
        return "'" + value  # spreadsheet programs would compute it
    return shortest(value) if isinstance(value, float) else value


# Point sets, for moocore and R's eaf

def point_sets(runs: list[Digest], every: bool) -> str:
    """One point per line, its objectives in minimisation form, an empty line between runs; lines
    that begin with # name runs, objectives and units.

    @param every  every usable candidate of a run, else the non-dominated ones.
    @throws BadInput  where a run has no usable candidate: an empty set cannot be written.
    """
    header, sets = [], []
    for run in runs:
        goals = objectives(run)
        shown = run["ranking"] if every else [run["ranking"][place] for place in run["front"]]
        if not shown:
            raise BadInput(f"{title(run)}: no candidate could be evaluated")
        header.append(f"# {title(run)}: {'all' if every else 'non-dominated'} {len(shown)} of "
                      f"{len(run['ranking'])} candidates after {run['counts']['evaluated']} "
                      "evaluations\n")
        points = (_natural(goals, [own["values"][goal.name] for goal in goals]) for own in shown)
        sets.append("".join(" ".join(map(shortest, point)) + "\n" for point in points))
    columns = ", ".join(("-" if goal.maximise else "") + goal.quantity
                        for goal in objectives(runs[0]))
    return "".join(header) + f"# all minimised: {columns}\n" + "\n".join(sets)


# IOHprofiler

def ioh_files(runs: list[Digest]) -> dict[str, str]:
    """IOHprofiler's folder, as IOHexperimenter writes it and IOHanalyzer (from 0.1.6 on) and
    iohinspector read it: ALGORITHM/IOHprofiler_f1_FUNCTION.json says what the file
    ALGORITHM/data_f1_FUNCTION/IOHprofiler_f1_DIMd.dat holds; runs of one algorithm with equal
    settings share a file. An evaluation is an ask; failed ones have the penalty that the algorithm
    saw, and those that constraints rejected have no line: the format knows no infeasible ones.
    Columns: evaluations, raw_y, trained and seconds (evaluations and seconds of training that the
    asks so far have caused), and
      one objective: raw_y_best; values in the objective's own sense;
      several: F2, F3, ...; values in minimisation form, since the format has one sense only.
    All runs are of instance 1, since nothing but the seed differs, which is an attribute of a run.

    @return texts by path in the folder.
    @throws BadInput  where a run has no asks, or constraints rejected all of them.
    """
    groups: list[tuple[str, list[Digest]]] = []  # of one algorithm with equal settings
    for run in runs:
        same = next((own for _, own in groups if _algorithm(own[0]) == _algorithm(run)), None)
        if same is not None:
            same.append(run)
            continue
        key = _file_name(_algorithm(run).get("name", "algorithm"))
        groups.append((_unlike(key, [name for name, _ in groups], "{}-{}"), [run]))
    files = {}
    for name, members in groups:
        run, goals = members[0], objectives(members[0])
        searched_on, dimension = _file_name(function(run)), len(run["genes"])
        path = f"data_f1_{searched_on}/IOHprofiler_f1_DIM{dimension}.dat"
        written = [_ioh_run(own) for own in members]
        settings = " ".join(f"{key}={json.dumps(value)}"
                            for key, value in sorted(_algorithm(run).items()) if key != "name")
        meta = {"version": IOH_VERSION, "suite": "attnas", "function_id": 1,
                "function_name": searched_on, "maximization": _is_maximised(goals),
                "algorithm": {"name": name, "info": settings}, "run_attributes": ["seed"],
                "attributes": _ioh_columns(goals),
                "scenarios": [{"dimension": dimension, "path": path,
                               "runs": [about for _, about in written]}]}
        files[f"{name}/IOHprofiler_f1_{searched_on}.json"] = json.dumps(meta, indent=2) + "\n"
        files[f"{name}/{path}"] = "".join(lines for lines, _ in written)
    return files


def _file_name(text: str) -> str:
    """Letters, digits, '-' and '_' of a text, that it can be a file's name."""
    return re.sub(r"[^A-Za-z0-9-]", "_", text)


def _unlike(name: str, others: Iterable[str], form: str) -> str:
    """A name, with a number where others have it already."""
    found, n = name, 1
    while found in others:
        n += 1
        found = form.format(name, n)
    return found


def _is_maximised(goals: list[Objective]) -> bool:
    return goals[0].maximise and len(goals) == 1


def _ioh_columns(goals: list[Objective]) -> list[str]:
    own = ["raw_y_best"] if len(goals) == 1 else [f"F{i}" for i in range(2, len(goals) + 1)]
    return ["evaluations", "raw_y", *own, "trained", "seconds"]


def _ioh_run(run: Digest) -> tuple[str, dict[str, Any]]:
    """The lines of one run, and what the meta file says of it."""
    goals = objectives(run)
    asks = [ask for ask in run["asks"] if ask["status"] != "rejected"]
    if not asks:
        raise BadInput(f"{title(run)}: constraints rejected all of its asks")

    def value(ask: dict[str, Any]) -> float:
        return goals[0].natural(ask["fitness"][0]) if len(goals) == 1 else ask["fitness"][0]

    lines, best = [" ".join(_ioh_columns(goals))], asks[0]
    for ask in asks:
        if value(ask) > value(best) if _is_maximised(goals) else value(ask) < value(best):
            best = ask
        own = [value(best)] if len(goals) == 1 else ask["fitness"][1:]
        lines.append(" ".join([str(ask["number"] + 1), shortest(value(ask)), *map(shortest, own),
                               str(ask["trained"]), shortest(ask["seconds"])]))
    genes = _genes(run)
    position = [_number(gene, given) for gene, given in zip(genes, _asked(genes, best))]
    return "\n".join(lines) + "\n", {
        "instance": 1, "evals": len(run["asks"]),
        "best": {"evals": best["number"] + 1, "y": value(best), "x": position},
        "seed": run["config"].get("seed", 0)}


def _params(genes: list[dict[str, Any]], values: list[str]) -> dict[str, Any]:
    """Genes by name, options as texts."""
    return {
        gene["name"]: value if "options" in gene else float(value)
        for gene, value in zip(genes, values)
    }


def _number(gene: dict[str, Any], value: str) -> float:
    """The value of a gene as a number: an option's position among the options, a real as it is."""
    return float(gene["options"].index(value) if "options" in gene else value)


# Optuna

def optuna_journal(runs: list[Digest]) -> str:
    """The file of an Optuna journal (JournalFileStorage, from 3.1 on), written by Optuna: one study
    per run, one trial per ask, with its genes as parameters, objectives in their own sense,
    validation perplexities of the curve as intermediate values, and candidate, label, status,
    reason, batch, replicates and reused as user attributes. Failed asks are failed trials. With
    constraints, each other trial has Optuna's own attribute `constraints`: [0] if it is feasible,
    [1] if it breaks one, by formula or by what training found; its value is then the penalty that
    the algorithm saw. Times are in UTC; an ask that earlier evaluations answered took none."""
    import optuna  # of this form alone
    from optuna.study import StudyDirection

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # it calls its journal so
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    directions = {False: StudyDirection.MINIMIZE, True: StudyDirection.MAXIMIZE}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "journal")
        journal = getattr(optuna.storages, "journal", None)  # from Optuna 4.0 on
        backend = getattr(journal, "JournalFileBackend", None) or optuna.storages.JournalFileStorage
        storage = optuna.storages.JournalStorage(backend(file))
        # Optuna 5 takes times without a zone for local ones, and writes UTC; before, they are
        # written as they are.
        zone = datetime.timezone.utc if int(optuna.__version__.split(".")[0]) >= 5 else None
        names: list[str] = []
        for run in runs:
            goals, genes = objectives(run), _genes(run)
            names.append(_unlike(title(run), names, "{} ({})"))
            study = storage.create_new_study([directions[goal.maximise] for goal in goals],
                                             names[-1])
            storage.set_study_system_attr(study, "study:metric_names",
                                          [goal.name for goal in goals])
            storage.set_study_user_attr(study, "function", function(run))
            storage.set_study_user_attr(study, "algorithm", _algorithm(run))
            distributions = {gene["name"]: (
                optuna.distributions.CategoricalDistribution(gene["options"]) if "options" in gene
                else optuna.distributions.FloatDistribution(gene["min"], gene["max"]))
                for gene in genes}
            evaluations = {own["id"]: own for own in run["evaluations"]}
            for ask in run["asks"]:
                storage.create_new_trial(
                    study,
                    optuna.trial.FrozenTrial(
                        distributions=distributions,
                        **_trial(run, ask, genes, [evaluations[id_] for id_ in ask["evaluations"]],
                                 goals, optuna.trial.TrialState, zone)))
        return Path(file).read_text(encoding="utf-8")


def _trial(run: Digest, ask: dict[str, Any], genes: list[dict[str, Any]],
           answering: list[dict[str, Any]], goals: list[Objective], states,
           zone: datetime.timezone | None) -> dict[str, Any]:
    rejected = ask["status"] == "rejected"
    # A trial that breaks a constraint is complete and infeasible: with the penalty where nothing
    # was measured, since a complete trial has values.
    whole = ask["usable"] or rejected
    start, end = (time and time.replace(tzinfo=zone) for time in _times(answering))
    first = next((own for own in answering if own["usable"]), answering[0])
    return {
        "number": -1, "trial_id": -1, "state": states.COMPLETE if whole else states.FAIL,
        "value": None, "values": _natural(goals, ask["fitness"]) if whole else None,
        "datetime_start": end if ask["reused"] else start, "datetime_complete": end,
        "params": _params(genes, _asked(genes, ask)),
        "user_attrs": {"candidate": ask["candidate"],
                       "label": run["labels"].get(ask["candidate"], ask["candidate"]),
                       "status": ask["status"], "reason": ask["reason"], "batch": ask["batch"],
                       "replicates": len(ask["evaluations"]), "reused": ask["reused"]},
        # What samplers and dashboards take for feasible: no number above 0.
        "system_attrs": ({"constraints": [1.0 if rejected else 0.0]}
                         if _constrained(run) and whole else {}),
        "intermediate_values": {
            point["step"]: value for point in first["curve"]
            if math.isfinite(value := perplexity(point["valid"]))}}


def _started(evaluation: dict[str, Any]) -> datetime.datetime | None:
    """When, in UTC; None where that is not recorded."""
    text = evaluation["measured"].get("started")
    return text and datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def _times(answering: list[dict[str, Any]]) -> tuple:
    """When evaluations began and ended; None where that is not recorded."""
    starts, ends = [], []
    for own in answering:
        if start := _started(own):
            starts.append(start)
            seconds = own["measured"].get("train_seconds") or 0.0
            ends.append(starts[-1] + datetime.timedelta(seconds=seconds))
    return (min(starts), max(ends)) if starts else (None, None)


# MLflow

def mlflow_database(runs: list[Digest]) -> bytes:
    """A database of MLflow's (SQLite), written by MLflow: a run for each run, with its settings as
    parameters, in an experiment of its name; below it a run for each training run, with genes as
    parameters, the curve's scalars by step as tensorboard_files() has them, and what was recorded
    at the end.

    @throws BadInput  where there is no mlflow.
    """
    if lacking := packages.missing("mlflow"):
        raise BadInput(f"--format mlflow: {lacking}")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow  # of this form alone

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "mlflow.db")
        client = mlflow.MlflowClient(f"sqlite:///{file}")
        for run in runs:
            name = run["config"].get("name", "run")
            experiment = client.get_experiment_by_name(name)
            id_ = (experiment.experiment_id if experiment else
                   client.create_experiment(name, f"mlflow-artifacts:/{_file_name(name)}"))
            first, last = map(_milliseconds, _times(run["evaluations"]))
            parent = client.create_run(id_, first, run_name=title(run)).info.run_id
            _log_params(client, parent, flat(run["config"]))
            genes, labels = _genes(run), _labels(run)
            genotypes = {ask["candidate"]: _asked(genes, ask) for ask in reversed(run["asks"])}
            for own in run["evaluations"]:
                candidate = own["candidate"]
                seed = _seed_name(run, own["replicate"]).replace("held_out",
                                                                 "held-out").replace("_", " ")
                start, end = map(_milliseconds, _times([own]))
                tags = {"mlflow.parentRunId": parent, "candidate": candidate, "seed": seed}
                child = client.create_run(id_, start, tags, f"{labels.get(candidate, candidate)}, "
                                                            f"{seed}").info.run_id
                _log_params(client, child, _params(genes, genotypes.get(candidate, [])))
                points = [(name, value, start + int(1000 * point["seconds"]), point["step"])
                          for point in own["curve"] for name, value in _scalars(point).items()]
                step = own["curve"][-1]["step"] if own["curve"] else 0
                points += [(name, value, end, step)
                           for name, value in (own.get("values") or {}).items()
                           if value is not None]
                client.log_batch(child, [mlflow.entities.Metric(*point) for point in points])
                client.set_terminated(child, "FINISHED" if own["usable"] else "FAILED", end)
            client.set_terminated(parent, end_time=last)
        return file.read_bytes()


def _log_params(client, run_id: str, values: dict[str, Any]) -> None:
    """Parameters of a run; MLflow takes up to 6,000 characters of each."""
    for name, value in values.items():
        client.log_param(run_id, name, str(value)[:6000])


def _milliseconds(time: datetime.datetime | None) -> int:
    """Since 1970, of UTC; 0 where no time is known."""
    return int(1000 * time.replace(tzinfo=datetime.timezone.utc).timestamp()) if time else 0


# TensorBoard

def tensorboard_files(runs: list[Digest]) -> dict[str, bytes]:
    """TensorBoard's log folder: MECHANISM/seed_N/events... for each training run, N from 1
    (held_out_seed_N of a re-test; seed_N_2 for one with the same seed, as in tuning), below a
    folder per run where there are several. Scalars by step, natural logarithms: nll/train (mean
    since the checkpoint before), nll/valid, perplexity/train, perplexity/valid, accuracy/valid.
    Genes, as asked for first, are hyperparameters, replicates of a mechanism one group. The
    baseline's folder begins with "baseline_". Times are those of the recorded training run, from
    1970 on where none are.

    @return contents by path in the folder.
    @throws BadInput  where a run has no learning curve.
    """
    files: dict[str, bytes] = {}
    taken: set[str] = set()  # folders of training runs
    titles: list[str] = []
    for run in runs:
        titles.append(_unlike(_file_name(title(run)), titles, "{}_{}"))
        if not any(own["curve"] for own in run["evaluations"]):
            raise BadInput(f"{title(run)}: nothing was trained, so there are no learning curves")
        folders: dict[str, str] = {}  # by candidate
        genes, labels = _genes(run), _labels(run)
        genotypes = {ask["candidate"]: _asked(genes, ask) for ask in reversed(run["asks"])}
        for own in run["evaluations"]:
            name = own["candidate"]
            if not own["curve"]:
                continue
            if name not in folders:
                folders[name] = _unlike(_folder_name(run, name, labels.get(name, name)),
                                        folders.values(), "{}_{}")
            hparams = _params(genes, genotypes.get(name, []))
            start = _started(own)
            began = start.replace(tzinfo=datetime.timezone.utc).timestamp() if start else 0.0
            folder = (f"{titles[-1]}/" if len(runs) > 1 else
                      "") + f"{folders[name]}/{_seed_name(run, own['replicate'])}"
            # What was tuned is trained with the same seed several times.
            folder = _unlike(folder, taken, "{}_{}")
            taken.add(folder)
            files[f"{folder}/events.out.tfevents.0.attnas"] = event_file(
                began, [(began + point["seconds"], point["step"], _scalars(point))
                        for point in own["curve"]], name, hparams)
    return files


def _labels(run: Digest) -> dict[str, str]:
    """What candidates are called where there is little room; others by their own names."""
    return {**run["labels"], **short_names(run)}


def _folder_name(run: Digest, candidate: str, label: str) -> str:
    """A mechanism in letters of file names, short enough for one."""
    name = re.sub(r"[^A-Za-z0-9.=+-]+", "_", label)[:120]
    is_baseline = run["baseline"] and candidate == run["baseline"]["candidate"]
    return ("baseline_" if is_baseline else "") + name.strip("._")


def _seed_name(run: Digest, replicate: int) -> str:
    held_out = replicate >= FIRST_HELD_OUT and "mechanisms" not in run["config"]
    return f"{'held_out_' if held_out else ''}seed_{seed_number(replicate)}"


def _scalars(point: dict[str, Any]) -> dict[str, float]:
    """Of a checkpoint, by tag; what is not known is left out."""
    tokens = point["valid"]["tokens"]
    train = {"nll": point["train_nll"], "tokens": 1}
    values = {"nll/train": point["train_nll"], "perplexity/train": perplexity(train),
              "perplexity/valid": perplexity(point["valid"])}
    if tokens and point["valid"]["nll"] is not None:
        values["nll/valid"] = point["valid"]["nll"] / tokens
    if tokens and point["valid"]["correct"] >= 0:
        values["accuracy/valid"] = point["valid"]["correct"] / tokens
    return {tag: value for tag, value in values.items() if value is not None}
