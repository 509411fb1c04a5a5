"""Dask distributed: workers join and leave at any time, and what the dead worked on goes to others.

Needs Python's packages distributed and cryptography, here and where workers are. The
scheduler runs beside nas-run and takes encrypted connections alone, of those who have the
certificate in RUN/cluster.json. Workers: scripts/workers RUN --slots N.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import pathlib
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid

if __name__ == "__main__":
    # else this file is what "dask" means
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    from engines import dask as engine  # under its name, so that workers find its functions
    sys.exit(engine.main())

from engines import Child, Died, Faults, Left, lost, need, orders, place, say

need("distributed", "python3-distributed")
need("cryptography", "python3-cryptography")  # of certificates
import dask  # noqa: E402
import distributed  # noqa: E402
from distributed.comm import get_local_address_for  # noqa: E402
from distributed.core import Status  # noqa: E402
from distributed.security import Security  # noqa: E402

_SECONDS_BETWEEN_LOOKS = 1.0
logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in words


class _WithoutHttp:
    """A server of Dask without its HTTP server, which is there without a dashboard, too, on all
    addresses and for anybody.
    """

    def start_http_server(self, *_, **__) -> None:
        pass


class _Worker(_WithoutHttp, distributed.Worker):
    pass


class _Scheduler(_WithoutHttp, distributed.Scheduler):
    pass


def _host(address: str) -> str:
    """An address as Dask takes it: one of IPv6 in brackets."""
    return f"[{address}]" if ":" in address and "[" not in address else address


# ---- On a worker.

class _Bench:
    """The processes of this worker, which outlive an order."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: dict[str, list[tuple[int, Child]]] = {}  # by run
        self.at_work: dict[tuple[str, int], tuple[int, Child]] = {}  # by run and order
        self.folder: str | None = None
        self.scratch: str | None = None
        # orders that nobody wants, and runs (None) without a manager
        self.over: set[tuple[str, int | None]] = set()
        self.left: list[Child] = []  # asked to end
        self.faults = Faults()
        self.aside: str | None = None  # why this worker gets nothing more
        self.leaving = False
        self.ended = False  # the run is complete

    def take(self, run: dict, order: int) -> Child:
        with self.lock:
            idle = self.idle.setdefault(run["id"], [])
            used = {slot for slot, _ in [*idle, *self.at_work.values()]}
            free = next(slot for slot in range(len(used) + 1) if slot not in used)
            pair = idle.pop() if idle else (free,
                                            Child(run, place(run, self.folder, self.scratch, free)))
            self.at_work[run["id"], order] = pair
            return pair[1]

    def put_back(self, run: dict, order: int) -> None:
        with self.lock:
            pair = self.at_work.pop((run["id"], order))
            if pair[1].alive():
                self.idle[run["id"]].append(pair)

    def unwanted(self, run: dict, order: int) -> bool:
        return not self.over.isdisjoint({(run["id"], None), (run["id"], order)})

    def leave(self, save: bool, run: str | None = None) -> None:
        """Asks the processes of a run to end, or all."""
        with self.lock:
            children = [child for (of, _), (_, child) in self.at_work.items() if run in (None, of)]
            for of in self.idle:
                if run in (None, of):
                    children += [child for _, child in self.idle[of]]
                    self.idle[of] = []
            self.left = [child for child in self.left if child.alive()] + children
        for child in children:
            child.leave(save)


bench = _Bench()


def measure(run: dict, order: dict) -> dict:
    """A task of Dask: an order, done by a process of this worker. @return what is to be said of it.
    """
    while bench.leaving or bench.aside:
        time.sleep(_SECONDS_BETWEEN_LOOKS)  # until this worker is gone and the order with another
    worker = distributed.get_worker()
    number = order["order"]
    if bench.unwanted(run, number):
        return {}
    child = None
    try:
        child = bench.take(run, number)
        line = child.measure(order, lambda line: worker.log_event(run["id"], {"line": line}))
        bench.faults = Faults()
        return line
    except Left:
        if bench.unwanted(run, number):
            return {}
        raise distributed.Reschedule() from None
    # also one of this worker's own, which would else be booked as the candidate's
    except Exception as error:
        death = Died.of(error)
        if bench.unwanted(run, number):
            return {}
        host = socket.gethostname()
        aside = bench.faults.add(death)
        if aside and not bench.aside:
            worker.log_event(run["id"],
                             {"line": {"kind": "aside", "worker": host, "reason": aside}})
            bench.aside = aside
        return lost(order, Died(f"on {host}: {death}", death.machine))
    finally:
        if child:
            bench.put_back(run, number)


