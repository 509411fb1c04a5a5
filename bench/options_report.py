"""Tables and pictures of options. Standard library only; `options --self-check` tests them.

A measurement is what options writes as options.json: `steps` with the seconds of a step of every option in every mode, a number a
sample, and those of the vanilla model before and after each; `windows` with milliseconds of a layer by mode, pattern and length.
The first option is the vanilla model itself, in a process of its own: what differs there is noise.
"""

import math
import statistics
import sys
from xml.sax.saxutils import escape

from harness import bootstrap_interval, cell, departure, svg

VANILLA = "2*attn"
MODES = {"exact": ("exact: fused kernels", "#0b6e4f", "#2fa67d"),
         "reference": ("reference: LibTorch's operations", "#5b8fc7", "#5b8fc7")}
PATTERNS = {"full": ("full", "#7a4fa3", "#a583cc"), "window=128": ("window of 128", "#c9a66b", "#c9a66b"),
            "window=32": ("window of 32", "#0b6e4f", "#2fa67d")}


def _layer(gene, *values):
    return [(f"{gene}={value}", gene, f"2*attn{{{gene}={value}}}") for value in values]


def _model(gene, *values):
    return [(f"{gene}={value}", gene, f"model{{{gene}={value}}}/2*attn") for value in values]


# What is shown, its gene, the model's name.
OPTIONS = [
    *_layer("similarity", "silu_dot", "additive", "cosine", "bilinear", "l2"),
    *_layer("normalization", "softmax1", "sink", "sigmoid_attn", "sigmoid_norm", "relu_norm", "relu_n", "sparsemax",
            "entmax15", "top_k"),
    *_layer("temperature", "learned", "per_query", "log_length"),
    *_layer("gating", "input_gate", "output_gate", "highway", "elementwise_gate", "headwise_gate"),
    *_layer("position", "rope", "alibi", "t5"),
    ("window of 32", "pattern", "2*attn{pattern=window,window=32}"),
    ("window of 32, 4 globals", "pattern", "2*attn{pattern=window,window=32,globals=4}"),
    *_layer("decay", "scalar"),
    *_layer("kv_heads", "1", "2"),
    *_layer("qk_norm", "rms"),
    *_layer("head_norm", "rms"),
    *_layer("conv", "3", "4"),
    ("bias=none", "bias", "model{bias=none}/2*attn"),
    *((f"ffn={key}", "ffn", f"2*attn+{key}") for key in ("relu2", "swiglu", "none")),
    *_model("norm", "rms"),
    *_model("norm_place", "post", "sandwich"),
    *_model("block", "parallel"),
    *_model("position_embedding", "sinusoidal", "none"),
    *_model("tied", "0"),
]


def samples(row):
    """Ratio of every sample to the mean of its two neighbours."""
    return [2 * value / (before + after)
            for value, before, after in zip(row["seconds"], row["vanilla"], row["vanilla"][1:])]


def ratio(row):
    """The median over samples."""
    return statistics.median(samples(row))


def by_key(data):
    """key -> mode -> row, without the vanilla model's own."""
    result = {}
    for row in data["steps"]["options"][1:]:
        result.setdefault(row["key"], {})[row["mode"]] = row
    return result


def spread(data):
    """The largest departure of a sample of the vanilla model from those of the vanilla model around it."""
    return max(departure(value) for value in samples(data["steps"]["options"][0]))


