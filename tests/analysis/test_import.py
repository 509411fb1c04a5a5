"""Checkpoints of transformers and of GGUF as models of attnas: what they compute, and what is refused.

The folder NAS_GOLDEN_CHECKPOINTS has checkpoints with what transformers computes of them; without it those are skipped.
"""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import time
import unittest

import numpy as np

from attnas import checkpoint_gguf, checkpoints, import_model
from attnas.errors import InputError
from python_tests import PROGRAMS, ROOT, FolderTest, has, need

sys.path.append(str(ROOT / "tests/fuzz"))
import checkpoint_fuzz

need()
TAKEN = ("config", "gguf", "header", "index", "fault_pre", "smollm3", "tokens", "windows")
HAS_PROGRAM = has("torch") and (PROGRAMS / "nas-model").is_file()
V, D, H, F, L, C, T = 40, 16, 4, 24, 3, 32, 20
LLAMA = {"model_type": "llama", "hidden_size": D, "num_hidden_layers": L, "num_attention_heads": H, "num_key_value_heads": 2,
         "intermediate_size": F, "vocab_size": V, "max_position_embeddings": C, "rms_norm_eps": 1e-6, "hidden_act": "silu",
         "tie_word_embeddings": True, "rope_theta": 10000.0, "torch_dtype": "float32", "bos_token_id": [1, 2]}
GPT2 = {"model_type": "gpt2", "n_embd": D, "n_layer": L, "n_head": H, "n_positions": C, "vocab_size": V}
NEOX = {**{name: LLAMA[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
                                          "max_position_embeddings")}, "model_type": "gpt_neox", "rotary_pct": 0.5}
