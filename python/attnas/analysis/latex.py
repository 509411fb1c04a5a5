"""The comparison of a run with its baseline, as rows and as a table of LaTeX."""

from __future__ import annotations

import math
import re
from typing import Any

from attnas.analysis.digest import BadInput
from attnas.analysis.measures import Measure, measure_of
from attnas.analysis.run import Run, finite_or
from attnas.analysis.words import MINUS, NOTHING, counted, number, p_column

NAN = math.nan
_OF_CONTRASTS = ("difference", "low", "high", "p", "p_holm", "effect_size")
COLUMNS = ("mechanism", "candidate", "role", *_OF_CONTRASTS[:3], "unit", "percent", "percent_low", "percent_high",
           *_OF_CONTRASTS[3:], "n", "distinguished", "decision", "test_perplexity", "test_perplexity_low",
           "test_perplexity_high", "probability")


def rows(run: Run) -> list[dict[str, Any]]:
    """A row per mechanism of a re-test, or of what was listed in place of a search, as docs/python.md says it of Run.comparison:
    COLUMNS, and of each objective its mean and interval. None where the run has neither."""
    level = 1.0 - finite_or(run.retest.get("confidence"), 0.95)
    return [_row(run, record, level) for record in run.retest.get("candidates") or []]


def _row(run: Run, record: dict[str, Any], level: float) -> dict[str, Any]:
    contrast, test = record.get("against_baseline") or {}, record.get("test") or {}
    measure = measure_of(run.retest)
    row: dict[str, Any] = {"mechanism": record["label"], "candidate": record["candidate"], "role": record["role"],
                           "unit": "share of errors" if measure.accuracy else "nats", "n": int(contrast["n"]) if contrast else None}
    row |= {key: finite_or(contrast.get(key), NAN) for key in _OF_CONTRASTS}
    low, high = measure.interval(row["low"], row["high"])
    row |= {"percent": measure.shown(row["difference"]), "percent_low": low, "percent_high": high}
    row["distinguished"] = row["p_holm"] <= level
    row["decision"] = _decision(run.retest.get("until"), row, measure) if contrast else ""
    row |= {name: finite_or(test.get(key), NAN) for name, key in (
        ("test_perplexity", "mean"), ("test_perplexity_low", "low"), ("test_perplexity_high", "high"))}
    row["probability"] = finite_or(record.get("non_dominated_probability"), NAN)
    for objective, found in zip(run.objectives, record["retest"]):
        found = found or {}
        row |= {name: finite_or(found.get(key), NAN) for name, key in (
            (objective.name, "mean"), (f"{objective.name}_low", "low"), (f"{objective.name}_high", "high"))}
    return row


def _decision(until: float | None, row: dict[str, Any], measure: Measure) -> str:
    """As decide() of src/statistics/sequential.hpp has it, `until` being the bound, where there is one."""
    if row["distinguished"]:
        return "better" if row["difference"] < 0 else "worse"
    bound = (until or 0.0) if measure.accuracy else math.log1p(until or 0.0)
    return "within" if until and row["n"] >= 4 and -bound <= row["low"] and row["high"] <= bound else "open"


_ESCAPED = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
            "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "|": r"\textbar{}", "<": r"\textless{}",
            ">": r"\textgreater{}",
            '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
            "\u221e": r"$\infty$", MINUS: "$-$", NOTHING: "--"}


def escaped(text: str) -> str:
    """A text as LaTeX sets it letter by letter, on one line."""
    return "".join(_ESCAPED.get(letter, letter if letter.isprintable() else " ") for letter in text)


