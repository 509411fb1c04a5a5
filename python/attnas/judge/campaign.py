"""Many ideas, one after the other, against the best so far, on one budget of error.

Each idea has seeds that no idea had before, for itself and for the champion: what was kept by luck
is not the baseline with that luck, and an idea that was made to fit the seeds of another gains
nothing. So p is valid given all that went before, whatever chose the ideas, which the levels of
sequential.level need.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from attnas.analysis.files import csv_text, write_whole
from attnas.analysis.words import counted
from attnas.errors import InputError
from attnas.judge import report, sequential, session
from attnas.judge.journal import NAME, Journal, read
from attnas.judge.processes import Commands, Metric
from attnas.judge.trial import Rules, Trial

LOG = "ideas.csv"
COLUMNS = ("idea", "candidate", "champion", "decision", "kept", "better_by", "low", "high", "unit",
           "p", "level", "left", "pairs", "failed", "champion_failed", "first_seed", "seconds")


def load(folder: Path) -> list[dict[str, Any]]:
    """The log of a campaign, a dict for each idea; None for what is not known."""
    def value(name: str, text: str) -> Any:
        if name in ("candidate", "champion", "decision", "unit"):
            return text
        return None if not text else float(text) if "." in text or "e" in text else int(text)

    with open(folder / LOG, encoding="utf-8", newline="") as file:
        return [{name: value(name, text) for name, text in row.items()}
                for row in csv.DictReader(file)]


class Campaign:
    """A folder in which ideas are judged."""

    def __init__(self, folder: Path, kind: str | None, baseline: str | None,
                 metrics: list[Metric], shell: bool):
        """Begins a campaign, or goes on with it; what is not given is as it was begun with.

        @throws InputError  where something is missing, or is not as before.
        """
        self.folder, self.journal = folder, None
        if not (folder / NAME).is_file() and not (baseline and metrics):
            raise InputError(f"{folder}: no campaign is there; the first command must have "
                             "--baseline and --metric")
        self.journal = Journal(folder)
        given = {"campaign": kind or "fwer", "baseline": baseline,
                 "metrics": [list(one) for one in metrics], "shell": shell}
        if not self.journal.records:
            self.journal.add(given)
        self.header = self.journal.records[0]
        if "campaign" not in self.header:
            raise InputError(f"{folder}: holds a judgement without --campaign; give another folder")
        for key, name in (("campaign", kind), ("baseline", baseline), ("metrics", metrics)):
            if name and self.header[key] != given[key]:
                raise InputError(f"{folder}: was begun with {key} {self.header[key]}, not "
                                 f"{given[key]}: one budget is for one question")
        self.metrics = [Metric(*one) for one in self.header["metrics"]]
        self.ideas = [record["idea"] for record in self.journal.records if "idea" in record]

    @property
    def champion(self) -> str:
        """The command of the best so far."""
        return [self.header["baseline"],
                *(one["candidate"] for one in self.ideas if one["kept"])][-1]

    def level(self, idea: int) -> float:
        """That at which an idea may be kept."""
        kept = [one["idea"] for one in self.ideas if one["kept"]]
        return sequential.level(idea, kept, self.header["campaign"])

    def judge(self, candidate: str, rules: Rules, way: session.Way) -> Trial | None:
        """Judges the next idea, and adds it to the log. None where it was judged before.

        @throws InputError  where it cannot be run.
        """
        files = Commands([self.champion, candidate], self.metrics, self.folder, shell=way.shell
                         ).files()
        begun = [one["begun"] for one in self.journal.records if "begun" in one]
        for one in begun[:len(self.ideas)]:
            if one["candidate"] == candidate and one["files"] == files:
                return None
        number = len(self.ideas) + 1
        entry = begun[-1] if len(begun) == number else None
        if entry and (entry["candidate"], entry["files"]) != (candidate, files):
            self._close(entry, None)  # it was left for another one, and its level is spent
            entry, number = None, number + 1
        if entry is None:
            entry = {"idea": number, "candidate": candidate, "champion": self.champion,
                     "files": files, "first_seed": self._next_seed(begun)}
            self.journal.add({"begun": entry})
        rules = rules._replace(level=self.level(number), first_seed=entry["first_seed"],
                               hopeless=True)
        trial = session.judge(self.folder / f"idea-{number}", entry["champion"], [candidate],
                              self.metrics, rules, way)
        self._close(entry, trial)
        return trial

    def _next_seed(self, begun: list[dict]) -> int:
        """Behind all seeds that any run has had."""
        if not begun:
            return 1
        path = self.folder / f"idea-{begun[-1]['idea']}" / NAME
        records = read(path)[0] if path.is_file() else []
        return max([one["start"][1] + 1 for one in records if "start" in one],
                   default=begun[-1]["first_seed"])

    def _close(self, entry: dict, trial: Trial | None) -> None:
        row = dict.fromkeys(COLUMNS) | {
            "idea": entry["idea"], "candidate": entry["candidate"], "champion": entry["champion"],
            "first_seed": entry["first_seed"], "decision": "undecided", "kept": 0, "pairs": 0,
            "level": self.level(entry["idea"]), "left": 20 / (entry["idea"] + 20)}
        if trial is not None:
            state, told = trial.states[0], report.rows(trial)[0]
            first = told["metrics"][self.metrics[0].name]
            row |= {name: first[name] for name in ("better_by", "low", "high", "unit", "p")}
            row |= {"decision": state.decision, "kept": int(state.decision == "better"),
                    "pairs": state.pairs, "failed": state.failed,
                    "champion_failed": state.baseline_failed,
                    "seconds": round(sum(one.seconds for one in trial.outcomes.values()), 3)}
        self.journal.add({"idea": row})
        self.ideas.append(row)
        write_whole(self.folder / LOG, csv_text(COLUMNS, (one.values() for one in self.ideas))
                    .encode())

    def words(self) -> str:
        """What the last idea came to for the campaign, and what is left to spend."""
        kept = sum(one["kept"] for one in self.ideas)
        last = self.ideas[-1]
        became = ("It is kept, and the baseline from now on." if last["kept"] else
                  f"It is not kept; the baseline stays {self.champion}.")
        error = "a false keep at all" if self.header["campaign"] == "fwer" else \
            "the share of false keeps"
        return (f"{became} {counted(len(self.ideas), 'idea')}, {kept} kept; "
                f"{100 * last['left']:.0f} % of 5 % for {error} is left, the next level is "
                f"{self.level(last['idea'] + 1):.2g}.")
