"""model.py of exported models as graphs: traced at one batch and length, run at others. Needs torch."""

import unittest
import warnings

from python_tests import need

need("torch")
import torch
from attnas import model as exported
from attnas import model_attention

torch.set_num_threads(1)

TOLERANCE = 1e-6  # of logits in float32, relative to the largest
TRACED = (2, 8)  # batch and length of the example
RUN = ((2, 8), (3, 16), (1, 24), (5, 3), (1, 1))
CONTEXT = 24


def configuration(model: dict, layer: dict) -> dict:
    """Two vanilla layers but for genes of the model or of the first layer."""
    vanilla = {"mixer": "attn", "heads": 2, "ffn": "gelu", "hidden": 32}
    frame = {"vocabulary": 13, "context": CONTEXT, "width": 16, "dropout": 0.1, "position_embedding": "none", "norm": "layer",
             "norm_place": "pre", "block": "sequential", "tied": True}
    return {"semantics": "corrected", "model": {**frame, **model}, "layers": [{**vanilla, **layer}, vanilla]}


def configurations() -> dict:
    """By name, each option of each gene of model.py, and genes that are numbers. Not what changes keys token by token:
    its loop is as long as the sequence, and a trace's as long as the example."""
    m, a = exported, model_attention
    of_layers = {"similarity": a.SIMILARITIES, "normalization": a.NORMALIZATIONS, "gating": a.GATES,
                 "temperature": a.TEMPERATURES, "bias": a.BIASES, "qk_norm": a.NORMS_OF_HEADS, "position": a.POSITIONS,
                 "decay": a.DECAYS, "head_norm": a.NORMS_OF_HEADS, "ffn": (*m.FeedForward.KINDS, "none")}
    of_models = {"position_embedding": m.Transformer.POSITIONS, "norm": m.NORMS, "norm_place": m.NORM_PLACES, "block": m.BLOCKS,
                 "tied": (True, False)}
    layers = [{gene: option} for gene, options in of_layers.items() for option in options if option not in a.PASSAGES]
    layers += [{"pattern": "window", "window": 3}, {"pattern": "window", "window": 3, "globals": 2},
               {"position": "rope", "rope_fraction": 0.5, "rope_base": 50}, {"position": "t5", "t5_buckets": 8, "t5_distance": 9},
               {"pattern": "strided", "stride": 3}, {"pattern": "bigbird", "pattern_block": 2, "globals": 1},
               {"pattern": "lsh", "pattern_block": 3, "rounds": 2}, {"value_exclusion": 1}, {"soft_cap": 2}, {"smear": 1},
               {"value_embedding": 1}, {"value_embedding": 1, "kv_heads": 1},
               {"kv_heads": 1}, {"heads": 4, "kv_heads": 2}, {"heads": 4, "kv_heads": 1, "pattern": "window"}, {"conv": 3}]
    found = {str(layer): configuration({}, {"hidden": 0, **layer} if layer.get("ffn") == "none" else layer) for layer in layers}
    found.update((f"{gene}={option}", configuration({gene: option}, {}))
                 for gene, options in of_models.items() for option in options)
    no_attention = configuration({}, {})
    no_attention["layers"][0] = {"mixer": "none", "ffn": "gelu", "hidden": 32}
    found["mixer=none"] = no_attention
    convolution = configuration({}, {})
    convolution["layers"][0] = {"mixer": "conv", "conv": 3, "smear": 1, "ffn": "gelu", "hidden": 32}
    found["mixer=conv"] = convolution
    return found


def model_of(config: dict) -> "torch.nn.Module":
    torch.manual_seed(3)
    model = exported.Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5)
    return model


def tokens(batch: int, length: int) -> "torch.Tensor":
    """Ids that repeat, in no order."""
    n = torch.arange(batch * length).view(batch, length)
    return (7 * n + n * n % 5) % 13


class Traces(unittest.TestCase):
    def each(self, graph_of) -> None:
        """@param graph_of  of a model and an example, to what runs as the model does."""
        for name, config in configurations().items():
            with self.subTest(name), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Of every Python number, comparison or loop that a trace would keep as the example has it.
                warnings.simplefilter("error", torch.jit.TracerWarning)
                model = model_of(config)
                graph = graph_of(model, tokens(*TRACED))
                for shape in RUN:
                    expected, found = model(tokens(*shape)), graph(tokens(*shape))
                    self.assertEqual(found.shape, expected.shape)
                    error = ((found - expected).abs().max() / expected.abs().max()).item()
                    self.assertLessEqual(error, TOLERANCE, f"at batch and length {shape}")

    def test_traced_models_take_any_batch_and_length(self) -> None:
        self.each(torch.jit.trace)

    def test_a_traced_step_takes_any_state(self) -> None:
        class Step(torch.nn.Module):
            """One token behind keys and values of others."""

            def __init__(self, layer):
                super().__init__()
                self.layer = layer

            def forward(self, x, k, v):
                state = {"k": k, "v": v}
                return self.layer(x, state=state), state["k"], state["v"]

        for genes in ({}, {"position": "rope"}, {"position": "t5"}, {"position": "alibi", "kv_heads": 1},
                      {"normalization": "top_k", "pattern": "window", "window": 3}):
            with self.subTest(genes), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("error", torch.jit.TracerWarning)
                layer = exported.Attention(16, 2, CONTEXT, **genes).double().eval()
                heads = genes.get("kv_heads", 2)

                def step(batch, seen):
                    return (torch.randn(batch, 1, 16, dtype=torch.double),
                            *torch.randn(2, batch, heads, seen, 8, dtype=torch.double))

                traced = torch.jit.trace(Step(layer), step(2, 5))
                for arguments in (step(2, 5), step(3, 17), step(1, 1)):
                    torch.testing.assert_close(traced(*arguments), Step(layer)(*arguments))

    def test_more_tokens_than_positions_are_refused_traced_or_not(self) -> None:
        model = model_of(configuration({"position_embedding": "learned"}, {}))
        with self.assertRaisesRegex(ValueError, "25 tokens, must be at most 24: positions are learned"):
            model(tokens(1, CONTEXT + 1))
        traced = torch.jit.trace(model, tokens(*TRACED))
        with self.assertRaises((IndexError, RuntimeError)):
            traced(tokens(1, CONTEXT + 1))
