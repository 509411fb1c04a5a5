"""Statistics, table and picture of side_by_side_gpu. Standard library only; side_by_side_gpu_check.py tests it.

A measurement is what side_by_side_gpu writes as gpu.json. `groups` holds one entry per part that was
measured, with mechanism, precision, card and date: its rounds, each with the seconds of a sample of
every competitor of the part, the base's again at the end.
"""

import math
import statistics
from xml.sax.saxutils import escape

from harness import MAX_LOSS_DIFFERENCE, bootstrap_interval, cell, departure, is_unclear, megabytes, svg

# key -> (name in tables, colour in light, colour in dark). The order is that of runs, tables and pictures.
COMPETITORS = {
    "loop": ("ordinary loop", "#8a94a0", "#8a94a0"),
    "eager": ("eager, fused AdamW", "#c9a66b", "#8c6f3a"),
    "compiled": ("torch.compile, max-autotune", "#d98b3f", "#d98b3f"),
    "compiled-no-graphs": ("the same without CUDA graphs", "#e0a96d", "#a8743c"),
    "graph": ("CUDA graph", "#b5651d", "#c97b35"),
    "vmap8": ("vmap, 8 seeds", "#c06c84", "#c06c84"),
    "vmap16": ("vmap, 16 seeds", "#a84f6b", "#d0809a"),
    "vmap32": ("vmap, 32 seeds", "#8c3352", "#e094ad"),
    "ours": ("ours, eager", "#5b8fc7", "#5b8fc7"),
    "ours-graph": ("ours, graph", "#0b6e4f", "#2fa67d"),
    "ours-array4": ("ours, array of 4", "#7a4fa3", "#a583cc"),
    "ours-array8": ("ours, array of 8", "#6a4297", "#ae8ed2"),
    "ours-array16": ("ours, array of 16", "#5a358b", "#b799d8"),
    "ours-array32": ("ours, array of 32", "#4a287f", "#c0a4de"),
}
BASE = "loop"
PRECISIONS = {"fp32": "float32", "tf32": "TensorFloat-32", "bf16": "bfloat16"}
BASELINE = "dot|softmax|none|sqrt_d|bias|0.1"
# Milliseconds per model-step of the baseline mechanism on an H200, least and most, derived from published launch costs and from
# the arithmetic before anything ran on a GPU.
PREDICTED = {
    ("loop", "fp32"): (2.5, 3.5), ("loop", "tf32"): (2.5, 3.5),
    ("eager", "fp32"): (2.5, 3.5), ("eager", "tf32"): (2.5, 3.5),
    ("graph", "fp32"): (1.6, 1.6), ("graph", "tf32"): (1.0, 1.0),
    ("ours", "fp32"): (3.0, 4.0), ("ours", "tf32"): (3.0, 4.0),
    ("ours-graph", "fp32"): (1.44, 1.52), ("ours-graph", "tf32"): (0.82, 0.89), ("ours-graph", "bf16"): (1.06, 1.14),
    ("ours-array8", "fp32"): (1.14, 1.21), ("ours-array8", "tf32"): (0.49, 0.57), ("ours-array8", "bf16"): (0.57, 0.64),
    ("ours-array32", "fp32"): (1.13, 1.21), ("ours-array32", "tf32"): (0.49, 0.57), ("ours-array32", "bf16"): (0.57, 0.65),
}


def name_of(competitor):
    return COMPETITORS[competitor][0]


def label(mechanism):
    """A mechanism's name, or that there are several."""
    return f"{mechanism.count(',') + 1} mixed mechanisms" if "," in mechanism else mechanism


def of_model_step(sample):
    return sample["seconds"] / sample["model_steps"]


def predicted(mechanism, precision, competitor):
    return PREDICTED.get((competitor, precision)) if mechanism == BASELINE else None


def complete(group, competitor):
    return all(competitor in entry["samples"] for entry in group["rounds"])


