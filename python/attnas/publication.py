"""What is published with a table: its terms inside of it, and beside it CSV files, Croissant
metadata, a data sheet and SHA-256 sums.

Stands on Python's own library alone. As a program:

    python3 -m attnas.publication record FILE --about ABOUT.json   puts licence, version and limits
    into a table python3 -m attnas.publication publish FILE [--output FOLDER]   writes what is
    published with a table, beside it or with CSV files
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import statistics
import sys
import tempfile
from typing import Any

from attnas.command_line import printable
from attnas.errors import InputError, MachineError, unwritable
from attnas.table import KEYS, Table

# What a publisher says of a table: the type of each key, and whether it must be given. A text may
# be long.
_ABOUT = {
    "title": (str, False), "description": (str, True), "licence": (str, True),
    "licence_url": (str, True), "corpus_licence": (str, True), "version": (str, True), "changelog":
        (list, True), "creators": (list, True), "url": (str, False), "citation": (str, False),
    "motivation": (str, True), "limits": (list, True), "uses": (str, True), "not_for": (str, False),
    "distribution": (str, False), "maintenance": (str, True), "gates": (str, False)
}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")

# What a task is: by part of a record's identity, "" for itself.
_TASK = {
    "": ("corpus_hash", "semantics", "model"),
    "training": ("steps", "batch_size", "learning_rate", "schedule", "warmup_steps")
}

_CHANGES = ("version", "date", "text")

# Of the columns that every table has; what else there is are values of evaluations.
_COLUMNS = {
    "mechanism": "canonical name: similarity|normalization|gating|temperature|bias|attention "
                 "dropout", "label": "the same in the words of the paper",
    "seed": "number of the seed, from 0",
    "status": "ok, stopped_early, diverged, out_of_memory, rejected, failed, timed_out or crashed",
    "reason": "why it is not ok; else empty",
    "train_seconds": "seconds of training by the clock, in an array its share",
    "cpu_seconds": "seconds of the processor",
    "peak_bytes": "largest memory in bytes, in an array its share", "accuracy":
        "share of validation targets ranked first, at the "
        "end", "bits_per_byte": "bits per byte of the validation split, at the end",
    "flops": "floating-point operations of one forward pass",
    "parameters": "parameters of the model", "perplexity": "exp(nll) on the validation split, at "
                                                           "the end",
    "published_perplexity": "exp of the mean over batches of the batch's mean nll, on the "
                            "validation split, at the end",
    "test_nll": "nats per target on the test split, at the end", "test_perplexity": "exp(test_nll)",
    "test_tokens": "targets of the test split that were scored", "test_correct":
        "how many of them the model ranks first", "step": "training steps so far", "train_nll":
            "nats per target in training, mean since the "
            "step before", "nll": "nats on the validation split, sum over tokens", "tokens":
                "targets of the validation "
                "split that were scored", "correct": "how many of them the model ranks first",
    "pad_nll": "the part of nll on <PAD> targets", "pad_tokens": "how many these are",
    "unknown_nll": "the part of nll on <UNK> targets", "unknown_tokens": "how many these are",
    "batch_mean_nll": "sum over batches of the batch's mean nll", "batches":
        "batches of the validation split", "seconds": "seconds of training so far"
}
_INTEGERS = {"seed", "step", "tokens", "correct", "pad_tokens", "unknown_tokens", "batches"}
_TEXTS = {"mechanism", "label", "status", "reason"}


def read_about(file: str | os.PathLike, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a publisher says of a table.

    @param known  what the table says already, which the file overrides.
    @throws InputError  naming the file, the key, what was given and what is allowed.
    """
    try:
        given = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file}: it is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError(f"{file} = {json.dumps(given)[:60]}, must be an object")
    for key, value in given.items():
        if key not in _ABOUT:
            raise InputError(f"{file}: unknown key '{key}', known: {', '.join(_ABOUT)}")
        kind = _ABOUT[key][0]
        entry = dict if key == "changelog" else str
        if not isinstance(value, kind) or not value or (
                kind is list and not all(isinstance(one, entry) for one in value)):
            many = "objects" if entry is dict else "texts"
            words = "a text, not empty" if kind is str else f"a list of {many}, not empty"
            raise InputError(f"{file}: {key} = {json.dumps(value)[:60]}, must be {words}")
    about = {**(known or {}), **given}
    if lacking := [key for key, (_, needed) in _ABOUT.items() if needed and key not in about]:
        raise InputError(f"{file}: {', '.join(lacking)} must be given")
    if not _VERSION.fullmatch(about["version"]):
        raise InputError(f"{file}: version = {about['version']}, must be three numbers: "
                         f"MAJOR.MINOR.PATCH")
    _require_changes(file, about)
    return about


