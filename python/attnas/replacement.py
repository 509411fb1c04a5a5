"""Attention layers of a transformers model in hand, replaced and put back.

    model = AutoModelForCausalLM.from_pretrained(folder)
    attnas.replace(model, {3: "window{64,4}", 5: "drop", 18: "full"})
    model.generate(...)                      # as before, with its masks and its cache

A replaced layer has the parameters of the one that it stands for, under the same names, so that a
checkpoint has what it had, and "full" puts the layer back. Recurrent layers, and what has learned,
have parameters of their own. docs/python.md has the words.

Letters: B batch, T tokens, S keys, D width, H heads, G heads of keys and values, d their width.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping, Sequence

from attnas.analysis import packages

if _missing := packages.missing("torch"):
    raise ImportError(f"attnas.replace: {_missing}")

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnas import model_attention, replaced_states
from attnas.errors import InputError

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "smollm3")
MASKS = ("sdpa", "eager")  # implementations of attention whose masks are read here
_OF_STATES = {"conv": (0, 4), "gate": (0, 1)}
# What a layer may become, and its sizes: least value, or all, and that of one that is not given.
WORDS = {"full": {}, "window": {"window": (1, 64), "globals": (0, 4), "kv_heads": (1, 0)},
         "heads": {"groups": (1, 1), "window": (1, 64), "globals": (0, 4)},
         "gqa": {"kv_heads": (1, 1)}, "local": {}, "drop": {}, "ret": {"gate": (0, 1)},
         "ssd": {"gate": (0, 1)}, "gdn": _OF_STATES, "gdn2": _OF_STATES, "kda": _OF_STATES,
         "lin": {"feature": (("hedgehog", "taylor2"), "hedgehog")},
         "near": {"feature": (("hedgehog", "taylor2"), "hedgehog"), "near": (1, 64)}}


def replace(model: nn.Module, layers: Mapping[int, str] | Sequence[str] | str,
            trained: str | os.PathLike | None = None) -> nn.Module:
    """Replaces the attention of some layers, in place.

    @param model   of transformers, of one of FAMILIES, or what it holds under `model`.
    @param layers  what each layer named becomes, by its number from 0, or a word for every layer,
        or a conversion's name, "full 2,5-7; window{64,4} 0-1,3-4". Words:
        "full" what it was; "window{64,4}", which sees the last 64 tokens and the first 4 of those
        that the full layer would, with sizes by name "window+window=64+globals=4" or in short
        "window=64+globals=4"; "gqa{1}", heads of keys and values each the mean of those it
        replaces, which a window may have, too: "window{64,4}+kv_heads=1"; "heads{1,64,4}", a
        window but for the heads of keys and values that the bits of 1 name, whose cache keeps all;
        "local", each token alone; "drop", nothing; "gdn{4,1}", "gdn2", "kda", "ssd{1}", "ret",
        "lin{hedgehog}", "near{hedgehog,64}", recurrent layers. These are names that a conversion
        gives its blocks, but for those that no layer here can be.
    @param trained  a folder of what all its blocks but "full" and "drop" have learned: that of a
        seed in a run of nas-convert, runs/x/stage1/HASH/0, or a model that nas-model place wrote;
        None: they begin with the weights of the layer.
    @return  the model.
    @throws InputError  where a layer, or a word, cannot be; then nothing was replaced.
    """
    config = model.config
    if config.model_type not in FAMILIES:
        raise InputError(f"model_type = {config.model_type}, must be one of {', '.join(FAMILIES)}")
    _require_masks(config)
    base = model
    while not hasattr(base, "layers") and hasattr(base, "model"):  # a head, or PEFT, around it
        base = base.model
    if not isinstance(getattr(base, "layers", None), nn.ModuleList):
        raise InputError(f"{type(model).__name__} has no layers, must be a decoder of transformers")
    learned = None if trained is None else replaced_states.learned(trained)
    made = []
    for number, word in _by_layer(layers, len(base.layers)).items():
        if isinstance(number, bool) or not isinstance(number, int) or not (
                0 <= number < len(base.layers)):
            raise InputError(f"layer {number!r}, must be in 0 to {len(base.layers) - 1}")
        layer = base.layers[number]
        teacher = getattr(layer.self_attn, "teacher", layer.self_attn)
        try:
            if not isinstance(word, str):
                raise ValueError("must be a word")
            made.append((layer, _attention(config, teacher, number, word)))
            if learned and made[-1][1] is not teacher and not isinstance(made[-1][1], Dropped):
                replaced_states.take(made[-1][1], learned(number, name_of(*parse(word))),
                                     layer.input_layernorm.weight)
        except ValueError as error:
            raise InputError(f"layer {number}: {word}: {error}") from None
    for layer, attention in made:
        attention.train(layer.training)
        layer.self_attn = attention
    return model


def _by_layer(layers, count: int) -> Mapping[int, str]:
    if isinstance(layers, str):
        from attnas.placement import placed
        return placed(layers)
    if isinstance(layers, Mapping):
        return layers
    if len(layers) != count:
        raise InputError(f"{len(layers)} words for {count} layers, must be as many, or a word by "
                         f"layer: {{3: \"window{{64,4}}\"}}")
    return dict(enumerate(layers))


def _require_masks(config) -> None:
    kind = getattr(config, "_attn_implementation", None) or "eager"
    if kind not in MASKS:
        raise InputError(f"attn_implementation = {kind}, must be {' or '.join(MASKS)}: its masks "
                         f"are not read by layers that were replaced")


def parse(word: str) -> tuple[str, dict[str, int]]:
    """A word as the kind of a layer and its sizes. @throws ValueError"""
    kind, *parts = word.split("+")
    short = re.fullmatch(r"(\w+)(?:=(.*)|\{(.*)\})", kind)  # window=64, or window{64,4}
    kind = short[1] if short else kind
    if kind == "share":
        raise ValueError("share reads keys of another layer, which no layer here is given: "
                         "nas-model place writes such a model")
    if kind not in WORDS:
        raise ValueError(f"{kind!r} is no kind of layer, must be one of {', '.join(WORDS)}")
    known = WORDS[kind]
    sizes = {name: usual for name, (_, usual) in known.items()}
    if short:
        given = (short[2] or short[3] or "").split(",")
        if len(given) > len(known):
            raise ValueError(f"{kind} has {len(known) or 'no'} sizes")
        parts = [*map("=".join, zip(known, given)), *parts]
    for part in parts:
        name, _, digits = part.partition("=")
        if name not in known:
            raise ValueError(f"{name!r} is no size of {kind}, known: {', '.join(known) or 'none'}")
        least = known[name][0]
        if isinstance(least, tuple):
            model_attention.require_known(name, digits.strip(), least)
            sizes[name] = digits.strip()
            continue
        if not digits.strip().isdecimal() or int(digits) < least:
            raise ValueError(f"{name} = {digits}, must be an integer >= {least}")
        sizes[name] = int(digits)
    return kind, sizes


def name_of(kind: str, sizes: dict) -> str:
    """As a conversion names a block: "gdn{4,1}"."""
    given = ",".join(str(size) for name, size in sizes.items()
                     if name != "kv_heads" or kind == "gqa" or size)
    return f"{kind}{{{given}}}" if given else kind


def _attention(config, teacher: nn.Module, number: int, word: str) -> nn.Module:
    kind, sizes = parse(word)
    if kind == "full":
        return teacher
    own = config.sliding_window if config.model_type == "mistral" else getattr(
        teacher, "sliding_window", None)
    if kind == "heads" and own:
        raise ValueError(f"the layer has a window of {own} already, must have none")
    if kind == "window" and own and (sizes["globals"] or sizes["window"] > own):
        raise ValueError(f"the layer has a window of {own} already and keeps no other token, must "
                         f"have globals = 0, window <= {own}")
    if kind in replaced_states.BLOCKS:
        sizes["kind"] = kind
    class_ = {"local": Local, "drop": Dropped}.get(kind, Recurrent if "kind" in sizes else Replaced)
    made = class_(config, teacher, number, **sizes)
    made.__class__ = _of(class_, type(teacher))
    return made


@functools.lru_cache(maxsize=None)
def _of(class_: type, teacher: type) -> type:
    """A class that transformers takes for the one it knows, whose outputs it records."""
    return type(class_.__name__ + teacher.__name__, (class_, teacher), {})


def _take_over(module: nn.Module, config, teacher: nn.Module, number: int) -> None:
    """Parts, hooks and numbers of the layer that is replaced, which is no part of the module: its
    parameters are, under their names."""
    for name, part in teacher.named_children():
        setattr(module, name, part)
    _stand_for(module, config, teacher, number)


def _stand_for(module: nn.Module, config, teacher: nn.Module, number: int) -> None:
    module.__dict__.update(teacher=teacher, config=config, layer_idx=number,
                           head_dim=teacher.head_dim, scaling=teacher.scaling, is_causal=True)
    module.__dict__.update((name, hooks) for name, hooks in teacher.__dict__.items()
                           if name.startswith("_forward_"))


class Replaced(model_attention.Attention):
    """attnas's attention where a decoder layer of transformers calls its own."""

    def __init__(self, config, teacher, number, window=0, globals=0, kv_heads=0, groups=0):
        d, width = teacher.head_dim, config.hidden_size
        heads, key_heads = config.num_attention_heads, config.num_key_value_heads
        if key_heads % (kv_heads or key_heads):
            raise ValueError(f"kv_heads = {kv_heads}, must divide the {key_heads} heads of keys "
                             f"and values")
        if groups >> key_heads:
            raise ValueError(f"groups = {groups}, must be below 2^{key_heads}, a bit for each head "
                             f"of keys and values")
        if abs(teacher.scaling * d**0.5 - 1) > 1e-6:
            raise ValueError(f"its scores are divided by {1 / teacher.scaling:g}, must be by the "
                             f"root of {d}")
        rotates = bool(getattr(teacher, "use_rope", True))
        with torch.random.fork_rng(devices=[]):  # initial values are not kept
            super().__init__(
                width, heads, 0, head_width=d, kv_heads=kv_heads or key_heads,
                window=window or 1, globals=globals, full_groups=groups,
                pattern="window" if window else "full", position="rope" if rotates else "none",
                attention_dropout=config.attention_dropout)
        del self.out_proj
        self.groups = key_heads  # of the teacher
        _take_over(self, config, teacher, number)

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None, cache=None,
                past_key_values=None, cache_position=None, **_):
        """As of the layer that is replaced. @param cache  which earlier versions call
        past_key_values, and then give cache_position.

        @return  what is added to the stream, (B, T, D), and the weights where attention is eager.
        """
        _require_masks(self.config)
        cache, x = past_key_values if cache is None else cache, hidden_states
        q, k, v = self.by_head(self.q_proj(x), self.heads), *(
            self.averaged(self.by_head(projected, self.groups))
            for projected in (self.k_proj(x), self.v_proj(x)))
        q, k = self.q_norm(q), self.k_norm(k)
        if self.position == "rope":
            if position_embeddings is None:
                raise InputError("position_embeddings = None, must be cosines and sines, as "
                                 "transformers gives them from 4.48 on")
            q, k = (_turned(vectors, *position_embeddings) for vectors in (q, k))
        kept, start = None, None
        if cache is not None:
            start = _fixed_start(cache, self.layer_idx, k)
            if start is None and self.pattern == "window" and not self.full_heads:
                kept = _window_keys(cache, self.layer_idx, self.window, self.globals)
            k, v = cache.update(k, v, self.layer_idx, *_places(cache_position))
        k, v = self.for_each_query_head(k), self.for_each_query_head(v)
        queries, keys = q.shape[2], k.shape[2]
        places = torch.arange(keys, device=x.device)
        if kept is not None:
            places, start = kept.places(keys, x.device), kept.seen - queries
        elif start is None:  # what grows ends with the last query
            start = keys - queries
        distances = (torch.arange(queries, device=x.device) + start).unsqueeze(1) - places
        seen, bias, first = _read(attention_mask, None if kept is None else places)
        # places as from the first token that a query sees: padding may be before it
        visible = model_attention.PATTERNS[self.pattern](self, k, distances, places - first)
        visible = visible if seen is None else visible & seen[..., :keys]
        # a query of padding sees itself, since a mean of nothing is no number
        visible = visible | ((distances == 0) & ~visible.any(-1, keepdim=True))
        if kept is not None:
            kept.forget(first)
        dropout = self.attention_dropout if self.training else 0.0
        if self.config._attn_implementation == "sdpa":  # the same without a map of scores
            hidden = visible if bias is None else bias[..., :keys].masked_fill(~visible, -math.inf)
            mixed = F.scaled_dot_product_attention(q, k, v, hidden, dropout)
            return self.o_proj(mixed.transpose(1, 2).flatten(2)), None
        scores = self.scores(q, k, x, places, distances, visible, None)
        if bias is not None:
            scores = scores + bias[..., :keys]
        weights = model_attention.NORMALIZATIONS[self.normalization](self, scores, visible).to(v)
        mixed = F.dropout(weights, dropout) @ v
        return self.o_proj(mixed.transpose(1, 2).flatten(2)), weights

    def averaged(self, vectors: Tensor) -> Tensor:
        """Heads (B, G, T, d) as so many fewer, each the mean of neighbours."""
        if self.groups == self.key_heads:
            return vectors
        return vectors.unflatten(1, (self.key_heads, -1)).mean(2)