def withdraw(run: str, number: int) -> None:
    bench.over.add((run, number))
    pair = bench.at_work.get((run, number))
    if pair:
        pair[1].leave()
        # what stands still hears nothing
        threading.Thread(target=pair[1].wait, args=(pair[1].grace,), daemon=True).start()


def end(run: str, save: bool, ended: bool) -> None:
    bench.ended = ended
    bench.over.add((run, None))
    bench.leave(save, run)


async def _serve(address: str, listen: str | None, security: Security, slots: int,
                 grace: float) -> int:
    """A worker of Dask until its scheduler is gone. @return 143 if it was this process that was to
    end, 75 if it is set aside.
    """
    stopped = asyncio.Event()
    with tempfile.TemporaryDirectory() as folder:
        host = _host(listen) if listen else get_local_address_for(address)
        async with _Worker(address, host=host, security=security, nthreads=slots, death_timeout=5,
                           local_directory=folder, memory_limit=0) as worker:
            print(f"workers: {slots} slots for the run at {address}", file=sys.stderr, flush=True)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            while not stopped.is_set() and not bench.aside and worker.status in (Status.running,
                                                                                 Status.paused):
                await asyncio.sleep(0.2)
            bench.leaving = stopped.is_set()
            bench.leave(True)
            for child in bench.left:
                await asyncio.to_thread(child.wait, grace)
            # what it has said is on its way
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS if bench.aside else 0)
            await worker.close(timeout=2, executor_wait=False, nanny=False)
    if bench.aside:
        print(f"workers: set aside after {bench.aside}", file=sys.stderr, flush=True)
        return 75
    return 143 if stopped.is_set() else 0


def work(words: list[str]) -> int:
    """A worker of the run in a folder, until the run is complete."""
    parser = argparse.ArgumentParser(prog="workers", description="Measures for the run in a "
                                     "folder, on this machine, until it is complete.")
    parser.add_argument("folder", help="of the run, as this machine sees it")
    parser.add_argument("--slots", type=int, default=1, help="orders at once, each by a process "
                                                             "of its own (default: 1)")
    parser.add_argument("--scratch", help="folder of this machine for checkpoints, where the "
                                          "run's folder is not shared for writing")
    parser.add_argument("--listen", help="address of this machine to listen on (default: that by "
                                         "which it reaches the manager)")
    parser.add_argument("--idle", type=float, default=600.0, help="seconds without a run after "
                                                                  "which it leaves (default: 600)")
    arguments = parser.parse_args(words)
    if arguments.slots < 1:
        parser.error(f"--slots {arguments.slots}, must be at least 1")
    if not arguments.idle >= 0:
        parser.error(f"--idle {arguments.idle}, must be at least 0")
    if os.path.exists(arguments.folder) and not os.path.isdir(arguments.folder):
        parser.error(f"{arguments.folder}: is no folder")
    bench.folder, bench.scratch = os.path.abspath(arguments.folder), arguments.scratch
    file = pathlib.Path(arguments.folder) / "cluster.json"
    if not os.path.exists(file):
        print(f"workers: no run in {arguments.folder} yet, waits {arguments.idle:g} s for "
              f"one", file=sys.stderr, flush=True)
    last = time.monotonic()
    while time.monotonic() - last < arguments.idle:
        try:
            cluster = json.loads(file.read_text())
            code = asyncio.run(
                _serve(cluster["address"], arguments.listen, Security(**cluster["security"]),
                       arguments.slots, cluster["grace"]))
            if code or bench.ended:
                return code
            last = time.monotonic()
        except FileNotFoundError:
            pass  # not begun yet, or between two processes of it
        except (OSError, asyncio.TimeoutError) as error:
            print(f"workers: {error}", file=sys.stderr)
        finally:
            bench.leave(True)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    if not os.path.isdir(arguments.folder):
        print(f"workers: {arguments.folder}: there is no such folder, after {arguments.idle:g} "
              f"s", file=sys.stderr)
        return 2
    print(f"workers: no run in {arguments.folder} for {arguments.idle:g} s", file=sys.stderr)
    return 0


# ---- Beside nas-run.