def _require_changes(file: str | os.PathLike, about: dict[str, Any]) -> None:
    for change in about["changelog"]:
        if sorted(change) != sorted(_CHANGES) or not all(
                isinstance(value, str) for value in change.values()):
            raise InputError(f"{file}: changelog: {json.dumps(change)[:60]}, must have the texts "
                             f"{', '.join(_CHANGES)}")
        try:
            datetime.date.fromisoformat(change["date"])
        except ValueError:
            raise InputError(f"{file}: changelog: date = {change['date']}, must be "
                             f"YYYY-MM-DD") from None
    if about["changelog"][0]["version"] != about["version"]:
        raise InputError(f"{file}: version = {about['version']}, must be that of the first entry "
                         f"of changelog, {about['changelog'][0]['version']}")


def record(path: str | os.PathLike, about_file: str | os.PathLike) -> Table:
    """Puts what a publisher says into a table, in place of what it said before. Its content and its
    checksum stay.

    @throws InputError  as read_about() and Table().
    """
    table = Table(path)
    about = read_about(about_file, {
        key: value for key, value in table.publication.items() if key in ("corpus_licence", "gates")
    })
    if isinstance(about.get("gates"), str):
        about["gates"] = _gates(pathlib.Path(about_file).parent / about["gates"], table)
    file = pathlib.Path(path)
    with tempfile.TemporaryDirectory(prefix=".record-", dir=file.absolute().parent) as folder:
        copy, made = pathlib.Path(folder, "copy"), pathlib.Path(folder, "made")
        copy.write_bytes(file.read_bytes())
        with contextlib.closing(sqlite3.connect(copy)) as database:
            database.executescript("DROP TABLE IF EXISTS publication;CREATE TABLE publication (key "
                                   "TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;")
            database.executemany("INSERT INTO publication VALUES (?, ?)",
                                 [(key, json.dumps(value, ensure_ascii=False))
                                  for key, value in sorted(about.items())])
            database.commit()
            database.execute("VACUUM INTO ?", (str(made),))  # equal content gives equal pages
        with open(made, "rb+") as stream:
            os.fsync(stream.fileno())
        if Table(made).sha256 != table.sha256:
            raise InputError(f"{path}: changed while it was read; again, please")
        os.chmod(made, file.stat().st_mode & 0o777)
        os.replace(made, file)
    return Table(path)


def _gates(file: pathlib.Path, table: Table) -> dict[str, Any]:
    """The record that `nas-data gates` made of the table's task. @throws InputError  where it is
    none, or of another task.
    """
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}, must be a record of nas-data gates") from None
    if not (isinstance(found, dict) and found.get("schema") in (1, 2)
            and isinstance(found.get("verdict"), str)):
        raise InputError(f"{file}: must be a record of nas-data gates")
    own = found.get("identity") or {}
    for part, keys in _TASK.items():
        given, known = (one.get(part) or {} if part else one for one in (own, table.facts))
        for key in keys:
            if given.get(key) != known.get(key):
                raise InputError(f"{file}: {key} is {given.get(key)}, must be the table's: "
                                 f"{known.get(key)}")
    return found


