"""The comparison of a run with its baseline, as rows and as a table of LaTeX."""

from __future__ import annotations

import math
import re
from typing import Any

from attnas.analysis.digest import BadInput
from attnas.analysis.measures import measure_of
from attnas.analysis.run import Run, finite_or
from attnas.analysis.words import MINUS, NOTHING, counted, number, p_column, rate_text, solved_text

NAN = math.nan
_OF_CONTRASTS = ("difference", "low", "high", "p", "p_holm", "effect_size")
COLUMNS = ("mechanism", "candidate", "role", *_OF_CONTRASTS[:3], "unit", "percent", "percent_low",
           "percent_high", *_OF_CONTRASTS[3:], "n", "distinguished", "decision", "test_perplexity",
           "test_perplexity_low", "test_perplexity_high", "solved", "runs", "solved_low",
           "solved_high", "solved_median", "p_shares", "probability", "learning_rate",
           "rate_at_end", "differs")


def columns(run: Run) -> list[str]:
    """COLUMNS, and of each objective its mean and interval.

    @throws BadInput  where one has the name of another, as records of old can.
    """
    ends = ("", "_low", "_high")
    names = [*COLUMNS, *(each.name + end for each in run.objectives for end in ends)]
    if again := {name for name in names if names.count(name) > 1}:
        raise BadInput(f"{run.name}: {', '.join(sorted(again))}: the comparison has two columns of "
                       "this name, of which one is an objective's; it can only be shown under "
                       "another name (`as`)")
    return names


def rows(run: Run) -> list[dict[str, Any]]:
    """A row per mechanism of a re-test, or of what was listed in place of a search, as
    docs/python.md says it of Run.comparison, of columns(). None where the run has neither."""
    columns(run)
    level = 1.0 - finite_or(run.retest.get("confidence"), 0.95)
    return [_row(run, record, level) for record in run.retest.get("candidates") or []]


def _row(run: Run, record: dict[str, Any], level: float) -> dict[str, Any]:
    contrast, test = record.get("against_baseline") or {}, record.get("test") or {}
    measure = measure_of(run.retest)
    row: dict[str, Any] = {
        "mechanism": record["label"], "candidate": record["candidate"], "role": record["role"],
        "unit": "share of errors" if measure.accuracy else "nats",
        "n": int(contrast["n"]) if contrast else None}
    row |= {key: finite_or(contrast.get(key), NAN) for key in _OF_CONTRASTS}
    low, high = measure.interval(row["low"], row["high"])
    row |= {"percent": measure.shown(row["difference"]), "percent_low": low, "percent_high": high}
    row["distinguished"] = row["p_holm"] <= level
    told = ("better" if row["difference"] < 0 else "worse") if row["distinguished"] else "open"
    row["decision"] = record.get("decision", told) if contrast else ""
    row |= {f"test_perplexity{end}": finite_or(test.get(key), NAN)
            for end, key in (("", "mean"), ("_low", "low"), ("_high", "high"))}
    solved = record.get("solved") or {}
    row |= {"solved": solved.get("count"), "runs": solved.get("of"),
            "p_shares": finite_or(contrast.get("p_shares"), NAN)}
    row |= {f"solved_{key}": finite_or(solved.get(key), NAN) for key in ("low", "high", "median")}
    row |= {"probability": finite_or(record.get("non_dominated_probability"), NAN),
            "differs": record.get("differs", ""),
            "learning_rate": finite_or(record.get("learning_rate"), NAN),
            "rate_at_end": bool(record.get("rate_at_end"))}
    for objective, found in zip(run.objectives, record["retest"]):
        found = found or {}
        row |= {objective.name + end: finite_or(found.get(key), NAN)
                for end, key in (("", "mean"), ("_low", "low"), ("_high", "high"))}
    return row


