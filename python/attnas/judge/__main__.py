"""attnas judge: see --help."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import shlex
import sys
from pathlib import Path

from attnas.analysis.files import write_whole
from attnas.command_line import Parser, printable, run_main
from attnas.errors import InputError

CODES = {"better": 0, "within": 4, "worse": 5, "undecided": 6}
HELP = """\
attnas judge: is a change better?

Runs two commands or more, pair by pair on equal seeds, until each candidate is better, worse, or
within a bound of the baseline.

"""
HELP_END = """\
PATTERN is a regular expression whose first group is the number, or words that a number follows;
its last match in what a run prints counts. A run that exits with another code than 0, runs out of
time, or prints no number, NaN or infinity, is a failure, which the verdict counts. The same
command goes on where a stopped or killed one ended.

exit codes: 0 a candidate is better (--campaign: kept), 4 within, 5 worse, 6 undecided,
            2 bad input, 75 the machine failed, 130 stopped, the same command goes on
docs/how-to/is-my-change-better.md says what it assumes.
"""


def bound(text: str, name: str = "--within") -> tuple[float, bool]:
    """A bound, and whether it is a share: 1% of the baseline's mean, or 0.01 of the metric's unit.

    @throws InputError  where it is neither, or is not above 0.
    """
    given = re.fullmatch(r"\s*(\d*\.?\d+(?:[eE][-+]?\d+)?)\s*(%?)\s*", text)
    if not given or not float(given[1]) > 0:
        raise InputError(f"{name} = {text}, must be a share as 1%, or a number above 0")
    return float(given[1]) / (100 if given[2] else 1), bool(given[2])


def seconds(text: str) -> float:
    """90, 90s, 30m, 2h. @throws InputError  where it is none of these."""
    given = re.fullmatch(r"(\d*\.?\d+)([smh]?)", text)
    if not given or not float(given[1]) > 0:
        raise InputError(f"--timeout = {text}, must be as 90, 90s, 30m or 2h")
    return float(given[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[given[2]]


class _Parser(Parser):

    def format_help(self) -> str:
        return HELP + super().format_help().replace("usage:", "Usage:", 1)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="attnas judge", allow_abbrev=False, epilog=HELP_END,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="attnas judge --baseline COMMAND --candidate COMMAND --metric PATTERN [OPTION]...")
    add = parser.add_argument
    add("--baseline", metavar="COMMAND", help="with {seed} where the seed stands")
    add("--candidate", metavar="COMMAND", action="append", default=[], help="given several times")
    for name, text in (("metric", "what is compared, less is better; further ones are told"),
                       ("higher", "as --metric, more is better")):
        add(f"--{name}", metavar="PATTERN", dest="metrics", action="append", default=[],
            type=lambda text, higher=name == "higher": (text, higher), help=text)
    add("--within", metavar="BOUND", help="1%% of the baseline's mean, or in the metric's unit")
    add("--most", metavar="PAIRS", type=int, help="20, of campaigns 60")
    add("--jobs", metavar="N", type=int, default=1, help="runs at a time")
    add("--timeout", metavar="TIME", help="of a run: 90s, 30m, 2h")
    add("--shell", action="store_true", help="let /bin/sh read the commands")
    add("--output", metavar="FOLDER", type=Path, help="runs/judge-... by default")
    add("--campaign", metavar="FOLDER", type=Path,
        help="ideas one after the other on one budget of error, against the best so far")
    add("--error", choices=("fwer", "fdr"), help="of a campaign: a false keep at all (default), "
        "or their share")
    for name in ("json", "page"):
        add(f"--{name}", metavar="FILE", help="- is standard output")
    return parser


def _require_ranges(given: argparse.Namespace) -> None:
    alone = not given.campaign
    folder = given.output or given.campaign
    away = [one for one in (given.json, given.page) if one and not Path(one).parent.is_dir()]
    for wrong, said in (
        (folder and folder.exists() and not folder.is_dir(), f"{folder}: is no folder"),
        (away, f"{''.join(away[:1])}: there is no such folder"),
        (given.most is not None and given.most < 2, f"--most = {given.most}, must be at least 2"),
        (given.jobs < 1, f"--jobs = {given.jobs}, must be at least 1"),
        (given.error and alone, "--error is of a campaign, and needs --campaign FOLDER"),
        (given.output and not alone, "--output: a campaign has its own folder"),
        (alone and not given.baseline, "no --baseline is given"),
        (not given.candidate, "no --candidate is given"),
        (alone and not given.metrics, "no --metric is given, such as 'loss: ([0-9.]+)'")):
        if wrong:
            raise InputError(said)


def _judge(words: list[str]) -> int:
    given = _parser().parse_args(words)
    _require_ranges(given)
    from attnas.judge import report, session  # SciPy takes a second
    from attnas.judge.processes import metric
    from attnas.judge.trial import DECISIONS, Rules
    metrics = [metric(*one) for one in given.metrics]
    if len({one.name for one in metrics}) < len(metrics):
        raise InputError(f"--metric {metrics[-1].name} is given twice")
    within = bound(given.within) if given.within else (None, True)
    rules = Rules(*within, given.most or (60 if given.campaign else 20))
    way = session.Way(given.jobs, seconds(given.timeout) if given.timeout else math.inf,
                      given.shell, "-" in (given.json, given.page))
    if given.campaign:
        return _ideas(given, metrics, rules, way)
    key = json.dumps([given.baseline, given.candidate, given.metrics]).encode()
    folder = given.output or Path("runs") / f"judge-{hashlib.sha256(key).hexdigest()[:8]}"
    trial = session.judge(folder, given.baseline, given.candidate, metrics, rules, way)
    _write(given, trial, words)
    if not way.quiet:
        for state in trial.states:
            print(printable(report.sentence(trial, state)))
    decisions = [state.decision for state in trial.states]
    return CODES[next(one for one in (DECISIONS[0], DECISIONS[3], *DECISIONS[1:3])
                      if one in decisions)]


def _ideas(given: argparse.Namespace, metrics: list, rules, way) -> int:
    from attnas.judge import report
    from attnas.judge.campaign import Campaign
    campaign = Campaign(given.campaign, given.error, given.baseline, metrics, given.shell)
    for candidate in given.candidate:
        if trial := campaign.judge(candidate, rules, way):
            _write(given, trial, [])
            if not way.quiet:
                print(printable(report.sentence(trial, trial.states[0])))
                print(printable(campaign.words()), flush=True)
            continue
        known = next(one for one in campaign.ideas[::-1] if one["candidate"] == candidate)
        print(f"{candidate}: was judged as idea {known['idea']}: {known['decision']}; nothing was "
              "run")
    return CODES[trial.states[0].decision if trial else known["decision"]]


def _write(given: argparse.Namespace, trial, words: list[str]) -> None:
    from attnas.judge import report
    command = shlex.join(["attnas", "judge", *words])
    for file, make in ((given.json, report.json_text),
                       (given.page, lambda one: report.page_text(one, command))):
        if file == "-":
            sys.stdout.write(make(trial))
        elif file:
            write_whole(Path(file), make(trial).encode())


def main(words: list[str]) -> int:
    """Carries out a command line; returns the exit code."""
    return run_main("attnas judge", lambda: _judge(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
