"""Recurrent blocks of a conversion where a decoder layer of transformers calls its attention, and
what blocks have learned.

A block begins with the weights of the layer whose place it takes: those of keys and values repeated
for each head, what decays does by 0.99, what erases or writes by 1/2; convolutions pass on the
newest token, gate times norm of outputs is 1, features are identities.

Letters: B batch, T tokens, D width, H heads.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from attnas import model_recurrent
from attnas.checkpoints import by_name, read_safetensors
from attnas.errors import InputError
from attnas.model import read_config
from attnas.placement import placed

# What a block is of the ways in which Recurrent can be.
BLOCKS = {"ret": {"decay": "fixed"}, "ssd": {"decay": "scalar"},
          "gdn": {"update": "delta", "decay": "scalar"},
          "gdn2": {"update": "delta2", "decay": "channel", "decay_form": "softplus"},
          "kda": {"update": "delta", "decay": "channel", "decay_form": "softplus"}, "lin": {},
          "near": {}}
KEPT, GATE_LOGIT = 0.99, 2.0  # alpha; where a gate has room to open and close


class Recurs(model_recurrent.Recurrent):
    """A recurrent layer with parameters of its own. What it keeps of a text is in the cache."""

    def __init__(self, config, teacher, kind, conv=0, gate=0, feature="identity", near=0):
        width, heads = config.hidden_size, config.num_attention_heads
        if gate > 1:
            raise ValueError(f"gate = {gate}, must be 0 or 1")
        rotates = kind in ("ret", "ssd", "near") and getattr(teacher, "use_rope", True)
        biases = {(True, True): "bias", (False, True): "no_bias", (True, False): "qkv"}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            super().__init__(
                width, heads, **BLOCKS[kind], conv=conv, feature=feature, near=near,
                head_width=teacher.head_dim,
                gating="sigmoid_gate" if gate else "none",
                bias=biases.get(tuple(part.bias is not None for part in (
                    teacher.q_proj, teacher.o_proj)), "none"),
                **({"position": "rope", "rope_base": _base(config)} if rotates else {}))
        self.begin(teacher)
        self.to(teacher.q_proj.weight)

    @torch.no_grad()
    def begin(self, teacher):
        """With the weights of a layer."""
        gated = hasattr(self, "head_gate")
        starts = {"decay_step_bias": math.log(1 / KEPT - 1), "head_gate.bias": GATE_LOGIT,
                  "near_logit": GATE_LOGIT,
                  "head_norm": 1 + math.exp(-GATE_LOGIT) if gated else 1.0}
        zero = ("decay.", "decay_up.", "decay_log_rate", "beta.", "erase.", "write.",
                "head_gate.weight")
        for name, parameter in self.named_parameters():
            part, _, kind = name.partition(".")
            if part.endswith("_conv"):
                parameter.zero_()[:, -1] = 1
            elif part.endswith("_proj"):
                own = getattr(getattr(teacher, "o_proj" if part == "out_proj" else part), kind)
                of_heads = own.unflatten(0, (-1, teacher.head_dim)) if part != "out_proj" else own
                parameter.copy_(of_heads.repeat_interleave(
                    len(parameter) // len(own), 0).reshape(parameter.shape))
            elif name.startswith(zero):
                parameter.zero_()
            for start in starts:
                if name.startswith(start):
                    parameter.fill_(starts[start])

    def no_token(self, x):
        """States before the first token."""
        of_values = self.head_width + int(self.sums)
        state = {"S": model_recurrent.wide(x).new_zeros(len(x), self.heads, self.features,
                                                        of_values)}
        state |= self.no_near(x) if self.near else {}
        for name in ("q_conv", "k_conv", "v_conv") if self.convolves else ():
            convolution = getattr(self, name)
            state[name] = x.new_zeros(len(x), convolution.taps - 1, convolution.channels)
        return state

    def passed(self, x, seen, held):
        """(B, T, D), what is added to the stream.

        @param seen  (B, T, S), which keys each token sees, the last T their own: none of padding,
            itself alone the first of a text; None: all.
        @param held  States, or None.
        """
        start = held.seen if held else 0
        state = held.state if held and held.state else self.no_token(x)
        state = {**state, "tokens": start}
        if seen is None:
            added = self(x, state=state)
        else:
            own = seen.diagonal(seen.shape[2] - x.shape[1], 1, 2)  # (B, T)
            first = own & (seen.sum(2) == 1)
            first[:, 0] &= start > 0
            if own.all() and not first.any():
                added = self(x, state=state)
            else:
                rows = [self.row(x[b:b + 1], own[b].tolist(), first[b].tolist(), start, {
                    name: each[b:b + 1] for name, each in state.items() if name != "tokens"})
                        for b in range(len(x))]
                added = torch.cat([row for row, _ in rows])
                state = {name: torch.cat([kept[name] for _, kept in rows])
                         for name in self.no_token(x)}
        if held:
            held.take_up(state, x.shape[1])
        return added

    def row(self, x, own, first, start, state):
        """One of the batch, (1, T, D), and its states: each text by itself, padding is left out."""
        parts, texts = [], itertools.accumulate(first, lambda a, b: a + b, initial=0)
        runs = itertools.groupby(range(len(own)), lambda t, of=[*texts][1:]: (own[t], of[t]))
        for (is_token, _), run in runs:
            places = [*run]
            part = x[:, places[0]:places[-1] + 1]
            if not is_token:
                parts.append(torch.zeros_like(part))
                continue
            if first[places[0]]:
                state = self.no_token(x)
            state = {**state, "tokens": start + places[0]}
            parts.append(self(part, state=state))
        return torch.cat(parts, 1), state


def _base(config) -> float:
    """Of the rotation."""
    rope = getattr(config, "rope_parameters", None) or {}
    return float(rope.get("rope_theta") or getattr(config, "rope_theta", 10000.0))


def learned(folder: str | Path) -> Callable[[int, str], dict[str, Tensor]]:
    """What blocks have learned: of a layer by its number and a block by its name the weights of the
    mixer, by their names, with the norm before it, `norm`, where that is known.

    @param folder  stage1/HASH/SEED of a run of nas-convert, or a model that nas-model place wrote.
    @throws InputError  where there are none; of what the function returns ValueError.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        if not folder.is_dir():
            raise InputError(f"{folder}: is no folder, must be stage1/HASH/SEED of a run, or a "
                             f"model that nas-model place wrote")

        def from_files(number: int, text: str) -> dict[str, Tensor]:
            file = folder / f"{number}.{text}.safetensors"
            if not file.is_file():
                raise ValueError(f"{file} is not there: the block has not learned in this layer")
            return {name.partition(".")[2]: _tensor(stored)
                    for name, stored in by_name(read_safetensors(file)).items() if name != "L1"}

        return from_files
    try:
        words = placed(read_config(folder)["placement"])
    except (KeyError, ValueError) as error:
        raise InputError(f"{folder}: must be a model that nas-model place wrote: {error}") from None
    tensors = by_name(read_safetensors(folder / "model.safetensors"))

    def from_model(number: int, text: str) -> dict[str, Tensor]:
        if words.get(number) != text:
            raise ValueError(f"is {words.get(number)} in {folder}, must be the same")
        head, found = f"layers.{number}.", {}
        for name, stored in tensors.items():
            part, _, rest = name.removeprefix(head).partition(".")
            if name.startswith(head) and part in ("recurrent", "attention"):
                found[rest] = _tensor(stored)
            elif name.startswith(head) and part in ("recurrent_norm", "attention_norm"):
                found["norm"] = _tensor(stored)
        return found

    return from_model


