"""The wheel of packaging/wheel.py: what it holds and says of itself, and that its console scripts run the programs in it.

Made of an installation of the build, whose LibTorch takes the place of the package torch; a folder with a version stands in for that.
scripts/wheel-test tries a whole one, which needs PyPI."""

import base64
import csv
import email
import hashlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path
from python_tests import ROOT

NAS_RUN = Path(os.environ["NAS_RUN"])
PROGRAMS = ["analyse", "compare", "convert", "data", "export", "model", "run", "train",
            "watch", "work"]


def wheel_module():
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "packaging" / "wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.work.cleanup)
        cls.folder = Path(cls.work.name)
        subprocess.run(["cmake", "--install", NAS_RUN.parents[1], "--prefix", cls.folder / "prefix", "--strip"], check=True,
                       stdout=subprocess.DEVNULL)
        (cls.folder / "prefix/share/attnas/attnas.spdx.json").write_text("{}")  # of packaging/spdx.py
        cls.wheel = wheel_module().make(cls.folder / "prefix", "1.13.1", cls.folder / "wheels")
        with zipfile.ZipFile(cls.wheel) as archive:
            cls.files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
            cls.modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
        cls.info = next(name.split("/")[0] for name in cls.files if name.endswith("/METADATA"))
        cls.site = cls.folder / "site"
        for name, content in cls.files.items():
            file = cls.site / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(cls.modes[name])
        cls.scripts = cls.folder / "bin"
        cls.scripts.mkdir()
        for line in cls.files[f"{cls.info}/entry_points.txt"].decode().splitlines()[1:]:
            name, place = line.split(" = ")
            module, function = place.split(":")
            (cls.scripts / name).write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")

    def test_the_libraries_need_the_cxx_library_before_libtorch(self):
        # libtorch.so of PyPI's PyTorch 2.11 exports functions of std::filesystem, one of which ended the process.
        for pattern in ("lib/libattnas.so.*", "**/_core*.so"):
            library = next((self.folder / "prefix").glob(pattern))
            read = subprocess.run(["readelf", "--dynamic", library], capture_output=True, text=True, check=True,
                                  env={**os.environ, "LC_ALL": "C"}).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.*?)\.so", read)
            self.assertEqual(needed[0], "libstdc++", library)

    def run_script(self, name, *arguments, torch="1.13.1", folder=None):
        """A console script as pip would write it, with a package torch of a version, or none."""
        return self.run_python(self.scripts / name, *arguments, torch=torch, folder=folder)

    def run_python(self, *arguments, torch="1.13.1", folder=None):
        place = self.folder / f"torch-{torch}"
        if torch:
            (place / "torch").mkdir(parents=True, exist_ok=True)
            (place / "torch" / "__init__.py").write_text("raise AssertionError('torch was imported')\n")
            (place / "torch" / "version.py").write_text(f"from typing import Optional\n__version__ = '{torch}'\ncuda = None\n")
        path = f"{self.site}:{place}"
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        # -S: no packages of this Python's own, among which torch could be
        return subprocess.run([sys.executable, "-S", *arguments], capture_output=True, text=True,
                              env=environment, cwd=folder)

    def test_says_what_it_is(self):
        project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
        said = email.message_from_bytes(self.files[f"{self.info}/METADATA"])
        self.assertEqual((said["Name"], said["Version"]), (project["name"], f"{project['version']}+torch1.13"))
        self.assertEqual(said["Requires-Python"], project["requires-python"])
        self.assertEqual(said.get_all("Requires-Dist"), ["torch==1.13.*", "numpy", "scipy", "pandas", "starlette", "uvicorn"])
        self.assertEqual(self.files[f"{self.info}/sboms/attnas.spdx.json"], b"{}")
        tag = email.message_from_bytes(self.files[f"{self.info}/WHEEL"])
        self.assertEqual(tag["Root-Is-Purelib"], "false")
        self.assertRegex(tag["Tag"], "^py3-none-linux_")
        self.assertEqual(self.wheel.name, f"{self.info.removesuffix('.dist-info')}-{tag['Tag']}.whl")

    def test_records_its_files(self):
        lines = list(csv.reader(io.StringIO(self.files[f"{self.info}/RECORD"].decode())))
        self.assertEqual([name for name, _, _ in lines], list(self.files))
        for name, digest, size in lines[:-1]:
            content = self.files[name]
            right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, size), (f"sha256={right}", str(len(content))), name)
        self.assertEqual(lines[-1], [f"{self.info}/RECORD", "", ""])

    def test_holds_programs_and_package(self):
        programs = [name for name in self.files if name.startswith("attnas/bin/")]
        self.assertEqual(programs, [f"attnas/bin/nas-{program}" for program in PROGRAMS])
        self.assertTrue(all(self.modes[name] & 0o111 for name in programs))
        self.assertEqual(sorted(os.listdir(self.scripts)), ["attnas", *(f"nas-{program}" for program in PROGRAMS)])
        package = {f"attnas/{file.relative_to(ROOT / 'python' / 'attnas')}" for pattern in ("*.py", "*.css", "*.html", "*.js")
                   for file in (ROOT / "python" / "attnas").rglob(pattern)}
        self.assertLessEqual(package, set(self.files))
        for folder, pattern in (("configs", "*.yaml"), ("analysis", "*.py")):
            files = {f"attnas/share/attnas/{folder}/{file.name}" for file in (ROOT / folder).glob(pattern)}
            self.assertLessEqual(files, set(self.files))
        self.assertFalse([name for name in self.files if "__pycache__" in name or "/include/" in name])

    def test_scripts_run_the_programs_without_importing_torch(self):
        ours = self.run_script("nas-run", "--version")
        self.assertEqual((ours.returncode, ours.stderr), (0, ""))
        bare = {"PATH": "/usr/bin:/bin"}  # scripts are run without variables that numerical libraries read
        self.assertEqual(ours.stdout, subprocess.run([NAS_RUN, "--version"], capture_output=True, text=True, env=bare).stdout)
        for program in PROGRAMS:
            said = self.run_script(f"nas-{program}", "--help")
            self.assertEqual((said.returncode, said.stderr), (0, ""), program)
            self.assertIn(f"nas-{program}", said.stdout)
        self.assertEqual(self.run_script("nas-run", "nothing.yaml").returncode, 2)

    def test_programs_find_what_lies_in_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_script("nas-run", "tabular_ga", "--no-report", "--quiet", folder=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            digest = (Path(folder) / "runs" / "tabular_ga" / "results.json").read_text()
        self.assertIn(str(self.site / "attnas" / "share" / "attnas" / "problems" / "tables" / "text.table"), digest)

    def test_the_module_takes_torch_from_another_folder_of_packages(self):
        load = ("-c", "from attnas.library import core; core()")
        self.assertIn("AssertionError: torch was imported", self.run_python(*load).stderr)
        said = self.run_python(*load, torch="1.1.0").stderr
        self.assertIn("InputError: torch is version 1.1.0, must be 1.13, whose C++ library this package was built for", said)

    def test_refuses_another_torch_and_none(self):
        for torch, text in ((None, "the package torch is not installed, must be 1.13:"),
                            ("1.1.0", "torch is version 1.1.0, must be 1.13,"), ("1.130.0", "torch is version 1.130.0")):
            said = self.run_script("nas-run", "--version", torch=torch)
            self.assertEqual((said.returncode, said.stdout), (2, ""))
            self.assertTrue(said.stderr.startswith(f"nas-run: {text}"), said.stderr)

    def test_refuses_what_is_no_installation_and_no_version(self):
        wheel = wheel_module()
        with self.assertRaisesRegex(wheel.BadInput, "is no installation of attnas with LibTorch, it lacks .* attnas/bin/nas-run"):
            wheel.make(self.folder / "nowhere", "2.11.0", self.folder / "none")
        with self.assertRaisesRegex(wheel.BadInput, "2: is no version of LibTorch, must be as 2.11.0"):
            wheel.make(self.folder / "prefix", "2", self.folder / "none")
        self.assertFalse((self.folder / "none").exists())
