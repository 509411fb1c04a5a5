"""Mixers at rates of their own: what is chosen and judged against values known by hand, what is said, written and refused."""

import csv
import itertools
import unittest

import numpy as np
from attnas.analysis import tuned
from studies import mixers
from attnas.analysis.digest import BadInput
from digest_file import said_by, text_of
from fake_tables import IDENTITY, MODEL, cell, write_run
from python_tests import FolderTest, said

FRAME = "model{norm=rms}/"
ATTENTION, GDN = "attn{dropout=0,conv=4}+swiglu", "recurrent{gating=swish_gate,decay=scalar,conv=4,update=delta}+swiglu"
BASELINE = f"{FRAME}2*{ATTENTION}"


def stacked(*layers: str) -> str:
    """A name with equal neighbours counted."""
    groups = [(layer, len([*same])) for layer, same in itertools.groupby(layers)]
    return FRAME + "/".join(layer if count == 1 else f"{count}*{layer}" for layer, count in groups)


class Runs(FolderTest):
    def run_at(self, rate, accuracies, state=None, failed=(), **more) -> str:
        """@param accuracies  name: (valid, test) of each seed. @param failed  (name, seed) that diverged."""
        cells = {}
        for name, pairs in accuracies.items():
            for seed, (valid, test) in enumerate(pairs):
                own = cell(2.0, status="diverged" if (name, seed) in failed else "ok")
                if own["status"] == "ok":
                    own["curve"][-1]["valid"]["correct"] = 1000 * valid
                    own["values"] |= {"test_correct": 1000 * test, "test_tokens": 1000.0, "parameters": 5000.0,
                                      "state_bytes": float((state or {}).get(name, 100.0))}
                cells[name, 1_000_000 + seed] = own
        path = self.folder / f"{rate:g}{len(more)}.json"
        write_run(path, cells, identity={**IDENTITY, "model": MODEL, "training": {"learning_rate": rate, **more}})
        digest = said_by(path)
        names = [*accuracies]
        digest["models"] = {"genes": ["depth"], "choices": {name: [str(i)] for i, name in enumerate(names)}, "differences": {}}
        digest["genes"] = [{"name": "depth"}]
        digest["config"] |= {"space": {"depth": ["0", "1"]}, "data": {"corpus": "mqar", "pairs": 4}}
        digest["baseline"] = {"candidate": BASELINE, "evaluations": []}
        path.write_text(text_of(digest))
        return str(path)

    def script(self, *arguments) -> tuple[int, str, str]:
        return said(lambda given: mixers.main([*given, "-o", str(self.folder / "out")]), *arguments)


class Labels(unittest.TestCase):
    def test_layers_by_their_usual_names(self):
        labels = {BASELINE: "attn", f"{FRAME}none+swiglu": "none", stacked(GDN, GDN, GDN, ATTENTION): "gdn/gdn/gdn/attn",
                  f"{FRAME}2*attn{{dropout=0,pattern=window,window=16,globals=4,conv=4}}+swiglu": "swa{globals=4,window=16}",
                  f"{FRAME}2*recurrent{{conv=4,feature=elu1,key_width=16}}+swiglu": "linear{key_width=16}"}
        for name, label in labels.items():
            self.assertEqual(tuned.label(name, BASELINE), label)
        self.assertEqual(tuned.label(f"{FRAME}2*attn{{dropout=0}}+swiglu", BASELINE), "attn{conv=0}")
        self.assertEqual(tuned.label(stacked(GDN, ATTENTION).replace("+swiglu", "+none", 1), BASELINE), "gdn+none/attn")
        self.assertEqual(tuned.label(BASELINE, f"{FRAME}2*attn{{dropout=0}}+swiglu"), "attn{conv=4}")

    def test_a_family_is_a_label_without_its_sizes(self):
        for label, family in {"swa{globals=4,window=16}": "swa", "linear{key_width=16}": "linear", "linear": "linear",
                              "deltanet{key_width=8,neg_eigen=1}": "deltanet{neg_eigen=1}", "gdn/attn": "gdn/attn"}.items():
            self.assertEqual(tuned.Row("", label, None, None, {}).family, family)

    def test_periods(self):
        for name, period in {BASELINE: 1, stacked(GDN, ATTENTION, GDN, ATTENTION): 2, stacked(GDN, GDN, GDN, ATTENTION): 4,
                             stacked(GDN, ATTENTION, GDN): 3}.items():
            self.assertEqual(tuned.period(name), period)

    def test_kinds(self):
        for label, kind in {"gdn/attn": "hybrid", "gdn+none/attn": "hybrid", "swa{window=4}": "attention", "none": "convolution, none",
                            "ssd": "recurrent, adds", "kda": "recurrent, erases"}.items():
            self.assertEqual(mixers.kind_of(label), kind)


