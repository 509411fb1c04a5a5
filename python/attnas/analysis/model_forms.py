"""Exported models, as `nas-export --format pytorch` writes them, as folders for transformers."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnas import plugin_modules
from attnas.analysis import packages
from attnas.analysis.digest import BadInput
from attnas.prepare.images import class_names, recipe

SOURCES = Path(__file__).resolve().parents[1]


def _needs(form: str, *names: str) -> None:
    if lacking := packages.missing(*names):
        raise BadInput(f"--format {form}: {lacking}")


def load(folder: Path) -> tuple[Any, dict[str, Any], Any]:
    """A model, its configuration and model.py as a module. Raises BadInput."""
    module = importlib.import_module("attnas.model")
    try:
        config = module.read_config(str(folder))
        return module.load(str(folder)), config, module
    except Exception as error:  # of what a file lacks, or has too much of, as model.py has it
        reason = str(error) if isinstance(error, (OSError, ValueError)) else repr(error)[:160]
        raise BadInput(f"{folder}: must be as nas-export --format pytorch has written it: "
                       f"{reason}") from None


_PAD = "<pad>\uffff"  # with what is no character, so that no text has it
_UNUSED = ("candidate", "mechanism", "data", "text", "sha256", "check")  # by model.py's Transformer


def huggingface_files(folder: Path, plugins: Iterable[str] = ()) -> dict[str, bytes]:
    """What transformers opens by AutoModelForCausalLM (with trust_remote_code=True) and, of a model
    of text, by AutoTokenizer.

    @param plugins  FILE.so each, with FILE.py beside it.
    @return contents by name.
    @throws BadInput  where the folder holds no model, or its tokens have no tokenizer there.
    """
    _needs("huggingface", "torch")
    appended = plugin_modules.load(plugins)
    model, config, module = load(folder)
    card, text = folder / "README.md", config["text"]
    known = card.read_text(encoding="utf-8") if card.is_file() else ""
    files = {"config.json": _json(_hub_config(config)), "model.safetensors": _safetensors(model),
             "README.md": _card(known, config).encode(),
             "modeling_attnas.py": (SOURCES / "modeling_attnas.py").read_bytes()}
    for path in sorted(SOURCES.glob("model*.py")):
        own = path.read_text(encoding="utf-8") + appended * (path.name == "model_attention.py")
        files.setdefault(path.name, _as_package(own).encode())
    if not class_names(config["data"]):
        files["generation_config.json"] = _json(_generation(config))
    if text == {} and (folder / "tokenizer.json").is_file():  # of an imported model, as it was
        files["tokenizer.json"] = (folder / "tokenizer.json").read_bytes()
        files["tokenizer_config.json"] = _json({
            "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
            "model_max_length": config["model"]["context"],
            "model_input_names": ["input_ids", "attention_mask"]})
    elif text:
        form = module.Text(str(folder), config)
        # What ends a text: in a published layout a line's end is a blank.
        end = {"eos_token": "\n"} if text["unit"] == "word" and not form.published else {}
        files["tokenizer.json"] = _json(_tokenizer(form, text, config["model"]["vocabulary"]))
        files["tokenizer_config.json"] = _json({
            "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
            "model_max_length": config["model"]["context"], "padding_side": "right",
            "model_input_names": ["input_ids", "attention_mask"], "pad_token": _PAD, **end})
    return files


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _hub_config(config: dict[str, Any]) -> dict[str, Any]:
    own, data = config["model"], config["data"]
    names = class_names(data)
    classes = {"id2label": dict(enumerate(names)),
               "label2id": {name: i for i, name in enumerate(names)},
               "problem_type": "single_label_classification", "recipe": recipe(data)}
    kind = "SequenceClassification" if names else "CausalLM"
    return {
        "architectures": [f"AttnasFor{kind}"],
        "model_type": "attnas",
        "auto_map": {
            "AutoConfig": "modeling_attnas.AttnasConfig",
            "AutoModel": "modeling_attnas.AttnasModel",
            f"AutoModelFor{kind}": f"modeling_attnas.AttnasFor{kind}"
        },
        "vocab_size": own["vocabulary"],
        "hidden_size": own["width"],
        "num_hidden_layers": len(config["layers"]),
        "num_attention_heads": own["heads"],
        "max_position_embeddings": own["context"],
        "use_cache": True,
        # one matrix where they are tied, so that there is nothing to tie
        "tie_word_embeddings": False,
        "dtype": "float32",
        "mechanism": config["mechanism"],
        "candidate": config["candidate"],
        "data": data,
        **(classes if names else {}),
        "attnas": {key: value for key, value in config.items() if key not in _UNUSED}
    }


def _generation(config: dict[str, Any]) -> dict[str, Any]:
    """As nas-model generates, <pad> and <unk> standing for no text, but that the end of a line ends
    it, where that is a token. What pads is <pad>, or else no token.
    """
    form = {name: i for name, i in (config["text"] or {}).items() if name in ("pad", "unknown",
                                                                              "end_of_sentence")
            and i >= 0}
    end = form.pop("end_of_sentence", None)
    return {"use_cache": True, "pad_token_id": form.get("pad", config["model"]["vocabulary"]),
            **({"suppress_tokens": list(form.values())} if form else {}),
            **({} if end is None else {"eos_token_id": end})}


def _safetensors(model: Any) -> bytes:
    """Parameters; a model has no buffers, which transformers would not compute again."""
    header, content = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in model.named_parameters():
        data = tensor.detach().contiguous().numpy().tobytes()
        header[f"transformer.{name}"] = {"dtype": "F32", "shape": list(tensor.shape),
                                         "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content


def _as_package(source: str) -> str:
    """A module where each `if __package__:` is decided: transformers takes the other branch for
    packages that are not installed.
    """
    lines = source.splitlines(keepends=True)
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If)
             and isinstance(node.test, ast.Name) and node.test.id == "__package__"]
    for node in sorted(found, key=lambda each: -each.lineno):
        lines[node.lineno - 1:node.end_lineno] = [" " * node.col_offset + ast.unparse(each) + "\n"
                                                  for each in node.body]
    return "".join(lines)


def _tokenizer(form: Any, text: dict[str, Any], size: int) -> dict[str, Any]:
    """tokenizer.json: as Text of model.py has it, of a text that is UTF-8 and ends with its last
    line's end; and behind its `size` tokens what pads, where none of them does.
    """
    whole: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None,
                             "added_tokens": [], "normalizer": None, "post_processor": None,
                             "decoder": None}
    if text["unit"] == "byte":
        tokens = _letters_of_bytes()
        whole["model"] = {"type": "BPE", "dropout": None, "unk_token": None,
                          "continuing_subword_prefix": None, "end_of_word_suffix": None,
                          "fuse_unk": False, "byte_fallback": False, "merges": [],
                          "vocab": {letter: i for i, letter in enumerate(tokens)}}
        whole["pre_tokenizer"] = whole["decoder"] = {"type": "ByteLevel", "add_prefix_space": False,
                                                     "trim_offsets": False, "use_regex": False}
    elif text["unit"] == "word":
        words = [word.decode("utf-8") for word in form.words]
        if form.published:
            words[form.pad] = _PAD
        whole["model"] = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)},
                          "unk_token": words[form.unknown]}
        blanks = "[ \\t\\r\\v\\f\\n]+" if form.published else "[ \\t\\r\\v\\f]+"
        parts = [({"String": "\n"}, "Isolated"), ({"Regex": blanks}, "Removed")]
        whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}
            for pattern, behavior in parts[form.published:]]}
        # Each word behind a blank, the first, too: what follows a prompt is decoded alone.
        whole["decoder"] = {"type": "Replace", "pattern": {"Regex": "\\A(?=\\S)"}, "content": " "}
    else:  # the folder has one
        whole = dict(form.tokens.tokenizer)
    vocabulary = {_PAD: size, **whole["model"]["vocab"]}
    whole["model"] = {**whole["model"], "vocab": vocabulary}
    if not form.published:
        first = next(token for token, i in vocabulary.items() if i == form.first)
        whole["post_processor"] = _behind(first, form.first)
    return whole


def _behind(first: str, number: int) -> dict[str, Any]:
    """A text behind the end of what came before."""
    return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": first, "type_id": 0}},
                                                     {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B",
                                                                            "type_id": 1}}],
            "special_tokens": {first: {"id": first, "ids": [number], "tokens": [first]}}}


def _letters_of_bytes() -> list[str]:
    """What ByteLevel calls each byte: itself where it is printable in Latin-1, else the next one
    from U+0100 on.
    """
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


_CARD = """---
library_name: transformers
{tag}license: other  # yours to choose; the text's terms are below
tags:
- attnas
- custom_code
---

