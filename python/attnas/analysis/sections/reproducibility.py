"""What it takes to make the run again."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any, Callable

from attnas.analysis.digest import FIRST_HELD_OUT
from attnas.analysis.html import Html, element, join
from attnas.analysis.page import Section, copyable, folded, note, paragraph
from attnas.analysis.run import Run
from attnas.analysis.words import duration


def section(run: Run) -> Section:
    """Command, configuration, versions, hardware, hashes, seeds, time."""
    program, folder = ("nas-train", f"{run.name}-train") if run.listed else ("nas-run", run.name)
    command = shlex.join([program, f"{run.name}.yaml", "--output", f"runs/{folder}"])
    return Section("reproducibility", "Reproducibility", join(
        paragraph("Save the configuration below as ", element("code", f"{run.name}.yaml"),
                  ", then:"), copyable(command),
        paragraph("Answers were told to the algorithm as they arrived (algorithm.order: arrival). "
                  "They are recorded, so that this run continues exactly, but another one of the "
                  "same configuration may find something else.")
        if (run.config.get("algorithm") or {}).get("order") == "arrival" else "", _facts(run),
        folded("Configuration, every setting with its effective value", copyable(_yaml(run))),
        note("The same processor family, library versions and number of threads give the same "
             "numbers; times and measured objectives belong to the machine.")))


def _yaml(run: Run) -> str:
    """The configuration as JSON, which is YAML, one line per section."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in run.config.items()]
    return "\n".join(lines) + "\n"


def _facts(run: Run) -> Html:
    environments = run.environments()
    rows: list[tuple[str, Any]] = []
    rows.append(("attnas", _of_each(environments, lambda environment: " ".join(
        str(environment[key]) for key in ("attnas", "revision") if key in environment))))
    for key, name in (("torch", "LibTorch"), ("blas", "BLAS"), ("compiler", "compiler"),
                      ("processor", "processor"), ("instruction_set", "instruction set"),
                      ("device", "device")):
        rows.append((name, _of_each(environments, lambda environment, key=key: str(
            environment.get(key, "")))))
    hosts = sorted({str(e.measured["host"]) for e in run.evaluations if "host" in e.measured})
    rows.append(("hosts", ", ".join(hosts)))
    rows.append(("corpus", run.facts.get("corpus_description") or run.facts.get("corpus")))
    rows.append(("corpus SHA-256", run.facts.get("corpus_hash")))
    rows.append(("results version", _unique(run, "results_version")))
    rows.append(("seed of the run", run.config.get("seed")))
    replicates = {evaluation.replicate for evaluation in run.evaluations}
    held_out = sum(replicate >= FIRST_HELD_OUT for replicate in replicates)
    for what, most in (("seeds of a mechanism",
                        held_out if run.listed else len(replicates) - held_out),
                       ("held-out seeds of a mechanism", 0 if run.listed else held_out)):
        rows.append((what, f"up to {most}" if most else None))
    ids = "".join(sorted(evaluation.id for evaluation in run.evaluations))
    rows.append(("evaluations' SHA-256", hashlib.sha256(ids.encode()).hexdigest()
                 + " (over their sorted ids, which hash all that determines them)"))
    starts = [e.measured["started"] for e in run.evaluations if "started" in e.measured]
    if starts:
        rows.append(("trained", f"{min(starts)} to {max(starts)}"))
    rows.append(("elapsed", duration(run.elapsed) if run.elapsed else None))
    return element("dl", *(join(element("dt", name), element("dd", value))
                           for name, value in rows if value not in (None, "")))


def _of_each(environments: list[tuple[dict[str, Any], int]],
             text: Callable[[dict[str, Any]], str]) -> str:
    """What `text` says of the environments; where they differ, with how many evaluations each."""
    counts: dict[str, int] = {}
    for environment, count in environments:
        counts[text(environment)] = counts.get(text(environment), 0) + count
    if len(counts) < 2:
        return "".join(counts)
    return "; ".join(f"{value or 'unknown'} ({count} evaluation{'' if count == 1 else 's'})"
                     for value, count in counts.items())


def _unique(run: Run, key: str) -> str:
    found = {str(e.identity[key]) for e in run.evaluations if key in e.identity}
    return ", ".join(sorted(found))