def publish(path: str | os.PathLike, output: str | os.PathLike | None = None) -> list[pathlib.Path]:
    """Writes what is published with a table into a folder: the table, its content as CSV, Croissant
    metadata, a data sheet, and the SHA-256 sums of all. The same table gives the same bytes.

    @param output  None: metadata, data sheet and sums beside the table, without CSV.
    @return  the files.
    @throws InputError  where the table says no terms, or the folder cannot be written.
    """
    table = Table(path)
    if lacking := [
            key for key, (_, needed) in _ABOUT.items() if needed and key not in table.publication
    ]:
        raise InputError(f"{path}: its publication has no {', '.join(lacking)}; python3 -m "
                         f"attnas.publication record puts it there")
    folder, name = pathlib.Path(path).parent if output is None else pathlib.Path(
        output), pathlib.Path(path).stem
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / (pathlib.Path(path).name if output is None else f"{name}.table")
        if not (copy.exists() and copy.samefile(path)):
            copy.write_bytes(pathlib.Path(path).read_bytes())
        files = [copy, *([] if output is None else _write_csv(table, folder, name))]
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        for file, text in ((folder / f"{name}.croissant.json",
                            json.dumps(croissant(table, name, sums), indent=1, ensure_ascii=False) +
                            "\n"), (folder / f"{name}.datasheet.md", data_sheet(table, sums))):
            file.write_text(text, encoding="utf-8")
            files.append(file)
        listed = folder / f"{name}.sha256"
        listed.write_text(
            "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
                    for file in files), encoding="utf-8")
    except OSError as error:
        raise unwritable(error.filename or folder, error) from None
    return [*files, listed]


def _columns(table: Table) -> dict[str, list[str]]:
    """Of each CSV file its columns."""
    with contextlib.closing(_open(table)) as database:
        own = {
            name: [
                column[0]
                for column in database.execute(f"SELECT * FROM {name} LIMIT 0").description
            ] for name in KEYS
        }
    costs = sorted({key for name in table.mechanisms for key in table.costs(name)})
    renamed = {
        name: [{"replicate": "seed"}.get(column, column) for column in own[name]]
        for name in ("trainings", "curves")
    }
    return {"mechanisms": ["mechanism", "label", *costs], **renamed}


def _open(table: Table) -> sqlite3.Connection:
    return sqlite3.connect(f"{pathlib.Path(table.path).absolute().as_uri()}?immutable=1", uri=True)


def _write_csv(table: Table, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """mechanisms, trainings and curves, with names in place of numbers of mechanisms; what is not
    known is empty.
    """
    columns, files = _columns(table), []
    for part in columns:
        files.append(folder / f"{name}.{part}.csv")
        with open(files[-1], "w", encoding="utf-8",
                  newline="") as stream, contextlib.closing(_open(table)) as database:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns[part])
            if part == "mechanisms":
                costs = ((one, table.costs(one)) for one in table.mechanisms)
                writer.writerows(
                    [one,
                     table.label(one), *(_cell(own.get(key)) for key in columns[part][2:])]
                    for one, own in costs)
                continue
            names = dict(database.execute("SELECT mechanism, name FROM mechanisms"))
            writer.writerows([names[place], *map(_cell, row)]
                             for place, *row in database.execute(f"SELECT * FROM {part} ORDER BY "
                                                                 f"{KEYS[part]}"))
    return files


def _cell(value: Any) -> Any:
    """A value in the shortest form that reads back equal."""
    return "" if value is None else repr(value) if isinstance(value, float) else value


