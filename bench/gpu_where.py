#!/usr/bin/env python3
"""Times the parts of a training step of the paper's size on a GPU, each alone, by PyTorch: what the hardware and cuBLAS give.

    bench/gpu_where.py --output FOLDER

Products of the output layer (logits X E^T, dX, dW, each written and added), its loss, softmax(X E^T) E with the log-sum-exp in
one attention kernel, products of layers, causal attention and copies, for several numbers of models and tokens. Each is captured
as a CUDA graph of repetitions and timed by events; medians. Writes where.jsonl, a line as soon as a part is timed, and where.md.
What fails or does not fit into --seconds says so, and the others go on. Needs a Python with torch that sees the GPU; no build.

Bytes are those that must move: every operand read and every result written once, though some may stay in the L2 cache. The
kernel that computes softmax(X E^T) E is compared with float64 before it is timed.

--smoke: the same parts, tiny, on the CPU; its times mean nothing.

Exit status: 0; 1 if nothing could be timed; 2 for bad input.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import time

PRECISIONS = ("fp32", "tf32", "bf16")
FULL = {"models": (8, 4, 2, 1), "tokens": (4096, 1024, 512), "width": 128, "words": 10000, "stack": (8, 1, 32), "sequences": 32,
        "length": 128, "heads": 4, "outputs": (128, 384, 512), "copy": (1 << 28, 1 << 24, 1 << 21, 4)}
SMOKE = {"models": (2, 1), "tokens": (8,), "width": 16, "words": 50, "stack": (2,), "sequences": 2, "length": 8, "heads": 2,
         "outputs": (16,), "copy": (1 << 10,)}
SAMPLES = 7
SAMPLE_SECONDS = 2e-3  # of a graph: far above the clock's resolution
MOST_REPETITIONS = 100
TITLES = {"logits": "Output layer: logits, X E^T", "dX": "Output layer: dX, the gradient of logits times E",
          "dW": "Output layer: dW, the gradient of logits transposed times X",
          "loss": "Softmax cross entropy's gradient from logits", "fused": "softmax(X E^T) E and log-sum-exp in one kernel",
          "layer": "Products of layers", "attention": "Causal attention, forward and backward", "copy": "Copies"}


class Failure(Exception):
    """Why a part has no time."""


def say(text):
    print(f"gpu_where: {text}", file=sys.stderr, flush=True)


# ---- Parts: each is {part, models, tokens, how, precision, operations, bytes} and build(torch, device) -> a function to time.

def part(name, models, tokens, how, precision, operations, moved, build):
    return {"part": name, "models": models, "tokens": tokens, "how": how, "precision": precision, "operations": operations,
            "bytes": moved, "build": build}


def size_of(precision):
    return 2 if precision == "bf16" else 4


def dtype_of(torch, precision):
    return torch.bfloat16 if precision == "bf16" else torch.float32


def random(torch, device, precision, *shape):
    return (torch.randn(*shape, device=device) * 0.1).to(dtype_of(torch, precision))


def product_of(name, models, tokens, width, words):
    """Shapes of both operands as they lie in memory, and whether they are transposed."""
    x, e, logits = (models, tokens, width), (models, words, width), (models, tokens, words)
    return {"logits": (x, e, False, True), "dX": (logits, e, False, False), "dW": (logits, x, True, False)}[name]


def build_product(shapes, precision, added):
    left, right, turn_left, turn_right = shapes

    def build(torch, device):
        a, b = random(torch, device, precision, *left), random(torch, device, precision, *right)
        a, b = a.transpose(1, 2) if turn_left else a, b.transpose(1, 2) if turn_right else b
        out = torch.zeros(a.shape[0], a.shape[1], b.shape[2], device=device, dtype=a.dtype)
        if added:
            return lambda: torch.baddbmm(out, a, b, out=out)
        return lambda: torch.bmm(a, b, out=out)

    return build


def product(name, how, precision, added, shapes, tokens, label):
    """A part for a product of stacked matrices."""
    (models, left0, left1), (_, right0, right1), turn_left, turn_right = shapes
    rows, inner = (left1, left0) if turn_left else (left0, left1)
    columns = right0 if turn_right else right1
    elements = rows * inner + inner * columns + rows * columns * (2 if added else 1)
    return part(name, models, tokens, f"{how}{', added' if added else ''}{label}", precision, 2 * models * rows * inner * columns,
                models * elements * size_of(precision), build_product(shapes, precision, added))


def output_layer(sizes):
    """Products of the output layer."""
    for name in ("logits", "dX", "dW"):
        for models in sizes["models"]:
            for tokens in sizes["tokens"]:
                shapes = product_of(name, models, tokens, sizes["width"], sizes["words"])
                for precision in PRECISIONS:
                    for added in (False, True):
                        yield product(name, "bmm", precision, added, shapes, tokens, "")
                yield wide_product(name, models, tokens, shapes)


def wide_product(name, models, tokens, shapes):
    """bfloat16 operands, float32 result."""
    def build(torch, device):
        left, right, turn_left, turn_right = shapes
        a, b = random(torch, device, "bf16", *left), random(torch, device, "bf16", *right)
        a, b = a.transpose(1, 2) if turn_left else a, b.transpose(1, 2) if turn_right else b
        return lambda: torch.bmm(a, b, out_dtype=torch.float32)

    base = product(name, "bmm", "bf16", False, shapes, tokens, "")
    (_, left0, left1), (_, right0, right1), turn_left, turn_right = shapes
    written = models * (left1 if turn_left else left0) * (right0 if turn_right else right1)  # 4 bytes each instead of 2
    return part(name, models, tokens, "bmm to float32", "bf16", base["operations"], base["bytes"] + 2 * written, build)


def losses(sizes):
    """Of the mean over tokens, from logits in memory."""
    def by_hand(torch, logits, targets):
        def run():
            gradient = torch.softmax(logits, -1)
            gradient.scatter_add_(-1, targets.unsqueeze(-1), minus_one)
            return gradient.mul_(scale)
        minus_one = torch.full((*targets.shape, 1), -1.0, device=logits.device, dtype=logits.dtype)
        scale = 1.0 / targets.shape[-1]
        return run

    def by_autograd(torch, logits, targets):
        logits.requires_grad_(True)
        rows = logits.view(-1, logits.shape[-1])

        def run():
            loss = torch.nn.functional.cross_entropy(rows.float(), targets.view(-1))
            return torch.autograd.grad(loss, logits)
        return run

    def builder(how, models, tokens, precision):
        def build(torch, device):
            logits = random(torch, device, precision, models, tokens, sizes["words"])
            return how(torch, logits, torch.randint(sizes["words"], (models, tokens), device=device))
        return build

    for models in sizes["models"]:
        for tokens in sizes["tokens"]:
            for precision in ("fp32", "bf16"):
                moved = 2 * models * tokens * sizes["words"] * size_of(precision)
                for name, how in (("softmax, scatter", by_hand), ("cross_entropy, autograd", by_autograd)):
                    yield part("loss", models, tokens, name, precision, 0, moved, builder(how, models, tokens, precision))


def fused_heads(sizes):
    """The output layer as attention of one head over the words: queries X, keys and values E."""
    def flash(torch, q, k):
        return lambda: torch.ops.aten._scaled_dot_product_flash_attention(q, k, k, 0.0, False, False, scale=1.0)[:2]

    def cudnn(torch, q, k):
        return lambda: torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, k, None, True, 0.0, False, False, scale=1.0)[:2]

    def efficient(torch, q, k):
        return lambda: torch.ops.aten._scaled_dot_product_efficient_attention(q, k, k, None, True, 0.0, False, scale=1.0)[:2]

    def builder(how, models, tokens, precision):
        def build(torch, device):
            q = random(torch, device, precision, models, 1, tokens, sizes["width"])
            k = random(torch, device, precision, models, 1, sizes["words"], sizes["width"])
            run = how(torch, q, k)
            with torch.no_grad():
                require_attention(torch, run(), q, k)
            return run
        return build

    width, words = sizes["width"], sizes["words"]
    for models in sizes["models"]:
        for tokens in sizes["tokens"]:
            for name, how, precision in (("flash", flash, "bf16"), ("cuDNN", cudnn, "bf16"), ("efficient", efficient, "bf16"),
                                         ("efficient", efficient, "fp32"), ("efficient", efficient, "tf32")):
                moved = models * ((2 * tokens + words) * width * size_of(precision) + 4 * tokens)
                yield part("fused", models, tokens, name, precision, 4 * models * tokens * words * width, moved,
                           builder(how, models, tokens, precision))


def require_attention(torch, result, q, k):
    """Failure unless the first rows are softmax(Q K^T) K with its log-sum-exp."""
    rows = min(64, q.shape[2])
    scores = q[:, :, :rows].double() @ k.double().transpose(-1, -2)
    wanted = torch.softmax(scores, -1) @ k.double(), torch.logsumexp(scores, -1)
    given = result[0][:, :, :rows].double(), result[1].reshape(*q.shape[:2], -1)[..., :rows].double()
    for name, one, other in zip(("softmax(Q K^T) K", "the log-sum-exp"), given, wanted):
        error = ((one - other).abs().max() / other.abs().max()).item()
        if not error < 2e-2:
            raise Failure(f"{name} is off by {error:.1e}, relative, so that it is not timed")


def layers(sizes):
    """Products of layers of tokens of a batch: forward, the gradients of inputs and of weights."""
    tokens, width = sizes["sequences"] * sizes["length"], sizes["width"]
    for models in sizes["stack"]:
        for outputs in sizes["outputs"]:
            x, w, y = (models, tokens, width), (models, outputs, width), (models, tokens, outputs)
            for how, shapes in (("forward", (x, w, False, True)), ("dX", (y, w, False, False)), ("dW", (y, x, True, False))):
                for precision in PRECISIONS:
                    yield product("layer", how, precision, False, shapes, tokens, f", {width} to {outputs}")


def attention(sizes):
    batch, heads, length = sizes["sequences"], sizes["heads"], sizes["length"]
    head = sizes["width"] // heads

    def builder(models, precision):
        def build(torch, device):
            q, k, v, up = (random(torch, device, precision, models * batch, heads, length, head) for _ in range(4))
            inputs = [one.requires_grad_(True) for one in (q, k, v)]

            def run():
                out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
                return torch.autograd.grad(out, inputs, up)
            return run
        return build

    for models in sizes["stack"]:
        for precision in PRECISIONS:
            rows = models * batch * heads * length
            # Two products forward, five backward, half of each square.
            yield part("attention", models, batch * length, "scaled_dot_product_attention", precision, 7 * rows * length * head,
                       11 * rows * head * size_of(precision), builder(models, precision))


def copies(sizes):
    """What memory gives; the smallest is what a kernel costs in a graph."""
    def builder(count):
        def build(torch, device):
            source = torch.ones(count // 4, device=device)
            target = torch.empty_like(source)
            return lambda: target.copy_(source)
        return build

    for count in sizes["copy"]:
        yield part("copy", 1, 0, f"{count} bytes", "fp32", 0, 2 * count, builder(count))


def parts(sizes):
    """In the order of their worth."""
    every = {name: list(make(sizes)) for name, make in (("copy", copies), ("output", output_layer), ("fused", fused_heads),
                                                        ("loss", losses), ("layer", layers), ("attention", attention))}
    return [one for group in every.values() for one in group]


# ---- The clock.

def set_products(torch, precision):
    """float32 products in TensorFloat-32, or not."""
    try:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    except (AttributeError, RuntimeError):  # a version that has the newer setting alone
        torch.backends.cuda.matmul.fp32_precision = "tf32" if precision == "tf32" else "ieee"


def time_on_host(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def time_on_device(torch, run):
    """Median seconds of a repetition in a captured graph."""
    stream = torch.cuda.Stream()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def clocked(action):
        begin.record()
        action()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
        run()
        once = clocked(run)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    repetitions = max(1, min(MOST_REPETITIONS, round(SAMPLE_SECONDS / once)))
    graph = captured(torch, stream, run, repetitions)
    graph.replay()
    return statistics.median(clocked(graph.replay) for _ in range(SAMPLES)) / repetitions


def captured(torch, stream, run, repetitions):
    """A graph; not by torch.cuda.graph, which collects garbage and empties the allocator's cache each time."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            for _ in range(repetitions):
                run()
        except Exception:
            try:
                graph.capture_end()
            except RuntimeError:
                pass  # what broke the capture is said
            raise
        graph.capture_end()
    torch.cuda.synchronize()
    return graph


