"""A transformer language model of any attention mechanism that attnas searches, in plain PyTorch.

Needs Python 3.9 and torch 1.13, or later ones, and the files beside it: config.json says what the
model is made of, model.safetensors holds its weights, vocabulary.txt its words.

    python model.py FOLDER --text FILE                         # perplexity of a text
    python model.py FOLDER --generate "a prompt" --tokens 20   # what is likeliest to follow

    from model import Attention, load
    logits = load("FOLDER")(tokens)                            # (B, T) ids to (B, T, V)
    layer = Attention(256, heads=4, context=512, position="rope")  # for a model of your own

Letters: B batch, T tokens, D width, H heads, G heads of keys and values, d = D / H, L context;
scores s_ij of query i and key j.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

if __package__:
    from .model_attention import (RmsNorm, ShortConvolution, Smear, integer, linear,
                                  require_in_range, require_known, so_far, wide)
    from .model_heads import Attention
    from .model_recurrent import Pair, Recurrent
else:  # in the folder of this file
    from model_attention import (RmsNorm, ShortConvolution, Smear, integer, linear,
                                 require_in_range, require_known, so_far, wide)
    from model_heads import Attention
    from model_recurrent import Pair, Recurrent


class FeedForward(nn.Module):
    """gelu: W_2 gelu(W_1 x + b_1) + b_2, gelu_tanh by its tanh form;  relu2: W_2 max(W_1 x + b_1,
    0)^2 + b_2;  swiglu: W_2 (silu(W_g x) * W_1 x), swiglu_bias with biases. Dropout before W_2."""

    KINDS = ("gelu", "gelu_tanh", "relu2", "swiglu", "swiglu_bias")

    def __init__(self, kind, width, hidden, dropout):
        super().__init__()
        require_known("ffn", kind, self.KINDS)
        self.kind, self.dropout = kind, nn.Dropout(dropout)
        bias = kind != "swiglu"
        if kind.startswith("swiglu"):
            self.gate = linear(width, hidden, bias)
        self.expand, self.contract = linear(width, hidden, bias), linear(hidden, width, bias)

    def forward(self, x):
        hidden = self.expand(x)
        if self.kind.startswith("gelu"):
            hidden = F.gelu(hidden, approximate="tanh" if self.kind == "gelu_tanh" else "none")
        elif self.kind == "relu2":
            hidden = hidden.relu().square()
        else:
            hidden = F.silu(self.gate(x)) * hidden
        return self.contract(self.dropout(hidden))


class GatedConvolution(nn.Module):
    """W_out (c . conv(b . u)), b, c, u = W_in x in thirds. x, state: as of Attention."""

    def __init__(self, width, conv=3, smear=0):
        super().__init__()
        self.in_proj = linear(width, 3 * width, bias=False)
        self.out_proj = linear(width, width, bias=False)
        self.conv = ShortConvolution(width, integer("conv", conv, 2, 8))
        self.smear = Smear(width) if integer("smear", smear, 0, 1) else None

    def forward(self, x, residual=None, state=None):
        if self.smear is not None:
            x = self.smear(x, state)
        b, c, u = self.in_proj(x).chunk(3, -1)
        convolved = self.conv(so_far(state, "conv", b * u, self.conv.taps - 1))[:, -x.shape[1]:]
        return self.out_proj(c * convolved)


NORMS = {"layer": nn.LayerNorm, "rms": RmsNorm}
NORM_PLACES = ("pre", "post", "sandwich")


def norm_of(model):
    epsilon = model.get("norm_eps", 1e-5)
    require_in_range("norm_eps", epsilon, 1e-15, 1)
    return NORMS[model["norm"]](model["width"], epsilon)


BLOCKS = ("sequential", "parallel", "parallel_norms")
# What mixes positions, by the part of a block that it is.
MIXERS = {"attn": "attention", "recurrent": "recurrent", "conv": "conv", "pair": "pair",
          "none": None}


class Block(nn.Module):
    """One layer, M attention or another mixer and F feed-forward layer, either of which may be
    missing.

        pre       h + M(n_1 h), then h + F(n_2 h)
        post      n_1(h + M h), then n_2(h + F h)
        sandwich  h + n_2 M(n_1 h), then h + n_4 F(n_3 h)
        parallel  h + M(n h) + F(n h), wherever norms have their place; parallel_norms: n_1, n_2
    """

    def __init__(self, model, genes, semantics, layer, shares=False):
        """@param shares  whether layers of the model share keys."""
        super().__init__()
        genes, self.shares = dict(genes), shares
        mixer, ffn, hidden = genes.pop("mixer"), genes.pop("ffn"), genes.pop("hidden")
        require_known("mixer", mixer, MIXERS)
        require_known("norm_place", model["norm_place"], NORM_PLACES)
        require_known("block", model["block"], BLOCKS)
        self.block, self.place = model["block"], model["norm_place"]
        width = model["width"]
        self.parts = []
        self.mixer = MIXERS[mixer]
        if mixer == "attn":
            self.attention = Attention(width, context=model["context"], semantics=semantics,
                                       layer=layer, **genes)
        elif mixer == "conv":
            self.conv = GatedConvolution(width, **genes)
        elif mixer == "recurrent":
            self.recurrent = Recurrent(width, layer=layer, **genes)
        elif mixer == "pair":
            self.pair = Pair(width, context=model["context"], semantics=semantics, layer=layer,
                             **genes)
        if self.mixer is not None:
            self.parts.append(self.mixer)
        if ffn != "none":
            self.feed_forward = FeedForward(ffn, width, hidden, model["dropout"])
            self.parts.append("feed_forward")
        self.dropout = nn.Dropout(model["dropout"])
        if self.block == "parallel":
            self.norm = norm_of(model)
        else:
            for part in self.parts:
                setattr(self, part + "_norm", norm_of(model))
                if self.place == "sandwich" and self.block == "sequential":
                    setattr(self, part + "_norm_out", norm_of(model))

    def increment(self, part, x, stream, values, shared, state):
        if part == "attention":
            return self.attention(x, stream, state, values, shared)
        return self.feed_forward(x) if part == "feed_forward" else getattr(self, part)(
            x, stream, state)

    def forward(self, stream, values=None, *shared, state=None):
        """@param shared  keys and values of an earlier layer, which later ones may read; none yet.
        @param state  as of Attention.
        @return  the stream, and where layers share keys what the next layer is given.
        """
        shared = list(shared) if self.shares else None
        stream = self.passed(stream, values, shared, state)
        return (stream, *shared) if self.shares else stream

    def passed(self, stream, values, shared, state):
        if self.block != "sequential":
            x = self.norm(stream) if self.block == "parallel" else None
            increments = [
                self.increment(part, getattr(self, part + "_norm")(stream) if x is None else x,
                               stream, values, shared, state) for part in self.parts]
            if "feed_forward" in self.parts:
                increments[-1] = self.dropout(increments[-1])
            return stream + sum(increments)
        for part in self.parts:
            norm = getattr(self, part + "_norm")
            increment = self.increment(part, stream if self.place == "post" else norm(stream),
                                       stream, values, shared, state)
            if self.place == "sandwich":
                increment = getattr(self, part + "_norm_out")(increment)
            stream = stream + (self.dropout(increment) if part == "feed_forward" else increment)
            if self.place == "post":
                stream = norm(stream)
        return stream


def sinusoids(tokens, width):
    """S[t, m] = sin (m even) or cos (m odd) of t 10000^(-(m - m mod 2) / D), (T, D)."""
    m = torch.arange(width, dtype=torch.double)
    angles = torch.arange(tokens, dtype=torch.double).unsqueeze(1) * torch.pow(
        10000.0, -(m - m % 2) / width)
    return torch.where(m % 2 == 0, angles.sin(), angles.cos())


class Transformer(nn.Module):
    """Embedding and positions, blocks, norm, output matrix. @param config  as in config.json."""

    POSITIONS = ("learned", "sinusoidal", "none")

    def __init__(self, config):
        super().__init__()
        model, semantics = config["model"], config["semantics"]
        require_known("norm", model["norm"], NORMS)
        require_known("position_embedding", model["position_embedding"], self.POSITIONS)
        self.context = model["context"]
        self.embedding = nn.Embedding(model["vocabulary"], model["width"])
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.positions = model["position_embedding"]
        if self.positions == "learned":
            self.position = nn.Embedding(model["context"], model["width"])
            nn.init.normal_(self.position.weight, std=0.02)
        elif self.positions == "sinusoidal":
            self.position_scale = nn.Parameter(torch.full((1,), 0.0283))
        self.value_embedding = None
        if any(layer.get("value_embedding") for layer in config["layers"]):
            self.value_embedding = nn.Embedding(model["vocabulary"], model["width"])
            nn.init.normal_(self.value_embedding.weight, std=0.02)
        self.dropout = nn.Dropout(model["dropout"])
        self.shares = any(layer.get("keys") == "shared" for layer in config["layers"])
        self.layers = nn.ModuleList(Block(model, genes, semantics, layer, self.shares)
                                    for layer, genes in enumerate(config["layers"]))
        ends_normalised = model["block"] != "sequential" or model["norm_place"] != "post"
        self.final_norm = norm_of(model) if ends_normalised else nn.Identity()
        self.head = None if model["tied"] else linear(model["width"], model["vocabulary"],
                                                      bias=False)
        # residual outputs, so that the stream begins at one scale at any depth
        if semantics == "corrected":
            outputs = [part.contract if isinstance(part, FeedForward) else part.out_proj
                       for part in self.modules()
                       if isinstance(part, (Attention, GatedConvolution, Recurrent, FeedForward))]
            for output in outputs:
                nn.init.normal_(output.weight, std=0.02 / math.sqrt(2 * len(self.layers)))

    def forward(self, tokens):
        """
        @param tokens  (B, T) int64 ids.
        @return  (B, T, V), logits of each next token.
        """
        return self.logits(self.features(tokens))

    def logits(self, features):
        if self.head is None:
            return F.linear(features, self.embedding.weight)
        return self.head(features)

    def features(self, tokens, call=None, states=None):
        """(B, T, D), of which logits are made. @param call  computes layer(stream, values, ...).
        @param states  a list, empty before the first token: what layers keep of tokens so far, of
            which there are states[-1]["tokens"]. `tokens` go on behind them, and are added.
        """
        stream = self.embedding(tokens)
        length = tokens.shape[1]  # an int; where a graph is made of the model, a variable of it
        start = 0
        if states is not None:
            states.extend({} for _ in range(len(self.layers) + 1 - len(states)))
            start = states[-1].get("tokens", 0)
            states[-1]["tokens"] = length = start + length
        if self.positions == "learned":
            if isinstance(length, int) and length > self.context:
                raise ValueError(f"{length} tokens, must be at most {self.context}: positions are "
                                 f"learned")
            stream = stream + self.position(torch.arange(start, length, device=tokens.device))
        elif self.positions == "sinusoidal":
            stream = stream + self.position_scale * sinusoids(
                length, self.embedding.embedding_dim)[start:].to(stream)
        stream = self.dropout(stream)
        values = None if self.value_embedding is None else self.value_embedding(tokens)
        shared = ()
        for i, layer in enumerate(self.layers):
            given = (stream, values, *shared)
            found = call(layer, *given) if call else layer(
                *given, **({} if states is None else {"state": states[i]}))
            stream, *shared = found if self.shares else (found, )
        return self.final_norm(stream)


def parse_json(data):
    def refuse(constant):
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def places_of(header, size):
    """(begin, end, name, shape) of each tensor of float32 in the order of its bytes, which are
    `size` in all.
    """
    places = []
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is of type {entry['dtype']}, must be F32")
        shape, (begin, end) = entry["shape"], entry["data_offsets"]
        if any(type(number) is not int or not 0 <= number <= size
               for number in (*shape, begin, end)):
            raise ValueError(f"{name} has shape {shape} at {begin} to {end}, must be integers in "
                             f"[0, {size}]")
        if end - begin != 4 * math.prod(shape):
            raise ValueError(f"{name} has {end - begin} bytes, must have {4 * math.prod(shape)} "
                             f"for shape {shape}")
        places.append((begin, end, name, shape))
    places.sort()
    last = 0
    for begin, end, name, _ in places:
        if begin != last:
            raise ValueError(f"{name} begins at byte {begin}, must at {last}, where the one "
                             f"before ends")
        last = end
    if last != size:
        raise ValueError(f"has {size} bytes of numbers, must have {last}")
    return places


LARGEST_WEIGHT = 1e15  # squares of more overflow in sums of float32


PIECE = 1 << 18  # numbers that are read at once


@contextlib.contextmanager
def damaged(path):
    """Of a file that is what does not fit."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: is damaged, {error}") from None


