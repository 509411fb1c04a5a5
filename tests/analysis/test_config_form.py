"""Windows by config.json alone: what the folder of nas-model place --original computes, by formulas and by transformers; refusals."""

import json
import os
import pathlib
import subprocess
import unittest

import numpy as np

import test_import
from attnas import config_form, expected, import_model
from attnas.errors import InputError
from python_tests import PROGRAMS, has
from test_import import CASES, LLAMA, GPT2, ROTATED, WINDOWS, L, T, V, Written, drawn, reference

PLACEMENT = "full 1; window{5,0} 0,2"
NONE = {"gpt2", "gpt_neox"}


@unittest.skipUnless(test_import.HAS_PROGRAM, "without nas-model, or torch")
class ConfigForm(Written):
    IDS = [int(i) for i in np.random.default_rng(3).integers(0, V, T)]

    def imported(self, source):
        model = self.folder / f"model{len(list(self.folder.iterdir()))}"
        import_model.import_model(source, model)
        return model

    def written(self, source, placement=PLACEMENT):
        """The model of a source, and the folder of its placement."""
        model = self.imported(source)
        output = model.with_suffix(".form")
        subprocess.run([PROGRAMS / "nas-model", "place", model, placement, "--original", source, "-o", output], check=True)
        return model, output

    def test_logits_are_those_of_the_formulas(self):
        for name in ("biases", "wide heads", "llama3, transformers 4", "mistral", "qwen2, upper windows", "qwen3, windows", "smollm3"):
            config = {**CASES[name], "bos_token_id": 1, "pad_token_id": 0}
            with self.subTest(name):
                tensors = drawn(config)
                _, output = self.written(source := self.write(config, tensors))
                self.assertEqual((output / "model.safetensors").read_bytes(), (source / "model.safetensors").read_bytes())
                own = WINDOWS.get(name, [None] * L)
                WINDOWS["form"], ROTATED["form"] = [5, own[1], 5], ROTATED.get(name, [1] * L)
                of_form = reference("form", config, tensors, self.IDS)
                self.assert_near(self.logits(output, self.IDS), of_form, 1e-6)
                if has("transformers"):
                    found = expected.computed(output, T, 3)
                    self.assert_near(found["logits"][0], reference("form", config, tensors, found["ids"][0]), 1e-5)

    def test_a_file_of_gguf_becomes_a_folder(self):
        source, again = self.folder / "small.gguf", self.folder / "again"
        source.write_bytes(test_import.gguf_of(test_import.gguf_tensors()))
        _, output = self.written(source)
        import_model.import_model(output, again)
        self.assertEqual((again / "tokenizer.json").read_bytes(), (output / "tokenizer.json").read_bytes())
        self.assertIn("vLLM", (output / "README.md").read_text())

    @unittest.skipUnless(os.environ.get("NAS_GOLDEN_CHECKPOINTS"), "without NAS_GOLDEN_CHECKPOINTS")
    @unittest.skipUnless(has("transformers"), "this Python has no transformers")
    def test_transformers_and_the_placed_model_agree(self):
        import torch
        from attnas import model as of_attnas
        agreed = 0
        for source in sorted(pathlib.Path(os.environ["NAS_GOLDEN_CHECKPOINTS"]).iterdir()):
            case = json.loads((source / "case.json").read_text())
            if case["answer"] != "import" or case["family"] in NONE:
                continue
            with self.subTest(source.name):
                layers = json.loads((source / "config.json").read_text())["num_hidden_layers"]
                placement = f"full 1; window{{{8 if case['family'] == 'mistral' else 5},0}} 0,2-{layers - 1}"
                model, output = self.written(source, placement)
                subprocess.run([PROGRAMS / "nas-model", "place", model, placement, "-o", model.with_suffix(".placed")], check=True)
                found = expected.computed(output, 24, 1)
                with torch.no_grad():
                    placed = of_attnas.load(str(model.with_suffix(".placed"))).double()(torch.from_numpy(found["ids"]))
                self.assert_near(placed.numpy(), found["logits"], 1e-5)
                agreed += 1
        self.assertGreaterEqual(agreed, 8)

    def test_refusals_write_nothing(self):
        llama, windowed = self.write(LLAMA), self.write(CASES["qwen3, windows"])
        for source, placement, words in (
                (llama, "full 1; window{5,4} 0,2", "block window{5,4}: config.json has no key for it, must be full or window{W,0}"),
                (llama, "full 1; drop 0,2", "block drop"), (llama, "window{5,0} 0; window{6,0} 1-2", "windows of 5 and 6 tokens"),
                (llama, "full 0-2", "windows of no tokens"), (llama, "full 0; window{5,0} 1", "has 2 layers, must have 3"),
                (windowed, "full 0; window{4,0} 1-2", "windows of 4 and 5 tokens"), (self.write(GPT2), PLACEMENT, "model_type = gpt2: transformers has")):
            with self.subTest(words):
                model = self.imported(source)
                said = subprocess.run([PROGRAMS / "nas-model", "place", model, placement, "--original", source, "-o", self.folder / "no"],
                                      check=False, capture_output=True, encoding="utf-8")
                self.assertEqual((said.returncode, (self.folder / "no").exists()), (2, False))
                self.assertIn(words, said.stderr)
        with self.assertRaisesRegex(InputError, "is not, as it was, imported from it"):
            config_form.read_original(self.write({**LLAMA, "rms_norm_eps": 1e-3}), self.imported(llama))
