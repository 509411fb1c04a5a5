"""A transformer language model of any attention mechanism that attnas searches, in plain PyTorch.

Needs Python 3.9 and torch 1.13, or later ones, and the files beside it: config.json says what the model is made of,
model.safetensors holds its weights, vocabulary.txt its words.

    python model.py FOLDER --text FILE                         # perplexity of a text
    python model.py FOLDER --generate "a prompt" --tokens 20   # what the model takes to be likeliest after a prompt

    from model import Attention, load
    logits = load("FOLDER")(tokens)                            # (B, T) ids to (B, T, V)
    layer = Attention(width=256, heads=4, context=512, normalization="sink", position="rope")   # for a model of your own

Letters: B batch, T tokens, D width, H heads, G heads of keys and values, d = D / H, L context; scores s_ij of query i and key j.
"""

import argparse
import hashlib
import json
import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F


# Similarities: q (B, H, T, d), k (B, H, S, d) to scores (B, H, T, S); S = T but where a state holds earlier keys.

def products(q, k):
    return q @ k.transpose(-2, -1)


def additive(layer, q, k):
    """W_q beside W_k in one matrix"""
    w_q, w_k = layer.attn_fc.weight.chunk(2, dim=1)
    pairs = (q @ w_q.T + layer.attn_fc.bias).unsqueeze(3) + (k @ w_k.T).unsqueeze(2)
    return layer.attn_v(torch.tanh(pairs)).squeeze(-1)


SIMILARITIES = {
    # s = q.k
    "dot": lambda layer, q, k: products(q, k),
    # s = c sigmoid(c), c = q.k
    "silu_dot": lambda layer, q, k: F.silu(products(q, k)),
    # s = v.tanh(W_q q + W_k k + b), shared by the heads
    "additive": additive,
    # s = (q / |q|).(k / |k|)
    "cosine": lambda layer, q, k: products(F.normalize(q, dim=-1), F.normalize(k, dim=-1)),
    # s = q' W_h k
    "bilinear": lambda layer, q, k: products(q @ layer.bilinear["weight"], k),
    # s = -|q - k|^2 / 2
    "l2": lambda layer, q, k: products(q, k) - (q.square().sum(-1, keepdim=True) + k.square().sum(-1).unsqueeze(-2)) / 2}


def start_temperature(similarity, head_width, context):
    """T0, at which the scores of a similarity begin at a suitable scale."""
    if similarity == "additive":
        return 1.0
    if similarity == "cosine":
        length = max(context, 2)
        return 1.0 / math.log2(length * length - length)
    return math.sqrt(head_width)


# Temperatures: x (B, T, D) and the numbers of visible keys, (T), to what scores are divided by: a number, or a tensor that
# expands to (B, H, T, 1).

TEMPERATURES = {
    # T0
    "fixed": lambda layer, x, seen: layer.start_temperature,
    # T0 exp(theta_h)
    "learned": lambda layer, x, seen: layer.start_temperature * layer.temperature["theta"].exp().view(-1, 1, 1),
    # T0 (sigmoid(w_h.x_i + b_h) + 0.5)
    "per_query": lambda layer, x, seen:
        layer.start_temperature * (layer.temperature(x).sigmoid() + 0.5).transpose(1, 2).unsqueeze(-1),
    # T0 / (a_h log(max(n_i, 2)))
    "log_length": lambda layer, x, seen: layer.start_temperature / (
        layer.length_scale.view(-1, 1, 1) * seen.clamp_min(2).double().log().to(x.dtype).unsqueeze(-1)),
    # sqrt(d), whatever the similarity
    "sqrt_d": lambda layer, x, seen: math.sqrt(layer.head_width),
    # |p| + 0.5
    "shifted_abs": lambda layer, x, seen: layer.temperature.abs() + 0.5,
    # sigmoid(w.mean_t x_t + b) + 0.5: sees later tokens
    "sequence_mean": lambda layer, x, seen: (layer.temp_proj(x.mean(1)).sigmoid() + 0.5).view(-1, 1, 1, 1)}


# Normalizations: scores (B, H, T, S) and which keys are visible, (T, S), to weights, 0 for hidden keys.

def hide(scores, visible):
    return scores.masked_fill(~visible, -math.inf)


def softmax(layer, scores, visible):
    """e^s / sum e^s"""
    return hide(scores, visible).softmax(-1)


def sink(layer, scores, visible):
    """e^s / (e^c_h + sum e^s): one more key of a learned score"""
    sinks = layer.sink.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat([hide(scores, visible), sinks], -1).softmax(-1)[..., :-1]


def divided_by_sum(weights, visible):
    weights = weights.masked_fill(~visible, 0.0)
    sums = weights.sum(-1, keepdim=True)
    return weights / (sums + torch.full_like(sums, 1e-8))  # optimizers of ONNX take a number so small for 0


