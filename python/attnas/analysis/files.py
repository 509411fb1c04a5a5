"""Files and folders that are written whole or not at all, and through nobody's links."""

from __future__ import annotations

import contextlib
import csv
import io
import numbers
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from .digest import SQLITE, BadInput


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """The name under which something is made that is to be at a path: PATH.HOST.PROCESS.tmp, as
    nas-run's. Nothing is there at the beginning, unless it cannot be removed, nor at the end.
    Raises OSError that names the path."""
    unfinished = path.with_name(f"{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    _remove(unfinished)
    try:
        yield unfinished
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        _remove(unfinished)


def _remove(path: Path) -> None:
    """Removes a file, a link or a folder, if it is there and can be."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def csv_text(head: Sequence[str], rows: Iterable[Iterable[str | float | None]]) -> str:
    """A table as a file for programs: a line for the head and for each row. Texts and integers as
    they are, other numbers unrounded, and nothing for None and NaN, which are not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([
            value if isinstance(value, (str, numbers.Integral)) else
            "" if value is None or value != value else repr(float(value)) for value in row
        ])
    return text.getvalue()


def _require_replaceable(path: Path) -> None:
    """Raises BadInput where a new file must not take the place of what is there: of a pipe or a
    device, of a run's record or a table.
    """
    if path.exists() and not path.is_file() and not path.is_dir():  # renaming over a folder fails
        raise BadInput(f"{path}: must be a regular file")
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if file.read(len(SQLITE)) == SQLITE:
            raise BadInput(f"{path}: is an SQLite database, as runs and tables are, must be "
                           f"another file")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file. Where others may write to the folder, one of them could have planted a link
    under the name that it is made by: what is there already is not opened. Raises BadInput,
    OSError."""
    _require_replaceable(path)
    with _unfinished(path) as unfinished:
        with open(unfinished, "xb") as file:
            file.write(content)
        os.replace(unfinished, path)


def write_whole_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes a folder of files, by their paths in it; in place of one that is there. Raises
    OSError.
    """
    with _unfinished(folder) as unfinished:
        unfinished.mkdir(parents=True)
        for name, content in files.items():
            (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / name).write_bytes(content)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
