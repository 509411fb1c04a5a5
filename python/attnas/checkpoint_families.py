"""Families of checkpoints: which keys of config.json and which tensors are which of attnas's.

A family is a table. Whatever changes the function and is not in it is refused by its name; defaults
are those of the library transformers, which leaves keys out.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy

from attnas.checkpoints import Checkpoint, Stored, is_count, shown
from attnas.errors import InputError

NEEDED = object()
# Facts that are sizes, and the most that each may be.
SIZES = {"width": 10**6, "layers": 10**4, "heads": 10**6, "kv_heads": 10**6, "head_width": 65536,
         "hidden": 10**7, "vocabulary": 10**8, "context": 10**9, "window": 2**53}
DEFAULT_EPS = 1e-5
FLAGS = ("tied", "attention_bias", "mlp_bias", "parallel", "use_window")

_SIZES = {"hidden_size": ("width", NEEDED), "num_hidden_layers": ("layers", NEEDED),
          "num_attention_heads": ("heads", NEEDED), "intermediate_size": ("hidden", NEEDED),
          "vocab_size": ("vocabulary", NEEDED), "max_position_embeddings": ("context", NEEDED)}
_LLAMA = {**_SIZES, "num_key_value_heads": ("kv_heads", None), "head_dim": ("head_width", None),
          "rms_norm_eps": ("eps", 1e-6), "hidden_act": ("activation", "silu"),
          "tie_word_embeddings": ("tied", False), "rope_theta": ("theta", None),
          "rope_scaling": ("scaling", None), "rope_parameters": ("rope", None)}
_WINDOWS = {"sliding_window": ("window", 4096), "use_sliding_window": ("use_window", False),
            "max_window_layers": ("first_window", 28), "layer_types": ("layer_types", None)}
_BIASES = {"attention_bias": ("attention_bias", False), "mlp_bias": ("mlp_bias", False)}


def _rows(*parts: tuple) -> tuple[tuple, ...]:
    """(ours, theirs, shape, when, take) of each weight and bias, from parts (ours, theirs, shape of
    the weight, when it has a bias, take, when there is such a part). N is each layer; D, F, V, C,
    A, K are the width, hidden width, vocabulary, context, and widths of all queries and all keys;
    h that of a head. `when` is a fact, `take` what is taken of theirs.
    """
    rows = []
    for ours, theirs, shape, *more in parts:
        biased, take, when = (*more, "", "", "")[:3]
        rows.append((ours + ".weight", theirs + ".weight", shape, when, take))
        if biased:
            outputs = shape.split()[-1 if take.startswith(("transposed", "third")) else 0]
            rows.append((ours + ".bias", theirs + ".bias", outputs, biased, take))
    return tuple(rows)


_BLOCK = "layers.N."
_LLAMA_TENSORS = _rows(
    ("embedding", "model.embed_tokens", "V D"),
    (_BLOCK + "attention_norm", "model.layers.N.input_layernorm", "D"),
    (_BLOCK + "attention.q_proj", "model.layers.N.self_attn.q_proj", "A D", "qkv_bias", "queries"),
    (_BLOCK + "attention.k_proj", "model.layers.N.self_attn.k_proj", "K D", "qkv_bias", "keys"),
    (_BLOCK + "attention.v_proj", "model.layers.N.self_attn.v_proj", "K D", "qkv_bias"),
    (_BLOCK + "attention.out_proj", "model.layers.N.self_attn.o_proj", "D A", "out_bias"),
    (_BLOCK + "attention.q_norm", "model.layers.N.self_attn.q_norm", "h", "", "", "qk_norm"),
    (_BLOCK + "attention.k_norm", "model.layers.N.self_attn.k_norm", "h", "", "", "qk_norm"),
    (_BLOCK + "feed_forward_norm", "model.layers.N.post_attention_layernorm", "D"),
    (_BLOCK + "feed_forward.gate", "model.layers.N.mlp.gate_proj", "F D", "mlp_bias"),
    (_BLOCK + "feed_forward.expand", "model.layers.N.mlp.up_proj", "F D", "mlp_bias"),
    (_BLOCK + "feed_forward.contract", "model.layers.N.mlp.down_proj", "D F", "mlp_bias"),
    ("final_norm", "model.norm", "D"), ("head", "lm_head", "V D", "", "", "untied"))
_GPT2_TENSORS = _rows(
    ("embedding", "transformer.wte", "V D"), ("position", "transformer.wpe", "C D"),
    (_BLOCK + "attention_norm", "transformer.h.N.ln_1", "D", "always"),
    *((_BLOCK + f"attention.{name}_proj", "transformer.h.N.attn.c_attn", "D 3D", "always",
       f"third {i}") for i, name in enumerate("qkv")),
    (_BLOCK + "attention.out_proj", "transformer.h.N.attn.c_proj", "D D", "always", "transposed"),
    (_BLOCK + "feed_forward_norm", "transformer.h.N.ln_2", "D", "always"),
    (_BLOCK + "feed_forward.expand", "transformer.h.N.mlp.c_fc", "D F", "always", "transposed"),
    (_BLOCK + "feed_forward.contract", "transformer.h.N.mlp.c_proj", "F D", "always", "transposed"),
    ("final_norm", "transformer.ln_f", "D", "always"), ("head", "lm_head", "V D", "", "", "untied"))
_NEOX_TENSORS = _rows(
    ("embedding", "gpt_neox.embed_in", "V D"),
    (_BLOCK + "attention_norm", "gpt_neox.layers.N.input_layernorm", "D", "always"),
    *((_BLOCK + f"attention.{name}_proj", "gpt_neox.layers.N.attention.query_key_value", "3D D",
       "qkv_bias", f"of heads {i}") for i, name in enumerate("qkv")),
    (_BLOCK + "attention.out_proj", "gpt_neox.layers.N.attention.dense", "D D", "out_bias"),
    (_BLOCK + "feed_forward_norm", "gpt_neox.layers.N.post_attention_layernorm", "D", "always"),
    (_BLOCK + "feed_forward.expand", "gpt_neox.layers.N.mlp.dense_h_to_4h", "F D", "always"),
    (_BLOCK + "feed_forward.contract", "gpt_neox.layers.N.mlp.dense_4h_to_h", "D F", "always"),
    ("final_norm", "gpt_neox.final_layer_norm", "D", "always"),
    ("head", "embed_out", "V D", "", "", "untied"))
_GATED = {"silu": "swiglu", "swish": "swiglu"}
_PLAIN = {**dict.fromkeys(("gelu", "gelu_python"), "gelu"), "relu2": "relu2",
          **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh",
                           "gelu_python_tanh"), "gelu_tanh")}


@dataclasses.dataclass(frozen=True)
class Family:
    """Keys of config.json, by which fact each is and its default; tensors; feed-forward layers by
    the word of their activation."""

    classes: tuple[str, ...]
    prefix: str  # of names of tensors, which files of a model without output matrix leave out
    keys: dict[str, tuple[str, Any]]
    tensors: tuple[tuple, ...]
    activations: dict[str, str]
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    must: dict[str, Any] = dataclasses.field(default_factory=dict)  # keys of one value alone


FAMILIES = {
    "llama": Family(("LlamaForCausalLM", "LlamaModel"), "model.", {**_LLAMA, **_BIASES},
                    _LLAMA_TENSORS, _GATED),
    "mistral": Family(("MistralForCausalLM", "MistralModel"), "model.",
                      {**_LLAMA, "num_key_value_heads": ("kv_heads", 8),
                       "sliding_window": ("window", 4096)},
                      _LLAMA_TENSORS, _GATED, {"windows": "all"}),
    "qwen2": Family(("Qwen2ForCausalLM", "Qwen2Model"), "model.",
                    {**_LLAMA, **_WINDOWS, "num_key_value_heads": ("kv_heads", 32)},
                    _LLAMA_TENSORS, _GATED, {"qkv_bias": True, "windows": "upper"},
                    {"use_mrope": False}),
    "qwen3": Family(("Qwen3ForCausalLM", "Qwen3Model"), "model.",
                    {**_LLAMA, **_WINDOWS, "num_key_value_heads": ("kv_heads", 32),
                     "head_dim": ("head_width", 128),
                     "attention_bias": ("attention_bias", False)},
                    _LLAMA_TENSORS, _GATED, {"qk_norm": True, "windows": "upper"}),
    "smollm3": Family(("SmolLM3ForCausalLM", "SmolLM3Model"), "model.",
                      {**_LLAMA, **_WINDOWS, **_BIASES, "num_key_value_heads": ("kv_heads", 4),
                       "tie_word_embeddings": ("tied", True),
                       "sliding_window": ("window", None),
                       "no_rope_layers": ("rotated", None),
                       "no_rope_layer_interval": ("interval", 4)},
                      _LLAMA_TENSORS, _GATED, {"windows": "unrotated", "default_theta": 2e6}),
    "gpt2": Family(("GPT2LMHeadModel", "GPT2Model"), "transformer.",
                   {"n_embd": ("width", NEEDED), "n_layer": ("layers", NEEDED),
                    "n_head": ("heads", NEEDED), "n_inner": ("hidden", None),
                    "vocab_size": ("vocabulary", NEEDED), "n_positions": ("context", NEEDED),
                    "layer_norm_epsilon": ("eps", 1e-5), "tie_word_embeddings": ("tied", True),
                    "activation_function": ("activation", "gelu_new")},
                   _GPT2_TENSORS, _PLAIN,
                   {"norm": "layer", "position_embedding": "learned", "attention_bias": True},
                   {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
                    "add_cross_attention": False}),
    "gpt_neox": Family(("GPTNeoXForCausalLM", "GPTNeoXModel"), "gpt_neox.",
                       {**_SIZES, "layer_norm_eps": ("eps", 1e-5),
                        "hidden_act": ("activation", "gelu"),
                        "tie_word_embeddings": ("tied", False),
                        "use_parallel_residual": ("parallel", True),
                        "attention_bias": ("attention_bias", True),
                        "rotary_emb_base": ("theta", None), "rotary_pct": ("fraction", 0.25),
                        "rope_scaling": ("scaling", None), "rope_parameters": ("rope", None)},
                       _NEOX_TENSORS, _PLAIN, {"norm": "layer"}),
}

# What other families have that no table says.
MISSING = {
    "gemma": "scaled embeddings and norms of 1 + w",
    "gemma2": "scaled embeddings, norms of 1 + w before and behind, soft caps of scores and "
              "logits, a gate of tanh GELU",
    "gemma3_text": "scaled embeddings, norms of 1 + w before and behind, two rotations, a gate of "
                   "tanh GELU",
    "phi3": "matrices of queries, keys and values in one",
    "olmo2": "norms behind the parts alone, of whole queries and keys",
    "cohere": "layer norms without bias, a scale of logits",
    "granite": "multipliers of embeddings, scores, the stream and logits",
    "mamba": "states in place of attention", "mamba2": "states in place of attention",
}
# Keys that change nothing of what a model computes.
HARMLESS = {
    "_name_or_path", "architectures", "model_type", "transformers_version", "torch_dtype", "dtype",
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id",
    "use_cache", "initializer_range", "attention_dropout", "hidden_dropout", "classifier_dropout",
    "attn_pdrop", "embd_pdrop", "resid_pdrop", "pretraining_tp", "reorder_and_upcast_attn",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "n_ctx", "task_specific_params", "is_decoder", "output_hidden_states",
    "output_attentions", "output_scores", "return_dict", "return_dict_in_generate", "torchscript",
    "use_bfloat16", "problem_type", "finetuning_task", "id2label", "label2id", "num_labels",
    "prefix", "tokenizer_class", "chunk_size_feed_forward", "max_length", "min_length",
    "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
    "tie_encoder_decoder", "attn_implementation", "_attn_implementation",
    "_attn_implementation_autoset", "unsloth_fixed", "unsloth_version",
    "transformers.js_config", "max_window_layers", "gradient_checkpointing",
    "keys_to_ignore_at_inference"}
# Keys that change nothing where they have this value, in families that have no others.
NEUTRAL = {"attention_bias": False, "mlp_bias": False, "use_sliding_window": False,
           "is_encoder_decoder": False, "add_cross_attention": False, "is_causal": True,
           "rope_interleaved": False, "partial_rotary_factor": 1.0, "pruned_heads": {},
           "use_bidirectional_attention": False, "is_llama_config": True}
HARMLESS_TENSORS = ("rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "attention.bias",
                    "attention.masked_bias")


def _refuse(where: str, key: str, value: object, allowed: str) -> None:
    raise InputError(f"{where}: {key} = {shown(value)}, must be {allowed}")


def family_of(checkpoint: Checkpoint) -> tuple[str, Family]:
    """@throws InputError  saying what attnas lacks for a checkpoint of another family."""
    config, where = checkpoint.config, checkpoint.where
    name = config.get("model_type")
    for key, value in config.items():
        if ("expert" in key or "moe" in key) and value not in (None, False, 0, []):
            raise InputError(f"{where}: {key} = {shown(value)}: the feed-forward layers are "
                             f"experts, which are not read")
    if not isinstance(name, str) or name not in FAMILIES:
        lacking = MISSING.get(name) if isinstance(name, str) else None
        raise InputError(f"{where}: model_type = {shown(name)}, must be one of "
                         f"{', '.join(FAMILIES)}" + (f": it has {lacking}" if lacking else ""))
    classes = config.get("architectures")
    family = FAMILIES[name]
    if classes is not None and (not isinstance(classes, list) or not classes
                                or classes[0] not in family.classes):
        _refuse(where, "architectures", classes, f"one of {', '.join(family.classes)}")
    return name, family


def _require_known_keys(family: Family, config: dict, where: str) -> None:
    for key, value in config.items():
        if key in family.keys or key in HARMLESS or value is None:
            continue
        if key in family.must or key in NEUTRAL:
            wanted = family.must.get(key, NEUTRAL.get(key))
            if value != wanted or type(value) not in (type(wanted), int):
                _refuse(where, key, value, f"{shown(wanted)}: nothing else is computed")
        elif key != "layer_types" or not isinstance(value, list) or {*map(str, value)} != {
                "full_attention"}:
            raise InputError(f"{where}: {key} = {shown(value)} is not known; it may change what "
                             f"the model computes")


def _checked(fact: str, key: str, value: Any, where: str) -> Any:
    if fact in SIZES and not (is_count(value, SIZES[fact]) and value > 0):
        _refuse(where, key, value, f"an integer in [1, {SIZES[fact]}]")
    if fact in FLAGS and not isinstance(value, bool):
        _refuse(where, key, value, "true or false")
    if fact in ("eps", "theta", "fraction") and not (
            type(value) in (int, float) and 0 < value <= (2**53 if fact == "theta" else 1)):
        _refuse(where, key, value, "a number in (0, 1]" if fact != "theta" else "a number > 0")
    return value


def facts_of(family: Family, config: dict, where: str) -> dict:
    """What a configuration says, in words of all families. @throws InputError  naming the key that
    is not known, or what is no value of it."""
    _require_known_keys(family, config, where)
    facts = {"attention_bias": False, "mlp_bias": False, "parallel": False, "norm": "rms",
             "position_embedding": "none", "qk_norm": False, "windows": "", "default_theta": 1e4,
             "qkv_bias": False, "always": True, "kv_heads": None, "head_width": None,
             **family.facts}
    for key, (fact, default) in family.keys.items():
        value = config.get(key, default)
        if value is NEEDED or (value is None and default is NEEDED):
            raise InputError(f"{where}: {key} is missing")
        if value is None and fact in FLAGS + ("eps", "activation"):
            value = default
        facts[fact] = value if value is None else _checked(fact, key, value, where)
    facts["kv_heads"] = facts["kv_heads"] or facts["heads"]
    facts["hidden"] = facts["hidden"] or 4 * facts["width"]
    facts["qkv_bias"] = facts["qkv_bias"] or facts["attention_bias"]
    facts["out_bias"], facts["untied"] = facts["attention_bias"], not facts["tied"]
    _add_shapes(facts, where)
    _add_activation(family, facts, where)
    _add_rotation(facts, config, where)
    _add_windows(facts, config, where)
    return facts


def _add_shapes(facts: dict, where: str) -> None:
    width, heads, keys = facts["width"], facts["heads"], facts["kv_heads"]
    if facts["head_width"] is None:
        if width % heads:
            raise InputError(f"{where}: {heads} heads, must divide the width {width} where "
                             f"head_dim is not given")
        facts["head_width"] = width // heads
    if heads % keys:
        raise InputError(f"{where}: {heads} heads, must be a multiple of {keys} heads of keys")
    head = facts["head_width"]
    facts["shapes"] = {"D": width, "F": facts["hidden"], "V": facts["vocabulary"],
                       "C": facts["context"], "A": heads * head, "K": keys * head, "h": head,
                       "3D": 3 * width}


def _add_activation(family: Family, facts: dict, where: str) -> None:
    word = facts["activation"]
    if not isinstance(word, str) or word not in family.activations:
        key = next(key for key, (fact, _) in family.keys.items() if fact == "activation")
        _refuse(where, key, word, f"one of {', '.join(family.activations)}")
    ffn = family.activations[word]
    facts["ffn"] = "swiglu_bias" if facts["mlp_bias"] and ffn == "swiglu" else ffn


ROPE_KEYS = {"default": (), "linear": ("factor",),
             "llama3": ("factor", "low_freq_factor", "high_freq_factor",
                        "original_max_position_embeddings")}


def _add_rotation(facts: dict, config: dict, where: str) -> None:
    """rope_scaling beside rope_theta is transformers 4's form, rope_parameters 5's; the former
    counts where both are there."""
    facts["rope_genes"] = {}
    if facts["position_embedding"] == "learned":
        return
    key = "rope_scaling" if facts["scaling"] else "rope_parameters"
    given = facts["scaling"] or facts["rope"] or {}
    if not isinstance(given, dict):
        _refuse(where, key, given, "a map")
    kind = given.get("rope_type", given.get("type", "default"))
    if not isinstance(kind, str) or kind not in ROPE_KEYS:
        _refuse(where, f"{key}.rope_type", kind, f"one of {', '.join(ROPE_KEYS)}")
    for name in given:
        if given[name] is not None and name not in (
                "rope_type", "type", "rope_theta", "partial_rotary_factor", *ROPE_KEYS[kind]):
            raise InputError(f"{where}: {key}.{name} = {shown(given[name])} is not known beside "
                             f"rope_type {kind}")
    numbers = {"original_max_position_embeddings": facts["context"], **given}
    for name in ROPE_KEYS[kind]:
        value = numbers.get(name)
        if type(value) not in (int, float) or not 0 < value <= 2**53:
            _refuse(where, f"{key}.{name}", value, "a number > 0")
    theta = given.get("rope_theta", facts["theta"])
    theta = facts["default_theta"] if theta is None else theta
    facts["rope_genes"] = {
        **_base(facts, given, _checked("theta", "rope_theta", theta, where), where),
        **_scaling(kind, numbers, where)}


def _base(facts: dict, given: dict, theta: float, where: str) -> dict:
    """Of r entries, an odd number, r + 1 are rotated by theta^(-2 i / r)."""
    head = facts["head_width"]
    share = given.get("partial_rotary_factor", facts.get("fraction", 1.0))
    turned = int(head * _checked("fraction", "partial_rotary_factor", share, where))
    if "fraction" not in facts and turned != head:
        _refuse(where, "partial_rotary_factor", share, "1 in this family")
    if turned % 2 and turned < head:
        theta, turned = theta ** ((turned + 1) / turned), turned + 1
    if turned % 2 or not 1 <= theta <= 2**53:
        raise InputError(f"{where}: {turned} entries of a head are rotated by base {theta:g}, must "
                         f"be even, of a base in [1, 2^53]")
    return {"rope_base": theta, **({} if turned == head else {"rope_fraction": turned / head})}


def _scaling(kind: str, numbers: dict, where: str) -> dict:
    if kind == "default":
        return {}
    if kind == "linear":
        return {"rope_factor": numbers["factor"]}
    original = numbers["original_max_position_embeddings"]
    low, high = numbers["low_freq_factor"], numbers["high_freq_factor"]
    if original != int(original) or not low < high:
        raise InputError(f"{where}: low_freq_factor = {low}, must be below high_freq_factor = "
                         f"{high}, beside an integer original_max_position_embeddings")
    return {"rope_factor": numbers["factor"], "rope_original": int(original), "rope_low": low,
            "rope_high": high}


def _add_windows(facts: dict, config: dict, where: str) -> None:
    """Which layers are rotated, and which see a window: what takes effect, not what is written."""
    layers = facts["layers"]
    turned = facts.get("rotated")
    if turned is None:
        every = facts.get("interval", 0)
        if not is_count(every, 10**6) or ("interval" in facts and not every):
            _refuse(where, "no_rope_layer_interval", every, "an integer > 0")
        turned = [not every or (i + 1) % every != 0 for i in range(layers)]
    if not isinstance(turned, list) or len(turned) != layers or not all(
            value in (0, 1) and isinstance(value, (bool, int)) for value in turned):
        _refuse(where, "no_rope_layers", turned, f"{layers} times 0 or 1")
    facts["rotated"] = [bool(value) and facts["position_embedding"] == "none" for value in turned]
    rule, window = facts["windows"], facts.get("window")
    if rule == "upper" and not facts["use_window"]:
        window = None
    kinds = facts.get("layer_types")
    if rule == "upper" and window and not is_count(facts["first_window"], 2**53):
        _refuse(where, "max_window_layers", facts["first_window"], "an integer >= 0")
    if kinds is None:
        kinds = ["sliding_attention" if window and _slides(rule, facts, i) else "full_attention"
                 for i in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or not {*map(str, kinds)} <= {
            "full_attention", "sliding_attention"}:
        _refuse(where, "layer_types", kinds, f"{layers} times full_attention or sliding_attention")
    if "sliding_attention" in kinds and window is None:
        raise InputError(f"{where}: layer_types has sliding_attention, but no window takes effect: "
                         f"sliding_window = {shown(config.get('sliding_window'))}, "
                         f"use_sliding_window = {shown(config.get('use_sliding_window', False))}")
    facts["seen"] = [window if kind == "sliding_attention" else None for kind in kinds]


def _slides(rule: str, facts: dict, layer: int) -> bool:
    """Where layer_types are not given."""
    if rule == "all":
        return True
    if rule == "upper":
        return layer >= facts["first_window"]
    return rule == "unrotated" and facts["use_window"] and not facts["rotated"][layer]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def _genes(genes: dict) -> str:
    listed = ",".join(f"{gene}={_text(value)}" for gene, value in genes.items())
    return f"{{{listed}}}" if listed else ""


def _model_genes(facts: dict) -> dict:
    genes = {"position_embedding": facts["position_embedding"], "norm": facts["norm"]}
    if facts["eps"] != DEFAULT_EPS:
        genes["norm_eps"] = facts["eps"]
    if facts["parallel"]:
        genes["block"] = "parallel_norms"
    if facts["untied"]:
        genes["tied"] = 0
    if not facts["out_bias"]:
        genes["bias"] = "qkv" if facts["qkv_bias"] else "none"
    return genes


def _attention_genes(facts: dict) -> dict:
    """Those that all layers have."""
    genes: dict = {}
    if facts["kv_heads"] != facts["heads"]:
        genes["kv_heads"] = facts["kv_heads"]
    if facts["head_width"] * facts["heads"] != facts["width"]:
        genes["head_width"] = facts["head_width"]
    if facts["qk_norm"]:
        genes["qk_norm"] = "rms"
        if facts["eps"] != DEFAULT_EPS:
            genes["qk_eps"] = facts["eps"]
    return {**genes, "dropout": 0}


def name_of(facts: dict) -> str:
    """The architecture as a name of attnas's genes, not canonical."""
    attention, layers = _attention_genes(facts), []
    for turned, window in zip(facts["rotated"], facts["seen"]):
        genes = dict(attention)
        if turned:
            genes |= {"position": "rope", **facts["rope_genes"]}
        if window is not None:
            genes |= {"pattern": "window", "window": window}
        text = f"attn{_genes(genes)}+{facts['ffn']}"
        if layers and layers[-1][1] == text:
            layers[-1][0] += 1
        else:
            layers.append([1, text])
    return f"model{_genes(_model_genes(facts))}/" + "/".join(
        text if count == 1 else f"{count}*{text}" for count, text in layers)