def row_of(data, groups, competitor):
    """A competitor's row, from the latest part that has it, and the base's from all of them."""
    has = [group for group in groups if complete(group, competitor)]
    if not has:
        return None
    chosen = has if competitor == BASE else has[-1:]
    rounds, last = [entry for group in chosen for entry in group["rounds"]], chosen[-1]
    seconds = [of_model_step(entry["samples"][competitor]) for entry in rounds]
    ratios = [mine / of_model_step(entry["samples"][BASE]) for mine, entry in zip(seconds, rounds)]
    median, prepared = statistics.median(seconds), last["prepared"][competitor]
    flop, peak = last["flop_per_step"], last.get("gemm_peak", data["peaks"].get("gemm_" + last["precision"]))
    return {
        "competitor": competitor, "seconds": median, "ratio": statistics.median(ratios), "interval": bootstrap_interval(ratios),
        "ratios": ratios, "tokens_per_second": data["settings"]["batch"] * data["settings"]["context"] / median,
        "peak_fraction": flop / median / peak if flop and peak else None,
        "peak_bytes": prepared.get("peak_bytes"), "prepare_seconds": prepared.get("prepare_seconds"),
        "predicted": predicted(last["mechanism"], last["precision"], competitor),
        "first_loss": last["rounds"][0]["samples"][competitor]["loss"],
        "expected_loss": last["rounds"][0]["samples"][BASE]["loss"], "date": last.get("date"),
    }


def summarise(data):
    """One dictionary per mechanism, precision and card: A/A ratios and their spread, rows by competitor. Seconds are those of one
    step of one model, ratios those to the base of the same part."""
    parts = {}
    for group in data["groups"]:
        parts.setdefault((group["mechanism"], group["precision"], group.get("device", data["peaks"]["device"])), []).append(group)
    summaries = []
    for (mechanism, precision, device), groups in parts.items():
        rounds = [entry for group in groups for entry in group["rounds"]]
        same = [of_model_step(entry["again"]) / of_model_step(entry["samples"][BASE]) for entry in rounds]
        spread = max(departure(ratio) for ratio in same)
        rows = [row for row in (row_of(data, groups, competitor) for competitor in COMPETITORS) if row is not None]
        for row in rows:
            row["unclear"] = row["competitor"] != BASE and is_unclear(row["ratio"], row["interval"], spread)
        summaries.append({"mechanism": mechanism, "precision": precision, "device": device, "rounds": len(rounds),
                          "same_ratios": same, "same_spread": spread, "rows": rows})
    return summaries


def different_losses(summaries):
    """Sentences about competitors whose loss after the first sample is not that of the base: those did other work."""
    complaints = []
    for summary in summaries:
        for row in summary["rows"]:
            expected = row["expected_loss"]
            if not abs(row["first_loss"] / expected - 1.0) <= MAX_LOSS_DIFFERENCE:  # catches NaN too
                complaints.append(f"{name_of(row['competitor'])} on {label(summary['mechanism'])} ({summary['precision']}) comes "
                                  f"to a loss of {row['first_loss']:.4f}, {name_of(BASE)} to {expected:.4f}")
    return complaints


def range_text(low, high):
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"


def place(summary, summaries):
    """The mechanism, and the card where there are several."""
    several = len({one["device"] for one in summaries}) > 1
    return f"`{cell(label(summary['mechanism']))}`" + (f", {summary['device']}" if several else "")


def row_cells(summary, summaries, i, row):
    base = row["competitor"] == BASE
    if base:
        interval = f"A/A {min(summary['same_ratios']):.3f}-{max(summary['same_ratios']):.3f}"
    else:
        interval = f"{row['interval'][0]:.3f}-{row['interval'][1]:.3f}" if row["interval"] else "one round"
    return [
        place(summary, summaries) if i == 0 else "",
        name_of(row["competitor"]) + (" (base)" if base else ""),
        f"{1e3 * row['seconds']:.3f}", range_text(*row["predicted"]) if row["predicted"] else "-",
        "1" if base else f"{row['ratio']:.3f}" + (" (no claim)" if row["unclear"] else ""), interval,
        f"{1.0 / row['seconds']:,.0f}", f"{row['tokens_per_second'] / 1e6:.2f}",
        "-" if row["peak_fraction"] is None else f"{row['peak_fraction']:.3f}",
        megabytes(row["peak_bytes"]), "-" if row["prepare_seconds"] is None else f"{row['prepare_seconds']:.1f}"]