def _tensor(stored) -> Tensor:
    return torch.from_numpy(stored.values().copy())


@torch.no_grad()
def take(module: nn.Module, weights: dict[str, Tensor], norm: Tensor) -> None:
    """Gives a layer what its block has learned, in place of parts that it shares with the layer
    that it stands for. @param norm  the weight of the norm before it. @throws ValueError"""
    weights = dict(weights)
    before = weights.pop("norm", norm).to(norm)
    if before.shape != norm.shape or not torch.allclose(before, norm, rtol=1e-2, atol=1e-5):
        raise ValueError("the norm before it is another there: the model was trained as a whole, "
                         "open the folder that export.py --format huggingface makes of it")
    module = getattr(module, "recurrent", module)
    if not isinstance(module, Recurs):  # parts are those of the layer that it stands for
        for name, part in [*module.named_children()]:
            setattr(module, name, copy.deepcopy(part))
    for name, parameter in module.named_parameters():
        given, wanted = weights.pop(name.replace("o_proj", "out_proj"), None), [*parameter.shape]
        if name.startswith(("k_proj", "v_proj")) and hasattr(module, "groups"):
            wanted[0] = wanted[0] // module.groups * module.key_heads
        if given is None or [*given.shape] != wanted:
            raise ValueError(f"{name} has shape {given if given is None else [*given.shape]} "
                             f"there, must have {wanted}")
        parameter.data = given.to(parameter)
    if weights:
        raise ValueError(f"{next(iter(weights))} is there, which the layer has not")
    if hasattr(module, "groups"):
        module.groups = module.key_heads
