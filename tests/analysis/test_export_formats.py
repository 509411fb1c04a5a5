"""What export.py writes of made-up runs, to the letter."""

import contextlib
import copy
import errno
import io
import json
import math
import os
import pathlib
import struct
import tempfile
import time
import unittest
from unittest import mock

from attnas.analysis.commands import export
from attnas.analysis import event_files, exports
from attnas.analysis.digest import BadInput
from digest_file import text_of
from python_tests import FolderTest, said

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = None

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


class Points(unittest.TestCase):
    def test_are_minimised_and_parted(self):
        self.assertEqual(exports.point_sets([run(True, 7), run(True, 8)], False), (
            "# small, seed 7: non-dominated 2 of 2 candidates after 3 evaluations\n# small, seed 8: non-dominated 2 of "
            "2 candidates after 3 evaluations\n# all minimised: perplexity, -accuracy (share)\n32 -0.25\n64 -0.5\n\n32 "
            "-0.25\n64 -0.5\n"))

    def test_are_the_front_or_all(self):
        columns = "# all minimised: -accuracy (share)\n"
        self.assertEqual(
            exports.point_sets([run(False)], False),
            "# small, seed 7: non-dominated 1 of 2 candidates after 3 evaluations\n" + columns
            + "-0.5\n")
        self.assertEqual(
            exports.point_sets([run(False)], True),
            "# small, seed 7: all 2 of 2 candidates after 3 evaluations\n" + columns
            + "-0.5\n-0.25\n")

    def test_empty_sets_are_refused(self):
        with self.assertRaisesRegex(BadInput, "small, seed 7: no candidate could be evaluated"):
            exports.point_sets([{**run(True), "front": []}], False)


