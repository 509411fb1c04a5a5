"""Says what a script needs where this Python has it not. Stands on Python's own library alone."""

import importlib.util
import os
import sys

_NOT_OF_DEBIAN = {"tokenizers", "transformers"}  # 12 and 13


def require(description: str, *packages: str) -> None:
    """Ends the program where a package is missing: after its description where that was asked for,
    else with exit code 2 and a line that says what to install.

    To be called before the packages are imported.

    @param description  the script's, with its command line.
    """
    lacking = missing(*packages)
    if not lacking:
        return
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(description.strip())
        sys.exit(0)
    print(f"{os.path.basename(sys.argv[0])}: {lacking}", file=sys.stderr)
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
