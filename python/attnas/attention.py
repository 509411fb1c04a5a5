"""Attention and other mixers by their names, for transformers of one's own."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Sequence

from attnas.analysis import digest, packages

if _missing := packages.missing("torch"):
    raise ImportError(f"attnas.Attention: {_missing}")

import torch

from attnas import model, plugin_modules
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
                 semantics: str = "corrected", seed: int | None = None,
                 plugins: Sequence[str] = ()):
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
        @param plugins    FILE.so each, with FILE.py beside it: what the name has of plug-ins.
        @throws InputError  where there is no such mechanism, or no nas-model, which reads names.
        """
        plugin_modules.load(plugins)
        genes = _genes(name, width, heads, context, semantics, ("attn",), tuple(plugins))
        _require_context(name, genes, context)
        with _drawn_by(seed):
            super().__init__(width, context=context or 0, semantics=semantics, **genes["attn"])
        self.name = name

    def extra_repr(self) -> str:
        return self.name


def Layer(name: str, width: int, heads: int, context: int | None = None, *,  # pylint: disable=C0103
          semantics: str = "corrected", seed: int | None = None, layer: int = 0,
          plugins: Sequence[str] = ()) -> torch.nn.Module:
    """The mixer of a name, untrained: attention, recurrent, "gdn", "mixer=conv", or both
    kinds of heads, "pair(attn|ssd)"; of (B, T, D) to
    (B, T, D), with `state` as Attention. Arguments are those of Attention.

    @param layer  its place in the model, from 0: on it the random features of favor depend, and
        what patterns bigbird and lsh draw.
    @throws InputError  where layers of the name have several mixers, or none.
    """
    plugin_modules.load(plugins)
    genes = _genes(name, width, heads, context, semantics, tuple(model.MIXERS), tuple(plugins))
    _require_context(name, genes, context)
    (mixer, own), = genes.items()
    with _drawn_by(seed):
        if mixer == "attn":
            return model.Attention(width, context=context or 0, semantics=semantics, layer=layer,
                                   **own)
        if mixer == "conv":
            return model.GatedConvolution(width, **own)
        if mixer == "pair":
            return model.Pair(width, context=context or 0, semantics=semantics, layer=layer, **own)
        return model.Recurrent(width, layer=layer, **own)


def _drawn_by(seed: int | None) -> contextlib.ExitStack:
    """Within it torch's generator begins by a seed, where there is one."""
    stack = contextlib.ExitStack()
    if seed is not None:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.default_generator.manual_seed(seed)
    return stack


def _require_context(name: str, genes: dict, context: int | None) -> None:
    for gene, option in (("similarity", "cosine"), ("temperature", "log_length"),
                         ("decay", "scalar")):
        attention = genes.get("attn") or genes.get("pair", {}).get("parts", [{}])[0]
        if context is None and attention.get(gene) == option:
            raise InputError(f"{name}: {gene} {option} needs a context")


@functools.lru_cache(maxsize=None)
def _genes(name: str, width: int, heads: int, context: int | None, semantics: str,
           mixers: tuple[str, ...], plugins: tuple[str, ...]) -> dict[str, dict]:
    """The arguments of the one mixer beside sizes, by its kind, one of `mixers`."""
    program = digest.program("nas-model")
    if program is None:
        raise InputError("there is no nas-model on PATH, beside this package's installation or in "
                         "build/*/bin of the current folder; build attnas, or add its folder to "
                         "PATH")
    command = [
        program, "genes", name, f"--width={width}", f"--heads={heads}", f"--semantics={semantics}"]
    if context is not None:
        command.append(f"--context={context}")
    command += [f"--plugin={file}" for file in plugins]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        what = done.stderr.removeprefix("nas-model: ").strip()
        raise (InputError if done.returncode == 2 else Error)(
            what or f"nas-model ended with exit code {done.returncode}")
    layers = []
    for layer in json.loads(done.stdout):
        if layer["mixer"] in mixers and layer["mixer"] != "none":
            genes = {gene: value for gene, value in layer.items()
                     if gene not in ("mixer", "ffn", "hidden")}
            if (found := {layer["mixer"]: genes}) not in layers:
                layers.append(found)
    what = "attention" if mixers == ("attn",) else "mixer"
    if not layers:
        raise InputError(f"{name}: no layer has {'a ' * (what == 'mixer')}{what}, must have one"
                         + "; attnas.Layer makes the other mixers" * (what == "attention"))
    if len(layers) != 1:
        raise InputError(f"{name}: its layers have {len(layers)} kinds of {what}, must have one")
    return layers[0]