def event_class():
    """TensorBoard's message Event, as far as it is written, by Google's own reader."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="tb", syntax="proto3")
    kinds = {"double": 1, "float": 2, "int64": 3, "int32": 5, "string": 9, "bytes": 12}
    for message, fields in (
            ("Event", "1 double wall_time, 2 int64 step, 3 string file_version, 5 Summary summary"),
            ("Summary", "1 Value* value"),
            ("Value", "1 string tag, 2 float simple_value, 9 Metadata metadata"),
            ("Metadata", "1 Plugin plugin_data"), ("Plugin", "1 string plugin_name, 2 Data content"),
            ("Data", "1 int32 version, 3 Session session_start_info"),
            ("Session", "1 Parameter* hparams, 4 string group_name, 5 double start_time_secs"),
            ("Parameter", "1 string key, 2 Number value"),
            ("Number", "2 double number_value, 3 string string_value")):
        own = file.message_type.add(name=message)
        for number, kind, name in (field.split() for field in fields.split(", ")):
            field = own.field.add(name=name, number=int(number), label=3 if "*" in kind else 1)
            if kind in kinds:
                field.type = kinds[kind]
            else:
                field.type, field.type_name = 11, ".tb." + kind.rstrip("*")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    event = pool.FindMessageTypeByName("tb.Event")
    if hasattr(message_factory, "GetMessageClass"):  # from protobuf 4.22 on
        return message_factory.GetMessageClass(event)
    return message_factory.MessageFactory(pool).GetPrototype(event)


class EventFiles(unittest.TestCase):
    def test_checksums_are_those_of_the_standard(self):
        for data, expected in ((b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA),
                               (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
            self.assertEqual(event_files.crc32c(data), expected)

    def test_records_are_those_of_tensorflow(self):
        """The record of TensorBoard's own test of its reader, data/server/tf_record.rs."""
        self.assertEqual(event_files.event_file(1599759586.0, [], "", {}), (
            b"\x18\x00\x00\x00\x00\x00\x00\x00" b"\xa3\x7f\x4b\x22"
            b"\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0dbrain.Event:2" b"\x12\x4b\x36\xab"))

    @unittest.skipIf(descriptor_pb2 is None, "without Python's protobuf")
    def test_a_run_per_training_run(self):
        files = exports.tensorboard_files([run(True)])
        other = "baseline_cosine_softmax_none_fixed_bias_0"
        self.assertEqual(list(files), [f"{name}/seed_1/events.out.tfevents.0.attnas"
                                       for name in ("the_usual_a", other)])
        head, session, first = self.events(files[f"{other}/seed_1/events.out.tfevents.0.attnas"])
        began = 1769904010.0  # 2026-02-01T00:00:10Z
        self.assertEqual((head.wall_time, head.file_version), (began, "brain.Event:2"))
        value, = session.summary.value
        self.assertEqual((value.tag, value.metadata.plugin_data.plugin_name),
                         ("_hparams_/session_start_info", "hparams"))
        start = value.metadata.plugin_data.content.session_start_info
        self.assertEqual((start.group_name, start.start_time_secs), (B, began))
        self.assertEqual({own.key: own.value.string_value or own.value.number_value
                          for own in start.hparams},
                         {"similarity": "cosine", "normalization": "softmax", "gating": "none",
                          "temperature": "fixed", "bias": "bias", "attention_dropout": 0.0})
        self.assertEqual((first.wall_time, first.step), (began + 0.5, 5))
        expected = {"nll/train": 2.5, "perplexity/train": math.exp(2.5), "perplexity/valid": 32.0,
                    "nll/valid": math.log(32), "accuracy/valid": 0.25}
        found = {own.tag: own.simple_value for own in first.summary.value}
        self.assertEqual(list(found), list(expected))
        for tag, value in expected.items():
            self.assertAlmostEqual(found[tag], value, places=5)

    def test_training_runs_with_one_seed_have_folders_of_their_own(self):
        tuned = run(True)
        tuned["evaluations"].append({**tuned["evaluations"][0], "id": "another learning rate"})
        self.assertEqual(sorted(exports.tensorboard_files([tuned]))[-2:], [
            f"the_usual_a/seed_1{end}/events.out.tfevents.0.attnas" for end in ("", "_2")])

    def test_folders_say_what_the_comparison_says(self):
        listed = run(True)
        listed["config"]["mechanisms"] = [A]
        listed["retest"] = {"candidates": [{"candidate": A, "label": "gdn+rope", "role": "listed"}]}
        for place, own in enumerate(listed["evaluations"]):
            own["replicate"] = 1_000_000 + place
        self.assertEqual([path.rpartition("/")[0] for path in exports.tensorboard_files([listed])],
                         ["gdn+rope/seed_1", "baseline_cosine_softmax_none_fixed_bias_0/seed_2"])

    def events(self, content: bytes) -> list:
        """Messages of a file, their checksums compared."""
        found, event = [], event_class()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            message = content[12:12 + length]
            for data, given in ((content[:8], content[8:12]), (message, content[12 + length:][:4])):
                (masked,) = struct.unpack("<I", given)
                rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
                self.assertEqual((rotated >> 17 | rotated << 15) & 0xFFFFFFFF,
                                 event_files.crc32c(data))
            found.append(event.FromString(message))
            content = content[16 + length:]
        return found

    @unittest.skipIf(descriptor_pb2 is None, "without Python's protobuf")
    def test_what_is_not_known_is_left_out(self):
        odd = run(True)
        odd["asks"] = odd["asks"][1:2]
        odd["evaluations"][0]["curve"] = [{"step": 300, "train_nll": None, "seconds": 1.5, "valid": {
            "tokens": 1, "correct": -1, "nll": 1000.0}}]
        del odd["evaluations"][0]["measured"]["started"]
        head, first = self.events(exports.tensorboard_files([odd])[
            "the_usual_a/seed_1/events.out.tfevents.0.attnas"])
        self.assertEqual((head.wall_time, first.wall_time, first.step), (0.0, 1.5, 300))
        self.assertEqual([own.tag for own in first.summary.value], ["nll/valid"])

    def test_several_runs_have_a_folder_each(self):
        one = run(True)
        one["evaluations"][2].update(curve=one["evaluations"][0]["curve"], replicate=1_000_003)
        one["labels"] = {A: "x" * 300, C: "x" * 301}
        files = exports.tensorboard_files([run(True), one])
        self.assertEqual([path.rsplit("/", 1)[0].replace("x" * 120, "X") for path in files], [
            "small__seed_7/the_usual_a/seed_1",
            "small__seed_7/baseline_cosine_softmax_none_fixed_bias_0/seed_1",
            "small__seed_7_2/X/seed_1",
            "small__seed_7_2/baseline_cosine_softmax_none_fixed_bias_0/seed_1",
            "small__seed_7_2/X_2/held_out_seed_4"])

    def test_without_training_there_is_nothing(self):
        one = run(True)
        for own in one["evaluations"]:
            own["curve"] = []
        with self.assertRaisesRegex(BadInput, "small, seed 7: nothing was trained, so there are no"):
            exports.tensorboard_files([one])


