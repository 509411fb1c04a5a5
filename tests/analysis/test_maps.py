"""What is said of maps whose statistics are known, and of models whose weights are set by hand."""

import argparse
import collections
import math
import unittest

from python_tests import need

need("torch")
import torch

from attnas import maps, use_model
from attnas.model import Transformer

TOKENS, VOCABULARY, SEQUENCES = 32, 50, 10  # more sequences than are computed at once
LOWER = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()


def configuration(*layers: dict, heads: int = 2) -> dict:
    """Of a model of vanilla layers but for some genes."""
    frame = {"vocabulary": VOCABULARY, "context": TOKENS, "width": TOKENS, "dropout": 0.1,
             "position_embedding": "learned", "norm": "layer", "norm_place": "pre",
             "block": "sequential", "tied": True}
    own = [{"mixer": "attn", "heads": heads, "ffn": "gelu", "hidden": 64, **layer} for layer in layers]
    for layer in own:
        if layer["mixer"] == "conv":
            del layer["heads"]
    return {"semantics": "corrected", "model": frame, "layers": own}


def mean_over_queries(value) -> float:
    """Of a function of the number of keys that a query sees."""
    return sum(value(i + 1) for i in range(maps.FIRST_QUERY, TOKENS)) / (TOKENS - maps.FIRST_QUERY)


def for_all(one: torch.Tensor) -> torch.Tensor:
    """One map for all sequences and heads."""
    return one.double().expand(3, 2, TOKENS, TOKENS)


def looking_back(tokens: int) -> torch.Tensor:
    """1 at key i - tokens, for the queries that have it."""
    return torch.eye(TOKENS).roll(-tokens, 1).tril()


