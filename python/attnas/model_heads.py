"""Attention whose heads have two maps of weights, or keys and values that come from a latent; what
each has of its own is here, what all have is in model_attention.py beside it.
"""

import math

import torch
from torch import nn

if __package__:
    from .model_attention import Attention as Common, RmsNorm, so_far, start_temperature
    from .model_positions import integer, linear, require_known, rope_of, rotated
else:  # in the folder of this file
    from model_attention import Attention as Common, RmsNorm, so_far, start_temperature
    from model_positions import integer, linear, require_known, rope_of, rotated

MAPS = ("single", "difference")


class NormOfHalves(RmsNorm):
    """RMSNorm of either half of a vector."""

    def forward(self, x):
        return super().forward(x.unflatten(-1, (2, -1))).flatten(-2)


class ScaledNorm(RmsNorm):
    """RMSNorm times a number."""

    def __init__(self, width, factor):
        super().__init__(width)
        self.factor = factor

    def forward(self, x):
        return super().forward(x) * self.factor


class Attention(Common):
    """Causal attention of any genes.

        maps difference  w_1 - lambda w_2 of the halves of q and k (Ye et al. 2024)
        kv_rank r        k = W_k c, v = W_v c, c = RMSNorm(W_c x) in R^r; with rope q . k +
                         R(W_q' x) . R(W_k' x) of d / 2 entries, W_k' x of all heads (DeepSeek-V2)
    """

    def __init__(self, width, heads, context, maps="single", kv_rank=0, **genes):
        require_known("maps", maps, MAPS)
        self.rank, self.differs = integer("kv_rank", kv_rank, 0, 65536), maps == "difference"
        super().__init__(width, heads, context, **genes)
        self.entries = 0  # of the part of keys that rotates
        if self.differs:
            self.make_difference(genes)
        elif self.rank:
            self.make_latent(width, genes)
        else:
            return
        scored = self.head_width + self.entries if self.rank else self.head_width // 2
        self.start_temperature = start_temperature(self.similarity, scored, context)
        if self.position == "rope":
            sizes = {"fraction": 1.0, "base": 10000.0, "factor": 1.0, "original": 0, "low": 1.0,
                     "high": 4.0}
            given = (genes.get("rope_" + name, value) for name, value in sizes.items())
            self.rope = rope_of(self.head_width // 2, *given)

    def make_similarity(self, published):
        whole, self.head_width = self.head_width, self.head_width // (2 if self.differs else 1)
        super().make_similarity(published)
        self.head_width = whole

    def make_difference(self, genes):
        d = self.head_width
        if self.rank or d % 2 or self.pattern == "lsh" or genes.get("head_norm", "none") != "none":
            raise ValueError(f"maps = difference, must have kv_rank = 0, head_norm = none, another "
                             f"pattern than lsh and heads of even width, not {d}")
        start = 0.8 - 0.6 * math.exp(-0.3 * genes.get("layer", 0))
        self.lambda_start, self.head_norm = start, ScaledNorm(d, 1 - start)
        if genes.get("qk_norm", "none") != "none":
            epsilon = genes.get("qk_eps", 1e-5)
            self.q_norm = NormOfHalves(d // 2, epsilon)
            if not self.shares:
                self.k_norm = NormOfHalves(d // 2, epsilon)
        for name in ("q1", "k1", "q2", "k2"):
            setattr(self, "lambda_" + name, nn.Parameter(torch.randn(d // 2) * 0.1))

    def make_latent(self, width, genes):
        given = [name for name in ("kv_heads", "head_width", "conv", "value_embedding",
                                   "full_groups") if genes.get(name, 0)]
        if given or self.shares or self.passage or self.pattern == "lsh" or genes.get(
                "qk_norm", "none") != "none":
            raise ValueError(f"kv_rank = {self.rank}, must have keys = own, no qk_norm, lsh, "
                             f"path or decay channel, and 0 of {', '.join(given) or 'kv_heads'}")
        del self.k_proj, self.v_proj
        self.gives = False
        self.kv_down, self.kv_norm = linear(width, self.rank, bias=False), RmsNorm(self.rank)
        self.k_up, self.v_up = (linear(self.rank, width, bias=False) for _ in range(2))
        if self.position == "rope":
            self.entries = self.head_width // 2
            self.q_rope = linear(width, self.heads * self.entries, bias=False)
            self.k_rope = linear(width, self.entries, bias=False)

    def placed(self, vectors, start):
        if self.differs and self.position == "rope":
            return torch.cat([rotated(half, self.rope, start) for half in vectors.chunk(2, -1)], -1)
        return super().placed(vectors, start)

    def rotated_part(self, projected, start):
        """(B, T, n d / 2) as (B, n, T, d / 2), rotated."""
        of_heads = projected.unflatten(-1, (-1, self.entries)).transpose(1, 2)
        return rotated(of_heads, self.rope, start)

    def queries(self, q, x, start):
        if not self.entries:
            return super().queries(q, x, start)
        return torch.cat([q, self.rotated_part(self.q_rope(x), start)], -1)

    def own_keys(self, x, q, state, values, start):
        if not self.rank:
            return super().own_keys(x, q, state, values, start)
        latent = self.kv_norm(self.kv_down(x)).unsqueeze(1)  # what a state keeps
        if self.entries:
            latent = torch.cat([latent, self.rotated_part(self.k_rope(x), start)], -1)
        latent = so_far(state, "k", latent)
        c = latent[:, 0, :, :self.rank]
        k, v = (self.by_head(up(c), self.heads) for up in (self.k_up, self.v_up))
        if self.entries:
            k = torch.cat([k, latent[..., self.rank:].expand(-1, self.heads, -1, -1)], -1)
        return k, v

    def weights(self, q, k, x, *where):
        if not self.differs:
            return super().weights(q, k, x, *where)
        # as twice as many sequences, which share what is kept besides keys
        q, k = (torch.cat(vectors.chunk(2, -1)) for vectors in (q, k))
        first, second = super().weights(q, k, torch.cat([x, x]), *where).chunk(2)
        factor = ((self.lambda_q1 * self.lambda_k1).sum().exp() -
                  (self.lambda_q2 * self.lambda_k2).sum().exp() + self.lambda_start)
        return first - factor * second