def places_in(file):
    """Where the numbers of a file of safetensors begin, and places_of() them."""
    whole, size = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
    if whole < 8 or size > whole - 8:
        raise ValueError("must be a file of safetensors")
    try:
        header = parse_json(file.read(size))
        header.pop("__metadata__", None)
    except (AttributeError, ValueError):
        raise ValueError("must be a file of safetensors") from None
    return 8 + size, places_of(header, whole - 8 - size)


@torch.no_grad()
def read_numbers(file, begin, name, values):
    """Reads a tensor that begins at a byte of a file into one that is there."""
    file.seek(begin)
    for piece in values.view(-1).split(PIECE) if values.numel() else ():
        piece.copy_(torch.frombuffer(bytearray(file.read(4 * len(piece))), dtype=torch.float32))
        if not (piece.abs() <= LARGEST_WEIGHT).all():
            raise ValueError(f"{name} has a number that is none, or beyond {LARGEST_WEIGHT:g}")


def expect_digest(config, path, pieces):
    """Refuses a file of another SHA-256 than config.json says. Its own is that of its bytes with 0
    for each digit of that. @param pieces  of its bytes.
    """
    digests, name = config.get("sha256"), os.path.basename(path)
    if digests is None:  # a folder of an earlier version
        return
    expected, digest = digests[name], hashlib.sha256()
    for piece in pieces:
        own = piece.replace(expected.encode(), b"0" * len(expected))
        digest.update(own if name == "config.json" else piece)
    found = digest.hexdigest()
    if found != expected:
        raise ValueError(f"its SHA-256 is {found}, must be {expected} as config.json says: it is "
                         f"damaged, or of another model")


