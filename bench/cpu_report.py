"""Statistics, table and picture of side_by_side. Standard library only; side_by_side_check.py tests it.

A measurement is what side_by_side writes as cpu.json. `rounds` holds one entry per attempt: the runs of every competitor on
one mechanism, one after another, the base again at the end. Only entries with `kept` count.
"""

import statistics
from xml.sax.saxutils import escape

from harness import (MAX_LOSS_DIFFERENCE, bootstrap_interval, cell, departure, is_unclear, megabytes, svg, tick_step)

# key -> (name in tables, colour in light, colour in dark). The order is that of runs, tables and pictures.
COMPETITORS = {
    "published": ("published", "#8a94a0", "#8a94a0"),
    "published-tuned": ("published, tuned malloc", "#b3bcc6", "#5f6a76"),
    "reference-torch": ("reference, LibTorch's allocator", "#c9a66b", "#8c6f3a"),
    "reference": ("reference", "#5b8fc7", "#5b8fc7"),
    "exact": ("exact", "#0b6e4f", "#2fa67d"),
    "fast": ("fast", "#7a4fa3", "#a583cc"),
}
MAX_WALL_PER_CPU = 1.05  # above it, at one thread, something else had the core


def name_of(competitor):
    return COMPETITORS[competitor][0]


def by_copy(values):
    """A list of lists, one per copy; a single training run's list becomes the only one."""
    return values if values and isinstance(values[0], list) else [values]


def best_step(values):
    """Seconds of the fastest step, averaged over copies."""
    return statistics.fmean(min(steps) for steps in by_copy(values))


def wall_per_cpu(result):
    wall = sum(sum(steps) for steps in by_copy(result["wall_seconds"]))
    return wall / max(sum(sum(steps) for steps in by_copy(result["cpu_seconds"])), 1e-9)


def last_loss(result):
    return statistics.fmean(losses[-1] for losses in by_copy(result["loss"]))


def base_of(competitors):
    """Of those that run on a mechanism, the one that ratios are taken against."""
    return next(competitor for competitor in ("published", "reference-torch", *COMPETITORS) if competitor in competitors)


def summarise(data):
    """One dictionary per mechanism that kept a round: base, A/A ratios and their spread, rows by competitor."""
    threads, copies = data["settings"]["threads"], data["settings"]["copies"]
    summaries = []
    for mechanism in data["settings"]["mechanisms"]:
        rounds = [entry for entry in data["rounds"] if entry["kept"] and entry["mechanism"] == mechanism]
        if not rounds:
            continue
        base = base_of({run["competitor"] for run in rounds[0]["runs"]})
        flop = next((run["result"]["flop_per_step"] for entry in rounds for run in entry["runs"]
                     if run["result"]["flop_per_step"]), None)
        first = [{run["competitor"]: run["result"] for run in entry["runs"] if not run["again"]} for entry in rounds]
        again = [next(run["result"] for run in entry["runs"] if run["again"]) for entry in rounds]
        same = [best_step(b["cpu_seconds"]) / best_step(a[base]["cpu_seconds"]) for a, b in zip(first, again)]
        spread = max(departure(ratio) for ratio in same)
        rows = []
        for competitor in COMPETITORS:
            if competitor not in first[0]:
                continue
            results = [entry[competitor] for entry in first]
            cpu = [best_step(result["cpu_seconds"]) for result in results]
            wall = [best_step(result["wall_seconds"]) for result in results]
            ratios = [best_step(a[competitor]["cpu_seconds"]) / best_step(a[base]["cpu_seconds"]) for a in first]
            wall_ratios = [best_step(a[competitor]["wall_seconds"]) / best_step(a[base]["wall_seconds"]) for a in first]
            ratio, interval = statistics.median(ratios), bootstrap_interval(ratios)
            # One thread: its CPU time. Several: the peak is that of all of them, so the clock on the wall.
            peak_fraction = [flop / (seconds * peak_of(entry) * 1e9)
                             for seconds, entry in zip(cpu if threads == 1 else wall, rounds)
                             if flop and peak_of(entry)]
            model_steps = data["settings"]["steps"] * copies
            rows.append({
                "competitor": competitor,
                "cpu_seconds": statistics.median(cpu),
                "wall_seconds": statistics.median(wall),
                "ratio": ratio,
                "interval": interval,
                "ratios": ratios,
                "wall_ratio": statistics.median(wall_ratios),
                "unclear": competitor != base and is_unclear(ratio, interval, spread),
                "peak_fraction": statistics.median(peak_fraction) if peak_fraction else None,
                "peak_rss_bytes": statistics.median(result["peak_rss_bytes"] for result in results),
                "peak_bytes": results[-1]["peak_bytes"],
                "faults_per_step": statistics.median(result["page_faults"] / model_steps for result in results),
                "last_loss": statistics.median(last_loss(result) for result in results),
            })
        summaries.append({"mechanism": mechanism, "base": base, "rounds": len(rounds), "same_ratios": same,
                          "same_spread": spread, "flop_per_step": flop, "rows": rows,
                          "gemm_gflops": statistics.median(entry["gemm_gflops"] for entry in rounds),
                          "multiply_add_gflops": statistics.median(entry.get("multiply_add_gflops", 0) for entry in rounds)})
    return summaries


