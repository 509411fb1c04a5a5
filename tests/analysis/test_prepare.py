"""Texts become ids: tokenizers, refusals, data sets, folders, which have the hashes of records."""

import array
import gzip
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
import unicodedata
import unittest
import zipfile
from unittest import mock

from attnas.errors import InputError
from attnas.prepare import (archives, byte_pairs, corpora, data_sets, downloads, encodings, files,
                            folders, texts, units)
from attnas.prepare.data_sets import DataSet, Source
from python_tests import FolderTest


def corpus_hash(folder, context):
    """The hash of a corpus as records have it: SHA-256 of ids, starts, targets and vocabulary."""
    def numbers(name, code="i"):
        return array.array(code, (folder / name).read_bytes())
    card = json.loads((folder / "card.json").read_text())
    digest = hashlib.sha256(struct.pack("<qiii", card["vocabulary"], *card["special"].values()))
    for split in ("train", "valid", "test"):
        ids, targets, last, shift = numbers(f"{split}.bin"), array.array("i"), -1, 1
        if card["layout"] == "standard":
            end, number = len(ids) - 1, len(ids) - 1
            if split == "train":
                shift = min(max(number, 1), context)
                end = max(number - context + 1, min(number, 1))
            starts = range(0, end, context)
        elif card["layout"] == "published":
            last, begins = card["special"]["pad"], [*numbers(f"{split}.lines.bin", "q"), len(ids)]
            starts = [start for begin, end in zip(begins, begins[1:])
                      for start in range(begin, end - context, max(1, context // 2))]
        else:
            starts = range(0, len(ids), context + (card["labels"] == 0))
            if card["labels"]:
                targets = array.array("i", [-100]) * len(ids)
                targets[context - 1::context] = numbers(f"{split}.labels.bin")
        digest.update(struct.pack("<qiq", context, last, shift))
        for part in (ids, array.array("q", starts), targets):
            digest.update(struct.pack("<Q", len(part)) + part.tobytes())
    if card["task"] != "next_token":
        digest.update(card["task"].encode() + b"\0" + struct.pack("<q", card["labels"]))
    return digest.hexdigest()


def trained(unit, text, **settings):
    text = text if isinstance(text, bytes) else text.encode()
    return units.UNITS[unit].train(text, {**texts.OF_TEXTS, **settings})


def ids_of(tokenizer, text):
    return list(tokenizer.encode(text if isinstance(text, bytes) else text.encode()))


def encoded(given, context=2, name="test", **settings):
    given = [text if isinstance(text, bytes) else text.encode() for text in given]
    return texts.encode(name, "a text", given, {**texts.OF_TEXTS, **settings}, context)


class Case(FolderTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"

    def write(self, name, content=b""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def refused(self, said, call, *arguments, **settings):
        with self.assertRaises(InputError) as caught:
            call(*arguments, **settings)
        self.assertIn(said, str(caught.exception))

    def corpus(self, name="text_file", context=4, **settings):
        settings = {key: str(value) if isinstance(value, pathlib.Path) else value
                    for key, value in settings.items()}
        return folders.prepare_corpus(name, settings, context, self.data, self.folder / "kept")

    def card(self, **settings):
        return json.loads((self.corpus(**settings) / "card.json").read_text())


class Words(Case):
    def test_by_count_ties_by_first_showing(self):
        self.assertEqual(trained("word", "z y x y x w <unk> <unk>").file,
                         b"<unk>\n<eos>\ny\nx\nz\nw\n")
        self.assertEqual(trained("word", "z y x y x w", vocabulary=5).file.split()[2:],
                         [b"y", b"x", b"z"])
        published = trained("word", "a b a", layout="published")
        self.assertEqual((published.file, published.pad, published.unknown, published.end),
                         (b"<pad>\n<unk>\n<eos>\na\nb\n", 0, 1, 2))
        for size, layout, least in ((2, "standard", 3), (3, "published", 4)):
            self.refused(f"data.vocabulary = {size}, must be 0 (every word) or at least {least}",
                         trained, "word", "a", vocabulary=size, layout=layout)

    def test_each_line_ends_also_where_blocks_do(self):
        words = trained("word", "a b c")
        for text, ids in (("a b\n\nd", [2, 3, 1, 1, 0, 1]), ("", []), ("\n", [1]),
                          (" a \t", [2, 1]), ("a\r\nb\v\f c\n", [2, 1, 3, 4, 1])):
            self.assertEqual(ids_of(words, text), ids)
        text = b"a b c\n" * 50 + b"b " * 50 + b"\n\nc"
        expected = ids_of(words, text)
        for size in range(1, 40):
            with mock.patch.object(encodings, "_BLOCK", size):
                self.assertEqual(ids_of(words, text), expected)


class Characters(Case):
    def test_by_falling_count_ties_by_code_point(self):
        made = trained("char", "bé\u65e5 a a a éé\n")
        self.assertEqual(made.size, 7)  # <unk>, blank, a, é, \n, b, 日
        self.assertEqual(ids_of(made, "aé b\nx".encode() + b"\xff"), [2, 3, 1, 5, 4, 0, 0])
        self.assertEqual((made.unknown, made.first), (0, 4))
        self.assertEqual(trained("char", "aaaabbc", coverage=0.8).size, 3)
        self.assertEqual(trained("char", "aaaabbc", vocabulary=2).size, 2)
        self.refused("data.vocabulary = 1, must be 0 (every character) or at least 2", trained,
                     "char", "a", vocabulary=1)

    def test_letters_are_written_in_one_way(self):
        made = trained("char", "e\u0301 \u212a")  # e with an accent, the kelvin sign
        self.assertEqual(made.size, 4)
        self.assertEqual(ids_of(made, "é"), ids_of(made, "e\u0301"))
        self.assertEqual(json.loads(made.file)["normalizer"], {"type": "NFC"})

    def test_residues_are_letters_of_the_alphabet(self):
        made = trained("residue", "")
        self.assertEqual((made.size, ids_of(made, "ACY\nXa")), (22, [2, 3, 21, 1, 0, 0]))
        self.assertIsNone(json.loads(made.file)["normalizer"])
        self.refused("data.alphabet = 'ACA': character 3, must be a letter that is there once",
                     trained, "residue", "", alphabet="ACA")
        self.refused("character 2, must be", trained, "residue", "", alphabet="A\u2003")
        self.refused("must have a letter", trained, "residue", "", alphabet="")

    def test_bytes_are_their_own_ids(self):
        made = trained("byte", "")
        self.assertEqual((made.size, made.first, made.file), (256, 10, None))
        self.assertEqual(ids_of(made, b"a\xff\0\n"), [97, 255, 0, 10])


def cut(text, rule):
    text = text if isinstance(text, bytes) else text.encode()
    return [part for parts in byte_pairs.pretokens(text, rule) for part in parts]


class BytePairs(Case):
    def test_gpt2_cuts(self):
        for text, parts in (
                ("It's 2024, isn't it?", ["It", "'s", " 2024", ",", " isn", "'t", " it", "?"]),
                ("a  b\n\n c ", ["a", " ", " b", "\n\n", " c", " "]), ("  ", ["  "]),
                ("été ½x 日本", ["été", " ½", "x", " 日本"]),
                ("a\xa0\xa0z'S", ["a", "\xa0", "\xa0", "z", "'", "S"]),
                (b"a\xff\xfe b", ["a", "\udcff\udcfe", " b"])):
            self.assertEqual(cut(text, "gpt2"), parts)

    def test_cl100k_cuts(self):
        for text, parts in (
                ("It'S 12345, (isn't) it?!\n\n x", ["It", "'S", " ", "123", "45", ",", " (", "isn",
                                                    "'t", ")", " it", "?!\n\n", " x"]),
                ("a \n \n  b\n  ", ["a", " \n \n", " ", " b", "\n  "]), ("\tx", ["\tx"])):
            self.assertEqual(cut(text, "cl100k"), parts)

    def test_no_block_cuts_otherwise(self):
        engine = random.Random(3)
        text = "".join(engine.choice("ab1.' \n\té日 ") for _ in range(3000))
        for rule in ("gpt2", "cl100k"):
            expected = cut(text, rule)
            self.assertEqual("".join(expected), text)
            with mock.patch.object(encodings, "_BLOCK", 7):
                self.assertEqual(cut(text, rule), expected)

    def test_ties_go_to_the_lowest_ids(self):
        pairs = trained("bpe", "abc abc", vocabulary=0)
        self.assertEqual(json.loads(pairs.file)["model"]["merges"], [["a", "b"], ["ab", "c"]])
        self.assertEqual(ids_of(pairs, "abc abcab"), [257, 220, 257, 256])
        self.assertEqual((pairs.size, pairs.first), (258, 198))  # as in GPT-2
        self.refused("data.vocabulary = 256, must be 0", trained, "bpe", "a", vocabulary=256)

    def test_overlapping_pairs_and_long_pretokens(self):
        pairs = trained("bpe", "aaaa aaaa", vocabulary=0)
        self.assertEqual(json.loads(pairs.file)["model"]["merges"], [["a", "a"], ["aa", "aa"]])
        self.assertEqual(len(ids_of(pairs, "a" * 10_003)), 2502)

    def test_files_of_others(self):
        own = trained("bpe", "low lower lowest low", vocabulary=262)
        model = json.loads(own.file)["model"]
        model["vocab"]["<|endoftext|>"] = own.size
        published = byte_pairs.read(str(self.write("tokenizer.json", json.dumps({**json.loads(own.file), "model": model}))))
        self.assertEqual(published.size, own.size + 1)
        self.assertEqual(ids_of(published, "the lowest"), ids_of(own, "the lowest"))
        self.refused("no.json: cannot be read", byte_pairs.read, str(self.folder / "no.json"))

    def read_changed(self, *path, value, package=False):
        changed = json.loads(trained("bpe", "abab").file)
        part = changed
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        file = self.write("changed.json", json.dumps(changed))
        with mock.patch.dict(sys.modules, {} if package else {"tokenizers": None}):
            return byte_pairs.read(str(file))

    def test_what_is_not_understood_is_refused(self):
        install = "python3 -m pip install tokenizers"
        for said, value, *path in (
                ('normalizer = {"type": "NFC"}', {"type": "NFC"}, "normalizer"),
                ("model.type = Unigram, must be WordLevel or BPE", "Unigram", "model", "type"),
                ("byte_fallback = true", True, "model", "byte_fallback"),
                ("pre_tokenizer = ", True, "pre_tokenizer", "add_prefix_space")):
            self.refused(said, self.read_changed, *path, value=value)
            self.refused(install, self.read_changed, *path, value=value)
        for said, value, *path in (
                ("merge of 'zz', which is no token", "a zz", "model", "merges", 0),
                ("is of two tokens", 7, "model", "vocab", "a"),
                ("must be an integer >= 0", -1, "model", "vocab", "a"),
                ("has no token of id", 300, "model", "vocab", "ab")):
            self.refused(f"changed.json: {'merge' if 'merge' in said else ''}",
                         self.read_changed, *path, value=value)
            self.refused(said, self.read_changed, *path, value=value)
        self.refused("x.json: is no JSON of a tokenizer", byte_pairs.read,
                     str(self.write("x.json", "{")))

    @unittest.skipUnless(importlib.util.find_spec("tokenizers"), "needs the package tokenizers")
    def test_the_package_reads_others_and_agrees(self):
        made = self.read_changed("normalizer", value={"type": "NFC"}, package=True)
        own = trained("bpe", "abab")
        self.assertEqual(ids_of(made, "abab e\u0301"), ids_of(own, "abab é"))
        self.assertEqual((made.size, made.first, made.unknown), (own.size, own.first, -1))
        self.refused("takes texts of UTF-8 alone", made.encode, b"a\xff b")


class Layouts(Case):
    THREE = ("a a a b\nb c\n", "a b\n\nd\n", "c\n")  # <unk> 0, <eos> 1, a 2, b 3, c 4

    def test_standard_is_one_stream(self):
        made = encoded(self.THREE)
        self.assertEqual(list(made.ids["train"]), [1, 2, 2, 2, 3, 1, 3, 4, 1])
        self.assertEqual(list(made.ids["valid"]), [1, 2, 3, 1, 1, 0, 1])
        self.assertEqual((made.vocabulary, made.unit, made.first), (5, "word", 1))

    def test_published_is_long_lines(self):
        long = "a b c d e\n"
        made = encoded(("a b c d\na b c d e f g\n" + long, long, long + "a b\n" + long), 4,
                       layout="published")
        self.assertEqual(list(made.lines["train"]), [0, 7])
        self.assertEqual((len(made.ids["train"]), list(made.lines["test"])), (12, [0, 5]))
        self.refused("test: the valid split has no line of more than 4 words (the context), which "
                     "layout = published needs", encoded, (long, "a b c\n", long), 4,
                     layout="published")

    def test_tokenizers_learn_from_the_training_split_alone(self):
        self.assertEqual(encoded(("abab\n", "cdcd\n", "efef\n"), tokenizer="bpe").vocabulary, 257)
        made = encoded(("ab\n", "zb\n", "b\n"), tokenizer="char")
        self.assertEqual(list(made.ids["valid"]), [1, 0, 3, 1])

    def test_settings_that_do_not_fit_are_refused(self):
        one = ("a\n", "a\n", "a\n")
        for said, settings in (
            ("data.coverage = 0.5, must be left out where data.unit = word: it is of char",
             {"coverage": 0.5}), ("data.layout = published, must be standard where data.unit = bpe",
                                  {"unit": "bpe", "layout": "published"}),
            ("data.unit = byte, must be left out where data.tokenizer = bpe",
             {"unit": "byte", "tokenizer": "bpe"})):
            self.refused(said, encoded, one, **settings)
        self.refused("model.context = 1, must be in [2", encoded, one, 1)

    def test_empty_splits_are_refused(self):
        for given, said in ((("a\n", "", "b\n"), "valid split has no text"),
                            (("", "a\n", "b\n"), "train split has no text"),
                            (("a\n", "b\n", ""), "test split has no text"),
                            (("a\n", " \n", "b\n"), "valid split has no word"),
                            (("<unk>\n", "b\n", "c\n"), "train split has no word but <unk>")):
            self.refused(f"test: the {said}", encoded, given)


class OwnText(Case):
    def test_one_file_is_cut_at_ends_of_lines(self):
        path = self.write("my.txt", "a b c d\n" * 10)  # cuts at 48 and 64
        card = self.card(path=path, valid_share=0.25, test_share=0.15)
        self.assertEqual(card["tokens"], {"train": 36, "valid": 11, "test": 6})
        self.assertEqual(card["description"], str(path))
        three = self.card(train=self.write("a", "a b c\n"), valid=self.write("b", "b\n"),
                          test=self.write("c", "c c\n"))
        self.assertEqual((three["vocabulary"], three["tokens"]["test"]), (5, 4))

    def test_files_that_do_not_fit_are_refused(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        one = self.write("my.txt", "one line only\n")
        must = "', must be path alone, or train, valid and test without path"
        for said, settings in (
            ("text_file: data.path = '', train = '', valid = '', test = '" + must, {}),
            ("data.path = 'p', train = '', valid = '', test = 't" + must,
             {"path": "p", "test": "t"}), ("/no/such: cannot be read", {"path": "/no/such"}),
            ("/dev/zero: is a device, must be a text file", {"path": "/dev/zero"}),
            (f"{pipe}: is a pipe, must be a text file", {"path": pipe}),
            ("text_file: the valid split has no text", {"path": one}),
            ("data.valid_share + data.test_share = 1, must be less than 1",
             {"path": one, "valid_share": 0.5, "test_share": 0.5}),
            ("unknown setting 'shares'", {"path": one, "shares": 1}),
            ("data.vocabulary = \"9\", must be a int", {"path": one, "vocabulary": "9"})):
            self.refused(said, self.corpus, **settings)
        self.assertFalse((self.folder / "kept").exists())

    def test_what_finds_no_memory_is_refused(self):
        path = self.write("large.txt")
        os.truncate(path, 1 << 42)  # a hole, which takes no disk
        self.refused(f"text_file: {path}: at least 8 TiB of memory, must be at most ", self.corpus,
                     path=path)


SENTENCES = {
    "English": ("The quick brown fox jumps over the lazy dog and runs away.", True, []),
    "French": ("Voilà l'été où les élèves reçoivent un cadeau.", True, ["LATIN1"]),
    "Russian": ("Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива.",
                True, ["cp1251", "KOI8-R", "CP866"]),
    "Korean": ("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", True,
               ["EUC-KR"]),
    "Chinese": ("人人生而自由在尊严和权利上一律平等他们赋有理性和良心并应以兄弟关系的精神相对待。",
                False, ["GBK"]),
    "Japanese": ("すべての人間は生まれながらにして自由でありかつ尊厳と権利とについて平等である。",
                 False, ["shift_jis", "EUC-JP", "ISO-2022-JP"]),
    "Thai": ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ", False, []),
    "separated Chinese": ("人人 生 而 自由 ， 在 尊严 和 权利 上 一律 平等 。", True, []),
}


class Encodings(Case):
    def require(self, text, piece="word"):
        warnings = []
        encodings.require_plain_text("own.txt", text, piece, warnings)
        return warnings

    def test_text_with_blanks_is_taken(self):
        for name, (sentence, blanks, _) in SENTENCES.items():
            for end in ("\n", "\r\n", " ", "\t"):
                with self.subTest(name, end=end):
                    text = (sentence + end).encode() * 40
                    self.assertEqual(self.require(text, "byte"), [])
                    if blanks:
                        self.assertEqual(self.require(text), [])
                        continue
                    self.refused("of a script without blanks", self.require, text)
                    self.refused("data.tokenizer = byte, char or bpe", self.require, text)

    def test_other_encodings_are_refused(self):
        for name, (sentence, _, others) in SENTENCES.items():
            for other in others:
                with self.subTest(name, other=other):
                    text = (sentence + "\n").encode(other) * 50
                    self.refused("iconv -f ", self.require, text)
                    self.assertEqual(len(self.require(text, "byte")), other != "ISO-2022-JP")
            for wide in ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"):
                for mark in ("\ufeff", *([""] if sentence.isascii() or "32" in wide else [])):
                    text = (mark + 50 * (sentence + "\n")).encode(wide)
                    self.refused(f"own.txt is {wide}", self.require, text, "byte")
        self.refused("byte 0x93 in line 1); must be UTF-8: iconv -f ENCODING -t UTF-8, which `file -i` names",
                     self.require, b"\x93quoted\x94 text of words\n" * 50)

    def test_what_no_reader_expects_is_refused_or_told(self):
        line = b"a b c d e f g\n"

        def around(inner):
            return line * 20 + b"h " + inner.encode() + b"i\n" + line * 20
        self.refused("has 1 NUL bytes, the first in line 21", self.require, around("\0"))
        for end in ("\r", "\u2028", "\u2029", "\x85"):
            self.refused("must end them with \\n", self.require,
                         line.replace(b"\n", end.encode()) * 50)
        for part in ("\u2028", "\ufeff", "\xa0", "\u3000"):
            self.assertIn("in line 21): they are parts of words", *self.require(around(part)))
        self.refused("data.tokenizer = byte, char or bpe", self.require, b"A" * 5000 + b"\n")
        some = ("This text says 人人生而自由在尊严和权利上一律平等 and then goes on in English words\n")
        self.assertIn("data.unit = byte needs no blanks", *self.require(some.encode() * 50))

    def test_texts_cut_within_their_last_character_are_utf8(self):
        for sentence, *_ in SENTENCES.values():
            for size in range(4, len(sentence.encode())):
                self.assertIsNone(encodings.first_foreign_byte(sentence.encode()[:size]))
        for bad in (b"a\xc0\x80", b"a\xed\xa0\x80b", b"a\xf5\x80\x80\x80", b"a\xe2\x28\xa1",
                    b"a\x80"):
            self.assertEqual(encodings.first_foreign_byte(bad), 1)


def tar(entries, mode="w", **type_):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in type_.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


WIKI = tar((("wikitext-2/wiki.train.tokens", b"a b\n"), ("wikitext-2/wiki.valid.tokens", b"a\n"),
            ("wikitext-2/wiki.test.tokens", b"b\n")))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class DataSets(Case):
    def set_of(self, *paths, content="", checked=True, name="wikitext-2"):
        sources = tuple(Source(path.as_uri(), sha256(WIKI) if checked else "") for path in paths)
        return DataSet(name, "free", sources=sources, content_sha256=content)

    def get(self, data_set, source=None, **more):
        return data_sets.get(data_set, self.data, source, **more)

    def text(self, split):
        return (self.data / "wikitext-2" / f"{split}.txt").read_bytes()

    def own(self, test=b"t\n"):
        for name, content in (("train", b"mine\n"), ("valid", b"v\n"), ("test", test)):
            self.write(f"own/{name}.txt", content)
        return self.folder / "own"

    def test_downloads_unpacks_and_records_the_source(self):
        archive, seen = self.write("mirror/a.tar", WIKI), []
        got = self.get(self.set_of(archive), progress=lambda *now: seen.append(now))
        self.assertEqual((got.already_present, got.folder), (False, self.data / "wikitext-2"))
        self.assertEqual([self.text(split) for split in files.SPLITS], [b"a b\n", b"a\n", b"b\n"])
        self.assertEqual(seen[-1], (archive.as_uri(), len(WIKI), len(WIKI)))
        record = data_sets.provenance(data_sets.find("wikitext-2", self.data))
        self.assertEqual((record.source, record.archive_sha256, record.content_sha256),
                         (archive.as_uri(), sha256(WIKI), sha256(b"a b\na\nb\n")))
        self.assertEqual(os.listdir(self.data), ["wikitext-2"], "no temporary files stay")
        self.assertTrue(self.get(self.set_of(archive)).already_present)

    def test_what_differs_from_its_checksum_is_refused_and_nothing_written(self):
        broken = self.write("mirror/a.tar", WIKI.replace(b"a b", b"a X"))
        address = broken.as_uri()
        found = sha256(broken.read_bytes())
        self.refused("wikitext-2 could not be had from any of 1 sources:\n  "
                     f"{address}: SHA-256 is {found}, must be {sha256(WIKI)}\nTake it from a folder"
                     " or an archive with: nas-data get wikitext-2 --from PATH", self.get,
                     self.set_of(broken))
        content, other = sha256(b"a X\na\nb\n"), sha256(b"other")
        self.refused(f"{address}, unpacked: SHA-256 is {content}, must be {other}", self.get,
                     self.set_of(broken, content=other, checked=False))
        self.assertFalse(self.data.exists())

    def test_sources_are_tried_in_turn_and_each_that_failed_is_named(self):
        archive, words = self.write("m/a.tar", WIKI), self.write("m/b.tar", "no archive")
        nowhere = self.folder / "nowhere.tar"
        self.refused("not a readable archive", self.get, self.set_of(nowhere, words, checked=False))
        self.refused(f"from any of 2 sources:\n  {nowhere.as_uri()}: ", self.get,
                     self.set_of(nowhere, words))
        self.assertFalse(self.data.exists())
        got = self.get(self.set_of(nowhere, archive))
        self.assertEqual(got.provenance.source, archive.as_uri())

    def test_present_data_is_left_alone_and_held_to_its_record(self):
        archive = self.write("mirror/a.tar", WIKI)
        got = self.get(self.set_of(archive)).folder
        os.truncate(got / "train.txt", 2)  # as a power cut may
        cut_, whole = sha256(b"a a\nb\n")[:12], sha256(b"a b\na\nb\n")[:12]
        refusal = (f"{got}: SHA-256 of train, valid and test is {cut_}..., must be {whole}... as "
                   "source.json there says")
        self.refused(refusal, data_sets.read, "wikitext-2", self.data)
        for source in (None, archive):
            self.refused(refusal, self.get, self.set_of(archive), source)
        for other in ('{"content_sha256": ""}', '{"content_sha256": 3}', "{}"):
            self.write("data/wikitext-2/source.json", other)
            self.assertEqual(data_sets.read("wikitext-2", self.data)[1][0], b"a ")
        self.write("data/wikitext-2/source.json", "[]")
        self.refused("source.json: not a JSON object", data_sets.read, "wikitext-2", self.data)
        for name in ("valid.txt", "source.json"):
            (got / name).unlink()
        self.refused("exists without train.txt, valid.txt and test.txt; move it away first",
                     self.get, self.set_of(archive))

    def test_a_folder_or_archive_of_ones_own_is_recorded_and_never_refused(self):
        known = DataSet("wikitext-2", "free", content_sha256=sha256(b"other"))
        got = self.get(known, self.own())
        self.assertEqual((self.text("train"), got.provenance.source, got.provenance.archive_sha256),
                         (b"mine\n", str(self.folder / "own"), ""))
        self.assertIn("holds another text than wikitext-2 has (SHA-256 ", got.warnings[0])
        self.assertTrue(self.get(known, self.own()).already_present, "the same text again")
        there = got.provenance.content_sha256
        self.refused(f"{got.folder} holds other text (SHA-256 {there}) than", self.get, known,
                     self.own(b"changed\n"))
        self.assertEqual(self.text("test"), b"t\n")

    def test_from_says_what_is_wrong(self):
        none = DataSet("wikitext-2", "free")
        self.refused("--from /no/such: no such folder or archive", self.get, none, "/no/such")
        self.refused("--from /dev/zero: is a device, must be a folder or an archive", self.get,
                     none, "/dev/zero")
        self.refused("test.txt has no text", self.get, none, self.own(b""))
        (self.folder / "own/test.txt").unlink()
        self.refused("no train.txt, valid.txt and test.txt", self.get, none, self.folder / "own")
        self.refused("text8: there is no source whose checksum is known. Take it from a folder or "
                     "an archive with: nas-data get text8 --from PATH, or put", data_sets.get,
                     "text8", self.data)
        self.refused(f"brown: no train.txt, valid.txt and test.txt in {self.data / 'brown'}; get "
                     "them with: nas-data get brown, or set NAS_DATA_DIR to the folder that holds "
                     "brown", data_sets.read, "brown", self.data)
        self.assertFalse(self.data.exists())

    def test_a_full_disk_is_no_fault_of_the_source(self):
        text = b"a" * 100_000 + b"\n"
        archive = self.write("a.tar", tar((("train.txt", text), ("valid.txt", b"v\n"),
                                           ("test.txt", b"t\n"))))
        for source in (archive, None):
            code = ("import sys, resource; from attnas.prepare import data_sets as d; from attnas.command_line import "
                    "run_main; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); s = "
                    f"d.DataSet('wikitext-2', '', sources=(d.Source({archive.as_uri()!r}), "
                    f"d.Source('file:///nowhere'))); sys.exit(run_main('x', lambda: d.get(s, {str(self.data)!r}, "
                    f"{str(source) if source else None!r}) and 0))")
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(done.returncode, 75, done.stderr)
            self.assertIn("no space left in ", done.stderr)
        self.assertFalse(self.data.exists())

    def test_what_was_planted_under_its_temporary_name_is_not_written_through(self):
        self.write("elsewhere/ready/file")
        self.data.mkdir()
        name = f".wikitext-2.partial-{files.socket.gethostname()}-{os.getpid()}"
        (self.data / name).symlink_to(self.folder / "elsewhere")
        self.get(self.set_of(self.write("mirror/a.tar", WIKI)))
        self.assertEqual(os.listdir(self.folder / "elsewhere/ready"), ["file"])
        self.assertEqual(os.listdir(self.data), ["wikitext-2"])

    def test_the_data_folder_itself_may_be_the_data_set(self):
        for split in files.SPLITS:
            self.write(f"wikitext-2/{split}.txt", "a\n")
        self.assertTrue(data_sets.find("wikitext-2", self.folder / "wikitext-2"))
        self.assertFalse(data_sets.find("brown", self.folder / "wikitext-2"))

    def test_known_sources_are_complete(self):
        self.assertEqual(set(data_sets.known()), {*corpora.TEXTS, "fashion_mnist"})
        for data_set in data_sets.known().values():
            self.assertTrue(data_set.licence and data_set.language and data_set.bytes > 700_000)
            for source in data_set.sources:
                self.assertIn(64, (len(source.sha256), len(data_set.content_sha256)))

    def test_a_transfer_takes_no_more_than_it_may(self):
        url, to = self.write("a", b"a" * 100_000).as_uri(), self.folder / "x"
        downloads.download(url, to, most=100_000)
        self.assertEqual(to.stat().st_size, 100_000)
        self.refused(f"{url}: is longer than 99999 bytes, the most that is downloaded",
                     downloads.download, url, to, most=99_999)
        self.refused("file:///no/such/file: ", downloads.download, "file:///no/such/file", to)


class Archives(Case):
    def unpack(self, content, always=files.ARCHIVE_BYTES, name="a.tar"):
        into = self.folder / "in"
        subprocess.run(["rm", "-rf", into], check=True)
        into.mkdir()
        archives.unpack(self.write(name, content), into, always)
        return sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())

    def test_each_kind_is_unpacked(self):
        entries = (("f/a.txt", b"x"), ("b", b""))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in entries:
                archive.writestr(name, content)
        for content in (packed.getvalue(), *(tar(entries, mode)
                                             for mode in ("w", "w:gz", "w:bz2", "w:xz"))):
            self.assertEqual(self.unpack(content), ["b", "f/a.txt"])

    def test_a_package_of_debian_becomes_what_it_installs(self):
        def member(name, content):
            head = f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(content):<10}`\n"
            return head.encode() + content + b"\n" * (len(content) % 2)
        data = tar((("./usr/share/text", b"abc"),), "w:xz")
        package = (b"!<arch>\n" + member("debian-binary", b"2.0\n")
                   + member("control.tar.gz", b"x") + member("data.tar.xz", data))
        self.assertEqual(self.unpack(package), ["usr/share/text"])

    def test_entries_that_lead_out_are_refused(self):
        for name in ("../evil.txt", "a/../../evil.txt", "/evil.txt"):
            self.refused(f"a.tar: entry '{name}' must lie inside the folder that it is unpacked to",
                         self.unpack, tar(((name, b"x"),)))
        self.assertFalse((self.folder / "evil.txt").exists())
        self.assertEqual(self.unpack(tar((("link", b""),), type=tarfile.SYMTYPE, linkname="/")), [])

    def test_what_is_no_archive_is_refused(self):
        self.refused(f"a.tar: cannot be unpacked: {self.folder / 'in' / 'a'}", self.unpack,
                     tar((("a", b"x"), ("a/b", b"y"))))
        whole = tar((("a.txt", b"a" * 5000),))
        for content in (whole[:1000], b"", b"only words", b"PK\3\4", b"\x1f\x8b",
                        b"!<arch>\nshort"):
            with self.subTest(content[:8]):
                if content == b"!<arch>\nshort":
                    self.assertEqual(self.unpack(content), [])
                    continue
                self.refused("a.tar: not a readable archive: ", self.unpack, content)

    def test_no_more_than_a_hundred_times_its_size(self):
        always = 40 * 4096
        refusal = "a.tar: unpacks to more than 163840 bytes, a hundred times its size"
        for number, name in ((40, "{}"), (10, "{}/d/d/f"), (39, "d/{}")):
            def packed(number, name=name):
                return tar([(name.format(i), b"") for i in range(number)], "w:gz")
            self.assertEqual(len(self.unpack(packed(number), always)), number)
            self.refused(refusal, self.unpack, packed(number + 1), always)
        zeros = tar((("zeros", bytes(1 << 20)),), "w:gz")
        self.refused(refusal + ": unpack it yourself if it is what it says", self.unpack, zeros,
                     always)

    def test_gzip_alone(self):
        self.assertEqual(files.read_gzip(self.write("a.gz", gzip.compress(b"a")
                                                       + gzip.compress(b"b"))), b"ab")
        self.refused("b.gz: not compressed by gzip", files.read_gzip, self.write("b.gz", "words"))
        self.refused("c.gz: not a readable archive", files.read_gzip,
                     self.write("c.gz", gzip.compress(b"abcdef")[:-4]))


class Corpora(Case):
    def prepared(self, name):
        return corpora.PREPARATIONS[name](self.folder / "from")

    def test_brown_loses_its_tags_and_is_cut_by_tokens(self):
        text = "\n\n" + "\tThe/at 1/2/cd ./.\n\n" * 668  # 1,002,000 tokens
        for i in range(500):
            self.write(f"from/package/c{'abcdefghijklmnopqr'[i % 18]}{i // 18:02}", text)
        self.write("from/package/README", "not a text\n")
        train, valid, test = self.prepared("brown")
        self.assertEqual(train[:20], b"The 1/2 .\nThe 1/2 .\n")
        # 800,000 = 266,666 sentences and two tokens: the sentence across the cut becomes two lines.
        self.assertTrue(train.endswith(b" .\nThe 1/2\n") and valid.startswith(b".\nThe 1/2 .\n"))
        self.assertEqual([len(split.split()) for split in (train, valid, test)],
                         [800_000, 200_000, 2_000])
        (self.folder / "from/package/ca00").unlink()
        self.refused("holds 499 texts of the Brown corpus (ca01 ... cr09), must hold 500",
                     self.prepared, "brown")

    def test_articles_of_the_dictionary(self):
        text = b"\n\n00-database-url\n   ftp://ftp.gnu.org\n\nThe notice\n\n" + b"".join(
            b"Word%d \\Word\\ n.\n   1. fa\xe7ade\n\n   Syn: w\n\n" % i for i in range(20))
        self.write("from/usr/share/dictd/gcide.dict.dz", gzip.compress(text))
        train, valid, test = self.prepared("gcide")
        self.assertTrue(train.decode().startswith(
            "Word0 \\Word\\ n.\n   1. fa\ufffdade\n\n   Syn: w\n\nWord1"))
        self.assertEqual((valid[:6], test[:7]), (b"Word9 ", b"Word19 "))

    def test_sayings_without_colours(self):
        text = "".join(f"\x1b[33m言{i}\x1b[m\n%\n" for i in range(10))
        for name, content in (("chinese", text), ("song100", text), ("tang300", "诗\n")):
            self.write(f"from/{name}", content)
        train, valid, test = (split.decode() for split in self.prepared("fortunes_zh"))
        self.assertTrue(train.startswith("言0\n言1\n") and train.endswith("诗\n"))
        self.assertEqual((valid, test), ("言9\n", "言9\n"))

    def test_lines_of_a_sequence_are_joined(self):
        self.write("from/DB.fasta.gz", gzip.compress(b"".join(
            b">sp|A|B name=%d\nMKV\nLAW\n" % i for i in range(20))))
        self.assertEqual(self.prepared("proteins")[1], b"MKVLAW\n")
        self.write("from/DB.fasta.gz", gzip.compress(b">a\nMKV\n"))
        self.refused("holds 1 parts of a text, must be at least 20", self.prepared, "proteins")

    def test_sections_of_the_reference(self):
        text = "Debian\n    1.1.1. A line of the contents\n1.1. List of tables\n" + "".join(
            f"1.{i // 10}.{i}.\xa0Kopf\n\n    Wort\n 1.1.1. eingerückt\n2. Kapitel\n3.14 und mehr\n"
            for i in range(1, 21))
        self.write("from/usr/debian-reference.zh-cn.txt.gz", gzip.compress(text.encode()))
        train, valid, test = (split.decode() for split in self.prepared("debian_reference_zh_cn"))
        self.assertTrue(train.startswith("1.0.1.\xa0Kopf\n\n    Wort\n 1.1.1. eingerückt\n"
                                         "2. Kapitel\n3.14 und mehr\n1.0.2."))
        self.assertEqual((valid[:7], test[:7]), ("1.1.10.", "1.2.20."))

    def test_files_of_source(self):
        for i in range(10, 30):
            self.write(f"from/a-1/src/f{i}.{'ch'[i % 2]}",
                       b"int f%d;%b" % (i, b"\xe4" if i == 19 else b""))
        self.write("from/a-1/src/f.txt", "no source")
        train, valid, test = self.prepared("sqlite")
        self.assertTrue(train.startswith(b"int f10;\nint f11;\n"))
        self.assertEqual((valid, test), ("int f19;\ufffd\n".encode(), b"int f29;\n"))

    def test_another_size_of_text8_is_refused(self):
        self.write("from/text8", "abc")
        self.refused("text8: has 3 bytes, must have 100000000", self.prepared, "text8")
        self.refused("no file enwik8 in it", self.prepared, "enwik8")


class Pictures(Case):
    """Image i is of class i % 10; its upper half has grey level 3 i % 256, the lower 255."""

    def setUp(self):
        super().setUp()
        for name, number in (("train", 5003), ("t10k", 4)):
            pixels = b"".join(bytes([3 * i % 256]) * 392 + b"\xff" * 392 for i in range(number))
            head = struct.pack(">IIII", 0x803, number, 28, 28)
            self.write(f"from/{name}-images-idx3-ubyte.gz", gzip.compress(head + pixels, 1))
            labels = bytes(i % 10 for i in range(number))
            self.write(f"from/{name}-labels-idx1-ubyte.gz",
                       gzip.compress(struct.pack(">II", 0x801, number) + labels))
        for split, content in zip(files.SPLITS,
                                  corpora.PREPARATIONS["fashion_mnist"](self.folder / "from")):
            self.write(f"data/fashion_mnist/{split}.txt", content)

    def made(self, context, **settings):
        folder = self.corpus("fashion_mnist", context, valid_examples=101, **settings)
        card = json.loads((folder / "card.json").read_text())
        return card, {split: array.array("i", (folder / f"{split}.bin").read_bytes())
                      for split in files.SPLITS}, folder

    def test_the_class_is_behind_the_last_pixel(self):
        card, ids, folder = self.made(49, side=7)
        self.assertEqual((card["task"], card["labels"], card["vocabulary"], card["layout"]),
                         ("classification", 10, 26, "examples"))
        self.assertEqual(card["tokens"], {"train": 3 * 49, "valid": 101 * 49, "test": 4 * 49})
        last = ids["test"][3 * 49:]
        self.assertEqual((last[0], last[48]), (10 + 9 * 16 // 256, 25))
        self.assertEqual(last[24], 10 + (9 + 255) // 2 * 16 // 256)  # the middle has both
        self.assertEqual(list(array.array("i", (folder / "test.labels.bin").read_bytes())),
                         [0, 1, 2, 3])

    def test_each_pixel_and_patches(self):
        card, ids, _ = self.made(784, side=28, levels=256, asks="pixels")
        self.assertEqual((card["task"], card["vocabulary"], len(ids["test"])),
                         ("next_token", 267, 4 * 785))
        self.assertEqual(list(ids["test"][785:787]) + [ids["test"][2 * 785 - 1]], [266, 13, 265])
        card, ids, _ = self.made(49, levels=4, patch=2)
        self.assertEqual(card["vocabulary"], 266)
        image = ids["valid"][97 * 49:98 * 49]  # image 100: 44 above, 255 below
        self.assertEqual((image[0], image[24], image[48]), (10, 10 + 3 * 80, 10 + 3 * 85))
        self.assertIn("14 x 14 pixels of 4 levels, row by row, in patches of 2 x 2",
                      card["description"])

    def test_what_does_not_fit_is_refused(self):
        for said, context, settings in (
                ("model.context = 128, must be the pixels of an image: 196 where data.side = 14",
                 128, {}), ("data.side = 10, must divide 28", 100, {"side": 10}),
                ("data.patch = 4, must divide data.side = 14", 196, {"patch": 4}),
                ("data.levels = 16 to the power 16, the pixels of a patch, must be at most 65536",
                 49, {"side": 28, "patch": 4}),
                ("model.context = 49, must be the pixels of an image: 196 where data.side = 28, "
                 "data.patch = 2", 49, {"side": 28, "patch": 2})):
            self.refused(f"fashion_mnist: {said}", self.made, context, **settings)
        self.write("data/fashion_mnist/train.txt", b"x" * 1571)
        self.refused("fashion_mnist: a split has 1571 bytes, must be a multiple of 785", self.made,
                     196)
        self.write("data/fashion_mnist/train.txt", b"\x0a" + bytes(784))
        self.refused("image 1 of a split is of class 10, must be below 10", self.made, 196)


TEXT = "".join(f"The {i}th line says: {'na ' * (i % 7)}Batman's café, 日本!\n" for i in range(200))
GOLDEN = {  # hashes of records at context 16
    "word": "9e62b8539e5ce03a0b7d442386b76fb0e3c2a0bf93b40c8f301aca05d14607bc",
    "byte": "66535fa6defff286e72b2d532c8891578d8b4a08efc7b623062ab1ffba490f35",
    "char": "4374ca04b8ab6fb7b45d875d9c91ec1dc24565b7cd1ec0f46fcd455a2f7c077f",
    "residue": "61f4a4b98a7f6d4c0dcfa78e8953ee873d1f94f6b30b086093e2369e48833caa",
    "bpe": "4b404c69ae5874b37adc41da5136fb46dc3ad9127a43cb29b0be0d282e1f4f15",
    "bpe cl100k": "91b6baefc243b57a38350d5f5ccf1f31894456acb9c47d69142d4895288de2d8",
    "published": "4a0d5d368f727b800fa6600b9c71c7215a3e4f33bd6d9e3fdcc453384f2d361e",
}


def golden_settings(name):
    if name == "published":
        return {"layout": name}
    unit, *rule = name.split()
    size = {"byte": {}, "residue": {"alphabet": "abcdefghijklmnopqrstuvwxyz"}}.get(
        unit, {"vocabulary": 300})
    return {"tokenizer": unit, **size, **({"pretokens": rule[0]} if rule else {})}


class Folders(Case):
    def test_hashes_are_those_of_records(self):
        path = self.write("text.txt", TEXT)
        for name, golden in GOLDEN.items():
            with self.subTest(name):
                context = 8 if name == "published" else 16
                folder = self.corpus(path=path, context=context, **golden_settings(name))
                self.assertEqual(corpus_hash(folder, context), golden)

    @unittest.skipUnless(data_sets.find("wikitext-2", data_sets.default_folder()),
                         "NAS_DATA_DIR does not hold wikitext-2")
    def test_the_hash_of_wikitext_2(self):
        folder = folders.prepare_corpus("wikitext-2", {}, 128, data_sets.default_folder(), self.folder / "kept")
        self.assertEqual(corpus_hash(folder, 128),
                         "6ec8ec5df643be91fcafa6c12cbad94de1758403711d1604aaf2301a2b3297bf")

    def test_a_card_says_what_the_files_are(self):
        folder = self.corpus(path=self.write("text.txt", TEXT), context=16, vocabulary=20)
        card = json.loads((folder / "card.json").read_text())
        self.assertEqual(sorted(card["sha256"]),
                         ["test.bin", "train.bin", "valid.bin", "vocabulary.txt"])
        for name, digest in card["sha256"].items():
            self.assertEqual(sha256((folder / name).read_bytes()), digest)
        self.assertEqual((card["source_sha256"], sum(card["bytes"].values())),
                         (sha256(TEXT.encode()), len(TEXT.encode())))
        ids = array.array("i", (folder / "valid.bin").read_bytes())
        self.assertEqual((card["first"], ids[0], card["context"]), (1, 1, None))
        self.assertEqual(card["unknown_share"]["valid"], ids.count(0) / (len(ids) - 1))
        special = {"pad": -1, "unknown": 0, "end_of_sentence": 1}
        self.assertEqual((card["special"], card["many"], card["unit"]), (special, "words", "word"))

    def test_it_is_made_once_and_again_where_it_is_damaged(self):
        path = self.write("text.txt", TEXT)
        folder = self.corpus(path=path, context=16)
        with mock.patch.object(texts, "encode", side_effect=AssertionError):
            self.assertEqual(self.corpus(path=path, context=8), folder)
            with self.assertRaises(AssertionError):
                self.corpus(path=path, context=16, vocabulary=50)
        whole = (folder / "valid.bin").read_bytes()
        os.truncate(folder / "valid.bin", 8)
        self.assertEqual(self.corpus(path=path, context=16), folder)
        self.assertEqual((folder / "valid.bin").read_bytes(), whole)
        path.write_text(TEXT + "more\n")
        self.assertNotEqual(self.corpus(path=path, context=16), folder)
        self.assertEqual(len(os.listdir(self.folder / "kept")), 2, "no temporary files stay")

    def test_what_was_not_used_for_longest_goes(self):
        given = {"path": self.write("text.txt", TEXT), "context": 16}
        made = [self.corpus(**given, vocabulary=size) for size in (40, 50, 60)]
        for folder in made[:2]:
            os.utime(folder, (0, 0))
        with mock.patch.object(folders, "KEPT_BYTES", 0):
            self.corpus(**given, vocabulary=50)
            made.append(self.corpus(**given, vocabulary=70))
        self.assertEqual([folder.exists() for folder in made], [False, True, True, True])

    def test_ids_of_a_program_of_ones_own(self):
        sizes = dict.fromkeys(files.SPLITS, 4)
        ids = {split: [10, 6, 1, 15] for split in files.SPLITS}

        def write(ids, vocabulary=16):
            return folders.write_ids(self.folder / "own", ids, vocabulary, sizes=sizes, description="my text", many="half bytes")
        for said, given, vocabulary in (
                ("valid has 1 ids, must have 2 or more", {**ids, "valid": [1]}, 16),
                ("test has 0 ids", {"train": [1, 2], "valid": [1, 2]}, 16),
                ("train has ids from 1 to 15, must be in [0, 15)", ids, 15)):
            self.refused(said, write, given, vocabulary)
        self.assertFalse((self.folder / "own").exists())
        card = write(ids)
        self.assertEqual((card["first"], card["bytes"], card["unknown_share"]), (10, sizes, {}))
        self.assertEqual(array.array("i", (self.folder / "own/test.bin").read_bytes()).tolist(), ids["test"])
        self.refused("own exists, must be a new folder", write, ids)

    def run_module(self, *words, before="", **more):
        command = [sys.executable, "-m", "attnas.prepare", *map(str, words)]
        if before:
            command = ["bash", "-c", before + ' && exec "$@"', "bash", *command]
        return subprocess.run(command, capture_output=True, text=True, check=False, **more)

    def test_the_command_of_programs(self):
        path, kept = self.write("text.txt", TEXT), self.folder / "kept"
        words = ("corpus", "text_file", "--context", 16, "-o", kept, "--settings")
        done = self.run_module(*words, json.dumps({"path": str(path), "tokenizer": "byte"}))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((pathlib.Path(done.stdout.removesuffix("\n")) / "card.json").is_file())
        done = self.run_module(*words, json.dumps({"path": "/no/such"}))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "attnas: /no/such: cannot be read\n"))
        done = self.run_module("corpus", "brow", "--context", 16)
        self.assertEqual(done.returncode, 2)
        self.assertIn("attnas: corpus: unknown 'brow', known: brown, ", done.stderr)
        done = self.run_module(*words, json.dumps({"path": str(path)}), before="ulimit -f 4")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("attnas: no space left in ", done.stderr)
        self.assertEqual(len(os.listdir(kept)), 1)

    def test_a_signal_leaves_nothing(self):
        kept = self.folder / "kept"
        code = ("import os, signal, sys; from attnas.prepare import __main__ as m, folders; folders.publish = lambda "
                "*_: os.kill(os.getpid(), signal.SIGTERM); sys.exit(m.main(sys.argv[1:]))")
        done = subprocess.run(
            [sys.executable, "-c", code, "corpus", "text_file", "--context", "8", "-o", kept,
             "--settings", json.dumps({"path": str(self.write("text.txt", TEXT))})],
            capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (130, ""), done.stderr)
        self.assertFalse(kept.exists())

    def test_the_command_of_people(self):
        path, out = self.write("text.txt", TEXT), self.folder / "out"
        done = self.run_module(path, "--tokenizer", "char", "--vocabulary", "20", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("20 characters; tokens of train, valid, test: ", done.stdout)
        self.assertIn(" % of valid are unknown tokens", done.stderr)
        card = json.loads((out / "card.json").read_text())
        self.assertEqual((card["settings"]["path"], card["unit"]), (str(path), "char"))
        again = self.run_module(path, "--tokenizer", "byte", "-o", out)
        self.assertEqual((again.returncode, again.stderr), (2, f"attnas: {out} exists, must be a new folder\n"))
        for said, *words in (("2 texts, must be 1, which is cut, or 3", path, path, "--tokenizer", "byte"),
                             ("--coverage = 2.0, must be in (0, 1]", path, "--tokenizer", "char", "--coverage", "2"),
                             ("words: cannot be read", path, "--tokenizer", "words")):
            done = self.run_module(*words, "-o", self.folder / "other")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
            self.assertFalse((self.folder / "other").exists())
        done = subprocess.run([sys.executable, "-m", "attnas", "prepared"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "attnas: unknown command 'prepared', known: convert-page, expected, judge, prepare\n"))


class Unicode(unittest.TestCase):
    def test_its_version_is_that_of_the_first_records_or_later(self):
        self.assertGreaterEqual(tuple(map(int, unicodedata.unidata_version.split("."))), (14, 0, 0))
