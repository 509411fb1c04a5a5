"""Attention by its name, for transformers of one's own."""

from __future__ import annotations

import functools
import json
import subprocess

from attnas.analysis import digest, packages

if _missing := packages.missing("torch"):
    raise ImportError(f"attnas.Attention: {_missing}")

import torch

from attnas import model
from attnas.errors import Error, InputError


class Attention(model.Attention):
    """Causal attention of a mechanism by its name, untrained: a torch.nn.Module of (B, T, D) to
    (B, T, D), the same that an exported model has. docs/python.md has an example.

        y = attention(x)                    # what is added to the residual stream, of a normalised
        x y = attention(x, residual=h)        # gating highway reads the stream h, too; else it
        takes x state = {}                          # token by token, or several at a time: the same
        y y = attention(x[:, :1], state=state)
    """

    def __init__(self, name: str, width: int, heads: int, context: int | None = None, *,
                 semantics: str = "corrected", seed: int | None = None):
        """
        @param name       of six fields, "dot|sparsemax|none|fixed|bias|0.1", or layer by layer,
            "attn{pattern=window,window=64,position=rope}" or "mqa", or shorthand, "rope+sparsemax";
            what it says beside attention, as of the feed-forward layer, is read and left out.
            Layers must have one attention.
        @param width      D, a multiple of the heads.
        @param heads      of a mechanism that names no number.
        @param context    L, the longest sequence. Similarity cosine, temperature log_length and
            decay scalar begin by it and need it; a window that reaches so far hides nothing.
        @param semantics  how the paper's labels are read: corrected or published.
        @param seed       of the initial values; None: from torch's generator. Their distributions
            are those of the search, and torch's generator stays as it is where there is a seed.
        @throws InputError  where there is no such mechanism, or no nas-model, which reads names.
        """
        genes = dict(_genes(name, width, heads, context, semantics))
        if context is None:
            for gene, option in (("similarity", "cosine"), ("temperature", "log_length"),
                                 ("decay", "scalar")):
                if genes.get(gene) == option:
                    raise InputError(f"{name}: {gene} {option} needs a context")
        with torch.random.fork_rng(devices=[], enabled=seed is not None):
            if seed is not None:
                torch.default_generator.manual_seed(seed)
            super().__init__(width, context=context or 0, semantics=semantics, **genes)
        self.name = name

    def extra_repr(self) -> str:
        return self.name


@functools.lru_cache(maxsize=None)
def _genes(name: str, width: int, heads: int, context: int | None, semantics: str) -> tuple:
    """The arguments of model.Attention beside sizes, as pairs."""
    program = digest.program("nas-model")
    if program is None:
        raise InputError("there is no nas-model on PATH, beside this package's installation or in "
                         "build/*/bin of the current folder; build attnas, or add its folder to "
                         "PATH")
    command = [
        program, "genes", name, f"--width={width}", f"--heads={heads}", f"--semantics={semantics}"
    ]
    if context is not None:
        command.append(f"--context={context}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        what = done.stderr.removeprefix("nas-model: ").strip()
        raise (InputError if done.returncode == 2 else Error)(
            what or f"nas-model ended with exit code {done.returncode}")
    layers = []
    for layer in json.loads(done.stdout):
        if layer["mixer"] == "attn":
            genes = {
                gene: value for gene, value in layer.items()
                if gene not in ("mixer", "ffn", "hidden")
            }
            if genes not in layers:
                layers.append(genes)
    if not layers:
        raise InputError(f"{name}: no layer has attention, must have one: of mixer recurrent, conv "
                         "or none a whole model alone can be made, see nas-export --format pytorch")
    if len(layers) != 1:
        raise InputError(f"{name}: its layers have {len(layers)} kinds of attention, must have one")
    return tuple(layers[0].items())
