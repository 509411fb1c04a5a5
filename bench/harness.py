"""What the comparison side by side stands on: errors, command line, processes, files, statistics and drawing.

Standard library only.
"""

import array
import json
import math
import os
import platform
import random
import shlex
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DEFAULT_PROGRAMS = ("build/release/bin/training_step", "build/ci/bin/training_step")
MECHANISMS = (
    "dot|softmax|none|sqrt_d|bias|0.1",
    "dot|topk_quarter|none|sqrt_d|bias|0.1",
    "additive|softmax|none|sqrt_d|bias|0.1",
    "silu_dot|relu_norm|output_gate|sqrt_d|bias|0.1",
    "cosine|sigmoid_norm|normed_highway|sequence_mean|bias|0.1",
)
TOKEN_SEED = 20260101
# What a user's shell may hold and no competitor is to inherit.
CLEARED = ("GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_", "ATEN_", "DNNL_",
           "ONEDNN_", "TORCH_")
RESAMPLES = 5000
MAX_LOSS_DIFFERENCE = 0.02  # of the last loss, relative: seeds and dropout masks differ, the mathematics must not


class BadInput(Exception):
    """Text: what was given, and what is allowed."""


class Failure(Exception):
    """Of a competitor, or of the machine. Text: who, and `why` alone."""

    def __init__(self, text, why=None):
        super().__init__(text)
        self.why = why or text


# ---- Command line.

def num_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_in_range(name, value, low, high):
    if not low <= value <= high:
        raise BadInput(f"--{name} {value}: must be in [{low}, {high}]")


def split_list(name, text, default):
    items = [item.strip() for item in text.split(",")] if text is not None else list(default)
    repeated = sorted({item for item in items if items.count(item) > 1})
    if not all(items) or repeated:
        raise BadInput(f"--{name} '{text}': " + (f"'{repeated[0]}' is there twice" if repeated else "has an empty entry"))
    return items


def check_output(folder):
    """Found out now and not after the measurement."""
    existing = os.path.abspath(folder)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK | os.X_OK):
        raise BadInput(f"--output {folder}: {existing} must be a folder that can be written to")


def find_program(given):
    """The program training_step."""
    if given is not None:
        if not (os.path.isfile(given) and os.access(given, os.X_OK)):
            raise BadInput(f"--program {given}: must be an executable file, the program training_step")
        return os.path.abspath(given)
    for path in DEFAULT_PROGRAMS:
        if os.access(os.path.join(ROOT, path), os.X_OK):
            return os.path.join(ROOT, path)
    raise BadInput(f"no training_step at {' or '.join(DEFAULT_PROGRAMS)}: build it (bench/README.md) or give --program FILE")


def find_python(given, who, instead):
    """A Python that has torch and numpy, or BadInput that says who needs it, what each one tried lacks and what to do."""
    tried = []
    for candidate in [given] if given is not None else ["python3", "/usr/bin/python3"]:
        path = shutil.which(candidate)
        if path is None:
            tried.append(f"{candidate} is no program")
            continue
        code = ("import importlib.util as u, sys; "
                "print(' '.join(m for m in ('torch', 'numpy') if u.find_spec(m) is None)); sys.exit(sys.version_info < (3, 9))")
        probe = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False, timeout=60)
        if probe.returncode == 0 and not probe.stdout.strip():
            return path
        missing = " and ".join(probe.stdout.split())
        tried.append(f"{candidate} has no {missing}" if missing else f"{candidate} is no Python 3.9 or newer")
    raise BadInput(f"{who} needs a Python with torch and numpy: {'; '.join(tried)}. Install them (Debian: "
                   f"python3-torch), {instead}")


def shown_command(program, argv):
    """The command, without where things lie on this machine."""
    words = []
    for word in argv:
        option, equals, value = word.partition("=")
        path = value if equals and option.startswith("--") else word
        short = ".../" + os.path.basename(os.path.normpath(path)) if os.path.isabs(path) else path
        words.append(option + equals + short if path is value else short)
    return shlex.join([program, *words])


