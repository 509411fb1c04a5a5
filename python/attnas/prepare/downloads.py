"""What is fetched: addresses, and packages of the npm registry."""

from __future__ import annotations

import http.client
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from attnas.errors import InputError, MachineError

from .files import ARCHIVE_BYTES, Progress, io_failure

_NPM = "npm:"


def download(url: str, file: Path, progress: Progress | None = None,
             most: int = ARCHIVE_BYTES) -> None:
    """Fetches what an address (https, http or file) names. Gives up after 30 s of silence.

    @throws InputError  "URL: reason", also if it is longer than `most` bytes; MachineError that
        names `file`, or its folder, if it cannot be written.
    """
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            _save(url, answer, file, progress, most)
    except (urllib.error.URLError, http.client.HTTPException, ValueError, OSError) as error:
        raise InputError(f"{url}: {getattr(error, 'reason', None) or error}") from error


def _save(url: str, answer: http.client.HTTPResponse, file: Path, progress: Progress | None,
          most: int) -> None:
    total, received = int(answer.headers.get("Content-Length") or 0), 0
    try:
        out = open(file, "wb")
    except OSError as error:
        raise MachineError(str(io_failure(file, error))) from error
    with out:
        while piece := answer.read(1 << 16):
            received += len(piece)
            if max(received, total) > most:
                raise InputError(f"{url}: is longer than {most} bytes, the most that is downloaded")
            try:
                out.write(piece)
                out.flush()
            except OSError as error:
                raise MachineError(str(io_failure(file, error))) from error
            if progress:
                progress(url, received, total)
    if received < total:
        raise InputError(f"{url}: ended after {received} of {total} bytes")


def download_npm(package: str, folder: Path) -> Path:
    """Fetches "name@version" of the npm registry into a folder, with the program npm.

    @return the archive.  @throws InputError  "npm:PACKAGE: reason".
    """
    where = f"{_NPM}{package}: "
    words = ["npm", "pack", package, "--silent", "--fetch-retries=1", "--pack-destination",
             str(folder)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        raise InputError(f"{where}the program npm cannot be started: {error.strerror}") from error
    said = done.stdout.decode(errors="replace").rstrip().rpartition("\n")[2]
    archive = folder / said
    if done.returncode != 0 or archive.suffix != ".tgz" or not archive.exists():
        raise InputError(f"{where}npm pack ended with code {done.returncode}"
                         + (f": {said}" if said else ""))
    return archive


def fetch(address: str, folder: Path, progress: Progress | None) -> Path:
    """What is at an address, as a file of a folder. @throws InputError, MachineError"""
    if address.startswith(_NPM):
        return download_npm(address.removeprefix(_NPM), folder)
    download(address, folder / "archive", progress)
    return folder / "archive"
