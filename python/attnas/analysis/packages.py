"""Says what a script needs where this Python has it not. Stands on Python's own library alone."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys

_NOT_OF_DEBIAN = {"mlflow", "onnxruntime", "transformers"}  # 12 and 13


def require(description: str, *packages: str) -> None:
    """Ends the program where a package is missing: after its description where that was asked for,
    else with exit code 2 and a line that says what to install, and which Python has it.

    To be called before the packages are imported.

    @param description  the script's, with its command line.
    """
    lacking = missing(*packages)
    if not lacking:
        return
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(description.strip())
        sys.exit(0)
    text = f"{os.path.basename(sys.argv[0])}: {lacking}"
    if other := python_with(packages):
        text += f", or take the Python that has it: {shlex.join([other, *sys.argv])}"
    print(text, file=sys.stderr)
    sys.exit(2)


def missing(*packages: str) -> str:
    """Which of the packages this Python has not, and how to get them; empty where it has all."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    if not lacking:
        return ""
    debian = "" if _NOT_OF_DEBIAN & set(lacking) else (
        f"Debian: apt-get install {' '.join(f'python3-{name}' for name in lacking)}; elsewhere: ")
    return (f"{sys.executable} has no {', '.join(lacking)}; install what is missing "
            f"({debian}pip install {' '.join(lacking)})")


def python_with(packages: tuple[str, ...]) -> str | None:
    """The first other Python here that imports all packages; that of NAS_PYTHON before others."""
    candidates = [os.environ.get("NAS_PYTHON", ""), "/usr/bin/python3", "/usr/local/bin/python3",
                  *(os.path.join(folder, "python3") for folder in
                    os.environ.get("PATH", "").split(os.pathsep))]
    for candidate in dict.fromkeys(filter(None, map(shutil.which, filter(None, candidates)))):
        if os.path.realpath(candidate) == os.path.realpath(sys.executable):
            continue
        try:
            found = subprocess.run([candidate, "-c", f"import {', '.join(packages)}"], timeout=30,
                                   capture_output=True, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found:
            return candidate
    return None