def columns_of_runs(found: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Heads and cells of what single runs and their rates say, of rows(): which solve the task,
    their median where any fails but a control's, and each row's learning rate; those that say
    something."""
    known = [row for row in found if row["solved"] is not None]
    fail = any(row["solved"] < row["runs"] for row in known if row["role"] != "control")
    keys = ("solved", "runs", "solved_low", "solved_high")
    solved = [solved_text(*(row[key] for key in keys)) if row in known else NOTHING
              for row in found]
    medians = [number(row["solved_median"]) if fail else NOTHING for row in found]
    rates = [rate_text(row["learning_rate"], row["rate_at_end"]) for row in found]
    return [(head, cells)
            for head, cells in (("solved", solved), ("median of solved", medians), ("rate", rates))
            if {*cells} != {NOTHING}]


def note_of_runs(found: list[dict[str, Any]]) -> str:
    """How columns_of_runs() are read."""
    heads = [head for head, _ in columns_of_runs(found)]
    return (("Solved: runs, with the Clopper-Pearson interval of their share, which intervals of "
             "means include. " if "solved" in heads else "") +
            ("Rate: learning rate, (end) the lowest or the highest that was tried. "
             "" if "rate" in heads else "") +
            "".join(f"{row['mechanism']} differs also in {row['differs']}. "
                    for row in found if row["differs"]))


def one_rate(run: Run) -> str:
    """"At one learning rate, 0.002." where that holds of all that was compared; else empty."""
    records = run.retest.get("candidates") or []
    if not run.trained or not records or any("learning_rate" in each for each in records):
        return ""
    rate = (run.config.get("training") or {}).get("learning_rate")
    return (
        f"At one learning rate{f', {rate:g}' if isinstance(rate, float) else ''}: a mechanism may "
        f"do better at its own.")


_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "_": r"\_", "%": r"\%", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "\u221e": r"$\infty$", MINUS: "$-$",
    NOTHING: "--"
}


def escaped(text: str) -> str:
    """A text as LaTeX sets it letter by letter, on one line."""
    return "".join(_ESCAPED.get(letter, letter if letter.isprintable() else " ") for letter in text)


def table(run: Run) -> str:
    """The table of a paper, for a preamble with \\usepackage[T1]{fontenc} and
    \\usepackage{textcomp,booktabs,graphicx}: a line per mechanism with the mean of each objective
    on the validation split, perplexity on the test split, its change from the baseline with p and
    the number of pairs. Where runs fail, the share that solves and the median of these; learning
    rates where rows have their own. What is better than the baseline is bold, what is worse italic;
    the caption says by which test, and how intervals are made.

    @throws BadInput  where the run compares nothing.
    """
    found = rows(run)
    if not found:
        raise BadInput(f"{run.name}: has no comparison with its baseline; nas-train compares "
                       f"mechanisms, and retest.replicates=5 makes "
                       "a search do so with what it has found")
    tested = any(row["test_perplexity"] == row["test_perplexity"] for row in found)
    heads = ["Mechanism", *(_heading(objective.title) for objective in run.objectives)]
    if tested:
        heads += ["Test", "Change (points)" if measure_of(run.retest).accuracy else r"Change "
                  r"(\%)", "$p$", "$n$"]
    more = columns_of_runs(found)
    heads += [_heading(head) for head, _ in more]
    lines = [
        " & ".join([*_cells(run, row, tested), *(escaped(cells[i]) for _, cells in more)]) + r" \\"
        for i, row in enumerate(found)]
    slug = re.sub(r"[^A-Za-z0-9]+", "-", run.name).strip("-").lower() or "run"
    return "\n".join([
        r"% \usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx}", r"\begin{table}",
        r"  \centering \footnotesize \setlength{\tabcolsep}{4pt}",
        f"  \\caption{{{_caption(run, found, tested)}}}", f"  \\label{{tab:{slug}}}",
        r"  \resizebox{\ifdim\width>\linewidth \linewidth\else \width\fi}{!}{%",
        f"  \\begin{{tabular}}{{p{{0.3\\linewidth}}{'r' * (len(heads) - 1)}}}", r"    \toprule",
        f"    {' & '.join(heads)} \\\\", r"    \midrule", *(f"    {line}" for line in lines),
        r"    \bottomrule", r"  \end{tabular}}", r"\end{table}", ""])


def _heading(title: str) -> str:
    return escaped(title[:1].upper() + title[1:])


def _cells(run: Run, row: dict[str, Any], tested: bool) -> list[str]:
    role = f" ({row['role']})" if row["role"] in ("baseline", "control") else ""
    broken = r"\allowbreak{}".join(map(escaped, re.split(r"(?<=[|,{=/+_*])", row["mechanism"])))
    cells = [rf"\raggedright\texttt{{{broken}}}{role}"]
    cells += [escaped(number(row[objective.name])) for objective in run.objectives]
    if not tested:
        return cells
    cells.append(escaped(number(row["test_perplexity"])))
    if row["n"] is None:
        return [*cells, "--", "--", "--"]
    value, low, high = (_two_decimals(row[name])
                        for name in ("percent", "percent_low", "percent_high"))
    change = escaped(f"{'+' if row['percent'] > 0 else ''}{value} ({low} to {high})")
    marked = {"better": rf"\textbf{{{change}}}",
              "worse": rf"\textit{{{change}}}"}.get(row["decision"], change)
    return [*cells, marked, escaped(p_column(row["p_holm"])), str(row["n"])]


def _two_decimals(value: float) -> str:
    return f"{value:.2f}".replace("-", MINUS) if abs(value) < 1000 else number(value)


def _added(share: float | None) -> str:
    """How many seeds there are, where what they said decided about that."""
    return (rf"Seeds were added until each was distinguished or within {100 * share:g}\,\% (Lai, "
            rf"1976). " if share else "")


def _caption(run: Run, found: list[dict[str, Any]], tested: bool) -> str:
    corpus = f" on {escaped(str(run.facts['corpus']))}" if run.facts.get("corpus") else ""
    replicates = counted(int(run.retest["replicates"]), "seed")
    # the share to which seeds were added until everything was decided
    added = run.retest.get("until")
    most = "at most " if added else ""
    text = (f"Mechanisms{corpus}: means over {most}{replicates} that no search used, on the "
            f"validation split")
    if not tested:
        return text + "."
    confidence = run.retest["confidence"]
    accuracy = measure_of(run.retest).accuracy
    judged = "share of right answers" if accuracy else "mean negative log-likelihood of a target"
    one = "all at one learning rate; " if one_rate(run) else ""
    test = "paired $t$-test"
    if added:
        test = f"anytime-valid $t$-test (of controls: {test})"
    return (rf"{text}; {one}{'accuracy' if accuracy else 'perplexity'} on the test split and its "
            rf"change from the baseline, " rf"with {100 * confidence:g}\,\% intervals. $p$: "
            rf"{test} of the {judged} of the test "
            "split, $n$ pairs of equal seeds, corrected by Holm. " rf"{_added(added)}"
            rf"{escaped(note_of_runs(found))}"
            rf"Bold: better than the baseline, italic: worse, $p \leq {1 - confidence:.3g}$.")
