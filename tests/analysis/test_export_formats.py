"""What export.py writes of made-up runs, to the letter."""

import contextlib
import copy
import errno
import io
import unittest
from unittest import mock

from attnas.analysis.commands import export
from attnas.analysis import exports
from attnas.analysis.digest import BadInput
from digest_file import text_of
from python_tests import FolderTest, said

A, B, C = ("dot|softmax|none|fixed|bias|0.1", "cosine|softmax|none|fixed|bias|0",
           "dot|softmax|none|learned|bias|0.2")
PERPLEXITY = {"name": "perplexity", "key": "perplexity", "unit": "1", "maximise": False,
              "best": 0.0, "worst": 1.0, "penalty": 1e9, "source": "trained"}
ACCURACY = {"name": "accuracy", "key": "accuracy", "unit": "share", "maximise": True,
            "best": 1.0, "worst": 0.0, "penalty": 4.0, "source": "trained"}
GENES = [{"name": "similarity", "options": ["cosine", "dot"]},
         {"name": "normalization", "options": ["softmax"]}, {"name": "gating", "options": ["none"]},
         {"name": "temperature", "options": ["fixed", "learned"]},
         {"name": "bias", "options": ["bias", "no_bias"]},
         {"name": "attention_dropout", "min": 0.0, "max": 0.3}]


def run() -> dict:
    """A small search of attention mechanisms: a and b are usable, c diverged, and the third ask was answered by the evaluation of a."""
    def ask(number, batch, candidate, name, fitness, trained, seconds, **own):
        return {"number": number, "batch": batch, "genotype": candidate, "candidate": candidate,
                "evaluations": [name], "reused": False, "fitness": fitness, "status": "ok",
                "usable": True, "trained": trained, "seconds": seconds, **own}

    return {
        "objectives": [PERPLEXITY, ACCURACY], "config": {"name": "small"}, "labels": {A: 'the "usual", a'}, "genes": copy.deepcopy(GENES),
        "evaluations": [{"id": own, "candidate": name, "replicate": 0} for own, name in zip("abc", (A, B, C))],
        "asks": [ask(0, 0, A, "a", [64.0, -0.5], 1, 1.25), ask(1, 0, B, "b", [32.0, -0.25], 2, 3.25),
                 ask(2, 1, A, "a", [64.0, -0.5], 2, 3.25, reused=True),
                 ask(3, 1, C, "c", [1e9, 4.0], 3, 3.75, status="diverged", usable=False)]}


class Csv(unittest.TestCase):
    def test_has_a_line_per_ask(self):
        self.assertEqual(exports.asks_csv(run()), (
            "number,batch,candidate,label,similarity,normalization,gating,temperature,bias,"
            "attention_dropout,replicates,status,perplexity,accuracy,fitness_perplexity,"
            "fitness_accuracy,trained,train_seconds,reused\r\n"
            f'1,0,{A},"the ""usual"", a",dot,softmax,none,fixed,bias,0.1,1,ok,64,0.5,64,-0.5,1,'
            "1.25,false\r\n"
            f"2,0,{B},{B},cosine,softmax,none,fixed,bias,0,1,ok,32,0.25,32,-0.25,2,3.25,false\r\n"
            f'3,1,{A},"the ""usual"", a",dot,softmax,none,fixed,bias,0.1,1,ok,64,0.5,64,-0.5,2,'
            "3.25,true\r\n"
            f"4,1,{C},{C},dot,softmax,none,learned,bias,0.2,1,diverged,,,1000000000,4,3,3.75,"
            "false\r\n"))

    def test_options_have_the_names_that_are_stored(self):
        old = run()
        old["genes"] = [{**GENES[0], "options": ["cosine", "multiplicative"]}, *GENES[1:]]
        old["record_schema"] = {"genes": [{"name": "similarity", "options": [{"key": "silu_dot", "label": "multiplicative"}]}]}
        old["asks"] = [{**ask, "genotype": ask["genotype"].replace("dot", "multiplicative")} for ask in old["asks"]]
        self.assertEqual([row[4] for row in exports.ask_rows(old)], ["silu_dot", "cosine", "silu_dot", "silu_dot"])


class Program(FolderTest):
    def setUp(self):
        super().setUp()
        (self.folder / "two.json").write_text(text_of(run()), encoding="utf-8")

    def export(self, *arguments, names=("two",)) -> tuple[int, str]:
        """Its exit code, and what it complained about."""
        code, _, err = said(export.main, *(self.folder / f"{name}.json" for name in names), *arguments)
        return code, err

    def test_what_has_no_asks_is_refused(self):
        (self.folder / "list\x9b.json").write_text(text_of({**run(), "asks": []}), encoding="utf-8")
        code, error = self.export("--format", "csv", "-o", self.folder / "x", names=("list\x9b",))
        self.assertEqual(code, 2)
        self.assertIn("list\ufffd.json: nothing was asked for, as where mechanisms are listed", error)

    def test_a_full_disk_is_the_machines_failure(self):
        for number, code in ((errno.ENOSPC, 75), (errno.EDQUOT, 75), (errno.EACCES, 2)):
            with mock.patch.object(export, "write_whole", side_effect=OSError(number, "no", "f")):
                self.assertEqual(self.export("--format", "csv", "-o", self.folder / "x"),
                                 (code, "export.py: f: cannot be written: no\n"))

    def test_a_folder_is_replaced_whole_or_refused(self):
        target = self.folder / "hub"
        for content in (b"old", b"new"):
            export.write_folder(target, {"a/model": content})
            self.assertEqual((target / "a/model").read_bytes(), content)
        (target / "mine.txt").write_text("mine")
        with self.assertRaisesRegex(BadInput, f"^{target} holds mine.txt, which would be lost; remove the folder or give"):
            export.write_folder(target, {"a/model": b"newer"})
        self.assertEqual([(target / "a/model").read_bytes(), (target / "mine.txt").read_text()], [b"new", "mine"])
        self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith("hub.")], [])
        with self.assertRaisesRegex(BadInput, "mine.txt is a file, must be a folder"):
            export.write_folder(target / "mine.txt", {})

    def test_mistakes_are_named_and_write_nothing(self):
        taken = self.folder / "taken"
        taken.write_text("mine")
        before = sorted(self.folder.iterdir())
        for arguments, names, complaint in (
                (["--format", "huggingface"], ("two",), "is a folder: give --output PATH"),
                (["--format", "csv", "--mechanism", "best"], ("two",), "belongs to --format huggingface"),
                (["--format", "csv", "-o", taken], ("two",), "exists already; --force"),
                (["--format", "csv", "-o", taken / "x"], ("two",), "cannot be written: Not a dir"),
                (["--format", "csv"], ("nowhere",), "no such run")):
            with self.subTest(arguments=arguments, names=names):
                code, error = self.export(*arguments, names=names)
                self.assertEqual(code, 2)
                self.assertIn(complaint, error)
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
            export.main(["x", "--format", "cvs"])
        self.assertEqual(ended.exception.code, 2)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(taken.read_text(), "mine")