SCALED = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
# Each is a trait that the formulas below compute, too.
CASES = {
    "llama": LLAMA,
    "own output": {**LLAMA, "tie_word_embeddings": False},
    "biases": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "one key head with biases": {**LLAMA, "num_key_value_heads": 1, "attention_bias": True},
    "as many key heads": {**LLAMA, "num_key_value_heads": None, "rms_norm_eps": 1e-3},
    "wide heads": {**LLAMA, "head_dim": 6},
    "llama3, transformers 4": {**LLAMA, "rope_scaling": {**SCALED, "type": "llama3"}, "rope_theta": 500.0},
    "llama3, transformers 5": {**{k: v for k, v in LLAMA.items() if k != "rope_theta"}, "rope_parameters": {**SCALED, "rope_theta": 500.0}},
    "linear": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "mistral": {**LLAMA, "model_type": "mistral", "sliding_window": 5},
    "mistral without a window": {**LLAMA, "model_type": "mistral", "sliding_window": None},
    "qwen2, one gate closed": {**LLAMA, "model_type": "qwen2", "sliding_window": 5, "max_window_layers": 0},
    "qwen2, upper windows": {**LLAMA, "model_type": "qwen2", "sliding_window": 5, "use_sliding_window": True, "max_window_layers": 2},
    "qwen3": {**LLAMA, "model_type": "qwen3", "head_dim": 6},
    "qwen3, windows": {**LLAMA, "model_type": "qwen3", "head_dim": 4, "sliding_window": 5, "use_sliding_window": True,
                       "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "attention_bias": True},
    "smollm3": {**LLAMA, "model_type": "smollm3", "no_rope_layers": [1, 0, 1]},
    "smollm3, windows": {**LLAMA, "model_type": "smollm3", "no_rope_layer_interval": 2, "sliding_window": 5, "use_sliding_window": True},
    "gpt2": GPT2,
    "gpt2, other gelu": {**GPT2, "activation_function": "gelu", "n_inner": F, "layer_norm_epsilon": 1e-3, "tie_word_embeddings": False},
    "gpt_neox": NEOX,
    "gpt_neox, three entries rotated": {**NEOX, "rotary_pct": 0.8, "use_parallel_residual": True, "rotary_emb_base": 100},
    "gpt_neox, sequential": {**NEOX, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new", "rotary_pct": 1.0},
}
WINDOWS = {"mistral": [5] * L, "qwen2, upper windows": [None, None, 5], "qwen3, windows": [5, None, 5], "smollm3, windows": [None, 5, None]}
ROTATED = {"smollm3": [1, 0, 1], "smollm3, windows": [1, 0, 1]}


def shapes_of(config):
    """Of the tensors, as the library names them."""
    if config["model_type"] == "gpt2":
        f = config.get("n_inner") or 4 * D
        shapes = {"transformer.wte": (V, D), "transformer.wpe": (C, D), "transformer.ln_f": (D,)}
        for i in range(L):
            shapes |= {f"transformer.h.{i}.{name}": shape for name, shape in {
                "ln_1": (D,), "ln_2": (D,), "attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "mlp.c_fc": (D, f), "mlp.c_proj": (f, D)}.items()}
        found = {f"{name}.weight": shape for name, shape in shapes.items()}
        return found | {f"{name}.bias": shape[-1:] for name, shape in shapes.items() if ".w" not in name} | (
            {} if config.get("tie_word_embeddings", True) else {"lm_head.weight": (V, D)})
    if config["model_type"] == "gpt_neox":
        found = {"gpt_neox.embed_in.weight": (V, D), "embed_out.weight": (V, D)}
        parts = {"gpt_neox.final_layer_norm": (D,)}
        for i in range(L):
            parts |= {f"gpt_neox.layers.{i}.{name}": shape for name, shape in {
                "input_layernorm": (D,), "post_attention_layernorm": (D,), "attention.query_key_value": (3 * D, D), "attention.dense": (D, D),
                "mlp.dense_h_to_4h": (F, D), "mlp.dense_4h_to_h": (D, F)}.items()}
        for name, shape in parts.items():
            found[f"{name}.weight"] = shape
            if config.get("attention_bias", True) or ".attention." not in name:
                found[f"{name}.bias"] = shape[:1]
        return found
    h = config.get("head_dim") or D // H
    g = config["num_key_value_heads"] or H
    found = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = (V, D)
    for i in range(L):
        layer = {"input_layernorm": (D,), "post_attention_layernorm": (D,), "self_attn.q_proj": (H * h, D), "self_attn.k_proj": (g * h, D),
                 "self_attn.v_proj": (g * h, D), "self_attn.o_proj": (D, H * h), "mlp.gate_proj": (F, D), "mlp.up_proj": (F, D),
                 "mlp.down_proj": (D, F)}
        if config["model_type"] == "qwen3":
            layer |= {"self_attn.q_norm": (h,), "self_attn.k_norm": (h,)}
        for name, shape in layer.items():
            found[f"model.layers.{i}.{name}.weight"] = shape
            attends, qwen2 = name.startswith("self_attn") and "norm" not in name, config["model_type"] == "qwen2"
            if (attends and (config.get("attention_bias") or (qwen2 and "o_proj" not in name))) or (
                    name.startswith("mlp") and config.get("mlp_bias")):
                found[f"model.layers.{i}.{name}.bias"] = shape[:1]
    return found


def drawn(config, seed=1):
    """Random tensors."""
    rng = np.random.default_rng(seed)
    return {name: (rng.normal(size=shape) * (0.3 if len(shape) > 1 else 0.2) + (len(shape) == 1 and name.endswith("weight"))).astype("<f4")
            for name, shape in shapes_of(config).items()}


def normed(x, t, name, eps, rms):
    if rms:
        return t[name + ".weight"] * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    x = x - x.mean(-1, keepdims=True)
    return t[name + ".weight"] * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) + t[name + ".bias"]


def turned(x, frequencies):
    """(T, d), the first entries in half-split pairs, one token at a time."""
    half = len(frequencies)
    for t, row in enumerate(x):
        for i, frequency in enumerate(frequencies):
            c, s = np.cos(t * frequency), np.sin(t * frequency)
            row[i], row[half + i] = c * row[i] - s * row[half + i], c * row[half + i] + s * row[i]
    return x


def frequencies_of(config, h):
    share = config.get("rotary_pct", 1.0)
    entries = int(h * share)
    half = (entries + 1) // 2
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    plain = [rope.get("rope_theta", config.get("rope_theta", config.get("rotary_emb_base", 10000.0))) ** (-2 * i / entries) for i in range(half)]
    if "factor" not in rope:
        return plain
    if "low_freq_factor" not in rope:
        return [f / rope["factor"] for f in plain]
    low, high, old, found = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"], []
    for f in plain:
        length = 2 * np.pi / f
        s = (old / length - low) / (high - low)
        found.append(f if length < old / high else f / rope["factor"] if length > old / low else (1 - s) * f / rope["factor"] + s * f)
    return found


def attended(q, k, v, window):
    out = np.zeros_like(q)
    for t in range(len(q)):
        first = 0 if window is None else max(0, t - window + 1)
        scores = k[first:t + 1] @ q[t] / np.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max())
        out[t] = weights @ v[first:t + 1] / weights.sum()
    return out


def gelu(x, exact):
    import math
    if exact:
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def reference(name, config, tensors, ids):
    """Logits by the formulas in float64, one token and head at a time."""
    t = {key: value.astype(float) for key, value in tensors.items()}
    family, old = config["model_type"], config["model_type"] in ("gpt2", "gpt_neox")
    h, g = config.get("head_dim") or D // H, config.get("num_key_value_heads") or H
    eps = config.get("layer_norm_epsilon", 1e-5) if old else config["rms_norm_eps"]
    x = t[{"gpt2": "transformer.wte", "gpt_neox": "gpt_neox.embed_in"}.get(family, "model.embed_tokens") + ".weight"][ids]
    embedding = next(value for key, value in t.items() if value.shape == (V, D))
    if family == "gpt2":
        x = x + t["transformer.wpe.weight"][:len(ids)]
    act = config.get("hidden_act" if family == "gpt_neox" else "activation_function", "gelu_new" if family == "gpt2" else "gelu")
    for layer in range(L):
        p = {"gpt2": f"transformer.h.{layer}.", "gpt_neox": f"gpt_neox.layers.{layer}."}.get(family, f"model.layers.{layer}.")

        def linear(part, y, weights=None):
            w = t[p + part + ".weight"] if weights is None else weights
            return y @ (w if family == "gpt2" else w.T) + t.get(p + part + ".bias", 0.0)

        a = normed(x, t, p + ("ln_1" if family == "gpt2" else "input_layernorm"), eps, not old)
        if family == "gpt2":
            q, k, v = (part.reshape(-1, H, h) for part in np.split(linear("attn.c_attn", a), 3, -1))
        elif family == "gpt_neox":
            q, k, v = linear("attention.query_key_value", a).reshape(-1, H, 3, h).transpose(2, 0, 1, 3)
        else:
            q, k, v = (linear(f"self_attn.{part}_proj", a).reshape(len(ids), -1, h) for part in "qkv")
        if family == "qwen3":
            q, k = (normed(u, t, f"{p}self_attn.{part}_norm", eps, True) for u, part in ((q, "q"), (k, "k")))
        heads = []
        for i in range(H):
            of_q, of_k = q[:, i].copy(), k[:, i * g // H].copy()
            if family != "gpt2" and ROTATED.get(name, [1] * L)[layer]:
                of_q, of_k = (turned(u, frequencies_of(config, h)) for u in (of_q, of_k))
            heads.append(attended(of_q, of_k, v[:, i * g // H], WINDOWS.get(name, [None] * L)[layer]))
        out = {"gpt2": "attn.c_proj", "gpt_neox": "attention.dense"}.get(family, "self_attn.o_proj")
        after = x + linear(out, np.concatenate(heads, -1))
        parallel = family == "gpt_neox" and config.get("use_parallel_residual", True)
        m = normed(x if parallel else after, t, p + ("ln_2" if family == "gpt2" else "post_attention_layernorm"), eps, not old)
        if old:
            first, second = ("mlp.c_fc", "mlp.c_proj") if family == "gpt2" else ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
            x = after + linear(second, gelu(linear(first, m), act == "gelu"))
        else:
            gate = linear("mlp.gate_proj", m)
            x = after + linear("mlp.down_proj", gate / (1 + np.exp(-gate)) * linear("mlp.up_proj", m))
    x = normed(x, t, {"gpt2": "transformer.ln_f", "gpt_neox": "gpt_neox.final_layer_norm"}.get(family, "model.norm"), eps, not old)
    return x @ t.get("lm_head.weight", t.get("embed_out.weight", embedding)).T


def file_of(tensors, kind="F32"):
    """A file of safetensors."""
    data, places = b"", {"__metadata__": {"format": "pt"}}
    for name, values in tensors.items():
        if kind == "F16":
            raw = values.astype("<f2").tobytes()
        else:
            raw = (values.view("<u4") >> 16).astype("<u2").tobytes() if kind == "BF16" else values.tobytes()
        places[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(places).encode()
    return struct.pack("<Q", len(header)) + header + data


class Written(FolderTest):
    def write(self, config, tensors=None, kind="F32"):
        folder = self.folder / f"source{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (folder / "model.safetensors").write_bytes(file_of(drawn(config) if tensors is None else tensors, kind))
        return folder

    def logits(self, source, ids):
        """What model.py computes of an imported folder, in float64."""
        import torch
        from attnas import model
        output = self.folder / f"model{len(list(self.folder.iterdir()))}"
        import_model.import_model(source, output)
        with torch.no_grad():
            return model.load(str(output)).double()(torch.tensor([ids]))[0].numpy()

    def assert_near(self, found, expected, tolerance=2e-5):
        self.assertLessEqual(abs(found - expected).max(), tolerance * abs(expected).max())

    def refusal(self, source):
        """What is said of it; nothing is written."""
        before = sorted(self.folder.rglob("*"))
        with self.assertRaises(InputError) as caught:
            import_model.import_model(source, self.folder / "refused")
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        return str(caught.exception)


@unittest.skipUnless(HAS_PROGRAM, "without nas-model, or torch")
class Computed(Written):
    IDS = [int(i) for i in np.random.default_rng(3).integers(0, V, T)]

    def test_logits_are_those_of_the_formulas(self):
        for name, config in CASES.items():
            with self.subTest(name):
                tensors = drawn(config)
                self.assert_near(self.logits(self.write(config, tensors), self.IDS), reference(name, config, tensors, self.IDS), 1e-6)

    def test_half_precisions(self):
        for kind in ("F16", "BF16"):
            tensors = {name: values.astype("<f2").astype("<f4") if kind == "F16" else (values.view("<u4") >> 16 << 16).view("<f4")
                       for name, values in drawn(LLAMA).items()}
            self.assert_near(self.logits(self.write(LLAMA, tensors, kind), self.IDS), reference("llama", LLAMA, tensors, self.IDS), 1e-6)

    def test_shards(self):
        tensors = drawn(LLAMA)
        folder = self.write(LLAMA, tensors)
        (folder / "model.safetensors").unlink()
        names, places = sorted(tensors), {}
        for i, some in enumerate((names[::2], names[1::2])):
            (folder / f"{i}.safetensors").write_bytes(file_of({name: tensors[name] for name in some}))
            places |= dict.fromkeys(some, f"{i}.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")
        self.assert_near(self.logits(folder, self.IDS), reference("llama", LLAMA, tensors, self.IDS), 1e-6)

    def test_a_model_takes_little_more_than_its_weights(self):
        many, output = 1500000, self.folder / "large"
        import_model.import_model(self.write({**LLAMA, "vocab_size": many}, {**drawn(LLAMA), "model.embed_tokens.weight": np.ones((many, D), "<f4")}),
                                  output)
        script = ("import sys, re; sys.path.insert(0, sys.argv[1]); import model\n"
                  "of = lambda key: int(re.search(key + r':\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
                  "before = of('VmRSS'); open('/proc/self/clear_refs', 'w').write('5'); model.load(sys.argv[1]); print(of('VmHWM') - before)")
        peak = int(subprocess.run([sys.executable, "-c", script, output], capture_output=True, text=True, check=True).stdout)
        self.assertLess(1024 * peak, 1.3 * (output / "model.safetensors").stat().st_size)

    def test_equal_output_matrix_is_tied_and_buffers_are_none(self):
        tensors = drawn(LLAMA)
        more = {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"],
                "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2, "<f4")}
        self.assert_near(self.logits(self.write(LLAMA, more), self.IDS), reference("llama", LLAMA, tensors, self.IDS), 1e-6)

    def test_names_without_prefix(self):
        tensors = drawn(GPT2)
        bare = {name.removeprefix("transformer."): values for name, values in tensors.items()}
        bare["h.0.attn.bias"] = np.ones((1, 1, 4, 4), "<f4")
        self.assert_near(self.logits(self.write(GPT2, bare), self.IDS), reference("gpt2", GPT2, tensors, self.IDS), 1e-6)

    @unittest.skipUnless(os.environ.get("NAS_GOLDEN_CHECKPOINTS"), "without NAS_GOLDEN_CHECKPOINTS")
    def test_golden_checkpoints(self):
        import torch
        from attnas import model
        for folder in sorted(pathlib.Path(os.environ["NAS_GOLDEN_CHECKPOINTS"]).iterdir()):
            if not (folder / "case.json").is_file():
                continue
            case = json.loads((folder / "case.json").read_text())
            with self.subTest(folder.name):
                if case["answer"] != "import":
                    said_of = self.refusal(folder)
                    self.assertIn(case["names"] or case["family"], said_of)
                    continue
                output = self.folder / folder.name
                import_model.import_model(folder, output)
                made, streams = model.load(str(output)).double(), []
                found = {tensor.name: np.fromfile(tensor.path, {"I64": "<i8", "F64": "<f8"}[tensor.form], int(np.prod(tensor.shape)),
                                                  offset=tensor.begin).reshape(tensor.shape)
                         for tensor in checkpoints.read_safetensors(folder / "expected.safetensors")}
                for layer in made.layers:
                    layer.register_forward_hook(lambda _, given, out: streams.append(out.numpy()))
                with torch.no_grad():
                    ids = torch.from_numpy(found["ids"])
                    self.assert_near(made(ids).numpy(), found["logits"])
                    for i, stream in enumerate(streams):
                        self.assert_near(stream, found[f"hidden.{i + 1}"])
                    follow = model.generate(made, ids[0].tolist(), len(found["greedy"]))
                self.assertEqual(follow[ids.shape[1]:], found["greedy"].tolist())


class Refused(Written):
    def test_configurations(self):
        for change, words in (
                ({"model_type": "gemma2"}, 'model_type = "gemma2", must be one of llama, '), ({"model_type": "gemma2"}, "soft caps"),
                ({"model_type": "mixtral", "num_local_experts": 4}, "num_local_experts = 4: the feed-forward layers are experts"),
                ({"model_type": ["llama"]}, 'model_type = ["llama"]'), ({"hidden_size": None}, "hidden_size is missing"),
                ({"hidden_size": 1e300}, "hidden_size = 1e+300, must be an integer in [1, 1000000]"),
                ({"hidden_size": True}, "hidden_size = true"), ({"num_attention_heads": 5}, "5 heads, must divide the width 16"),
                ({"num_key_value_heads": 3}, "4 heads, must be a multiple of 3"), ({"rms_norm_eps": 0}, "rms_norm_eps = 0, must be"),
                ({"hidden_act": "gelu"}, 'hidden_act = "gelu", must be one of silu'), ({"hidden_act": {}}, "hidden_act = {}"),
                ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, 'rope_scaling.rope_type = "yarn", must be one of default, linear'),
                ({"rope_scaling": {"rope_type": "linear", "factor": "4"}}, 'rope_scaling.factor = "4", must be a number'),
                ({"rope_scaling": {"rope_type": "linear", "factor": 4, "mscale": 1}}, "rope_scaling.mscale = 1 is not known"),
                ({"rope_scaling": {**SCALED, "low_freq_factor": 5}}, "low_freq_factor = 5, must be below high_freq_factor"),
                ({"rope_parameters": {"full_attention": {}}}, "rope_parameters.full_attention = {} is not known"),
                ({"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"), ({"sliding_window": 4}, "sliding_window = 4 is not known"),
                ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types = "),
                ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0 is not known; it may change what the model computes"),
                ({"quantization_config": {"bits": 4}}, 'quantization_config = {"bits": 4} is not known'),
                ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map = "), ({"architectures": ["LlamaForSequenceClassification"]}, "architectures"),
                ({"tie_word_embeddings": "no"}, 'tie_word_embeddings = "no", must be true or false'),
                ({"model_type": "qwen3", "head_dim": 4, "layer_types": ["sliding_attention"] * L, "sliding_window": 5},
                 "layer_types has sliding_attention, but no window takes effect: sliding_window = 5, use_sliding_window = false"),
                ({"model_type": "qwen3", "head_dim": 4, "layer_types": ["chunked_attention"] * L}, "layer_types = "),
                ({"model_type": "smollm3", "no_rope_layers": [1, 2, 0]}, "no_rope_layers = [1, 2, 0], must be 3 times 0 or 1"),
                ({"head_dim": 5}, "5 entries of a head are rotated by base 10000, must be even")):
            with self.subTest(words):
                self.assertIn(words, self.refusal(self.write({**LLAMA, **change}, drawn(LLAMA))))
        self.assertIn("scale_attn_by_inverse_layer_idx = true, must be false", self.refusal(
            self.write({**GPT2, "scale_attn_by_inverse_layer_idx": True})))

    def test_tensors(self):
        tensors, name = drawn(LLAMA), "model.layers.1.mlp.up_proj.weight"
        for change, words in (
                ({name: tensors[name].T}, f"{name} has shape [16, 24], must have [24, 16]"), ({name: None}, f"tensor {name} is missing"),
                ({"model.layers.3.mlp.up_proj.weight": tensors[name]}, 'tensor "model.layers.3.mlp.up_proj.weight" is none of this model'),
                ({"model.layers.0.self_attn.q_proj.bias": np.ones(D, "<f4")}, 'q_proj.bias" is none of this model'),
                ({"lm_head.weight": np.ones((V, D), "<f4")}, "lm_head.weight differs from model.embed_tokens.weight, must be equal")):
            changed = {key: values for key, values in {**tensors, **change}.items() if values is not None}
            with self.subTest(words):
                self.assertIn(words, self.refusal(self.write(LLAMA, changed)))
        self.assertIn("tensor lm_head.weight is missing", self.refusal(self.write({**LLAMA, "tie_word_embeddings": False}, tensors)))

    @unittest.skipUnless(HAS_PROGRAM, "without nas-model, or torch")
    def test_numbers(self):
        for number in (np.nan, np.inf, -1e16):
            tensors = drawn(LLAMA)
            tensors["model.norm.weight"][3] = number
            self.assertIn("model.norm.weight has a number that is none, or beyond 1e+15", self.refusal(self.write(LLAMA, tensors)))

    def test_headers(self):
        folder = self.write(LLAMA)
        whole = (folder / "model.safetensors").read_bytes()
        size = 8 + struct.unpack("<Q", whole[:8])[0]
        header, data = json.loads(whole[8:size]), whole[size:]
        first = "model.embed_tokens.weight"
        entry, other = header[first], header["model.norm.weight"]

        def changed(**values):
            return json.dumps({**header, first: {**entry, **values}})

        for text, rest, words in (
                (changed(data_offsets=[0, 4]), data, "has 4 bytes, must have 2560"), (changed(dtype="F64"), data, "has 2560 bytes, must have 5120"),
                (changed(shape=[V, D, 2**70]), data, "must be integers in"), (changed(shape=[-V, -D]), data, "must be integers in"),
                (changed(dtype="Q9"), data, 'is of type "Q9", must be one of F32, F16, BF16'), (changed(dtype=["F32"]), data, "is of type"),
                (changed(data_offsets=[0, 10**30]), data, "must be integers in"), (changed(shape=None), data, "has shape null"),
                (json.dumps({**header, first: 3}), data, "must have dtype, shape and data_offsets"), ("[1]", data, "header must be a map"),
                (json.dumps({**header, "again": other}), data, "begins at byte"), (json.dumps(header), data + b"\0", "its tensors"),
                (json.dumps({k: v for k, v in header.items() if k != first}), data, "begins at byte 2560, must at 0"),
                (json.dumps(header)[:-1] + f', "{first}": {json.dumps(entry)}}}', data, f'"{first}" is there twice'),
                ("[" * 100000, data, "nested too deeply"), ("{\xff", data, "must be JSON"), ('{"a": ' + "9" * 10**6 + "}", data, "an integer of 1000000 digits"),
                ('{"a": NaN}', data, "must be JSON")):
            raw = text.encode("latin-1")
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + rest)
            with self.subTest(words):
                self.assertIn(words, self.refusal(folder))
        for raw, words in ((b"\0" * 7, "has 7 bytes"), (struct.pack("<Q", 2**63) + whole[8:], "has a header of 9223372036854775808 bytes")):
            (folder / "model.safetensors").write_bytes(raw)
            self.assertIn(words, self.refusal(folder))
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(b"")
        self.assertIn("pytorch_model.bin is a program of pickle, which is not run", self.refusal(folder))

    def test_indices(self):
        folder, tensors = self.write(LLAMA), drawn(LLAMA)
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        names = dict.fromkeys(tensors, "a.safetensors")
        for places, words in (
                ({**names, "model.norm.weight": "../a.safetensors"}, 'names "../a.safetensors", must be files of safetensors beside it'),
                ({**names, "model.norm.weight": "b.safetensors"}, "b.safetensors: no such file"), ({**names, "more": "a.safetensors"}, 'no tensor "more"'),
                ({k: v for k, v in names.items() if k != "model.norm.weight"}, 'has a tensor "model.norm.weight", which'),
                ({**names, "model.norm.weight": ["a"]}, 'names ["a"]'), ([], "weight_map = [], must be a map"), (None, "weight_map = null")):
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")
            with self.subTest(words):
                self.assertIn(words, self.refusal(folder))
        (folder / "b.safetensors").write_bytes(file_of({"model.norm.weight": tensors["model.norm.weight"]}))
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {**names, "model.norm.weight": "b.safetensors"}}))
        self.assertIn('"model.norm.weight" is in a.safetensors, too', self.refusal(folder))

    def test_tokenizers(self):
        folder = self.write(LLAMA)
        for text, words in ((json.dumps({"model": {"vocab": {"a": 0, "b": V}}}), f"has ids up to {V}, the vocabulary of the model is {V}"),
                            (json.dumps({"model": {"vocab": []}, "added_tokens": [{"id": V + 5}]}), f"has ids up to {V + 5}"),
                            (json.dumps({"model": {"vocab": {"a": "0"}}}), "an id of a token is no number"), ("[]", "must be a map"),
                            ("{}", "must have a model with a vocab"), ("{" * 9, "must be JSON")):
            (folder / "tokenizer.json").write_text(text, encoding="utf-8")
            with self.subTest(words):
                self.assertIn(words, self.refusal(folder))

    def test_random_changes_are_refused_or_read(self):
        """Nothing but InputError is raised, whatever a file says; with NAS_FULL ten minutes long."""
        rng, end, counts = random.Random(7), time.monotonic() + 600, {True: 0, False: 0}
        checkpoint_fuzz.prepare(self.folder)
        inputs = {path.name: path.read_bytes() for path in sorted((ROOT / "tests/fuzz/corpus/checkpoint").iterdir())}
        for name, whole in inputs.items():
            self.assertIs(checkpoint_fuzz.read(self.folder, whole), name in TAKEN, name)
        while time.monotonic() < end if os.environ.get("NAS_FULL") else sum(counts.values()) < 1200:
            changed = bytearray(rng.choice([*inputs.values()]))
            for _ in range(rng.choice((1, 1, 2, 8))):
                at = rng.randrange(changed.index(b"\n") + 1, len(changed))
                action = rng.randrange(4)
                if action == 0:
                    changed[at] = rng.randrange(256)
                elif action == 1:
                    del changed[at:at + rng.randrange(1, 40)]
                elif action == 2:
                    changed[at:at] = bytes(rng.choice(b'0123456789{}[]",:-e\0\xff') for _ in range(rng.randrange(1, 9)))
                else:
                    changed[at:at + 8] = struct.pack("<Q", rng.choice((0, 1, 2**31, 2**32, 2**63, 2**64 - 1)))
            counts[checkpoint_fuzz.read(self.folder, bytes(changed))] += 1
        self.assertGreater(counts[False], 3 * counts[True])
        self.assertGreater(counts[True], 10)


def text_of(word):
    return struct.pack("<Q", len(word.encode())) + word.encode()


def value_of(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + text_of(value)
    if isinstance(value, list):
        kind = 8 if isinstance(value[0], str) else 5
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(text_of(v) if kind == 8 else struct.pack("<i", v) for v in value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)


WIDE = {**LLAMA, "hidden_size": 32, "intermediate_size": 64, "head_dim": 8, "rms_norm_eps": 1e-5}
TOKENS = [*"abcdefgh", "\u0120", *"0123456789", *map(str, range(10, 30)), "ab"]
VALUES = {"general.architecture": "llama", "llama.block_count": L, "llama.context_length": C, "llama.embedding_length": 32,
          "llama.feed_forward_length": 64, "llama.attention.head_count": H, "llama.attention.head_count_kv": 2,
          "llama.rope.dimension_count": 8, "llama.rope.freq_base": 10000.0, "llama.attention.layer_norm_rms_epsilon": 1e-5,
          "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": TOKENS,
          "tokenizer.ggml.token_type": [1] * 7 + [3] + [1] * (V - 8), "tokenizer.ggml.merges": ["a b"]}


def gguf_tensors():
    """By the names of GGUF: number of the form, shape with outputs first, bytes."""
    rng, found = np.random.default_rng(5), {}
    shapes = {"token_embd.weight": (8, (V, 32)), "output_norm.weight": (0, (32,))}
    for i in range(L):
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in {
            "attn_norm": (0, (32,)), "ffn_norm": (0, (32,)), "attn_q": (3, (32, 32)), "attn_k": (2, (16, 32)), "attn_v": (1, (16, 32)),
            "attn_output": (30, (32, 32)), "ffn_gate": (3, (64, 32)), "ffn_up": (3, (64, 32)), "ffn_down": (8, (32, 64))}.items()}
    for name, (kind, shape) in shapes.items():
        blocks = int(np.prod(shape)) // 32
        if kind in (0, 1):
            raw = (1 + 0.2 * rng.normal(size=shape)).astype("<f4" if kind == 0 else "<f2").tobytes()
        elif kind == 30:
            raw = (rng.normal(size=shape).astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        else:
            size = {2: 16, 3: 16, 8: 32}[kind]
            raw = b"".join(struct.pack("<e", rng.normal() / (200 if kind == 8 else 15)) + (struct.pack("<e", rng.normal() / 4) if kind == 3 else b"")
                           + rng.bytes(size) for _ in range(blocks))
        found[name] = (kind, shape, raw)
    return found


def gguf_of(tensors, values=VALUES, alignment=32):
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)), b""
    head += b"".join(text_of(name) + value_of(value) for name, value in values.items())
    for name, (kind, shape, raw) in tensors.items():
        head += text_of(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(data))
        data += raw + b"\0" * (-len(raw) % alignment)
    return head + b"\0" * (-len(head) % alignment) + data


def numbers_of(kind, shape, raw):
    """One number at a time."""
    if kind in (0, 1):
        return np.frombuffer(raw, "<f4" if kind == 0 else "<f2").astype("<f4").reshape(shape)
    if kind == 30:
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    size, found = {2: 18, 3: 20, 8: 34}[kind], []
    for begin in range(0, len(raw), size):
        block = raw[begin:begin + size]
        scale, rest = struct.unpack("<e", block[:2])[0], block[size - (32 if kind == 8 else 16):]
        if kind == 8:
            found += [scale * q for q in struct.unpack("<32b", rest)]
        else:
            quants = [byte & 15 for byte in rest] + [byte >> 4 for byte in rest]
            least = struct.unpack("<e", block[2:4])[0] if kind == 3 else -8 * scale
            found += [scale * q + least for q in quants]
    return np.array(found, "<f4").reshape(shape)


class Gguf(Written):
    def write_gguf(self, tensors=None, **values):
        path = self.folder / "small.gguf"
        path.write_bytes(gguf_of(tensors or gguf_tensors(), {**VALUES, **values}))
        return path

    @unittest.skipUnless(HAS_PROGRAM, "without nas-model, or torch")
    def test_logits(self):
        plain = {}
        for name, (kind, shape, raw) in gguf_tensors().items():
            values = numbers_of(kind, shape, raw)
            if "attn_q" in name or "attn_k" in name:  # rows 2i, 2i + 1 of a head are i, i + 4
                values = np.concatenate([head[[0, 2, 4, 6, 1, 3, 5, 7]] for head in np.split(values, len(values) // 8)])
            plain[checkpoint_gguf._name(name)] = values
        global D, F
        before, (D, F) = (D, F), (32, 64)
        try:
            ids = Computed.IDS
            self.assert_near(self.logits(self.write_gguf(), ids), reference("llama", WIDE, plain, ids), 1e-6)
        finally:
            D, F = before

    def test_tokenizer(self):
        checkpoint = checkpoint_gguf.read_gguf(self.write_gguf())
        made = json.loads(checkpoint.tokenizer)
        self.assertEqual(made["model"]["vocab"], {token: i for i, token in enumerate(TOKENS)})
        self.assertEqual([token["content"] for token in made["added_tokens"]], ["h"])
        if has("tokenizers"):
            import tokenizers
            found = tokenizers.Tokenizer.from_str(checkpoint.tokenizer.decode()).encode("ab 12b").tokens
            self.assertEqual(found, ["ab", "\u0120", "1", "2", "b"])
        unknown = checkpoint_gguf.read_gguf(self.write_gguf(**{"tokenizer.ggml.pre": "other"}))
        self.assertIsNone(unknown.tokenizer)
        self.assertIn('pre = "other" is not read', unknown.notes[0])

    def test_refusals(self):
        for values, words in (({"general.architecture": "mamba"}, 'general.architecture = "mamba", must be one of llama, qwen2, qwen3'),
                              ({"llama.expert_count": 8}, "llama.expert_count = 8: the feed-forward layers are experts"),
                              ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}, 'rope_type = "yarn"'),
                              ({"llama.rope.dimension_count": 4}, "rope.dimension_count = 4, must be the width of heads 8"),
                              ({"llama.attention.sliding_window": 4}, "llama.attention.sliding_window = 4 is not known"),
                              ({"tokenizer.ggml.merges": ["a z"]}, "merges and token_type do not fit"), ({"llama.vocab_size": 30}, "must have [30, 32]"),
                              ({"split.count": 2}, "split.count = 2"), ({"general.alignment": 0}, "general.alignment = 0")):
            with self.subTest(words):
                self.assertIn(words, self.refusal(self.write_gguf(**values)))
        tensors = gguf_tensors()
        kind, shape, raw = tensors["output_norm.weight"]
        for change, words in (({"output_norm.weight": (9, shape, raw)}, "is of type 9, must be one of F32 (0)"), ({"rope_freqs.weight": (0, (4,), b"\0" * 16)}, "rope_freqs.weight"),
                              ({"output_norm.weight": (0, (2**40, 2**40), raw)}, "ends at byte"), ({"output_norm.weight": (8, (33,), raw)}, "must be rows of 32 numbers")):
            with self.subTest(words):
                self.assertIn(words, self.refusal(self.write_gguf({**tensors, **change})))
        whole = gguf_of(tensors)
        path = self.folder / "cut.gguf"
        for data, words in ((whole[:-40], "the file at"), (whole[:1000], "ends at byte 1000"), (b"GGUG" + whole[4:], "must be a file of GGUF"),
                            (whole[:8] + b"\xff" * 16 + whole[24:], "values, must be at most"), (whole + b"\0" * 64, "its tensors end at")):
            path.write_bytes(data)
            with self.subTest(words):
                self.assertIn(words, self.refusal(path))
