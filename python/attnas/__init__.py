"""Searches over attention mechanisms, started and read from Python.

    import attnas
    run = attnas.run("configs/smoke.yaml", output="runs/x", **{"algorithm.population": 8})
    run = attnas.load("runs/x")
    run.front
    layer = attnas.Attention("dot|sparsemax|none|fixed|bias|0.1", width=256, heads=4)
    attnas.decide(train, {"full": 1, "swa": 2}, until="1%")

docs/python.md has more. The programs of attnas do the work, or its library in this process (Study,
AskAndTell); what a run says of itself is read as the scripts of analysis/ read it. Names are
imported when they are asked for, since a table needs nothing beside Python, the others numpy and
scipy, and frames pandas.
"""

import importlib

_MODULES = {
    "Attention": "attention", "AskAndTell": "study", "Candidate": "functions", "Error": "errors",
    "InputError": "errors", "Layer": "attention", "MachineError": "errors", "Order": "study",
    "Run": "result", "Search": "functions", "Stopped": "errors", "Study": "study", "Table": "table",
    "algorithm": "functions", "decide": "judge.decide", "load": "result",
    "objective": "functions", "replace": "replacement", "run": "launch", "search": "foreign"}
_ALONE = ("errors", "replacement", "table")  # modules that say themselves what they need
_SUBMODULES = {*_MODULES.values(), "frames", "library", "model", "settings"}

__all__ = [name for name in _MODULES if name not in ("Attention", "Layer", "replace")]  # need torch


def __getattr__(name: str):
    """What _MODULES lists, or a module of the package, where it is asked for."""
    module = name if name in _SUBMODULES else _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'attnas' has no attribute {name!r}")
    if module not in _ALONE:
        from attnas.analysis import packages
        if missing := packages.missing("numpy", "scipy", *["pandas"] * (module == "frames")):
            raise ImportError(f"attnas: {missing}")
    found = importlib.import_module(f"attnas.{module}")
    return found if module == name else getattr(found, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
