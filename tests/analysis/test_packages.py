"""Scripts under a Python that lacks what they stand on: what to install."""

import pathlib
import subprocess
import sys
import unittest
from unittest import mock

from attnas.analysis import packages
from attnas.analysis.__main__ import NEEDS

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "analysis"
LACKING = {f"{command}.py": needs for command, needs in NEEDS.items() if needs}


def run(script: str, *arguments: str) -> subprocess.CompletedProcess:
    """By a Python without its site-packages."""
    return subprocess.run([sys.executable, "-S", SCRIPTS / script, *arguments], text=True,
                          capture_output=True, check=False, env={"PATH": "/nowhere"})


class WithoutPackages(unittest.TestCase):
    def test_says_what_to_install(self):
        for script, needs in LACKING.items():
            ended = run(script, "x")
            self.assertEqual(ended.returncode, 2, script)
            self.assertEqual(ended.stdout, "")
            self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
            self.assertIn(f"{script}: {sys.executable} has no {', '.join(needs)}; install "
                          "what is missing", ended.stderr)
            self.assertIn(f"elsewhere: pip install {' '.join(needs)})", ended.stderr)

    def test_names_no_package_that_debian_has_not(self):
        self.assertIn("(Debian: apt-get install python3-none_of_these; elsewhere: ", packages.missing("none_of_these"))
        with mock.patch.object(packages, "_NOT_OF_DEBIAN", {"none_of_these"}):
            self.assertIn("install what is missing (pip install nor_this none_of_these)", packages.missing("nor_this", "none_of_these"))

    def test_help_works(self):
        for script in LACKING:
            for option in ("-h", "--help"):
                ended = run(script, option)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), script)
                self.assertIn(script, ended.stdout)

    def test_every_command_has_a_script(self):
        commands = SCRIPTS.parent / "python/attnas/analysis/commands"
        for folder in (SCRIPTS, commands):
            self.assertEqual({path.stem for path in folder.glob("*.py")} - {"__init__"}, set(NEEDS))
        ended = subprocess.run([sys.executable, "-m", "attnas.analysis", "compere"], text=True, capture_output=True, check=False,
                               cwd=SCRIPTS.parent / "python")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (2, "", 1))
        self.assertIn(", ".join(sorted(NEEDS)), ended.stderr)