"""
_USE = """## Use

```python
from transformers import AutoModelFor{kind}{and_tokenizer}

model = AutoModelFor{kind}.from_pretrained(".", trust_remote_code=True)
{example}```

`config.json`, `model.py` and `modeling_attnas.py` are all that the model is. Sequences of a batch
have equal lengths, or padding behind them, {pad}. {generate}
"""
_GENERATE = """With `generate`, prompts have equal lengths, and each token goes on from what layers
keep; where positions are learned it is computed from those before it, at most {context}."""
_EXAMPLE = """tokenizer = AutoTokenizer.from_pretrained(".", trust_remote_code=True)
ids = model.generate(**tokenizer("a prompt", return_tensors="pt"), max_new_tokens=20)
print(tokenizer.decode(ids[0]))
"""


def _card(text: str, config: dict[str, Any]) -> str:
    """The model's own card, under what the Hub reads, and how transformers uses it."""
    text = text or f"# Model `{config['mechanism']}`\n"
    labels, own = class_names(config["data"]), config["model"]
    known = config["text"] is not None and not labels
    example = (_EXAMPLE if known else
               f"logits = model(tokens).logits  # (B, T) ids to (B, {len(labels) or 'T, V'})\n")
    use = _USE.format(kind="SequenceClassification" if labels else "CausalLM", example=example,
                      and_tokenizer=", AutoTokenizer" if known else "",
                      pad="the tokenizer's pad token, which no text has" if known
                      else f"id {own['vocabulary']}", generate="" if labels
                      else _GENERATE.format(context=own["context"]))
    tag = "" if labels else "pipeline_tag: text-generation\n"
    return _CARD.format(tag=tag) + text.split("\n## Use\n")[0].rstrip() + "\n\n" + use
