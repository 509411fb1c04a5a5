"""Configurations and settings as the library reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnas.errors import InputError

_FILE = "python.yaml"


def written(config: str | os.PathLike | Mapping[str, Any], folder: str) -> Path:
    """The file of a configuration; of one that is given by its content, a file in the folder."""
    if not isinstance(config, Mapping):
        return Path(config)
    file = Path(folder, _FILE)
    file.write_text(_yaml(_from_here(config)), encoding="utf-8")
    return file


def overrides(settings: Mapping[str, Any]) -> list[str]:
    """Settings as on a command line."""
    return [f"{key}={_yaml(value)}" for key, value in settings.items()]


def told(text: str, folder: str) -> str:
    """A text with `config` where it names the file that written() made."""
    return text.replace(f"{folder}/{_FILE}", "config").strip()


def _from_here(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration whose `extends`, which counts from the folder of its file, counts from here.
    """
    def from_here(file: str | os.PathLike) -> str:
        # of the installation
        return os.path.abspath(file) if os.path.isfile(file) else os.fspath(file)

    files = config.get("extends", [])
    files = files if isinstance(files, (list, tuple)) else [files]
    return {**config, **({"extends": [from_here(file) for file in files]} if files else {})}


def _yaml(value: Any) -> str:
    """A setting as JSON, which YAML includes."""
    def plain(other: Any) -> Any:
        return other.tolist() if hasattr(other, "tolist") else os.fspath(other)  # of NumPy; a path

    try:
        return json.dumps(value, default=plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} is no value of a setting: {error}") from None
