"""The compiled half of the package."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

from attnas.analysis import digest

from attnas import programs
from attnas.errors import InputError

_NAME = "attnas._core"


def core() -> ModuleType:
    """The module attnas._core: in an installation's package, else beside the nas-run that is found.

    @throws InputError  where there is none that this Python can load.
    """
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    folders = [Path(__file__).parent]
    if program := digest.program("nas-run"):
        prefix = Path(program).resolve().parents[1]
        folders += [prefix / "python" / "attnas", prefix / "share" / "attnas" / "python" / "attnas"]
    for folder in folders:
        file = folder / f"_core{EXTENSION_SUFFIXES[0]}"
        if file.is_file():
            if (folder / "built_for").is_file():  # in a wheel
                try:
                    programs.load_torch()
                except LookupError as error:
                    raise InputError(error.args[0]) from None
            spec = importlib.util.spec_from_file_location(_NAME, file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[_NAME] = module
            return module
    if others := sorted(file.name for file in folders[0].glob("_core.*.so")):
        raise InputError(f"Study, AskAndTell, search, objective and algorithm need "
                         f"{folders[0]}/_core{EXTENSION_SUFFIXES[0]}; this "
                         f"package has {', '.join(others)}, for other Pythons, and runs its "
                         f"programs beside any")
    raise InputError(
        f"Study, AskAndTell, search, objective and algorithm need _core{EXTENSION_SUFFIXES[0]}, "
        f"which is in none of {', '.join(map(str, folders))}; apt-get install pybind11-dev "
        "python3-dev, configure "
        "and build attnas, and use the Python that it was built for (/usr/bin/python3)")