def sparsemax(layer, scores, visible):
    """The nearest point of the simplex: max(s - tau, 0), sum 1 (Martins & Astudillo 2016)"""
    z = hide(scores, visible)
    z = z - z.detach().amax(-1, keepdim=True)
    ordered = z.sort(-1, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    size = (1 + k * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    inside = z >= ordered.gather(-1, size - 1)
    tau = (z.masked_fill(~inside, 0.0).sum(-1, keepdim=True) - 1) / inside.sum(-1, keepdim=True)
    return (z - tau).masked_fill(~inside, 0.0)


def entmax15(layer, scores, visible):
    """max(s / 2 - tau, 0)^2, sum 1 (Peters et al. 2019)"""
    z = hide(scores, visible)
    z = (z - z.detach().amax(-1, keepdim=True)) / 2

    def threshold(count, total, squares):
        mean = total / count
        return mean - (1 / count - (squares / count - mean.square())).clamp_min(0.0).sqrt()

    ordered = z.detach().sort(-1, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    size = (ordered >= threshold(k, ordered.cumsum(-1), ordered.square().cumsum(-1))).sum(-1, keepdim=True)
    inside = z.detach() >= ordered.gather(-1, size - 1)
    kept = z.masked_fill(~inside, 0.0)
    tau = threshold(inside.sum(-1, keepdim=True).to(z.dtype), kept.sum(-1, keepdim=True), kept.square().sum(-1, keepdim=True))
    return (z - tau).masked_fill(~inside, 0.0).square()


def softmax_of_largest(scores, visible, counts):
    """Softmax over the counts[i] largest visible scores of row i."""
    places = hide(scores, visible).sort(-1, descending=True).indices
    taken = torch.arange(scores.shape[-1], device=scores.device) < counts.unsqueeze(-1)
    largest = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, places, taken.expand_as(places))
    return softmax(None, scores, largest & visible)


NORMALIZATIONS = {
    "softmax": softmax,
    # e^s / (1 + sum e^s): one more key of score 0, whose weight is dropped
    "softmax1": lambda layer, scores, visible: F.pad(hide(scores, visible), (0, 1)).softmax(-1)[..., :-1],
    "sink": sink,
    # sigmoid(s - log n), n visible keys
    "sigmoid_attn": lambda layer, scores, visible:
        (scores - visible.sum(-1, keepdim=True).to(scores.dtype).log()).sigmoid().masked_fill(~visible, 0.0),
    # sigmoid(s) / (sum sigmoid(s) + 1e-8)
    "sigmoid_norm": lambda layer, scores, visible: divided_by_sum(scores.sigmoid(), visible),
    # max(s, 0) / (sum max(s, 0) + 1e-8)
    "relu_norm": lambda layer, scores, visible: divided_by_sum(scores.relu(), visible),
    # max(s, 0) / n, n visible keys
    "relu_n": lambda layer, scores, visible: scores.relu().masked_fill(~visible, 0.0) / visible.sum(-1, keepdim=True),
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    # softmax over the ceil(n / 4) largest of n visible scores
    "top_k": lambda layer, scores, visible:
        softmax_of_largest(scores, visible, torch.div(visible.sum(-1) + 3, 4, rounding_mode="floor")),
    # softmax over the max(1, floor(T / 4)) largest scores: depends on the length
    "topk_quarter": lambda layer, scores, visible:
        softmax_of_largest(scores, visible, torch.div(torch.ones_like(visible).sum(-1), 4, rounding_mode="floor").clamp_min(1))}


# Positions: rope maps queries and keys, the others give what is added to the score of a key n = 0, 1, ... tokens back, (H, S).

def rotated(vectors, base, half, start):
    """Entries m and m + R/2 of the first R turn by t base^(-2m/R). vectors: (B, heads, T, d) from t = start on; half: R/2."""
    places = start + torch.arange(vectors.shape[-2], dtype=torch.double).unsqueeze(1)
    angles = places * torch.pow(base, -torch.arange(half, dtype=torch.double) / max(half, 1))
    cosines, sines = angles.cos().to(vectors), angles.sin().to(vectors)
    first, second, rest = vectors[..., :half], vectors[..., half:2 * half], vectors[..., 2 * half:]
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines, rest], -1)


def alibi_slopes(heads):
    """2^(-8 (h + 1) / H) for H a power of two; else those of the power below, then every other one of twice that."""
    power = 2 ** int(math.log2(heads))
    eighths = [(h + 1) / power if h < power else (2 * (h - power) + 1) / (2 * power) for h in range(heads)]
    return [2.0 ** (-8.0 * eighth) for eighth in eighths]


