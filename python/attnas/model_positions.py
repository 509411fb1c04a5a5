"""What layers of model_attention.py and model_recurrent.py, beside it, have in common: positions,
decays of channels, and checks of their arguments.

Letters: as in model_attention.py.
"""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional as F


def wide(x):
    """Half precisions as float32, whose digits sums over many tokens and small divisors need."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def no_autocast(x):
    """Products as precise as what they are of, where autocast is on."""
    try:
        return torch.autocast(x.device.type, enabled=False)
    except RuntimeError:  # of a device that has none
        return contextlib.nullcontext()


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


def linear(inputs, outputs, bias=True, start=0.0, deviation=0.02):
    """A linear layer: its matrix from N(0, deviation^2), its bias from `start`."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.normal_(layer.weight, std=deviation)
    if bias:
        nn.init.constant_(layer.bias, start)
    return layer


# Positions: rope maps queries and keys, path changes keys (PASSAGES), cope reads scores; the others
# give what is added to the score of a key n = 0, 1, ... tokens back, (H, S).

def rotated(vectors, rope, start):
    """Entries m and m + R/2 of the first R turn by t f_m, f_m = base^(-2m/R) / factor; beside
    original tokens fully below `low` turns in them, not above `high` (Llama 3). vectors: (B, heads,
    T, d) from t = start on."""
    half, base, factor, original, low, high = rope
    places = start + torch.arange(vectors.shape[-2], dtype=torch.double).unsqueeze(1)
    f = torch.pow(base, -torch.arange(half, dtype=torch.double) / max(half, 1))
    kept = ((original * f / (2 * math.pi) - low) / (high - low)).clamp(0, 1) if original else 0.0
    angles = places * (f * (kept + (1 - kept) / factor))
    cosines, sines = angles.cos().to(vectors), angles.sin().to(vectors)
    first, second, rest = vectors[..., :half], vectors[..., half:2 * half], vectors[..., 2 * half:]
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines, rest], -1)


