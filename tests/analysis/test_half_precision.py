"""Each option of each mixer in bfloat16, in float16 and under autocast, beside float32, at several lengths. Needs torch.

NAS_FULL=1: up to 4,096 tokens, and prints the deviations (label slow).
"""

import copy
import os
import unittest

from python_tests import need

need("torch")
import torch
from attnas import model, model_attention, model_recurrent

torch.set_num_threads(1)
FULL = "NAS_FULL" in os.environ
LENGTHS = (64, 256, 1024, 4096) if FULL else (64, 600)
# Scores that a rounding puts above each other choose other keys.
CHOOSE = {"top_k", "topk_quarter", "lsh"}
KINDS = ["bfloat16", "float16", "autocast"]
try:
    torch.ones(2, 2).half() @ torch.ones(2, 2).half()
except RuntimeError:  # of torch 1.13 on a processor
    KINDS.remove("float16")


def mixers() -> list:
    """Classes and genes: vanilla, and each option of each gene."""
    a, r = model_attention, model_recurrent
    of_attention = {"similarity": a.SIMILARITIES, "normalization": a.NORMALIZATIONS, "gating": a.GATES, "temperature": a.TEMPERATURES,
                    "qk_norm": a.NORMS_OF_HEADS, "head_norm": a.NORMS_OF_HEADS, "position": a.POSITIONS, "decay": a.DECAYS,
                    "pattern": a.PATTERNS, "conv": (3, ), "value_exclusion": (1, ), "soft_cap": (2, ), "smear": (1, ), "kv_heads": (1, )}
    of_states = [{"update": update, "decay": decay} for update in r.UPDATES for decay in r.DECAYS_OF_STATES]
    of_states += [{"feature": feature, "decay": decay} for feature in r.FEATURES for decay in ("none", "scalar")]
    of_states += [{"gating": gating} for gating in r.GATES_OF_STATES]
    of_states += [{"position": "rope", "decay": "fixed"}, {"conv": 3}, {"update": "delta", "neg_eigen": 1},
                  {"decay": "channel", "decay_form": "softplus"}]
    return [*((a.Attention, {gene: option}) for gene, options in of_attention.items() for option in options),
            (a.Attention, {"pattern": "window", "window": 8, "full_groups": 2}),
            *((r.Recurrent, genes) for genes in of_states), (model.GatedConvolution, {})]


def outputs(layer, x):
    """Of float32, and by kind."""
    with torch.no_grad():
        found = {kind: copy.deepcopy(layer).to(getattr(torch, kind))(x.to(getattr(torch, kind))) for kind in KINDS[:-1]}
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found["autocast"] = layer(x)
        return layer(x), found


def layer_of(kind, genes: dict, length: int):
    torch.manual_seed(1)
    layer = kind(32, **({} if kind is model.GatedConvolution else {"heads": 2}),
                 **({"context": length} if kind is model_attention.Attention else {}), **genes).eval()
    for parameter in layer.parameters():
        parameter.data *= 6 if parameter.dim() > 1 else 1  # outputs of about the size of inputs
    return layer, torch.randn(1, length, 32)


class HalfPrecision(unittest.TestCase):
    def test_each_option_is_as_precise_late_as_early(self) -> None:
        for kind, genes in mixers():
            choose = CHOOSE.intersection(genes.values())
            for length in (min(most, 4096 if kind is model_recurrent.Recurrent else 2048) for most in LENGTHS):
                with self.subTest(f"{kind.__name__} {genes} {length}"):
                    expected, found = outputs(*layer_of(kind, genes, length))
                    late = slice(length - length // 4, length)
                    size = expected[:, late].norm(dim=-1).mean()
                    errors = {name: ((found[name].float() - expected)[:, late].norm(dim=-1).mean() / size).item() for name in KINDS}
                    if FULL:
                        print(kind.__name__, genes, length, *(f"{name} {error:.2g}" for name, error in errors.items()), flush=True)
                    for name, error in errors.items():
                        self.assertLessEqual(error, 0.25 if choose else 0.03 if name != "float16" else 0.004, name)

    def test_no_divisor_is_zero(self) -> None:
        """Where nothing is added up: 1e-8 is 0 in float16, and so is 1e-30."""
        for kind, genes in mixers():
            with self.subTest(f"{kind.__name__} {genes}"):
                layer, x = layer_of(kind, genes, 16)
                for parameter in layer.parameters():
                    if parameter.dim() == 1 and "norm" not in str(genes):
                        parameter.data.zero_()
                for name, found in outputs(layer, torch.zeros_like(x))[1].items():
                    self.assertTrue(found.isfinite().all(), name)
