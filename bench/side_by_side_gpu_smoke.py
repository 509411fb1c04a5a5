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
SCRIPT = os.path.join(HERE, "side_by_side_gpu")
PROGRAM = ""
TINY = ("--smoke", "--rounds", "1", "--steps", "2")


def run(*arguments, program=None):
    return subprocess.run([sys.executable, SCRIPT, "--program", program or PROGRAM, *arguments], capture_output=True, text=True,
                          check=False)


def results():
    """What lies in bench/results: no smoke may change it."""
    folder = os.path.join(HERE, "results")
    return {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)}


class Smoke(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.before = results()

    def tearDown(self):
        self.assertEqual(results(), self.before)

    def measure(self, *arguments, program=None):
        output = os.path.join(self.folder, "out")
        done = run(*TINY, "--output", output, *arguments, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(output)), ["gpu.json", "gpu.md", "gpu.svg"])
        with open(os.path.join(output, "gpu.json"), encoding="utf-8") as file:
            return json.load(file), done.stderr

    @staticmethod
    def prepared(data):
        return [" ".join(group["prepared"]) for group in data["groups"]]

    def test_measures_who_can_run_and_names_who_cannot(self):
        data, _ = self.measure("--competitors", "loop,eager,graph,vmap8,ours")
        baseline, mixed = data["summary"]
        shown = [row["competitor"] for row in baseline["rows"]]
        self.assertEqual([c for c in shown if c != "vmap8"], ["loop", "eager", "ours"])  # vmap depends on the version of torch
        self.assertEqual([row["competitor"] for row in mixed["rows"]], ["loop", "eager"])
        self.assertLess(data["gate"]["worst"]["fp32"], 1e-5)
        left = {(entry["competitor"], entry["precision"]): entry["why"] for entry in data["left_out"]}
        self.assertIn("needs a CUDA device, for a CUDA graph", left["graph", "fp32"])
        self.assertIn(("graph", "bf16"), left)
        for row in baseline["rows"]:
            self.assertGreater(row["seconds"], 0.0)

    def wrapped(self, change):
        """training_step whose answer to the gate is changed by `change(answer)`, but for the reference's."""
        path = os.path.join(self.folder, "training_step")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport json, os, subprocess, sys, time\narguments = sys.argv[1:]\n"
                       f"program = [{PROGRAM!r}, *arguments]\nif 'reference' in arguments:\n    os.execv(program[0], program)\n"
                       f"{change}\n")
        os.chmod(path, 0o755)
        return path

    def test_losses_of_steps_taken_at_once_count_and_whoever_computes_something_else_is_left_out(self):
        """Steps after the third as if they had been recorded, once as they are and once with another loss."""
        for factor, ratio in (("1", True), ("1.01", False)):
            program = self.wrapped(
                "if '--on-request' in arguments:\n    os.execv(program[0], program)\n"
                "answer = json.loads(subprocess.run(program, capture_output=True, check=True, text=True).stdout)\n"
                "losses = answer['loss']\n"
                f"answer['loss'] = losses[:3] + [{factor} * sum(losses[3:]) / len(losses[3:])]\n"
                "answer['loss_steps'] = [1, 1, 1, len(losses) - 3]\nprint(json.dumps(answer))")
            data, _ = self.measure("--competitors", "loop,ours", "--again", "all", program=program)
            shown = [row["competitor"] for row in data["summary"][0]["rows"]]
            self.assertEqual(shown, ["loop", "ours"] if ratio else ["loop"], data["left_out"])
            left = {entry["competitor"]: entry["why"] for entry in data["left_out"]}
            if not ratio:
                self.assertIn("without dropout, the reference's are", left["ours"])

    def test_another_call_measures_what_is_missing(self):
        first, _ = self.measure("--competitors", "loop,ours")
        second, said = self.measure("--competitors", "loop,eager,ours")
        self.assertIn("goes on with 1 parts", said)
        self.assertEqual(self.prepared(second), ["loop ours", "loop eager", "loop eager"])
        self.assertEqual(second["groups"][0], first["groups"][0])
        self.assertEqual([row["competitor"] for row in second["summary"][0]["rows"]], ["loop", "eager", "ours"])
        third, _ = self.measure("--competitors", "loop,ours", "--again", "ours")
        self.assertEqual(self.prepared(third), ["loop eager", "loop eager", "loop ours"])

    def test_one_prepares_after_the_other(self):
        log = os.path.join(self.folder, "log")
        program = self.wrapped(
            "if '--on-request' not in arguments:\n    os.execv(program[0], program)\ndef "
            f"note(word):\n    with open({log!r}, 'a') as file:\n        file.write(word + "
            "'\\n')\nnote('begins')\nworker = subprocess.Popen(program, stdout=subprocess.PIPE, "
            "text=True)\nfirst = worker.stdout.readline()\nnote('ready')\nprint(first, end='', "
            "flush=True)\nfor line in worker.stdout:\n    print(line, end='', flush=True)\n")
        self.measure("--competitors", "loop,ours,ours-array4,ours-array8", program=program)
        with open(log, encoding="utf-8") as file:
            words = file.read().split()
        self.assertGreaterEqual(len(words), 6)
        self.assertEqual(words, ["begins", "ready"] * (len(words) // 2))

    def test_refuses_bad_input(self):
        nowhere = os.path.join(self.folder, "nowhere")
        for arguments, text in (
                (("--smoke", "--output", os.path.join(HERE, "results")), "its numbers mean nothing, must be another folder"),
                (("--device", "tpu"), "--device tpu: must be cuda or cuda:N"),
                (("--smoke", "--competitors", "eager"), "must hold loop, the base of the ratios"),
                (("--smoke", "--competitors", "loop,slow"), "--competitors 'slow': must be of loop, eager"),
                (("--smoke", "--again", "slow"), "--again 'slow': must be all, or of loop, eager"),
                (("--smoke", "--minutes", "0"), "--minutes 0.0: must be in [0.1, 600]"),
                (("--device", "cuda:99", "--output", nowhere), "--device cuda:99: the peaks could not be measured"),
        ):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(nowhere))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    probe = run("--device", "cuda:99", "--output", tempfile.gettempdir())
    if "needs a Python with torch and numpy" in probe.stderr:
        print(f"skipped: {probe.stderr.strip()}")
        sys.exit(77)
    unittest.main()