class Choice(Runs):
    def test_failures_may_still_come_where_chance_is_known(self):
        solves = np.array([[0.99, 1.0, 0.98, 0.99, 1.0]])
        row = tuned.Row("a", "a", solves, solves, {})
        for facts, low in (({}, 0.98), ({"chance": {"accuracy": 0.5}}, 0.48 * 0.98 + 0.52 * 0.5)):  # 0.025^(1/5) = 0.478
            found = tuned.Tuned([row], [0.001], "accuracy", "a", facts, []).mean(row)
            np.testing.assert_allclose(found, (0.992, low, 1.0), atol=0.004)

    def test_a_rate_is_chosen_by_the_other_seeds_and_judged_on_the_test_split(self):
        low = self.run_at(1e-3, {BASELINE: [(0.8, 0.1), (0.1, 0.2), (0.1, 0.3)]})  # lucky with its first seed
        high = self.run_at(2e-3, {BASELINE: [(0.5, 0.6), (0.5, 0.7), (0.5, 0.8)]})
        found = tuned.read([high, low], "accuracy")
        self.assertEqual(found.rates, [1e-3, 2e-3])
        row = found.row(BASELINE)
        np.testing.assert_allclose(found.own(row), [0.6, 0.7, 0.8])
        self.assertEqual(found.favourite(row), 1)
        self.assertTrue(found.at_an_end(row))

    def test_the_middle_of_three_rates_is_no_end(self):
        runs = [self.run_at(rate, {BASELINE: [(best, best)] * 2}) for rate, best in ((1e-3, 0.2), (2e-3, 0.5), (4e-3, 0.5))]
        found = tuned.read(runs, "accuracy")
        self.assertFalse(found.at_an_end(found.rows[0]))

    def test_what_diverged_is_never_chosen_and_counts_as_nothing_right(self):
        high = self.run_at(2e-3, {BASELINE: [(0.9, 0.9)] * 2}, failed=[(BASELINE, 1)])
        found = tuned.read([self.run_at(1e-3, {BASELINE: [(0.4, 0.4)] * 2}), high], "accuracy")
        # Without the first seed the high rate failed; without the second it is better, and the second fails there.
        np.testing.assert_allclose(found.own(found.rows[0]), [0.4, 0.0])

    def test_runs_that_go_on_count_with_what_they_have(self):
        other = stacked(GDN, GDN)
        low = self.run_at(1e-3, {BASELINE: [(0.5, 0.5)] * 3, other: [(0.5, 0.5)]})
        found = tuned.read([low, self.run_at(2e-3, {BASELINE: [(0.5, 0.5)] * 2, other: [(0.5, 0.5)]})], "accuracy")
        self.assertEqual(([row.seeds for row in found.rows], found.left_out), ([2], ["gdn"]))

    def test_rows_that_would_have_one_label_have_their_names(self):
        twins = stacked(GDN, GDN), stacked(GDN, GDN).replace("norm=rms", "norm=layer")
        runs = [self.run_at(rate, {name: [(0.5, 0.5)] * 2 for name in (BASELINE, *twins)}) for rate in (1e-3, 2e-3)]
        self.assertEqual({row.label for row in tuned.read(runs, "accuracy").rows}, {"attn", *twins})

    def test_refusals(self):
        own = self.run_at(1e-3, {BASELINE: [(0.5, 0.5)] * 2})
        for runs, why in (([own, own], "must be each once"),
                          ([own, self.run_at(2e-3, {BASELINE: [(0.5, 0.5)] * 2}, warmup_steps=3)], "in training beside the rate"),
                          ([self.run_at(4e-3, {BASELINE: [(0.5, 0.5)]})], "no row has 2 seeds")):
            with self.assertRaises(BadInput) as raised:
                tuned.read(runs, "accuracy")
            self.assertIn(why, str(raised.exception))


class Front(Runs):
    def runs(self):
        gdn, window = stacked(GDN, GDN), f"{FRAME}2*attn{{dropout=0,pattern=window,window=8,conv=4}}+swiglu"
        state = {BASELINE: 4000, gdn: 1000, window: 2000}
        values = {BASELINE: (0.98, 0.99, 1.0), gdn: (0.5, 0.6, 0.7), window: (0.2, 0.2, 0.21)}
        return [self.run_at(rate, {name: [(value - less, value - less) for value in own] for name, own in values.items()}, state)
                for rate, less in ((1e-3, 0.1), (2e-3, 0.0), (4e-3, 0.1))]

    def test_the_best_of_what_is_no_larger(self):
        found = tuned.read(self.runs(), "accuracy")
        front = mixers.front_of(found, found.rows, np.array([row.sizes["state_bytes"] for row in found.rows]))
        np.testing.assert_allclose(front.x, [1000, 2000, 4000])
        np.testing.assert_allclose(front.best, [0.6, 0.6, 0.99])
        self.assertTrue((front.low <= front.best).all() and (front.best <= front.high).all())
        self.assertAlmostEqual(front.low[0], 0.5)

    def test_what_is_said_and_written(self):
        code, words, why = self.script("front", *self.runs(), "--searched", stacked(GDN, GDN))
        self.assertEqual((code, why), (0, ""))
        self.assertIn("Of 1 model found by a search 1 have equal layers, 0 are cycles", words)
        self.assertIn("lie, from the smallest: found 1 and attn.", words)
        self.assertIn("3 rows at 3 learning rates (0.001, 0.002, 0.004), 3 seeds each", words)
        self.assertNotIn("at an end", words)
        page = (self.folder / "out/front.md").read_text()
        self.assertIn("- found 1: gdn\n", page)
        with open(self.folder / "out/front.csv", encoding="utf-8", newline="") as file:
            self.assertEqual(len([*csv.DictReader(file)]), 3 * 3 * 3)
        self.assertIn("\u2605", (self.folder / "out/front.svg").read_text())

    def test_what_was_found_is_compared_with_the_best_that_is_no_larger(self):
        found = tuned.read(self.runs(), "accuracy")
        words = mixers.searched_sentences(found, [BASELINE], "state_bytes")
        self.assertIn("attn against gdn, the best other row that has no more state bytes: 0.390 (0.", words[1])
        self.assertEqual(mixers.searched_sentences(found, [stacked(GDN, GDN)], "state_bytes")[1:], [], "nothing is smaller")

    def test_unknown_names_and_sizes_write_nothing(self):
        runs = self.runs()
        for more, why in ((("--searched", "model/gdn"), "no row has this name"), (("--against", "energy"), "has no energy")):
            code, words, said_why = self.script("front", *runs, *more)
            self.assertEqual((code, words), (2, ""))
            self.assertIn(why, said_why)
        self.assertFalse((self.folder / "out").exists())
