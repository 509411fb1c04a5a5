"""Tests gpu_where.py: its counts and table, and, where a Python has torch, all of it on the CPU with tiny sizes."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gpu_where

PYTHONS = ("python3", "/usr/bin/python3")


def with_torch():
    """A Python that has torch, or none."""
    for program in PYTHONS:
        if subprocess.run([program, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return program
    return None


def one(name, how, precision, models=8, tokens=4096):
    wanted = {"part": name, "how": how, "precision": precision, "models": models, "tokens": tokens}
    found = [part for part in gpu_where.parts(gpu_where.FULL) if all(part[key] == value for key, value in wanted.items())]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} parts {name}, {how}, {precision}")
    return found[0]


class Counts(unittest.TestCase):
    def test_products_of_the_output_layer(self):
        x, e, logits = 4096 * 128, 10000 * 128, 4096 * 10000
        for name, added in (("logits", logits), ("dX", x), ("dW", e)):
            for precision, size in (("fp32", 4), ("tf32", 4), ("bf16", 2)):
                part = one(name, "bmm", precision)
                self.assertEqual(part["operations"], 2 * 8 * 4096 * 10000 * 128)
                self.assertEqual(part["bytes"], 8 * size * (x + e + logits))
                self.assertEqual(one(name, "bmm, added", precision)["bytes"], part["bytes"] + 8 * size * added)
        self.assertEqual(one("logits", "bmm to float32", "bf16")["bytes"], 8 * (2 * (x + e) + 4 * logits))

    def test_the_rest(self):
        self.assertEqual(one("layer", "dW, 128 to 384", "fp32", models=32)["operations"], 2 * 32 * 4096 * 128 * 384)
        fused = one("fused", "flash", "bf16")
        self.assertEqual(fused["operations"], 4 * 8 * 4096 * 10000 * 128)
        self.assertEqual(fused["bytes"], 8 * (2 * 128 * (2 * 4096 + 10000) + 4 * 4096))
        self.assertEqual(one("loss", "softmax, scatter", "bf16")["bytes"], 8 * 2 * 2 * 4096 * 10000)
        self.assertEqual(one("copy", "268435456 bytes", "fp32", 1, 0)["bytes"], 2 << 28)


class Table(unittest.TestCase):
    def test_shows_rates_and_failures(self):
        row = {"part": "logits", "models": 1, "tokens": 8, "how": "bmm", "precision": "fp32", "operations": 2e12, "bytes": 3e9}
        rows = [{**row, "seconds": 0.1}, {**row, "precision": "bf16", "failed": "no such kernel"}]
        text = gpu_where.tables({"device": "made up"}, rows, 5)
        self.assertIn("| models | tokens | bmm, fp32 | bmm, bf16 |", text)
        self.assertIn("| 1 | 8 | 100,000.0 us, 20.0 TFLOP/s, 30 GB/s | failed |", text)
        self.assertIn("- failed: logits, bmm, bf16: no such kernel", text)
        self.assertIn("- not reached in time: 5 parts", text)


class Smoke(unittest.TestCase):
    def run_program(self, *arguments):
        python = with_torch()
        if python is None:
            self.skipTest("no Python has torch")
        command = [python, os.path.join(HERE, "gpu_where.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_times_everything_that_the_cpu_has(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_program("--smoke", "--output", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "where.jsonl"), encoding="utf-8") as file:
                machine, *rows = map(json.loads, file)
            self.assertEqual(machine["device"], "cpu")
            self.assertEqual(len(rows), len(gpu_where.parts(gpu_where.SMOKE)))
            for row in rows:
                if row["precision"] == "fp32" and row["part"] in ("logits", "dX", "dW", "loss", "layer", "copy"):
                    self.assertGreater(row["seconds"], 0.0, row)
                if row["precision"] == "tf32":
                    self.assertEqual(row["failed"], "the CPU has no TensorFloat-32")
            with open(os.path.join(folder, "where.md"), encoding="utf-8") as file:
                self.assertIn("the CPU has no TensorFloat-32", file.read())

    def test_says_what_was_not_reached(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_program("--smoke", "--seconds", "1e-9", "--output", folder)
            self.assertIn("0 parts timed, 0 failed", done.stderr)
            self.assertEqual(done.returncode, 1)

    def test_refuses_bad_input(self):
        for arguments, text in ((("--output", "x", "--smoke", "--seconds", "0"), "--seconds 0.0: must be in (0, 3600]"),
                                (("--smoke",), "the following arguments are required: --output")):
            done = self.run_program(*arguments)
            self.assertEqual((done.returncode, text in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
