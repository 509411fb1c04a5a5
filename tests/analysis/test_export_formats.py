"""What export.py writes of made-up runs, to the letter."""

import contextlib
import copy
import errno
import io
import json
import math
import os
import pathlib
import tempfile
import time
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


def evaluation(name: str, started: str, seconds: float, perplexity: float) -> dict:
    curve = [{"step": 5, "train_nll": 2.5, "seconds": 0.5, "valid": {
        "tokens": 4, "correct": 1, "nll": 4 * math.log(perplexity)}}] if perplexity else []
    return {"id": name, "candidate": {"a": A, "b": B, "c": C}[name], "replicate": 0,
            "usable": bool(perplexity), "curve": curve,
            "measured": {"started": started, "train_seconds": seconds}}


def run(several: bool, seed: int = 7, rejected: bool = False) -> dict:
    """A small search of attention mechanisms: a and b are usable, c diverged, or was rejected by a
    constraint, and the third ask was answered by the evaluation of a.

    @param several  perplexity and accuracy, else accuracy alone.
    """
    def ask(number, batch, candidate, name, perplexity, accuracy, trained, seconds, **own):
        fitness = [perplexity, -accuracy] if several else [-accuracy]
        return {"number": number, "batch": batch, "genotype": candidate, "candidate": candidate,
                "evaluations": [name], "reused": False, "fitness": fitness, "status": "ok",
                "usable": True, "reason": "", "trained": trained, "seconds": seconds, **own}

    def ranked(candidate, perplexity, accuracy):
        values = {"perplexity": perplexity, "accuracy": accuracy}
        return {"candidate": candidate, "values": values if several else {"accuracy": accuracy}}

    failure = {"status": "diverged", "usable": False, "reason": "not finite"}
    if rejected:
        failure.update(status="rejected", reason="flops = 5e+06, must be <= 4e+06")
    ranking = [ranked(B, 32.0, 0.25), ranked(A, 64.0, 0.5)]
    return {
        "objectives": [PERPLEXITY, ACCURACY] if several else [ACCURACY],
        "config": {"name": "small", "seed": seed, "problem": {"type": "attention_search"},
                   "algorithm": {"name": "nsga2", "population": 2},
                   "constraints": ["flops <= 4e+06"] if rejected else []},
        "facts": {"corpus": "brown"}, "labels": {A: 'the "usual", a'}, "genes": GENES,
        "counts": {"evaluated": 3}, "baseline": {"candidate": B, "evaluations": []}, "models": None,
        "ranking": ranking if several else ranking[::-1],
        "front": [0, 1] if several else [0],
        "evaluations": [evaluation("a", "2026-01-31T23:59:59Z", 1.25, 64.0),
                        evaluation("b", "2026-02-01T00:00:10Z", 2.0, 32.0),
                        evaluation("c", "2026-02-01T00:00:20Z", 0.5, 0.0)],
        "asks": [ask(0, 0, A, "a", 64.0, 0.5, 1, 1.25), ask(1, 0, B, "b", 32.0, 0.25, 2, 3.25),
                 ask(2, 1, A, "a", 64.0, 0.5, 2, 3.25, reused=True),
                 ask(3, 1, C, "c", 1e9, -4.0, 3, 3.75, **failure)]}


class Csv(unittest.TestCase):
    def test_has_a_line_per_ask(self):
        self.assertEqual(exports.asks_csv(run(True)), (
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
        old = run(True)
        old["genes"] = [{**GENES[0], "options": ["cosine", "multiplicative"]}, *GENES[1:]]
        old["record_schema"] = {"genes": [{"name": "similarity", "options": [{"key": "silu_dot", "label": "multiplicative"}]}]}
        old["asks"] = [{**ask, "genotype": ask["genotype"].replace("dot", "multiplicative")} for ask in old["asks"]]
        self.assertEqual([row[4] for row in exports.ask_rows(old)], ["silu_dot", "cosine", "silu_dot", "silu_dot"])


class Program(FolderTest):
    def setUp(self):
        super().setUp()
        (self.folder / "two.json").write_text(text_of(run(True)), encoding="utf-8")

    def export(self, *arguments, names=("two",)) -> tuple[int, str]:
        """Its exit code, and what it complained about."""
        code, _, err = said(export.main, *(self.folder / f"{name}.json" for name in names), *arguments)
        return code, err

    def test_what_has_no_asks_is_refused(self):
        (self.folder / "list\x9b.json").write_text(text_of({**run(True), "asks": []}), encoding="utf-8")
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
