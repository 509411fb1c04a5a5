"""What the maps of a trained model say: the weights of attention, and what recurrent layers do to
values, written as such.

Letters: B sequences, H heads, T tokens, queries i, keys j. A map A (B, H, T, T) holds what query i
takes of value j: rows need not sum to 1, weights may be negative, hidden keys have exactly 0.
`visible` marks the keys of each query, all of them j <= i.

A statistic is one number for each sequence and head, (B, H), in float64; NaN where it is not
defined. The first FIRST_QUERY queries, which see few keys, are left out of everything.
docs/files.md has the formulas ("attention.json").
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnas import model_attention
from attnas.model_attention import random_bits

FIRST_QUERY = 8
SINK_MASS = 0.3  # a head whose first token has more of a row, on average, has a sink
LIGHT_ROW = 0.5  # rows of less mass abstain
EXAMPLE_TOKENS = 128
AT_ONCE = 8  # sequences
GATES_OF_HEADS = ("elementwise_gate", "headwise_gate")


@dataclass
class Record:
    """What a layer that has maps computed in a forward pass."""

    layer: int  # its place in the model
    weights: Tensor | None = None
    visible: Tensor | None = None  # (T, T), (H, T, T) or as weights
    scores: Tensor | None = None  # what the normalization reads; None of recurrent layers
    log_forget: Tensor | None = None  # (B, H, T) of attention
    gate: Tensor | None = None  # (B, T, D) or (B, T, H), in [0, 1]
    gated: Tensor | None = None  # (B, T, D), what the gate multiplies
    state: Tensor | None = None  # S after the last token, (B, H, f, d)
    log_decays: Tensor | None = None  # of states, (B, H, T, 1 or f)
    gates: dict[str, Tensor] = field(default_factory=dict)  # of a state's update, (B, H, T, n)


@contextlib.contextmanager
def _watched(layer: nn.Module, method: str, seen: Callable[..., None]) -> Iterator[None]:
    """`seen` is given the arguments and the result of each call of a method."""
    own = getattr(layer, method)

    def call(*arguments):
        found = own(*arguments)
        seen(*arguments, found)
        return found

    setattr(layer, method, call)
    try:
        yield
    finally:
        delattr(layer, method)


def _watch_weights(layer: nn.Module, record: Record, stack: contextlib.ExitStack) -> None:
    def seen(_q, _k, x, _places, _distances, visible, _state, weights):
        record.weights, record.visible = weights, visible
        if layer.forgets:
            record.log_forget = F.logsigmoid(layer.forget(x).double()).transpose(1, 2)

    def scored(*arguments):
        if not layer.differs:  # of two maps neither is what is taken of values
            record.scores = arguments[-1]

    stack.enter_context(_watched(layer, "weights", seen))
    stack.enter_context(_watched(layer, "scores", scored))


def _watch_attention(layer: nn.Module, record: Record, stack: contextlib.ExitStack) -> None:
    _watch_weights(layer, record, stack)
    name = model_attention.GATES[layer.gating]
    if name is None:
        return

    def gate(_module, inputs, logits):
        record.gate = logits.sigmoid()
        if layer.gating == "input_gate":
            record.gated = inputs[0]

    def of_heads(_module, _inputs, mixed):
        if layer.gating in GATES_OF_HEADS:
            record.gated = mixed.transpose(1, 2).flatten(2)

    def attended(_module, _inputs, mixed):
        if layer.gating not in (*GATES_OF_HEADS, "input_gate"):
            record.gated = mixed

    for part, hook in ((name, gate), ("head_norm", of_heads), ("out_proj", attended)):
        stack.callback(getattr(layer, part).register_forward_hook(hook).remove)


def _watch_recurrent(layer: nn.Module, record: Record, stack: contextlib.ExitStack) -> None:
    def seen(outputs, x, _gated):
        q, k, v = layer.vectors(x, None)
        erased, v = layer.gated_update(x, k, v)
        record.log_decays = layer.log_decays(x)
        record.gates = _update_gates(layer, x)
        if not layer.sums:
            q = q / math.sqrt(layer.key_width)
        weights, record.state = implicit_map(q, k, v, record.log_decays, erased,
                                             record.gates.get("beta"))
        if layer.sums:
            weights = weights / (weights.sum(-1, keepdim=True)
                                 + (1e-30 if layer.feature == "favor" else 1e-6))
        record.weights = weights.to(x.dtype)
        record.visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if layer.gating not in ("none", "swish_gate"):  # SiLU does not end at 1
            logits = layer.gate_up(layer.gate_down(x)) if layer.gate_rank else layer.head_gate(x)
            record.gate, record.gated = logits.sigmoid(), outputs

    stack.enter_context(_watched(layer, "gated", seen))


def _update_gates(layer: nn.Module, x: Tensor) -> dict[str, Tensor]:
    factor = 2.0 if layer.doubles else 1.0
    if layer.update == "delta":
        return {"beta": layer.by_head(layer.beta(x)).sigmoid() * factor}
    if layer.update == "delta2":
        return {"erase": layer.by_head(layer.erase(x)).sigmoid() * factor,
                "write": layer.by_head(layer.write(x)).sigmoid()}
    return {}


def implicit_map(q: Tensor, k: Tensor, v: Tensor, log_decays: Tensor | None, erased: Tensor | None,
                 write: Tensor | None) -> tuple[Tensor, Tensor]:
    """What recurrent heads do to values, A with o_i = sum_j A_ij v_j, in float64, and the state
    behind the last token: the recurrence of values v, beside which stand unit vectors, one for each
    token.

    @param write  (B, H, T, 1), by which the unit vectors are written; None: 1.
    @see Ali et al. (2024), arXiv:2403.01590; Yang et al. (2024), arXiv:2406.06484, section 3.
    """
    batch, heads, tokens, features = q.shape
    units = torch.eye(tokens, dtype=torch.double).expand(batch, heads, tokens, tokens)
    values = torch.cat([v.double(), units if write is None else units * write], -1)
    width = v.shape[-1]
    s = values.new_zeros(batch, heads, features, values.shape[-1])
    rows = []
    for t in range(tokens):
        of_token = slice(t, t + 1)
        known = width + t + 1  # the unit vectors of later tokens are not there yet
        now = s[..., :known]
        if log_decays is not None:
            now.mul_(log_decays[:, :, of_token].double().exp().transpose(-2, -1))
        u = values[:, :, of_token, :known]
        if erased is not None:
            u = u - erased[:, :, of_token].double() @ now
        now.add_(k[:, :, of_token].double().transpose(-2, -1) @ u)
        rows.append(F.pad((q[:, :, of_token].double() @ now)[..., width:], (0, tokens - t - 1)))
    return torch.cat(rows, 2), s[..., :width]


_WATCHES = {"attention": _watch_attention, "recurrent": _watch_recurrent}


@torch.no_grad()
def recorded(model: nn.Module, tokens: Tensor) -> tuple[Tensor, list[Record]]:
    """Logits, and what the layers that have maps compute, in their order."""
    records = []
    with contextlib.ExitStack() as stack:
        for number, block in enumerate(model.layers):
            if block.mixer in _WATCHES and not getattr(getattr(block, block.mixer), "near", 0):
                records.append(Record(number))
                _WATCHES[block.mixer](getattr(block, block.mixer), records[-1], stack)
        return model(tokens), records


def maps_of(weights: Tensor) -> list:
    """(H, T, T) as [head][query][key <= query]."""
    return [[row[:i + 1] for i, row in enumerate(head)] for head in weights.double().tolist()]


# Statistics


def _distances(tokens: int) -> Tensor:
    places = torch.arange(tokens)
    return places.unsqueeze(1) - places


def _counted(rows: Tensor) -> Tensor:
    """Those of the queries that count, of (..., T, C)."""
    return rows[..., FIRST_QUERY:, :].double()


def _over_queries(values: Tensor) -> Tensor:
    """The mean of what is defined, of (B, H, T)."""
    return values[..., FIRST_QUERY:].double().nanmean(-1)


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    return (a / b).masked_fill(b == 0.0, math.nan)


def _entropies(sizes: Tensor) -> Tensor:
    """Of shares of the last dimension, nats; NaN where all are 0."""
    sums = sizes.sum(-1, keepdim=True)
    shares = sizes / sums
    return -torch.xlogy(shares, shares).sum(-1).masked_fill(sums.squeeze(-1) == 0.0, math.nan)


def _moments(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the last two dimensions."""
    mean = values.mean((-2, -1), keepdim=True)
    return mean.flatten(1), (values - mean).square().mean((-2, -1)).sqrt()


