"""An engine without workers, with a random scheduler: fake_engine.py SEED [KIND [LIE]].

It answers orders of FakeMeasurement in any order, late, twice, under the number of an order that it has given up; it gives up
some of them, but no task three times. KIND: what else it does. The kinds `trained`, `lie` and `lie once` have the values of a
training run. Those that lie change their answers by the file LIE, {"line": P, "evaluation": P}: merge patches (RFC 7396) of the
line and of its first evaluation."""

import json
import math
import os
import random
import select
import sys

SEED, KIND = int(sys.argv[1]), (sys.argv[2:] or [""])[0]
LIE = json.load(open(sys.argv[3])) if sys.argv[3:] else {}
rng = random.Random(SEED)
SCORES = {"nll": 1.5, "tokens": 3, "correct": 0, "pad_nll": 0.0, "pad_tokens": 0, "unknown_nll": 0.0, "unknown_tokens": 0,
          "batch_mean_nll": 0.0, "batches": 0}
waiting, lost, sent, losses, lines = {}, [], [], {}, b""


def say(**line):
    os.write(1, (json.dumps(line) + "\n").encode())


def result(order):
    evaluations = []
    for one in order["tasks"]:
        task, evaluation = one["task"], one["evaluation"]
        value = float(sum(task["candidate"].encode()) + task["replicate"])
        values = evaluation["values"] | {"value": value}
        trained = KIND in ("trained", "lie", "lie once")
        if trained:
            values["perplexity"] = math.exp(SCORES["nll"] / SCORES["tokens"])
        curve = [{"step": task.get("until", 40 if trained else 1), "train_nll": 0.0, "seconds": 0.0, "valid": SCORES}]
        evaluations.append(evaluation | {"status": "paused" if "until" in task else "ok", "values": values, "curve": curve,
                                         "measured": evaluation["measured"] | {"train_seconds": rng.random()}})
    return {"kind": "finished", "order": order["order"], "evaluations": evaluations, "device": "abacus"}


def inspection(order):
    value = {"status": "ok", "measured": {order["measure"]: {"value": 3}}}
    if KIND == "hot":
        value = {"status": "failed", "reason": "it burns"}
    return result(order) | {"measure": order["measure"], "evaluations": [order["tasks"][0]["evaluation"] | value]}


def patched(of, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    of = dict(of) if isinstance(of, dict) else {}
    for key, value in patch.items():
        of[key] = patched(of.get(key), value)
        if value is None:
            del of[key]
    return of


def lie(answer):
    first, *others = answer["evaluations"]
    answer = answer | {"worker": "node1:7", "evaluations": [patched(first, LIE["evaluation"] or {}), *others]}
    return patched(answer, LIE["line"] or {})


def act():
    global KIND
    number = rng.choice(list(waiting))
    order, chance = waiting[number], rng.random()
    ids = [one["task"]["id"] for one in order["tasks"]]
    if KIND == "useless" or KIND == "broken" and number <= 4:  # each is sent again under another number
        del waiting[number]
        if number == 3:
            say(kind="aside", worker="node1", reason="no nas-work")
        say(kind="lost", order=number, reason="there is no nas-work on PATH", machine=True)
    elif KIND == "deadly" and any(one["task"]["candidate"].startswith("d") for one in order["tasks"]):
        del waiting[number]
        say(kind="lost", order=number, reason="killed by signal 9")
    elif KIND in ("lie", "lie once"):
        answer = inspection(order) if "measure" in order else result(order)
        del waiting[number]
        say(**lie(answer))
        if KIND == "lie once":
            KIND = "trained"
    elif "measure" in order:
        answer = inspection(waiting.pop(number))
        if chance < 0.5 and number not in losses and KIND != "certain":  # lost, and then it comes all the same, late
            losses[number + 1] = 1
            say(kind="lost", order=number, reason="node is gone")
            sent.append(answer)
        else:
            say(**answer)
    elif chance < 0.1 and KIND not in ("broken", "certain") and max(losses.get(one, 0) for one in ids) < 2:
        losses.update({one: losses.get(one, 0) + 1 for one in ids})
        lost.append(waiting.pop(number))
        say(kind="lost", order=number, reason="node is gone")
    elif chance < 0.3:
        say(kind="progress", order=number, step=rng.randrange(9), steps=9, loss=1.0, worker="a")
    elif chance < 0.4 and lost:  # the worker was not dead after all
        sent.append(result(lost.pop(rng.randrange(len(lost)))))
        say(**sent[-1])
    elif chance < 0.5 and sent:
        say(**rng.choice(sent))
    else:
        sent.append(result(waiting.pop(number)))
        say(**sent[-1])
        if KIND == "different":
            sent[-1]["evaluations"][0]["values"]["value"] += 1e-12
            say(**sent[-1])
        if KIND == "device":
            say(**(sent[-1] | {"device": "slide rule", "worker": "b"}))


def take(line):
    if line["kind"] == "order":
        waiting[line["order"]] = line
    elif line["kind"] == "withdraw":
        waiting.pop(line["order"], None)
    elif line["kind"] == "end":
        sys.exit(0)
    if line["kind"] == "order" and KIND in ("garbage", "unknown", "dies", "refuses"):
        print("something is wrong here", file=sys.stderr, flush=True)
        if KIND == "garbage":
            os.write(1, b"Traceback (most recent call last):\n")
        elif KIND == "dies":
            sys.exit(3)
        elif KIND == "refuses":
            say(kind="refused", order=line["order"], reason="revision = a, must be b to be measured here")
        say(kind="what")


say(kind="workers", count=2, slots=4, devices=[])
while True:
    if select.select([0], [], [], 0 if waiting and KIND != "idle" else None)[0]:
        part = os.read(0, 65536)
        if not part:
            sys.exit(0)
        *whole, lines = (lines + part).split(b"\n")
        for text in whole:
            take(json.loads(text))
    elif waiting:
        act()
