"""Recurrent layers of any mechanism that attnas searches: linear attention, RetNet, GLA, delta
rules; and layers with heads of both kinds. A file beside model.py.

Letters: B batch, T tokens, D width, H heads, d = D / H, d_k width of a key, f features; S (f, d)
the state of a head.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

if __package__:
    from .model_attention import (BIASES, RmsNorm, ShortConvolution, Smear, mixed_bits, normals,
                                  of_unit_length, random_bits, so_far)
    from .model_heads import Attention
    from .model_positions import (DECAY_FORMS, channel_log_decays, drawn_rates, drawn_steps,
                                  integer, linear, make_channel_decay, no_autocast,
                                  require_in_range, require_known, rotated, softplus, wide)
else:  # in the folder of this file
    from model_attention import (BIASES, RmsNorm, ShortConvolution, Smear, mixed_bits, normals,
                                 of_unit_length, random_bits, so_far)
    from model_heads import Attention
    from model_positions import (DECAY_FORMS, channel_log_decays, drawn_rates, drawn_steps, integer,
                                 linear, make_channel_decay, no_autocast, require_in_range,
                                 require_known, rotated, softplus, wide)

UPDATES = ("add", "delta", "delta2")
DECAYS_OF_STATES = ("none", "fixed", "scalar", "channel")
GATES_OF_STATES = ("none", "swish_gate", "elementwise_gate", "sigmoid_gate")
FEATURES = ("identity", "elu1", "relu", "favor", "taylor2", "hedgehog")


def row_of(numbers, width):
    drawn = [next(numbers) for _ in range(width)]
    return torch.tensor(drawn, dtype=torch.double, device="cpu")


def random_features(features, width, layer):
    """W (f, d_k) of feature favor in layer 0, 1, ...: blocks of d_k orthonormal rows, each as long
    as a vector of d_k normals.
    """
    numbers = normals(random_bits(mixed_bits(0x6661766F72 + layer)))
    rows = []
    while len(rows) < features:
        block = []
        for _ in range(width):
            row = row_of(numbers, width)
            for before in block:
                row = row - row.dot(before) * before
            block.append(row / row.norm())
        for row in block[:features - len(rows)]:
            rows.append(row * row_of(numbers, width).norm())
    return torch.stack(rows)


class HeadMap(nn.Module):
    """z = W_h u + b_h of each head, W begins as the identity. u: (B, H, T, d_k)."""

    def __init__(self, heads, width):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(width).repeat(heads, 1, 1))
        self.bias = nn.Parameter(torch.zeros(heads, width))

    def forward(self, u):
        return u @ self.weight.to(u).transpose(-2, -1) + self.bias.unsqueeze(1)


class Recurrent(nn.Module):
    """A causal layer of H heads, each with a state S that takes up keys and values; what is not
    given is as attnas has it.

        q, k, v = x W_q', x W_k', x W_v' (+ b), convolved;  SiLU where conv or delta
        delta: q, k of unit length;  q, k rotated;  q, k <- phi(q), phi(k)
        add     S_t = diag(alpha_t) S_{t-1} + k_t v_t'
        delta   S_t = (I - beta_t k_t k_t') diag(alpha_t) S_{t-1} + beta_t k_t v_t'
        delta2  S_t = (I - k_t (b_t . k_t)') diag(alpha_t) S_{t-1} + k_t (w_t . v_t)'
        beta_t = sigmoid(w_h.x_t);  b_t, w_t = sigmoid(W x_t)
        o_t = S_t' q_t / (z_t.q_t + 1e-6), z the sum of keys, of add with a phi
        near w: o_t = (g e^(q_t.K' / sqrt(d_k) - c) V + S_{t-w}' phi(q_t)) over the sum of these
            weights, K, V the last w, c the largest exponent, g = sigmoid of each head
        o_t = RMSNorm(S_t' q_t / sqrt(d_k)), else;  y = (gate . o) W_o' + b_o

    The genes of a layer in config.json are its arguments. Features, states, sums and what they are
    divided by are float32 at least, of half precisions and under autocast, too.

    @param layer  its place in the model, from 0, on which the random features of favor depend.
    """

    def __init__(self, width, heads, update="add", decay="none", decay_rank=16, decay_tau=16.0,
                 decay_form="gla", feature="identity", favor_features=0, key_width=0, neg_eigen=0,
                 conv=0, position="none", rope_base=10000.0, gating="none", gate_rank=0,
                 bias="bias", layer=0, head_width=0, near=0):
        super().__init__()
        for name, value, known in (
                ("update", update, UPDATES), ("decay", decay, DECAYS_OF_STATES),
                ("decay_form", decay_form, DECAY_FORMS), ("feature", feature, FEATURES),
                ("gating", gating, GATES_OF_STATES), ("position", position, ("none", "rope")),
                ("bias", bias, BIASES), ("neg_eigen", neg_eigen, (0, 1))):
            require_known(name, value, known)
        width = integer("width", width, 1, 1e6)
        heads = integer("heads", heads, 1, width)
        if width % heads:
            raise ValueError(f"heads = {heads}, must divide the width {width}")
        conv, key_width = integer("conv", conv, 0, 8), integer("key_width", key_width, 0, 65536)
        decay_rank = integer("decay_rank", decay_rank, 1, 65536)
        gate_rank = integer("gate_rank", gate_rank, 0, 65536)
        favor_features = integer("favor_features", favor_features, 0, 65536)
        for name, value in (("rope_base", rope_base), ("decay_tau", decay_tau)):
            require_in_range(name, value, 1, 2**53)
        self.heads, self.head_width = heads, integer(
            "head_width", head_width, 0, 65536) or width // heads
        self.key_width = key_width or self.head_width
        if position == "rope" and self.key_width % 2:
            raise ValueError(f"position = rope, must rotate an even number of entries, not "
                             f"{self.key_width}")
        self.update, self.decay_kind, self.feature, self.gating = update, decay, feature, gating
        self.decay_tau, self.decay_form, self.rope_base = decay_tau, decay_form, rope_base
        self.rotates, self.doubles = position == "rope", neg_eigen == 1
        self.sums = update == "add" and feature != "identity"
        self.near = integer("near", near, 0, 2**53) if self.sums and decay == "none" else 0
        if self.near:
            self.near_logit = nn.Parameter(torch.zeros(heads))

        of_keys, of_values = heads * self.key_width, heads * self.head_width
        biased = bias in ("bias", "qkv")
        self.q_proj, self.k_proj = (linear(width, of_keys, biased) for _ in range(2))
        self.v_proj = linear(width, of_values, biased)
        self.out_proj = linear(of_values, width, bias in ("bias", "no_bias"))
        self.convolves = conv > 0
        if self.convolves:
            self.q_conv, self.k_conv, self.v_conv = (ShortConvolution(channels, conv)
                                                     for channels in (of_keys, of_keys, of_values))
        self.make_features(favor_features, layer)
        self.make_decay(width, decay_rank)
        if update == "delta":
            self.beta = linear(width, heads, bias=False)
        elif update == "delta2":
            self.erase = linear(width, of_keys, bias=False)
            self.write = linear(width, of_values, bias=False)
        if not self.sums:
            self.head_norm = RmsNorm(self.head_width)
        self.gate_rank = gate_rank if gating == "sigmoid_gate" else 0
        if self.gate_rank:
            self.gate_down, self.gate_up = linear(width, gate_rank,
                                                  bias=False), linear(gate_rank, of_values,
                                                                      start=2.0)
        elif gating != "none":
            self.head_gate = linear(width, of_values, bias=gating != "swish_gate", start=2.0)

    def make_features(self, favor_features, layer):
        d_k = self.key_width
        sizes = {
            "favor": favor_features or 2 * d_k, "taylor2": 1 + d_k + d_k * d_k, "hedgehog": 2 * d_k}
        self.features = sizes.get(self.feature, d_k)
        if self.feature == "favor":  # drawn, but no parameters
            self.projection = random_features(self.features, d_k, layer)
        elif self.feature == "hedgehog":
            self.q_map, self.k_map = HeadMap(self.heads, d_k), HeadMap(self.heads, d_k)

    def make_decay(self, width, rank):
        if self.decay_kind == "scalar":
            self.decay = linear(width, self.heads, bias=False)
            self.decay_log_rate = drawn_rates(self.heads)
            self.decay_step_bias = drawn_steps(self.heads)
        elif self.decay_kind == "channel":
            make_channel_decay(self, width, rank, self.features)

    def by_head(self, vectors):
        """(B, T, H n) as (B, H, T, n), in which a state is computed."""
        return wide(vectors.reshape(*vectors.shape[:2], self.heads, -1).transpose(1, 2))

    def log_decays(self, x):
        """log alpha, (B, H, T, 1) or of each channel (B, H, T, f); None: nothing is forgotten."""
        if self.decay_kind == "none":
            return None
        if self.decay_kind == "fixed":
            logs = wide(x).new_tensor([math.log1p(-2.0**(-5 - h)) for h in range(self.heads)])
            return logs.view(1, -1, 1, 1).expand(x.shape[0], -1, x.shape[1], 1)
        if self.decay_kind == "channel":
            return channel_log_decays(self, x)
        rates = wide(self.decay_log_rate).exp().view(-1, 1, 1)
        return -rates * self.by_head(softplus(wide(self.decay(x)) + self.decay_step_bias))

    def mapped(self, u, keys):
        """phi of queries or keys, (B, H, T, d_k) to (B, H, T, f)."""
        d_k = self.key_width
        if self.feature == "elu1":
            return F.elu(u) + 1
        if self.feature == "relu":
            return u.relu()
        if self.feature == "favor":  # queries less their largest exponent, which cancels
            u = u * d_k ** -0.25
            exponents = u @ self.projection.to(u).T - u.square().sum(-1, keepdim=True) / 2
            if not keys:
                exponents = exponents - exponents.detach().amax(-1, keepdim=True)
            return exponents.exp() / math.sqrt(self.features)
        if self.feature == "taylor2":
            squares = (u.unsqueeze(-1) * u.unsqueeze(-2)).flatten(-2) / math.sqrt(2 * d_k)
            return torch.cat([torch.ones_like(u[..., :1]), u * d_k ** -0.25, squares], -1)
        if self.feature == "hedgehog":
            z = (self.k_map if keys else self.q_map)(u)
            return torch.cat([z, -z], -1).softmax(-1)
        return u

    def vectors(self, x, state):
        """q, k (B, H, T, f), or d_k of `near`, and v (B, H, T, d)."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.convolves:
            named = zip((self.q_conv, self.k_conv, self.v_conv), ("q_conv", "k_conv", "v_conv"),
                        (q, k, v))
            q, k, v = (convolution(so_far(state, name, z, convolution.taps - 1))[:, -z.shape[1]:]
                       for convolution, name, z in named)
        if self.convolves or self.update != "add":
            q, k, v = F.silu(q), F.silu(k), F.silu(v)
        q, k, v = self.by_head(q), self.by_head(k), self.by_head(v)
        if self.update != "add":
            q, k = of_unit_length(q), of_unit_length(k)
        if self.rotates:
            q, k = (rotated(u, (self.key_width // 2, self.rope_base, 1, 0, 1, 4),
                            state.get("tokens", 0) if state else 0) for u in (q, k))
        if self.near:
            return q, k, v
        with no_autocast(x):
            return self.mapped(q, keys=False), self.mapped(k, keys=True), v

    def no_near(self, x):
        """What is kept of the last tokens before the first one; a value that is there ends with 1.
        """
        sizes = (len(x), self.heads, self.near)
        return {"near_k": wide(x).new_zeros(*sizes, self.key_width),
                "near_v": wide(x).new_zeros(*sizes, self.head_width + 1)}

    def near_step(self, q, k, v, s, kept):
        """o of a token, (B, H, 1, d + 1), and S; `kept` takes the token up."""
        oldest, value = kept["near_k"][:, :, :1], kept["near_v"][:, :, :1]
        s = s + self.mapped(oldest, keys=True).transpose(-2, -1) @ value  # 0 where there is none
        keys, values = (torch.cat([kept[name][:, :, 1:], new], 2)
                        for name, new in (("near_k", k), ("near_v", v)))
        kept["near_k"], kept["near_v"] = keys, values
        scores = (q @ keys.transpose(-2, -1) / math.sqrt(self.key_width)).masked_fill(
            values[..., -1].unsqueeze(2) == 0, -math.inf)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights * wide(self.near_logit).sigmoid().view(-1, 1, 1)
        return weights @ values + self.mapped(q, keys=False) @ s, s

    def gated_update(self, x, k, v):
        """What is erased along, (B, H, T, f), None: nothing is; and what is written."""
        if self.update == "add":
            return None, v
        factor = 2.0 if self.doubles else 1.0
        if self.update == "delta":
            beta = self.by_head(self.beta(x)).sigmoid() * factor
            return beta * k, beta * v
        return self.by_head(self.erase(x)).sigmoid() * factor * k, self.by_head(
            self.write(x)).sigmoid() * v

    def forward(self, x, residual=None, state=None):
        """
        @param x         (B, T, D), normalised input.
        @param residual  as of Attention; not read.
        @param state     a dict, empty before the first token: S and what else is kept of earlier
            tokens. x goes on behind them, by one token or several, and is taken up; the results are
            those of the whole sequence.
        @return  (B, T, D), what is added to the residual stream.
        """
        q, k, v = self.vectors(x, state)
        erased, v = self.gated_update(x, k, v)
        if self.sums:  # z is the state of a value that is 1
            v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
        decays = self.log_decays(x)
        s = q.new_zeros(q.shape[0], self.heads, self.features, v.shape[-1])
        if state:
            s = state.get("S", s)
        near = {**self.no_near(x), **(state or {})} if self.near else None
        outputs = []
        with no_autocast(x):
            for t in range(x.shape[1]):
                of_token = slice(t, t + 1)
                if near:
                    o, s = self.near_step(*(u[:, :, of_token] for u in (q, k, v)), s, near)
                    outputs.append(o)
                    continue
                if decays is not None:
                    s = s * decays[:, :, of_token].exp().transpose(-2, -1)
                u = v[:, :, of_token]
                if erased is not None:
                    u = u - erased[:, :, of_token] @ s
                s = s + k[:, :, of_token].transpose(-2, -1) @ u
                outputs.append(q[:, :, of_token] @ s)
        if state is not None:
            state["tokens"], state["S"] = state.get("tokens", 0) + x.shape[1], s
            state.update({name: near[name] for name in ("near_k", "near_v")} if near else {})
        o = torch.cat(outputs, 2)
        if self.sums:
            least = 0.0 if self.near else 1e-30 if self.feature == "favor" else 1e-6
            o = o[..., :-1] / (o[..., -1:] + least)
        else:
            o = self.head_norm(o / math.sqrt(self.key_width))
        return self.out_proj(self.gated(o.transpose(1, 2).flatten(2).to(x), x))

    def gated(self, o, x):
        if self.gating == "none":
            return o
        logits = self.gate_up(self.gate_down(x)) if self.gate_rank else self.head_gate(x)
        return o * (F.silu(logits) if self.gating == "swish_gate" else logits.sigmoid())


class Pair(nn.Module):
    """Heads of two kinds in one layer: Attention + Recurrent, each of half of the heads, as wide as
    the layer's.

    @param parts  the arguments of both, with their `mixer`; they say all of heads and biases.
    """

    MIXERS = ("attn", "recurrent")

    def __init__(self, width, parts, context=0, semantics="corrected", layer=0, heads=0,
                 bias="bias", smear=0):
        super().__init__()
        require_known("parts", tuple(part["mixer"] for part in parts), (self.MIXERS, ))
        require_known("bias", bias, BIASES)
        own = [{gene: value for gene, value in part.items() if gene != "mixer"} for part in parts]
        if any(genes["heads"] != (heads or 2 * genes["heads"]) / 2 for genes in own):
            raise ValueError(f"heads = {heads}, must be twice those of each of its parts")
        self.attention = Attention(width, context=context, semantics=semantics, layer=layer,
                                   **own[0])
        self.recurrent = Recurrent(width, layer=layer, **own[1])
        self.smear = Smear(width) if integer("smear", smear, 0, 1) else None

    def forward(self, x, residual=None, state=None):
        """x, residual, state: as of Attention."""
        if self.smear is not None:
            x = self.smear(x, state)
        first, second = (None if state is None else state.setdefault(mixer, {})
                         for mixer in self.MIXERS)
        return self.attention(x, residual, first) + self.recurrent(x, residual, second)
