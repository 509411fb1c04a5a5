"""Exported models as Hugging Face's folder, opened by transformers. Needs torch; without transformers the rest is tested."""

import json
import os
import pathlib
import tempfile
import unittest

from attnas.analysis import model_forms
from attnas.analysis.commands import export
from python_tests import FolderTest, has, said

cache = tempfile.TemporaryDirectory()
os.environ |= {"HF_HOME": cache.name, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
import test_traces
import torch
from attnas import model as exported

WORDS = ["the", "jury", "said", "\u6bdb", "<eos>x"]
TEXT = "the  jury <eos> <pad> said\nthe\u00a0jury <unk> a<unk>b \u6bdb\n\n\tthe caf\u00e9 said <eos>x the jury said\n"

# As the program writes them.
PARTS = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "post_processor": None}
LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TOKENIZERS = {
    "char": {**PARTS, "decoder": {"type": "Fuse"}, "model": {
        "type": "WordLevel", "vocab": {c: i for i, c in enumerate(["<unk>", *"\n thejury"[:8]])}, "unk_token": "<unk>"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?m:.)"}, "behavior": "Isolated", "invert": False}},
    "bpe": {**PARTS, "decoder": LEVEL, "pre_tokenizer": LEVEL, "model": {
        "type": "BPE", "vocab": {c: i for i, c in enumerate([*model_forms._letters_of_bytes(), "th", "the", "\u0120j"])},
        "merges": [["t", "h"], ["th", "e"], ["\u0120", "j"]]}}}


def text_of(unit: str, layout: str = "standard") -> dict:
    special = {"word": ["unknown", "end_of_sentence"], "char": ["unknown"]}.get(unit, [])
    special = ["pad", *special] if layout == "published" else special
    return {"unit": unit, "layout": layout, **{name: special.index(name) if name in special else -1
                                               for name in ("pad", "unknown", "end_of_sentence")}}


class Folders(FolderTest):
    def write(self, text: dict | None, layer: dict | None = None, model: dict | None = None, data: dict | None = None) -> pathlib.Path:
        """A model of random weights."""
        special = [b"<pad>", b"<unk>", b"<eos>"][-len([v for v in (text or {}).values() if isinstance(v, int) and v >= 0]):]
        words = [*special, *(word.encode() for word in WORDS)]
        vocabulary = 13 if text is None else {"byte": 256, "char": 9, "bpe": 259}.get(text["unit"], len(words))
        config = test_traces.configuration({"vocabulary": vocabulary, "context": 24, "heads": 2, "feed_forward": 2, "hidden": 32,
                                               **(model or {})}, layer or {})
        config |= {"candidate": "c", "mechanism": "a|b", "data": {"corpus": "none", "hash": "0", "settings": {}, **(data or {})},
                   "text": text}
        folder = self.folder / "model"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (folder / "vocabulary.txt").write_bytes(b"".join(word + b"\n" for word in words))
        if text is not None and text["unit"] in TOKENIZERS:
            (folder / "tokenizer.json").write_text(json.dumps(TOKENIZERS[text["unit"]]), encoding="utf-8")
        (folder / "README.md").write_text("# A model\n\nWhat it is.\n\n## Use\n\nOtherwise.\n", encoding="utf-8")
        built = test_traces.model_of(config)
        named = model_forms._safetensors(built)
        header = json.loads(named[8:8 + int.from_bytes(named[:8], "little")])
        own = {name.removeprefix("transformer."): entry for name, entry in header.items() if entry.get("dtype", "F32") == "F32"}
        content = named[8 + int.from_bytes(named[:8], "little"):]
        last = max(entry["data_offsets"][1] for name, entry in own.items() if name != "__metadata__")
        text_ = json.dumps(own).encode()
        (folder / "model.safetensors").write_bytes(len(text_).to_bytes(8, "little") + text_ + content[:last])
        return folder

    def export(self, form: str, folder: pathlib.Path) -> pathlib.Path:
        output = self.folder / form
        self.assertEqual(said(export.main, folder, "--format", form, "-o", output), (0, "", ""))
        return output


PAIR = {"mixer": "pair", "heads": 2, "parts": [
    {"mixer": "attn", "heads": 1, "head_width": 8, "position": "rope", "normalization": "sink"},
    {"mixer": "recurrent", "heads": 1, "head_width": 8, "bias": "qkv", "feature": "elu1"}]}


class Files(Folders):
    """Of what transformers reads, without it."""

    def test_names_and_weights(self):
        output = self.export("huggingface", self.write(text_of("word"), {"position": "t5"}))
        files = sorted(path.name for path in output.iterdir())
        self.assertLessEqual({"README.md", "config.json", "generation_config.json", "model.py", "model_attention.py",
                              "model.safetensors", "modeling_attnas.py", "tokenizer.json", "tokenizer_config.json"}, set(files))
        data = (output / "model.safetensors").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        self.assertEqual(header["__metadata__"], {"format": "pt"})
        # Nothing but parameters: transformers leaves buffers that are not saved as memory has them, and casts those that are.
        self.assertEqual({name.removeprefix("transformer.") for name in header if name != "__metadata__"},
                         set(exported.load(str(self.folder / "model")).state_dict()))
        config = json.loads((output / "config.json").read_text(encoding="utf-8"))
        self.assertEqual((config["model_type"], config["vocab_size"], config["max_position_embeddings"]), ("attnas", 7, 24))
        self.assertEqual(set(config["attnas"]), {"semantics", "model", "layers"})
        generation = json.loads((output / "generation_config.json").read_text(encoding="utf-8"))
        self.assertEqual(generation, {"use_cache": True, "suppress_tokens": [0], "eos_token_id": 1, "pad_token_id": 7})

    def test_the_card_begins_with_what_the_hub_reads(self):
        card = (self.export("huggingface", self.write(None)) / "README.md").read_text(encoding="utf-8")
        head, text = card.split("---\n")[1:3]
        self.assertIn("library_name: transformers\npipeline_tag: text-generation\n", head)
        self.assertTrue(text.startswith("\n# A model\n\nWhat it is.\n\n## Use\n"))
        self.assertNotIn("Otherwise", text)
        self.assertNotIn("AutoTokenizer", text)  # tokens are no text

    def test_of_two_imports_that_of_a_package_stays(self):
        found = model_forms._as_package("import a\nif __package__:\n    from .b import (c,\n                    d)\n"
                                        "else:\n    from b import c, d\ndef f():\n    if __package__:\n        from .e import g\n"
                                        "    else:\n        from e import g\n    return g\n")
        self.assertEqual(found, "import a\nfrom .b import c, d\ndef f():\n    from .e import g\n    return g\n")

    def test_mistakes_are_named_and_write_nothing(self):
        model, output = self.write(None), self.folder / "out"
        damaged = self.folder / "damaged"
        damaged.mkdir()
        (damaged / "model.safetensors").write_bytes(b"x")
        (damaged / "config.json").write_text("{}")
        for arguments, complaint in (
                ([model, "--format", "huggingface"], "--format huggingface is a folder: give --output PATH"),
                ([model, "--format", "csv", "--mechanism", "best"], "belongs to --format huggingface, not to csv"),
                ([model, "--format", "huggingface", "--mechanism", "best", "-o", output], "is one model, must be a run"),
                ([damaged, "--format", "huggingface", "-o", output], "must be as nas-export --format pytorch has written it")):
            with self.subTest(complaint):
                code, _, error = said(export.main, *arguments)
                self.assertEqual(code, 2)
                self.assertIn(complaint, error)
                self.assertFalse(output.exists())

@unittest.skipUnless(has("transformers", "tokenizers"), "no transformers")
class Transformers(Folders):
    TOLERANCE = 1e-6

    def opened(self, *model) -> tuple:
        """The model as transformers has it, as model.py has it, their tokenizers, and the text's ids by both."""
        import transformers
        folder = self.write(*model)
        config = exported.read_config(str(folder))
        output = self.export("huggingface", folder)
        form = getattr(transformers, json.loads((output / "config.json").read_text())["architectures"][0].replace("Attnas", "AutoModel"))
        loaded = form.from_pretrained(output, trust_remote_code=True)
        if config["text"] is None:
            return loaded, exported.load(str(folder)), None, None
        return (loaded, exported.load(str(folder)), transformers.AutoTokenizer.from_pretrained(output, trust_remote_code=True),
                exported.Text(str(folder), config))

    def compare(self, loaded, ours, tokens) -> None:
        with torch.no_grad():
            expected, found = ours(tokens), loaded(tokens, labels=tokens)
        self.assertLessEqual((found.logits - expected).abs().max().item(), self.TOLERANCE * expected.abs().max().item())
        loss = torch.nn.functional.cross_entropy(expected[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        self.assertLessEqual(abs(found.loss.item() - loss.item()), self.TOLERANCE * loss.item())

    def test_loss_text_and_continuation_are_those_of_the_model(self):
        for text in (text_of("word"), text_of("word", "published"), *map(text_of, ("byte", "char", "bpe"))):
            with self.subTest(text):
                self.setUp()
                loaded, ours, tokenizer, form = self.opened(text)
                lines = form.stream(TEXT.encode()) if not form.published else form.of_line(TEXT.encode())
                ids = tokenizer(TEXT).input_ids
                self.assertEqual(ids, lines)
                self.assertEqual(*(told if text["unit"] != "word" else [line.split() for line in told.split("\n")]
                                   for told in (tokenizer.decode(ids), form.text(ids))))
                self.compare(loaded, ours, torch.tensor([ids[:24], ids[-24:]] if len(ids) > 24 else [ids]))
                prompt = tokenizer("the jury", return_tensors="pt")
                found = loaded.generate(**prompt, max_new_tokens=12)[0].tolist()
                asked = form.prompt(b"the jury")
                expected = exported.generate(ours, asked, 12, form.never)
                if text["unit"] == "word" and form.first in expected[len(asked):]:
                    expected = expected[:expected.index(form.first, len(asked)) + 1]
                self.assertEqual(found, expected)

    def test_no_text_has_what_pads(self):
        """As the collator of transformers takes it, which scores no pad token: of a padded batch all targets are scored."""
        import transformers
        for text in (text_of("word"), text_of("word", "published"), *map(text_of, ("byte", "char", "bpe"))):
            with self.subTest(text):
                self.setUp()
                loaded, ours, tokenizer, form = self.opened(text)
                texts = ["the jury said\nthe <pad>\njury <pad>\n", "the jury\n"]
                batch = transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False)([tokenizer(each) for each in texts])
                rows = [tokenizer(each).input_ids for each in texts]
                self.assertEqual([[label for label in row if label >= 0] for row in batch["labels"].tolist()], rows)
                self.assertEqual(*(tokenizer.decode(ids, skip_special_tokens=True) for ids in (batch["input_ids"][1], rows[1])))
                with torch.no_grad():
                    found = loaded(**batch)
                    expected = [torch.nn.functional.cross_entropy(ours(torch.tensor([row]))[0, :-1], torch.tensor(row[1:]),
                                                                  reduction="sum").item() for row in rows]
                targets = sum(map(len, rows)) - 2
                self.assertAlmostEqual(found.loss.item() * targets, sum(expected), delta=1e-5 * sum(expected))
                self.assertEqual(loaded.generation_config.eos_token_id, form.first if text["unit"] == "word" else None)

    def test_a_pipeline_continues_a_text(self):
        import transformers
        for text in (text_of("word"), text_of("word", "published"), *map(text_of, ("byte", "char", "bpe"))):
            with self.subTest(text):
                self.setUp()
                loaded, ours, tokenizer, form = self.opened(text)
                write = transformers.pipeline("text-generation", loaded, tokenizer=tokenizer)
                found = write(["the jury", "said"], max_new_tokens=8, do_sample=False, eos_token_id=None)[0][0]["generated_text"]
                follow = form.text(exported.generate(ours, form.prompt(b"the jury"), 8, form.never)[len(form.prompt(b"the jury")):])
                self.assertEqual(found.split(), ("the jury" + (" " if text["unit"] == "word" else "") + follow).split())

    def test_every_option_is_loaded_as_it_was(self):
        for layer, model in (({"position": "t5", "normalization": "sink"}, {"tied": False}),
                             ({"position": "alibi", "decay": "scalar"}, {}),
                             ({"position": "rope", "kv_heads": 1}, {"position_embedding": "sinusoidal"}),
                             ({"mixer": "recurrent", "feature": "favor", "favor_features": 8}, {}),
                             (PAIR, {}), ({"pattern": "bigbird", "pattern_block": 4}, {}), ({"pattern": "lsh", "rounds": 2}, {}),
                             ({"similarity": "bilinear", "temperature": "learned"}, {"position_embedding": "learned"})):
            with self.subTest(layer):
                self.setUp()
                loaded, ours, *_ = self.opened(None, layer, model)
                tokens = test_traces.tokens(2, 24)
                self.compare(loaded, ours, tokens)
                if model.get("position_embedding") != "learned":  # beyond the context, which may make what is computed once grow
                    loaded(test_traces.tokens(1, 60))
                loaded.save_pretrained(self.folder / "again")
                again = type(loaded).from_pretrained(self.folder / "again")
                self.compare(again, ours, tokens)

    def test_token_by_token(self):
        """With what layers keep: of a sequence, in generation, by beams; not of options that see the whole."""
        for layer, model in (({"position": "rope", "kv_heads": 1}, {"position_embedding": "sinusoidal"}),
                             ({"mixer": "recurrent", "update": "delta", "decay": "scalar", "conv": 4}, {"position_embedding": "none"}),
                             (PAIR, {}), ({"decay": "scalar", "smear": 1, "value_embedding": 1}, {})):
            with self.subTest(layer), torch.no_grad():
                self.setUp()
                loaded, ours, *_ = self.opened(None, layer, model)
                tokens = test_traces.tokens(2, 20)
                kept, expected = loaded.new_cache(), ours(tokens)
                found = torch.cat([loaded(part, cache=kept).logits for part in tokens.split([7, 1, 1, 3, 8], 1)], 1)
                self.assertLessEqual((found - expected).abs().max().item(), 1e-5 * expected.abs().max().item())
                self.assertEqual(kept.get_seq_length(), 20)
                for how in ({"do_sample": False}, {"num_beams": 3, "do_sample": False}):
                    whole, steps = (loaded.generate(tokens, max_new_tokens=9, use_cache=uses, **how) for uses in (False, True))
                    self.assertTrue(whole.equal(steps))
        self.setUp()
        self.assertIsNone(self.opened(None, {"normalization": "topk_quarter"})[0].new_cache())

    def test_learned_positions_see_the_last_tokens(self):
        loaded, ours, *_ = self.opened(None, {}, {"position_embedding": "learned"})
        ids = test_traces.tokens(1, 20)
        self.assertEqual(loaded.generate(ids, max_new_tokens=10)[0].tolist(), exported.generate(ours, ids[0].tolist(), 10))

    def test_hidden_tokens_may_only_follow(self):
        loaded, *_ = self.opened(None)
        tokens = test_traces.tokens(2, 6)
        mask = torch.ones_like(tokens)
        mask[0, 4:] = 0
        self.assertEqual(loaded(tokens, attention_mask=mask).logits.shape[:2], (2, 6))
        with self.assertRaisesRegex(ValueError, "attention_mask hides tokens before others, must be 1"):
            loaded(tokens, attention_mask=mask.flip(1))
        self.setUp()
        loaded, *_ = self.opened(None, {"normalization": "topk_quarter"})
        with self.assertRaisesRegex(ValueError, "topk_quarter sees the whole sequence"):
            loaded(tokens, attention_mask=mask)

    def test_packed_texts_are_refused(self):
        loaded, *_ = self.opened(None)
        tokens, places = test_traces.tokens(2, 6), torch.arange(6).expand(2, 6)
        self.assertEqual(loaded(tokens, position_ids=places).logits.shape[:2], (2, 6))
        with self.assertRaisesRegex(ValueError, "position_ids begin again within a row, must not"):
            loaded(tokens, position_ids=places % 3)

    def test_nothing_is_generated_behind_padding(self):
        loaded, *_ = self.opened(None)
        tokens = test_traces.tokens(2, 6)
        mask = torch.ones_like(tokens)
        mask[0, 4:] = 0
        with self.assertRaisesRegex(ValueError, "attention_mask hides tokens, must be 1 to generate"):
            loaded.generate(tokens, attention_mask=mask, max_new_tokens=1)
        with self.assertRaisesRegex(ValueError, "attention_mask hides tokens, must be 1 to generate"):
            loaded.generate(tokens.masked_fill(mask == 0, 13), max_new_tokens=1)

    def test_what_is_not_computed_is_refused(self):
        loaded, *_ = self.opened(None)
        tokens = test_traces.tokens(2, 6)
        for name in ("cache", "past_key_values", "inputs_embeds", "output_attentions", "output_hidden_states"):
            with self.assertRaisesRegex(ValueError, f"{name} is given, must be left out"):
                loaded(tokens, **{name: True})
            loaded(tokens, **{name: None})
        self.assertIsInstance(loaded(tokens, return_dict=False), tuple)

    def test_features_and_further_tokens(self):
        import transformers
        loaded, ours, *_ = self.opened(None, {"value_embedding": 1}, {"tied": False})
        tokens = test_traces.tokens(2, 6)
        with torch.no_grad():
            found = transformers.AutoModel.from_pretrained(self.folder / "huggingface", trust_remote_code=True)(tokens)
            self.assertTrue(torch.equal(ours.logits(found.last_hidden_state), ours(tokens)))
            loaded.resize_token_embeddings(15)
            self.assertTrue(torch.equal(loaded(tokens).logits[..., :13], ours(tokens)))
            loaded.save_pretrained(self.folder / "again")
            again = type(loaded).from_pretrained(self.folder / "again")
            self.assertEqual(again(tokens + 2).logits.shape, (2, 6, 15))

    def test_checkpointed_gradients_are_the_same(self):
        loaded, *_ = self.opened(None, {"mixer": "recurrent", "update": "delta"}, {"dropout": 0.0})
        tokens, gradients = test_traces.tokens(2, 12), []
        loaded.train()
        for _ in range(2):
            loaded(tokens, labels=tokens).loss.backward()
            gradients.append(torch.cat([parameter.grad.flatten() for parameter in loaded.parameters()]))
            loaded.zero_grad()
            loaded.gradient_checkpointing_enable()
        self.assertTrue(loaded.gradient_checkpointing)
        self.assertTrue(torch.equal(*gradients))

    @unittest.skipUnless(has("peft"), "no peft")
    def test_adapters_of_all_linear_layers_are_used(self):
        import peft
        for layer in ({"mixer": "recurrent", "update": "delta2", "decay": "channel", "gating": "sigmoid_gate", "gate_rank": 2},
                      {"temperature": "per_query", "decay": "scalar", "gating": "highway"}):
            self.setUp()
            loaded, *_ = self.opened(None, layer, {"dropout": 0.0, "tied": False})
            tokens = test_traces.tokens(2, 12)
            model = peft.get_peft_model(loaded, peft.LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM",
                                                                init_lora_weights=False))
            model(input_ids=tokens, labels=tokens).loss.backward()
            trained = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
            self.assertTrue(trained and all(gradient is not None and gradient.any() for gradient in trained.values()), trained.keys())
            adapted = model.eval()(input_ids=tokens).logits
            merged = model.merge_and_unload()(tokens).logits
            self.assertLessEqual((adapted - merged).abs().max().item(), 1e-5 * merged.abs().max().item())
        self.setUp()
        model = peft.get_peft_model(self.opened(None, {"similarity": "additive"})[0], peft.LoraConfig(target_modules="all-linear"))
        with self.assertRaisesRegex(ValueError, "attn_fc is wrapped"):
            model(input_ids=tokens)

    def test_a_classifier_is_asked_at_the_last_position_for_its_classes(self):
        data = {"corpus": "fashion_mnist", "settings": {"side": 7}}
        loaded, ours, *_ = self.opened(None, {}, None, data)
        tokens, labels = test_traces.tokens(3, 12), torch.tensor([3, 0, 9])
        with torch.no_grad():
            found, expected = loaded(tokens, labels=labels), ours(tokens)[:, -1, :10]
        torch.testing.assert_close(found.logits, expected)
        self.assertAlmostEqual(found.loss.item(), torch.nn.functional.cross_entropy(expected, labels).item(), places=6)
        self.assertEqual((loaded.config.id2label[9], loaded.config.problem_type), ("Ankle boot", "single_label_classification"))
        card = (self.folder / "huggingface/README.md").read_text()
        self.assertIn("AutoModelForSequenceClassification", card)
        self.assertNotIn("generat", card)
        self.assertFalse((self.folder / "huggingface/generation_config.json").exists())
        self.assertIn("a pixel of level l is token 10 + l", loaded.config.recipe)

    @unittest.skipUnless(has("accelerate"), "no accelerate")
    def test_added_gradients_are_those_of_one_batch(self):
        """transformers 5.24 takes it that a model with further keyword arguments divides by the number of targets itself."""
        import transformers
        steps = []
        for size, times in ((4, 1), (1, 4)):
            self.setUp()
            loaded, *_ = self.opened(None, {}, {"dropout": 0.0})
            before = [parameter.detach().clone() for parameter in loaded.parameters()]
            tokens = test_traces.tokens(4, 12)
            labels = tokens.clone()
            labels[0, 3:] = -100  # rows of different numbers of targets
            rows = [{"input_ids": row, "labels": goal} for row, goal in zip(tokens, labels)]
            transformers.Trainer(loaded, transformers.TrainingArguments(
                str(self.folder / "trained"), per_device_train_batch_size=size, gradient_accumulation_steps=times, max_steps=1,
                learning_rate=1.0, optim="sgd", max_grad_norm=0.0, lr_scheduler_type="constant", report_to="none", save_strategy="no",
                use_cpu=True, disable_tqdm=True, logging_strategy="no"), train_dataset=rows).train()
            steps.append(torch.cat([(old - new.detach()).flatten() for old, new in zip(before, loaded.parameters())]))
        self.assertLessEqual((steps[0] - steps[1]).abs().max().item(), 1e-5 * steps[0].abs().max().item())
        self.assertGreater(steps[0].abs().max().item(), 0.0)
