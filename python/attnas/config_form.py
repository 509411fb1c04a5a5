"""nas-model place --original: a checkpoint of which layers see a window, by its config.json alone.

Classes of transformers have windows by layer, layer_types, without first tokens; the weights stay
in the files in which they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from attnas import checkpoint_families, import_model
from attnas.checkpoints import Checkpoint, read_json
from attnas.command_line import run_main
from attnas.errors import InputError
from attnas.placement import placed
from attnas.prepare.files import publish, staging, write_file

NATIVE = ("qwen2", "qwen3", "smollm3")  # have layer_types; llama and mistral are smollm3 by weights
FACTS = (*checkpoint_families.SIZES, "eps", "activation", "tied", "attention_bias", "mlp_bias")
_CARD = """---
library_name: transformers
pipeline_tag: text-generation
tags: [attnas]
---

# {name}: windows of {window} tokens in {count} of {layers} layers

Layers {windows} see the last {window} tokens. `config.json` alone says so: the weights are those of
the original, and `AutoModelForCausalLM.from_pretrained` opens them. The windows have no first
tokens, without which a model that was not trained with them loses much of what it has to recall.
{said}
Other programs may ignore `layer_types` and see all tokens: vLLM did for Qwen3 (its issue 39514).
"""


@dataclasses.dataclass
class Original:
    """A checkpoint of a family that transformers knows with windows by layer."""

    checkpoint: Checkpoint
    family: str
    facts: dict

    def config(self, words: Sequence[str]) -> dict:
        """config.json with a block for each layer. @throws InputError  where no key says it."""
        if len(words) != self.facts["layers"]:
            raise InputError(f"the placement has {len(words)} layers, must have "
                             f"{self.facts['layers']} as {self.checkpoint.where}")
        seen = []
        for word, own in zip(words, self.facts["seen"]):
            window = re.fullmatch(r"window\{([1-9]\d*),0\}", word)
            if word != "full" and not window:
                raise InputError(f"block {word}: config.json has no key for it, must be full or "
                                 f"window{{W,0}}, without first tokens")
            widths = [own, int(window[1]) if window else None]
            seen.append(min((width for width in widths if width), default=None))
        found = sorted({*seen} - {None})
        if len(found) != 1:
            raise InputError(f"windows of {' and '.join(map(str, found)) or 'no'} tokens: "
                             f"config.json has one sliding_window for all layers")
        return {**self._plain(), "use_sliding_window": True, "sliding_window": found[0],
                "layer_types": ["sliding_attention" if one else "full_attention" for one in seen]}

    def _plain(self) -> dict:
        """As a family that has windows by layer writes what is there."""
        config, facts, name = self.checkpoint.config, self.facts, self.family
        own = checkpoint_families.FAMILIES[name if name in NATIVE else "smollm3"]
        if name in NATIVE:
            return {"architectures": [own.classes[0]], **config}
        rope = facts["scaling"] or facts["rope"] or {}
        rope = {"rope_type": rope.get("type", "default"),
                **{key: value for key, value in rope.items() if key != "type"}}
        return {"architectures": [own.classes[0]], "model_type": "smollm3",
                "dtype": config.get("dtype", config.get("torch_dtype", "float32")),
                **{f"{key}_token_id": config.get(f"{key}_token_id") for key in ("bos", "eos",
                                                                                "pad")},
                **{key: facts.get(fact) for key, (fact, _) in own.keys.items() if fact in FACTS},
                "no_rope_layers": [1] * facts["layers"],
                "rope_parameters": {**rope, "rope_theta": facts["rope_genes"]["rope_base"]}}


def read_original(path: Path, model: Path) -> Original:
    """@throws InputError  where it is no checkpoint, of a family without windows by layer, or not
    what `model` was imported from."""
    checkpoint = import_model.read_checkpoint(path)
    name, family = checkpoint_families.family_of(checkpoint)
    known = (*NATIVE, "llama", "mistral")
    if name not in known:
        raise InputError(f"{checkpoint.where}: model_type = {name}: transformers has no windows by "
                         f"layer for it, must be one of {', '.join(known)}")
    about = read_json(model / "config.json")[1]
    digests = about.get("source", {}).get("files", {})
    for file in checkpoint.files:
        if "placement" in about or digests.get(file.name) != import_model.sha256_of(file):
            raise InputError(f"{file}: {model} is not, as it was, imported from it")
    return Original(checkpoint, name, checkpoint_families.facts_of(family, checkpoint.config,
                                                                   checkpoint.where))


def write_form(model: Path, placement: str, source: Path, output: Path,
               said: Sequence[str] = ()) -> None:
    """Writes the folder `output` with the files of `source`, of which `model` was imported; of GGUF
    its weights and tokenizer in the form of transformers.

    @param said  what is known of the cost, for the card.   @throws InputError
    """
    original, layers = read_original(source, model), placed(placement)
    config = original.config([layers.get(i, "none") for i in range(len(layers))])
    checkpoint, family = original.checkpoint, checkpoint_families.FAMILIES[original.family]
    windows = [i for i, kind in enumerate(config["layer_types"]) if "sliding" in kind]
    card = _CARD.format(name=source.stem, window=config["sliding_window"], count=len(windows),
                        layers=len(layers), windows=", ".join(map(str, windows)),
                        said="".join(f"{line}\n" for line in said))
    with staging(output.parent, output.name) as ready:
        if source.is_dir():
            beside = [path for path in source.iterdir() if path.suffix in (".json", ".jinja",
                                                                           ".model", ".txt")]
            for path in {*checkpoint.files, *beside}:
                shutil.copyfile(path, ready / path.name)
        else:
            plan = checkpoint_families.plan_of(family, original.facts, checkpoint)
            import_model.write_weights([dataclasses.replace(one, name=one.source.name)
                                        for one in plan], ready / "model.safetensors")
            if checkpoint.tokenizer is not None:
                write_file(ready / "tokenizer.json", checkpoint.tokenizer)
                write_file(ready / "tokenizer_config.json",
                           b'{"tokenizer_class": "PreTrainedTokenizerFast"}\n')
        (ready / "config.json").unlink(missing_ok=True)
        write_file(ready / "config.json", (json.dumps(config, indent=2) + "\n").encode())
        write_file(ready / "README.md", card.encode())
        if not publish(ready, output):
            raise InputError(f"{output}: is there already")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="nas-model place", description=__doc__)
    for argument in ("model", "placement", "original", "output"):
        parser.add_argument(argument)
    given = parser.parse_args()
    sys.exit(run_main("nas-model", lambda: write_form(
        Path(given.model), given.placement, Path(given.original), Path(given.output))))