class Statistics(unittest.TestCase):
    """Of maps by hand."""

    def expect(self, found: torch.Tensor, value: float, places: int = 10) -> None:
        """That each sequence and head has this value."""
        for each in found.flatten().tolist():
            if math.isnan(value):
                self.assertTrue(math.isnan(each))
            else:
                self.assertAlmostEqual(each, value, places)

    def test_even_attention(self):
        found = maps.map_statistics(for_all(LOWER / LOWER.sum(-1, keepdim=True)), LOWER)
        self.expect(found["row_mass"], 1.0, 6)
        self.expect(found["entropy_ratio"], 1.0, 6)
        self.expect(found["effective_keys"], mean_over_queries(lambda n: n), 5)
        self.expect(found["sink_mass"], mean_over_queries(lambda n: 1 / n), 6)
        self.expect(found["mean_distance"], mean_over_queries(lambda n: (n - 1) / 2), 5)

    def test_one_key_and_rows_without_weights(self):
        one = looking_back(1)
        one[20] = 0.0
        found = maps.map_statistics(for_all(one), LOWER)
        self.expect(found["entropy"], 0.0)
        self.expect(found["row_mass"], 23 / 24)
        self.expect(found["light_rows"], 1 / 24)
        self.expect(found["mean_distance"], 1.0)
        self.expect(found["within_8"], 1.0)
        nothing = maps.map_statistics(for_all(torch.zeros(TOKENS, TOKENS)), LOWER)
        for name in ("entropy", "entropy_ratio", "mean_distance", "within_8", "distance_slope"):
            self.expect(nothing[name], math.nan)
        with self.assertRaisesRegex(ValueError, "must be .B, H, T, T. with T > 8"):
            maps.map_statistics(torch.zeros(1, 1, 8, 8), LOWER)

    def test_size_of_negative_weights_and_first_queries(self):
        one = torch.rand(TOKENS, TOKENS).tril()
        found = maps.map_statistics(for_all(one), LOWER)
        other = one * torch.randn(TOKENS).sign()
        other[:maps.FIRST_QUERY] = 7.0
        again = maps.map_statistics(for_all(other), LOWER)
        for name in ("entropy", "effective_keys", "mean_distance", "within_8", "distance_slope"):
            torch.testing.assert_close(found[name], again[name])

    def test_slope_of_a_power_law(self):
        apart = (torch.arange(TOKENS).unsqueeze(1) - torch.arange(TOKENS)).clamp_min(1).double()
        self.expect(maps.map_statistics(for_all(apart.pow(-1.5).tril()), LOWER)["distance_slope"], -1.5)

    def test_scores_of_visible_keys(self):
        scores = (2.0 * torch.arange(TOKENS)).expand(TOKENS, TOKENS).masked_fill(~LOWER, 1e30)
        found = maps.score_statistics(for_all(scores), LOWER)
        self.expect(found["score_sd"], mean_over_queries(lambda n: math.sqrt((n * n - 1) / 3)), 9)
        self.expect(found["score_maximum"], 62.0)

    def test_gates(self):
        outputs = torch.randn(3, 2, TOKENS, 4, dtype=torch.double)
        gates = torch.tensor([0.05, 0.95, 0.5, 0.5], dtype=torch.double).expand(3, 2, TOKENS, 4)
        found = maps.gate_statistics(gates, outputs)
        self.expect(found["gate_mean"], 0.5)
        self.expect(found["gate_sd"], math.sqrt(2 * 0.45**2 / 4))
        self.expect(found["gate_shut"], 0.25)
        self.expect(found["gate_open"], 0.25)
        self.expect(maps.gate_statistics(outputs.abs() / 10, outputs)["gate_output"], 1.0)
        self.expect(maps.gate_statistics(gates[..., 2:3], outputs)["gate_output"], math.nan)

    def test_memory(self):
        logs = torch.full((3, 2, TOKENS), math.log(0.5), dtype=torch.double)
        found = maps.memory_statistics(logs)
        self.expect(found["half_life"], 1.0)
        self.expect(found["forget_mean"], 0.5)
        self.expect(found["memory_length"], mean_over_queries(lambda n: 2 * (1 - 0.5**n)))

    def test_states(self):
        alpha = torch.tensor([0.5, 0.75]).double().expand(3, 2, TOKENS, 2)
        opens = torch.arange(TOKENS).remainder(2).double().view(1, 1, -1, 1).expand(3, 2, -1, 1)
        record = maps.Record(0, state=torch.ones(3, 2, 6, 4), log_decays=alpha.log(), gates={"beta": opens})
        found = maps.state_statistics(record)
        self.expect(found["memory_length"], 3.0)
        self.expect(found["half_life"], (1 + math.log(2) / -math.log(0.75)) / 2)
        self.expect(found["forget_mean"], 0.625)
        self.expect(found["beta_mean"], 0.5)
        self.expect(found["beta_sd"], 0.5)
        self.expect(found["state_used"], 1 / 6, 6)
        record = maps.Record(0, state=torch.diag(torch.tensor([2.0, -2.0, 0.0, 0.0])).expand(3, 2, 4, 4))
        self.expect(maps.state_statistics(record)["state_used"], 0.5)
        record.state = torch.zeros(3, 2, 4, 4)
        self.expect(maps.state_statistics(record)["state_used"], math.nan)

    def test_repeated_tokens(self):
        tokens, periods = maps.repeated_tokens(50, 128, 1000, 1)
        self.assertTrue(32 <= periods.min() and periods.max() <= 64 and periods.max() - periods.min() > 20)
        for row, period in zip(tokens, periods):
            self.assertTrue(row[period:].equal(row[:-period]))
            self.assertGreater(len(row.unique()), period * 8 // 10)
        self.assertTrue(maps.repeated_tokens(50, 128, 1000, 1)[0].equal(tokens))
        self.assertEqual(tokens[0, :4].tolist(), [745, 971, 444, 444])
        with self.assertRaisesRegex(ValueError, "15 tokens from 10, must be at least 1 of 16 from 1"):
            maps.repeated_tokens(1, 15, 10, 1)

    def test_heads_of_known_kinds(self):
        tokens, _ = maps.repeated_tokens(3, 64, 100000, 3)
        equal = tokens.unsqueeze(2) == tokens.unsqueeze(1)
        after = equal.roll(1, 2).tril()
        after[:, :, 0] = False
        kinds = torch.stack([torch.eye(64).roll(-1, 1).tril().expand(3, 64, 64), equal.tril(-1), after], 1).double()
        found = maps.head_scores(kinds, tokens)
        for h, name in enumerate(("previous_token", "duplicate_token", "induction")):
            for other in range(3):
                self.expect(found[name][:, other], float(h == other))
        nothing = maps.head_scores(torch.ones(1, 1, 64, 64).tril(), torch.arange(64).unsqueeze(0))
        self.expect(nothing["induction"], math.nan)
        self.assertFalse(nothing["previous_token"].isnan().any())

    def test_in_context_score(self):
        nll = torch.full((2, 16), 1e6)  # what must not be read
        for row, period in enumerate((5, 7)):
            nll[row, :period - 1], nll[row, period:2 * period - 1] = 3.0, 1.0 - row
        self.assertEqual(maps.in_context_score(nll, torch.tensor([5, 7])).tolist(), [2.0, 3.0])
        self.assertTrue(maps.in_context_score(torch.ones(1, 8), torch.tensor([7])).isnan().all())


class Models(unittest.TestCase):
    """With some parameters set by hand."""

    def analysis(self, *layers: dict, heads: int = 2, **values: float):
        """Of a model whose parameters that end so have these values."""
        torch.manual_seed(1)
        model = Transformer(configuration(*layers, heads=heads)).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                for end, value in values.items():
                    if name.endswith(end.replace("__", ".")):
                        parameter.copy_(torch.as_tensor(value).expand_as(parameter))
        tokens = torch.randint(VOCABULARY, (SEQUENCES, TOKENS))
        before = model(tokens)
        found = maps.analysis(model, tokens, tokens, VOCABULARY, 1)
        self.assertTrue(model(tokens).equal(before), "looking changes nothing")
        return found

    def expect(self, layer: dict, name: str, value: float, delta: float = 1e-5) -> None:
        """That all heads have this value on all sequences."""
        for head in layer["statistics"][name]:
            self.assertEqual(len(head), SEQUENCES)
            for each in head:
                self.assertAlmostEqual(each, value, delta=delta, msg=name)

    def test_that_looks_at_the_token_before(self):
        model, layers = self.analysis(
            {}, heads=1, embedding__weight=0.0, position__weight=torch.eye(TOKENS),
            q_proj__weight=10 * torch.eye(TOKENS).roll(-1, 0), k_proj__weight=torch.eye(TOKENS))
        for name, value in {"previous_token": 1.0, "mean_distance": 1.0, "entropy_ratio": 0.0}.items():
            self.expect(layers[0], name, value)
        for nll, score in zip(model["nll"], model["in_context_score"]):
            self.assertAlmostEqual(nll, math.log(VOCABULARY), delta=1e-5)
            self.assertAlmostEqual(score, 0.0, delta=1e-5)

    def test_with_a_sink_a_window_and_forgetting(self):
        _, layers = self.analysis({"normalization": "sink"}, attention__sink=50.0)
        self.expect(layers[0], "row_mass", 0.0)
        self.expect(layers[0], "light_rows", 1.0)
        _, layers = self.analysis({"pattern": "window", "window": 4}, q_proj__weight=0.0)
        self.expect(layers[0], "effective_keys", 4.0)
        _, layers = self.analysis({"decay": "scalar"}, forget__bias=0.0, q_proj__weight=0.0)
        self.expect(layers[0], "half_life", 1.0)
        self.assertAlmostEqual(layers[0]["example"][0][20][18], 0.125, delta=1e-5)
        self.assertEqual(len(layers[0]["example"][1][4]), 5)

    def test_with_open_gates(self):
        for gating in ("output_gate", "input_gate", "highway", "normed_highway", "elementwise_gate", "headwise_gate"):
            _, layers = self.analysis({"gating": gating}, gate__weight=0.0, gate__bias=3.0)
            for head in layers[0]["gate"]["gate_mean"]:
                for value in head:
                    self.assertAlmostEqual(value, 0.952574, delta=1e-5)
            self.assertEqual(layers[0]["histogram"][0][19], 1.0, gating)

    def powers(self, layer: dict, newest: float, rate: float) -> None:
        """That A_ij = newest rate^(i - j)."""
        for head in layer["example"]:
            for i, row in enumerate(head):
                for j, weight in enumerate(row):
                    self.assertAlmostEqual(weight, newest * rate**(i - j), delta=1e-5 * newest)

    def test_of_states_with_one_key(self):
        of_one_key = {"q_proj__weight": 0.0, "k_proj__weight": 0.0, "q_proj__bias": 1.0, "k_proj__bias": 1.0}
        zero = dict.fromkeys(("decay__weight", "decay_log_rate", "decay_step_bias", "beta__weight", "erase__weight", "write__weight"), 0.0)

        def layer_of(**genes):
            model, layers = self.analysis({"mixer": "recurrent", **genes}, **of_one_key, **zero)
            self.assertNotIn("sink_rate", model)
            return layers[0]

        halves = layer_of(decay="scalar")  # alpha = exp(-softplus(0)) = 1/2; d_k = 16
        for name, value in {"half_life": 1.0, "memory_length": 2.0, "forget_mean": 0.5, "state_used": 1 / 16}.items():
            self.expect(halves, name, value)
        self.powers(halves, 4.0, 0.5)
        delta = layer_of(update="delta")
        self.expect(delta, "beta_mean", 0.5)
        self.powers(delta, 0.125, 0.5)
        self.powers(layer_of(update="delta", neg_eigen=1), 0.25,
                    0.0)  # a new value replaces the old one
        delta2 = layer_of(update="delta2")
        self.expect(delta2, "erase_mean", 0.5)
        self.powers(delta2, 0.25, 0.5)  # of what is written, half of each value
        self.expect(layer_of(feature="elu1"), "row_mass", 1.0)

    def test_a_hybrid_in_order(self):
        recurrent = {"mixer": "recurrent", "update": "delta", "decay": "scalar", "conv": 4}
        model, layers = self.analysis({**recurrent, "gating": "sigmoid_gate"}, {"mixer": "conv"},
                                      {}, {"mixer": "recurrent", "decay": "channel",
                                           "gating": "swish_gate"})
        self.assertEqual(list(layers), [0, 2, 3])
        self.assertTrue({"state_used", "half_life", "beta_sd"} <= layers[0]["statistics"].keys())
        self.assertTrue(layers[0]["gate"] and not layers[3]["gate"], "SiLU has no open end")
        self.assertNotIn("state_used", layers[2]["statistics"])
        masses = layers[2]["statistics"]["sink_mass"]
        self.assertEqual(model["sink_rate"], [sum(mass > maps.SINK_MASS for mass in each) / 2 for each in zip(*masses)])


class Choices(unittest.TestCase):
    """Of a token by its logits."""

    def draw(self, logits: list[float], number: int, greedy: bool = False) -> collections.Counter:
        """Tokens that are drawn so often."""
        random = maps.Random(3)
        return collections.Counter(use_model.choose(torch.tensor(logits), argparse.Namespace(greedy=greedy), random) for _ in range(number))

    def test_shares_are_those_of_softmax(self):
        found = self.draw([0.0, 1.0, -math.inf, 2.0], 2000)
        expected = (torch.tensor([0.0, 1.0, -math.inf, 2.0]) / 0.8).softmax(0).tolist()
        for token, share in enumerate(expected):
            self.assertAlmostEqual(found[token] / 2000, share, delta=4 * math.sqrt(share * (1 - share) / 2000))

    def test_the_likeliest_alone(self):
        self.assertEqual(set(self.draw([0.0, 1.0, 3.0, 2.9], 50, greedy=True)), {2})
        self.assertEqual(set(self.draw([0.0, 1e38, 2.0], 50)), {1}, "no quotient overflows")
