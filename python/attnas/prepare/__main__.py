"""python3 -m attnas.prepare, and attnas prepare: see --help."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attnas.command_line import Parser, printable, run_main
from attnas.errors import InputError

from . import data_sets, folders, texts
from .units import UNITS


def _arguments(words: list[str], program: str) -> argparse.Namespace:
    of_programs = words[:1] == ["corpus"]
    parser = Parser(
        prog=f"{program} corpus" if of_programs else program,
        description="Prepares a known corpus, or text_file, once, and prints its folder."
        if of_programs else
        "Turns texts into token ids: writes the ids of train, valid and test, the tokenizer, and "
        "card.json, which says what they are. corpus: ids reads such a folder. One TEXT is cut "
        "into the splits; three are train, valid and test.")
    if of_programs:
        parser.add_argument("name", metavar="NAME", help="key of the corpus")
        parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON")
        parser.add_argument("--context", type=int, required=True, metavar="L",
                            help="tokens of a window")
        parser.add_argument("--data", type=Path, metavar="FOLDER", help="of the data sets")
        parser.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                            help="keeps results; .prepared of the data folder by default")
        return parser.parse_args(words[1:])
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="file of UTF-8")
    parser.add_argument("--tokenizer", required=True, metavar="|".join(UNITS) + "|FILE",
                        help="what a token is; FILE: a published one, such as tokenizer.json")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--vocabulary", type=int, default=10000, metavar="N",
                        help="ids, special tokens included, of what is learned (10000); 0: all")
    parser.add_argument("--coverage", type=float, default=1.0, metavar="SHARE",
                        help="of char: of the text, by the characters that have an id")
    parser.add_argument("--alphabet", default=texts.OF_TEXTS["alphabet"], metavar="LETTERS",
                        help="of residue")
    parser.add_argument("--pretokens", choices=("gpt2", "cl100k"), default="gpt2", help="of bpe")
    parser.add_argument("--valid-share", type=float, default=0.1, metavar="SHARE")
    parser.add_argument("--test-share", type=float, default=0.1, metavar="SHARE")
    return parser.parse_args(words)


def _require_ranges(given: argparse.Namespace) -> None:
    if not 0 < given.coverage <= 1:
        raise InputError(f"--coverage = {given.coverage}, must be in (0, 1]")
    for name in ("valid_share", "test_share"):
        if not 0 < (share := getattr(given, name)) < 1:
            raise InputError(f"--{name.replace('_', '-')} = {share}, must be in (0, 1)")
    if given.vocabulary < 0:
        raise InputError(f"--vocabulary = {given.vocabulary}, must be at least 0")


def _prepare(given: argparse.Namespace) -> None:
    _require_ranges(given)
    settings = {name: getattr(given, name) for name in ("vocabulary", "coverage", "alphabet",
                                                        "pretokens", "valid_share", "test_share")}
    card = folders.prepare(given.texts, given.tokenizer, settings, given.output)
    for warning in card["warnings"]:
        print(f"warning: {printable(warning)}", file=sys.stderr)
    print(f"{given.output}: {card['vocabulary']} {card['many']}; tokens of train, valid, test: "
          + ", ".join(map(str, card["tokens"].values())))
    for split, share in card["unknown_share"].items():
        if share > 0.05:
            print(f"warning: {100 * share:.2f} % of {split} are unknown tokens; "
                  "--tokenizer bpe knows all", file=sys.stderr)


def _corpus(given: argparse.Namespace) -> None:
    data = given.data or data_sets.default_folder()
    print(folders.prepare_corpus(given.name, given.settings, given.context, data, given.output))


def main(words: list[str], program: str = "attnas prepare") -> int:
    """Carries out a command line; returns the exit code."""
    given = _arguments(words, program)
    return run_main("attnas", lambda: (_corpus if words[:1] == ["corpus"] else _prepare)(given))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python3 -m attnas.prepare"))