class Program(FolderTest):
    def setUp(self):
        super().setUp()
        for name, own in (("two", run(True)), ("one", run(False))):
            (self.folder / f"{name}.json").write_text(text_of(own), encoding="utf-8")

    def export(self, *arguments, names=("two",)) -> tuple[int, str]:
        """Its exit code, and what it complained about."""
        code, _, err = said(export.main, *(self.folder / f"{name}.json" for name in names), *arguments)
        return code, err

    def test_event_files_are_a_folder(self):
        target = self.folder / "logs"
        self.assertEqual(self.export("--format", "tensorboard", "-o", target), (0, ""))
        for path, content in exports.tensorboard_files([run(True)]).items():
            self.assertEqual((target / path).read_bytes(), content)
        self.assertEqual(self.export("--format", "tensorboard"), (
            2, "export.py: --format tensorboard is a folder: give --output PATH\n"))

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
        target = self.folder / "logs"
        self.assertEqual(self.export("--format", "tensorboard", "-o", target), (0, ""))
        data = next(target.rglob("events*"))
        data.write_text("old")
        self.assertEqual(self.export("--format", "tensorboard", "-o", target, "--force"), (0, ""))
        self.assertNotEqual(data.read_bytes(), b"old")
        (target / "mine.txt").write_text("mine")
        code, error = self.export("--format", "tensorboard", "-o", target, "--force")
        self.assertEqual((code, error), (2, f"export.py: {target} holds mine.txt, which would be "
                                            "lost; remove the folder or give another\n"))
        self.assertEqual((target / "mine.txt").read_text(), "mine")
        self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith("logs.")], [])

    def test_mistakes_are_named_and_write_nothing(self):
        taken = self.folder / "taken"
        taken.write_text("mine")
        before = sorted(self.folder.iterdir())
        for arguments, names, complaint in (
                (["--format", "csv"], ("two", "one"), "--format csv takes one run, not 2"),
                (["--format", "tensorboard"], ("two",), "is a folder: give --output PATH"),
                (["--format", "csv", "--all-points"], ("two",), "belongs to --format points"),
                (["--format", "csv", "-o", taken], ("two",), "exists already; --force"),
                (["--format", "tensorboard", "-o", taken, "--force"], ("two",), "is a file, must be a"),
                (["--format", "csv", "-o", taken / "x"], ("two",), "cannot be written: Not a dir"),
                (["--format", "points"], ("two", "one"), "must agree"),
                (["--format", "points"], ("two", "nowhere"), "no such run")):
            with self.subTest(arguments=arguments, names=names):
                code, error = self.export(*arguments, names=names)
                self.assertEqual(code, 2)
                self.assertIn(complaint, error)
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
            export.main(["x", "--format", "cvs"])
        self.assertEqual(ended.exception.code, 2)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(taken.read_text(), "mine")