def tables(summaries):
    """One table per precision: they are never mixed."""
    lines = []
    for precision, title in PRECISIONS.items():
        chosen = [summary for summary in summaries if summary["precision"] == precision]
        if not chosen:
            continue
        lines += [f"## {title}", "",
                  "| mechanism | competitor | ms a model-step | predicted | ratio | 95 % interval | model-steps/s | M tokens/s | "
                  "of GEMM peak | peak memory, MB | prepared in, s |",
                  "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
        for summary in chosen:
            lines += ["| " + " | ".join(row_cells(summary, summaries, i, row)) + " |" for i, row in enumerate(summary["rows"])]
        lines.append("")
    return lines


def rate(value, unit):
    return "-" if value is None else f"{value / 1e12:.3g} {unit}"


def facts(data, summaries):
    """What the measurement stands on, as rows of a table."""
    settings, machine, peaks = data["settings"], data["machine"], data["peaks"]
    complaints = different_losses(summaries)
    rows = [("date", data["date"]), ("command", f"`{cell(data['command'])}`"), ("device", peaks["device"])]
    rows += [("device's state before", state) for state in data["device_state"]]
    rows += [("processor", f"{machine['processor']}, {machine['cores']} cores"), ("kernel", machine["kernel"]),
             ("GEMM peak, same run", ", ".join(f"{name} {rate(peaks.get('gemm_' + key), 'TFLOP/s')}"
                                               for key, name in PRECISIONS.items())),
             ("copy, same run", rate(peaks["copy_bytes_per_second"], "TB/s, reading and writing"))]
    for side, versions in data["versions"].items():
        rows += [(f"{side}: {key.replace('_', ' ')}", value) for key, value in versions.items() if value and key != "processor"]
    rows += [("correctness, before the clock", data["gate"]["words"]),
             ("A/A spread", ", ".join(f"{100 * summary['same_spread']:.1f} %" for summary in summaries) +
              " (largest of each mechanism and precision, in the tables' order)"),
             ("measured", "; ".join(f"{label(group['mechanism'])}, {group['precision']}: {', '.join(group['prepared'])} on "
                                    f"{group['device']}, {group['date']}" for group in data["groups"] if "date" in group) or "-"),
             ("rounds", f"at most {settings['rounds']} a part, here " +
              ", ".join(str(summary["rounds"]) for summary in summaries) + f"; {settings['steps']} steps a sample after {settings['warm_up']} to warm up, one synchronisation at the end"),
             ("TensorFloat-32", "allowed for float32 products in the part of that name only, set explicitly on both sides"),
             ("mixed mechanisms", ", ".join(settings["mixed"])), ("tokens", settings["tokens"]),
             ("losses after the first sample", "OTHER THAN THE BASE'S: " + "; ".join(complaints) if complaints else
              f"all within {100 * MAX_LOSS_DIFFERENCE:.0f} % of the base's"),
             ("time", f"{data['seconds']:.0f} s of at most {60 * settings['minutes']:.0f}")]
    reasons = {}
    for left in data["left_out"]:
        where = f"{name_of(left['competitor'])} ({label(left['mechanism'])}, {left['precision']})"
        reasons.setdefault(left["why"], []).append(where)
    rows += [("left out", f"{why}: {', '.join(where)}") for why, where in reasons.items()]
    rows += [("not reached in time", f"{label(group['mechanism'])}, {group['precision']}" +
              (f": {', '.join(c for c in group['competitors'] if c != BASE)}" if "competitors" in group else ""))
             for group in data["not_reached"]]
    return [f"| {key} | {value if value.startswith('`') else cell(value)} |" for key, value in rows]


def markdown(data, summaries):
    """gpu.md: one table per precision and how it was taken."""
    settings = data["settings"]
    return "\n".join([
        "# Training steps on the GPU, side by side",
        "",
        f"Time of one training step of one model (batch {settings['batch']}, context {settings['context']}, vocabulary "
        f"{settings['vocabulary']:,}, published semantics). An array of R models takes R model-steps at once.",
        "",
        "![Milliseconds of a model-step](gpu.svg)",
        "",
        *tables(summaries),
        f"The ratio is the median over rounds of the ratios to \"{name_of(BASE)}\" within a round, with a bootstrap interval; "
        "below 1 is faster. `A/A` is the base against itself, first and last in every round; `(no claim)`: the difference is "
        "not beyond the largest A/A one, or the interval holds 1. `predicted` was written down before anything ran on a GPU, "
        "for an H200, and is no measurement. Of GEMM peak: the FLOPs that our program counts for the mechanism (additive in its "
        "factored form) over the time and the best matrix product of that precision in the same run. `prepared in` holds "
        "building, compiling, capturing and the warm-up, beside the others' preparation.",
        "",
        "## How it was taken",
        "",
        "| | |",
        "|---|---|",
        *facts(data, summaries)]) + "\n"


def ticks(low, high):
    """1, 2 and 5 times powers of ten from low to high."""
    candidates = (factor * 10.0 ** power for power in range(-7, 5) for factor in (1, 2, 5))
    return [tick for tick in candidates if low <= tick <= high]


def picture(data, summaries):
    """gpu.svg: one dot per competitor on a logarithmic axis of milliseconds, grouped by mechanism and precision; whiskers are the
    intervals of the ratio, the open ring is what was predicted."""
    left, right, row_height, heading, width, top = 230, 90, 21, 32, 860, 76
    times = [1e3 * row["seconds"] for summary in summaries for row in summary["rows"]]
    times += [bound for summary in summaries for row in summary["rows"] if row["predicted"] for bound in row["predicted"]]
    low, high = min(times) / 1.5, max(times) * 1.5
    unit = (width - left - right) / math.log(high / low)

    def x_of(milliseconds):
        return left + unit * math.log(min(max(milliseconds, low), high) / low)

    body, y = [], top
    for summary in summaries:
        y += heading
        body.append(f'<text class="ink halo" x="14" y="{y - 9}" font-weight="bold">{escape(label(summary["mechanism"]))}, '
                    f'{PRECISIONS[summary["precision"]]}</text>')
        base = 1e3 * next(row["seconds"] for row in summary["rows"] if row["competitor"] == BASE)
        for row in summary["rows"]:
            middle, x = y + row_height / 2, x_of(1e3 * row["seconds"])
            body.append(f'<text class="ink" x="{left - 8}" y="{middle + 4.5:.1f}" text-anchor="end">'
                        f'{escape(name_of(row["competitor"]))}</text>')
            if row["interval"]:
                x1, x2 = (x_of(base * bound) for bound in row["interval"])
                body.append(f'<path class="whisker" stroke-width="1.3" d="M{x1:.1f} {middle}H{x2:.1f}'
                            f'M{x1:.1f} {middle - 4}v8M{x2:.1f} {middle - 4}v8"/>')
            if row["predicted"]:
                x1, x2 = (x_of(bound) for bound in row["predicted"])
                body.append(f'<rect x="{x1 - 4:.1f}" y="{middle - 4}" width="{x2 - x1 + 8:.1f}" height="8" rx="4" fill="none" '
                            'class="base" stroke-dasharray="2 2"/>')
            body.append(f'<circle class="{row["competitor"]}" cx="{x:.1f}" cy="{middle}" r="5"/>')
            body.append(f'<text class="ink halo" x="{x + 10:.1f}" y="{middle + 4.5:.1f}">{1e3 * row["seconds"]:.3g}</text>')
            y += row_height
    bottom = y + 6
    axis = []
    for tick in ticks(low, high):
        x = x_of(tick)
        axis.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        axis.append(f'<text class="muted" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{tick:g}</text>')
    return svg(width, bottom + 50, COMPETITORS, [
        '<text class="ink" x="14" y="28" font-size="18" font-weight="bold">Time of a training step of one model</text>',
        f'<text class="muted" x="14" y="50">{escape(data["peaks"]["device"])}; medians over rounds, whiskers 95 % of the ratio to '
        'the base, dashed: predicted beforehand</text>',
        *axis, *body,
        f'<text class="ink" x="{left + (width - left - right) / 2}" y="{bottom + 38}" text-anchor="middle">'
        'milliseconds a model-step, logarithmic (left is faster)</text>'])
