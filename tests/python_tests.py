"""python_tests.py FILE [NAME...]: runs a file of tests. What they share."""

import contextlib
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = pathlib.Path(os.environ.get("NAS_BIN") or ROOT / "build/ci/bin")


def has(*packages: str) -> bool:
    """Whether this Python has them."""
    return all(importlib.util.find_spec(package) for package in packages)


def need(*packages: str, program: str = "") -> None:
    """Skips the file without them; what a program needs is beside it."""
    for package in packages:
        if not has(package):
            raise unittest.SkipTest(f"this Python has no {package}")
    if program and not (PROGRAMS / program).is_file():
        raise unittest.SkipTest(f"without {program}, in the folder NAS_BIN")
    os.environ["PATH"] = f"{PROGRAMS}:{os.environ.get('PATH', '')}"


def said(main, *arguments) -> tuple[int, str, str]:
    """A command's exit code, what it printed, and what it complained about."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


class FolderTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


def main(file: str, *names: str) -> None:
    """A file that raises unittest.SkipTest is skipped as a whole, by ctest's SKIP_RETURN_CODE."""
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))
    try:
        unittest.main(pathlib.Path(file).stem, argv=[file, *names])
    except unittest.SkipTest as why:
        print(f"skipped: {why}")
        sys.exit(77)


if __name__ == "__main__":
    main(*sys.argv[1:])
