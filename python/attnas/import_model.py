"""nas-model import: a trained transformer of another program as a model folder of attnas.

Reads a folder of Hugging Face's layout or a file of GGUF, tensor by tensor. Nothing that is there
is executed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
from collections import Counter


from attnas import checkpoint_families, checkpoint_gguf, checkpoints
from attnas.checkpoints import Checkpoint, shown
from attnas.command_line import Parser, program_file, run_main
from attnas.errors import InputError, MachineError
from attnas.prepare.files import io_failure, publish, staging, write_file

PACKAGE = pathlib.Path(__file__).parent
SOURCES = ("model.py", "model_attention.py", "model_heads.py", "model_positions.py",
           "model_recurrent.py")
NO_DIGEST = "0" * 64  # in the place of config.json's own, while that is computed
READ_BYTES = 1 << 22


def read_checkpoint(path: pathlib.Path) -> Checkpoint:
    if path.is_dir():
        return checkpoints.read_folder(path)
    if path.is_file():
        return checkpoint_gguf.read_gguf(path)
    raise InputError(f"{path}: no such folder or file; give a folder with config.json and "
                     f"model.safetensors, or a file of GGUF")


def architecture_of(name: str, facts: dict) -> dict:
    """What config.json says of a model, by the program that knows all genes."""
    sizes = {"width": facts["width"], "heads": facts["heads"], "context": facts["context"],
             "layers": facts["layers"], "vocabulary": facts["vocabulary"],
             "hidden": facts["hidden"]}
    words = [word for size, value in sizes.items() for word in (f"--{size}", str(value))]
    made = subprocess.run([program_file("nas-model"), "genes", name, *words, "--config"],
                          capture_output=True, check=False, encoding="utf-8")
    if made.returncode == 0:
        return json.loads(made.stdout)
    said = made.stderr.strip().removeprefix("nas-model: ")
    raise (InputError if made.returncode == 2 else MachineError)(f"{name}: {said}")


def require_tokens(checkpoint: Checkpoint, vocabulary: int) -> None:
    """@throws InputError  if a token of the tokenizer is none of the vocabulary."""
    if checkpoint.tokenizer is None:
        return
    where = next((path for path in checkpoint.files if path.name == "tokenizer.json"),
                 checkpoint.where)
    parsed = checkpoints.parse_json(checkpoint.tokenizer, where)
    model = parsed.get("model") if isinstance(parsed, dict) else None
    words = model.get("vocab") if isinstance(model, dict) else None
    added = parsed.get("added_tokens") if isinstance(parsed, dict) else None
    if not isinstance(words, (dict, list)) or not isinstance(added or [], list):
        raise InputError(f"{where}: must have a model with a vocab, and added_tokens")
    ids = list(words.values()) if isinstance(words, dict) else list(range(len(words)))
    ids += [token.get("id") if isinstance(token, dict) else None for token in added or []]
    if not all(checkpoints.is_count(i, 2**31) for i in ids):
        raise InputError(f"{where}: an id of a token is no number")
    if ids and max(ids) >= vocabulary:
        raise InputError(f"{where}: has ids up to {max(ids)}, the vocabulary of the model is "
                         f"{vocabulary}")


def write_weights(plan: list, path: pathlib.Path) -> str:
    """model.safetensors, in float32. @return  its SHA-256."""
    digest = hashlib.sha256()
    try:
        with open(path, "xb") as file:
            for data in itertools.chain([checkpoints.header_of(
                    (tensor.name, "F32", tensor.shape) for tensor in plan)], *(
                        tensor.pieces() for tensor in plan)):
                digest.update(data)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise io_failure(path, error) from error
    return digest.hexdigest()


def sha256_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(READ_BYTES):
            digest.update(data)
    return digest.hexdigest()


def quantization_of(plan: list) -> str | None:
    """The form that most numbers had, where that is a quantized one."""
    forms: Counter = Counter()
    for tensor in plan:
        forms[tensor.source.form.name] += math.prod(tensor.shape)
    name = forms.most_common(1)[0][0]
    return None if name in checkpoints.PLAIN else name


def write_model(checkpoint: Checkpoint, plan: list, config: dict, source: dict,
                folder: pathlib.Path) -> None:
    """The model folder in the form of nas-export --format pytorch."""
    digest = write_weights(plan, folder / "model.safetensors")
    digests = {"model.safetensors": digest}
    sources = list(SOURCES)
    if checkpoint.tokenizer is not None:
        write_file(folder / "tokenizer.json", checkpoint.tokenizer)
        digests["tokenizer.json"] = hashlib.sha256(checkpoint.tokenizer).hexdigest()
        sources.append("model_tokens.py")
    for name in sources:
        write_file(folder / name, (PACKAGE / name).read_bytes())
    whole = {**config, "text": {}, "source": source,
             "data": {"corpus": "imported", "hash": digest, "settings": {}},
             "sha256": {**digests, "config.json": NO_DIGEST}}
    text = json.dumps(whole, indent=1) + "\n"
    own = hashlib.sha256(text.encode()).hexdigest()
    head, _, tail = text.rpartition(NO_DIGEST)
    write_file(folder / "config.json", (head + own + tail).encode())


def import_model(source: pathlib.Path, output: pathlib.Path) -> list[str]:
    """Writes the folder `output`. @return  lines that say what was read.

    @throws InputError  naming what is wrong with the source; nothing is written then.
    """
    checkpoint = read_checkpoint(source)
    family_name, family = checkpoint_families.family_of(checkpoint)
    facts = checkpoint_families.facts_of(family, checkpoint.config, checkpoint.where)
    plan = checkpoint_families.plan_of(family, facts, checkpoint)
    require_tokens(checkpoint, facts["vocabulary"])
    if output.exists():
        raise InputError(f"{output}: is there already")
    config = architecture_of(checkpoint_families.name_of(facts), facts)
    said = {"family": family_name,
            "files": {path.name: sha256_of(path) for path in checkpoint.files}}
    if quantization := quantization_of(plan):
        said["quantization"] = quantization
    with staging(output.parent, output.name) as ready:
        write_model(checkpoint, plan, config, said, ready)
        if not publish(ready, output):
            raise InputError(f"{output}: is there already")
    return [f"{output}: {family_name}, {checkpoint_families.count_numbers(plan)} numbers, "
            f"{config['mechanism']}", *(f"note: {note}" for note in checkpoint.notes),
            *window_lines(facts, checkpoint.config)]


def window_lines(facts: dict, config: dict) -> list[str]:
    """What takes effect of windows that are written."""
    windows = [i for i, window in enumerate(facts["seen"]) if window is not None]
    if windows:
        return [f"note: layers {', '.join(map(str, windows))} see the last {facts['window']} "
                f"tokens"]
    if config.get("sliding_window") is not None:
        return [f"note: sliding_window = {shown(config['sliding_window'])} takes no effect"]
    return []


def main(words: list[str], program: str = "nas-model import") -> int:
    """Carries out a command line; returns the exit code."""
    parser = Parser(
        prog=program, description="A trained transformer of Hugging Face's layout (llama, mistral, "
        "qwen2, qwen3, smollm3, gpt2, gpt_neox), or a file of GGUF, as a model folder of attnas.")
    parser.add_argument("source", type=pathlib.Path, metavar="FOLDER|FILE.gguf")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="MODEL",
                        help="folder to be written")
    given = parser.parse_args(words)

    def body() -> None:
        for line in import_model(given.source, given.output):
            print(line, file=sys.stderr if line.startswith("note: ") else sys.stdout)

    return run_main("nas-model", body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
