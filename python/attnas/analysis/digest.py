"""The digest of a run, results.json: what nas-run says of it, to the last ask and evaluation.

docs/files.md says what each key is. Everything that is said of runs is made from it; the store is
not looked into here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shlex
import shutil
import sqlite3
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from . import columns, sqlite_files


class BadInput(Exception):
    """What was given cannot be read or used; the text says what is wrong and what is allowed."""


# What values can be, by key; others have no limits.
LIMITS = {"accuracy": (0.0, 1.0), "divergence_rate": (0.0, 1.0), "perplexity": (1.0, math.inf),
          "published_perplexity": (1.0, math.inf), **dict.fromkeys(
              ("nll", "bits_per_byte", "train_seconds", "peak_memory", "parameters",
               "non_embedding_parameters", "flops", "attention_flops", "state_bytes", "latency",
               "decode_latency", "energy"), (0.0, math.inf))}


def limits(name: str) -> tuple[float, float]:
    """The least and the most that a mean of an objective can be; intervals end there."""
    return LIMITS.get(name.removeprefix("test_"), (-math.inf, math.inf))


@dataclasses.dataclass(frozen=True)
class Objective:
    """What is optimised; `best` and `worst` are the ends of the range that scales it."""

    name: str
    unit: str
    maximise: bool
    best: float
    worst: float
    penalty: float  # what a candidate without a usable answer has, in minimisation form
    source: str = ""  # analytic, measured or trained, where that is recorded
    key: str = ""  # of what is measured, where `name` is another

    def natural(self, fitness):
        """From the minimisation form to the objective's own sense, and back."""
        return -fitness if self.maximise else fitness

    def scaled(self, fitness):
        """0 = best, 1 = worst end of the range."""
        return (self.natural(fitness) - self.best) / (self.worst - self.best)

    def is_better(self, a: float, b: float) -> bool:
        """Whether value a is better than value b."""
        return a > b if self.maximise else a < b

    @property
    def quantity(self) -> str:
        """Name with its unit."""
        return self.name if self.unit in ("1", "") else f"{self.name} ({self.unit})"

    @property
    def title(self) -> str:
        """Name, unit, and "max" where it is maximised."""
        inside = [] if self.unit == "1" else [self.unit]
        if self.maximise:
            inside.append("max")
        return f"{self.name} ({', '.join(inside)})" if inside else self.name


def objectives(digest: Mapping[str, Any]) -> list[Objective]:
    """Those of a run."""
    return [Objective(own["name"], own["unit"], own["maximise"], own["best"], own["worst"],
                      own["penalty"], own["source"] or "",
                      own.get("key") or own["name"]) for own in digest["objectives"]]


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Every setting by its path, as text."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        else:
            found[before + key] = value if isinstance(value, str) else json.dumps(value)
    return found


# replicates from here on are those of a re-test, or of listed mechanisms
FIRST_HELD_OUT = 1_000_000


def seed_number(replicate: int) -> int:
    """A replicate as people count seeds, from 1: those of the search and the held-out ones each."""
    return replicate % FIRST_HELD_OUT + 1


def short_names(digest: Mapping[str, Any]) -> dict[str, str]:
    """What candidates are called where a label is long: as the verdict calls what was re-tested or
    listed; of others what differs from the baseline, of names of many genes."""
    compared = (digest.get("retest") or {}).get("candidates", ())
    return {**(digest["models"] or {}).get("differences", {}),
            **{one["candidate"]: one["label"] for one in reversed(compared)}}


def perplexity(valid: dict[str, Any]) -> float:
    """exp(nll / tokens) of a split's sums; NaN where they are not known, inf beyond doubles."""
    if not valid.get("tokens") or valid.get("nll") is None:
        return math.nan
    try:
        return math.exp(valid["nll"] / valid["tokens"])
    except OverflowError:
        return math.inf


