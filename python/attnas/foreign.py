"""A search over the parameters of a function of Python: attnas.search."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait)
from typing import Any

from attnas.errors import InputError
from attnas.functions import _version
from attnas.judge.decide import numbers
from attnas.result import Run
from attnas.study import AskAndTell, Order, Study

_SCORES = ("nll", "tokens", "correct", "pad_nll", "pad_tokens", "unknown_nll", "unknown_tokens",
           "batch_mean_nll", "batches")
_POINT = {"train_nll": 0.0, "valid": dict.fromkeys(_SCORES, 0)}  # of a curve that has steps alone
_ENDS = (InputError, BrokenExecutor, CancelledError)


def search(train: Callable[[dict[str, Any], int], Any],
           parameters: Mapping[str, Sequence], metrics: Sequence[str] = ("value",),
           output: str | os.PathLike | None = None, *, rungs: Sequence[int] = (),
           executor: Executor | None = None, version: str | None = None,
           on_progress: Callable[[dict[str, Any]], None] | None = None, **settings: Any) -> Run:
    """Searches for the parameters of a training, as nas-run does with problem: command. The same
    call goes on where one was stopped or killed.

        attnas.search(train, {"lr": (1e-4, 1e-1, "log"), "width": (16, 512, "integer"),
                              "optimizer": ["adam", "sgd"]}, output="runs/mine",
                      algorithm={"name": "motpe", "evaluations": 40})

    @param train       train(parameters, seed) returns a number, where there is one metric, or
        {name: number}; or yields pairs of a step and these, the last of which count. What it raises
        in the first call of a new run ends this; later it is a failure, as are NaN and infinity.
    @param parameters  bounds, with "log" or "integer" behind them or both, or a list of options.
    @param metrics     names of what train returns; each is minimised unless `objectives` says more.
    @param rungs       steps at which `fidelity` may stop it, the last is its end.
    @param executor    where it is called, of concurrent.futures or alike: threads, processes, Dask.
    @param version     of train, which a run goes on with alone; default: a hash of its source.
    @param on_progress, settings  as of Study.run() and of attnas.run.
    @throws InputError  where something is not as it must be, as of Study.
    """
    choices = {name: _choices(name, given) for name, given in parameters.items()}
    config = {"name": "search", "algorithm": {"name": "motpe"}, "problem": {
        "type": "function", "parameters": [f"{name} = {text}" for name, (text, _) in
                                           choices.items()],
        "metrics": list(metrics), "rungs": list(rungs),
        "version": _version("function", getattr(train, "__name__", "train"), train, version)}}
    folder = Study(config, output, **settings).output
    fresh, out = not folder.exists(), {}
    with AskAndTell(config, output, on_progress, **settings) as loop:
        while not loop.ended:
            while order := loop.ask():
                given = dict(pair.split("=", 1) for pair in order.candidate.split("|"))
                values = {name: choices[name][1](text) for name, text in given.items()}
                out[(executor.submit if executor else _here)(
                    _measured, train, values, order.evaluation["measured"]["seed"], tuple(metrics),
                    tuple(rungs), order.task.get("until", 0))] = order
                if executor is None:
                    break
            for future in wait(out, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if error and (fresh or isinstance(error, _ENDS)):
                    loop.close()
                    if fresh:
                        shutil.rmtree(folder)  # once it is mended it is another run
                    raise error
                _tell(loop, out.pop(future), error, {} if error else future.result())
                fresh = False
        return loop.result()


def _tell(loop: AskAndTell, order: Order, error: BaseException | None, record: dict) -> None:
    measured = {**order.evaluation["measured"], **record.pop("measured", {})}
    if error:
        record = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    loop.tell(order, **record, measured=measured)


def _choices(name: str, given: Sequence) -> tuple[str, Callable[[str], Any]]:
    """A parameter as configurations say it, and what makes its value of a text."""
    if isinstance(given, tuple):
        low, high, *words = given if len(given) > 1 else (*given, "")
        kind = int if "integer" in words else float
        return f"{low} .. {high} {' '.join(map(str, words))}", kind
    texts = {str(option).strip(): option for option in given}
    if isinstance(given, str) or len(texts) < len(given) or any(
            "," in text or ".." in text for text in texts):
        raise InputError(f"parameters: {name} = {given!r}, must be (lowest, highest) or a list of "
                         "options that differ as texts, which have neither , nor ..")
    return ", ".join(texts), texts.__getitem__


def _here(function: Callable, *arguments: Any) -> Future:
    future: Future = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def _measured(train: Callable, parameters: dict[str, Any], seed: int, metrics: Sequence[str],
              rungs: Sequence[int], until: int) -> dict[str, Any]:
    """What a training comes to: parts of its record."""
    began, values, curve, last = time.monotonic(), {}, [], {}
    where = f"{', '.join(f'{name}={value}' for name, value in parameters.items())}, seed {seed}"

    def named(answer: Any) -> dict[str, float]:
        found = numbers(answer if isinstance(answer, Mapping) else {metrics[0]: answer}, where)
        if missing := [name for name in metrics if name not in found]:
            raise InputError(f"{where}: train returned {', '.join(found)}, lacks {missing[0]}")
        return {name: found[name] for name in metrics}

    def record(status: str) -> dict[str, Any]:
        seconds = curve[-1]["seconds"] if status == "paused" else time.monotonic() - began
        return {"values": {**values, **last}, "status": status, "curve": curve,
                "measured": {"train_seconds": seconds}}

    def come_to(rung: int) -> bool:
        curve.append({**_POINT, "step": rung, "seconds": time.monotonic() - began})
        values.update({f"{name}@{rung}": last[name] for name in metrics})
        return rung == until

    def beyond() -> list[int]:
        return [rung for rung in rungs if not curve or rung > curve[-1]["step"]]

    answer = train(dict(parameters), seed)
    for step, said in answer if isinstance(answer, Iterator) else [(0, answer)]:
        last = named(said)
        if any(come_to(rung) for rung in beyond() if rung <= step):
            return record("paused")
    if not last:
        raise InputError(f"{where}: train yielded nothing, must yield a step and numbers")
    if left := beyond():
        come_to(left[-1])  # its end, whatever step that was
    bad = [name for name in last if last[name] - last[name] != 0.0]
    return {**record("diverged" if bad else "ok"),
            "reason": f"{bad[0]} = {last[bad[0]]:g}, must be finite" if bad else ""}
