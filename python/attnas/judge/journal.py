"""What a judgement has come to: lines of JSON that are only added, each durable before the next."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from attnas.errors import InputError

try:
    import fcntl
except ImportError:  # no lock where the system has none of this kind
    fcntl = None

NAME = "judge.jsonl"


class Memory:
    """Records that end with the process."""

    def __init__(self):
        self.records: list[dict[str, Any]] = []

    def add(self, record: dict[str, Any]) -> None:
        """Keeps a record."""
        self.records.append(record)

    def close(self) -> None:
        """Leaves it to others."""


class Journal(Memory):
    """FOLDER/judge.jsonl, held by one process. A line that was not finished counts as none.

    @throws InputError  where another process holds it, or a line is no record.
    """

    def __init__(self, folder: Path):
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._lock = folder / NAME, threading.Lock()
        self._file = open(self.path, "a+b", buffering=0)
        if fcntl:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                raise InputError(f"{self.path}: another process judges here; wait for it, or give "
                                 "another --output") from None
        self.records, self._size = read(self.path)
        self._file.truncate(self._size)

    def add(self, record: dict[str, Any]) -> None:
        """Writes a record to the disk."""
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        with self._lock:
            try:
                self._file.write(line)
                os.fsync(self._file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(self._size)
                raise
            self._size += len(line)
            super().add(record)

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The finished records of a file, and the bytes that they take.

    @throws InputError  where a line is none.
    """
    content = path.read_bytes()
    size = content.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(content[:size].splitlines(), 1):
        try:
            records.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            raise InputError(f"{path}, line {number}: is no record; nothing was changed") from None
    return records, size