def warm_up(torch, seconds=0.5):
    """Until the clocks are up."""
    a, begin = torch.ones(4096, 4096, device="cuda"), time.monotonic()
    while time.monotonic() - begin < seconds:
        torch.mm(a, a)
        torch.cuda.synchronize()


def timed(torch, device, one):
    """The seconds of a part; Failure says why it has none."""
    try:
        set_products(torch, one["precision"])
        if one["precision"] == "tf32" and device == "cpu":
            raise Failure("the CPU has no TensorFloat-32")
        if device != "cpu" and torch.cuda.memory_reserved() > torch.cuda.get_device_properties(0).total_memory / 4:
            torch.cuda.empty_cache()  # of graphs that are gone, which no later capture could free
        run = one["build"](torch, device)
        return time_on_host(run) if device == "cpu" else time_on_device(torch, run)
    except (RuntimeError, AttributeError, NotImplementedError, TypeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise Failure(lines[0][:200]) from None


# ---- Results.

def facts(torch, device):
    result = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": device,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")}
    if device != "cpu":
        one = torch.cuda.get_device_properties(0)
        result.update(device=one.name, memory_bytes=one.total_memory, multiprocessors=one.multi_processor_count,
                      cudnn=torch.backends.cudnn.version())
    return result


def cell(row):
    if "failed" in row:
        return "failed"
    text = f"{row['seconds'] * 1e6:,.1f} us"
    if row["operations"]:
        text += f", {row['operations'] / row['seconds'] / 1e12:.1f} TFLOP/s"
    return text + f", {row['bytes'] / row['seconds'] / 1e9:,.0f} GB/s"