def different_losses(summaries):
    """Sentences about competitors whose last loss is not that of the base: those did other work."""
    complaints = []
    for summary in summaries:
        expected = next(row["last_loss"] for row in summary["rows"] if row["competitor"] == summary["base"])
        for row in summary["rows"]:
            if not abs(row["last_loss"] / expected - 1.0) <= MAX_LOSS_DIFFERENCE:  # catches NaN too
                complaints.append(f"{name_of(row['competitor'])} on {summary['mechanism']} ends at a loss of "
                                  f"{row['last_loss']:.4f}, {name_of(summary['base'])} at {expected:.4f}")
    return complaints


def peak_of(entry):
    """What the processor can do in a round, GFLOP/s: the BLAS may not know it. Earlier rounds have no multiply-adds."""
    return max(entry["gemm_gflops"], entry.get("multiply_add_gflops", 0))


def table(summaries):
    lines = ["| mechanism | competitor | CPU s/step | ratio | 95 % interval | wall ratio | of peak | peak RSS, MB | "
             "allocator's peak, MB | page faults/step |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for summary in summaries:
        for i, row in enumerate(summary["rows"]):
            is_base = row["competitor"] == summary["base"]
            interval = row["interval"]
            if is_base:
                low, high = min(summary["same_ratios"]), max(summary["same_ratios"])
                interval_text = f"A/A {low:.3f}-{high:.3f}"
            else:
                interval_text = f"{interval[0]:.3f}-{interval[1]:.3f}" if interval else "one round"
            ratio = "1" if is_base else f"{row['ratio']:.3f}" + (" (no claim)" if row["unclear"] else "")
            fraction = "-" if row["peak_fraction"] is None else f"{row['peak_fraction']:.2f}"
            lines.append("| " + " | ".join([
                f"`{cell(summary['mechanism'])}`" if i == 0 else "",
                name_of(row["competitor"]) + (" (base)" if is_base else ""),
                f"{row['cpu_seconds']:.3f}", ratio, interval_text, f"{row['wall_ratio']:.3f}", fraction,
                megabytes(row["peak_rss_bytes"]), megabytes(row["peak_bytes"]), f"{row['faults_per_step']:,.0f}"]) + " |")
    return lines


def describe_discarded(data):
    wrong = [entry["mechanism"] for entry in data["rounds"] if not entry["kept"]]
    if not wrong:
        return "None was discarded."
    counts = ", ".join(f"{wrong.count(mechanism)} of `{mechanism}`" for mechanism in dict.fromkeys(wrong))
    short = [f"`{mechanism}` kept {kept}" for mechanism in data["settings"]["mechanisms"]
             if (kept := sum(entry["kept"] for entry in data["rounds"] if entry["mechanism"] == mechanism))
             < data["settings"]["rounds"]]
    return (f"{len(wrong)} discarded, wall/CPU above {MAX_WALL_PER_CPU}, and repeated: {counts} (cpu.json says why)." +
            (f" Still short of {data['settings']['rounds']} rounds: {', '.join(short)}." if short else ""))


def markdown(data, summaries):
    """cpu.md: the table and how it was taken."""
    settings, machine = data["settings"], data["machine"]
    loads = [load[0] for entry in data["rounds"] for load in (entry["load_before"], entry["load_after"])]
    complaints = different_losses(summaries)
    bases = sorted({name_of(summary["base"]) for summary in summaries})
    parallel = f"{settings['threads']} thread{'s' if settings['threads'] > 1 else ''}"
    if settings["copies"] > 1:
        parallel += f", {settings['copies']} trainings at once"
    lines = [
        "# Training steps on the CPU, side by side",
        "",
        f"Time of one training step (batch {settings['batch']}, context {settings['context']}, vocabulary "
        f"{settings['vocabulary']:,}, semantics {settings['semantics']}) against "
        f"{' or '.join(bases)}, {parallel}. Below 1 is faster than the base.",
        "",
        "![CPU time of a step against the base](cpu.svg)",
        "",
        *table(summaries),
        "",
        f"CPU s/step, ratio: fastest of {settings['steps']} timed steps of a process (after {settings['warm_up']} to warm "
        "up), process CPU time; the ratio is the median over rounds of the ratios within a round, with a bootstrap interval. "
        "`A/A` is the base against itself, run first and last in every round. `(no claim)`: the difference is not beyond "
        "the largest A/A one on that mechanism, or the interval holds 1.",
        "Of peak: the FLOPs that our program counts for the mechanism (additive in its factored form) over "
        f"{'CPU' if settings['threads'] == 1 else 'wall'} time and over the larger of the best fp32 matrix product of the BLAS "
        "and of multiply-adds alone in the same round, for every competitor; `fast` may use bf16 and pass 1.",
        "`published` is the published Python code in its own training loop; `tuned malloc` is the same under "
        f"`GLIBC_TUNABLES={data['tunables']}`.",
        "",
        "## How it was taken",
        "",
        "| | |",
        "|---|---|",
    ]
    facts = [("date", data["date"]), ("command", f"`{cell(data['command'])}`"),
             ("processor", f"{machine['processor']}, {machine['cores']} cores"), ("kernel", machine["kernel"]),
             ("C library", machine["c_library"])]
    for side, versions in data["versions"].items():
        for key, value in versions.items():
            if value and key != "processor":
                facts.append((f"{side}: {key.replace('_', ' ')}", value))
    facts += [
        ("A/A spread", ", ".join(f"{100 * summary['same_spread']:.1f} %" for summary in summaries) +
         " (largest of each mechanism, in the table's order)"),
        ("GEMM peak", f"{statistics.median(s['gemm_gflops'] for s in summaries):.0f} GFLOP/s, "
         f"{settings['threads']} thread(s), median"),
        ("multiply-adds alone", f"{statistics.median(s['multiply_add_gflops'] for s in summaries):.0f} GFLOP/s, likewise"),
        ("load average, 1 minute", f"{min(loads):.2f} to {max(loads):.2f}, taken before and after each round"),
        ("rounds", f"{settings['rounds']} of every mechanism, competitors one after another, each a process of its own. " +
         describe_discarded(data)),
        ("OMP_WAIT_POLICY", "PASSIVE for every competitor" if settings["threads"] > 1 else "not set, one thread"),
        ("tokens", settings["tokens"]),
        ("last losses", "OTHER THAN THE BASE'S: " + "; ".join(complaints) if complaints else
         f"all within {100 * MAX_LOSS_DIFFERENCE:.0f} % of the base's"),
    ]
    for left in data["left_out"]:
        where = f" on {left['mechanism']}" if left["mechanism"] else ""
        facts.append(("left out", f"{name_of(left['competitor'])}{where}: {left['why']}"))
    lines += [f"| {key} | {value if value.startswith('`') else cell(value)} |" for key, value in facts]
    return "\n".join(lines) + "\n"


def picture(data, summaries):
    """cpu.svg: one bar per competitor, grouped by mechanism; whiskers are the intervals, the band is the A/A spread."""
    left, right, bar, gap, heading = 230, 104, 18, 5, 30
    width, top = 860, 76
    scale_end = 1.04 * max([1.0] + [max(row["ratio"], row["interval"][1] if row["interval"] else 0)
                                    for summary in summaries for row in summary["rows"]])
    unit = (width - left - right) / scale_end
    body, y = [], top
    for summary in summaries:
        y += heading
        begin = y
        group = [f'<text class="ink halo" x="14" y="{y - 9}" font-weight="bold">{escape(summary["mechanism"])}</text>']
        for row in summary["rows"]:
            base = row["competitor"] == summary["base"]
            low, high = (min(summary["same_ratios"]), max(summary["same_ratios"])) if base else row["interval"] or (None, None)
            middle = y + bar / 2
            group.append(f'<text class="ink" x="{left - 8}" y="{middle + 4.5:.1f}" text-anchor="end">'
                         f'{escape(name_of(row["competitor"]))}</text>')
            group.append(f'<rect class="{row["competitor"]}" x="{left}" y="{y}" width="{row["ratio"] * unit:.1f}" '
                         f'height="{bar}"/>')
            if low is not None:
                x1, x2 = left + low * unit, left + high * unit
                path = f'd="M{x1:.1f} {middle}H{x2:.1f}M{x1:.1f} {middle - 4}v8M{x2:.1f} {middle - 4}v8"'
                group.append(f'<path class="under" stroke-width="4" {path}/><path class="whisker" stroke-width="1.3" {path}/>')
            end = left + max(row["ratio"], high or 0.0) * unit
            words = "1 (base)" if base else f"{row['ratio']:.2f}" + (", no claim" if row["unclear"] else "")
            group.append(f'<text class="ink halo" x="{end + 7:.1f}" y="{middle + 4.5:.1f}">{words}</text>')
            y += bar + gap
        spread = summary["same_spread"]
        x1 = left + unit / (1.0 + spread)
        body.append(f'<rect class="band" x="{x1:.1f}" y="{begin - 3}" '
                    f'width="{left + unit * (1.0 + spread) - x1:.1f}" height="{y - begin + 1}"/>')
        body += group
        y += 6
    bottom = y + 4
    axis, step = [], tick_step(scale_end)
    for i in range(int(scale_end / step) + 1):
        x = left + i * step * unit
        axis.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        axis.append(f'<text class="muted" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{round(i * step, 6):g}</text>')
    axis.append(f'<line class="base" stroke-width="1.5" stroke-dasharray="5 3" x1="{left + unit:.1f}" y1="{top}" '
                f'x2="{left + unit:.1f}" y2="{bottom}"/>')
    settings = data["settings"]
    parallel = f"{settings['threads']} thread{'s' if settings['threads'] > 1 else ''}" + (
        f", {settings['copies']} trainings at once" if settings["copies"] > 1 else "")
    bases = " or ".join(sorted({name_of(summary["base"]) for summary in summaries}))
    return svg(width, bottom + 50, COMPETITORS, [
        f'<text class="ink" x="14" y="28" font-size="18" font-weight="bold">CPU time of a training step, against '
        f'{escape(bases)}</text>',
        f'<text class="muted" x="14" y="50">{escape(data["machine"]["processor"])}, {parallel}; median over '
        f'{settings["rounds"]} rounds, whiskers 95 %, band: the base against itself</text>',
        *axis, *body,
        f'<text class="ink" x="{left + (width - left - right) / 2}" y="{bottom + 38}" text-anchor="middle">'
        'CPU time / CPU time of the base (smaller is faster)</text>'])