def _read(mask, places):
    """What a mask of transformers, (B, 1, T, S), says of the keys at some places: whether a query
    sees them, what is added to scores, and the first key that each query sees, (B, 1, T, 1).

    @param places  (S) or (B, 1, 1, S); None: all.
    """
    if mask is None:
        return None, None, 0
    if not isinstance(mask, Tensor) or mask.dim() != 4:
        raise InputError(f"attention_mask of a layer is a {type(mask).__name__} of shape "
                         f"{tuple(getattr(mask, 'shape', ()))}, must be (B, 1, T, S)")
    bias = None if mask.dtype == torch.bool else mask
    seen = mask if bias is None else mask > torch.finfo(mask.dtype).min / 2
    first = seen.int().argmax(-1, keepdim=True)
    if places is not None and places.dim() == 4:
        places = places.expand(*seen.shape[:3], -1)
        seen, bias = (each if each is None else each.take_along_dim(places, -1)
                      for each in (seen, bias))
    return seen, bias, first


def _turned(vectors: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Entries m and m + d / 2 of (B, heads, T, d), turned by the model's own angles (B, T, d)."""
    if cosines.shape[-1] != vectors.shape[-1]:
        raise InputError(f"{cosines.shape[-1]} entries of a head are rotated, must be all "
                         f"{vectors.shape[-1]}")
    first, second = vectors.chunk(2, -1)
    return vectors * cosines.unsqueeze(1) + torch.cat([-second, first], -1) * sines.unsqueeze(1)


def _fixed_start(cache, number: int, keys: Tensor):
    """Tokens that a cache of fixed size holds already, which its keys do not end with; None of a
    cache that grows."""
    layers = getattr(cache, "layers", None)
    if layers is None:
        raise InputError(f"cache is {type(cache).__name__}, must be a Cache of transformers with "
                         f"layers")
    layer = layers[number] if number < len(layers) else None
    held = getattr(layer, "keys", None)
    if isinstance(held, Tensor) and held.numel() and (held.shape[1], held.shape[3]) != (
            keys.shape[1], keys.shape[3]):
        raise InputError(f"layer {number}: cache has {held.shape[1]} heads of {held.shape[3]} "
                         f"entries, must have {keys.shape[1]} of {keys.shape[3]}: give a new one")
    if getattr(layer, "max_cache_len", None) is None:
        return None
    if getattr(layer, "is_sliding", False):
        raise InputError(f"layer {number}: cache is of fixed size with a window, must be a "
                         f"DynamicCache")
    return layer.get_seq_length() + 0  # a tensor that the cache adds to


class WindowKeys:
    """A layer of a cache that grows, which keeps what a window will see: the first tokens, and the
    last. transformers is told the length of all."""

    is_croppable = False

    def __init__(self, window: int, globals: int):
        super().__init__()
        self.last, self.globals = window - 1, globals
        self.reset()

    def reset(self):
        super().reset()
        self.seen, self.first = 0, None  # (B, 1, 1, 1), once tokens were forgotten

    def update(self, keys, values, *_, **__):
        """Keys and values that are kept, and those given behind them."""
        self.seen += keys.shape[2]
        return super().update(keys, values)

    def places(self, keys: int, device) -> Tensor:
        """Of the keys that update() gave, (S), or (B, 1, 1, S) where some are forgotten."""
        if self.first is None:
            return torch.arange(keys, device=device)
        first = self.first.to(device) + torch.arange(self.globals, device=device)
        last = torch.arange(self.seen - keys + self.globals, self.seen, device=device)
        return torch.cat([first, last.expand(*first.shape[:3], -1)], -1)

    def forget(self, first) -> None:
        """Forgets what no later query sees. @param first  0, or of each query, (B, 1, T, 1)."""
        if self.first is None:
            first = first[:, :, -1:] if isinstance(first, Tensor) else torch.zeros(
                len(self.keys), 1, 1, 1, dtype=torch.long)
            if self.keys.shape[2] - self.last <= int(first.max()) + self.globals:
                return
            self.first = first.to(self.keys.device)
            places = self.first + torch.arange(self.globals, device=self.first.device)
            places = places.transpose(2, 3)  # (B, 1, s, 1)
            first_keys, first_values = (each.take_along_dim(places, 2)
                                        for each in (self.keys, self.values))
        else:
            first_keys, first_values = (each[:, :, :self.globals]
                                        for each in (self.keys, self.values))
        self.keys, self.values = (
            torch.cat([each, whole[:, :, whole.shape[2] - self.last:]], 2)
            for each, whole in ((first_keys, self.keys), (first_values, self.values)))

    def get_seq_length(self, *_):
        return self.seen

    def get_mask_sizes(self, query, *_):
        return self.seen + int(getattr(query, "shape", (query,))[0]), 0

    def crop(self, tokens):
        if tokens:
            raise InputError("cache: tokens cannot be taken back from a layer that keeps a window")

    def _choose(self, choose):
        self.keys, self.values, self.first = (each if each is None else choose(each)
                                              for each in (self.keys, self.values, self.first))

    def reorder_cache(self, beam_idx):
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats):
        self._choose(lambda each: each.repeat_interleave(repeats, 0))

    def batch_select_indices(self, indices):
        self._choose(lambda each: each[indices.to(each.device)])


