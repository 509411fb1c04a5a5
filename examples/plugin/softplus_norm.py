"""softplus_norm.so in PyTorch."""

from torch.nn import functional as F

from attnas.model_attention import NORMALIZATIONS


def softplus_norm(layer, scores, visible):
    positive = F.softplus(scores).masked_fill(~visible, 0.0)
    return positive / positive.sum(-1, keepdim=True).clamp_min(1e-30)


NORMALIZATIONS["softplus_norm"] = softplus_norm
