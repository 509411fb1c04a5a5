"""Spaces beyond the paper's genes: docs/space.md names what can be searched, and analyses of runs over
such spaces read what the programs wrote.
"""

import contextlib
import io
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from attnas.analysis.commands import components
from attnas.analysis.genes import genes
from attnas.analysis.run import Run
from attnas.analysis.schema import place, training_of
from python_tests import PROGRAMS, ROOT, need

need(program="nas-run")
PROGRAM = PROGRAMS / "nas-run"

CONFIG = """
extends: {sources}/configs/smoke.yaml
model: {{layers: 2, heads: 4}}
space:
  stack: {stack}
  similarity: dot
  gating: none
  bias: none
  attention_dropout: 0.1
  normalization: [softmax, relu_norm]
  temperature: [fixed, per_query]
  pattern: [full, window]
  window: [4, 8]
  kv_heads: [1, 4]
baseline: model{{bias=none}}/2*attn
algorithm: {{population: 12, generations: 3}}
"""


def described() -> dict[str, list[str]]:
    """The genes of `nas-run describe space`, each with the options that it lists by name."""
    text = subprocess.run([PROGRAM, "describe", "space"], text=True, capture_output=True, check=True).stdout
    found: dict[str, list[str]] = {}
    genes, settings = re.split(r"\n  setting .*\n", text)
    for line in genes.splitlines():
        if head := re.match(r"  ([\w.]+)  ", line):
            found[head.group(1)] = []
        elif (listed := re.match(r" +a list of (?!integers)(.*)", line)) and found:
            found[[*found][-1]] += re.split(r", | and ", listed.group(1))
    del found["stack"], found["period"]
    return found | {name: [] for name in re.findall(r"^  (\w+)  ", settings, re.MULTILINE)}


def documented() -> dict[str, str]:
    """What docs/space.md says of each gene: its rows of the tables."""
    text = (ROOT / "docs" / "space.md").read_text(encoding="utf-8")
    rows, names = {}, []
    for line in text.splitlines():
        if line.startswith("|"):
            names = re.findall(r"`([\w.]+)`", line.split("|")[1]) or names
            for name in names:
                rows[name] = rows.get(name, "") + line
    return {name: "" for name in re.findall(r"`(\w+): true`", text)} | rows


class Page(unittest.TestCase):
    def test_genes_of_training_are_of_all_layers(self):
        self.assertEqual([*map(place, ("slot1.window", "training.x"))], [("slot1.", "window"), ("", "training.x")])
        self.assertEqual(training_of("model{norm=rms,learning_rate=0.008,optimizer=muon}/attn", {"steps": 5, "learning_rate": 0.003}),
                         {"steps": 5, "learning_rate": 0.008, "optimizer": "muon"})
        self.assertEqual(training_of("dot|softmax|none|fixed|bias|0", {"steps": 5}), {"steps": 5})

    def test_has_every_gene_and_option(self):
        said = documented()
        options = described()
        self.assertGreater(len(options), 30)
        for gene, own in options.items():
            self.assertIn(gene, said)
            for option in own:
                self.assertIn(f"`{option}`", said[gene], f"an option of {gene}")


class Runs(unittest.TestCase):
    def searched(self, stack: str) -> tuple[dict, str]:
        """The digest of a search, and its page of components."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            config = folder / "wide.yaml"
            config.write_text(CONFIG.format(sources=ROOT, stack=stack), encoding="utf-8")
            subprocess.run([PROGRAM, config, "--output", folder / "run", "--quiet", "--no-report"],
                           cwd=ROOT, check=True, capture_output=True)
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(components.main([str(folder / "run"), "-o", name]), 0)
            run = Run(folder / "run")
            self.found = {gene.name: gene for gene in genes(run)}
            return run.digest, (folder / "components.md").read_text(encoding="utf-8")

    def check(self, stack: str, prefix: str):
        digest, analysed = self.searched(stack)
        at = {name: place for place, name in enumerate(digest["models"]["genes"])}
        for own in digest["models"]["choices"].values():
            chosen = {name: own[place] for name, place in at.items()}
            self.assertEqual(chosen[f"{prefix}window"] is None, chosen[f"{prefix}pattern"] == "full")
            self.assertEqual(chosen[f"{prefix}temperature"] is None, chosen[f"{prefix}normalization"] == "relu_norm")
        self.assertEqual(self.found[f"{prefix}kv_heads"].options, ("1", "4"))
        self.assertEqual(self.found[f"{prefix}window"].options, ("4", "8"))
        self.assertEqual(self.found[f"{prefix}temperature"].options, ("fixed", "per_query"))
        self.assertRegex(analysed, f"{prefix}window\\b.* are not applicable to mechanisms")
        self.assertIn("named by what differs from the baseline", analysed)

    def test_all_layers_alike(self):
        self.check("uniform", "")

    def test_layers_in_turn(self):
        self.check("cycle\n  period: 2", "slot0.")
