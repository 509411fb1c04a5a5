"""Runs side_by_side_gpu on the CPU with tiny sizes: side_by_side_gpu_smoke.py TRAINING_STEP.

Exit status 77: no Python has torch.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = ""


def run(*arguments, program=None):
    return subprocess.run([sys.executable, os.path.join(HERE, "side_by_side_gpu"), "--program", program or PROGRAM, *arguments],
                          capture_output=True, text=True, check=False)


class Smoke(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def measure(self, competitors, program=None):
        output = os.path.join(self.folder, "out")
        done = run("--smoke", "--rounds", "2", "--steps", "2", "--output", output, "--competitors", competitors, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(output, "gpu.json"), encoding="utf-8") as file:
            data = json.load(file)
        with open(os.path.join(output, "gpu.md"), encoding="utf-8") as page:
            return data, page.read()

    def wrapped(self, factor):
        """training_step whose losses in the gate are given as if steps after the third had been recorded, and changed."""
        path = os.path.join(self.folder, "training_step")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport json, os, subprocess, sys\nprogram = [{PROGRAM!r}, *sys.argv[1:]]\n"
                       "if 'reference' in program or '--on-request' in program:\n    os.execv(program[0], program)\n"
                       "answer = json.loads(subprocess.run(program, capture_output=True, check=True, text=True).stdout)\n"
                       "losses = answer['loss']\n"
                       f"answer['loss'] = losses[:3] + [{factor} * sum(losses[3:]) / len(losses[3:])]\n"
                       "answer['loss_steps'] = [1, 1, 1, len(losses) - 3]\nprint(json.dumps(answer))\n")
        os.chmod(path, 0o755)
        return path

    def test_measures_who_can_run_and_names_who_cannot(self):
        data, page = self.measure("loop,eager,graph,vmap8,ours,ours-array4")
        one, mixed = data["parts"]
        self.assertLessEqual({"loop", "eager", "ours", "ours-array4", "again"}, {*one["rounds"][1]})
        self.assertEqual([*mixed["prepared"]], ["loop", "eager", "ours", "ours-array4"])
        self.assertLess(data["worst"]["fp32"], 1e-5)
        left = {(entry["competitor"], entry["precision"]): entry["why"] for entry in data["left_out"]}
        self.assertIn("CUDA device", left["graph", "fp32"])
        self.assertIn(("vmap8", "bf16"), left)  # which takes no mixed ones, or needs a newer torch
        self.assertIn("| ours, array of 4 |", page)

    def test_whoever_computes_something_else_is_left_out(self):
        for factor, there in (("1", True), ("1.01", False)):
            data, _ = self.measure("loop,ours", self.wrapped(factor))
            self.assertEqual("ours" in data["parts"][0]["prepared"], there, data["left_out"])
            self.assertEqual("the reference's are" in str(data["left_out"]), not there)

    def test_refuses_bad_input(self):
        for arguments, text in (
                (("--smoke", "--output", os.path.join(HERE, "results")), "its numbers mean nothing, must be another folder"),
                (("--device", "tpu"), "--device tpu: must be cuda or cuda:N"),
                (("--smoke", "--competitors", "eager"), "must hold loop, the base of the ratios"),
                (("--smoke", "--competitors", "loop,slow"), "--competitors 'slow': must be of loop, eager"),
                (("--smoke", "--minutes", "0"), "--minutes 0.0: must be in [0.1, 600]"),
                (("--device", "cuda:99"), "--device cuda:99: the peaks could not be measured"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    if "needs a Python with torch and numpy" in run("--device", "cuda:99").stderr:
        print("skipped: no Python has torch")
        sys.exit(77)
    unittest.main()
