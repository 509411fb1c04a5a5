"""Attention of most mechanisms that attnas searches, and what other layers are made of.

Letters: B batch, T tokens, D width, H heads of width d, G heads of keys and values, L context;
scores s_ij of query i and key j.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

if __package__:
    from .model_positions import (DECAY_FORMS, PASSAGES, POSITIONS, integer, linear,
                                  make_channel_decay, make_position, no_autocast, of_gates,
                                  passed_scores, require_in_range, require_known, rope_of, rotated,
                                  wide)
else:  # in the folder of this file
    from model_positions import (DECAY_FORMS, PASSAGES, POSITIONS, integer, linear,
                                 make_channel_decay, make_position, no_autocast, of_gates,
                                 passed_scores, require_in_range, require_known, rope_of, rotated,
                                 wide)


# Similarities: q (B, H, T, d), k (B, H, S, d) to scores (B, H, T, S); S = T but where a state holds
# earlier keys.

def products(q, k):
    return q @ k.transpose(-2, -1)


def additive(layer, q, k):
    if not isinstance(layer.attn_fc, nn.Linear):
        raise ValueError("attn_fc is wrapped, must be nn.Linear: its halves are read apart")
    w_q, w_k = layer.attn_fc.weight.chunk(2, dim=1)
    pairs = (q @ w_q.T + layer.attn_fc.bias).unsqueeze(3) + (k @ w_k.T).unsqueeze(2)
    return layer.attn_v(torch.tanh(pairs)).squeeze(-1)


def l2(layer, q, k):
    """s = -|q - k|^2 / 2"""
    q, k = wide(q), wide(k)
    with no_autocast(q):  # of differences of large numbers
        return products(q, k) - (q.square().sum(-1, keepdim=True) +
                                 k.square().sum(-1).unsqueeze(-2)) / 2


SIMILARITIES = {
    # s = q.k
    "dot": lambda layer, q, k: products(q, k),
    # s = c sigmoid(c), c = q.k
    "silu_dot": lambda layer, q, k: F.silu(products(q, k)),
    # s = v.tanh(W_q q + W_k k + b), shared by the heads
    "additive": additive,
    # s = (q / |q|).(k / |k|)
    "cosine": lambda layer, q, k: products(*(F.normalize(wide(u), dim=-1).to(u) for u in (q, k))),
    # s = q' W_h k
    "bilinear": lambda layer, q, k: products(q @ layer.bilinear["weight"], k),
    "l2": l2
}


def start_temperature(similarity, head_width, context):
    """T0, at which the scores of a similarity begin at a suitable scale."""
    if similarity == "additive":
        return 1.0
    if similarity == "cosine":
        length = max(context, 2)
        return 1.0 / math.log2(length * length - length)
    return math.sqrt(head_width)


# Temperatures: x (B, T, D) and the numbers of visible keys, (T), to what scores are divided by: a
# number, or a tensor that expands to (B, H, T, 1).

TEMPERATURES = {
    # T0
    "fixed": lambda layer, x, seen: layer.start_temperature,
    # T0 exp(theta_h)
    "learned": lambda layer, x, seen: layer.start_temperature * layer.temperature["theta"].exp().
               view(-1, 1, 1),
    # T0 (sigmoid(w_h.x_i + b_h) + 0.5)
    "per_query": lambda layer, x, seen: layer.start_temperature *
                 (layer.temperature(x).sigmoid() + 0.5).transpose(1, 2).unsqueeze(-1),
    # T0 / (a_h log(max(n_i, 2)))
    "log_length": lambda layer, x, seen: layer.start_temperature / (layer.length_scale.view(
        -1, 1, 1) * seen.clamp_min(2).double().log().to(x.dtype).unsqueeze(-1)),
    # sqrt(d), whatever the similarity
    "sqrt_d": lambda layer, x, seen: math.sqrt(layer.head_width),
    # |p| + 0.5
    "shifted_abs": lambda layer, x, seen: layer.temperature.abs() + 0.5,
    # sigmoid(w.mean_t x_t + b) + 0.5: sees later tokens
    "sequence_mean": lambda layer, x, seen:
                     (layer.temp_proj(x.mean(1)).sigmoid() + 0.5).view(-1, 1, 1, 1)
}


# Normalizations: scores (B, H, T, S) and which keys are visible, (T, S), (H, T, S) or as scores, to
# weights, 0 for hidden keys.

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
    # optimizers of ONNX take a number so small for 0
    return weights / (sums + torch.full_like(sums, 1e-8))


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
    size = (ordered >= threshold(k, ordered.cumsum(-1),
                                 ordered.square().cumsum(-1))).sum(-1, keepdim=True)
    inside = z.detach() >= ordered.gather(-1, size - 1)
    kept = z.masked_fill(~inside, 0.0)
    tau = threshold(inside.sum(-1, keepdim=True).to(z.dtype), kept.sum(-1, keepdim=True),
                    kept.square().sum(-1, keepdim=True))
    return (z - tau).masked_fill(~inside, 0.0).square()


def stick_breaking(layer, scores, visible):
    """sigmoid(s_j) times 1 - sigmoid(s_t) of all newer visible keys (Tan et al. 2024)"""
    left = F.logsigmoid(-scores).masked_fill(~visible, 0.0)
    newer = F.pad(left[..., 1:], (0, 1)).flip(-1).cumsum(-1).flip(-1)
    return (F.logsigmoid(scores) + newer).exp().masked_fill(~visible, 0.0)


def softmax_of_largest(scores, visible, counts):
    """Softmax over the counts[i] largest visible scores of row i."""
    places = hide(scores, visible).sort(-1, descending=True).indices
    taken = torch.arange(scores.shape[-1], device=scores.device) < counts.unsqueeze(-1)
    nothing = torch.zeros_like(scores, dtype=torch.bool)
    largest = nothing.scatter(-1, places, taken.expand_as(places))
    return softmax(None, scores, largest & visible)


NORMALIZATIONS = {
    "softmax": softmax,
    # e^s / (1 + sum e^s): one more key of score 0, whose weight is dropped
    "softmax1": lambda _, scores, seen: F.pad(hide(scores, seen), (0, 1)).softmax(-1)[..., :-1],
    "sink": sink,
    # sigmoid(s - log n), n visible keys
    "sigmoid_attn": lambda layer, scores, visible: (scores - visible.sum(-1, keepdim=True).to(
        scores.dtype).log()).sigmoid().masked_fill(~visible, 0.0),
    # sigmoid(s) / (sum sigmoid(s) + 1e-8)
    "sigmoid_norm": lambda layer, scores, visible: divided_by_sum(scores.sigmoid(), visible),
    # max(s, 0) / (sum max(s, 0) + 1e-8)
    "relu_norm": lambda layer, scores, visible: divided_by_sum(scores.relu(), visible),
    # max(s, 0) / n, n visible keys
    "relu_n": lambda _, scores, visible:
              scores.relu().masked_fill(~visible, 0.0) / visible.sum(-1, keepdim=True),
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "stick_breaking": stick_breaking,
    # softmax over the ceil(n / 4) largest of n visible scores
    "top_k": lambda layer, scores, visible: softmax_of_largest(
        scores, visible, torch.div(visible.sum(-1) + 3, 4, rounding_mode="floor")),
    # softmax over the max(1, floor(T / 4)) largest scores: depends on the length
    "topk_quarter": lambda layer, scores, visible: softmax_of_largest(
        scores, visible,
        torch.div(torch.ones_like(visible).sum(-1), 4, rounding_mode="floor").clamp_min(1))
}


# Patterns: which keys a query sees, (T, S), (H, T, S) or (B, H, T, S) for T queries and S keys k
# (B, H, S, d). What they draw is no buffer, which a cast would round, or a loader leave empty.

MASK = 2**64 - 1


def mixed_bits(z):
    """The finaliser of SplitMix64 (Steele et al. 2014), a bijection of 64-bit words."""
    z = (z + 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def random_bits(state):
    while True:
        yield mixed_bits(state)
        state = (state + 0x9e3779b97f4a7c15) & MASK


def normals(words):
    """Numbers of N(0, 1) without end (Box & Muller 1958) from words of 64 random bits."""
    uniform = (2.0**-53 * (word >> 11) for word in words)
    while True:
        radius = math.sqrt(-2.0 * math.log(1.0 - next(uniform)))
        yield radius * math.cos(2.0 * math.pi * next(uniform))


def random_words(layer, part, purpose, index):
    """64 random bits at a time, the same for everybody who asks for the same."""
    name = 0xcbf29ce484222325
    for byte in purpose.encode():
        name = ((name ^ byte) * 0x100000001b3) & MASK
    return random_bits(mixed_bits(mixed_bits(mixed_bits(mixed_bits(layer) ^ part) ^ name) ^ index))


def random_rotations(layer, rounds, width, columns):
    """(rounds, d, buckets / 2) from N(0, 1)."""
    numbers = []
    for r in range(rounds):
        drawn = normals(random_words(layer, r, "rotations", 0))
        numbers += [next(drawn) for _ in range(width * columns)]
    return torch.tensor(numbers, dtype=torch.double, device="cpu").view(rounds, width, columns)


def shown_blocks(layer, heads, count, globals, random):
    """(H, N, N), which blocks of keys each block of queries sees: its own, the one before, the
    first, and some drawn ones.
    """
    shown = torch.zeros(heads, count, count, dtype=torch.bool, device="cpu")
    for head in range(heads):
        for own in range(count):
            others = list(range(globals, own - 1))
            words = random_words(layer, head, "random blocks", own)
            drawn = min(random, len(others))
            for n in range(drawn):
                other = n + (next(words) * (len(others) - n) >> 64)
                others[n], others[other] = others[other], others[n]
            shown[head, own, [*others[:drawn], *range(min(globals, own)),
                              max(own - 1, 0), own]] = True
    return shown


def in_shown_blocks(layer, k, distances, places):
    blocks = torch.div(places, layer.block, rounding_mode="floor")
    shown = layer.blocks_of(k.shape[2]).to(k.device)[:, blocks[-distances.shape[0]:]]
    return (distances >= 0) & shown[:, :, blocks]


def newest_of_hash(layer, k, distances, places):
    """Of each round the last `block` earlier keys of the query's hash; its own where there is none
    (after Kitaev et al. 2020)
    """
    turned = k.detach().double().unsqueeze(2) @ layer.rotations.to(k.device)
    hashes = torch.cat([turned, -turned], -1).argmax(-1)  # (B, H, rounds, S)
    same = hashes[..., -distances.shape[0]:].unsqueeze(-1) == hashes.unsqueeze(-2)
    same = same & (distances > 0)
    shown = (same & (same.flip(-1).long().cumsum(-1).flip(-1) <= layer.block)).any(2)
    return shown | ((distances == 0) & ~shown.any(-1, keepdim=True))


def full_heads(groups, heads, key_heads):
    """Of each head whether the keys that it reads are among the bits of `groups`; none: None."""
    if integer("full_groups", groups, 0, 2**53) >> key_heads:
        raise ValueError(f"full_groups = {groups}, must be below 2^{key_heads}, a bit for each "
                         f"head of keys and values")
    bits = int(groups)
    return [bool(bits >> h * key_heads // heads & 1) for h in range(heads)] if bits else None


def in_window(layer, k, distances, places):
    seen = (distances < layer.window) | (places < layer.globals)
    if layer.full_heads:  # which see all
        seen = seen | torch.tensor(layer.full_heads, device=k.device).view(-1, 1, 1)
    return (distances >= 0) & seen


def in_chosen_blocks(layer, q, k, distances, places):
    """The own block, and of finished ones before it those `chosen` with the largest sum over heads
    of max(q . mean key, 0). q: (B, H, T, d), the newest of k (B, H, S, d)."""
    blocks = torch.div(places, layer.block, rounding_mode="floor")
    own = blocks[-distances.shape[0]:].unsqueeze(1)
    shown, finished = (distances >= 0) & (own == blocks), k.shape[2] // layer.block
    if not min(finished, layer.chosen):
        return shown
    means = k[:, :, :finished * layer.block].unflatten(2, (finished, layer.block)).mean(3)
    scores = (q @ means.transpose(-2, -1)).relu().sum(1, keepdim=True).detach()
    earlier = torch.arange(finished, device=k.device) < own
    best = hide(scores, earlier).argsort(stable=True, dim=-1, descending=True)[..., :layer.chosen]
    taken = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True) & earlier
    taken = taken.repeat_interleave(layer.block, -1)
    return shown | F.pad(taken, (0, k.shape[2] - taken.shape[-1]))


PATTERNS = {
    # j <= i
    "full": lambda layer, k, distances, places: distances >= 0,
    # i - j < window, or j < globals; heads that read keys of full_groups see all
    "window": in_window,
    # i - j < stride, or a multiple of it
    "strided": lambda layer, k, distances, places:
               (distances >= 0) & ((distances < layer.stride) | (distances % layer.stride == 0)),
    "bigbird": in_shown_blocks,
    "lsh": newest_of_hash,
    "indexed": in_chosen_blocks  # which reads queries, too
}

# Gates: the linear layer that each has. g = sigmoid(W x + b).
GATES = {
    "none": None, "input_gate": "gate", "output_gate": "out_gate", "highway": "highway_gate",
    "normed_highway": "highway_gate", "elementwise_gate": "head_gate", "headwise_gate": "head_gate"
}
DECAYS = ("none", "scalar", "channel")
NORMS_OF_HEADS = ("none", "rms")
BIASES = ("bias", "no_bias", "none", "qkv")


class RmsNorm(nn.Module):
    """x / sqrt(mean x^2 + eps) g"""

    def __init__(self, width, epsilon=1e-5):
        super().__init__()
        self.epsilon, self.weight = epsilon, nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = wide(x)
        return (y * (y.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()).to(x) * self.weight


class ShortConvolution(nn.Module):
    """y_t = sum_a w_a z_{t - K + 1 + a} for each channel, a < K. z: (B, T, channels)."""

    def __init__(self, channels, taps):
        super().__init__()
        self.channels, self.taps = channels, taps
        self.weight = nn.Parameter(torch.randn(channels, taps) * 0.02)
        nn.init.ones_(self.weight.data[:, -1])

    def forward(self, z):
        padded = F.pad(z.transpose(1, 2), (self.taps - 1, 0))
        return F.conv1d(padded, self.weight.unsqueeze(1), groups=self.channels).transpose(1, 2)


def of_unit_length(u):
    return (wide(u) * (wide(u).square().sum(-1, keepdim=True) + 1e-6).rsqrt()).to(u)


def so_far(state, name, new, keep=None):
    """`new` (..., T, n) behind what a state holds under a name, which then is the last `keep` of
    both; without a state: `new`.
    """
    if state is None:
        return new
    whole = torch.cat([state[name], new], -2) if name in state else new
    state[name] = whole if keep is None else whole[..., max(0, whole.shape[-2] - keep):, :]
    return whole


class Smear(nn.Module):
    """x_t + s sigmoid(w . x_t[:12]) x_{t-1}, s from 0. x: (B, T, D)."""

    def __init__(self, width):
        super().__init__()
        self.entries = min(width, 12)
        self.weight = nn.Parameter(torch.randn(self.entries) * 0.02)
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, x, state=None):
        first = x.new_zeros(x[:, :1].shape) if state is None or "x" not in state else state["x"]
        if state is not None:
            state["x"] = x[:, -1:]
        before = torch.cat([first, x[:, :-1]], 1)
        gate = (x[..., :self.entries] * self.weight).sum(-1, keepdim=True).sigmoid()
        return x + self.scale * gate * before


class Attention(nn.Module):
    """Causal multi-head attention; what is not given is as in the vanilla transformer.

        x_t <- x_t + s sigmoid(w x_t) x_{t-1} (smear);  x <- x g (input_gate)
        q, k, v = x W_q', x W_k', x W_v' (+ b), convolved;  q, k normalised, rotated;  v + lambda
        E_v[token] (value_embedding) r_ij = similarity(q_i, k_j) / temperature,  c tanh(r_ij / c)
        for soft_cap = c s_ij = r_ij + b(i - j) + sum of log f_t over t = j + 1 .. i
        w = dropout(normalization(s)) over the visible keys
        o = w v, less its part along v_i (value_exclusion), normalised by head, times g
        (elementwise_gate, headwise_gate) y = o W_o' + b_o, times g (output_gate);  g (y - h) for
        highway, g y + (1 - g) x for normed_highway

    Beside pattern lsh k = q / |q|; beside keys shared k and v are an earlier layer's. The genes of
    a layer in config.json are its arguments.

    @param context    L, of which initial values and the temperature of similarity cosine depend.
    @param semantics  published: initial values as in that code; formulas follow from genes alone.
    @param layer      its number from 0, by which patterns bigbird and lsh draw what they need.
    """

    def __init__(self, width, heads, context, similarity="dot", normalization="softmax",
                 gating="none", temperature="fixed", bias="bias", attention_dropout=0.0, kv_heads=0,
                 head_width=0, keys="own", qk_norm="none", qk_eps=1e-5, pattern="full", window=64,
                 globals=0, full_groups=0, stride=16, pattern_block=16, random=1, buckets=4,
                 rounds=1, chosen=2, position="none", rope_base=10000.0, rope_fraction=1.0,
                 rope_factor=1.0,
                 rope_original=0, rope_low=1.0, rope_high=4.0, t5_buckets=32, t5_distance=128,
                 cope_positions=64, decay="none", decay_rank=16, decay_tau=16.0, decay_form="gla",
                 conv=0, head_norm="none", value_exclusion=0, soft_cap=0, smear=0,
                 value_embedding=0, semantics="corrected", layer=0):
        super().__init__()
        for name, value, known in (
            ("similarity", similarity, SIMILARITIES), ("gating", gating, GATES),
            ("normalization", normalization, NORMALIZATIONS), ("bias", bias, BIASES),
            ("temperature", temperature, TEMPERATURES), ("qk_norm", qk_norm, NORMS_OF_HEADS),
            ("pattern", pattern, PATTERNS), ("position", position, POSITIONS),
            ("decay", decay, DECAYS), ("head_norm", head_norm, NORMS_OF_HEADS),
            ("keys", keys, ("own", "shared")), ("decay_form", decay_form, DECAY_FORMS)):
            require_known(name, value, known)
        width, context = integer("width", width, 1, 1e6), integer("context", context, 0, 1e9)
        heads, kv_heads = integer("heads", heads, 1, 1e6), integer("kv_heads", kv_heads, 0, 1e6)
        head_width = integer("head_width", head_width, 0, 65536)
        window, globals = integer("window", window, 1, 2**53), integer("globals", globals, 0, 2**53)
        t5_buckets = integer("t5_buckets", t5_buckets, 2, 65536)
        t5_distance = integer("t5_distance", t5_distance, 1, 2**53)
        conv, self.soft_cap = integer("conv", conv, 0, 8), integer("soft_cap", soft_cap, 0, 65536)
        self.excludes_values = integer("value_exclusion", value_exclusion, 0, 1) == 1
        require_in_range("attention_dropout", attention_dropout, 0, 1)
        require_in_range("qk_eps", qk_eps, 1e-15, 1)
        if (0 if head_width else width) % heads or heads % (kv_heads or heads):
            raise ValueError(f"heads = {heads}, must divide the width {width}, and be a multiple "
                             f"of kv_heads = {kv_heads}")
        if position == "t5" and (t5_buckets % 2 or t5_distance <= t5_buckets // 2):
            raise ValueError(f"t5_buckets = {t5_buckets}, must be even, and half of it below "
                             f"t5_distance = {t5_distance}")
        self.share(keys, full_groups, heads, kv_heads or heads,
                   (similarity, pattern, decay, conv, value_exclusion, value_embedding))
        if pattern == "lsh" and (kv_heads or conv or
                                 (similarity, qk_norm, position) != ("dot", "none", "none")):
            raise ValueError("pattern = lsh, must have kv_heads = 0, conv = 0, similarity = dot, "
                             "qk_norm = none, position = none")
        self.heads, self.key_heads, d = heads, kv_heads or heads, head_width or width // heads
        self.similarity, self.normalization, self.gating = similarity, normalization, gating
        self.temperature_kind, self.pattern, self.position = temperature, pattern, position
        self.attention_dropout, self.window, self.globals = attention_dropout, window, globals
        self.head_width, self.start_temperature = d, start_temperature(similarity, d, context)
        self.rope = rope_of(d, rope_fraction, rope_base, rope_factor, rope_original, rope_low,
                            rope_high)
        inner, of_keys, biased = heads * d, self.key_heads * d, bias in ("bias", "qkv")
        self.q_proj = linear(width, inner, biased)
        if not self.shares:
            if pattern != "lsh":
                self.k_proj = linear(width, of_keys, biased)
            self.v_proj = linear(width, of_keys, biased)
        self.out_proj = linear(inner, width, bias in ("bias", "no_bias"))
        published = semantics == "published"
        self.make_similarity(published)
        self.chosen = integer("chosen", chosen, 0, 65536)
        self.make_pattern(layer, context, stride, pattern_block, random, buckets, rounds)
        if integer("smear", smear, 0, 1):
            self.smear = Smear(width)
        self.smears = smear == 1
        shares = integer("value_embedding", value_embedding, 0, 1) == 1
        self.value_shares = nn.Parameter(torch.zeros(self.key_heads)) if shares else None
        if normalization == "sink":
            self.sink = nn.Parameter(torch.zeros(heads))
        self.make_gate(gating, width, published)
        self.make_temperature(temperature, width, context)
        self.convolves = conv > 0
        for name, channels in zip("qkv" if self.convolves else "", (inner, of_keys, of_keys)):
            setattr(self, name + "_conv", ShortConvolution(channels, conv))
        self.q_norm, self.k_norm, self.head_norm = (
            RmsNorm(d, epsilon) if kind == "rms" else nn.Identity() for kind, epsilon in (
                (qk_norm, qk_eps), ("none" if self.shares else qk_norm, qk_eps), (head_norm, 1e-5)))
        # what changes keys: path or channel, of PASSAGES
        self.passage = next((option for option in (position, decay) if option in PASSAGES), None)
        # whether later layers may read its keys: they are not its queries, nor its own token alone
        alone = (pattern, window, globals, full_groups) == ("window", 1, 0, 0)
        self.gives = not (self.shares or self.passage or alone or pattern == "lsh")
        make_position(self, width, t5_buckets, t5_distance,
                      integer("cope_positions", cope_positions, 1, 65536))
        self.forgets, self.decay_form, self.decay_tau = decay == "scalar", decay_form, decay_tau
        if decay == "channel":
            require_in_range("decay_tau", decay_tau, 1, 2**53)
            make_channel_decay(self, width, integer("decay_rank", decay_rank, 1, 65536), d)
        if self.forgets:
            self.make_forget(width, context)

    def share(self, keys, full_groups, heads, groups, others):
        """Whose keys are read, and which heads see all of them; `others` are genes beside these."""
        similarity, pattern, decay, *rest = others
        self.shares, self.full_heads = keys == "shared", full_heads(full_groups, heads, groups)
        if self.shares and (pattern == "lsh", decay, *rest) != (False, "none", 0, 0, 0):
            raise ValueError("keys = shared, must have another pattern than lsh, decay = none, "
                             "conv = 0, value_exclusion = 0, value_embedding = 0")
        if self.full_heads and ((pattern, decay) != ("window", "none") or similarity == "bilinear"):
            raise ValueError(f"full_groups = {full_groups}, must be beside pattern window, decay "
                             f"none and another similarity than bilinear")

    def make_gate(self, gating, width, published):
        if GATES[gating] is not None:
            start = {"normed_highway": 0.0, "highway": -1.0}.get(gating, 0.0 if published else 2.0)
            out = {"headwise_gate": self.heads, "elementwise_gate": self.heads * self.head_width}
            setattr(self, GATES[gating], linear(width, out.get(gating, width), start=start))

    def make_similarity(self, published):
        d = self.head_width
        if self.similarity == "additive":
            self.attn_fc, self.attn_v = linear(2 * d, d), linear(d, 1, bias=False)
            if not published:
                nn.init.xavier_uniform_(self.attn_fc.weight)
                nn.init.xavier_uniform_(self.attn_v.weight)
        elif self.similarity == "bilinear":
            matrices = [nn.init.xavier_uniform_(torch.empty(d, d)) for _ in range(self.heads)]
            self.bilinear = nn.ParameterDict({"weight": nn.Parameter(torch.stack(matrices))})

    def make_temperature(self, temperature, width, context):
        if temperature == "learned":
            self.temperature = nn.ParameterDict({"theta": nn.Parameter(torch.zeros(self.heads))})
        elif temperature == "per_query":
            self.temperature = linear(width, self.heads, deviation=0.0)
        elif temperature == "log_length":
            self.length_scale = nn.Parameter(
                torch.full((self.heads, ), 1.0 / math.log(max(context, 2))))
        elif temperature == "shifted_abs":
            self.temperature = nn.Parameter(torch.ones(1))
        elif temperature == "sequence_mean":
            self.temp_proj = linear(width, 1)

    def make_forget(self, width, context):
        """Gates that forget over 4 to L tokens, in equal ratios."""
        self.forget = linear(width, self.heads, deviation=0.0)
        for h in range(self.heads):
            tau = 4.0 * (max(4.0, context) / 4.0) ** (h / max(self.heads - 1, 1))
            self.forget.bias.data[h] = -math.log(math.expm1(1.0 / tau))

    def make_pattern(self, layer, context, stride, block, random, buckets, rounds):
        self.stride = integer("stride", stride, 1, 2**53)
        self.block = integer("pattern_block", block, 1, 65536)
        random, buckets = integer("random", random, 0, 65536), integer("buckets", buckets, 2, 65536)
        if self.pattern == "bigbird":
            self.drawn, self.blocks = (layer, random), shown_blocks(layer, self.heads, 0, 0, 0)
            self.blocks_of(context)
        elif self.pattern == "lsh":
            if buckets % 2:
                raise ValueError(f"buckets = {buckets}, must be even")
            rounds = integer("rounds", rounds, 1, 65536)
            self.rotations = random_rotations(layer, rounds, self.head_width, buckets // 2)

    def blocks_of(self, tokens):
        """shown_blocks of so many tokens at least."""
        # a graph has those of the context
        if isinstance(tokens, int) and tokens > self.blocks.shape[1] * self.block:
            (layer, random), count = self.drawn, (tokens - 1) // self.block + 1
            self.blocks = shown_blocks(layer, self.heads, count, self.globals, random)
        return self.blocks

    def by_head(self, vectors, heads):
        """(B, T, heads d) as (B, heads, T, d)."""
        return vectors.reshape(vectors.shape[0], vectors.shape[1], heads,
                               self.head_width).transpose(1, 2)

    def for_each_query_head(self, vectors):
        """(B, G, T, d) as (B, H, T, d): query head h reads key head floor(h G / H)."""
        if self.key_heads == self.heads:
            return vectors
        return vectors.unsqueeze(2).expand(-1, -1, self.heads // self.key_heads, -1,
                                           -1).flatten(1, 2)

    def convolved(self, name, z, state):
        convolution = getattr(self, name)
        return convolution(so_far(state, name, z, convolution.taps - 1))[:, -z.shape[1]:]

    def scores(self, q, k, x, places, distances, visible, state):
        score = SIMILARITIES[self.similarity]
        scores = wide(passed_scores(self, score, q, k, x, state) if self.passage else
                      score(self, q, k))
        scores = scores / TEMPERATURES[self.temperature_kind](self, x, visible.sum(-1))
        if self.soft_cap:
            scores = self.soft_cap * torch.tanh(scores / self.soft_cap)
        if self.position == "cope":
            scores = scores + of_gates(self, scores, q, visible)
        bias = POSITIONS[self.position]
        if bias is not None:
            scores = scores + bias(self, places).to(scores)[:, distances.clamp_min(0)]
        if self.forgets:
            # Sums over many tokens are large and their differences are not.
            sums = so_far(state, "forget",
                          F.logsigmoid(self.forget(x).double())).cumsum(1).transpose(1, 2)
            scores = scores + (sums[..., -x.shape[1]:].unsqueeze(-1) - sums.unsqueeze(-2)).to(
                scores.dtype)
        return scores

    def weights(self, q, k, *where):
        return NORMALIZATIONS[self.normalization](self, self.scores(q, k, *where), where[3])

    def placed(self, vectors, start):
        return rotated(vectors, self.rope, start) if self.position == "rope" else vectors

    def queries(self, q, x, start):
        return self.placed(self.q_norm(q), start)

    def own_keys(self, x, q, state, values, start):
        """Keys and values so far, (B, G, S, d). @param q  (B, H, T, d), before its norm."""
        hashes = self.pattern == "lsh"
        k, v = None if hashes else self.k_proj(x), self.v_proj(x)
        if self.convolves:
            k, v = (self.convolved(n + "_conv", z, state) for n, z in (("k", k), ("v", v)))
        v = self.by_head(v, self.key_heads)
        if self.value_shares is not None:
            if values is None:
                raise ValueError("values = None, must be the tokens' rows in a table of values")
            rows = self.by_head(values[..., :self.key_heads * self.head_width], self.key_heads)
            v = v + self.value_shares.view(-1, 1, 1) * rows
        k = of_unit_length(q) if hashes else self.by_head(k, self.key_heads)
        k = self.placed(self.k_norm(k), start)
        if self.passage:  # each head sees them otherwise
            k = self.for_each_query_head(k)
        return so_far(state, "k", k), so_far(state, "v", v)

    def forward(self, x, residual=None, state=None, values=None, shared=None):
        """
        @param x         (B, T, D), normalised input.
        @param residual  (B, T, D), the stream h, which gating highway reads; None: x.
        @param state     a dict, empty before the first token: what is kept of earlier tokens. x
            goes on behind them, by one token or several.
        @param values    (B, T, D), the tokens' rows in the table of value embeddings, if any.
        @param shared    where layers share keys a list, empty before the first layer: keys and
            values (B, G, S, d) of the nearest earlier layer with its own
        @return  (B, T, D), what is added to h.
        """
        for option in (self.temperature_kind, self.normalization):
            if state is not None and option in ("sequence_mean", "topk_quarter"):
                raise ValueError(f"{option} depends on the whole sequence: there is no state")
        if self.shares and not shared:
            raise ValueError("keys = shared, must be given those of an earlier layer: shared = []")
        start = (shared[0].shape[-2] - x.shape[1] if self.shares else
                 state["k"].shape[-2] if state else 0)
        if self.smears:
            x = self.smear(x, state)
        gate = getattr(self, GATES[self.gating]) if GATES[self.gating] else None
        if self.gating == "input_gate":
            x = x * gate(x).sigmoid()
        q = self.q_proj(x)
        if self.convolves:
            q = self.convolved("q_conv", q, state)
        q = self.by_head(q, self.heads)
        k, v = shared if self.shares else self.own_keys(x, q, state, values, start)
        q = self.queries(q, x, start)
        if self.gives and shared is not None:
            shared[:] = k, v
        v = self.for_each_query_head(v)
        if self.shares or not self.passage:
            k = self.for_each_query_head(k)

        places = torch.arange(k.shape[2], device=x.device)
        distances = places[start:].unsqueeze(1) - places
        read = (q, k) if self.pattern == "indexed" else (k, )
        visible = PATTERNS[self.pattern](self, *read, distances, places)
        weights = self.weights(q, k, x, places, distances, visible, state).to(v)
        of_heads = F.dropout(weights, self.attention_dropout, self.training) @ v  # (B, H, T, d)
        if self.excludes_values:
            own, mixed = wide(v[..., -x.shape[1]:, :]), wide(of_heads)
            along = (mixed * own).sum(-1, True) / (own.square().sum(-1, True) + 1e-6)
            of_heads = (mixed - along * own).to(of_heads)
        of_heads = self.head_norm(of_heads)
        if self.gating == "headwise_gate":
            of_heads = of_heads * gate(x).sigmoid().transpose(1, 2).unsqueeze(-1)
        of_heads = of_heads.transpose(1, 2).flatten(2)
        if self.gating == "elementwise_gate":
            of_heads = of_heads * gate(x).sigmoid()
        return self.gated(self.out_proj(of_heads), x, x if residual is None else residual, gate)

    def gated(self, attended, x, residual, gate):
        if self.gating == "output_gate":
            return attended * gate(x).sigmoid()
        if self.gating == "highway":
            return gate(x).sigmoid() * (attended - residual)
        if self.gating == "normed_highway":
            opened = gate(x).sigmoid()
            return opened * attended + (1 - opened) * x
        return attended
