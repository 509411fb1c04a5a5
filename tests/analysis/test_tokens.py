"""The ids of a text are the same whoever makes them: attnas, model.py, tokenizers, tiktoken."""

import importlib.util
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest
from unittest import mock

from attnas import model_tokens
from attnas.errors import InputError
from attnas.prepare import byte_pairs, folders, texts, units

TRAIN = "20 20 2020 the cat sat isn't It'S naïve 日本語 été ½ x\u0301\n\n  if (a[0] == 12345):\n\t" * 20

GPT2 = (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s")


def trained(unit, text, **settings):
    return units.UNITS[unit].train(text, {**texts.OF_TEXTS, **settings})


def some_texts(number):
    """Of letters, numbers and blanks of all planes, also those newer than Python's Unicode."""
    engine = random.Random(67)
    rare = ["2020", "1234567", "'S", "'ſ", "\U00031350", "\U000105c0", "\u2029", "\x85", "\r\n",
            "e\u0301", "\U0001d7ce", "½", "日本", "\n \n", "   "]
    for _ in range(number):
        yield "".join(engine.choice([chr(engine.choice((128, 0x800, 0x10000, 0x32000)) - 1
                                         - engine.randrange(100)), engine.choice(rare),
                                     engine.choice(TRAIN), engine.choice(TRAIN)])
                      for _ in range(engine.randrange(60)))


def tokenizer_files():
    """Of characters and pairs, by name."""
    made = {name: trained("bpe", TRAIN.encode(), vocabulary=330, pretokens=name).file
            for name in ("gpt2", "cl100k")}
    made["gpt4"] = json.dumps(json.loads(made["cl100k"]), ensure_ascii=False).replace(
        json.dumps(model_tokens.PATTERNS["cl100k"]),
        json.dumps(model_tokens.PATTERNS["gpt4"])).encode()
    return {**made, "char": trained("char", TRAIN.encode()).file}


class Tokens(unittest.TestCase):
    def test_classes_are_those_of_one_unicode(self):
        for text, kinds in (("\U00031350\U000323af\U000105c0", "zzz"), ("½\U00010d40", "00"),
                            ("\x85\u3000", "\t\t"), ("\U000323b0\u0301\udc80", "!!!")):
            self.assertEqual("".join(map(model_tokens.in_ascii, text)), kinds)

    def test_numbers_are_cut_after_three_digits(self):
        made = model_tokens.Tokens(tokenizer_files()["cl100k"])
        self.assertEqual([made.text([i]) for i in made.ids(b"2020")], [b"202", b"0"])

    def test_readers_agree(self):
        for name, file in tokenizer_files().items():
            readers = [model_tokens.Tokens(file).ids]
            if name != "char":
                readers.append(self.read(file).encode)
            if importlib.util.find_spec("tokenizers"):
                from tokenizers import Tokenizer
                package = Tokenizer.from_str(file.decode())
                readers.append(lambda text, own=package: own.encode(text.decode()).ids)
            if importlib.util.find_spec("tiktoken") and name != "char":
                readers.append(self.tiktoken(name, json.loads(file)["model"]))
            for text in some_texts(50):
                first, *others = (list(read(text.encode())) for read in readers)
                self.assertEqual(others, [first] * len(others), (name, text))

    @staticmethod
    def tiktoken(name, model):
        """Its ids by rank, as those of the file."""
        import tiktoken
        ids = {bytes(byte_pairs.BYTE_OF[c] for c in token): i
               for token, i in model["vocab"].items()}
        ranked = sorted(ids, key=lambda token: (len(token) > 1, ids[token]))
        pattern = GPT2 if name == "gpt2" else model_tokens.PATTERNS[name]
        made = tiktoken.Encoding(name, pat_str=pattern, special_tokens={}, mergeable_ranks={
            token: rank for rank, token in enumerate(ranked)})
        return lambda text: [ids[ranked[i]] for i in made.encode_ordinary(text.decode())]

    def read(self, file, name="tokenizer.json", **settings):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.write_bytes(file)
            return byte_pairs.read(str(path), **settings)

    def test_what_changes_ids_is_refused_by_every_reader(self):
        files = tokenizer_files()
        digits = {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}+"}, "behavior": "Isolated"}
        for name, said, path, value in (
                ("gpt2", "pre_tokenizer", ("pre_tokenizer", "add_prefix_space"), True),
                ("gpt2", "pre_tokenizer", ("pre_tokenizer", "use_regex"), False),
                ("gpt2", "normalizer", ("normalizer",), {"type": "Lowercase"}),
                ("gpt2", "dropout", ("model", "dropout"), 0.5),
                ("gpt2", "ignore_merges", ("model", "ignore_merges"), True),
                ("gpt2", "unk_token", ("model", "unk_token"), "a"),
                ("gpt2", "pre_tokenizer", ("pre_tokenizer",), {"type": "Whitespace"}),
                ("cl100k", "pre_tokenizer", ("pre_tokenizer", "pretokenizers", 0), digits),
                ("gpt2", "'cat' is not special", ("added_tokens",),
                 [{"id": 330, "content": "cat", "special": False}]),
                ("gpt2", "id", ("model", "vocab", "a"), 1.0),
                ("char", "model.type", ("model", "type"), "Unigram"),
                ("char", "normalizer", ("normalizer",), {"type": "NFKC"}),
                ("char", "pre_tokenizer", ("pre_tokenizer", "pattern"), {"Regex": "."})):
            changed = part = json.loads(files[name])
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            text = json.dumps(changed).encode()
            with self.assertRaisesRegex(ValueError, said):
                model_tokens.Tokens(text)
            with mock.patch.dict(sys.modules, tokenizers=None), self.assertRaisesRegex(
                    InputError, said if name != "char" else ""):
                self.read(text)

    def test_a_file_is_cut_as_it_says(self):
        with self.assertRaisesRegex(InputError, "pretokens = cl100k, must be left out"):
            self.read(b"{}", "tokenizer.json", cuts="cl100k")

    def test_who_does_not_give_a_text_back_says_so(self):
        for unit, text, kept in (("word", "a b\nb\n", True), ("word", "a  b\n", False),
                                 ("word", "a \n", False), ("word", "a\r\nb\n", False),
                                 ("char", "é\n", True), ("char", "e\u0301\n", False),
                                 ("byte", " \r\n\t", True), ("bpe", "  e\u0301\r\n", True)):
            made = trained(unit, b"a b \xc3\xa9\n" * 2, vocabulary=0)
            self.assertEqual(made.keeps(text.encode()), kept, (unit, text))

    def test_texts_that_are_mostly_unknown_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "p.txt")
            for text, said in (("acgt\n", "% of the train split are <unk>, must be at most 50 %"),
                               (">sp|P1\nACGT\n", "has the line '>sp|P1', must be residues")):
                file.write_text(text * 400)
                with self.assertRaisesRegex(InputError, re.escape(said)):
                    folders.prepare([str(file)], "residue", {"alphabet": "ACGT"},
                                    pathlib.Path(folder, "ids"))
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["p.txt"])
            three = dict.fromkeys(("train", "valid", "test"), str(file))
            for settings, said in (
                    ({"path": str(file), "tokenizer": "byte", "vocabulary": 500}, "vocabulary"),
                    ({**three, "valid_share": 0.2}, "valid_share")):
                with self.assertRaisesRegex(InputError, said):
                    folders.prepare_corpus("text_file", settings, 8, pathlib.Path(folder))
