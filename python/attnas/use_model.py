"""nas-model generate, attention and evaluate --text: what an exported model makes of a text."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from attnas import command_line
from attnas.analysis import packages
from attnas.command_line import run_main
from attnas.errors import InputError

SENTENCE_TOKENS = 128  # the longest sentence whose map can be read
SPACE = " \t\n\v\f\r"
LIBRARY_TOKENS = 1024  # of a window of an imported model, whose context may be far longer
BATCH, BATCH_LOGITS = 16, 2**27
TEMPERATURE = 0.8  # of what is drawn


class Parser(command_line.Parser):
    """Of a command line whose errors are sentences."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"command line: {self.hinted(message)}")


def refuse(message: str) -> NoReturn:
    raise InputError(f"command line: {message}")


def load(folder: str, why: str) -> tuple[Any, Any, Any]:
    """A model of text, the form of its text, and model.py. @param why  others are refused."""
    if lacking := packages.missing("torch"):
        raise InputError(lacking)
    from attnas.analysis import model_forms
    model, config, module = model_forms.load(Path(folder))
    if config["text"] is None:
        raise InputError(f"{folder}: the tokens of this model are no text; {why}")
    try:
        form = module.Text if config["text"] else library_text(module)
        return model, config, form(folder, config)
    except (OSError, ValueError) as error:
        raise InputError(str(error)) from None


def library_text(module: Any) -> type:
    """What reads tokenizer.json of an imported model: the library that it was written for."""
    class LibraryText(module.Text):
        """Nothing stands before a text but what tokenizer.json says."""

        def __init__(self, folder: str, config: dict):
            if lacking := packages.missing("tokenizers"):
                raise InputError(lacking)
            import tokenizers
            file = Path(folder) / "tokenizer.json"
            if not file.is_file():
                raise InputError(f"{folder}: the model has no tokenizer.json: it takes ids")
            data = file.read_bytes()
            module.expect_digest(config, str(file), [data])
            try:
                self.tokens = tokenizers.Tokenizer.from_str(data.decode())
            except Exception as error:  # the library has no class of its own
                raise InputError(f"{file}: {error}") from None
            self.length = min(config["model"]["context"], LIBRARY_TOKENS)
            self.bytes = self.published = False
            self.never: list[int] = []

        def stream(self, text: bytes) -> list[int]:
            return self.tokens.encode(text.decode(errors="replace")).ids

        prompt = stream

        def text(self, ids: list[int]) -> str:
            return self.tokens.decode(ids, skip_special_tokens=False)

    return LibraryText


def choose(logits: Any, options: argparse.Namespace, random: Any) -> int:
    """A token: the largest logit, or drawn by softmax(logits / 0.8)."""
    if options.greedy:
        return int(logits.argmax())
    logits = logits.double()
    sums = ((logits - logits.max()) / TEMPERATURE).exp().cumsum(0)
    return int((sums[:-1] <= random.uniform() * sums[-1]).sum())


def continued(model: Any, ids: list[int], never: Sequence[int],
              options: argparse.Namespace) -> list[int]:
    """So many tokens more. A model of learned positions sees the last `context` tokens, any other
    all."""
    import torch

    from attnas.maps import Random
    random = Random(options.seed)
    seen = model.context if model.positions == "learned" else 0  # 0: all
    for _ in range(options.tokens):
        with torch.no_grad():
            logits = model(torch.tensor([ids[-seen:]]))[0, -1]
        if not logits.isfinite().all():
            raise InputError("a logit is infinite or no number: the weights are damaged, or of a "
                             "training run that diverged")
        logits[list(never)] = -math.inf
        ids = [*ids, choose(logits, options, random)]
    return ids


def check(options: argparse.Namespace) -> None:
    """What generate is asked for."""
    if options.tokens < 0:
        refuse(f"--tokens {options.tokens}, must be >= 0")
    if options.seed is not None and options.greedy:
        refuse("--seed draws, must be left out beside --greedy")
    options.seed = 1 if options.seed is None else options.seed
    if not 0 <= options.seed < 2**63:
        refuse(f"--seed {options.seed}, must be >= 0")


def generate(options: argparse.Namespace) -> None:
    """Prints a prompt and what follows."""
    check(options)
    model, config, form = load(options.folder,
                               "nobody could read them; nas-model evaluate scores it")
    ids = form.prompt(os.fsencode(options.prompt))
    if not ids:
        refuse("--prompt needs a word: the model begins inside a line")
    if unknown := ids.count(config["text"].get("unknown")):
        print(f"note: the model does not know {unknown} of the prompt's words", file=sys.stderr)
    made = continued(model, ids, form.never, options)
    text, head = form.text(made).strip(SPACE), form.text(ids).strip(SPACE)
    # Of the prompt its own words, also those that the model does not know.
    if options.prompt and text.startswith(head):
        text = options.prompt.strip(SPACE) + text[len(head):]
    print(text, flush=True)
    written = form.text(made[len(ids):])
    if ends := written[len(written.rstrip(SPACE)):].count("\n"):
        print(f"note: ends of a line that follow the text: {ends}", file=sys.stderr)


