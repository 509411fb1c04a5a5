"""Choices of layers by several selectors, judged on held-out documents: analysis/studies/placements.py."""

import argparse
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "analysis" / "studies"))

import placements
from attnas.convert import words_of

LAYERS = 4
COSTS = (0.0, 3.0, 0.0, 1.0)  # of a window in each layer


def run_of(names, replicates, held_out=False):
    random = np.random.default_rng(1)
    noise = random.normal(0.0, 0.01, replicates)
    evaluations = []
    for name in names:
        words = words_of(name)
        loss = sum(cost for cost, word in zip(COSTS, words) if word != "full")
        for i in range(replicates):
            own = loss + (1 + loss) * noise[i] * held_out
            values = {"kl": own / 2, "recall": own / 2, "loss": own, "cache_share": words.count("full") / LAYERS}
            evaluations.append(SimpleNamespace(candidate=name, replicate=i, usable=True, values=values))
    return SimpleNamespace(evaluations=evaluations, facts={"choices": [["full", "window{4,1}"]] * LAYERS},
                           config={"data": {}, "problem": {"type": "convert"}})


class Placements(unittest.TestCase):
    def test_choices_are_compared_with_the_first_runs_on_other_documents(self):
        good, bad = "full 1,3; window{4,1} 0,2", "full 0,2; window{4,1} 1,3"
        asked = []

        def launched(config, folder, **settings):
            asked.append((config["algorithm"]["points"].split(), config["problem"], settings))

        names = ["full " + ",".join(str(i) for i in range(LAYERS) if 1 << i & kept) + "; window{4,1} " +
                 ",".join(str(i) for i in range(LAYERS) if not 1 << i & kept) for kept in range(1, 15)]
        folders = {"search/good": run_of([good, bad], 2), "search/bad": run_of([bad], 2),
                   "out/held_out": run_of(names, 16, held_out=True)}
        given = argparse.Namespace(runs=["search/good", "search/bad"], cache="50%", documents=16, output="out",
                                   settings=["evaluation.threads=1"])
        with mock.patch.object(placements, "Run", lambda path: folders[str(path)]), \
                mock.patch.object(placements.convert, "launched", launched):
            said, rows, dots = placements.study(given)
        self.assertEqual([asked[0][0][:2], asked[0][2]], [["1010", "0101"], {"reuse": None, "evaluation.threads": 1}])
        self.assertEqual([asked[0][1]["split"], asked[0][1]["blocks"]], ["test", ["window{4,1}"]])
        self.assertEqual(rows[0][:4], ["good", "4", "2", "50 %"])
        means = [float(row[6].split()[0].replace("\u2212", "-")) for row in rows]
        self.assertEqual(means, sorted(means))
        self.assertIn("the choice of good costs", said[0])
        self.assertRegex(" ".join(said), r"Worse: .*bad \(4\.")
        self.assertEqual(len(dots), len(rows))
