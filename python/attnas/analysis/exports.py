"""Runs in the forms of other programs, from their digests."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import re
from typing import Any, Iterable, Iterator

from attnas.analysis.digest import (FIRST_HELD_OUT, BadInput, Objective, objectives, perplexity,
                                    seed_number, short_names)
from attnas.analysis.event_files import event_file
from attnas.analysis.schema import schema
from attnas.analysis.words import is_number

Digest = dict[str, Any]


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


# TensorBoard

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


def _params(genes: list[dict[str, Any]], values: list[str]) -> dict[str, Any]:
    """Genes by name, options as texts."""
    return {
        gene["name"]: value if "options" in gene else float(value)
        for gene, value in zip(genes, values)
    }


def _started(evaluation: dict[str, Any]) -> datetime.datetime | None:
    """When, in UTC; None where that is not recorded."""
    text = evaluation["measured"].get("started")
    return text and datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


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