def rope_of(head_width, fraction, *sizes):
    """What rotated() takes, of a layer's genes."""
    for name, value, least in zip(("base", "factor", "original", "low", "high"), sizes,
                                  (1, 1, 0, 0, sizes[3])):
        require_in_range("rope_" + name, value, least, 2**53)
    require_in_range("rope_fraction", fraction, 0, 1)
    return (math.floor(fraction * head_width + 0.5) // 2, *sizes)


def alibi_slopes(heads):
    """2^(-8 (h + 1) / H) for H a power of two; else those of the power below, then every other one
    of twice that.
    """
    power = 2 ** int(math.log2(heads))
    eighths = [(h + 1) / power if h < power else (2 * (h - power) + 1) / (2 * power)
               for h in range(heads)]
    return [2.0 ** (-8.0 * eighth) for eighth in eighths]


def first_distances(buckets, furthest):
    """The first distance of each bucket of t5: half of the buckets have one distance each, the
    others share by its logarithm, and from `furthest` on all distances are in the last."""
    exact = buckets // 2
    shared = buckets - exact
    prime = 2**127 - 1  # powers are compared modulo it: they may have many digits

    def bucket(n):
        if n >= furthest:
            return buckets - 1
        place = shared * math.log(n / exact) / math.log(furthest / exact)
        edge = round(place)  # a bucket's first distance may be whole: logarithms are rounded
        on_edge = abs(place - edge) < 1e-9 and (
            pow(n, shared, prime) * pow(exact, edge, prime) -
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
    "cope": None,
    "path": None,
    # -m_h n
    "alibi": lambda layer, n: torch.stack(
        [-slope * n.double() for slope in alibi_slopes(layer.heads)]),
    # b[bucket(n), h]
    "t5": lambda layer, n: layer.relative_bias(
        (n.unsqueeze(1) >= layer.t5_first.to(n)).sum(1) - 1).transpose(0, 1)
}


def make_position(layer, width, t5_buckets, t5_distance, cope_positions):
    """The parameters of a layer's position."""
    if layer.position == "t5":
        layer.relative_bias = nn.Embedding(t5_buckets, layer.heads)
        nn.init.normal_(layer.relative_bias.weight, std=0.02)
        layer.t5_first = torch.tensor(first_distances(t5_buckets, t5_distance), device="cpu")
    elif layer.position == "cope":
        layer.cope = nn.Embedding(cope_positions, layer.head_width)
        nn.init.zeros_(layer.cope.weight)
    elif layer.position == "path":
        layer.path_w = linear(width, layer.heads * layer.head_width, bias=False)
        layer.path_beta = linear(width, layer.heads, bias=False, deviation=0.0)


def of_gates(layer, scores, q, visible):
    """What cope adds: q_i.e[p_ij], p_ij the open gates sigmoid(s) from j to i, between whole ones
    by their distance (Golovneva et al. 2024)."""
    gates = scores.sigmoid().masked_fill(~visible, 0.0)
    places = gates.flip(-1).cumsum(-1).flip(-1).clamp_max(layer.cope.num_embeddings - 1.0)
    products = wide(q) @ wide(layer.cope.weight).T
    near, far = (products.gather(-1, place.long())
                 for place in (places.detach().floor(), places.detach().ceil()))
    return near + (places - places.detach().floor()) * (far - near)


# Passages: keys (B, H, n, d) as the token of x (B, 1, D) leaves them to later ones.

def reflected(layer, keys, x):
    """H_t k, H_t = I - beta w w', w of unit length (Yang et al. 2025)"""
    w = layer.by_head(layer.path_w(x), layer.heads)
    w = wide(w) * (wide(w).square().sum(-1, keepdim=True) + 1e-6).rsqrt()
    beta = 2.0 * wide(layer.path_beta(x)).sigmoid().transpose(1, 2).unsqueeze(-1)
    return wide(keys) - wide(keys) @ w.transpose(-2, -1) * (beta * w)


PASSAGES = {"path": reflected,
            # alpha_tn k_n
            "channel": lambda layer, keys, x: wide(keys) * channel_log_decays(layer, x).exp()}


def passed_scores(layer, score, q, k, x, state):
    """Scores of keys that each token changes, score(layer, q, k) of keys as a query sees them.
    k: (B, H, S, d), earlier ones as a state has kept them."""
    first, rows = k.shape[2] - x.shape[1], []
    seen = wide(k[:, :, :first])
    for t in range(x.shape[1]):
        changed = PASSAGES[layer.passage](layer, seen, x[:, t:t + 1])
        seen = torch.cat([changed, wide(k[:, :, first + t:first + t + 1])], 2)
        row = score(layer, wide(q[:, :, t:t + 1]), seen)
        rows.append(F.pad(row, (0, k.shape[2] - seen.shape[2])))
    if state is not None:
        state["k"] = seen
    return torch.cat(rows, 2)


# Decays of channels, of states and of keys: sizes by `layer`, which has the parameters.

DECAY_FORMS = ("gla", "softplus", "bounded")
LEAST_LOG_DECAY = -5.0  # of a channel and token


def softplus(x):
    return F.softplus(x, threshold=40.0)


def drawn_rates(heads):
    """log A, A from U(1, 16)."""
    return nn.Parameter(torch.empty(heads).uniform_(1.0, 16.0).log())


def drawn_steps(count):
    """b of which softplus(b) is in [0.001, 0.1], with a uniform logarithm."""
    return nn.Parameter(
        torch.empty(count).uniform_(math.log(0.001), math.log(0.1)).exp().expm1().log())


def bounded_steps(heads, features):
    """b of form bounded, where -log alpha begins at 0.001 to 0.1 in equal ratios within a head."""
    shares = torch.linspace(0, 1, features, dtype=torch.double) if features > 1 else torch.full(
        (1, ), 0.5, dtype=torch.double)
    return nn.Parameter(-(5.0 / (0.001 * 100.0 ** shares) - 1.0).log().float().repeat(heads))


def make_channel_decay(layer, width, rank, features):
    """W_2 W_1 x of H f channels, and what its form has besides."""
    rows, gla = layer.heads * features, layer.decay_form == "gla"
    layer.decay_down, layer.decay_up = linear(width, rank, bias=False), linear(rank, rows, bias=gla)
    if not gla:
        bounded = layer.decay_form == "bounded"
        layer.decay_log_rate = (nn.Parameter(torch.zeros(layer.heads))
                                if bounded else drawn_rates(layer.heads))
        layer.decay_step_bias = (bounded_steps(layer.heads, features)
                                 if bounded else drawn_steps(rows))


def channel_log_decays(layer, x):
    """log alpha of x (B, T, D), (B, H, T, f)."""
    logits = wide(layer.decay_up(layer.decay_down(x)))
    if layer.decay_form != "gla":
        logits = logits + layer.decay_step_bias
    logits = logits.reshape(*x.shape[:2], layer.heads, -1).transpose(1, 2)
    if layer.decay_form == "gla":
        return (F.logsigmoid(logits) / layer.decay_tau).clamp_min(LEAST_LOG_DECAY)
    rates = wide(layer.decay_log_rate).exp().view(-1, 1, 1)
    if layer.decay_form == "bounded":
        return LEAST_LOG_DECAY * (rates * logits).sigmoid()
    return (-rates * softplus(logits)).clamp_min(LEAST_LOG_DECAY)
