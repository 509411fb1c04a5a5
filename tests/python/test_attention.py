"""attnas.Attention: mechanisms by their names as modules of PyTorch."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from python_tests import need

need("torch", program="nas-run")

PAPER = "dot|sparsemax|elementwise_gate|fixed|bias|0.1"
WIDE = "attn{pattern=window,window=4,position=rope,decay=scalar,conv=3,kv_heads=1}+swiglu"

import attnas
import torch
from attnas import model, model_attention, plugin_modules


class Names(unittest.TestCase):
    def test_names_of_the_paper_and_wide_ones(self):
        layer = attnas.Attention(PAPER, width=16, heads=2)
        self.assertIsInstance(layer, torch.nn.Module)
        self.assertEqual((layer.normalization, layer.gating, layer.heads, layer.attention_dropout),
                         ("sparsemax", "elementwise_gate", 2, 0.1))
        self.assertEqual(attnas.Attention(PAPER, 16, 2, semantics="published").normalization, "topk_quarter")
        wide = attnas.Attention(WIDE, 16, heads=2, context=12)
        self.assertEqual((wide.pattern, wide.window, wide.position, wide.forgets, wide.key_heads),
                         ("window", 4, "rope", True, 1))
        self.assertEqual(wide.q_conv.weight.shape, (16, 3))
        self.assertEqual(attnas.Attention("model{norm=rms}/2*mqa", 16, 2).key_heads, 1)
        self.assertIn("sparsemax", repr(layer))

    def test_what_reaches_further_than_the_context_is_full(self):
        name = "attn{pattern=window,window=300}"
        self.assertEqual(attnas.Attention(name, 16, 2).pattern, "window")
        self.assertEqual(attnas.Attention(name, 16, 2, context=300).pattern, "full")

    def test_bad_names(self):
        for name, text in (("dot|sparsmax|none|fixed|bias|0.1", "sparsmax"), ("attn{window=0}", "window"),
                           ("attn{heads=3}", "heads = 3"), ("attn{position=roop}", "did you mean rope?"),
                           ("none+gelu", "no layer has attention, must have one"), ("gdn", "attnas.Layer makes"),
                           ("attn/attn{conv=3}", "its layers have 2 kinds of attention, must have one"),
                           ("cosine|softmax|none|fixed|bias|0.1", "similarity cosine needs a context"),
                           ("attn{decay=scalar}", "decay scalar needs a context"),
                           ("dot|softmax|none|log_length|bias|0.1", "temperature log_length needs a context")):
            with self.subTest(name), self.assertRaises(attnas.InputError) as caught:
                attnas.Attention(name, 16, heads=2)
            self.assertIn(text, str(caught.exception))
        with self.assertRaisesRegex(attnas.InputError, "semantics"):
            attnas.Attention(PAPER, 16, heads=2, semantics="other")

    def test_no_program(self):
        with mock.patch("attnas.attention.digest.program", return_value=None), \
                self.assertRaisesRegex(attnas.InputError, "there is no nas-model on PATH"):
            attnas.Attention(PAPER, 48, heads=2)


class Module(unittest.TestCase):
    def test_is_causal_and_goes_on_from_a_state(self):
        for name in (PAPER, WIDE, "dot|softmax|highway|fixed|bias|0.1"):
            layer = attnas.Attention(name, 16, heads=2, context=12, seed=1).double().eval()
            x, residual = torch.randn(2, 3, 10, 16, dtype=torch.double)
            with torch.no_grad():
                whole = layer(x, residual)
                torch.testing.assert_close(layer(x[:, :6], residual[:, :6]), whole[:, :6])
                state: dict = {}
                steps = [layer(x[:, t:t + 1], residual[:, t:t + 1], state=state) for t in range(10)]
            self.assertEqual(whole.shape, (3, 10, 16))
            torch.testing.assert_close(torch.cat(steps, 1), whole)

    def test_learns(self):
        layer = attnas.Attention(WIDE, 16, heads=2, context=12, seed=1)
        layer(torch.randn(2, 12, 16)).square().sum().backward()
        self.assertTrue(all(each.grad is not None for each in layer.parameters()))

    def test_a_seed_draws_initial_values(self):
        def weights(**arguments):
            return attnas.Attention(WIDE, 64, heads=2, context=12, **arguments).state_dict()

        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        one, same, other = weights(seed=1), weights(seed=1), weights(seed=2)
        self.assertEqual(torch.rand(1), expected)
        for name in one:
            self.assertTrue(torch.equal(one[name], same[name]), name)
        self.assertFalse(torch.equal(one["q_proj.weight"], other["q_proj.weight"]))
        self.assertAlmostEqual(one["q_proj.weight"].std().item(), 0.02, delta=0.002)
        self.assertFalse(torch.equal(weights()["q_proj.weight"], weights()["q_proj.weight"]))

    def test_is_that_of_exported_models(self):
        self.assertTrue(issubclass(attnas.Attention, model.Attention))


class Layers(unittest.TestCase):
    def test_mixers_of_all_kinds_go_on_from_a_state(self):
        for name, kind in (("gdn", model.Recurrent), ("mixer=conv", model.GatedConvolution), (WIDE, model.Attention),
                           ("mixer=recurrent+feature=favor", model.Recurrent),
                           ("pair(swa{window=3}|retnet){smear=1}", model.Pair)):
            layer = attnas.Layer(name, 16, heads=2, context=12, seed=1).double().eval()
            self.assertIsInstance(layer, kind)
            x, state = torch.randn(2, 8, 16, dtype=torch.double), {}
            with torch.no_grad():
                steps = [layer(x[:, t:t + 1], state=state) for t in range(8)]
                torch.testing.assert_close(torch.cat(steps, 1), layer(x))
        for name, text in (("none+gelu", "no layer has a mixer, must have one"), ("attn/gdn", "its layers have 2 kinds of mixer"),
                           ("mamba2", "mamba2 is written ssd+conv=4+swish_gate: ")):
            with self.assertRaisesRegex(attnas.InputError, re.escape(text)):
                attnas.Layer(name, 16, heads=2)

    def test_a_module_beside_a_plug_in_enters_its_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder, "halves.so")
            self.assertEqual(plugin_modules.load([library]), "", "it has none")
            text = ('from attnas.model_attention import NORMALIZATIONS, softmax\n'
                    'NORMALIZATIONS["halves"] = lambda *given: softmax(*given) / 2\n')
            library.with_suffix(".py").write_text(text)
            self.addCleanup(model_attention.NORMALIZATIONS.pop, "halves")
            appended = plugin_modules.load([library])
            self.assertEqual(appended, "\n\n# Of plug-in halves\n\n" + text.partition("\n")[2])
            layer = model.Attention(16, 2, 8, normalization="halves", bias="none").eval()
            x = torch.randn(1, 4, 16)
            halved, layer.normalization = layer(x), "softmax"
            torch.testing.assert_close(2 * halved, layer(x))
            library.with_suffix(".py").write_text("1 / 0")
            with self.assertRaisesRegex(attnas.InputError, r"halves\.py: ZeroDivisionError"):
                plugin_modules.load([library])


class Package(unittest.TestCase):
    def test_needs_torch_for_attention_alone(self):
        script = ("import sys; sys.modules['torch'] = None\nimport importlib.util\nfound = "
                  "importlib.util.find_spec\nimportlib.util.find_spec = lambda name: None if name == 'torch' else "
                  "found(name)\nimport attnas\nattnas.load\nattnas.Attention")
        done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False)
        self.assertTrue(re.search(r"ImportError: attnas.Attention: \S+ has no torch; install what is missing "
                                  r"\(Debian: apt-get install python3-torch; elsewhere: pip install torch\)\n$",
                                  done.stderr), done.stderr)

    def test_knows_nothing_else(self):
        with self.assertRaisesRegex(AttributeError, "module 'attnas' has no attribute 'Attenton'"):
            attnas.Attenton