def tables(machine, rows, not_reached):
    """Markdown: for each part a row for models and tokens, a column for each precision and way."""
    lines = ["# Parts of a step, each alone", "", ", ".join(f"{key} {value}" for key, value in machine.items()), ""]
    for name, title in TITLES.items():
        ours = [row for row in rows if row["part"] == name]
        if not ours:
            continue
        columns = list(dict.fromkeys((row["how"], row["precision"]) for row in ours))
        if name in ("copy", "layer"):  # the ways are shapes, of which there are many
            columns = list(dict.fromkeys(row["precision"] for row in ours))
        lines += [f"## {title}", ""]
        if name in ("copy", "layer"):
            keys = list(dict.fromkeys((row["models"], row["how"]) for row in ours))
            found = {((row["models"], row["how"]), row["precision"]): row for row in ours}
            heads, names = ["models", "what"], columns
        else:
            keys = list(dict.fromkeys((row["models"], row["tokens"]) for row in ours))
            found = {((row["models"], row["tokens"]), (row["how"], row["precision"])): row for row in ours}
            heads, names = ["models", "tokens"], [f"{how}, {precision}" for how, precision in columns]
        lines += ["| " + " | ".join([*heads, *names]) + " |", "|" + "---|" * (len(heads) + len(names))]
        for key in sorted(keys, key=lambda one: one[0]):
            cells = [cell(found[key, column]) if (key, column) in found else "" for column in columns]
            lines.append("| " + " | ".join([str(one) for one in key] + cells) + " |")
        lines.append("")
    failures = list(dict.fromkeys((row["part"], row["how"], row["precision"], row["failed"]) for row in rows if "failed" in row))
    lines += [f"- failed: {name}, {how}, {precision}: {why}" for name, how, precision, why in failures]
    if not_reached:
        lines.append(f"- not reached in time: {not_reached} parts")
    return "\n".join(lines).rstrip() + "\n"


