"""Searches over attention mechanisms, started and read from Python.

    import attnas
    run = attnas.run("configs/smoke.yaml", output="runs/x", **{"algorithm.population": 8})
    run = attnas.load("runs/x")
    run.front
    layer = attnas.Attention("dot|sparsemax|none|fixed|bias|0.1", width=256, heads=4)   # with PyTorch

docs/python.md has more. The programs of attnas do the work, or its library in this process (Study,
AskAndTell); what a run says of itself is read as the scripts of analysis/ read it.
"""

from nas_analysis import packages as _packages

if _missing := _packages.missing("numpy", "pandas", "scipy"):
    raise ImportError(f"attnas: {_missing}")

from attnas.errors import Error, InputError, MachineError, Stopped
from attnas.functions import Candidate, Search, algorithm, objective
from attnas.launch import run
from attnas.result import Run, load
from attnas.study import AskAndTell, Order, Study

__all__ = ["AskAndTell", "Candidate", "Error", "InputError", "MachineError", "Order", "Run", "Search", "Stopped", "Study",
           "algorithm", "load", "objective", "run"]


def __getattr__(name: str):
    """Attention, which alone needs torch, where it is asked for."""
    if name == "Attention":
        from attnas.attention import Attention
        return Attention
    raise AttributeError(f"module 'attnas' has no attribute {name!r}")
