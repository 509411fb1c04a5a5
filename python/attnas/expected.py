"""attnas expected: what the library transformers computes of a checkpoint, for nas-model check."""

from __future__ import annotations

import pathlib
import sys

import numpy

from attnas.checkpoints import header_of
from attnas.command_line import Parser, run_main
from attnas.errors import InputError
from attnas.prepare.files import write_file

TYPES = {"int64": "I64", "float64": "F64"}
ROWS, GREEDY = 2, 12  # sequences of ids; tokens that follow the first of them


def blocks_of(model, layers: int):
    """The list of a model's layers."""
    from torch import nn
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == layers:
            return module
    raise InputError(f"the model of transformers has no list of {layers} layers")


def computed(folder: pathlib.Path, tokens: int, seed: int) -> dict[str, numpy.ndarray]:
    """ids; logits, the stream before and after each block (hidden.N) and the mean negative log
    likelihood in float64; greedy, the likeliest tokens after the first row."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise InputError(f"attnas expected needs the Python packages torch and transformers "
                         f"(pip install torch transformers): {error}") from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager", local_files_only=True,
            trust_remote_code=False).eval()
    except (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: transformers does not open it: {error}") from None
    made = numpy.random.default_rng(seed).integers(0, model.config.vocab_size, (ROWS, tokens))
    ids, streams = torch.from_numpy(made), []
    for i, block in enumerate(blocks_of(model, model.config.num_hidden_layers)):
        if i == 0:
            block.register_forward_pre_hook(lambda _, given: streams.append(given[0]))
        block.register_forward_hook(lambda _, given, out: streams.append(
            out[0] if isinstance(out, tuple) else out))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
        found = {"ids": ids, "logits": logits, "nll": torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).reshape(1)}
        found |= {f"hidden.{i}": stream for i, stream in enumerate(streams)}
        row = ids[:1]
        for _ in range(GREEDY):
            following = model(row, use_cache=False).logits[:, -1:].argmax(-1)
            row = torch.cat([row, following], 1)
    found["greedy"] = row[0, tokens:]
    return {name: values.numpy() for name, values in found.items()}


def main(words: list[str], program: str = "attnas expected") -> int:
    """Carries out a command line; returns the exit code."""
    parser = Parser(
        prog=program, description="Computes by transformers, in float64, what a checkpoint of "
        "Hugging Face's layout answers to random ids: nas-model check compares a model with it.")
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--tokens", type=int, default=24, metavar="N", help="of a row (24)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="draws the ids (1)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FILE",
                        help="of safetensors")
    given = parser.parse_args(words)

    def body() -> None:
        for name, least in (("tokens", 2), ("seed", 0)):
            if getattr(given, name) < least:
                raise InputError(f"--{name} = {getattr(given, name)}, must be at least {least}")
        if not (given.folder / "config.json").is_file():
            raise InputError(f"{given.folder}: has no config.json")
        if given.output.exists():
            raise InputError(f"{given.output}: is there already")
        found = computed(given.folder, given.tokens, given.seed)
        header = header_of((name, TYPES[str(values.dtype)], values.shape)
                           for name, values in found.items())
        write_file(given.output, header + b"".join(values.tobytes() for values in found.values()))
        print(f"{given.output}: {len(found)} tensors, nll {found['nll'][0]:.6f} nats per token")

    return run_main("attnas", body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python3 -m attnas.expected"))