def check_sizes(config):
    """Refuses a configuration that is of no model."""
    for name in ("candidate", "mechanism", "data", "text"):
        config[name]
    require_known("semantics", config["semantics"], ("corrected", "published"))
    model, layers = config["model"], config["layers"]
    for name, least, most in (("vocabulary", 1, 1e8), ("context", 1, 1e9), ("width", 1, 1e6),
                              ("heads", 1, 1e6), ("feed_forward", 1, 1e4), ("hidden", 0, 1e7)):
        model[name] = integer(name, model[name], least, most)
    require_in_range("dropout", model["dropout"], 0, 1)
    if not isinstance(model["tied"], bool):
        raise ValueError(f"tied = {model['tied']!r}, must be true or false")
    require_in_range("number of layers", len(layers), 1, 1e4)
    for layer in layers:
        require_known("mixer", layer["mixer"], MIXERS)
        if layer["ffn"] != "none":
            layer["hidden"] = integer("hidden", layer["hidden"], 1, 1e8)


def least_parameters(config):
    """So many a model has at least: how much memory it takes is not for config.json alone to say.
    """
    width = config["model"]["width"]
    count = width * (
        config["model"]["vocabulary"] +
        (config["model"]["context"] if config["model"]["position_embedding"] == "learned" else 0))
    for layer in config["layers"]:
        inner = width
        if layer.get("head_width"):
            inner = integer("heads", layer["heads"], 1, 1e6) * integer(
                "head_width", layer["head_width"], 1, 65536)
        count += width * inner * {"none": 0, "conv": 4}.get(layer["mixer"], 2)
        count += 2 * width * layer["hidden"] * (layer["ffn"] != "none")
    return count


