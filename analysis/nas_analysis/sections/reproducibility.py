"""What it takes to make the run again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from nas_analysis.html import Html, element, join
from nas_analysis.page import Section, copyable, folded, note, paragraph
from nas_analysis.run import Run, finite_or
from nas_analysis.words import duration


def section(run: Run) -> Section:
    """Command, configuration, versions, hardware, hashes, seeds, time."""
    command = f"nas-run {run.name}.yaml --output runs/{run.name}"
    return Section("reproducibility", "Reproducibility", join(
        paragraph("Save the configuration below as ", element("code", f"{run.name}.yaml"),
                  ", then:"),
        copyable(command),
        _facts(run),
        folded("Configuration, every setting with its effective value", copyable(_yaml(run))),
        note("The same processor family, library versions and number of threads give the same "
             "numbers; times and measured objectives belong to the machine."),
    ))


def _yaml(run: Run) -> str:
    """The configuration as JSON, which is YAML, a section a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in run.config.items()]
    return "\n".join(lines) + "\n"


def _facts(run: Run) -> Html:
    rows: list[tuple[str, Any]] = []
    environment = run.environment
    version = " ".join(str(environment[k]) for k in ("attnas", "revision") if k in environment)
    rows.append(("attnas", version))
    for key, name in (("torch", "LibTorch"), ("blas", "BLAS"), ("compiler", "compiler"),
                      ("processor", "processor"), ("instruction_set", "instruction set"),
                      ("device", "device")):
        rows.append((name, environment.get(key)))
    hosts = sorted({str(e.measured["host"]) for e in run.evaluations if "host" in e.measured})
    rows.append(("hosts", ", ".join(hosts)))
    rows.append(("corpus", run.facts.get("corpus_description") or run.facts.get("corpus")))
    rows.append(("corpus SHA-256", run.facts.get("corpus_hash")))
    rows.append(("results version", _unique(run, "results_version")))
    rows.append(("seed of the run", run.config.get("seed")))
    replicates = {evaluation.replicate for evaluation in run.evaluations}
    if replicates:
        numbers = ("number 0" if replicates == {0} else
                   f"numbers {min(replicates)} to {max(replicates)}")
        rows.append(("replicates of a mechanism", f"up to {len(replicates)} ({numbers})"))
    ids = "".join(sorted(evaluation.id for evaluation in run.evaluations))
    rows.append(("evaluations' SHA-256", hashlib.sha256(ids.encode()).hexdigest()
                 + " (over their sorted ids, which hash all that determines them)"))
    starts = [e.measured["started"] for e in run.evaluations if "started" in e.measured]
    if starts:
        rows.append(("trained", f"{min(starts)} to {max(starts)}"))
    elapsed = finite_or(run.meta.get("elapsed_seconds"), 0.0)
    rows.append(("elapsed", duration(elapsed) if elapsed else None))
    return element("dl", *(
        join(element("dt", name), element("dd", value))
        for name, value in rows if value not in (None, "")
    ))


def _unique(run: Run, key: str) -> str:
    found = {str(e.identity[key]) for e in run.evaluations if key in e.identity}
    return ", ".join(sorted(found))