@dataclasses.dataclass(frozen=True)
class Planned:
    """A tensor of ours: where it comes from, and what is taken of that ("" all, in order)."""

    name: str
    source: Stored
    shape: tuple[int, ...]
    take: str
    facts: dict

    def pieces(self):
        """Its numbers in order."""
        if not self.take:
            return self.source.pieces()
        return iter([numpy.ascontiguousarray(taken(self.take, self.source.values(), self.facts))])


def taken(take: str, values: numpy.ndarray, facts: dict) -> numpy.ndarray:
    head = facts["head_width"]
    if take == "transposed":
        return values.T
    if take.startswith("third"):  # columns of q, k, v one after the other
        return numpy.split(values, 3, -1)[int(take[-1])].T
    if take.startswith("of heads"):  # q, k, v of each head beside each other
        by_head = values.reshape(facts["heads"], 3, head, *values.shape[1:])
        return by_head[:, int(take[-1])].reshape(-1, *values.shape[1:])
    # queries, keys: pairs beside each other
    return values.reshape(-1, head // 2, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def _taken_shape(take: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if take == "transposed":
        return shape[::-1]
    if take.startswith("third"):
        return (shape[-1] // 3, *shape[:-1])
    return (shape[0] // 3, *shape[1:]) if take.startswith("of heads") else shape


def plan_of(family: Family, facts: dict, checkpoint: Checkpoint) -> list[Planned]:
    """Where each tensor of the model comes from. @throws InputError  if one is missing, has another
    shape, or is none of the model."""
    tensors, used, plan = checkpoint.tensors, set(), []
    bare = not any(name.startswith(family.prefix) for name in tensors)

    def add(ours, theirs, shape, when="", take=""):
        if when and not facts[when]:
            return
        theirs = theirs.removeprefix(family.prefix) if bare else theirs
        if theirs not in tensors:
            raise InputError(f"{checkpoint.where}: tensor {theirs} is missing")
        source, wanted = tensors[theirs], tuple(facts["shapes"][size] for size in shape.split())
        if source.shape != wanted:
            raise InputError(f"{source.path}: {theirs} has shape {shown(source.shape)}, must have "
                             f"{shown(wanted)}")
        if take in ("queries", "keys") and not checkpoint.permuted:
            take = ""
        used.add(theirs)
        plan.append(Planned(ours, source, _taken_shape(take, wanted), take, facts))

    rows = [(row, "N" in row[0].split(".")) for row in family.tensors]
    for row in [row for row, of_layers in rows if not of_layers]:
        add(*row)
    for layer in range(facts["layers"]):
        for row in [row for row, of_layers in rows if of_layers]:
            add(*(text.replace(".N.", f".{layer}.") for text in row[:2]), *row[2:])
    output = family.tensors[-1][1]
    for name in sorted(tensors.keys() - used):
        if name == output:
            _require_tied(tensors[plan[0].source.name], tensors[name])
        elif not name.endswith(HARMLESS_TENSORS):
            raise InputError(f"{tensors[name].path}: tensor {shown(name)} is none of this model; "
                             f"it may change what the model computes")
    return plan


def _require_tied(embedding: Stored, output: Stored) -> None:
    """@throws InputError  if the output matrix is another than the embedding."""
    same = embedding.shape == output.shape
    if same and (embedding.path, embedding.begin) != (output.path, output.begin):
        same = all(numpy.array_equal(a, b) for a, b in zip(embedding.pieces(), output.pieces()))
    if not same:
        raise InputError(f"{output.path}: {output.name} differs from {embedding.name}, must be "
                         f"equal: tie_word_embeddings is true")


def count_numbers(plan: list[Planned]) -> int:
    return sum(math.prod(tensor.shape) for tensor in plan)