def read_config(folder):
    """config.json of a folder. The rules of its files are in docs/files.md of attnas, "A model in
    PyTorch".
    """
    path = os.path.join(folder, "config.json")
    with open(path, "rb") as file:
        data = file.read()
    try:
        config = parse_json(data)
        if not isinstance(config, dict):
            raise ValueError("must be a map")
        expect_digest(config, path, [data])
        check_sizes(config)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def load(folder):
    """The trained model of a folder, in evaluation mode. Memory: its weights, and pieces."""
    config, path = read_config(folder), os.path.join(folder, "model.safetensors")
    with open(path, "rb") as file:
        with damaged(path):
            expect_digest(config, path, iter(lambda: file.read(4 * PIECE), b""))
            file.seek(0)
            first, places = places_in(file)
        numbers = sum(end - begin for begin, end, _, _ in places) // 4
        if numbers < (least := least_parameters(config)):
            raise ValueError(f"{path}: has {numbers} numbers, the model of config.json has more "
                             f"than {least}")
        try:
            model = Transformer(config)
        except ValueError as error:
            raise ValueError(f"{os.path.join(folder, 'config.json')}: {error}") from None
        state, found = model.state_dict(), {name: shape for _, _, name, shape in places}
        for name in {**state, **found}:
            wanted = [*state[name].shape] if name in state else None
            if found.get(name) != wanted:
                raise ValueError(f"{path}: {name} has shape {found.get(name)}, must have {wanted}")
        with damaged(path):
            for begin, _, name, _ in places:
                read_numbers(file, first + begin, name, state[name])
    require_agreement(model.eval(), config, path)
    return model