def croissant(table: Table, name: str, sums: dict[str, str]) -> dict[str, Any]:
    """Croissant metadata (docs.mlcommons.org/croissant, version 1.0), with what its vocabulary for
    responsible AI asks of limits and collection.

    @param sums  SHA-256 by name of a file.
    """
    about, facts = table.publication, table.facts
    files = [{
        "@type": "cr:FileObject", "@id": file, "name": file, "contentUrl": file,
        "encodingFormat": "text/csv" if file.endswith(".csv") else "application/vnd.sqlite3",
        "sha256": own, "description": "a part of the table, for other programs" if
                                      file.endswith(".csv") else "all of the table, an SQLite file"
    } for file, own in sums.items()]
    keys = {
        "mechanisms": ["mechanism"], "trainings": ["mechanism", "seed"],
        "curves": ["mechanism", "seed", "step"]
    }
    words = {
        "mechanisms": "what was trained", "trainings": "training runs, at their ends",
        "curves": "validations of the training runs"
    }
    records = []
    for part, columns in _columns(table).items():
        if f"{name}.{part}.csv" not in sums:
            continue  # readers of Croissant know no SQLite
        records.append({
            "@type": "cr:RecordSet", "@id": part, "name": part, "description": words[part],
            "key": [{"@id": f"{part}/{key}"}
                    for key in keys[part]] if len(keys[part]) > 1 else {"@id": f"{part}/mechanism"},
            "field": [_field(part, column, f"{name}.{part}.csv") for column in columns]
        })
    return {
        "@context": _CONTEXT, "@type": "sc:Dataset", "name": table.name,
        "alternateName": about.get("title", table.name), "conformsTo": [
            "http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"
        ], "description": about["description"], "license": about["licence_url"],
        "usageInfo": about["corpus_licence"],
        **({"url": about["url"]} if "url" in about else {}), "version": about["version"],
        "datePublished": about["changelog"][0]
                         ["date"], "creator": [{"@type": "sc:Organization", "name": one}
                                               for one in about["creators"]], "citeAs": about.get(
                                                   "citation", f"{', '.join(about['creators'])}. "
                                                   f"{about.get('title', table.name)}, version "
                                                   f"{about['version']}. "
                                                   f"{about.get('url', '')}".rstrip()),
        "rai:dataLimitations": " ".join(about["limits"]), "rai:dataUseCases": about["uses"],
        "rai:dataCollection":
            f"{len(table)} training runs of {len(table.mechanisms)} mechanisms on "
            f"{facts.get('corpus_description', facts.get('corpus', 'an unnamed corpus'))}.",
        "rai:dataReleaseMaintenancePlan": about["maintenance"],
        "rai:personalSensitiveInformation": "none: numbers of training runs", "distribution": files,
        "recordSet": records
    }


def _field(part: str, column: str, file: str) -> dict[str, Any]:
    kind = "sc:Text" if column in _TEXTS else "sc:Integer" if column in _INTEGERS else "sc:Float"
    field = {"@type": "cr:Field", "@id": f"{part}/{column}", "name": column,
             "description": _COLUMNS.get(column, f"{column} of the evaluation, at the "
                                                 f"end"), "dataType": kind,
             "source": {"fileObject": {"@id": file}, "extract": {"column": column}}}
    if part != "mechanisms" and column == "mechanism":
        field["references"] = {"field": {"@id": "mechanisms/mechanism"}}
    return field


_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs",
    "column": "cr:column", "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/", "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty", "examples": {
        "@id": "cr:examples", "@type": "@json"
    }, "extract": "cr:extract", "field": "cr:field", "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject", "fileSet": "cr:fileSet", "format": "cr:format",
    "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath",
    "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex",
    "repeated": "cr:repeated", "replace": "cr:replace", "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/", "separator": "cr:separator", "source": "cr:source",
    "subField": "cr:subField", "transform": "cr:transform"
}


