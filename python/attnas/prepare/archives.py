"""Archives: zip; tar, also compressed by gzip, bzip2 or xz; packages of Debian; gzip alone."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from attnas.errors import InputError, MachineError

from .files import ARCHIVE_BYTES, io_failure

_ENTRIES = 100_000
_BLOCK = 4096  # of the disk, which an empty file or a folder takes, too
_UNPACK = ": unpack it yourself if it is what it says"
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError,
           NotImplementedError, RuntimeError, ValueError)
Entry = tuple[str, BinaryIO | None]  # a name, and bytes of a regular file


def unpack(archive: Path, folder: Path, always: int = ARCHIVE_BYTES) -> None:
    """Unpacks the regular files of an archive (of a package of Debian what it installs) into an
    existing folder; links and special files are left out.

    @param always  bytes that it may unpack to, however small it is.
    @throws InputError  "FILE: ..." if it is not readable, an entry leads out of the folder, there
        are more than 100,000 of them, or they take more than a hundred times its size (and
        `always`), each file and folder counted as a block of 4096 bytes at least; MachineError
        naming the file where the disk is full. What was unpacked until then stays.
    """
    unpacking = _Unpacking(archive, folder, max(always, 100 * archive.stat().st_size))
    try:
        with open(archive, "rb") as file:
            for name, content in _entries(file):
                unpacking.take_entry(name, content)
    except _BROKEN as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{archive}: not a readable archive: {reason}") from error
    except OSError as error:
        raise InputError(f"{archive}: not a readable archive: {error}") from error


class _Unpacking:
    """An archive, its folder, and what it may still take of the disk."""

    def __init__(self, archive: Path, folder: Path, most: int):
        self.archive, self.folder, self.most = archive, folder, most
        self.left, self.entries = most, 0

    def take_entry(self, name: str, content: BinaryIO | None) -> None:
        self.entries += 1
        if self.entries > _ENTRIES:
            raise InputError(f"{self.archive}: holds more than {_ENTRIES} files and folders"
                             + _UNPACK)
        if content is None:
            return
        normal = os.path.normpath(name)
        if not name or normal.startswith(("/", "../")) or normal in (".", ".."):
            raise InputError(f"{self.archive}: entry '{name}' must lie inside the folder that it "
                             "is unpacked to")
        self._write(Path(normal), content)

    def _take(self, number: int) -> None:
        if number > self.left:
            raise InputError(f"{self.archive}: unpacks to more than {self.most} bytes, a hundred "
                             f"times its size{_UNPACK}")
        self.left -= number

    def _write(self, name: Path, content: BinaryIO) -> None:
        path = self.folder / name
        new = not path.parent.is_dir()
        with _writing(self.archive, path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._take(_BLOCK * (len(name.parts) if new else 1))
        with _writing(self.archive, path), open(path, "wb") as file:
            while piece := _read(content):
                self._take(len(piece))
                file.write(piece)


def _read(content: BinaryIO) -> bytes:
    try:
        return content.read(1 << 16)
    except OSError as error:
        raise tarfile.ReadError(str(error)) from error


@contextmanager
def _writing(archive: Path, path: Path) -> Iterator[None]:
    """Says which file could not be written. Of entries of one name one may be a file, the other
    the folder of a third."""
    try:
        yield
    except OSError as error:
        failure = io_failure(path, error)
        if isinstance(failure, MachineError):
            raise failure from error
        raise InputError(f"{archive}: cannot be unpacked: {failure}") from error


def _entries(file: BinaryIO) -> Iterator[Entry]:
    """What an archive holds, by its first bytes."""
    magic = file.read(8)
    file.seek(0)
    if magic == b"!<arch>\n":
        yield from _of_package(file)
    elif magic.startswith(b"PK"):
        yield from _of_zip(file)
    else:
        yield from _of_tar(file)


def _of_tar(file: BinaryIO) -> Iterator[Entry]:
    with tarfile.open(fileobj=file, mode="r:*") as tar:
        for entry in tar:
            yield entry.name, tar.extractfile(entry) if entry.isreg() else None


def _of_zip(file: BinaryIO) -> Iterator[Entry]:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            is_link = entry.external_attr >> 28 == 0xA
            if entry.is_dir() or is_link:
                yield entry.filename, None
            else:
                with archive.open(entry) as content:
                    yield entry.filename, content


def _of_package(file: BinaryIO) -> Iterator[Entry]:
    """What a package of Debian installs; of another archive of ar its members."""
    members = {}
    file.seek(8)
    while len(head := file.read(60)) == 60:
        size = int(head[48:58])
        members[head[:16].decode().rstrip(" /")] = io.BytesIO(file.read(size))
        file.seek(size % 2, os.SEEK_CUR)
    is_package = "debian-binary" in members
    for name, content in members.items():
        if not is_package:
            yield name, content
        elif name.startswith("data.tar"):
            yield from _of_tar(content)