def attention(options: argparse.Namespace) -> None:
    """Writes attention.json of sentences that a person has given: no statistics, the maps alone."""
    from attnas import analyse
    if not options.text:
        refuse("attention needs --text, a sentence")
    if lacking := packages.missing("numpy", "scipy"):  # which the page stands on
        raise InputError(lacking)
    model, config, form = load(options.folder, "nas-analyse looks into it")
    most = min(SENTENCE_TOKENS, model.context) if model.positions == "learned" else SENTENCE_TOKENS
    sentences = []
    for sentence in options.text:
        ids = form.prompt(os.fsencode(sentence))
        if not ids:
            raise InputError("--text needs a word: the model begins inside a line")
        if len(ids) > most:
            raise InputError(f"--text has {len(ids)} tokens, must have at most {most}")
        sentences.append(analyse.sentence_json(model, form, ids))
    if not sentences[0]["layers"]:
        raise InputError(f"{options.folder}: no layer of attention, or recurrent, has maps")
    folder = Path(options.output or options.folder.rstrip("/") + "-attention")
    analyse.write_json(folder, {
        "schema": analyse.SCHEMA, "mechanism": config["mechanism"],
        "candidate": config["candidate"],
        "weights": f"of {options.folder}", "model": {},
        "layers": [*map(analyse.layer_json, itertools.count(), config["layers"])],
        "sentences": sentences})
    print(f"written to {folder / 'attention.json'}", flush=True)
    analyse.write_page(folder)


def evaluate(options: argparse.Namespace) -> None:
    """Prints how well a model predicts a text."""
    if len(options.text) != 1:
        refuse("--text is given twice, must be one file")
    model, config, form = load(options.folder,
                               "--split test scores it on the task that it was trained on")
    import torch
    from torch.nn import functional as F
    text = Path(options.text[0])
    try:
        inputs, targets = form.windows(text.read_bytes())
    except OSError as error:
        raise InputError(f"{text}: cannot be read: {error.strerror}") from None
    if not len(inputs):
        longer = (f"no line of more than {form.length} words (the context), which layout published "
                  "needs")
        raise InputError(f"{text}: has {longer if form.published else 'no text'}")
    nll, correct, asked = 0.0, 0, targets >= 0
    logits_of_row = inputs.shape[1] * config["model"]["vocabulary"]
    batch = min(BATCH, max(1, BATCH_LOGITS // logits_of_row))
    for first in range(0, len(inputs), batch):
        part = slice(first, first + batch)
        with torch.no_grad():
            logits = model(inputs[part])
        nll += F.cross_entropy(logits.flatten(0, 1), targets[part].flatten(),
                               reduction="none").double().sum().item()
        correct += int((logits.argmax(-1) == targets[part])[asked[part]].sum())
    tokens = int(asked.sum())
    if not nll / tokens < math.log(sys.float_info.max):
        raise InputError(f"{options.folder}: nll is {nll / tokens:g} nats per token, whose "
                         "perplexity is not finite: the weights are "
                         "damaged, or of a training run that diverged")
    print(f"perplexity  {math.exp(nll / tokens):.4f}\nnll         {nll / tokens:.9f} nats per "
          f"token\naccuracy    {100.0 * correct / tokens:.2f} %\ntokens      {tokens}")
    if (unknown := config["text"].get("unknown", -1)) >= 0:
        print(f"unknown     {100.0 * int((targets == unknown).sum()) / tokens:.2f} % of the tokens")


def body(words: list[str]) -> None:
    """A command of nas-model."""
    parser = Parser(prog="nas-model", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(required=True, parser_class=Parser)
    for carry_out in (generate, attention, evaluate):
        command = commands.add_parser(carry_out.__name__, allow_abbrev=False,
                                      description=carry_out.__doc__)
        command.set_defaults(carry_out=carry_out)
        command.add_argument("folder", metavar="FOLDER",
                             help="that nas-export --format pytorch has written")
        if carry_out is not generate:
            command.add_argument("--text", action="append", default=[],
                                 help="a file of text; attention: a sentence, "
                                 "may be given several times")
    generated, shown = commands.choices["generate"], commands.choices["attention"]
    shown.add_argument("-o", "--output", metavar="FOLDER",
                       help="of what is written (default: FOLDER-attention)")
    generated.add_argument("--prompt", default="", help="the beginning (default: that of a text)")
    generated.add_argument("--tokens", type=int, default=20, help="how many (default: 20)")
    generated.add_argument("--greedy", action="store_true", help="take the likeliest tokens")
    generated.add_argument("--seed", type=int, help="of what is drawn (default: 1)")
    options = parser.parse_args(words)
    options.carry_out(options)


if __name__ == "__main__":
    sys.exit(run_main("nas-model", lambda: body(sys.argv[1:])))