# ---- Processes and files.

def clean_environment():
    return {key: value for key, value in os.environ.items() if not key.startswith(CLEARED)}


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def read_json(text, who):
    try:
        return json.loads(last_line(text))
    except ValueError:
        raise Failure(f"{who} printed '{last_line(text)[:200]}' where one JSON object was expected") from None


def write_tokens(path, count, vocabulary):
    """Writes `count` int32 tokens, uniform over the vocabulary; a description of them."""
    source = random.Random(TOKEN_SEED)
    tokens = array.array("i", (source.randrange(vocabulary) for _ in range(count)))
    if sys.byteorder == "big":
        tokens.byteswap()
    with open(path, "wb") as file:
        tokens.tofile(file)
    return f"uniform over {vocabulary:,}, seed {TOKEN_SEED}, the same for every competitor"


def machine():
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), processor)
    except OSError:
        pass
    return {"processor": processor, "cores": num_cores(), "kernel": f"{platform.system()} {platform.release()}",
            "c_library": " ".join(platform.libc_ver()).strip() or "unknown"}


def write_results(folder, files):
    """All of them or none: each is written beside its place first."""
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as file:
            file.write(content)
    for name in files:
        os.replace(os.path.join(folder, name + ".new"), os.path.join(folder, name))


# ---- Statistics.

def bootstrap_interval(values):
    """95 % percentile interval of the median; None for fewer than two values. The same values give the same interval."""
    if len(values) < 2:
        return None
    source = random.Random(20260101)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]


def departure(ratio):
    """How far a ratio is from 1, alike on both sides: 0.8 and 1.25 both give 0.25."""
    return max(ratio, 1.0 / ratio) - 1.0


def is_unclear(ratio, interval, spread):
    """Whether a ratio is no claim: not beyond the A/A spread, or its interval holds 1."""
    return departure(ratio) <= spread or interval is None or interval[0] <= 1.0 <= interval[1]


# ---- Tables and pictures.

def cell(text):
    return str(text).replace("|", "\\|")


def megabytes(value):
    return "-" if value is None else f"{value / 1e6:,.0f}"


def tick_step(limit):
    """A step of 1, 2 or 5 times a power of ten that gives at most eight ticks up to the limit."""
    power = 10.0 ** math.floor(math.log10(limit / 8))
    return next(power * factor for factor in (1, 2, 5, 10) if limit / (power * factor) <= 8)


# Both themes are written out: a viewer without media queries shows the light one, on its own background.
STYLE = """
.paper { fill: #ffffff } .ink { fill: #1f2933 } .muted { fill: #5b6773 } .grid { stroke: #dfe5ea } .base { stroke: #c0392b }
.band { fill: #c0392b; fill-opacity: 0.12 } .whisker { stroke: #1f2933 } .under { stroke: #ffffff }
.halo { stroke: #ffffff; stroke-width: 4; stroke-linejoin: round; paint-order: stroke }
%s
@media (prefers-color-scheme: dark) {
.paper { fill: #14191f } .ink { fill: #e6ebf0 } .muted { fill: #a3afbb } .grid { stroke: #323c46 } .base { stroke: #ff8a7a }
.band { fill: #ff8a7a; fill-opacity: 0.16 } .whisker { stroke: #e6ebf0 } .under, .halo { stroke: #14191f }
%s
}
"""


def colours(competitors):
    """The rules of both themes for STYLE; competitors: key -> (name, colour in light, colour in dark)."""
    return tuple(" ".join(f".{key} {{ fill: {entry[theme]} }}" for key, entry in competitors.items()) for theme in (1, 2))


def svg(width, height, competitors, body):
    """A picture of the house: its head, its themes, its paper."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="13">',
        f"<style>{STYLE % colours(competitors)}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *body, "</svg>", ""])
