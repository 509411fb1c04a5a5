"""What reads the tokenizer.json of exported models, and the table of Unicode that the program cuts texts by."""
import json
import os
import random
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python", "attnas"))
import model_tokens  # noqa: E402  of a folder, without the package


def byte_level(cuts):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": cuts}


def of_pairs(merges, rule=None):
    """tokenizer.json with the bytes in GPT-2's order and these merges."""
    characters = sorted(model_tokens.byte_characters().values())
    vocabulary = {c: i for i, c in enumerate(characters)}
    for left, right in merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    return json.dumps({"pre_tokenizer": rule or byte_level(True), "added_tokens": [],
                       "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}})


def of_characters(*characters):
    vocabulary = {"<unk>": 0, **{c: i + 1 for i, c in enumerate(characters)}}
    single = {"type": "Split", "pattern": {"Regex": "(?m:.)"}, "behavior": "Isolated", "invert": False}
    return json.dumps({"pre_tokenizer": single, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}})


class Pairs(unittest.TestCase):
    def test_joins_the_lowest_rank_first(self):
        tokens = model_tokens.Tokens(of_pairs([["a", "b"], ["ab", "c"], ["b", "c"]]))
        self.assertEqual(tokens.ids(b"abc abcab"), [257, 220, 257, 256])  # as BytePairs of the program
        self.assertEqual(tokens.ids(b"bcb"), [258, 65])
        self.assertEqual(tokens.first, 198)
        self.assertEqual(tokens.size, 259)

    def test_any_bytes_come_back(self):
        random.seed(1)
        tokens = model_tokens.Tokens(of_pairs([["Ã", "©"], ["a", "b"]]))
        self.assertEqual(tokens.ids("é".encode()), [256])
        for _ in range(500):
            text = bytes(random.randrange(256) for _ in range(20))
            self.assertEqual(tokens.text(tokens.ids(text)), text)

    def test_nothing_is_joined_across_a_cut(self):
        merges = [["t", "'"], ["1", "2"], ["12", "3"], ["123", "4"]]
        gpt2 = model_tokens.Tokens(of_pairs(merges))
        cl100k = model_tokens.Tokens(of_pairs(merges, {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": model_tokens.PATTERNS["cl100k"]}, "behavior": "Isolated"},
            byte_level(False)]}))
        self.assertEqual(len(gpt2.ids(b"t's")), 3)
        self.assertEqual(len(gpt2.ids(b"1234")), 1)
        self.assertEqual(len(cl100k.ids(b"1234")), 2)

    def test_damage_is_refused(self):
        damaged = json.loads(of_pairs([["a", "b"]]))
        damaged["model"]["vocab"]["ab"] = 400
        with self.assertRaisesRegex(ValueError, "must be 0 to 256, each once"):
            model_tokens.Tokens(json.dumps(damaged))
        damaged["model"]["type"] = "Unigram"
        with self.assertRaisesRegex(ValueError, "model.type = Unigram, must be WordLevel or BPE"):
            model_tokens.Tokens(json.dumps(damaged))


class Characters(unittest.TestCase):
    def test_others_and_foreign_bytes_are_unknown(self):
        tokens = model_tokens.Tokens(of_characters("\n", "a", "日"))
        self.assertEqual(tokens.ids("a日b\n".encode() + b"\xff"), [2, 3, 0, 1, 0])
        self.assertEqual(tokens.text([2, 3]), "a日".encode())
        self.assertEqual(tokens.first, 1)

    def test_letters_are_written_in_one_way_where_the_file_says_so(self):
        tokenizer = json.loads(of_characters("\n", "\u00e9"))
        self.assertEqual(model_tokens.Tokens(json.dumps(tokenizer)).ids("e\u0301".encode()), [0, 0])
        tokenizer["normalizer"] = {"type": "NFC"}
        self.assertEqual(model_tokens.Tokens(json.dumps(tokenizer)).ids("e\u0301".encode() + b"\xff"), [2, 0])