def require_agreement(model, config, path):
    """Of a model with what a plug-in computes: that its module here does the same."""
    if not (check := config.get("check")):
        return
    with torch.no_grad():
        found = model(torch.tensor([check["tokens"]]))[0, -1, :len(check["logits"])].double()
    wanted = torch.tensor(check["logits"], dtype=torch.double)
    apart = ((found - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30)).item()
    if not apart <= 1e-4:
        raise ValueError(f"{path}: the plug-in's module in Python computes something else than "
                         f"its library: logits differ by {apart:.2g} of the largest, must by 1e-4")


def read_tokens(path, config):
    """A tokenizer.json with the digest that the configuration has; what reads it is in folders that
    have one.
    """
    if __package__:
        from .model_tokens import Tokens
    else:
        from model_tokens import Tokens
    with open(path, "rb") as file:
        data = file.read()
    try:
        expect_digest(config, path, [data])
        return Tokens(data)
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


class Text:
    """How text becomes tokens and windows, as in training."""

    LAYOUTS = {("byte", "standard"): (), ("word", "standard"): ("unknown", "end_of_sentence"),
               ("word", "published"): ("pad", "unknown", "end_of_sentence"),
               ("char", "standard"): ("unknown", ), ("residue", "standard"): ("unknown", ),
               ("bpe", "standard"): ()}
    NAMES = {"pad": b"<pad>", "unknown": b"<unk>", "end_of_sentence": b"<eos>"}

    def __init__(self, folder, config):
        form = config["text"]
        if form is None:
            raise ValueError(f"{folder}: the model's tokens are no text")
        try:
            require_known("unit and layout", (form["unit"], form["layout"]), self.LAYOUTS)
            special = self.LAYOUTS[form["unit"], form["layout"]]
            ids = {name: special.index(name) if name in special else -1 for name in self.NAMES}
            for name, value in ids.items():
                require_known(name, integer(name, form[name], -1, 2), (value,))
        except ValueError as error:
            raise ValueError(f"{os.path.join(folder, 'config.json')}: {error}") from None
        self.length = config["model"]["context"]
        self.bytes, self.published = form["unit"] == "byte", form["layout"] == "published"
        # stand for no text
        self.never = [ids[name] for name in ("pad", "unknown") if ids[name] >= 0]
        self.tokens, tokens = None, 256
        if self.bytes:
            self.first = ord("\n")
        elif form["unit"] != "word":
            self.tokens = read_tokens(os.path.join(folder, "tokenizer.json"), config)
            self.first, tokens = self.tokens.first, self.tokens.size
        else:
            self.pad, self.unknown, self.first = ids["pad"], ids["unknown"], ids["end_of_sentence"]
            self.read_words(os.path.join(folder, "vocabulary.txt"), config,
                            [self.NAMES[name] for name in special])
            tokens = len(self.words)
        if tokens != config["model"]["vocabulary"]:
            raise ValueError(f"{folder}: tokens are {tokens}, the vocabulary of config.json is "
                             f"{config['model']['vocabulary']}")

    def read_words(self, path, config, special):
        with open(path, "rb") as file:
            lines = file.read()
        try:
            expect_digest(config, path, [lines])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        *self.words, rest = lines.split(b"\n")
        if rest or self.words[:len(special)] != special:
            raise ValueError(f"{path}: must begin with {b', '.join(special).decode()} and end "
                             f"with an end of line")
        # Behind the special tokens, whose names are no words of a text.
        self.ids = {word: i for i, word in enumerate(self.words) if i > self.first}
        for i, word in enumerate(self.words):
            if i > self.first and (word.split() != [word] or word == b"<unk>"
                                   or self.ids[word] != i):
                raise ValueError(f"{path}: line {i + 1}: {word.decode(errors='replace')!r} is no "
                                 f"word, or there already")
        self.words[self.first] = b"\n"

    def of_line(self, line):
        return [self.ids.get(word, self.unknown) for word in line.split()]

    def stream(self, text):
        """Ids of a text, behind the end of what came before."""
        if self.bytes:
            return [self.first, *text]
        if self.tokens:
            return [self.first, *self.tokens.ids(text)]
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        stream = [self.first]
        for line in lines:
            stream += [*self.of_line(line), self.first]
        return stream

    def windows(self, text):
        """Inputs and targets (windows, L); targets -100 are not scored. Layout standard: contiguous
        windows of one stream. Published: half overlapping windows of longer lines, whose last
        target is <pad>."""
        length, inputs, targets = self.length, [], []
        if self.published:
            for line in text.split(b"\n"):
                ids = self.of_line(line)
                for start in range(0, len(ids) - length, max(1, length // 2)):
                    inputs.append(ids[start:start + length])
                    targets.append([*ids[start + 1:start + length], self.pad])
        else:
            ids = self.stream(text)
            length = min(length, max(len(ids) - 1, 1))  # whatever config.json says
            for start in range(0, len(ids) - 1, length):
                window, target = ids[start:start + length], ids[start + 1:start + length + 1]
                inputs.append(window + [0] * (length - len(window)))
                targets.append(target + [-100] * (length - len(target)))
        return torch.tensor(inputs), torch.tensor(targets)

    def prompt(self, text):
        if self.published:
            return self.of_line(text)
        return self.stream(text) if self.bytes or self.tokens else [self.first, *self.of_line(text)]

    def text(self, ids):
        if self.bytes:
            return bytes(ids).decode(errors="replace")
        if self.tokens:
            return self.tokens.text(ids).decode(errors="replace")
        return b" ".join(self.words[i] for i in ids).decode(errors="replace")


@torch.no_grad()
def negative_log_likelihood(model, inputs, targets, batch=16):
    """The sum over all scored targets in nats, and their number."""
    total = 0.0
    for begin in range(0, len(inputs), batch):
        logits = wide(model(inputs[begin:begin + batch])).flatten(0, 1)
        losses = F.cross_entropy(logits, targets[begin:begin + batch].flatten(), ignore_index=-100,
                                 reduction="none")
        # a sum of many float32 numbers has fewer digits than they
        total += losses.double().sum().item()
    return total, int((targets != -100).sum())


@torch.no_grad()
def generate(model, ids, tokens, never=()):
    """So many tokens after some, each the likeliest but for `never`. A model of learned positions
    sees the last L of them.
    """
    seen = model.context if model.positions == "learned" else 0  # 0: all
    for _ in range(tokens):
        logits = model(torch.tensor([ids[-seen:]]))[0, -1]
        if not logits.isfinite().all():
            raise ValueError("a logit is infinite or no number: the weights are damaged, or of a "
                             "training run that diverged")
        logits[list(never)] = -math.inf
        ids = [*ids, int(logits.argmax())]
    return ids


def main():
    parser = argparse.ArgumentParser(description="Perplexity of a text, or text after a prompt.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("folder", nargs="?", default=here, help="of the model (default: where "
                                                                "this file is)")
    parser.add_argument("--text", metavar="FILE", help="print the perplexity of this text")
    parser.add_argument("--generate", metavar="PROMPT", help="print what is likeliest to follow")
    parser.add_argument("--tokens", type=int, default=20, help="to generate (default: 20)")
    options = parser.parse_args()
    if options.text is None and options.generate is None:
        parser.error("give --text or --generate")
    if options.tokens < 0:
        parser.error(f"--tokens {options.tokens}, must be >= 0")
    try:
        form = Text(options.folder, read_config(options.folder))
        model = load(options.folder)
        if options.text is not None:
            with open(options.text, "rb") as file:
                text = file.read()
    except (OSError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    except Exception as error:  # of what a file lacks, or has too much of
        parser.exit(2, f"{parser.prog}: {options.folder}: must be as nas-export has written it: "
                       f"{repr(error)[:160]}\n")
    if options.text is not None:
        score(parser, options, model, form, text)
    if options.generate is not None:
        go_on(parser, options, model, form)


def score(parser, options, model, form, text):
    """Prints the perplexity of a text."""
    inputs, targets = form.windows(text)
    if not len(inputs):
        parser.error(f"{options.text}: has no window of {form.length} tokens")
    nll, count = negative_log_likelihood(model, inputs, targets)
    if not nll / count < math.log(sys.float_info.max):
        parser.exit(2, f"{parser.prog}: {options.folder}: nll is {nll / count:g} nats per token, "
                       f"whose perplexity is not "
                       "finite: the weights are damaged, or of a training run that diverged\n")
    print(f"perplexity {math.exp(nll / count):.4f}, nll {nll / count:.9f} nats per token, {count} "
          f"tokens")


def go_on(parser, options, model, form):
    """Prints what is likeliest to follow a prompt."""
    ids = form.prompt(os.fsencode(options.generate))
    if not ids:
        parser.error("--generate: give at least one word")
    try:
        follow = generate(model, ids, options.tokens, form.never)
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: {options.folder}: {error}\n")
    print(form.text(follow).strip())
    written = form.text(follow[len(ids):])
    ends = written[len(written.rstrip()):].count("\n")
    if ends:
        print(f"note: ends of a line that follow the text: {ends}", file=sys.stderr)


if __name__ == "__main__":
    main()
