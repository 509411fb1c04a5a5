"""What is published with a table: its terms inside of it, beside it a data sheet and SHA-256 sums.

Stands on Python's own library alone. As a program:

    python3 -m attnas.publication record FILE --about ABOUT.json   puts licence, version and limits
    into a table
    python3 -m attnas.publication publish FILE [--output FOLDER]   writes what is published with it
"""

from __future__ import annotations

import contextlib
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
from attnas.table import Table

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
_TASK = {"": ("corpus_hash", "semantics", "model"),
         "training": ("steps", "batch_size", "learning_rate", "schedule", "warmup_steps")}

_CHANGES = ("version", "date", "text")


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
    """Writes what is published with a table into a folder: the table, a data sheet, and the SHA-256
    sums of both. The same table gives the same bytes.

    @param output  None: data sheet and sums beside the table.
    @return  the files.
    @throws InputError  where the table says no terms, or the folder cannot be written.
    """
    table = Table(path)
    if lacking := [
        key for key, (_, needed) in _ABOUT.items() if needed and key not in table.publication]:
        raise InputError(f"{path}: its publication has no {', '.join(lacking)}; python3 -m "
                         f"attnas.publication record puts it there")
    folder, name = pathlib.Path(path).parent if output is None else pathlib.Path(
        output), pathlib.Path(path).stem
    try:
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / (pathlib.Path(path).name if output is None else f"{name}.table")
        if not (copy.exists() and copy.samefile(path)):
            copy.write_bytes(pathlib.Path(path).read_bytes())
        sheet = folder / f"{name}.datasheet.md"
        sums = {copy.name: hashlib.sha256(copy.read_bytes()).hexdigest()}
        sheet.write_text(data_sheet(table, sums), encoding="utf-8")
        files = [copy, sheet]
        listed = folder / f"{name}.sha256"
        listed.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
                                  for file in files), encoding="utf-8")
    except OSError as error:
        raise unwritable(error.filename or folder, error) from None
    return [*files, listed]


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
    lines = [f"An instance is one training run: a mechanism with one seed. {len(ends)} of them, "
             f"of {len(table.mechanisms)} mechanisms: " +
             ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) + ".",
             "Seeds of a mechanism: " + ", ".join(f"{own} of {count} mechanisms"
                                                  for own, count in sorted(seeds.items())) + "."]
    if len(seeds) > 1:
        lines.append("Where some mechanisms have more seeds than others, these may have been "
                     "chosen by their first ones: means over few seeds and over many are not "
                     "equally sure, and the best of few flatter themselves.")
    if table.steps:
        lines.append(f"Each run has validations at the steps {', '.join(map(str, table.steps))}.")
    groups = {name: [end for end in ends if end.mechanism == name and end.status == "ok"]
              for name in table.mechanisms}
    finals = {name: [end.nll for end in own if end.nll is not None] for name, own in groups.items()}
    several = [own for own in finals.values() if len(own) > 1]
    if several and len(finals) > 1:
        free = sum(len(own) - 1 for own in several)
        within = (sum(statistics.variance(own) * (len(own) - 1) for own in several) / free) ** 0.5
        between = statistics.stdev(statistics.fmean(own) for own in finals.values() if own)
        lines.append(f"Final validation nll: standard deviation {within:.4f} between seeds of a "
                     f"mechanism (pooled), {between:.4f} between the mechanisms' means.")
    tested = {name: [end.test_perplexity for end in own if end.test_perplexity is not None]
              for name, own in groups.items()}
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
        environments = [*source.get("environments", []),
                        *([source["environment"]] if "environment" in source else [])]
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