def _address() -> str:
    """Of this machine, on its default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def _write_private(file: pathlib.Path, text: str) -> None:
    new = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    os.replace(new, file)


class _Engine:
    """Gives Dask the orders of nas-run, and nas-run what comes of them."""

    def __init__(self, run: dict) -> None:
        settings = run["config"].get("cluster", {})
        self.run = run | {"id": uuid.uuid4().hex}
        self.futures: dict[int, distributed.Future] = {}
        self.ending = threading.Event()
        dask.config.set({"distributed.scheduler.worker-ttl": f"{settings.get('silence', 60)}s",
                         # most deaths are no order's fault; nas-run counts again
                         "distributed.scheduler.allowed-failures": 20,
                         # what waits is for whoever joins
                         "distributed.scheduler.worker-saturation": 1.0})
        self.cluster, self.file = None, pathlib.Path(run["folder"]) / "cluster.json"
        if settings.get("scheduler", "auto") != "auto":
            # as Dask's own configuration says
            address, security = settings["scheduler"], Security()
        else:
            security = Security.temporary()
            listen = settings.get("listen", "auto")
            host = _address() if listen == "auto" else _host(listen)
            self.cluster = distributed.SpecCluster(security=security, scheduler={
                "cls": _Scheduler, "options": {
                    "host": host, "port": 0, "protocol": "tls://", "security": security}})
            address = self.cluster.scheduler_address
            names = ("tls_ca_file", *(f"tls_{role}_{part}" for role in ("client", "worker")
                                      for part in ("cert", "key")))
            self.said = json.dumps({"address": address, "grace": run["grace"],
                                    "security": {name: getattr(security, name)
                                                 for name in names} | {"require_encryption": True}})
            _write_private(self.file, self.said)
        self.client = distributed.Client(address, security=security)
        self.client.subscribe_topic(self.run["id"], lambda event: say(**event[1]["line"]))
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Says who works, whenever that changes."""
        said = None
        while not self.ending.wait(_SECONDS_BETWEEN_LOOKS):
            workers = self.client.scheduler_info()["workers"].values()
            now = {"count": len(workers), "slots": sum(worker["nthreads"] for worker in workers)}
            if now != said:
                say(kind="workers", devices=[], **now)
                said = now

    def submit(self, order: dict) -> None:
        number = order["order"]
        future = self.client.submit(measure, self.run, order, key=f"{self.run['id']}-{number}",
                                    pure=False, priority=order.get("priority", 0))
        self.futures[number] = future
        future.add_done_callback(lambda done: self.done(number, done))

    def done(self, number: int, future: distributed.Future) -> None:
        if self.futures.pop(number, None) is None or self.ending.is_set():
            return  # withdrawn
        if future.status == "finished":
            say(**future.result())
        else:
            error = future.exception() if future.status == "error" else "the scheduler has lost it"
            # measure() has blamed no candidate
            say(kind="lost", order=number, reason=str(error), machine=True)

    def withdraw(self, number: int) -> None:
        future = self.futures.pop(number, None)
        if future is None:
            return
        future.cancel()
        try:
            self.client.run(withdraw, self.run["id"], number, wait=False, on_error="ignore")
        except (OSError, TimeoutError, asyncio.TimeoutError, ValueError):
            pass  # workers that are gone need not be told

    def end(self, save: bool) -> None:
        self.ending.set()
        try:
            if self.cluster and self.file.read_text() == self.said:  # not that of the next process
                self.file.unlink()
        except OSError:
            pass
        try:
            self.client.run(end, self.run["id"], save, not save and self.cluster is not None)
            deadline = time.monotonic() + self.run["grace"]
            while save and time.monotonic() < deadline and any(
                    self.client.run(busy, self.run["id"]).values()):
                time.sleep(0.2)
        except (OSError, TimeoutError, asyncio.TimeoutError, ValueError):
            pass  # workers that are gone need not be told
        self.client.close(timeout=2)
        if self.cluster:
            self.cluster.close(timeout=5)


def busy(run: str) -> bool:
    """Whether a process of a run is at work here."""
    return any(of == run and child.alive() for (of, _), (_, child) in list(bench.at_work.items()))


def main() -> int:
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2:])
    engine = None
    for line in orders():
        if line["kind"] == "run":
            engine = _Engine(line)
        elif line["kind"] == "order":
            engine.submit(line)
        elif line["kind"] == "withdraw":
            engine.withdraw(line["order"])
        elif line["kind"] == "end" and engine:
            engine.end(line.get("save", True))
    return 0