def data_sheet(table: Table, sums: dict[str, str]) -> str:
    """A data sheet in Markdown: the seven sections of Gebru et al. (2021, arXiv:1803.09010).
    Numbers come from the table, judgements from its publisher."""
    about, facts = table.publication, table.facts
    training, model = facts.get("training", {}), facts.get("model", {})
    ends = list(table)
    parts = [
        f"# {about.get('title', table.name)}, version {about['version']}: data "
        f"sheet\n\n{about['description']}\n\n"
        "Sections are those of Gebru et al., Datasheets for Datasets (arXiv:1803.09010). Numbers "
        "are computed from the table.", "**Limits.**\n\n" + "\n".join(f"- {limit}"
                                                                      for limit in about["limits"]),
        f"## Motivation\n\n{about['motivation']}\n\nMade by {', '.join(about['creators'])}.",
        "## Composition\n\n" + "\n".join(f"- {line}" for line in _composition(table, ends)),
        f"## Collection process\n\nEach training run trains one model ({_pairs(model)}) with one "
        f"seed of the run seed {facts.get('run_seed', 'unknown')}: {_pairs(training)}; semantics "
        f"{facts.get('semantics', 'unknown')}, numerical mode "
        f"{facts.get('numerical_mode', 'unknown')}, device {facts.get('device', 'unknown')}. All "
        f"of them took {sum(end.train_seconds or 0.0 for end in ends) / 3600:.1f} h of training. "
        "Nobody was asked or observed.\n\n" + "\n".join(f"- {line}"
                                                                   for line in _sources(facts)),
        "## Preprocessing\n\n"
        f"Corpus: {facts.get('corpus_description', facts.get('corpus', 'unknown'))}, SHA-256 "
        f"`{facts.get('corpus_hash', 'unknown')}`; "
        f"vocabulary {facts.get('vocabulary', model.get('vocabulary', 'unknown'))}, "
        f"{facts.get('train_windows', 'unknown')} training and "
        f"{facts.get('valid_windows', 'unknown')} validation windows of "
        f"{facts.get('context', model.get('context', 'unknown'))} tokens. "
        "Training runs of mechanisms with attention dropout, of tuning and of re-tests are left "
        "out; no value was changed.",
        *([_gates_section(about["gates"])] if "gates" in about else []),
        f"## Uses\n\n{about['uses']}" +
        (f"\n\nNot for: {about['not_for']}" if "not_for" in about else ""),
        f"## Distribution\n\nLicence of the table: {about['licence']} ({about['licence_url']}). "
        f"Terms of the corpus: {about['corpus_licence']}. The table holds numbers of training "
        "runs: no text of the corpus and no weights. This states what its makers and the "
        "distributors of the corpus say; it is no legal advice.\n\n" +
        (f"{about['distribution']}\n\n" if "distribution" in about else "") +
        "The SHA-256 of its content, which does not depend on licence and version, is "
        f"`{table.sha256}`.\n\n| file | SHA-256 |\n|---|---|\n" + "\n".join(f"| {file} | `{own}` |"
                                                      for file, own in sums.items()),
        f"## Maintenance\n\n{about['maintenance']}\n\n| version | date | changes |\n|---|---|---|\n"
        + "\n".join(f"| {' | '.join(change[key] for key in _CHANGES)} |"
                    for change in about["changelog"])
    ]
    return "\n\n".join(parts) + "\n"


def _gates_section(gates: dict[str, Any]) -> str:
    return (f"## Whether attention matters on the task\n\n{gates['verdict']}\n\n| gate | | "
            f"|\n|---|---|---|\n"
            + "\n".join(f"| {gate['name']} | {'passed' if gate['passed'] else 'failed'} | "
                        f"{gate['words']} |" for gate in gates["gates"]))


