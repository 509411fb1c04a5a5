"""One file of GGUF as a checkpoint in the words of Hugging Face, with its tokenizer.json."""

from __future__ import annotations

import ctypes
import json
import math
import pathlib
import struct
from typing import Any, BinaryIO

from attnas.checkpoints import GGUF_FORMS, Checkpoint, Stored, by_name, read_exactly, regular_file
from attnas.checkpoints import shown
from attnas.errors import InputError

MAGIC, VERSIONS = b"GGUF", (2, 3)
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9
LARGEST_WORD, LARGEST_ARRAY, LARGEST_COUNT = 1 << 20, 1 << 22, 1 << 16
# Keys of an architecture, {a}.KEY, that config.json has, too.
KEYS = {
    "block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta", "vocab_size": "vocab_size",
}
CHECKED = ("attention.value_length", "rope.dimension_count", "rope.scaling.type",
           "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.finetuned")
TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
ARCHITECTURES = ("llama", "qwen2", "qwen3")
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
# Normalizer and what cuts a text, by tokenizer.ggml.pre.
CUTS = {
    "gpt-2": (None, LEVEL),
    "smollm": (None, {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, LEVEL]}),
    "qwen2": ({"type": "NFC"}, {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False},
        {**LEVEL, "use_regex": False}]})}
CONTROL, USER_DEFINED = 3, 4  # types of tokens


class Reader:
    """Numbers, words and lists of a file in the order in which they are there."""

    def __init__(self, file: BinaryIO, path: pathlib.Path, size: int):
        self.file, self.path, self.size = file, path, size

    def take(self, count: int) -> bytes:
        """@throws InputError  if there are not so many bytes, before room is made for them."""
        if count > self.size - self.file.tell():
            raise InputError(f"{self.path}: ends at byte {self.size}, where {count} more must be "
                             f"behind byte {self.file.tell()}")
        return read_exactly(self.file, count, self.path)

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def word(self) -> str:
        size = self.number("Q")
        if size > LARGEST_WORD:
            raise InputError(f"{self.path}: a word of {size} bytes, must be at most "
                             f"{LARGEST_WORD}")
        return self.take(size).decode(errors="replace")

    def value(self, kind: int) -> Any:
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == STRING:
            return self.word()
        if kind != ARRAY:
            raise InputError(f"{self.path}: type {kind} of a value, must be at most 12")
        kind, count = self.number("I"), self.number("Q")
        if kind == ARRAY or count > LARGEST_ARRAY:
            raise InputError(f"{self.path}: a list of {count} values of type {kind}, must be at "
                             f"most {LARGEST_ARRAY} that are no lists")
        if kind in NUMBERS:
            size = struct.calcsize(f"<{NUMBERS[kind]}")
            return [*struct.unpack(f"<{count}{NUMBERS[kind]}", self.take(count * size))]
        return [self.value(kind) for _ in range(count)]


def _read_tensor(reader: Reader) -> tuple[str, tuple[int, ...], int, int]:
    name, count = reader.word(), reader.number("I")
    if count > 4:
        raise InputError(f"{reader.path}: {shown(name)} has {count} dimensions, must be at most 4")
    shape = tuple(reader.number("Q") for _ in range(count))
    return name, shape[::-1], reader.number("I"), reader.number("Q")


def _place(entry: tuple, path: pathlib.Path, begin: int, size: int) -> tuple[Stored, int]:
    """A tensor, and the byte behind it."""
    name, shape, kind, offset = entry
    form = GGUF_FORMS.get(kind)
    if form is None:
        known = ", ".join(f"{known.name} ({number})" for number, known in GGUF_FORMS.items())
        raise InputError(f"{path}: {shown(name)} is of type {kind}, must be one of {known}")
    numbers = math.prod(shape)
    if not shape or min(shape) < 1 or shape[-1] % form.numbers:
        raise InputError(f"{path}: {shown(name)} has shape {shown(shape)}, must be rows of "
                         f"{form.numbers} numbers")
    end = begin + offset + numbers // form.numbers * form.size
    if end > size:
        raise InputError(f"{path}: {shown(name)} ends at byte {end}, the file at {size}")
    return Stored(name, shape, form, path, begin + offset), end


