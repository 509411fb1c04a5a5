"""checkpoint_fuzz.py [FOLDER|FILE...] [-OPTION=VALUE...]: checkpoints of strangers, a target of atheris (PyPI) with libFuzzer's options.

An input is the name of a file, an end of a line, and the file's bytes; what else a checkpoint has is sound. What is taken lies within its file;
what is refused says in which.
"""

import contextlib
import importlib.util
import json
import math
import pathlib
import resource
import sys
import tempfile

if importlib.util.find_spec("atheris"):
    import atheris
    instrumented = atheris.instrument_imports(include=["attnas"])
else:
    instrumented = contextlib.nullcontext()
with instrumented:
    from attnas import checkpoint_families, checkpoints, import_model
    from attnas.errors import InputError

CONFIG = {"model_type": "llama", "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 2,
          "vocab_size": 3, "max_position_embeddings": 8, "tie_word_embeddings": True}
BLOCK = {"input_layernorm": [4], "post_attention_layernorm": [4], **{f"self_attn.{i}_proj": [4, 4] for i in "qkvo"}, "mlp.gate_proj": [2, 4],
         "mlp.up_proj": [2, 4], "mlp.down_proj": [4, 2]}
TENSORS = [(f"model.{name}.weight", "BF16", shape) for name, shape in (
    ("embed_tokens", [3, 4]), ("norm", [4]), *((f"layers.0.{name}", shape) for name, shape in BLOCK.items()))]
FOLDERS = {b"model.gguf": ".", b"config.json": "whole", b"model.safetensors": "whole", b"tokenizer.json": "whole",
           b"model.safetensors.index.json": "shards"}


def prepare(folder):
    """A checkpoint of one file, and one of two that lacks its index."""
    for name, files in (("whole", {"model": TENSORS}), ("shards", {"a": TENSORS[:4], "b": TENSORS[4:]})):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        for file, tensors in files.items():
            numbers = b"\0" * 2 * sum(math.prod(shape) for _, _, shape in tensors)
            (folder / name / f"{file}.safetensors").write_bytes(checkpoints.header_of(tensors) + numbers)


def read(folder, data):
    """Whether an input is taken; None: it names no file."""
    name, _, content = data.partition(b"\n")
    if name not in FOLDERS:
        return None
    path = folder / FOLDERS[name] / name.decode()
    before = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    try:
        checkpoint = import_model.read_checkpoint(path if path.suffix == ".gguf" else path.parent)
        for tensor in checkpoint.tensors.values():
            if not isinstance(tensor.form, str):
                size = math.prod(tensor.shape) // tensor.form.numbers * tensor.form.size
                assert 8 <= tensor.begin <= tensor.begin + size <= tensor.path.stat().st_size, tensor
                assert sum(piece.size for piece in tensor.pieces()) == math.prod(tensor.shape), tensor
        _, family = checkpoint_families.family_of(checkpoint)
        facts = checkpoint_families.facts_of(family, checkpoint.config, checkpoint.where)
        planned = checkpoint_families.plan_of(family, facts, checkpoint)
        import_model.require_tokens(checkpoint, facts["vocabulary"])
        return len(planned) > 0 and len(checkpoint_families.name_of(facts)) > 0
    except InputError as error:
        assert str(error).startswith(str(folder)) and len(str(error)) < 1000, error
        return False
    finally:
        path.unlink()
        if before is not None:
            path.write_bytes(before)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, -1))  # room that a length claims is not there
    with tempfile.TemporaryDirectory() as made:
        prepare(pathlib.Path(made))
        atheris.Setup(sys.argv, lambda data: -1 if read(pathlib.Path(made), data) is None else 0)
        atheris.Fuzz()
