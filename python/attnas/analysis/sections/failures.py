"""What failed or was rejected by constraints, and why."""

from __future__ import annotations

from collections import defaultdict

from attnas.analysis.genes import genes
from attnas.analysis.html import Html, join, mechanism
from attnas.analysis.page import Cell, Section, note, paragraph, table
from attnas.analysis.run import Evaluation, Run
from attnas.analysis.words import counted

MOST_NAMED = 3
MOST_ROWS = 30


def section(run: Run) -> Section:
    """Failures by status and reason, what was stopped early, and what constraints rejected."""
    failures = run.failures
    tried = [evaluation for evaluation in run.evaluations if not evaluation.screened_out]
    total = counted(len(tried), "evaluation")
    others = join(_stopped(run), _rejected(run))
    if not failures:
        return Section("failures", "Failures", join(paragraph(f"None of {total} failed."), others))
    groups: dict[tuple[str, str], list[Evaluation]] = defaultdict(list)
    for evaluation in failures:
        groups[evaluation.status, evaluation.reason].append(evaluation)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    rows = [[Cell(status.replace("_", " "), left=True), Cell(reason, left=True),
             Cell(_names(run, evaluations), left=True), Cell(len(evaluations))]
            for (status, reason), evaluations in ordered[:MOST_ROWS]]
    return Section("failures", "Failures", join(
        paragraph(f"{len(failures)} of {total} failed."),
        table(["status", "reason", "mechanisms", "count"], rows),
        note(f"{len(ordered) - MOST_ROWS} further reasons are not shown.")
        if len(ordered) > MOST_ROWS else None,
        _common(run),
        others,
    ))


def _stopped(run: Run) -> Html | None:
    stopped = sum(evaluation.status == "stopped_early" for evaluation in run.evaluations)
    if not stopped:
        return None
    return paragraph(f"{counted(stopped, 'training')} stopped early: what such a mechanism scored "
                     "is the score of an earlier step, which compares with no other; it is neither "
                     "best nor on the front.")


def _rejected(run: Run) -> Html | None:
    if not run.rejected:
        return None
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reason in run.rejected.items():
        groups[_constraint(reason)].append(name)
    rows = [[Cell(constraint, left=True), Cell(run.rejected[names[0]], left=True), Cell(len(names))]
            for constraint, names in sorted(groups.items(), key=lambda item: -len(item[1]))]
    return join(paragraph(f"{counted(len(run.rejected), 'mechanism')} rejected by constraints: no "
                          "failures, and before training nothing was spent on them."),
                table(["constraint on", "for example", "mechanisms"], rows[:MOST_ROWS]))


def _constraint(reason: str) -> str:
    """What a reason is about: the quantity before its value."""
    return reason.split(" = ")[0].split(":")[0]


def _names(run: Run, evaluations: list[Evaluation]) -> Html:
    labels = sorted({(run.label(evaluation.candidate), run.brief(evaluation.candidate))
                     for evaluation in evaluations})
    shown = [mechanism(*names) for names in labels[:MOST_NAMED]]
    if len(labels) > MOST_NAMED:
        shown.append(Html(f"and {len(labels) - MOST_NAMED} more"))
    return join(*shown, separator="<br>")


def _common(run: Run) -> Html | None:
    """Options that all failed mechanisms share, though others have them not."""
    labels = {run.label(evaluation.candidate) for evaluation in run.failures}
    if len(labels) < 3:
        return None
    shared = []
    for gene in genes(run):
        options = {gene.option(label) for label in labels}
        if len(options) == 1 and None not in options:
            shared.append(f"{gene.name} {options.pop()}")
    if not shared:
        return None
    return paragraph(f"All {len(labels)} failed mechanisms have {' and '.join(shared)}.")