def first_distances(buckets, furthest):
    """The first distance of each bucket of t5: half of the buckets have one distance each, the others share by its logarithm, and
    from `furthest` on all distances are in the last."""
    exact = buckets // 2
    shared = buckets - exact
    prime = 2**127 - 1  # powers are compared modulo it: they may have many digits

    def bucket(n):
        if n >= furthest:
            return buckets - 1
        place = shared * math.log(n / exact) / math.log(furthest / exact)
        edge = round(place)  # a bucket's first distance may be whole: logarithms are rounded
        on_edge = abs(place - edge) < 1e-9 and (pow(n, shared, prime) * pow(exact, edge, prime) -
                                                pow(furthest, edge, prime) * pow(exact, shared, prime)) % prime == 0
        return exact + (edge if on_edge else int(place))

    first = list(range(exact + 1))
    while len(first) < buckets:
        low, high = first[-1], furthest
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if bucket(middle) >= len(first) else (middle + 1, high)
        first.append(low)
    return first


POSITIONS = {
    "none": None,
    "rope": None,
    # -m_h n
    "alibi": lambda layer, n: torch.stack([-slope * n.double() for slope in alibi_slopes(layer.heads)]),
    # b[bucket(n), h]
    "t5": lambda layer, n: layer.relative_bias((n.unsqueeze(1) >= layer.t5_first).sum(1) - 1).transpose(0, 1)}


# Patterns: which keys a query sees, (T, S) for T queries and S keys.

PATTERNS = {
    # j <= i
    "full": lambda layer, distances, keys: distances >= 0,
    # i - j < window, or j < globals
    "window": lambda layer, distances, keys: (distances >= 0) & ((distances < layer.window) | (keys < layer.globals))}

# Gates: the linear layer that each has. g = sigmoid(W x + b).
GATES = {"none": None, "input_gate": "gate", "output_gate": "out_gate", "highway": "highway_gate",
         "normed_highway": "highway_gate", "elementwise_gate": "head_gate", "headwise_gate": "head_gate"}
DECAYS = ("none", "scalar")
NORMS_OF_HEADS = ("none", "rms")
BIASES = ("bias", "no_bias", "none")


def require_known(name, value, known):
    if value not in known:
        raise ValueError(f"{name} = {value}, must be one of {', '.join(map(str, known))}")


def require_in_range(name, value, least, most):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValueError(f"{name} = {value!r}, must be a number in [{least:g}, {most:g}]")


def integer(name, value, least, most):
    """A size, which JSON may hold as 2.0."""
    require_in_range(name, value, least, most)
    if value != int(value):
        raise ValueError(f"{name} = {value!r}, must be an integer")
    return int(value)


class RmsNorm(nn.Module):
    """x / sqrt(mean x^2 + 1e-5) g"""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.weight


class ShortConvolution(nn.Module):
    """y_t = sum_a w_a z_{t - K + 1 + a} for each channel; the last of K taps is the present. z: (B, T, channels)."""

    def __init__(self, channels, taps):
        super().__init__()
        self.channels, self.taps = channels, taps
        self.weight = nn.Parameter(torch.randn(channels, taps) * 0.02)
        nn.init.ones_(self.weight.data[:, -1])

    def forward(self, z):
        padded = F.pad(z.transpose(1, 2), (self.taps - 1, 0))
        return F.conv1d(padded, self.weight.unsqueeze(1), groups=self.channels).transpose(1, 2)


