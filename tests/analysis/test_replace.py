"""Layers replaced in a model: of transformers, where this Python has it, and in a decoder of plain
torch that has its attributes."""

import copy
import inspect
import tempfile
import types
import unittest

from python_tests import has, need

need("torch")
import torch
from torch import nn
from torch.nn import functional as F

import attnas
from attnas.model_attention import RmsNorm
from attnas.replacement import parse

WIDTH, HEADS, GROUPS, LAYERS, VOCABULARY = 32, 4, 2, 4, 61


class Attention(nn.Module):
    """Full attention, as transformers has it: names, arguments, what it returns."""

    def __init__(self, config, layer_idx):
        super().__init__()
        d = self.head_dim = config.head_dim
        self.config, self.layer_idx, self.scaling = config, layer_idx, d**-0.5
        self.q_proj, self.o_proj = nn.Linear(WIDTH, HEADS * d), nn.Linear(HEADS * d, WIDTH)
        self.k_proj, self.v_proj = nn.Linear(WIDTH, GROUPS * d), nn.Linear(WIDTH, GROUPS * d)
        if config.model_type == "qwen3":
            self.q_norm, self.k_norm = RmsNorm(d, 0.1), RmsNorm(d, 0.1)

    def forward(self, hidden_states, position_embeddings, attention_mask=None, cache=None, **_):
        q, k, v = (projection(hidden_states).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        if self.config.model_type == "qwen3":
            q, k = self.q_norm(q), self.k_norm(k)
        cosines, sines = (each.unsqueeze(1) for each in position_embeddings)
        q, k = (u * cosines + torch.cat([-u.chunk(2, -1)[1], u.chunk(2, -1)[0]], -1) * sines for u in (q, k))
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        k, v = (u.repeat_interleave(HEADS // GROUPS, 1) for u in (k, v))
        weights = (q @ k.transpose(2, 3) * self.scaling + attention_mask).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2)), weights


class Layer(nn.Module):
    """The stream and what is added to it."""

    def __init__(self, config, layer_idx):
        super().__init__()
        self.input_layernorm, self.self_attn = RmsNorm(WIDTH), Attention(config, layer_idx)

    def forward(self, stream, **others):
        return stream + self.self_attn(hidden_states=self.input_layernorm(stream), **others)[0]


class DynamicLayer:
    """Keys and values of a layer, in the form of that of transformers."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.keys = self.values = None

    def get_seq_length(self):
        return 0 if self.keys is None else self.keys.shape[2]

    def update(self, keys, values):
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 2)
        self.values = values if self.values is None else torch.cat([self.values, values], 2)
        return self.keys, self.values


class Cache:
    """One that grows."""

    def __init__(self):
        self.layers = [DynamicLayer() for _ in range(LAYERS)]

    def update(self, keys, values, layer_idx):
        return self.layers[layer_idx].update(keys, values)


class Decoder(nn.Module):
    """Of a tiny model, in the form of those of transformers."""

    def __init__(self, model_type="llama", **further):
        super().__init__()
        self.config = types.SimpleNamespace(**{
            "model_type": model_type, "hidden_size": WIDTH, "num_attention_heads": HEADS,
            "num_key_value_heads": GROUPS, "head_dim": 12, "attention_dropout": 0.0, "rope_theta": 100.0,
            "_attn_implementation": "eager", **further})
        self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(self.config, i) for i in range(LAYERS))

    def forward(self, ids, mask=None, cache=None):
        """@param mask  1 of each token so far but 0 of padding."""
        start = cache.layers[0].get_seq_length() if cache else 0
        if mask is None:
            mask = torch.ones(len(ids), start + ids.shape[1], dtype=torch.long)
        places = (mask.cumsum(1) - 1).clamp_min(0)[:, start:]
        earlier = torch.arange(mask.shape[1]) <= torch.arange(start, mask.shape[1])[:, None]
        hidden = ~(earlier & mask.bool()[:, None, None])
        half = self.config.head_dim // 2
        angles = places[..., None] * 100.0 ** (-torch.arange(half) / half)
        angles = torch.cat([angles, angles], -1)
        stream = self.embed_tokens(ids)
        for layer in self.layers:
            stream = layer(stream, position_embeddings=(angles.cos(), angles.sin()), cache=cache,
                           attention_mask=torch.zeros(hidden.shape).masked_fill(
                               hidden, torch.finfo(torch.float).min))
        return F.linear(stream, self.embed_tokens.weight)


def naive(model, windows):
    """A copy whose layers are given a mask of windows and first tokens, by number."""
    model = copy.deepcopy(model)
    for number, (window, globals) in windows.items():
        attention = model.get_submodule(BASE.get(type(model), "model.layers")).get_submodule(f"{number}.self_attn")

        def forward(*args, own=attention.forward, window=window, globals=globals, **others):
            mask = others["attention_mask"].clone()
            for row in mask[:, 0]:
                for i, keys in enumerate(row):
                    sees = (keys == 0).nonzero().flatten().tolist()
                    for place, j in enumerate(sees):
                        if i - j >= window and place >= globals:
                            keys[j] = torch.finfo(mask.dtype).min
            return own(*args, **{**others, "attention_mask": mask})

        attention.forward = forward
    return model


BASE = {Decoder: "layers"}


STATES = (["gdn{3,1}", "kda", "lin{taylor2}", "ret"], ["gdn2{0,0}", "ssd{0}", "window{5,2}", "lin"], ["full", "ret{0}", "gdn{1,0}", "near{taylor2,3}"])


class Cases:
    """What holds of any model. A subclass has made(), logits() and cache()."""

    TOKENS = 24

    def setUp(self):
        torch.manual_seed(5)
        torch.set_grad_enabled(False)
        self.model = self.made().eval()
        self.ids = torch.randint(3, VOCABULARY, (2, self.TOKENS))
        self.before = self.logits(self.model, self.ids)

    def tearDown(self):
        torch.set_grad_enabled(True)

    def expect_near(self, found, expected, to=1e-5):
        self.assertLessEqual(((found - expected).abs().max() / expected.abs().max()).item(), to)

    def by_steps(self, model, ids, first=9):
        """Logits where tokens come one by one after some, and the cache."""
        cache = self.cache(model)
        parts = [self.logits(model, ids[:, :first], cache=cache)]
        for i in range(first, ids.shape[1]):
            parts.append(self.logits(model, ids[:, i:i + 1], cache=cache))
        return torch.cat(parts, 1), cache

    def test_wide_windows_change_nothing(self):
        for word in (f"window={self.TOKENS}", "window=1+globals=99", f"gqa={GROUPS}", "heads{3}"):
            with self.subTest(word):
                attnas.replace(self.model, [word] * LAYERS)
                self.expect_near(self.logits(self.model, self.ids), self.before)

    def test_windows_are_naive_masks(self):
        expected = self.logits(naive(self.model, {0: (5, 0), 2: (3, 2), 3: (1, 4)}), self.ids)
        attnas.replace(self.model, {0: "window+window=5+globals=0", 2: "window=3+globals=2", 3: "window+globals=4+window=1"})
        found = self.logits(self.model, self.ids)
        self.expect_near(found, expected)
        self.assertGreater((found - self.before).abs().max(), 1e-2)

    def test_heads_that_stay_whole(self):
        """Those of either group of keys, where nothing comes from the other."""
        layer = getattr(self.model, "model", self.model).layers[1]
        before = layer.self_attn.o_proj.weight.clone()
        for groups, other, word in ((1, 1, "full"), (1, 0, "window{5,2}"), (2, 1, "window{5,2}")):
            layer.self_attn.o_proj.weight.copy_(before).chunk(2, 1)[other].zero_()
            expected = self.logits(attnas.replace(self.model, {1: word}), self.ids)
            found = self.logits(attnas.replace(self.model, {1: f"heads{{{groups},5,2}}"}), self.ids)
            self.expect_near(found, expected)

    def test_token_by_token(self):
        for words in (["window{5,2}"] * LAYERS, ["heads{1,5,2}"] * LAYERS, ["drop", "window{4,0}", "local", "gqa=1"],
                      ["gqa=1", "full", "window=3+globals=1+kv_heads=1", "window{1,0}"]):
            with self.subTest(words):
                attnas.replace(self.model, words)
                found, cache = self.by_steps(self.model, self.ids)
                self.expect_near(found, self.logits(self.model, self.ids))
                for word, layer in zip(words, cache.layers):
                    self.assertEqual(
                        layer.keys.shape[1:3],
                        {"window{5,2}": (GROUPS, 6), "window{4,0}": (GROUPS, 3),
                         "window=3+globals=1+kv_heads=1": (1, 3), "window{1,0}": (GROUPS, 0),
                         "heads{1,5,2}": (GROUPS, self.TOKENS),
                         "full": (GROUPS, self.TOKENS)}.get(word, (1, self.TOKENS)))

    def test_padding(self):
        self.expect_padding_is_unseen(["window=4+globals=2", "full", "window=3+globals=1", "gqa=1"])

    def expect_padding_is_unseen(self, words):
        attnas.replace(self.model, words)
        lengths = (9, self.TOKENS)
        for left in (True, False):
            ids = torch.zeros(2, self.TOKENS, dtype=torch.long)
            mask = torch.zeros_like(ids)
            places = [slice(self.TOKENS - n, None) if left else slice(0, n) for n in lengths]
            for row, place in enumerate(places):
                ids[row, place], mask[row, place] = self.ids[row, place], 1
            found = self.logits(self.model, ids, mask)
            self.assertTrue(found.isfinite().all())
            for row, place in enumerate(places):
                alone = self.logits(self.model, ids[row:row + 1, place])[0]
                self.expect_near(found[row, place], alone)
            if left:  # and goes on
                cache = self.cache(self.model)
                steps = [self.logits(self.model, ids[:, :18], mask[:, :18], cache)]
                for i in range(18, self.TOKENS):
                    steps.append(self.logits(self.model, ids[:, i:i + 1], mask[:, :i + 1], cache))
                for row, place in enumerate(places):
                    self.expect_near(torch.cat(steps, 1)[row, place], found[row, place])

    def test_states(self):
        """Token by token; in rows of several lengths; of texts of any length as many numbers."""
        for words in STATES:
            with self.subTest(words):
                self.model = self.made().eval()
                self.expect_padding_is_unseen(words)
                found, cache = self.by_steps(self.model, self.ids)
                self.expect_near(found, self.logits(self.model, self.ids))
                _, less = self.by_steps(self.model, self.ids[:, :3], 2)
                for word, long, short in zip(words, cache.layers, less.layers):
                    if not word.startswith(("window", "full")):
                        self.assertEqual([(each.shape, each.dtype) for each in long.state.values()],
                                         [(each.shape, torch.float32) for each in short.state.values()])
                        self.assertEqual(long.get_seq_length(), self.TOKENS)

    def test_recurrent_layers_train_and_are_put_back(self):
        self.model = self.made().eval()
        before = self.logits(self.model, self.ids)
        attnas.replace(self.model, ["gdn", "gdn2", "kda", "ssd"])
        torch.set_grad_enabled(True)
        self.logits(self.model.train(), self.ids).square().mean().backward()
        for layer in getattr(self.model, "model", self.model).layers:
            for name, each in layer.self_attn.named_parameters():
                if "down" not in name:  # behind a matrix that begins as 0
                    self.assertGreater(each.grad.abs().max(), 0, name)
        torch.set_grad_enabled(False)
        attnas.replace(self.model.eval(), ["full"] * LAYERS)
        self.expect_near(self.logits(self.model, self.ids), before, 0)

    def test_put_back(self):
        layers = self.model.get_submodule(BASE.get(type(self.model), "model.layers"))
        own = [layer.self_attn for layer in layers]
        names = {name: each.data_ptr() for name, each in self.model.state_dict().items()}
        attnas.replace(self.model, {0: "drop", 1: "local", 2: "window{2,0}", 3: "gqa=1"})
        attnas.replace(self.model, {1: "window{2,0}"})
        self.assertEqual(names, {name: each.data_ptr() for name, each in self.model.state_dict().items()})
        copied = copy.deepcopy(self.model)
        self.expect_near(self.logits(copied, self.ids), self.logits(self.model, self.ids), 0)
        attnas.replace(self.model, ["full"] * LAYERS)
        self.assertEqual(own, [layer.self_attn for layer in layers])
        self.expect_near(self.logits(self.model, self.ids), self.before, 0)
        attnas.replace(copied, {i: "full" for i in range(LAYERS)})
        self.expect_near(self.logits(copied, self.ids), self.before, 0)

    def test_mean_of_heads_local_and_dropped(self):
        layers = BASE.get(type(self.model), "model.layers")
        other = copy.deepcopy(self.model)
        for layer in other.get_submodule(layers)[:2]:
            for name in ("k_proj", "v_proj"):
                for each in getattr(layer.self_attn, name).parameters():
                    heads = each.view(GROUPS, each.shape[0] // GROUPS, -1)
                    each.copy_(heads.mean(0, keepdim=True).expand_as(heads).reshape(each.shape))
        for each in other.get_submodule(layers)[2].self_attn.o_proj.parameters():
            each.zero_()
        attnas.replace(self.model, ["gqa=1", "gqa+kv_heads=1", "drop", "window{1,0}"])
        expected = self.logits(attnas.replace(other, {3: "local"}), self.ids)
        self.expect_near(self.logits(self.model, self.ids), expected)

    def test_trains(self):
        torch.set_grad_enabled(True)
        attnas.replace(self.model, {1: "window=3+globals=1"})
        self.model.train()
        self.logits(self.model, self.ids).square().mean().backward()
        layer = self.model.get_submodule(BASE.get(type(self.model), "model.layers"))[1]
        self.assertGreater(layer.self_attn.q_proj.weight.grad.abs().max(), 0)


class Plain(Cases, unittest.TestCase):
    """The decoder above."""

    made = staticmethod(Decoder)

    @staticmethod
    def logits(model, ids, mask=None, cache=None):
        return model(ids, mask, cache)

    @staticmethod
    def cache(_model):
        return Cache()

    def expect_refused(self, layers, why, model=None):
        model = model or self.model
        own = [layer.self_attn for layer in model.layers]
        with self.assertRaisesRegex(attnas.InputError, why):
            attnas.replace(model, layers)
        self.assertEqual(own, [layer.self_attn for layer in model.layers])

    def test_refusals(self):
        for word, why in (
                ("windows", "layer 1: windows: 'windows' is no kind of layer"),
                ("window{0,4}", "window = 0, must be an integer >= 1"),
                ("window+window=x", "window = x, must be an integer >= 1"),
                ("gqa=3", "kv_heads = 3, must divide the 2 heads"),
                ("window+sink=1", "'sink' is no size of window, known: window, globals, kv_heads"),
                ("heads=4", "groups = 4, must be below 2\\^2"), ("share", "share reads keys of another"),
                ("lin{relu}", "feature = relu"),
                ("ret{1,2}", "ret has 1 sizes"),
                ("drop=1", "drop has no sizes"), ("window{1,2,3,4}", "window has 3 sizes"),
                ("window{}", "window = , must be"), ("local+window=3", "known: none")):
            self.expect_refused({0: "drop", 1: word}, why)
        for layers, why in (({4: "drop"}, "layer 4, must be in 0 to 3"), ({"0": "drop"}, "layer '0'"),
                            ({-1: "drop"}, "layer -1"), (["drop"], "1 words for 4 layers")):
            self.expect_refused(layers, why)
        self.expect_refused({2: 64}, "layer 2: 64: must be a word")
        self.expect_refused({}, "model_type = gemma, must be one of llama", Decoder("gemma"))
        self.expect_refused({0: "drop"}, "attn_implementation = flash_attention_2", Decoder(_attn_implementation="flash_attention_2"))
        windowed = Decoder("mistral", sliding_window=8)
        self.expect_refused({0: "window=4+globals=2"}, "has a window of 8 already", windowed)
        self.expect_refused({0: "window{9,0}"}, "window <= 8", windowed)
        self.expect_refused({0: "heads{1}"}, "has a window of 8 already, must have none", windowed)
        attnas.replace(windowed, {0: "window{8,0}"})

    def test_caches_that_do_not_fit(self):
        _, cache = self.by_steps(attnas.replace(self.model, {1: "window{5,0}"}), self.ids)
        for word, why in (("window{6,0}", "keeps the last 5 and the first 0 tokens, must keep 6"),
                          ("gqa=1", "has 2 heads of 12 entries, must have 1 of 12"),
                          ("drop", "must have 1 of 1")):
            attnas.replace(self.model, {1: word})
            with self.assertRaisesRegex(attnas.InputError, why):
                self.logits(self.model, self.ids[:, :1], cache=cache)
        with self.assertRaisesRegex(attnas.InputError, "cannot be taken back"):
            cache.layers[1].crop(-1)
        attnas.replace(self.model, {0: "window{5,0}"})
        with self.assertRaisesRegex(attnas.InputError, "cache is a? ?tuple, must be a Cache"):
            self.model.layers[0].self_attn(torch.zeros(1, 1, WIDTH), (torch.ones(1, 1, 12), ) * 2, past_key_values=())
        with self.assertRaisesRegex(attnas.InputError, "must be .B, 1, T, S."):
            self.model.layers[0].self_attn(torch.zeros(1, 1, WIDTH), (torch.ones(1, 1, 12), ) * 2, torch.ones(1, 1))

    def test_names_of_a_conversion(self):
        attnas.replace(self.model, "full 1; window{4,2} 0,2-3")
        found = self.logits(self.model, self.ids)
        attnas.replace(self.model, ["window{4,2}", "full", "window{4,2}", "window{4,2}"])
        self.expect_near(found, self.logits(self.model, self.ids), 0)
        for name in ("drop", "drop 1-", "drop 0,0", "drop 0; full 0", "drop 2-1", ""):
            self.expect_refused(name, "placement .*must be BLOCK LAYERS")
        self.expect_refused("drop 2-5", "layer 4, must be in 0 to 3")

    def test_parse(self):
        self.assertEqual(parse("window=64+globals=4"), ("window", {"window": 64, "globals": 4, "kv_heads": 0}))
        for word in ("window+window=64+globals=4", "window{64,4}", "window", "window{64}"):
            self.assertEqual(parse(word), parse("window=64+globals=4"))
        for word in ("gqa=2", "gqa{2}", "gqa+kv_heads=2"):
            self.assertEqual(parse(word), ("gqa", {"kv_heads": 2}))
        self.assertEqual(parse("window{8, 0}+kv_heads=1")[1], {"window": 8, "globals": 0, "kv_heads": 1})


class Normed(Plain):
    """With norms of queries and keys."""

    @staticmethod
    def made():
        return Decoder("qwen3")


@unittest.skipUnless(has("transformers"), "this Python has no transformers")
class Llama(Cases, unittest.TestCase):
    """A tiny model of transformers, eager."""

    KIND, FURTHER = "Llama", {}

    def made(self, attention="eager"):
        import transformers
        config = getattr(transformers, self.KIND + "Config")(**{
            "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 48,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "pad_token_id": 0,
            "num_key_value_heads": GROUPS, "max_position_embeddings": 64, "eos_token_id": 1,
            "bos_token_id": 2, "initializer_range": 0.3, **self.FURTHER})
        model = getattr(transformers, self.KIND + "ForCausalLM")(config).eval()
        model.set_attn_implementation(attention)
        return model

    @staticmethod
    def logits(model, ids, mask=None, cache=None):
        name = "cache" if "cache" in inspect.signature(model.model.forward).parameters else (
            "past_key_values")  # of earlier versions
        given = {} if cache is None else {name: cache}
        if mask is not None and cache is not None:
            given["position_ids"] = (mask.cumsum(1) - 1).clamp_min(0)[:, -ids.shape[1]:]
        elif mask is not None:
            given["position_ids"] = (mask.cumsum(1) - 1).clamp_min(0)
        return model(ids, attention_mask=mask, use_cache=cache is not None, **given).logits

    @staticmethod
    def cache(model):
        import transformers
        return transformers.DynamicCache(config=model.config)

    def generated(self, ids, **how):
        return self.model.generate(ids, max_new_tokens=12, min_new_tokens=12, **how)

    def test_generates(self):
        """As without a cache; in rows with padding as alone; by beams; in a cache of fixed size."""
        for attention, words in (("eager", ["local", "window{5,2}", "full", "gqa=1"]), ("sdpa", ["local", "window{5,2}", "full", "gqa=1"]),
                                 ("sdpa", ["gdn", "window{5,2}", "ssd", "full"])):
            self.model.set_attn_implementation(attention)
            attnas.replace(self.model, words)
            found = self.generated(self.ids, do_sample=False)
            self.assertTrue(found.equal(self.generated(self.ids, do_sample=False, use_cache=False)))
            if "gdn" not in words:
                self.assertTrue(found.equal(self.generated(self.ids, do_sample=False, cache_implementation="static")))
            else:
                with self.assertRaisesRegex(attnas.InputError, "StaticLayer there, must be a new DynamicCache"):
                    self.generated(self.ids, cache_implementation="static")
            beams = {"num_beams": 3, "do_sample": False}
            self.assertTrue(self.generated(self.ids, **beams).equal(self.generated(self.ids, use_cache=False, **beams)))
            mask = torch.ones_like(self.ids)
            mask[0, :9] = 0
            padded = self.generated(self.ids.masked_fill(mask == 0, 0), attention_mask=mask, do_sample=False)
            alone = self.generated(self.ids[:1, 9:], do_sample=False)
            self.assertTrue(padded[0, self.TOKENS:].equal(alone[0, -12:]))
            self.assertTrue(padded[1].equal(found[1]))

    def test_texts_in_one_row(self):
        """Each sees itself alone, its own first tokens, too."""
        for words in (["window{5,2}", "full", "window{3,1}", "gqa=1"], *STATES):
            attnas.replace(self.model, words)
            places = torch.cat([torch.arange(10), torch.arange(14)])[None]
            found = self.model(self.ids[:1], position_ids=places, use_cache=False).logits
            self.expect_near(found[:, :10], self.logits(self.model, self.ids[:1, :10]))
            self.expect_near(found[:, 10:], self.logits(self.model, self.ids[:1, 10:]))

    def test_implementations(self):
        attnas.replace(self.model, {0: "window{5,2}"})
        eager = self.logits(self.model, self.ids)
        maps = self.model(self.ids, output_attentions=True).attentions
        self.assertEqual(len(maps), LAYERS)
        self.assertEqual((maps[0] > 0).sum(-1).max(), 7)
        self.model.set_attn_implementation("sdpa")
        self.expect_near(self.logits(self.model, self.ids), eager)
        wide = self.model.to(torch.bfloat16)
        self.expect_near(self.logits(wide, self.ids).float(), eager, 0.1)
        self.model.config._attn_implementation = "flex_attention"
        with self.assertRaisesRegex(attnas.InputError, "flex_attention, must be sdpa or eager"):
            self.model.model.layers[0].self_attn(torch.zeros(1, 1, WIDTH, dtype=torch.bfloat16))

    def test_a_checkpoint_is_that_of_the_model(self):
        attnas.replace(self.model, ["window{5,0}", "drop", "local", "gqa=1"])
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            again = type(self.model).from_pretrained(folder, attn_implementation="eager")
        self.expect_near(self.logits(again.eval(), self.ids), self.before, 1e-6)


class Mistral(Llama):
    """Without a window of its own."""

    KIND, FURTHER = "Mistral", {"sliding_window": None}


class Qwen2(Llama):
    """Biases of queries, keys and values; Llama 3's rotation."""

    KIND, FURTHER = "Qwen2", {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}


class Qwen3(Llama):
    """Heads wider than D / H, norms of queries and keys."""

    KIND, FURTHER = "Qwen3", {"head_dim": 16, "rms_norm_eps": 1e-3}


class SmolLM3(Llama):
    """Layers without rotation."""

    KIND, FURTHER = "SmolLM3", {"no_rope_layers": [1, 0, 1, 0]}


@unittest.skipUnless(has("transformers"), "this Python has no transformers")
class OwnWindows(unittest.TestCase):
    """Layers that have a window in transformers."""

    def test_smaller_windows(self):
        for kind, further in (
                ("Mistral", {"sliding_window": 9}),
                ("Qwen3", {"sliding_window": 9, "use_sliding_window": True, "layer_types": [
                    "sliding_attention", "full_attention", "sliding_attention", "full_attention"]})):
            case = type(kind, (Llama, ), {"KIND": kind, "FURTHER": further})("setUp")
            case.setUp()
            expected = case.logits(naive(case.model, {0: (4, 0), 1: (9, 0)}), case.ids)
            attnas.replace(case.model, {0: "window{4,0}", 1: "window{9,0}", 2: "window{9,0}"})
            case.expect_near(case.logits(case.model, case.ids), expected)
            case.expect_near(case.by_steps(case.model, case.ids)[0], expected)
            case.tearDown()


del Cases