def _places(entries: list[tuple], path: pathlib.Path, begin: int, size: int,
            alignment: int) -> list[Stored]:
    """@throws InputError  unless tensors lie side by side, each at the next multiple."""
    tensors, last = [], begin
    for tensor, end in sorted((_place(entry, path, begin, size) for entry in entries),
                              key=lambda found: found[0].begin):
        if tensor.begin != last:
            raise InputError(f"{path}: {shown(tensor.name)} begins at byte {tensor.begin}, must "
                             f"at {last}, behind the one before")
        last = begin + -(-(end - begin) // alignment) * alignment
        tensors.append(tensor)
    if tensors and not end <= size <= last:
        raise InputError(f"{path}: has {size} bytes, its tensors end at {end}")
    return tensors


def _contents(path: pathlib.Path) -> tuple[dict, list[Stored]]:
    """What a file says of itself, and its tensors."""
    size = regular_file(path)
    with open(path, "rb") as file:
        reader = Reader(file, path, size)
        if size < 24 or reader.take(4) != MAGIC:
            raise InputError(f"{path}: must be a file of GGUF")
        version = reader.number("I")
        if version not in VERSIONS:
            raise InputError(f"{path}: GGUF of version {version}, must be one of "
                             f"{', '.join(map(str, VERSIONS))}")
        counts = reader.number("Q"), reader.number("Q")
        if max(counts) > LARGEST_COUNT:
            raise InputError(f"{path}: {counts[0]} tensors and {counts[1]} values, must be at most "
                             f"{LARGEST_COUNT}")
        values: dict = {}
        for _ in range(counts[1]):
            name = reader.word()
            if name in values:
                raise InputError(f"{path}: {shown(name)} is there twice")
            values[name] = reader.value(reader.number("I"))
        entries = [_read_tensor(reader) for _ in range(counts[0])]
        alignment = values.get("general.alignment", 32)
        if type(alignment) is not int or not 1 <= alignment <= 1 << 16:
            raise InputError(f"{path}: general.alignment = {shown(alignment)}, must be in "
                             f"[1, 65536]")
        begin = -(-file.tell() // alignment) * alignment
    return values, _places(entries, path, begin, size, alignment)


def _configuration(values: dict, path: pathlib.Path) -> dict:
    """What config.json would say."""
    family = values.get("general.architecture")
    if family not in ARCHITECTURES:
        raise InputError(f"{path}: general.architecture = {shown(family)}, must be one of "
                         f"{', '.join(ARCHITECTURES)}")
    if values.get("split.count", 0) not in (0, 1):
        raise InputError(f"{path}: split.count = {shown(values['split.count'])}, must be one file")
    own = {name[len(family) + 1:]: value for name, value in values.items()
           if name.startswith(family + ".")}
    config = {"model_type": family}
    for name, value in own.items():
        if name in KEYS:
            config[KEYS[name]] = value
        elif "expert" in name and value:
            raise InputError(f"{path}: {family}.{name} = {shown(value)}: the feed-forward layers "
                             f"are experts, which are not read")
        elif name not in CHECKED and "expert" not in name:
            raise InputError(f"{path}: {family}.{name} = {shown(value)} is not known")
    _complete(config, own, f"{path}: {family}.")
    return config


def _complete(config: dict, own: dict, where: str) -> None:
    """@throws InputError  where heads are rotated in part."""
    for name in ("rms_norm_eps", "rope_theta"):
        if isinstance(config.get(name), float):
            config[name] = _shortest(config[name])
    heads, width = config.get("num_attention_heads"), config.get("hidden_size")
    if not config.get("head_dim") and type(heads) is int and type(width) is int and heads > 0:
        config["head_dim"] = width // heads
    for name in ("attention.value_length", "rope.dimension_count"):
        if own.get(name, config.get("head_dim")) != config.get("head_dim"):
            raise InputError(f"{where}{name} = {shown(own[name])}, must be the width of heads "
                             f"{shown(config.get('head_dim'))}")
    if own.get("rope.scaling.type", "none") != "none":
        config["rope_scaling"] = {"rope_type": own["rope.scaling.type"],
                                  "factor": own.get("rope.scaling.factor")}


def _shortest(number: float) -> float:
    """The decimal of fewest digits that is the same in float32, as files hold it."""
    decimals = (float(f"{number:.{digits}g}") for digits in range(1, 10))
    return next((found for found in decimals if ctypes.c_float(found).value == number), number)


def _tokenizer(values: dict, notes: list[str]) -> bytes | None:
    """tokenizer.json, where it is byte pairs of GPT-2's kind; else a note says why not."""
    kind, pre = values.get("tokenizer.ggml.model"), values.get("tokenizer.ggml.pre", "gpt-2")
    tokens, merges = (values.get(f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    if kind != "gpt2" or pre not in [*CUTS] or not isinstance(tokens, list) or not isinstance(
            merges, list):
        notes.append(f"no tokenizer.json: tokenizer.ggml.model = {shown(kind)} with pre = "
                     f"{shown(pre)} is not read, must be gpt2 with {', '.join(CUTS)}")
        return None
    kinds = values.get("tokenizer.ggml.token_type") or [1] * len(tokens)
    vocabulary = {token: i for i, token in enumerate(tokens)}
    pairs = [pair.split(" ") if isinstance(pair, str) else [] for pair in merges]
    if not isinstance(kinds, list) or not len(kinds) == len(tokens) == len(
            vocabulary) or not all(isinstance(token, str) for token in tokens) or not all(
            len(pair) == 2 and {*pair, "".join(pair)} <= vocabulary.keys() for pair in pairs):
        raise InputError("tokenizer.ggml.tokens, merges and token_type do not fit each other")
    normalizer, cuts = CUTS[pre]
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": kinds[i] == CONTROL}
             for i, token in enumerate(tokens) if kinds[i] in (CONTROL, USER_DEFINED)]
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": cuts, "post_processor": None, "decoder": LEVEL,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": pairs}}, ensure_ascii=False).encode()


def _name(name: str) -> str:
    """Of a tensor in a folder; its own where there is none."""
    if name in TENSORS or not name.startswith("blk."):
        return TENSORS.get(name, name)
    parts = name.split(".")
    if len(parts) != 4 or parts[2] not in TENSORS:
        return name
    return f"model.layers.{parts[1]}.{TENSORS[parts[2]]}.{parts[3]}"


def read_gguf(path: pathlib.Path) -> Checkpoint:
    """A file of GGUF."""
    values, tensors = _contents(path)
    config, notes = _configuration(values, path), []
    found = by_name([Stored(_name(tensor.name), tensor.shape, tensor.form, path, tensor.begin)
                     for tensor in tensors])
    if "rope_freqs.weight" in found:
        raise InputError(f"{path}: rope_freqs.weight has frequencies of its own, which are not "
                         f"read")
    config["tie_word_embeddings"] = "lm_head.weight" not in found
    if config["model_type"] != "qwen2":
        config["attention_bias"] = "model.layers.0.self_attn.o_proj.bias" in found
    embedding = found.get("model.embed_tokens.weight")
    if embedding is not None:
        config.setdefault("vocab_size", embedding.shape[0])
    try:
        tokenizer = _tokenizer(values, notes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Checkpoint(config, found, [path], str(path), tokenizer, notes,
                      config["model_type"] == "llama")
