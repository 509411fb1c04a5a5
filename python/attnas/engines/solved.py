"""One worker of this machine that ends training runs once they solve their task: the time to an
accuracy costs no more than that time.

What reaches the accuracy NAS_SOLVED (0.9) in two validations in a row is stopped_early there, what
does not at step NAS_MOST, where that is given; each is looked at at every second validation. Values
are then those of the validation split.
"""

from __future__ import annotations

import os
import pathlib
import sys

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from engines import Child, Died, Left, lost, orders, place, say  # noqa: E402


def reached(curve: list[dict], accuracy: float) -> int | None:
    """The step of the first of two validations in a row that reach an accuracy; None: there are
    none yet.
    """
    good = [point["valid"]["correct"] >= accuracy * point["valid"]["tokens"] for point in curve]
    return next((point["step"] for point, now, then in zip(curve, good, good[1:]) if now and then),
                None)


def measure(child: Child, order: dict, steps: list[int], accuracy: float, most: float) -> dict:
    """An order's training runs until each has solved its task, is at step `most`, or at its end.

    @param steps  validations before the end. @return the line `finished` or `refused`.
    """
    finished, going = {}, {member["task"]["id"]: member for member in order["tasks"]}
    for until in [*(step for i, step in enumerate(steps) if i % 2 or step >= most), 0]:
        tasks = [{**member, "task": member["task"] | ({"until": until} if until else {})}
                 for member in going.values()]
        line = child.measure({**order, "tasks": tasks}, lambda told: say(**told))
        if line["kind"] != "finished":
            return line
        for one in line["evaluations"]:
            step = reached(one["curve"], accuracy)
            if one["status"] == "paused":
                if step is None and one["curve"][-1]["step"] < most:
                    continue
                one |= {"status": "stopped_early", "reason": f"accuracy {accuracy:g} from step "
                                                             f"{step}" if step else f"not by step "
                                                                                    f"{until}"}
            finished[one["id"]] = one
            del going[one["id"]]
        if not going:
            return {
                **line, "evaluations": [
                    finished[member["task"]["id"]] for member in order["tasks"]
                ]
            }
    raise AssertionError("what is not paused has ended")


def main() -> None:
    child, run = None, {}
    accuracy, most = float(os.environ.get("NAS_SOLVED",
                                          "0.9")), float(os.environ.get("NAS_MOST", "inf"))
    for line in orders():
        if line["kind"] == "run":
            run = line
            say(kind="workers", count=1, slots=1, devices=[])
        elif line["kind"] == "order":
            try:
                if not (child and child.alive()):
                    child = Child(run, place(run, None, None, 0))
                if line.get("measure"):
                    say(**child.measure(line, lambda told: say(**told)))
                else:
                    say(**measure(child, line, run["config"]["training"]["checkpoints"], accuracy,
                                  most))
            except Exception as error:  # whatever it is, the order must come back
                say(**lost(line, error if isinstance(error, Left) else Died.of(error)))
    if child:
        child.leave(save=False)


if __name__ == "__main__":
    main()