def linear(inputs, outputs, bias=True, start=0.0, deviation=0.02):
    """A linear layer whose matrix is drawn from N(0, deviation^2) and whose bias begins at `start`."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(layer.weight, std=deviation)
    if bias:
        nn.init.constant_(layer.bias, start)
    return layer


def so_far(state, name, new, keep=None):
    """`new` (..., T, n) behind what a state holds under a name, which then is the last `keep` of both; without a state: `new`."""
    if state is None:
        return new
    whole = torch.cat([state[name], new], -2) if name in state else new
    state[name] = whole if keep is None else whole[..., -keep:, :]
    return whole


class Attention(nn.Module):
    """Causal multi-head attention; what is not given is as in the vanilla transformer.

        x <- x g (input_gate);  q, k, v = x W_q', x W_k', x W_v' (+ b), convolved;  q, k normalised, rotated
        s_ij = similarity(q_i, k_j) / temperature + b(i - j) + sum of log f_t over t = j + 1 .. i
        w = dropout(normalization(s)) over the visible keys
        o = w v, normalised by head, times g (elementwise_gate, headwise_gate)
        y = o W_o' + b_o, times g (output_gate);  g (y - h) for highway, g y + (1 - g) x for normed_highway

    The genes of a layer in config.json are its arguments.

    @param context    L, the longest sequence: initial values and the temperature of similarity cosine depend on it.
    @param semantics  published: initial values as in the published code; formulas follow from the genes alone.
    """

    def __init__(self, width, heads, context, similarity="dot", normalization="softmax", gating="none", temperature="fixed",
                 bias="bias", attention_dropout=0.0, kv_heads=0, qk_norm="none", pattern="full", window=64, globals=0,
                 position="none", rope_base=10000.0, rope_fraction=1.0, t5_buckets=32, t5_distance=128, decay="none", conv=0,
                 head_norm="none", semantics="corrected"):
        super().__init__()
        for name, value, known in (
                ("similarity", similarity, SIMILARITIES), ("normalization", normalization, NORMALIZATIONS),
                ("gating", gating, GATES), ("temperature", temperature, TEMPERATURES), ("bias", bias, BIASES),
                ("qk_norm", qk_norm, NORMS_OF_HEADS), ("pattern", pattern, PATTERNS), ("position", position, POSITIONS),
                ("decay", decay, DECAYS), ("head_norm", head_norm, NORMS_OF_HEADS)):
            require_known(name, value, known)
        width, context = integer("width", width, 1, 1e6), integer("context", context, 0, 1e9)
        heads, kv_heads = integer("heads", heads, 1, width), integer("kv_heads", kv_heads, 0, width)
        window, globals = integer("window", window, 1, 2**53), integer("globals", globals, 0, 2**53)
        t5_buckets, t5_distance = integer("t5_buckets", t5_buckets, 2, 65536), integer("t5_distance", t5_distance, 1, 2**53)
        conv = integer("conv", conv, 0, 8)
        for name, value, least, most in (("attention_dropout", attention_dropout, 0, 1), ("rope_base", rope_base, 1, 2**53),
                                         ("rope_fraction", rope_fraction, 0, 1)):
            require_in_range(name, value, least, most)
        if width % heads or heads % (kv_heads or heads):
            raise ValueError(f"heads = {heads}, must divide the width {width}, and be a multiple of kv_heads = {kv_heads}")
        if position == "t5" and (t5_buckets % 2 or t5_distance <= t5_buckets // 2):
            raise ValueError(f"t5_buckets = {t5_buckets}, must be even, and half of it below t5_distance = {t5_distance}")
        self.heads, self.key_heads, self.head_width = heads, kv_heads or heads, width // heads
        self.similarity, self.normalization, self.gating = similarity, normalization, gating
        self.temperature_kind, self.pattern, self.position = temperature, pattern, position
        self.attention_dropout = attention_dropout
        self.window, self.globals = window, globals
        self.rope_base, self.rope_half = rope_base, math.floor(rope_fraction * self.head_width + 0.5) // 2
        self.start_temperature = start_temperature(similarity, self.head_width, context)

        d, of_keys = self.head_width, self.key_heads * self.head_width
        self.q_proj = linear(width, width, bias == "bias")
        self.k_proj = linear(width, of_keys, bias == "bias")
        self.v_proj = linear(width, of_keys, bias == "bias")
        self.out_proj = linear(width, width, bias != "none")
        published = semantics == "published"
        if similarity == "additive":
            self.attn_fc, self.attn_v = linear(2 * d, d), linear(d, 1, bias=False)
            if not published:
                nn.init.xavier_uniform_(self.attn_fc.weight)
                nn.init.xavier_uniform_(self.attn_v.weight)
        elif similarity == "bilinear":
            matrices = [nn.init.xavier_uniform_(torch.empty(d, d)) for _ in range(heads)]
            self.bilinear = nn.ParameterDict({"weight": nn.Parameter(torch.stack(matrices))})
        if normalization == "sink":
            self.sink = nn.Parameter(torch.zeros(heads))
        if GATES[gating] is not None:
            start = -1.0 if gating == "highway" else 0.0 if published or gating == "normed_highway" else 2.0
            setattr(self, GATES[gating], linear(width, heads if gating == "headwise_gate" else width, start=start))
        if temperature == "learned":
            self.temperature = nn.ParameterDict({"theta": nn.Parameter(torch.zeros(heads))})
        elif temperature == "per_query":
            self.temperature = linear(width, heads, deviation=0.0)
        elif temperature == "log_length":
            self.length_scale = nn.Parameter(torch.full((heads,), 1.0 / math.log(max(context, 2))))
        elif temperature == "shifted_abs":
            self.temperature = nn.Parameter(torch.ones(1))
        elif temperature == "sequence_mean":
            self.temp_proj = linear(width, 1)
        if conv > 0:
            self.q_conv, self.k_conv, self.v_conv = (ShortConvolution(channels, conv) for channels in (width, of_keys, of_keys))
        self.convolves = conv > 0
        self.q_norm, self.k_norm, self.head_norm = (
            RmsNorm(d) if kind == "rms" else nn.Identity() for kind in (qk_norm, qk_norm, head_norm))
        if position == "t5":
            self.relative_bias = nn.Embedding(t5_buckets, heads)
            nn.init.normal_(self.relative_bias.weight, std=0.02)
            self.register_buffer("t5_first", torch.tensor(first_distances(t5_buckets, t5_distance)), persistent=False)
        self.forgets = decay == "scalar"
        if self.forgets:
            # Gates that forget over 4 to L tokens, in equal ratios.
            self.forget = linear(width, heads, deviation=0.0)
            for h in range(heads):
                tau = 4.0 * (max(4.0, context) / 4.0) ** (h / max(heads - 1, 1))
                self.forget.bias.data[h] = -math.log(math.expm1(1.0 / tau))

    def by_head(self, vectors, heads):
        """(B, T, heads d) as (B, heads, T, d)."""
        return vectors.reshape(vectors.shape[0], vectors.shape[1], heads, self.head_width).transpose(1, 2)

    def for_each_query_head(self, vectors):
        """(B, G, T, d) as (B, H, T, d): query head h reads key head floor(h G / H)."""
        if self.key_heads == self.heads:
            return vectors
        return vectors.unsqueeze(2).expand(-1, -1, self.heads // self.key_heads, -1, -1).flatten(1, 2)

    def convolved(self, name, z, state):
        convolution = getattr(self, name)
        return convolution(so_far(state, name, z, convolution.taps - 1))[:, -z.shape[1]:]

    def scores(self, q, k, x, places, distances, visible, state):
        scores = SIMILARITIES[self.similarity](self, q, k)
        scores = scores / TEMPERATURES[self.temperature_kind](self, x, visible.sum(-1))
        bias = POSITIONS[self.position]
        if bias is not None:
            scores = scores + bias(self, places).to(x)[:, distances.clamp_min(0)]
        if self.forgets:
            # Sums over many tokens are large and their differences are not.
            sums = so_far(state, "forget", F.logsigmoid(self.forget(x).double())).cumsum(1).transpose(1, 2)
            scores = scores + (sums[..., -x.shape[1]:].unsqueeze(-1) - sums.unsqueeze(-2)).to(scores.dtype)
        return scores

    def forward(self, x, residual=None, state=None):
        """
        @param x         (B, T, D), normalised input.
        @param residual  (B, T, D), the residual stream h that the result is added to, which gating highway reads; None: x.
        @param state     a dict, empty before the first token: keys, values and what else is kept of earlier tokens. x goes on
            behind them, by one token or several, and is added to them; the results are those of the whole sequence.
        @return  (B, T, D), what is added to the residual stream.
        """
        for option in (self.temperature_kind, self.normalization):
            if state is not None and option in ("sequence_mean", "topk_quarter"):
                raise ValueError(f"{option} depends on the whole sequence: there is no state to go on from")
        start = state["k"].shape[-2] if state else 0
        gate = getattr(self, GATES[self.gating]) if GATES[self.gating] else None
        if self.gating == "input_gate":
            x = x * gate(x).sigmoid()
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.convolves:
            q, k, v = (self.convolved(name, z, state) for name, z in (("q_conv", q), ("k_conv", k), ("v_conv", v)))
        q, k, v = self.by_head(q, self.heads), self.by_head(k, self.key_heads), self.by_head(v, self.key_heads)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.position == "rope":
            q, k = (rotated(vectors, self.rope_base, self.rope_half, start) for vectors in (q, k))
        k, v = so_far(state, "k", k), so_far(state, "v", v)
        k, v = self.for_each_query_head(k), self.for_each_query_head(v)

        places = torch.arange(k.shape[2], device=x.device)
        distances = places[start:].unsqueeze(1) - places
        visible = PATTERNS[self.pattern](self, distances, places)
        scores = self.scores(q, k, x, places, distances, visible, state)
        weights = NORMALIZATIONS[self.normalization](self, scores, visible)
        weights = F.dropout(weights, self.attention_dropout, self.training)
        of_heads = self.head_norm(weights @ v)  # (B, H, T, d)
        if self.gating == "headwise_gate":
            of_heads = of_heads * gate(x).sigmoid().transpose(1, 2).unsqueeze(-1)
        of_heads = of_heads.transpose(1, 2).flatten(2)
        if self.gating == "elementwise_gate":
            of_heads = of_heads * gate(x).sigmoid()
        attended = self.out_proj(of_heads)

        if self.gating == "output_gate":
            return attended * gate(x).sigmoid()
        if self.gating == "highway":
            return gate(x).sigmoid() * (attended - (x if residual is None else residual))
        if self.gating == "normed_highway":
            opened = gate(x).sigmoid()
            return opened * attended + (1 - opened) * x
        return attended


class FeedForward(nn.Module):
    """gelu: W_2 gelu(W_1 x + b_1) + b_2;  relu2: W_2 max(W_1 x + b_1, 0)^2 + b_2;  swiglu: W_2 (silu(W_g x) * W_1 x).
    Dropout before W_2."""

    KINDS = ("gelu", "relu2", "swiglu")

    def __init__(self, kind, width, hidden, dropout):
        super().__init__()
        require_known("ffn", kind, self.KINDS)
        self.kind, self.dropout = kind, nn.Dropout(dropout)
        bias = kind != "swiglu"
        if kind == "swiglu":
            self.gate = linear(width, hidden, bias)
        self.expand, self.contract = linear(width, hidden, bias), linear(hidden, width, bias)

    def forward(self, x):
        hidden = self.expand(x)
        if self.kind == "gelu":
            hidden = F.gelu(hidden)
        elif self.kind == "relu2":
            hidden = hidden.relu().square()
        else:
            hidden = F.silu(self.gate(x)) * hidden
        return self.contract(self.dropout(hidden))


NORMS = {"layer": nn.LayerNorm, "rms": RmsNorm}
NORM_PLACES = ("pre", "post", "sandwich")
BLOCKS = ("sequential", "parallel")


class Block(nn.Module):
    """One layer, M attention and F feed-forward layer, either of which may be missing.

        pre       h + M(n_1 h), then h + F(n_2 h)
        post      n_1(h + M h), then n_2(h + F h)
        sandwich  h + n_2 M(n_1 h), then h + n_4 F(n_3 h)
        parallel  h + M(n h) + F(n h), wherever norms have their place
    """

    def __init__(self, model, genes, semantics):
        super().__init__()
        genes = dict(genes)
        mixer, ffn, hidden = genes.pop("mixer"), genes.pop("ffn"), genes.pop("hidden")
        require_known("mixer", mixer, ("attn", "none"))
        require_known("norm_place", model["norm_place"], NORM_PLACES)
        require_known("block", model["block"], BLOCKS)
        self.parallel, self.place = model["block"] == "parallel", model["norm_place"]
        width = model["width"]
        self.parts = []
        if mixer == "attn":
            self.attention = Attention(width, context=model["context"], semantics=semantics, **genes)
            self.parts.append("attention")
        if ffn != "none":
            self.feed_forward = FeedForward(ffn, width, hidden, model["dropout"])
            self.parts.append("feed_forward")
        self.dropout = nn.Dropout(model["dropout"])
        norm = NORMS[model["norm"]]
        if self.parallel:
            self.norm = norm(width)
        else:
            for part in self.parts:
                setattr(self, part + "_norm", norm(width))
                if self.place == "sandwich":
                    setattr(self, part + "_norm_out", norm(width))

    def increment(self, part, x, stream):
        return self.attention(x, stream) if part == "attention" else self.feed_forward(x)

    def forward(self, stream):
        if self.parallel:
            x = self.norm(stream)
            increments = [self.increment(part, x, stream) for part in self.parts]
            if "feed_forward" in self.parts:
                increments[-1] = self.dropout(increments[-1])
            return stream + sum(increments)
        for part in self.parts:
            norm = getattr(self, part + "_norm")
            increment = self.increment(part, stream if self.place == "post" else norm(stream), stream)
            if self.place == "sandwich":
                increment = getattr(self, part + "_norm_out")(increment)
            stream = stream + (self.dropout(increment) if part == "feed_forward" else increment)
            if self.place == "post":
                stream = norm(stream)
        return stream


def sinusoids(tokens, width):
    """S[t, m] = sin (m even) or cos (m odd) of t 10000^(-(m - m mod 2) / D), (T, D)."""
    m = torch.arange(width, dtype=torch.double)
    angles = torch.arange(tokens, dtype=torch.double).unsqueeze(1) * torch.pow(10000.0, -(m - m % 2) / width)
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
        self.dropout = nn.Dropout(model["dropout"])
        self.layers = nn.ModuleList(Block(model, genes, semantics) for genes in config["layers"])
        ends_normalised = model["block"] == "parallel" or model["norm_place"] != "post"
        self.final_norm = NORMS[model["norm"]](model["width"]) if ends_normalised else nn.Identity()
        self.head = None if model["tied"] else linear(model["width"], model["vocabulary"], bias=False)
        if semantics == "corrected":  # residual outputs, so that the stream begins at one scale at any depth
            for layer in self.layers:
                for part in layer.parts:
                    output = layer.attention.out_proj if part == "attention" else layer.feed_forward.contract
                    nn.init.normal_(output.weight, std=0.02 / math.sqrt(2 * len(self.layers)))

    def forward(self, tokens):
        """
        @param tokens  (B, T) int64 ids.
        @return  (B, T, V), logits of each next token.
        """
        stream = self.embedding(tokens)
        length = tokens.shape[1]  # an int; where a graph is made of the model, a variable of it
        if self.positions == "learned":
            if isinstance(length, int) and length > self.context:
                raise ValueError(f"{length} tokens, must be at most {self.context}: positions are learned")
            stream = stream + self.position(torch.arange(length, device=tokens.device))
        elif self.positions == "sinusoidal":
            stream = stream + self.position_scale * sinusoids(length, self.embedding.embedding_dim).to(stream)
        stream = self.dropout(stream)
        for layer in self.layers:
            stream = layer(stream)
        return F.linear(self.final_norm(stream), self.embedding.weight if self.head is None else self.head.weight)


def parse_json(data):
    def refuse(constant):
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def places_of(header, size):
    """(begin, end, name, shape) of each tensor of float32 in the order of its bytes, which are `size` in all."""
    places = []
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is of type {entry['dtype']}, must be F32")
        shape, (begin, end) = entry["shape"], entry["data_offsets"]
        if any(type(number) is not int or not 0 <= number <= size for number in (*shape, begin, end)):
            raise ValueError(f"{name} has shape {shape} at {begin} to {end}, must be integers in [0, {size}]")
        if end - begin != 4 * math.prod(shape):
            raise ValueError(f"{name} has {end - begin} bytes, must have {4 * math.prod(shape)} for shape {shape}")
        places.append((begin, end, name, shape))
    places.sort()
    last = 0
    for begin, end, name, _ in places:
        if begin != last:
            raise ValueError(f"{name} begins at byte {begin}, must at {last}, where the one before ends")
        last = end
    if last != size:
        raise ValueError(f"has {size} bytes of numbers, must have {last}")
    return places


LARGEST_WEIGHT = 1e15  # squares of more overflow in sums of float32


def tensors_of(data):
    """The tensors of the bytes of a file of safetensors, by name."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ValueError("must be a file of safetensors")
    try:
        header = parse_json(data[8:8 + size])
        header.pop("__metadata__", None)
    except (AttributeError, ValueError):
        raise ValueError("must be a file of safetensors") from None
    data = bytearray(data[8 + size:])
    tensors = {}
    for begin, end, name, shape in places_of(header, len(data)):
        count = (end - begin) // 4
        values = torch.frombuffer(data, dtype=torch.float32, count=count, offset=begin) if count else torch.empty(0)
        if not (values.abs() <= LARGEST_WEIGHT).all():
            raise ValueError(f"{name} has a number that is none, or beyond {LARGEST_WEIGHT:g}")
        tensors[name] = values.reshape(shape).clone()
    return tensors


