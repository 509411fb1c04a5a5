"""Types of command-line arguments."""

import argparse


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, must be at least 1")
    return value


def ascending(text: str) -> list[int]:
    """Integers of at least 1 by commas, ascending."""
    values = [positive(part) for part in text.split(",")]
    if values != sorted(set(values)):
        raise argparse.ArgumentTypeError(f"{text}, must be ascending, each once")
    return values
