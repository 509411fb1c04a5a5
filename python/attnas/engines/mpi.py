"""MPI, for one allocation of fixed size: no worker joins, and when one dies all end; the same
command continues.

Needs Python's package mpi4py (Debian: python3-mpi4py) and an mpirun, whose further words NAS_MPIRUN
may hold. nas-run is started once, in the allocation; mpirun starts a worker on each slot but the
first.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import socket
import sys
import threading

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    from engines import mpi as engine  # under its name, so that workers find its functions
    sys.exit(engine.main())

from engines import Child, Died, Faults, Left, lost, need, orders, place, say

need("mpi4py", "python3-mpi4py")
_STARTED = "NAS_ENGINE_STARTED"

_child: Child | None = None
_faults = Faults()
_told = None  # a communicator of its own for how far orders are


def measure(run: dict, order: dict) -> dict:
    """An order, done by a process of this rank. @return what is to be said of it."""
    global _child, _faults
    try:
        if _child is None or not _child.alive():
            _child = Child(
                run, place(run, None, None, int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))))
        line = _child.measure(order, lambda line: _told.send(line, dest=0))
        _faults = Faults()
        return line
    except Left as left:
        return lost(order, left)
    # also one of this worker's own, which would else be booked as the candidate's
    except Exception as error:
        death = Died.of(error)
        aside = _faults.add(death)
        if aside:  # no rank can leave the others
            print(f"mpi: the worker {socket.gethostname()} is useless: "
                  f"{aside}", file=sys.stderr, flush=True)
            os._exit(75)
        return lost(order, death)


def _pass_on(ended: threading.Event) -> None:
    """Says how far workers are."""
    while not ended.wait(0.1):
        while _told.iprobe():
            say(**_told.recv())


def _serve(pool, slots: int) -> None:
    run, futures = {}, {}
    ended = threading.Event()
    listener = threading.Thread(target=_pass_on, args=(ended,), daemon=True)
    listener.start()

    def done(number: int, future) -> None:
        if futures.pop(number, None) is None or future.cancelled():
            return  # withdrawn
        error = future.exception()  # measure() has blamed no candidate
        say(**(future.result() if error is
               None else {"kind": "lost", "order": number, "reason": str(error), "machine": True}))

    say(kind="workers", count=slots, slots=slots, devices=[])
    for line in orders():
        if line["kind"] == "run":
            run = line
        elif line["kind"] == "order":
            number = line["order"]
            futures[number] = pool.submit(measure, run, line)
            futures[number].add_done_callback(lambda future, number=number: done(number, future))
        elif line["kind"] == "withdraw":
            future = futures.pop(line["order"], None)
            if future:
                future.cancel()
        elif line["kind"] == "end":
            if futures:
                # mpirun then ends the workers, whose processes write checkpoints at the end of
                # their input
                os._exit(1)
            pool.shutdown()
            ended.set()
            listener.join()


def main() -> int:
    if _STARTED not in os.environ:
        os.environ[_STARTED] = "1"
        words = ["mpirun", *shlex.split(os.environ.get("NAS_MPIRUN", "")), "-x", _STARTED,
                 sys.executable, "-B", __file__]
        os.execvp(words[0], words)
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor
    global _told
    _told = MPI.COMM_WORLD.Dup()
    slots = MPI.COMM_WORLD.size - 1
    if slots == 0:
        sys.exit("mpi: one slot, must be at least two: one is nas-run's")
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
        if pool is not None:
            _serve(pool, slots)
    if _child:
        _child.leave(save=False)
        _child.wait(25.0)
    return 0
