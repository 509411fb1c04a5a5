"""Studies that run in this process."""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from attnas import settings
from attnas.errors import InputError, Stopped
from attnas.library import core
from attnas.result import Run, load

Listener = Callable[[dict[str, Any]], None]


class Study:
    """An experiment and the folder where it is run, in this process: as attnas.run, and with the
    objectives and algorithms that functions of this process are."""

    def __init__(self, config: str | os.PathLike | Mapping[str, Any],
                 output: str | os.PathLike | None = None, **overrides: Any):
        """Opens a configuration; parameters as of attnas.run.

        @throws InputError  listing all its mistakes, or where attnas._core is missing.
        """
        with tempfile.TemporaryDirectory() as folder:
            try:
                self._study = core().Study(os.fspath(settings.written(config, folder)),
                                           settings.overrides(overrides), os.fspath(output or ""))
            except InputError as error:
                raise InputError(settings.told(str(error), folder)) from None

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, complete."""
        return json.loads(self._study.config())

    @property
    def output(self) -> Path:
        """The run's folder."""
        return Path(self._study.folder())

    @property
    def notes(self) -> list[str]:
        """What was made to fit, in words."""
        return self._study.notes()

    def plan(self, calibrate: bool = True) -> dict[str, Any]:
        """What run() would do: "objectives", "facts", "continues", and where it trains "asks"
        (None: not known), "trainings", "candidates" by name, "workers", "seconds" and further ones.
        Writes nothing.

        @param calibrate  time a few training steps, which takes seconds; else seconds are 0.
        @throws InputError  where the experiment cannot be run here.
        """
        watch = _Watch(None)
        return json.loads(watch.over(lambda: self._study.plan(watch.hear, calibrate)))

    def run(self, on_progress: Listener | None = None, *, retry_failed: bool = False,
            force_device: bool = False) -> Run:
        """Runs the experiment, or continues it, and reads its result.

        @param on_progress  is called from another thread whenever an evaluation or a batch has
            finished, with a dict: "stage" ("search", then what follows it), "planned" asks (None:
            not known) or training runs, "asked", "trained", "rejected", "reused", "evaluation"
            (None after a batch), "best" or "hypervolume"; where seeds are added until mechanisms
            are decided, after each group of them "decided", a text each, and "planned" falls. What
            it raises ends the run, resumably.
        @param retry_failed  train again what is recorded as failed, out of memory, timed out or
            crashed.
        @param force_device  continue on another kind of device than recorded.
        @throws  as attnas.run; what ends a function that is an objective or the algorithm comes as
            Error, from that.
        """
        watch = _Watch(on_progress)
        watch.over(lambda: self._study.run(watch.hear, retry_failed, force_device))
        return load(self.output)


@dataclass(frozen=True)
class Order:
    """Something to measure."""

    id: str
    candidate: str  # canonical name
    replicate: int
    values: dict[str, float]  # known before training: parameters, flops, ...
    task: dict[str, Any]  # what determines the result
    evaluation: dict[str, Any]  # its record, to be completed


