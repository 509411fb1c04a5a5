"""What computes a plug-in in PyTorch: NAME.py beside NAME.so. It enters functions in tables of
attnas.model_attention, which it names in one line each:

    from attnas.model_attention import NORMALIZATIONS, hide
    NORMALIZATIONS["mine"] = lambda layer, scores, visible: ...
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable

from attnas.errors import InputError

_loaded: dict[str, str] = {}  # texts by path


def load(libraries: Iterable[str]) -> str:
    """Runs the module beside each library that has one, once.

    @return  what an export appends to its model_attention.py, where all that they import is.
    @throws InputError  naming the module that cannot be run.
    """
    appended = ""
    for library in libraries:
        file = pathlib.Path(library).resolve().with_suffix(".py")
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        if _loaded.get(str(file)) != text:
            try:
                code = compile(text, str(file), "exec")
                exec(code, {"__name__": file.stem})  # pylint: disable=exec-used
            except Exception as error:  # pylint: disable=broad-exception-caught
                raise InputError(f"{file}: {type(error).__name__}: {error}") from None
            _loaded[str(file)] = text
        own = re.sub(r"(?m)^(from|import) attnas.*\n", "", text)
        appended += f"\n\n# Of plug-in {file.stem}\n\n{own}"
    return appended
