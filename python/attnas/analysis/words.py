"""Numbers, times and lists for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "\u2212"
NOTHING = "\u2013"


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def count(value: float, most: int = 3) -> str:
    """Three digits, or so many, and a prefix: 2.5 M; an exponent beyond these."""
    if abs(value) >= 999.5e15:
        return f"{value:.{most - 1}e}".replace("-", MINUS)
    prefixes = ["", " k", " M", " G", " T", " P"]
    while abs(value) >= 999.5 and len(prefixes) > 1:
        value /= 1000
        prefixes.pop(0)
    return f"{value:.{most}g}{prefixes[0]}".replace("-", MINUS)


def number(value: float | None) -> str:
    """Two decimals, three digits below 1, a prefix from 100,000 on; a dash where unknown."""
    if value is None or math.isnan(value):
        return NOTHING
    size = abs(value)
    if math.isinf(size):
        return "\u221e" if value > 0 else MINUS + "\u221e"
    if size >= 1e5:
        return count(value)
    if size >= 1000 and value == math.floor(value):
        written = f"{value:.0f}"
    elif size >= 0.9995 or size == 0.0:
        written = f"{value:.2f}"
    else:
        written = f"{value:#.3g}"
    return written.replace("-", MINUS)


def digits(value: float) -> str:
    """Three digits or one decimal; a letter from ten thousand on, an exponent beyond these; of a
    share near the whole, two digits of what is missing; a dash where unknown."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "\u221e" if value > 0 else "-\u221e"
    if abs(value) >= 999.5e12:
        return f"{value:.2e}"
    if 0.99 < value < 1.0:
        return f"{value:.{min(1 - math.floor(math.log10(1.0 - value)), 8)}f}"
    for least, size, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"),
                                (1e4, 1e3, "k"), (0.0, 1.0, "")):
        if abs(value) >= least:
            value /= size
            break
    return f"{value:.1f}{letter}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".") + letter


def signed(value: float) -> str:
    """A difference, with its sign."""
    return ("+" if value > 0 else "") + number(value)


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage, with an exponent where it is enormous."""
    form = f".{decimals}f" if abs(share) < 1e7 else ".2e"
    return f"{100 * share:{form}} %".replace("-", MINUS)


def p_value(p: float) -> str:
    """A p value with its relation: p = 0.03, p < 0.001."""
    return f"p {NOTHING}" if math.isnan(p) else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def p_column(p: float) -> str:
    """A p value in a table; a dash where there is none."""
    return "-" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def duration(seconds: float) -> str:
    """Seconds to days, the two largest units."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    s = round(seconds)
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60:02} s"
    if s < 86400:
        return f"{s // 3600} h {s % 3600 // 60:02} min"
    return f"{s // 86400} d {s % 86400 // 3600} h"


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """1 training, 2 trainings."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def listed(items: Sequence[str], most: int = 5) -> str:
    """a, b and c; what is beyond the most is counted."""
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"{len(items) - most} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def joined(items: Sequence[str]) -> str:
    """a, b and c, all of them; empty where there is none."""
    return listed(items, len(items)) if items else ""


def shortened(label: str, width: int) -> str:
    """At most `width` characters: a longer text ends in an ellipsis."""
    return label if len(label) <= width else label[: max(1, width - 1)] + "\u2026"


def range_text(low: float, high: float) -> str:
    """An interval in words."""
    return f"{number(low)} to {number(high)}"


def solved_text(count: int, of: int, low: float, high: float) -> str:
    """Of training runs that solve a task, with the interval of their share: 4 of 5 (0.28 to 0.99).
    """
    return f"{count} of {of} ({low:.2f} to {high:.2f})"


def rate_text(rate: float, at_end: bool) -> str:
    """A learning rate, marked where it is the lowest or the highest that was tried; a dash where it
    is nobody's own.
    """
    return NOTHING if math.isnan(rate) else f"{rate:g}" + " (end)" * at_end