def _window_keys(cache, number: int, window: int, globals: int):
    """The layer of a cache that keeps a window; None where it is of a kind that keeps all, or holds
    tokens already."""
    layers, kind = cache.layers, getattr(cache, "layer_class_to_replicate", None)
    while kind is not None and len(layers) <= number:
        layers.append(kind())
    held = layers[number]
    if type(held).__name__ == "DynamicLayer" and not held.get_seq_length():
        layers[number] = held = _of(WindowKeys, type(held))(window, globals)
    if not isinstance(held, WindowKeys):
        return None
    if (held.last, held.globals) != (window - 1, globals):
        raise InputError(f"layer {number}: cache keeps the last {held.last + 1} and the first "
                         f"{held.globals} tokens, must keep {window} and {globals}: give a new one")
    return held


class States(WindowKeys):
    """What a recurrent layer keeps of all tokens, in float32 at least."""

    def __init__(self):
        super().__init__(1, 0)

    def reset(self):
        super().reset()
        self.state = {}

    def take_up(self, state, tokens: int) -> None:
        self.state = {name: each for name, each in state.items() if name != "tokens"}
        self.seen += tokens

    def _choose(self, choose):
        self.state = {name: choose(each) for name, each in self.state.items()}


def _states(cache, number: int):
    """The layer of a cache that keeps states; None: there is no cache."""
    if cache is None:
        return None
    layers, kind = getattr(cache, "layers", ()), getattr(cache, "layer_class_to_replicate", None)
    while kind is not None and len(layers) <= number:
        layers.append(kind())
    held = layers[number] if number < len(layers) else None
    growing = next((each for each in type(held).__mro__ if each.__name__ == "DynamicLayer"), None)
    if growing and not isinstance(held, WindowKeys) and not held.get_seq_length():
        layers[number] = held = _of(States, growing)()
    if not isinstance(held, States):
        raise InputError(f"layer {number}: cache is a {type(held).__name__} there, must be a new "
                         f"DynamicCache")
    return held


