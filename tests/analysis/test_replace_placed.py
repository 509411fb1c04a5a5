"""Recurrent blocks in a model of transformers, in model.py and in its form for transformers: all compute the same, begun and learned."""

import os
import subprocess
import tempfile
import unittest

import numpy as np

from attnas import checkpoints, import_model
from attnas.analysis.commands import export
from attnas.placement import placed
from python_tests import PROGRAMS, need, said
from test_import import CASES, T, V, Written, drawn

need("torch", "transformers", program="nas-model")
cache = tempfile.TemporaryDirectory()
os.environ |= {"HF_HOME": cache.name, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
import torch
import transformers

import attnas
from attnas import model as of_attnas

WORDS = {"gdn": "gdn{4,1} 0; full 1; gdn{0,0} 2", "gdn2": "gdn2{4,1} 0; full 1; gdn2{2,1} 2", "kda": "full 0; kda{4,1} 1-2",
         "ssd": "ssd{1} 0,2; window{5,2} 1", "ret": "ret{1} 0; ret{0} 1; full 2", "lin": "lin{hedgehog} 0; lin{taylor2} 1; full 2"}


class Placed(Written):
    def placed(self, name: str, *trained):
        folder = self.folder / f"placed{len(list(self.folder.iterdir()))}"
        subprocess.run([PROGRAMS / "nas-model", "place", self.base, name, *trained, "-o", folder], check=True)
        return folder

    def learned(self, name: str, folder):
        """Files of stage 1 of a placement, whose weights are others than at the start."""
        stage, rng = self.folder / f"{folder.name}.stage1", np.random.default_rng(3)
        stage.mkdir()
        stored = checkpoints.by_name(checkpoints.read_safetensors(folder / "model.safetensors"))
        for layer, word in placed(name).items():
            head = f"layers.{layer}."
            own = {key.removeprefix(head): each.values() for key, each in stored.items()
                   if key.startswith((head + "recurrent.", head + "attention."))}
            own = {key: (each + rng.normal(size=each.shape) * 0.1).astype("<f4") for key, each in own.items()} | {"L1": np.ones(2, "<f4")}
            if word != "full":
                (stage / f"{layer}.{word}.safetensors").write_bytes(checkpoints.header_of(
                    (key, "F32", each.shape) for key, each in own.items()) + b"".join(each.tobytes() for each in own.values()))
        return stage

    def test_all_forms_agree(self):
        ids = torch.from_numpy(np.random.default_rng(1).integers(0, V, (2, T)))
        for case, (kind, name) in zip(("qwen3", "biases", "one key head with biases", "smollm3", "qwen2, one gate closed", "wide heads"),
                                      WORDS.items()):
            with self.subTest(kind, case=case), torch.no_grad():
                config = {**CASES[case], "bos_token_id": 1, "pad_token_id": 0}
                source, self.base = self.write(config, drawn(config)), self.folder / f"base {kind}"
                import_model.import_model(source, self.base)
                begun = self.placed(name)
                stage = self.learned(name, begun)
                own = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
                learned = self.placed(name, "--trained", stage)
                at_start = of_attnas.load(str(begun))(ids)
                expected = of_attnas.load(str(learned))(ids)
                self.assertGreater((expected - at_start).abs().max().item(), 1e-2 * expected.abs().max().item())
                self.assert_near(attnas.replace(own, name)(ids).logits, at_start, 1e-5)
                for folder in (stage, learned):
                    self.assert_near(attnas.replace(own, name, trained=folder)(ids).logits, expected, 1e-5)
                    attnas.replace(own, ["full"] * 3)
                attnas.replace(own, name, trained=learned)
                form = self.folder / f"form {kind}"
                self.assertEqual(said(export.main, learned, "--format", "huggingface", "-o", form), (0, "", ""))
                opened = transformers.AutoModelForCausalLM.from_pretrained(form, trust_remote_code=True)
                self.assert_near(opened(ids).logits, expected, 1e-6)
                for model, kept in ((own, transformers.DynamicCache(config=own.config)), (opened, opened.new_cache())):
                    parts = [model(part, cache=kept).logits for part in ids.split([5, *[1] * (T - 5)], 1)]
                    self.assert_near(torch.cat(parts, 1), expected, 1e-5)
                    how = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
                    self.assertTrue(model.generate(ids, **how).equal(model.generate(ids, use_cache=False, **how)))

    def test_refusals(self):
        config = {**CASES["llama"], "bos_token_id": 1, "pad_token_id": 0}
        source, self.base = self.write(config, drawn(config)), self.folder / "base"
        import_model.import_model(source, self.base)
        own = transformers.AutoModelForCausalLM.from_pretrained(source)
        placed = self.placed("gdn{4,1} 0; full 1-2")
        changed = self.placed("gdn{4,1} 0; full 1-2")
        tensors = {each.name: each.values().copy() for each in checkpoints.read_safetensors(changed / "model.safetensors")}
        tensors["layers.0.recurrent_norm.weight"] *= 2
        (changed / "model.safetensors").write_bytes(checkpoints.header_of((name, "F32", each.shape) for name, each in tensors.items()) + b"".join(
            each.tobytes() for each in tensors.values()))
        empty = self.folder / "empty"
        empty.mkdir()
        for layers, trained, why in (({0: "kda"}, placed, r"layer 0: kda: is gdn\{4,1\} in .*, must be the same"),
                                     ({0: "gdn"}, empty, r"0\.gdn\{4,1\}\.safetensors is not there: the block has not learned"),
                                     ({0: "gdn"}, self.folder / "no", "is no folder, must be stage1"),
                                     ({0: "gdn"}, self.base, "must be a model that nas-model place wrote"),
                                     ({0: "gdn"}, changed, "the model was trained as a whole")):
            with self.subTest(why), self.assertRaisesRegex(attnas.InputError, why):
                attnas.replace(own, layers, trained=trained)
        attnas.replace(own, {0: "gdn", 1: "drop"}, trained=self.placed("gdn{4,1} 0; drop 1; full 2"))