def markdown(data):
    settings, machine = data["settings"], data["machine"]
    vanilla = [value for row in data["steps"]["options"] for value in row["vanilla"]]
    lines = [
        "# What options cost on the CPU", "",
        f"CPU time of a training step with one option in place of the vanilla model's, over that of the vanilla model (two layers "
        f"of width 128, {settings['context']} tokens, batch {settings['batch']}, {settings['vocabulary']:,} words, one thread): "
        f"median of {settings['samples']} samples, each over the mean of the vanilla samples before and after it; the interval is a "
        f"bootstrap over samples. The vanilla step took {1000 * statistics.median(vanilla):.0f} ms; a sample of it in another "
        f"process differed from those around it by up to {100 * spread(data):.1f} %, and smaller differences are no claim. "
        "`reference` is the same model by LibTorch's operations, over the same vanilla step in `exact`.", "",
        "![Steps by option](options.svg)", "",
        "| gene | option | exact | 95 % interval | reference | reference / exact |", "|---|---|--:|---|--:|--:|"]
    genes = {key: gene for key, gene, _ in OPTIONS}
    for key, by_mode in by_key(data).items():
        exact, reference = (ratio(by_mode[mode]) for mode in MODES)
        interval = bootstrap_interval(samples(by_mode["exact"]))
        lines.append(f"| {genes[key]} | {cell(key)} | {exact:.2f} | " +
                     (f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "one sample") +
                     f" | {reference:.2f} | {reference / exact:.2f} |")
    lines += ["", "## Windows", "",
              "One attention layer of width 128, forward and backward, 4,096 tokens a batch in sequences of the given length; "
              f"milliseconds of CPU time, median of {settings['repetitions']} repetitions, interleaved. Gradients were checked "
              "against those of LibTorch's operations first.", "",
              "![A layer by the length of its sequence](windows.svg)", ""]
    lengths = sorted({row["length"] for row in data["windows"]})
    lines += ["| mode | pattern | " + " | ".join(f"{length:,}" for length in lengths) + " |",
              "|---|---|" + "--:|" * len(lengths)]
    for mode in ("exact", "reference"):
        for pattern, (name, _, _) in PATTERNS.items():
            at = {row["length"]: row["milliseconds"] for row in data["windows"]
                  if (row["mode"], row["pattern"]) == (mode, pattern)}
            lines.append(f"| {mode} | {name} | " + " | ".join(f"{at[length]:.1f}" for length in lengths) + " |")
    lines += ["", f"Taken {data['date']} by `{data['command']}`, {machine['processor']}, {machine['cores']} cores; " +
              ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in data["steps"]["versions"].items()
                        if key in ("torch", "instruction_set", "compiler") and value) + f"; tokens {data['tokens']}.", ""]
    return "\n".join(lines)


def options_picture(data):
    of_all = by_key(data)
    left, right, top, row = 244, 70, 84, 30
    width, bottom = 860, 84 + 30 * len(of_all) + 8
    longest = 1.03 * max(ratio(row) for by_mode in of_all.values() for row in by_mode.values())
    unit = (width - left - right) / longest
    noise = spread(data)
    body = [f'<rect class="band" x="{left + unit * (1 - noise):.1f}" y="{top - 6}" width="{2 * unit * noise:.1f}" '
            f'height="{bottom - top + 6}"/>']
    step = 0.25 if longest < 2.5 else 0.5 if longest < 5 else 1
    for i in range(int(longest / step) + 1):
        x = left + unit * i * step
        body.append(f'<line class="grid" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{bottom}"/>'
                    f'<text class="muted" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{i * step:g}</text>')
    labels = []
    for i, (key, by_mode) in enumerate(of_all.items()):
        y = top + row * i
        labels.append(f'<text class="ink" x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(key)}</text>')
        for j, mode in enumerate(MODES):
            value = ratio(by_mode[mode])
            body.append(f'<rect class="{mode}" x="{left}" y="{y + 1 + 11 * j}" width="{unit * value:.1f}" height="10"/>')
            labels.append(f'<text class="ink halo" font-size="11" x="{left + unit * value + 5:.1f}" y="{y + 10 + 11 * j}">'
                          f'{value:.2f}</text>')
    body.append(f'<line class="base" stroke-width="1.5" stroke-dasharray="5 3" x1="{left + unit:.1f}" y1="{top - 6}" '
                f'x2="{left + unit:.1f}" y2="{bottom}"/>')
    body += labels
    return svg(width, bottom + 46, MODES, [
        '<text class="ink" x="14" y="26" font-size="18" font-weight="bold">A training step with one option, over the vanilla '
        'step</text>', *_legend(MODES, 14, 52), *body,
        f'<text class="ink" x="{left + (width - left - right) / 2}" y="{bottom + 37}" text-anchor="middle">CPU time / CPU time of '
        'the vanilla step (band: the vanilla step against itself)</text>'])


def _legend(entries, x, y):
    parts = []
    for key, (name, *_) in entries.items():
        parts.append(f'<rect class="{key.replace("=", "_")}" x="{x}" y="{y - 9}" width="11" height="11"/>'
                     f'<text class="ink" x="{x + 17}" y="{y + 1}">{escape(name)}</text>')
        x += 40 + 7 * len(name)
    return parts