def read(given: str | os.PathLike) -> columns.Digest:
    """The digest of a run, of which long lists are read where they are needed.

    @param given  a run's folder, its store.sqlite, or a digest as a file of JSON. Where a store
        knows more than the digest beside it, by its time or its number of asks and evaluations,
        nas-export makes a new one, which is kept nowhere.
    @throws BadInput  where there is no run, or no digest and no nas-export.
    """
    path = pathlib.Path(given)
    store = path / "store.sqlite" if path.is_dir() else path
    file = path if path.suffix == ".json" else store.with_name("results.json")
    if file == path or path.is_dir() and not store.exists():
        if not file.is_file():
            raise BadInput(f"{path}: no such run; give {RUN}")
        return _parsed(open(file, "rb"), file)
    if not store.is_file():
        raise BadInput(f"{path}: no such run; give {RUN}")
    if store.name == "store.sqlite" and _is_current(file, store):
        with contextlib.suppress(BadInput):
            found = _parsed(open(file, "rb"), file)
            if _holds_as_much(found, store):
                return found
    with open(store, "rb") as stream:
        if stream.read(len(SQLITE)) != SQLITE:
            raise BadInput(f"{store}: neither the store of a run nor a digest; give {RUN}")
    return _parsed(_exported(store, file), store)


SQLITE = b"SQLite format 3\0"  # at the beginning of a store or a table
RUN = "a run's folder, its store.sqlite or its results.json"


def _is_current(file: pathlib.Path, store: pathlib.Path) -> bool:
    """Whether a digest is as new as a store and what has not reached that yet."""
    journals = (store.with_name(store.name + suffix) for suffix in ("-wal", "-journal"))
    written = [one.stat().st_mtime_ns for one in (store, *journals)
               if one.exists() and one.stat().st_size > 0]
    return file.is_file() and file.stat().st_mtime_ns >= max(written, default=0)


def _holds_as_much(found: columns.Digest, store: pathlib.Path) -> bool:
    """Whether a digest has as many asks and evaluations as a store, which its time does not say
    after a copy that kept none. Of a store that cannot be counted the time alone decides."""
    counted = {"asks": len(found["asks"]) + len(found.get("rung_asks", ())),
               "evaluations": len(found["evaluations"])}
    try:
        with contextlib.closing(sqlite_files.open_read_only(store)) as database:
            return all(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == count
                       for table, count in counted.items())
    except sqlite3.DatabaseError:
        return True


def _exported(store: pathlib.Path, file: pathlib.Path) -> BinaryIO:
    command = ["nas-export", str(store), "--format", "json"]
    found = program("nas-export")
    if found is None:
        raise BadInput(f"{store}: there is no digest of all that it holds, and no nas-export on "
                       "PATH that could make one; where there is one: "
                       f"{shlex.join([*command, '--force', '--output', str(file)])}")
    text = tempfile.TemporaryFile()  # which is gone with what reads it
    done = subprocess.run([found, *command[1:]], stdout=text, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        text.close()
        raise BadInput(done.stderr.decode(errors="replace").strip().removeprefix("nas-export: "))
    text.seek(0)
    return text


def program(name: str) -> str | None:
    """A program of attnas: on PATH, of the environment of Python that this file is installed in, of
    the installation that it belongs to, or of a build, the latest first: of the checkout that this
    file belongs to, or in the current folder."""
    here = pathlib.Path(__file__).resolve()
    folders = [os.environ.get("PATH", ""), *(str(prefix / "bin") for prefix in here.parents[5:6])]
    if (here.parents[1] / "bin").is_dir():  # a wheel's
        folders.insert(1, sysconfig.get_path("scripts"))
    for checkout in (here.parents[3], pathlib.Path.cwd()):
        folders += map(str, sorted(checkout.glob("build/*/bin"), reverse=True,
                                   key=lambda folder: folder.stat().st_mtime))
    return shutil.which(name, path=os.pathsep.join(folders))


def _parsed(file: BinaryIO, path: pathlib.Path) -> columns.Digest:
    """@param file  is closed."""
    try:
        found = columns.parsed(file)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not a digest of a run: {error}") from None
    if isinstance(found, columns.Digest):
        return found
    if not isinstance(found, dict):
        raise BadInput(f"{path}: not a digest of a run")
    raise BadInput(f"{path}: not a digest of version {columns.VERSION} (its version is "
                   f"{found.get('schema')}); nas-export RUN --format json writes one")
