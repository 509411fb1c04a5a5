"""Types of command-line arguments."""

import argparse


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, must be at least 1")
    return value