def read_safetensors(path, check=lambda data: None):
    """The tensors of a file by name. @param check  is given its bytes."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        check(data)
        return tensors_of(data)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: is damaged, {error}") from None


def expect_digest(config, path, data):
    """Refuses a file of another SHA-256 than config.json says. Its own is that of its bytes with 0 for each digit of that."""
    digests, name = config.get("sha256"), os.path.basename(path)
    if digests is None:  # a folder of an earlier version
        return
    expected = digests[name]
    if name == "config.json":
        data = data.replace(expected.encode(), b"0" * len(expected))
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise ValueError(f"its SHA-256 is {found}, must be {expected} as config.json says: it is damaged, or of another model")


def check_sizes(config):
    """Refuses a configuration that is of no model."""
    for name in ("candidate", "mechanism", "data", "text"):
        config[name]
    require_known("semantics", config["semantics"], ("corrected", "published"))
    model, layers = config["model"], config["layers"]
    for name, least, most in (("vocabulary", 1, 1e8), ("context", 1, 1e9), ("width", 1, 1e6), ("heads", 1, 1e6),
                              ("feed_forward", 1, 1e4), ("hidden", 0, 1e7)):
        model[name] = integer(name, model[name], least, most)
    require_in_range("dropout", model["dropout"], 0, 1)
    if not isinstance(model["tied"], bool):
        raise ValueError(f"tied = {model['tied']!r}, must be true or false")
    require_in_range("number of layers", len(layers), 1, 1e4)
    for layer in layers:
        require_known("mixer", layer["mixer"], ("attn", "none"))
        if layer["ffn"] != "none":
            layer["hidden"] = integer("hidden", layer["hidden"], 1, 1e8)


def least_parameters(config):
    """So many a model has at least: how much memory it takes is not for config.json alone to say."""
    width = config["model"]["width"]
    count = width * (config["model"]["vocabulary"] +
                     (config["model"]["context"] if config["model"]["position_embedding"] == "learned" else 0))
    for layer in config["layers"]:
        count += 2 * width * width * (layer["mixer"] == "attn")
        count += 2 * width * layer["hidden"] * (layer["ffn"] != "none")
    return count


def read_config(folder):
    """config.json of a folder. The rules of its files are in docs/files.md of attnas, "A model in PyTorch"."""
    path = os.path.join(folder, "config.json")
    with open(path, "rb") as file:
        data = file.read()
    try:
        config = parse_json(data)
        if not isinstance(config, dict):
            raise ValueError("must be a map")
        expect_digest(config, path, data)
        check_sizes(config)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def load(folder):
    """The trained model of a folder, in evaluation mode."""
    config, path = read_config(folder), os.path.join(folder, "model.safetensors")
    weights = read_safetensors(path, lambda data: expect_digest(config, path, data))
    numbers, least = sum(values.numel() for values in weights.values()), least_parameters(config)
    if numbers < least:
        raise ValueError(f"{path}: has {numbers} numbers, the model of config.json has more than {least}")
    try:
        model = Transformer(config)
    except ValueError as error:
        raise ValueError(f"{os.path.join(folder, 'config.json')}: {error}") from None
    model.load_state_dict(weights)
    return model.eval()


class Text:
    """How text becomes tokens and windows, as in training."""

    LAYOUTS = {("byte", "standard"): (), ("word", "standard"): ("unknown", "end_of_sentence"),
               ("word", "published"): ("pad", "unknown", "end_of_sentence")}
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
        self.never = [ids[name] for name in ("pad", "unknown") if ids[name] >= 0]  # stand for no text
        tokens = 256
        if self.bytes:
            self.first = ord("\n")
        else:
            self.pad, self.unknown, self.first = ids["pad"], ids["unknown"], ids["end_of_sentence"]
            self.read_words(os.path.join(folder, "vocabulary.txt"), config, [self.NAMES[name] for name in special])
            tokens = len(self.words)
        if tokens != config["model"]["vocabulary"]:
            raise ValueError(f"{folder}: tokens are {tokens}, the vocabulary of config.json is {config['model']['vocabulary']}")

    def read_words(self, path, config, special):
        with open(path, "rb") as file:
            lines = file.read()
        try:
            expect_digest(config, path, lines)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        *self.words, rest = lines.split(b"\n")
        if rest or self.words[:len(special)] != special:
            raise ValueError(f"{path}: must begin with {b', '.join(special).decode()} and end with an end of line")
        # Behind the special tokens, whose names are no words of a text.
        self.ids = {word: i for i, word in enumerate(self.words) if i > self.first}
        for i, word in enumerate(self.words):
            if i > self.first and (word.split() != [word] or word == b"<unk>" or self.ids[word] != i):
                raise ValueError(f"{path}: line {i + 1}: {word.decode(errors='replace')!r} is no word, or there already")
        self.words[self.first] = b"\n"

    def of_line(self, line):
        return [self.ids.get(word, self.unknown) for word in line.split()]

    def stream(self, text):
        """Ids of a text, behind the end of what came before."""
        if self.bytes:
            return [self.first, *text]
        lines = text.split(b"\n")
        if not lines[-1]:
            lines.pop()
        stream = [self.first]
        for line in lines:
            stream += [*self.of_line(line), self.first]
        return stream

    def windows(self, text):
        """Inputs and targets (windows, L); targets -100 are not scored. Layout standard: contiguous windows of one stream.
        Published: half overlapping windows of longer lines, whose last target is <pad>."""
        length, inputs, targets = self.length, [], []
        if self.published:
            for line in text.split(b"\n"):
                ids = self.of_line(line)
                for start in range(0, len(ids) - length, max(1, length // 2)):
                    inputs.append(ids[start:start + length])
                    targets.append([*ids[start + 1:start + length], self.pad])
        else:
            ids = self.stream(text)
            for start in range(0, len(ids) - 1, length):
                window, target = ids[start:start + length], ids[start + 1:start + length + 1]
                inputs.append(window + [0] * (length - len(window)))
                targets.append(target + [-100] * (length - len(target)))
        return torch.tensor(inputs), torch.tensor(targets)

    def prompt(self, text):
        if self.published:
            return self.of_line(text)
        return self.stream(text) if self.bytes else [self.first, *self.of_line(text)]

    def text(self, ids):
        if self.bytes:
            return bytes(ids).decode(errors="replace")
        return b" ".join(self.words[i] for i in ids).decode(errors="replace")


@torch.no_grad()
def negative_log_likelihood(model, inputs, targets, batch=16):
    """The sum over all scored targets in nats, and their number."""
    total = 0.0
    for begin in range(0, len(inputs), batch):
        logits = model(inputs[begin:begin + batch]).flatten(0, 1)
        losses = F.cross_entropy(logits, targets[begin:begin + batch].flatten(), ignore_index=-100, reduction="none")
        total += losses.double().sum().item()  # a sum of many float32 numbers has fewer digits than they
    return total, int((targets != -100).sum())


@torch.no_grad()
def generate(model, ids, tokens, never=()):
    """So many tokens after some, each the likeliest but for `never`. A model of learned positions sees the last L of them."""
    seen = model.context if model.positions == "learned" else 0  # 0: all
    for _ in range(tokens):
        logits = model(torch.tensor([ids[-seen:]]))[0, -1]
        if not logits.isfinite().all():
            raise ValueError("a logit is infinite or no number: the weights are damaged, or of a training run that diverged")
        logits[list(never)] = -math.inf
        ids = [*ids, int(logits.argmax())]
    return ids


def main():
    parser = argparse.ArgumentParser(description="Perplexity of a text, or text after a prompt.")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("folder", nargs="?", default=here, help="of the model (default: where this file is)")
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
        parser.exit(2, f"{parser.prog}: {options.folder}: must be as nas-export has written it: {repr(error)[:160]}\n")
    if options.text is not None:
        inputs, targets = form.windows(text)
        if not len(inputs):
            parser.error(f"{options.text}: has no window of {form.length} tokens")
        nll, count = negative_log_likelihood(model, inputs, targets)
        if not nll / count < math.log(sys.float_info.max):
            parser.exit(2, f"{parser.prog}: {options.folder}: nll is {nll / count:g} nats per token, whose perplexity is not "
                           "finite: the weights are damaged, or of a training run that diverged\n")
        print(f"perplexity {math.exp(nll / count):.4f}, nll {nll / count:.9f} nats per token, {count} tokens")
    if options.generate is not None:
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
