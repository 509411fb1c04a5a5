"""Commands that read runs: python -m attnas.analysis COMMAND ..., or analysis/COMMAND.py ... of a
checkout.
"""

import ast
import importlib
import sys
from pathlib import Path

from . import packages

_ARRAYS = ("numpy", "scipy")
_FRAMES = (*_ARRAYS, "pandas")
NEEDS = {"attention": _ARRAYS, "compare": _ARRAYS, "components": _FRAMES, "export": (),
         "report": _ARRAYS}


def main(command: str, arguments: list[str]) -> int:
    """Carries out a module of commands/; returns the exit code. What packages it needs is said
    before they are imported.
    """
    source = (Path(__file__).parent / "commands" / f"{command}.py").read_text(encoding="utf-8")
    packages.require(ast.get_docstring(ast.parse(source)), *NEEDS[command])
    return importlib.import_module(f"attnas.analysis.commands.{command}").main(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in NEEDS:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    print(f"attnas.analysis: give one of {', '.join(sorted(NEEDS))}, and --help for what it "
          f"does", file=sys.stderr)
    sys.exit(2)
