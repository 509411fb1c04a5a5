"""Runs R, whose packages eaf and emoa are independent implementations to compare with."""

import subprocess
import tempfile
import unittest
from pathlib import Path
from shutil import which

import numpy as np


def require_r(*packages: str) -> None:
    """Skips the file, saying what is missing, unless R has the packages."""
    if which("Rscript") is None:
        raise unittest.SkipTest("Rscript is not installed")
    for package in packages:
        check = f'quit(status = !requireNamespace("{package}", quietly = TRUE))'
        if subprocess.run(["Rscript", "-e", check], capture_output=True, check=False).returncode:
            raise unittest.SkipTest(f"R has no package {package}")


def run_r(code: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Runs R code that finds the inputs as matrices of their names.

    Returns the matrices that the code put into its list `results`, by name.
    """
    with tempfile.TemporaryDirectory() as folder:
        read = []
        for name, matrix in inputs.items():
            np.savetxt(Path(folder, f"{name}.in"), matrix, fmt="%.17g")
            read.append(f'{name} <- as.matrix(read.table("{name}.in")); dimnames({name}) <- NULL\n')
        write = """
            for (name in names(results))
              write.table(format(as.matrix(results[[name]]), digits = 17), paste0(name, ".out"),
                          quote = FALSE, row.names = FALSE, col.names = FALSE)
        """
        script = Path(folder, "script.R")
        script.write_text("results <- list()\n" + "".join(read) + code + write, encoding="utf-8")
        run = subprocess.run(["Rscript", str(script)], cwd=folder, capture_output=True, text=True,
                             check=False)
        if run.returncode:
            raise RuntimeError(f"Rscript failed: {run.stderr}")
        return {path.stem: np.loadtxt(path, ndmin=2) for path in Path(folder).glob("*.out")}