def _places(cache_position):
    """What earlier versions of transformers tell a cache."""
    return () if cache_position is None else ({"cache_position": cache_position}, )


def _count_tokens(number: int, x: Tensor, cache=None, past_key_values=None, cache_position=None,
                  **_) -> None:
    """Counts tokens in the cache, whose length positions and masks are made of: one number each in
    place of keys and values."""
    cache = past_key_values if cache is None else cache
    if cache is not None:
        mark = x.new_ones(x.shape[0], 1, x.shape[1], 1)
        _fixed_start(cache, number, mark)
        cache.update(mark, mark, number, *_places(cache_position))


class Local(nn.Module):
    """W_o R W_v x, each token alone; R repeats heads of values."""

    def __init__(self, config, teacher, number):
        super().__init__()
        _take_over(self, config, teacher, number)

    def forward(self, hidden_states, **others):
        """As of Replaced; there are no weights."""
        _count_tokens(self.layer_idx, hidden_states, **others)
        v = self.v_proj(hidden_states).unflatten(-1, (-1, self.head_dim))
        repeats = self.config.num_attention_heads // self.config.num_key_value_heads
        return self.o_proj(v.repeat_interleave(repeats, -2).flatten(-2)), None


class Dropped(nn.Module):
    """0; parameters that a checkpoint has are kept."""

    def __init__(self, config, teacher, number):
        super().__init__()
        _take_over(self, config, teacher, number)

    def forward(self, hidden_states, **others):
        """As of Replaced; there are no weights."""
        _count_tokens(self.layer_idx, hidden_states, **others)
        return torch.zeros_like(hidden_states), None


class Recurrent(nn.Module):
    """A recurrent layer of attnas, whose parameters are its own."""

    def __init__(self, config, teacher, number, **sizes):
        super().__init__()
        self.recurrent = replaced_states.Recurs(config, teacher, **sizes)
        _stand_for(self, config, teacher, number)

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None, cache=None,
                past_key_values=None, **_):
        """As of Replaced; there are no weights."""
        _require_masks(self.config)
        held = _states(past_key_values if cache is None else cache, self.layer_idx)
        seen = _read(attention_mask, None)[0]
        seen = None if seen is None else seen[:, 0]
        return self.recurrent.passed(hidden_states, seen, held), None
