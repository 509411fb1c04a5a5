"""A judgement of commands: its folder, and what it says while it goes on."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

from attnas.analysis.words import counted
from attnas.command_line import printable
from attnas.errors import InputError
from attnas.judge import processes, report
from attnas.judge.journal import Journal, Memory
from attnas.judge.processes import Commands, Metric, Outcome
from attnas.judge.trial import Rules, Trial

UP = re.compile(r"acc|score|reward|f1|auc|bleu|rouge|psnr|precision|recall|return", re.IGNORECASE)

NEVER = re.compile("no line|exit code 12[567] ")  # nothing was run, as env and sh say


class Way(NamedTuple):
    """How commands are run."""

    jobs: int = 1
    timeout: float = float("inf")
    shell: bool = False
    quiet: bool = False


def label(command: str, baseline: str) -> str:
    """What a command has that the baseline has not: its words between those that both begin and end
    with."""
    a, b = command.split(), baseline.split()
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return " ".join(a) or f"without {' '.join(b)}"


def begin(journal: Memory, header: dict, candidates: list[str], files: dict[str, str]) -> list[str]:
    """Opens a journal for candidates, or goes on with it. @return  all of them, in its order.

    @throws InputError  where it is of something else, one is left out, or a file has changed.
    """
    where = getattr(journal, "path", Path("judge")).parent
    known, digests = [], {}
    for record in journal.records:
        if "campaign" in record:
            raise InputError(f"{where}: holds a campaign; give another --output, or --campaign")
        if "judge" in record:
            for key in header:
                if record.get(key) != header[key]:
                    raise InputError(f"{where}: has {key} {record.get(key)}, not {header[key]}; "
                                     "give another --output")
        known += [record["candidate"]] if "candidate" in record else []
        digests |= record.get("files", {})
    if missing := [one for one in known if one not in candidates]:
        raise InputError(f"{where}: {missing[0]} was tried here and cannot be left out, since the "
                         "correction counts all that was tried; give it, or another --output")
    if changed := [name for name in files if digests.get(name, files[name]) != files[name]]:
        raise InputError(f"{changed[0]}: has changed since {where} was begun; runs before and "
                         "after are not one training: give another --output")
    if not journal.records:
        journal.add(header)
    if new := {name: digest for name, digest in files.items() if name not in digests}:
        journal.add({"files": new})
    for one in candidates:
        if one not in known:
            journal.add({"candidate": one})
            known.append(one)
    return known


def judge(folder: Path, baseline: str, candidates: list[str], metrics: list[Metric], rules: Rules,
          way: Way) -> Trial:
    """Judges candidates in a folder, and says how it goes on.

    @throws InputError  KeyboardInterrupt, where what is finished is kept.
    """
    for one in candidates:
        if one == baseline or candidates.count(one) > 1:
            which = "is the baseline's command" if one == baseline else "is given twice"
            raise InputError(f"--candidate {one}: {which}: both would run the same code; a change "
                             "of a file belongs in a copy of it")
    for metric in metrics:
        if UP.search(metric.name) and not metric.higher and not way.quiet:
            print(f"note: less of {metric.name} counts as better; if more is, give --higher "
                  "in place of --metric", file=sys.stderr)
    commands = Commands([baseline, *candidates], metrics, folder / "logs", way.timeout, way.shell)
    journal = Journal(folder)
    try:
        header = {"judge": 1, "baseline": baseline, "metrics": [list(one) for one in metrics],
                  "shell": way.shell}
        known = begin(journal, header, candidates, commands.files())
        commands = Commands([baseline, *known], metrics, commands.logs, way.timeout, way.shell)
        processes.end_left_over(journal.records)
        trial = Trial(["baseline", *(label(one, baseline) for one in known)], metrics, journal,
                      lambda *key: measured(trial, commands, *key), rules, way.jobs,
                      lambda *at: None if way.quiet else tell(*at))
        if trial.outcomes and not way.quiet:
            print(f"{folder}: goes on, {counted(len(trial.outcomes), 'run')} made", flush=True)
        trial.run(commands.stop)
        return trial
    finally:
        journal.close()


def measured(trial: Trial, commands: Commands, variant: int, seed: int) -> Outcome:
    """A run.

    @throws InputError  where the first of a variant says that its command or a pattern is wrong.
    """
    outcome = commands.run(variant, seed, lambda pid, born: trial.journal.add(
        {"start": [variant, seed], "pid": pid, "born": born}))
    first = not any(key[0] == variant for key in trial.outcomes)
    if outcome.failed and first and (variant == 0 or NEVER.match(outcome.failed)):
        raise InputError(f"the first run of {trial.names[variant]} failed: {outcome.failed}; all "
                         f"that it printed: {commands.logs / f'{variant}-{seed}.log'}")
    return outcome


def tell(trial: Trial, pairs: int) -> None:
    """How candidates stand, and what a training that ignores its seed, or its change, looks like;
    nothing of what was told before a stop."""
    if pairs > trial.told:
        print(*map(printable, report.lines(trial, pairs)), sep="\n", flush=True)
    seen = [[one.values for key, one in sorted(trial.outcomes.items()) if key[0] == who
             and one.values] for who in range(len(trial.names))]
    if pairs == 1 and seen[0] and not trial.rules.relative and \
            (share := trial.bound(trial.states[0]) / abs(seen[0][0][0] or math.inf)) > 0.2:
        print(f"note: a bound of {trial.rules.within:g} is {100 * share:.0f} % of the baseline's "
              f"{seen[0][0][0]:g}; a share is given as 1%", file=sys.stderr)
    for own in seen[1:] if pairs == 3 else ():
        if all(len(set(values)) == 1 < len(values) for values in (own, seen[0])):
            print(f"note: all seeds print the same, {own[0][0]:g}: does {{seed}} reach the script?",
                  file=sys.stderr)
        if own == seen[0]:
            print("note: a candidate prints what the baseline prints: does the change reach the "
                  "script?", file=sys.stderr)
