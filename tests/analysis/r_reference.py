"""Runs R, whose packages eaf and emoa are independent implementations to compare with."""

import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

import numpy as np

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def require_r(*packages: str) -> None:
    """Ends the program as skipped, saying what is missing, unless R has the packages."""
    if which("Rscript") is None:
        _skip("Rscript is not installed")
    for package in packages:
        check = f'quit(status = !requireNamespace("{package}", quietly = TRUE))'
        if subprocess.run(["Rscript", "-e", check], capture_output=True, check=False).returncode:
            _skip(f"R has no package {package}")


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


def _skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)