def measure(torch, device, sizes, seconds, write):
    """Rows of everything, each given to write as soon as it is known; how many were not reached."""
    begin, rows = time.monotonic(), []
    every = parts(sizes)
    for index, one in enumerate(every):
        if time.monotonic() - begin > seconds:
            return rows, len(every) - index
        row = {key: value for key, value in one.items() if key != "build"}
        try:
            row["seconds"] = timed(torch, device, one)
        except Failure as error:
            row["failed"] = str(error)
        rows.append(row)
        write(row)
    return rows, 0


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FOLDER", required=True)
    parser.add_argument("--seconds", type=float, default=50.0, metavar="X", help="after which no part is begun, default 50")
    parser.add_argument("--smoke", action="store_true", help="tiny, on the CPU, no measurement")
    options = parser.parse_args(argv)
    if not 0.0 < options.seconds <= 3600.0:
        parser.error(f"--seconds {options.seconds}: must be in (0, 3600]")
    try:
        import torch
    except ImportError:
        parser.error("needs a Python with torch")
    if not options.smoke and not torch.cuda.is_available():
        parser.error("torch sees no GPU; --smoke tries everything on the CPU")
    return options, torch


def main(argv):
    options, torch = parse(argv)
    device, sizes = ("cpu", SMOKE) if options.smoke else ("cuda", FULL)
    torch.manual_seed(1)
    if device != "cpu":
        warm_up(torch)
    machine = facts(torch, device)
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "where.jsonl"), "w", encoding="utf-8") as file:
        def write(row):
            file.write(json.dumps(row) + "\n")
            file.flush()

        write(machine)
        rows, not_reached = measure(torch, device, sizes, options.seconds, write)
    with open(os.path.join(options.output, "where.md"), "w", encoding="utf-8") as file:
        file.write(tables(machine, rows, not_reached))
    num_failed = sum("failed" in row for row in rows)
    say(f"{len(rows) - num_failed} parts timed, {num_failed} failed, {not_reached} not reached: {options.output}/where.md")
    return 0 if num_failed < len(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