def table(run: Run) -> str:
    """The table of a paper, for a preamble with \\usepackage[T1]{fontenc} and \\usepackage{textcomp,booktabs,graphicx}: a line per
    mechanism with the mean of each objective on the validation split, perplexity on the test split, its change from the baseline with p and the
    number of pairs. What is distinguished from the baseline is bold; the caption says by which test.

    @throws BadInput  where the run compares nothing.
    """
    found = rows(run)
    if not found:
        raise BadInput(f"{run.name}: has no comparison with its baseline; nas-train compares mechanisms, and retest.replicates=5 makes "
                       "a search do so with what it has found")
    tested = any(row["test_perplexity"] == row["test_perplexity"] for row in found)
    heads = ["Mechanism", *(_heading(objective.title) for objective in run.objectives)]
    if tested:
        heads += ["Test", "Change (points)" if measure_of(run.retest).accuracy else r"Change (\%)", "$p$", "$n$"]
    lines = [" & ".join(cells) + r" \\" for cells in (_cells(run, row, tested) for row in found)]
    slug = re.sub(r"[^A-Za-z0-9]+", "-", run.name).strip("-").lower() or "run"
    return "\n".join([
        r"% \usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx}", r"\begin{table}",
        r"  \centering \footnotesize \setlength{\tabcolsep}{4pt}",
        f"  \\caption{{{_caption(run, found, tested)}}}", f"  \\label{{tab:{slug}}}",
        r"  \resizebox{\ifdim\width>\linewidth \linewidth\else \width\fi}{!}{%",
        f"  \\begin{{tabular}}{{p{{0.3\\linewidth}}{'r' * (len(heads) - 1)}}}", r"    \toprule",
        f"    {' & '.join(heads)} \\\\", r"    \midrule",
        *(f"    {line}" for line in lines), r"    \bottomrule", r"  \end{tabular}}", r"\end{table}", ""])


def _heading(title: str) -> str:
    return escaped(title[:1].upper() + title[1:])


def _cells(run: Run, row: dict[str, Any], tested: bool) -> list[str]:
    role = f" ({row['role']})" if row["role"] in ("baseline", "control", "tuned") else ""
    broken = r"\allowbreak{}".join(map(escaped, re.split(r"(?<=[|,{=/+_*])", row["mechanism"])))
    cells = [rf"\raggedright\texttt{{{broken}}}{role}"]
    cells += [escaped(number(row[objective.name])) for objective in run.objectives]
    if not tested:
        return cells
    cells.append(escaped(number(row["test_perplexity"])))
    if row["n"] is None:
        return [*cells, "--", "--", "--"]
    value, low, high = (_two_decimals(row[name]) for name in ("percent", "percent_low", "percent_high"))
    change = escaped(f"{'+' if row['percent'] > 0 else ''}{value} ({low} to {high})")
    return [*cells, rf"\textbf{{{change}}}" if row["distinguished"] else change, escaped(p_column(row["p_holm"])), str(row["n"])]


def _two_decimals(value: float) -> str:
    return f"{value:.2f}".replace("-", MINUS) if abs(value) < 1000 else number(value)


def _added(share: float | None) -> str:
    """How many seeds there are, where what they said decided about that."""
    return rf"Seeds were added until each was distinguished or within {100 * share:g}\,\% (Lai, 1976). " if share else ""


def _caption(run: Run, found: list[dict[str, Any]], tested: bool) -> str:
    corpus = f" on {escaped(str(run.facts['corpus']))}" if run.facts.get("corpus") else ""
    replicates = counted(int(run.retest["replicates"]), "seed")
    added = run.retest.get("until")  # the share to which seeds were added until everything was decided
    most = "at most " if added else ""
    text = f"Mechanisms{corpus}: means over {most}{replicates} that no search used, on the validation split"
    if not tested:
        return text + "."
    confidence = run.retest["confidence"]
    accuracy = measure_of(run.retest).accuracy
    judged = "share of right answers" if accuracy else "mean negative log-likelihood of a target"
    return (rf"{text}; {'accuracy' if accuracy else 'perplexity'} on the test split and its change from the baseline, "
            rf"with {100 * confidence:g}\,\% intervals. $p$: "
            rf"{'anytime-valid $t$-test (of controls: paired $t$-test)' if added else 'paired $t$-test'} of the {judged} of the test "
            "split, $n$ pairs of equal seeds, corrected by Holm. "
            rf"{_added(added)}"
            rf"Bold: distinguished from the baseline, $p \leq {1 - confidence:.3g}$.")
