"""The JSON Schema of configurations, by python3-jsonschema: the shipped ones are right and their mutations wrong.
"""

import json
import re
import subprocess
import unittest
from pathlib import Path

from python_tests import PROGRAMS, need

need("jsonschema", "yaml")
import jsonschema
import yaml

PROGRAM = PROGRAMS / "nas-run"
CONFIGS = Path(__file__).resolve().parents[2] / "configs"

RIGHT = """
seed: 3
training: {steps: 5e3, learning_rate: 3e-4}
model:
algorithm: nsga2
algorithm: {name: evo_ga, generations: 3, population: 8}
algorithm: {generations: 3}
data: {corpus: text_file, path: mytext.txt}
evaluation: {workers: 3}
space: {normalization: [softmax, entmax15], bias: true, attention_dropout: 0.1}
space: {match_parameters: true}
space: {training.optimizer: [adamw, muon], training.learning_rate: {min: 1e-3, max: 1e-2, log: true}}
objectives: [perplexity, {name: latency, context: 64}]
constraints: parameters <= 1e6
baseline: {mechanism: dot|softmax|none|fixed|bias|0}
extends: [a.yaml, b.yaml]
seeds: 100
algorithms: [random_search, {name: evo_ga, label: mine, binary: flip, evaluation: {replicates: 2}}]
"""
WRONG = """
sed: 3
seed: -1
seed: 1.5
training: {steps: many}
training: {step: 10}
training: 3
algorithm: nsga
algorithm: {name: evo_ga, weights_of_ants: 3}
algorithm: {name: nsga2, crossover: 1.4}
data: {corpus: mytext.txt}
data: {corpus: brown, path: mytext.txt}
semantics: corect
space: {normalization: [softmaxx]}
space: {bias: yes_please}
space: {match_parameters: 1}
space: {attention_dropout: {min: 0.1, most: 0.2}}
objectives: [{context: 64}]
constraints: 3
baseline: {tune: true}
seeds: 0
algorithms: [random_serch]
algorithms: [{name: random_search, believe: record}]
algorithms: [{name: random_search, evaluation: {workers: 3}}]
"""


class Loader(yaml.SafeLoader):
    """Numbers as in YAML 1.2: PyYAML takes 1e-3 for a text."""


Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        said = subprocess.run([PROGRAM, "schema"], check=True, capture_output=True, text=True)
        cls.schema = json.loads(said.stdout)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def is_valid(self, text):
        return self.validator.is_valid(yaml.load(text, Loader))

    def test_is_a_schema_of_2020_12(self):
        self.assertEqual(self.schema["$schema"], jsonschema.Draft202012Validator.META_SCHEMA["$id"])
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_every_shipped_configuration_is_right(self):
        files = sorted(CONFIGS.glob("*.yaml"))
        self.assertGreaterEqual(len(files), 20)
        for file in files:
            mistakes = [error.message for error in self.validator.iter_errors(yaml.load(file.read_text(), Loader))]
            self.assertEqual(mistakes, [], file.name)

    def test_what_is_right(self):
        for text in RIGHT.strip().splitlines():
            self.assertTrue(self.is_valid(text), text)

    def test_mistakes_are_wrong(self):
        for text in WRONG.strip().splitlines():
            self.assertFalse(self.is_valid(text), text)

    def test_every_misspelt_key_of_a_shipped_configuration_is_wrong(self):
        for file in sorted(CONFIGS.glob("*.yaml")):
            config = yaml.load(file.read_text(), Loader)
            for key in config:
                wrong = {(name + "q" if name == key else name): value for name, value in config.items()}
                self.assertFalse(self.validator.is_valid(wrong), f"{file.name}: {key}q")

    def test_settings_have_what_editors_show(self):
        steps = self.schema["properties"]["training"]["properties"]["steps"]
        self.assertIn("description", steps)
        self.assertEqual(steps["default"], 5000)
        self.assertEqual(self.schema["properties"]["semantics"]["enum"], ["corrected", "published"])
