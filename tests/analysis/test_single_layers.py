"""Two blocks, each alone in a layer: analysis/studies/single_layers.py."""

import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "analysis" / "studies"))

import single_layers as own
from attnas.errors import InputError

LAYERS = 4


def run(block, cost, documents):
    """`cost` of each layer, and as much of each document; of recall twice that."""
    evaluations = []
    for layer, more in cost.items():
        name = f"full {','.join(str(i) for i in range(LAYERS) if i != layer)}; {block} {layer}"
        for i in range(documents):
            evaluations.append(SimpleNamespace(candidate=name, replicate=i, usable=i != 2,
                                               values={"kl": i + more, "recall": 2 * (i + more)}))
    return SimpleNamespace(evaluations=evaluations)


class SingleLayers(unittest.TestCase):
    def test_documents_that_both_have_are_paired(self):
        one = own.alone(run("gdn{4,1}", {0: 1.0, 1: 3.0, 3: 0.5}, 12))
        other = own.alone(run("window{105,4}", {0: 0.0, 1: 0.0, 3: 0.5}, 9))
        rows = own.rows_of(one, other, {"sure": [0, 1], "open": [3]})
        self.assertEqual([row[:3] for row in rows], [["sure", "0", "8"], ["sure", "1", "8"], ["sure", "mean", "8"],
                                                     ["open", "3", "8"], ["open", "mean", "8"]])
        differences = [(row[5].split()[0], row[8].split()[0]) for row in rows]
        self.assertEqual(differences, [("1.00", "2.00"), ("3.00", "6.00"), ("2.00", "4.00"), ("0.00", "0.00"), ("0.00", "0.00")])

    def test_placements_of_several_layers_are_left_out(self):
        one, several = run("gdn{4,1}", {1: 0.0}, 2), SimpleNamespace(candidate="full 0-1; gdn{4,1} 2-3", replicate=0, usable=True)
        one.evaluations.append(several)
        self.assertEqual([*own.alone(one).values], [1])
        for wrong, said in ((SimpleNamespace(evaluations=[several]), "no block alone"),
                            (SimpleNamespace(evaluations=one.evaluations + run("drop", {1: 0.0}, 2).evaluations), "drop, gdn")):
            with self.assertRaisesRegex(InputError, said):
                own.alone(wrong)
