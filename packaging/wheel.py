#!/usr/bin/env python3
"""Makes a wheel of an installation of attnas, on Python's own library alone; scripts/wheel calls it.

    wheel.py PREFIX VERSION FOLDER

PREFIX is what `cmake --install` made, VERSION the LibTorch that it was built for, such as 2.11.0+cu130, of which the wheel
asks for any patch. The wheel goes into FOLDER, and its path to standard output. Its programs have the libraries of this machine;
scripts/wheel puts them in.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel
_SHARED = ("analysis", "configs", "examples", "problems", "scripts")  # of share/attnas


class BadInput(Exception):
    """What was given is no installation, or no version."""


def installed_files(prefix: Path) -> dict[str, Path]:
    """The files of the package by their names in the wheel: the installation lies in the package that it holds."""
    share = prefix / "share" / "attnas"
    found = {f"attnas/bin/{file.name}": file for file in (prefix / "bin").glob("nas-*")}
    for file in prefix.glob("lib/**/libattnas*.so.[0-9]"):  # by the names that the programs ask for; a wheel has no links
        found[f"attnas/lib/{file.name}"] = file
        found |= {f"attnas/lib/{other.relative_to(file.parent)}": other for other in (file.parent / "attnas").rglob("*")}
    for file in sorted((share / "python" / "attnas").rglob("*")):
        found[f"attnas/{file.relative_to(share / 'python' / 'attnas')}"] = file
    for folder in [*(share / name for name in _SHARED), prefix / "share" / "doc" / "attnas" / "licences"]:
        for file in sorted(folder.rglob("*")):
            found[f"attnas/{file.relative_to(prefix)}"] = file
    found = {name: file for name, file in found.items() if file.is_file() and "__pycache__" not in name}
    for needed in ("bin/nas-run", "lib/libattnas.so.0", "programs.py", "share/attnas/configs/quickstart.yaml"):
        if f"attnas/{needed}" not in found:
            raise BadInput(f"{prefix}: is no installation of attnas with LibTorch, it lacks what becomes attnas/{needed}")
    return found


def metadata(project: dict, torch: str, readme: str) -> str:
    """METADATA of the project's table in pyproject.toml. LibTorch's C++ interface is not the same in two minor versions: a program
    runs with the one that it was compiled for."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}+torch{torch}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}", f"Requires-Dist: torch=={torch}.*",
             *(f"Requires-Dist: {name}" for name in required(project)), "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + readme


def required(project: dict) -> list[str]:
    """What the programs and the package take of PyPI, beside torch."""
    more = project["optional-dependencies"]
    return [*project["dependencies"], *more["frames"], *more["watch"]]


def record_line(name: str, content: bytes) -> str:
    """A line of RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(file: Path, info: str, contents: dict[str, tuple[bytes, bool]]) -> None:
    """Writes files, each with its content and whether it can be executed, and RECORD, which lists them."""
    record = "".join(record_line(name, content) for name, (content, _) in contents.items()) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, executable) in {**contents, f"{info}/RECORD": (record.encode(), False)}.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, content)


def make(prefix: Path, version: str, folder: Path) -> Path:
    """The wheel of an installation, with entry points named as its programs; returns its path."""
    minor = re.match(r"(\d+\.\d+)(\.|$)", version)
    if not minor:
        raise BadInput(f"{version}: is no version of LibTorch, must be as 2.11.0")
    torch = minor[1]
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "python" / "pyproject.toml").read_text())["project"]
    files = installed_files(prefix)
    contents = {name: (file.read_bytes(), bool(file.stat().st_mode & 0o100)) for name, file in sorted(files.items())}
    contents["attnas/built_for"] = (f"{torch}\n".encode(), False)
    programs = [Path(name).name for name in contents if name.startswith("attnas/bin/")]
    # Modules are for one Python each and named so; programs run beside any.
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    name = f"{project['name']}-{project['version']}+torch{torch}"
    info = f"{name}.dist-info"
    for part, text in {
            "METADATA": metadata(project, torch, (root / "README.md").read_text()),
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: attnas\nRoot-Is-Purelib: false\nTag: {tag}\n",
            "entry_points.txt": "[console_scripts]\nattnas = attnas.__main__:console\n" + "".join(
                f"{program} = attnas.programs:main\n" for program in programs),
            "LICENSE": (root / "LICENSE").read_text()}.items():
        contents[f"{info}/{part}"] = (text.encode(), False)
    made_of = prefix / "share" / "attnas" / "attnas.spdx.json"  # of packaging/spdx.py
    if made_of.exists():
        contents[f"{info}/sboms/{made_of.name}"] = (made_of.read_bytes(), False)
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{tag}.whl"
    write_wheel(wheel, info, contents)
    return wheel


def main() -> int:
    if len(sys.argv) != 4:
        print("wheel.py: usage: wheel.py PREFIX VERSION FOLDER", file=sys.stderr)
        return 2
    try:
        print(make(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
    except BadInput as error:
        print(f"wheel.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