class AskAndTell:
    """A study whose candidates are measured by a loop of the caller's:

        with attnas.AskAndTell("configs/smoke.yaml", "runs/x") as loop:
            for order in loop:
                loop.tell(order, {"perplexity": measure(order.candidate)})
            run = loop.result()

    Everything else is as in Study.run. The study runs beside the loop and waits for its answers;
    orders may be told in any sequence, and from any thread. What is left before its end is
    continued by the same call.
    """

    def __init__(self, config: str | os.PathLike | Mapping[str, Any],
                 output: str | os.PathLike | None = None, on_progress: Listener | None = None,
                 **overrides: Any):
        """Starts the study; parameters as of Study and its run()."""
        self._opened = Study(config, output, **overrides)
        self._watch = _Watch(on_progress)
        self._loop = core().Loop(self._opened._study, self._watch.hear)
        weakref.finalize(self, self._loop.close)  # at the latest while Python can still be called

    def ask(self) -> Order | None:
        """The next order. Waits for the algorithm, not for what is out: None where the study has
        ended, or goes on only once something that is out is told.

        @throws Stopped  by KeyboardInterrupt.
        """
        text = self._watch.over(self._loop.ask)
        if text is None:
            return None
        order = json.loads(text)
        task, evaluation = order["task"], order["evaluation"]
        return Order(task["id"], task["candidate"], task["replicate"], evaluation["values"], task,
                     evaluation)

    def __iter__(self) -> Iterator[Order]:
        """Orders until ask() has none."""
        while order := self.ask():
            yield order

    def tell(self, order: Order, values: Mapping[str, float] | None = None, *, status: str = "ok",
             reason: str = "", **record: Any) -> None:
        """What an order came to.

        @param values  by name, at least what the objectives are computed from.
        @param status  "ok", or why there are none: "diverged", "out_of_memory", "timed_out",
            "crashed", "failed" and the reason; "paused" where the task has an "until".
        @param record  further parts of the record: curve, measured.
        @throws InputError  where the order is not out, or a value is missing.
        """
        given = {name: _number(value) for name, value in (values or {}).items()}
        self._loop.tell(json.dumps({
            **order.evaluation, **record, "status": status, "reason": reason,
            "values": {**order.evaluation["values"], **given}}))

    def put_back(self, order: Order) -> None:
        """Puts an order back, to be asked for again. @throws InputError  where it is not out."""
        self._loop.put_back(order.id)

    @property
    def ended(self) -> bool:
        """Whether the study has ended."""
        return self._loop.ended()

    def result(self) -> Run:
        """The run once the study has ended; waits for that. @throws  what Study.run() throws."""
        self._watch.over(self._loop.result)
        return load(self._opened.output)

    def close(self) -> None:
        """Leaves the study; what was told is kept."""
        self._loop.close()

    def __enter__(self) -> AskAndTell:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        try:
            if kind is None and self.ended:
                self._watch.over(self._loop.result)  # raises what ended it
        finally:
            self.close()


class _Watch:
    """Hears the library on its threads, and minds interrupts on this one."""

    # A stop is for all studies: how many have been stopped by their listeners, and which still are.
    stops: ClassVar[int] = 0
    ending: ClassVar[set[_Watch]] = set()

    def __init__(self, on_progress: Listener | None):
        self.on_progress = on_progress
        self.state: dict[str, Any] = {}
        self.error: BaseException | None = None

    def hear(self, kind: str, text: str) -> None:
        """What the library says; an exception stops it, and is raised by over()."""
        try:
            said = json.loads(text)
            if kind == "warned":
                warnings.warn(said, stacklevel=2)
            elif self.on_progress is not None:
                self.state.update(said)
                self.on_progress(dict(self.state))
        except BaseException as error:
            self.error = self.error or error
            _Watch.stops += 1
            _Watch.ending.add(self)
            core().request_stop(True)

    def over(self, work: Callable[[], Any]) -> Any:
        """What the library does for long: on another thread, so that KeyboardInterrupt reaches this
        one, which then asks for a stop and waits for it."""
        interrupted, before = False, _Watch.stops
        with ThreadPoolExecutor(1, "attnas") as pool:
            future = pool.submit(work)
            try:
                while True:
                    try:
                        result = future.result()
                        break
                    except KeyboardInterrupt as error:
                        # raised by the work, no Ctrl-C
                        if future.done() and future.exception() is error:
                            raise
                        interrupted = True
                        core().request_stop(True)
            except Stopped:
                if self.error is None:
                    if interrupted or _Watch.stops == before:
                        raise
                    while _Watch.ending:  # another study ends, and this one goes on
                        time.sleep(0.01)
                    return self.over(work)
            finally:
                if interrupted or self.error is not None:
                    core().request_stop(False)
                    _Watch.ending.discard(self)
        if self.error is not None:
            raise self.error
        if interrupted:
            raise Stopped("stopped; everything finished is kept, and the same call continues")
        return result


def _number(value: float) -> float | str:
    """A number as records have it: JSON knows no infinity."""
    return float(value) if math.isfinite(value) else str(float(value))
