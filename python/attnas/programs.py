"""The console scripts of the wheel: each becomes the program that it is named after."""

from __future__ import annotations

import glob
import importlib
import os
import re
import sys
from importlib.util import find_spec
from typing import NoReturn

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def main() -> NoReturn:
    """Replaces this process by the program of the console script's name, with the LibTorch of the
    package torch, of which nothing is imported. What writes pages is this Python, unless NAS_PYTHON
    names another.

    @throws SystemExit  with code 2 where there is no torch, or one that the programs were not built
        for.
    """
    name = os.path.basename(sys.argv[0])
    try:
        torch = _torch_folder()
    except LookupError as error:
        print(f"{name}: {error.args[0]}", file=sys.stderr)
        sys.exit(2)
    if not _is_beside(torch):
        folders = [f"{torch}/lib", *glob.glob(f"{os.path.dirname(torch)}/nvidia/*/lib"),
                   os.environ.get("LD_LIBRARY_PATH", "")]
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    os.environ.setdefault("NAS_PYTHON", sys.executable)
    os.execv(f"{_PACKAGE}/bin/{name}", sys.argv)


def load_torch() -> None:
    """Loads the LibTorch of the package torch into this process, where what needs it would not find
    it.

    @throws LookupError  where there is no torch, or one that the package was not built for.
    """
    if not _is_beside(_torch_folder()):
        importlib.import_module("torch")


def _is_beside(torch: str) -> bool:
    """Whether torch lies in the folder of packages where the programs find it by themselves."""
    return os.path.samefile(os.path.dirname(torch), os.path.dirname(_PACKAGE))


def _torch_folder() -> str:
    """@throws LookupError  where there is none of the minor version that this package was built
    for.
    """
    with open(f"{_PACKAGE}/built_for", encoding="utf-8") as file:
        wanted = file.read().strip()
    install = f"{sys.executable} -m pip install 'torch=={wanted}.*'"
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"the package torch is not installed, must be {wanted}: {install}")
    folder = spec.submodule_search_locations[0]
    with open(f"{folder}/version.py", encoding="utf-8") as file:
        found = re.search(r"^__version__ = '([^']*)'", file.read(), re.MULTILINE)
    version = found[1] if found else "unknown"
    if not version.startswith(f"{wanted}."):
        raise LookupError(f"torch is version {version}, must be {wanted}, whose C++ library this "
                          f"package was built for: "
                          f"{install}, or the package attnas for that version")
    return folder