def distance_profile(maps: Tensor) -> Tensor:
    """a(n), the mean of |A_{i,i-n}| over the queries that count, (B, H, T)."""
    sizes, tokens = maps.double().abs(), maps.shape[-1]
    diagonals = (sizes.diagonal(-n, -2, -1)[..., max(FIRST_QUERY - n, 0):] for n in range(tokens))
    return torch.stack([diagonal.mean(-1) for diagonal in diagonals], -1)


def _slopes(x: Tensor, y: Tensor, there: Tensor) -> Tensor:
    """Of least-squares lines through the points that are there; NaN for fewer than 3."""
    weight = there.double()
    count = weight.sum(-1, keepdim=True)
    centred = (x - (x * weight).sum(-1, keepdim=True) / count) * weight
    slope = (centred * y.masked_fill(~there, 0.0)).sum(-1) / centred.square().sum(-1)
    return slope.masked_fill(count.squeeze(-1) < 3.0, math.nan)


def map_statistics(maps: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """What a map says of itself."""
    if maps.dim() != 4 or maps.shape[2] != maps.shape[3] or maps.shape[2] <= FIRST_QUERY:
        raise ValueError(f"maps of the shape {tuple(maps.shape)}, must be (B, H, T, T) with "
                         f"T > {FIRST_QUERY}")
    tokens, masses = maps.shape[-1], maps.double().sum(-1)
    entropies, counts = _entropies(maps.double().abs()), visible.sum(-1).double()
    sizes, apart = _counted(maps).abs(), _distances(tokens)[FIRST_QUERY:]
    total = sizes.sum((-2, -1))
    n = torch.arange(1, tokens // 2 + 1)
    profile = distance_profile(maps)[..., n]
    return {"row_mass": _over_queries(masses),
            "light_rows": _over_queries((masses < LIGHT_ROW).double()),
            "entropy": _over_queries(entropies),
            "entropy_ratio": _over_queries(_ratio(entropies, counts.log())),
            "effective_keys": _over_queries(entropies.exp()),
            "sink_mass": _over_queries(maps[..., 0]),
            "mean_distance": _ratio((sizes * apart).sum((-2, -1)), total),
            **{f"within_{reach}": _ratio((sizes * (apart < reach)).sum((-2, -1)), total)
               for reach in (8, 32, 128)},
            "distance_slope": _slopes(n.double().log(), profile.log(), profile > 0.0)}


def score_statistics(scores: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """How sharp scores are, and the largest of them."""
    counts, seen = visible.sum(-1).double(), scores.double().masked_fill(~visible, 0.0)
    mean = (seen.sum(-1) / counts).unsqueeze(-1)
    variance = (seen - mean).masked_fill(~visible, 0.0).square().sum(-1) / counts
    return {"score_sd": _over_queries(variance.sqrt()),
            "score_maximum": _counted(scores.masked_fill(~visible, -math.inf)).amax((-2, -1))}


def gate_statistics(gates: Tensor, outputs: Tensor) -> dict[str, Tensor]:
    """How open gates (B, H, T, C or 1) in [0, 1] are, and Pearson's correlation with the size of
    what they multiply."""
    of_gates, sizes = _counted(gates), _counted(outputs).abs()
    mean, deviation = _moments(of_gates)
    opened = of_gates.expand_as(sizes)
    (gate, gate_sd), (size, size_sd) = _moments(opened), _moments(sizes)
    return {"gate_mean": mean.view_as(deviation), "gate_sd": deviation,
            "gate_shut": (of_gates < 0.1).double().mean((-2, -1)),
            "gate_open": (of_gates > 0.9).double().mean((-2, -1)),
            "gate_output": _ratio((opened * sizes).mean((-2, -1)) - gate * size, gate_sd * size_sd)}


def memory_statistics(log_forget: Tensor) -> dict[str, Tensor]:
    """How long forget gates (B, H, T) of attention remember."""
    sums = log_forget.double().cumsum(-1)
    kept = (sums.unsqueeze(-1) - sums.unsqueeze(-2)).exp()
    return {"memory_length": _over_queries(kept.tril().sum(-1)),
            "half_life": -math.log(2.0) / _over_queries(log_forget),
            "forget_mean": _over_queries(log_forget.double().exp())}


def state_statistics(record: Record) -> dict[str, Tensor]:
    """How long states remember, by the geometric mean of a channel's decays; gates of the update;
    directions that a state uses."""
    squares = torch.linalg.svdvals(record.state.double()).square()
    found = {"state_used": _entropies(squares).exp() / record.state.shape[2]}
    if record.log_decays is not None:
        logs = _counted(record.log_decays)
        of_channels = logs.mean(2)
        found |= {"memory_length": (1.0 / torch.expm1(of_channels).abs()).mean(-1),
                  "half_life": (math.log(2.0) / of_channels.abs()).mean(-1),
                  "forget_mean": logs.exp().mean((2, 3))}
    for name, gates in record.gates.items():
        found[f"{name}_mean"], found[f"{name}_sd"] = _moments(_counted(gates))
    return found


def repeated_tokens(sequences: int, length: int, vocabulary: int,
                    seed: int) -> tuple[Tensor, Tensor]:
    """Sequences of random tokens that repeat themselves, (B, T), and their periods, (B): token t is
    token t mod P, P uniform in [T / 4, T / 2], so that what repeats must be read off the tokens
    (Olsson et al. 2022, arXiv:2209.11895)."""
    if sequences < 1 or length < 2 * FIRST_QUERY or vocabulary < 1:
        raise ValueError(f"{sequences} repeated sequences of {length} tokens from {vocabulary}, "
                         f"must be at least 1 of {2 * FIRST_QUERY} from 1")
    random, rows, periods = Random(seed), [], []
    for _ in range(sequences):
        periods.append(length // 4 + random.below(length // 2 - length // 4 + 1))
        row = [random.below(vocabulary) for _ in range(periods[-1])]
        rows.append([row[t % periods[-1]] for t in range(length)])
    return torch.tensor(rows), torch.tensor(periods)


class Random:
    """SplitMix64: the same numbers everywhere."""

    def __init__(self, seed: int) -> None:
        self.bits = random_bits(seed)

    def below(self, n: int) -> int:
        """Uniform in 0 .. n - 1."""
        return next(self.bits) * n >> 64

    def uniform(self) -> float:
        """In [0, 1)."""
        return (next(self.bits) >> 11) * 2.0**-53


def head_scores(maps: Tensor, tokens: Tensor) -> dict[str, Tensor]:
    """Shares of |A| on the keys that heads of a known kind look at, over the queries that have such
    a key."""
    apart, equal = _distances(tokens.shape[1]), tokens.unsqueeze(2) == tokens.unsqueeze(1)
    after = F.pad(equal[..., :-1], (1, 0))  # the key behind the equal one
    return {"previous_token": attended_share(maps, (apart == 1).expand_as(equal)),
            "duplicate_token": attended_share(maps, equal & (apart > 0)),
            "induction": attended_share(maps, after & (apart >= 0))}


def attended_share(maps: Tensor, keys: Tensor) -> Tensor:
    """@param keys  (B, T, T) bool."""
    wanted = _counted(keys).unsqueeze(1)
    sizes = _counted(maps).abs() * wanted.amax(-1, keepdim=True)
    return _ratio((sizes * wanted).sum((-2, -1)), sizes.sum((-2, -1)))


def in_context_score(nll: Tensor, periods: Tensor) -> Tensor:
    """Mean nll of the first copy minus that of the second, over the pairs of neighbours that lie
    within a copy, (B). The last position predicts nothing that was drawn."""
    place, period = torch.arange(nll.shape[1]), periods.unsqueeze(1)
    counts = ((place + 1).remainder(period) != 0) & (place < nll.shape[1] - 1)

    def mean_over(copy):
        weight = (copy & counts).double()
        return _ratio(nll.double().masked_fill(weight == 0.0, 0.0).sum(1), weight.sum(1))

    return mean_over(place < period) - mean_over((place >= period) & (place < 2 * period))


# Analyses


def by_head(channels: Tensor, heads: int) -> Tensor:
    """(B, T, C) as (B, H, T, C / H)."""
    return channels.unflatten(2, (heads, -1)).transpose(1, 2)


class _Layer:
    """What is added up of a layer, batch by batch."""

    def __init__(self) -> None:
        self.statistics: dict[str, list[Tensor]] = {}
        self.gate: dict[str, list[Tensor]] = {}
        self.profiles: list[Tensor] = []
        self.counts: Tensor | int = 0
        self.example: list = []

    def add(self, own: Record, repeated: Record, again: Tensor) -> None:
        found = map_statistics(own.weights, own.visible)
        if own.scores is not None:
            found |= score_statistics(own.scores, own.visible)
        if own.log_forget is not None:
            found |= memory_statistics(own.log_forget)
        if own.state is not None:
            found |= state_statistics(own)
        _append(self.statistics, found | head_scores(repeated.weights, again))
        self.profiles.append(distance_profile(own.weights))
        if own.gate is not None:
            gates = by_head(own.gate, own.weights.shape[1])
            _append(self.gate, gate_statistics(gates, by_head(own.gated, gates.shape[1])))
            self.counts = self.counts + torch.stack([head.double().histc(20, 0.0, 1.0) for head in
                                                     gates[:, :, FIRST_QUERY:].unbind(1)])
        self.example = self.example or maps_of(own.weights[0, :, :EXAMPLE_TOKENS, :EXAMPLE_TOKENS])

    def found(self) -> dict:
        """statistics and gate by name as [head][sequence], profile [head][n], histogram
        [head][bin], example."""
        return {"statistics": _joined(self.statistics), "gate": _joined(self.gate),
                "profile": torch.cat(self.profiles).nanmean(0).tolist(),
                "histogram": (self.counts / self.counts.sum(-1, keepdim=True)).tolist()
                if self.gate else [], "example": self.example}


def _append(to: dict[str, list[Tensor]], found: dict[str, Tensor]) -> None:
    for name, values in found.items():
        to.setdefault(name, []).append(values)


def _joined(parts: dict[str, list[Tensor]]) -> dict[str, list]:
    return {name: torch.cat(tensors).t().tolist() for name, tensors in parts.items()}


def _nll(logits: Tensor, targets: Tensor) -> Tensor:
    """Of the token after each, (B, T) nats; 0 where nothing is asked."""
    losses = F.cross_entropy(logits.flatten(0, 1), targets.clamp_min(-1).flatten(), ignore_index=-1,
                             reduction="none")
    return losses.double().view_as(targets)


def analysis(model: nn.Module, tokens: Tensor, targets: Tensor, vocabulary: int,
             seed: int) -> tuple[dict[str, list], dict[int, dict]]:
    """Looks into a model: its maps on held-out sequences, and on as many of random tokens that
    repeat themselves.

    @param tokens   (B, T), 2 FIRST_QUERY <= T <= context.
    @param targets  (B, T), below 0 where nothing is asked.
    @param seed     of the repeated tokens.
    @return  of the model nll, in_context_score and, where a layer attends, sink_rate, by sequence;
        of layers by their places what _Layer.found() says.
    """
    repeated, periods = repeated_tokens(*tokens.shape, vocabulary, seed)
    layers: dict[int, _Layer] = {}
    of_model: dict[str, list[Tensor]] = {}
    for first in range(0, len(tokens), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        again = repeated[part]
        (logits, own), (repeats, others) = recorded(model, tokens[part]), recorded(model, again)
        nll, asked = _nll(logits, targets[part]).sum(1), (targets[part] >= 0).sum(1)
        nll_again = _nll(repeats, F.pad(again[:, 1:], (0, 1), value=-1))
        for record, other in zip(own, others):
            layers.setdefault(record.layer, _Layer()).add(record, other, again)
        # Weights of states have no scale of their own, where a norm follows.
        masses = [layers[record.layer].statistics["sink_mass"][-1] for record in own
                  if record.scores is not None]
        _append(of_model, {"nll": nll / asked.double(),
                           "in_context_score": in_context_score(nll_again, periods[part])})
        if masses:
            _append(of_model, {"sink_rate": (torch.cat(masses, 1) > SINK_MASS).double().mean(-1)})
    return ({name: torch.cat(parts).tolist() for name, parts in of_model.items()},
            {number: layer.found() for number, layer in layers.items()})
