"""Tests gpu_kernels.py on a made-up table of ncu."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gpu_kernels

HEAD = '"ID","Process ID","Kernel Name","Block Size","Section Name","Metric Name","Metric Unit","Metric Value"\n'


def line(kernel, unit, value, metric=gpu_kernels.METRIC):
    return f'"0","1","{kernel}","(32, 1, 1)","Command line profiler metrics","{metric}","{unit}","{value}"\n'


class Kernels(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def add(self, text, *arguments):
        path = os.path.join(self.folder, "step.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([sys.executable, os.path.join(HERE, "gpu_kernels.py"), "--output", self.folder, *arguments, path],
                              capture_output=True, text=True, check=False)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_names_are_without_arguments_and_long_templates(self):
        for kernel, name in (("void nas::(anonymous namespace)::adamw<float>(float *, int)", "adamw<float>"),
                             ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"),
                             ("void at::native::fill<Functor<float (float)>>(int, T1)", "fill<Functor<float (float)>>")):
            self.assertEqual(gpu_kernels.short(kernel), name)
        self.assertEqual(len(gpu_kernels.short("void x<" + "y" * 500 + ">(int)")), gpu_kernels.LONGEST)

    def test_sums_by_name_and_replaces_a_step_of_the_same_kind(self):
        text = "==PROF== Connected\n" + HEAD + line("gemm(int)", "nsecond", "3,000.0") + line("gemm(int)", "us", "1") + \
            line("void loss<float>(float *)", "ms", "0.004") + line("gemm(int)", "byte", "7", "dram__bytes.sum")
        for _ in range(2):
            done = self.add(text, "--mode", "tf32", "--array", "8", "--device", "a card")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.add(HEAD + line("gemm(int)", "ns", "500"), "--mode", "tf32", "--array", "1").returncode, 0)
        first, second = map(json.loads, self.read("kernels.jsonl").splitlines())
        self.assertEqual((first["mode"], first["array"], second["array"]), ("tf32", 8, 1))
        self.assertAlmostEqual(first["kernels"]["gemm"][1], 4e-6)
        self.assertEqual(first["kernels"]["gemm"][0], 2)
        text = self.read("kernels.md")
        self.assertIn("| kernel | array of 1 | array of 8 |", text)
        self.assertIn("| all | 0.5 us per model, 1 launches | 1.0 us per model, 3 launches |", text)
        self.assertIn("| `gemm` | 0.5 us, 100.0%, 1 | 0.5 us, 50.0%, 2 |", text)
        self.assertIn("| `loss<float>` |  | 0.5 us, 50.0%, 1 |", text)
        self.assertIn("a card", text)

    def test_refuses_bad_input(self):
        for text, arguments, said in (("==ERROR== no permission\n", (), "no line of gpu__time_duration.sum"),
                                      (HEAD + line("gemm", "cycle", "1"), (), "unit 'cycle' of gpu__time_duration.sum, must"),
                                      (HEAD + line("gemm", "ns", "1"), ("--array", "0"), "--array 0: must be at least 1")):
            done = self.add(text, "--mode", "exact", "--array", "1", *arguments)
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "kernels.jsonl")))


if __name__ == "__main__":
    unittest.main()
