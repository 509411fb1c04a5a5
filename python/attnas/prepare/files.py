"""Files that survive, and what is said where they do not."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import shutil
import socket
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attnas.command_line import human_bytes, shortest
from attnas.errors import BAD_PATH, InputError, MachineError

SPLITS = ("train", "valid", "test")
ARCHIVE_BYTES = 64 << 20  # that any archive may unpack to; a downloaded one may itself be so long
Progress = Callable[[str, int, int], None]  # address, bytes so far, bytes in all (0: not known)


def io_failure(path: Path, error: OSError) -> Exception:
    """The exception that says what is wrong with a path: MachineError, or InputError where it can
    be mended by another path."""
    folder = path.parent
    words = {errno.ENOSPC: f"no space left in {folder}",
             errno.EDQUOT: f"no space left in {folder}: the user's quota is spent",
             errno.EFBIG: f"no space left in {folder}: {path.name} would exceed the largest file "
                          "that this process may write (ulimit -f)"}
    text = words.get(error.errno or 0, f"{path}: {error.strerror or error}")
    return (InputError if error.errno in BAD_PATH else MachineError)(text)


def other_kind(path: Path) -> str:
    """"a folder", "a pipe", "a socket" or "a device"; empty for a file, and for nothing."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
             (stat.S_ISBLK, "a device"), (stat.S_ISCHR, "a device"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "")


def read_file(path: Path | str) -> bytes:
    """A file's bytes.

    @throws InputError  if it is no regular file, or cannot be read.
    """
    path = Path(path)
    if kind := other_kind(path):
        raise InputError(f"{path}: is {kind}, must be a text file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read") from error


def file_below(folder: Path, name: str) -> Path:
    """The file of a name in a folder or one below it. @throws InputError  if there is none."""
    found = next((path for path in folder.rglob(name) if path.is_file()), None)
    if found is None:
        raise InputError(f"no file {name} in it")
    return found


def read_gzip(path: Path) -> bytes:
    """The bytes of a file that gzip compressed, also in pieces (dictzip).

    @throws InputError  "FILE: ..." if it is none, or holds more than 256 MiB.
    """
    most = 4 * ARCHIVE_BYTES
    try:
        with gzip.open(path) as file:
            found = file.read(most + 1)
    except gzip.BadGzipFile as error:
        raise InputError(f"{path}: not compressed by gzip") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a readable archive: {error}") from error
    if len(found) > most:
        raise InputError(f"{path}: holds more than {most} bytes")
    return found


def write_file(path: Path, content: bytes | memoryview) -> None:
    """Writes a file that is on disk when this returns.

    @throws MachineError  naming the file, or its folder where no space is left.
    """
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise MachineError(str(io_failure(path, error))) from error


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def staging(parent: Path, name: str) -> Iterator[Path]:
    """An empty folder beside the final one `name`, gone at the end together with a parent that was
    made for it and stayed empty: what fails leaves nothing behind.

    @throws InputError  if there can be no such folder.
    """
    made = not parent.is_dir()
    folder = parent / f".{name}.partial-{socket.gethostname()}-{os.getpid()}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_those_of_killed_processes(parent, name)
        # A link put there by another user, who can guess the name, would be written through.
        if folder.is_symlink():
            folder.unlink()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as error:
        raise io_failure(Path(error.filename or folder), error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            with suppress(OSError):  # it is not empty
                parent.rmdir()


def _remove_those_of_killed_processes(parent: Path, name: str) -> None:
    """What nothing has been added to for a day, which no download takes."""
    for entry in parent.glob(f".{name}.partial-*"):
        if time.time() - entry.lstat().st_mtime > 24 * 3600:
            shutil.rmtree(entry, ignore_errors=True)


def fresh(folder: Path, name: str) -> Path:
    """An empty folder of that name inside another."""
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir()
    return folder / name


def publish(ready: Path, folder: Path) -> bool:
    """Gives a folder of files that are on disk its final name, which afterwards says that it is
    complete. @return whether no other process was first."""
    try:
        sync_folder(ready)
        os.rename(ready, folder)
        sync_folder(folder.parent)
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise io_failure(folder, error) from error


def require_memory(what: str, needed: float) -> None:
    """@throws InputError  if that is more than this process may have."""
    largest = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _swap()
    try:
        largest = min(largest, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # there is no limit
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        largest = min(largest, limit)
    if needed > largest:
        raise InputError(f"{what}: at least {human_bytes(int(needed))} of memory, must be at most "
                         f"{human_bytes(largest)} (all that there is)")


def _swap() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("SwapTotal:"))


def shown(value: object) -> str:
    """A setting's value as messages have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortest(value) if isinstance(value, float) else str(value)