def _composition(table: Table, ends: list) -> list[str]:
    """What the table has, and how noisy it is."""
    counts: dict[str, int] = {}
    for end in ends:
        counts[end.status] = counts.get(end.status, 0) + 1
    seeds: dict[int, int] = {}
    for name in table.mechanisms:
        own = len(table.seeds(name))
        seeds[own] = seeds.get(own, 0) + 1
    lines = [
        f"An instance is one training run: a mechanism with one seed. {len(ends)} of them, "
        f"of {len(table.mechanisms)} mechanisms: " +
        ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) + ".",
        "Seeds of a mechanism: " + ", ".join(f"{own} of {count} mechanisms"
                                             for own, count in sorted(seeds.items())) + "."
    ]
    if len(seeds) > 1:
        lines.append("Where some mechanisms have more seeds than others, these may have been "
                     "chosen by their first ones: means over few seeds "
                     "and over many are not equally sure, and the best of few flatter themselves.")
    lines.append(f"Each run has validations at the steps {', '.join(map(str, table.steps))}.")
    groups = {
        name: [end for end in ends if end.mechanism == name and end.status == "ok"]
        for name in table.mechanisms
    }
    finals = {name: [end.nll for end in own if end.nll is not None] for name, own in groups.items()}
    several = [own for own in finals.values() if len(own) > 1]
    if several and len(finals) > 1:
        free = sum(len(own) - 1 for own in several)
        within = (sum(statistics.variance(own) * (len(own) - 1) for own in several) / free) ** 0.5
        between = statistics.stdev(statistics.fmean(own) for own in finals.values() if own)
        lines.append(f"Final validation nll: standard deviation {within:.4f} between seeds of a "
                     f"mechanism (pooled), {between:.4f} between the mechanisms' means.")
    tested = {
        name: [end.test_perplexity for end in own if end.test_perplexity is not None]
        for name, own in groups.items()
    }
    means = sorted((statistics.fmean(own), name) for name, own in tested.items() if own)
    if means:
        (best, first), (worst, last) = means[0], means[-1]
        lines.append(f"Test perplexity, mean over seeds: from {best:.2f} ({first}, n "
                     f"{len(tested[first])}) to {worst:.2f} ({last}, n {len(tested[last])}), "
                     f"median {statistics.median(mean for mean, _ in means):.2f}. The least of "
                     "many noisy means is too low.")
    lines.append("It holds nothing of or about persons.")
    return lines


def _sources(facts: dict[str, Any]) -> list[str]:
    lines = []
    for source in facts.get("sources", []):
        environments = [
            *source.get("environments", []),
            *([source["environment"]] if "environment" in source else [])
        ]
        for own in environments or [{}]:
            made = ", ".join(f"{key} {own[key]}"
                             for key in ("processor", "instruction_set", "device", "torch",
                                         "compiler", "revision") if key in own)
            dirty = ""
            if "dirty" in str(own.get("revision")):
                dirty = (" (with changes that were not committed: no revision makes the same "
                         "program)")
            lines.append(f"{source.get('name', 'a run')}: {source.get('cells', 'unknown')} "
                         f"training runs; {made or 'machine unknown'}{dirty}.")
    return lines


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {' '.join(map(str, value)) if isinstance(value, list) else value}"
                     for key, value in values.items()) or "unknown"


def main(words: list[str]) -> int:
    """The program. @return  its exit code."""
    if not words or words[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        return 0 if words else 2
    try:
        print(*_done(words[0], words[1:]), sep="\n")
    except (InputError, MachineError) as error:
        print(f"attnas.publication: {printable(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 75
    return 0


def _done(command: str, words: list[str]) -> list:
    """Does a command. @return  lines of what came of it. @throws InputError"""
    option = {"record": "--about", "publish": "--output"}.get(command, "")
    if command == "publish" and len(words) == 1 and words[0] != option:
        return publish(words[0])
    if not option or len(words) != 3 or option not in words[:2]:
        raise InputError(f"{command} {' '.join(words)}: must be record FILE --about ABOUT.json, "
                         "publish FILE --output FOLDER, or publish FILE")
    place = words.index(option)
    value, (file,) = words[place + 1], words[:place] + words[place + 2:]
    if command == "publish":
        return publish(file, value)
    table = record(file, value)
    return [f"{table!r}, its licence {table.publication['licence']}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