def windows_picture(data):
    width, height, left, right, top, bottom = 820, 470, 70, 130, 84, 410
    rows = data["windows"]
    lengths = sorted({row["length"] for row in rows})
    low, high = (scale(edge(row["milliseconds"] for row in rows)) for scale, edge in
                 ((lambda v: 10 ** math.floor(math.log10(v)), min), (lambda v: 10 ** math.ceil(math.log10(v)), max)))

    def x(length):
        return left + (width - left - right) * math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])

    def y(milliseconds):
        return bottom - (bottom - top) * math.log(milliseconds / low) / math.log(high / low)

    body = []
    tick = low
    while tick <= high * 1.001:
        for factor in (1, 2, 5):
            if tick * factor <= high * 1.001:
                body.append(f'<line class="grid" x1="{left}" y1="{y(tick * factor):.1f}" x2="{width - right}" '
                            f'y2="{y(tick * factor):.1f}"/><text class="muted" x="{left - 8}" y="{y(tick * factor) + 4:.1f}" '
                            f'text-anchor="end">{tick * factor:g}</text>')
        tick *= 10
    for length in lengths:
        body.append(f'<text class="muted" x="{x(length):.1f}" y="{bottom + 20}" text-anchor="middle">{length:,}</text>')
    shown = {key.replace("=", "_"): entry for key, entry in PATTERNS.items()}
    ends = []
    for mode in ("reference", "exact"):
        for pattern in PATTERNS:
            points = [(x(row["length"]), y(row["milliseconds"])) for row in sorted(rows, key=lambda row: row["length"])
                      if (row["mode"], row["pattern"]) == (mode, pattern)]
            css = pattern.replace("=", "_")
            dash = ' stroke-dasharray="5 4"' if mode == "reference" else ""
            path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
            body.append(f'<path d="{path}" fill="none" class="line-{css}" stroke-width="2"{dash}/>')
            body += [f'<circle class="{css}" cx="{px:.1f}" cy="{py:.1f}" r="3.5"/>' for px, py in points]
            if mode == "exact":
                ends.append((points[-1][1], PATTERNS[pattern][0]))
    reference = max(y(row["milliseconds"]) for row in rows if row["mode"] == "reference" and row["length"] == lengths[-1])
    ends.append((reference, "LibTorch, all"))
    for py, name in ends:
        body.append(f'<text class="ink" x="{width - right + 8}" y="{py + 4:.1f}">{escape(name)}</text>')
    lines = "".join(f".line-{key} {{ stroke: {entry[1]} }} " for key, entry in shown.items())
    return svg(width, height, shown, [
        f"<style>{lines}</style>",
        '<text class="ink" x="14" y="26" font-size="18" font-weight="bold">An attention layer by the length of its sequence</text>',
        '<text class="muted" x="14" y="50">forward and backward, 4,096 tokens a batch; solid: our kernels; dashed: LibTorch’s '
        'operations</text>', *body,
        f'<text class="ink" x="{(left + width - right) / 2}" y="{bottom + 44}" text-anchor="middle">tokens of a sequence</text>',
        f'<text class="ink" x="14" y="{top - 14}">milliseconds of CPU time</text>'])


def self_check():
    """Tables and pictures of made-up numbers. @return 0; the first check that fails raises."""
    made_up = {"exact": [1.2, 2.4], "reference": [2.0, 2.4]}
    options = [{"key": "vanilla", "mode": "exact", "seconds": [1.1, 2.0], "vanilla": [1.0, 1.0, 3.0]}]
    options += [{"key": key, "mode": mode, "seconds": values, "vanilla": [1.0, 1.0, 3.0]}
                for key, _, _ in OPTIONS for mode, values in made_up.items()]
    steps = {"versions": {"torch": "1", "blas": "x"}, "options": options}
    rows = [{"mode": mode, "pattern": pattern, "length": length, "milliseconds": 10.0 * length / 128}
            for mode in MODES for pattern in PATTERNS for length in (128, 1024)]
    data = {"command": "bench/options", "machine": {"processor": "P", "cores": 2}, "date": "D", "tokens": "T",
            "settings": {"samples": 2, "steps": 1, "repetitions": 5, "batch": 32, "context": 128, "vocabulary": 10000},
            "windows": rows, "steps": steps}
    first = by_key(data)[OPTIONS[0][0]]
    assert [round(value, 6) for value in samples(first["exact"])] == [1.2, 1.2], first
    assert [round(value, 6) for value in samples(first["reference"])] == [2.0, 1.2], first
    assert abs(spread(data) - 0.1) < 1e-9
    text = markdown(data)
    assert "| similarity | similarity=silu_dot | 1.20 | 1.20 to 1.20 | 1.60 | 1.33 |" in text, text
    assert "| exact | window of 32 | 10.0 | 80.0 |" in text, text
    for picture in (options_picture(data), windows_picture(data)):
        assert picture.startswith("<svg") and "nan" not in picture
    assert len({key for key, _, _ in OPTIONS}) == len(OPTIONS)
    assert all("2*attn" in name for _, _, name in OPTIONS), "all of two layers"
    print("options: checks passed", file=sys.stderr)
    return 0
