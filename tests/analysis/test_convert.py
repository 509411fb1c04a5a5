"""nas-convert: placements, controls and verdicts."""

import argparse
import unittest

import numpy as np

from attnas.convert import chosen, controls_of, count_of, data_of, digits, held_out_of, own_recall, problem_of, verdicts, words_of, worth_of_first
from attnas.errors import InputError

ORDER = ["full", "window{64,4}", "drop"]


def held_out(costs, n=16):
    random = np.random.default_rng(0)
    shared = random.normal(3.0, 0.3, n)
    return {name: {"text_nll": list(shared * (1 + text) + random.normal(0, 0.003, n)),
                   "loss": list(loss + random.normal(0, 0.02, n))}
            for name, (text, loss) in costs.items()}


class ConvertTest(unittest.TestCase):

    def test_a_name_says_the_block_of_each_layer(self):
        self.assertEqual(words_of("full 0,3; window{64,4} 4; drop 1-2"), ("full", "drop", "drop", "full", "window{64,4}"))

    def test_controls_have_as_many_layers_as_they_were(self):
        words = ["full" if layer in (3, 4, 9) else "window{64,4}" for layer in range(12)]
        made = controls_of(words)
        self.assertLessEqual({"uniform", "first and last", "local", "drop"}, made.keys())
        self.assertTrue(all(own.count("full") == 3 for own in made.values()))
        for label, full in (("uniform", [2, 6, 10]), ("first and last", [0, 1, 11])):
            self.assertEqual([i for i, word in enumerate(made[label]) if word == "full"], full)
        self.assertEqual(set(made["drop"]), {"full", "drop"})

    def test_digits_are_places_among_a_layers_choices(self):
        choices = [ORDER, ["full", "drop"], ["full"]]
        self.assertEqual(digits(["drop", "drop", "full"], choices), "21")
        self.assertIsNone(digits(["full", "window{64,4}", "full"], choices))

    def test_the_choice_keeps_the_budget(self):
        found = {name: {"cache_share": [share], "loss": [loss]}
                 for name, share, loss in (("a", 1.0, 0.0), ("b", 0.5, 0.3), ("c", 0.4, 0.2), ("d", 0.3, 9.0))}
        self.assertEqual(chosen(found, 0.5), "c")
        self.assertEqual(chosen(found, 0.3), "d")
        with self.assertRaisesRegex(InputError, "least of what was searched is 30 %"):
            chosen(found, 0.2)

    def test_verdicts_say_what_is_shown_and_what_is_not(self):
        held = held_out({"whole": (0.0, 0.0), "choice": (0.002, 0.1), "uniform": (0.05, 4.0), "near": (0.002, 0.101), "best": (0.0, 0.01)})
        said = " ".join(verdicts(held, "choice", "whole", {name: name for name in ("uniform", "near", "best")}, 0.01))
        for words in ("On 16 held-out documents", "within 1 %.", "better than uniform: 3.8",
                      "not shown to be better than near", "worse than best"):
            self.assertIn(words, said)
        dear = held_out({"whole": (0.0, 0.0), "choice": (0.02, 0.1)})
        self.assertIn("within 1 % is not shown", " ".join(verdicts(dear, "choice", "whole", {}, 0.01)))

    def test_tokens_are_counted_by_letters(self):
        self.assertEqual([count_of("stage2", word, 0) for word in ("0", "500000", "500k", "2M", "1G")], [0, 500000, 500000, 2000000, 10**9])
        for word in ("", "k", "-1", "2x", "1.5M", "2000G", "1"):
            with self.assertRaisesRegex(InputError, f"--verdict {word}, must be a number from 4"):
                count_of("verdict", word, 4)

    def test_trainings_share_the_held_out_documents(self):
        given = argparse.Namespace(stage2=2000, trainings=3, verdict=16)
        again, replicates = held_out_of(given, {"problem": {"blocks": ["gdn"]}})
        self.assertEqual((replicates, again["problem"]["stage2_documents"], again["problem"]["fidelity"]), (3, 5, "trained"))
        given.stage2 = 0
        again, replicates = held_out_of(given, {"problem": {"blocks": ["gdn"]}})
        self.assertEqual((replicates, again["problem"]), (16, {"blocks": ["gdn"], "split": "test"}))

    def test_first_tokens_go_or_come(self):
        self.assertEqual(controls_of(["full", "window{64,4}", "drop"])["without first tokens"], ["full", "window{64,0}", "drop"])
        self.assertEqual(controls_of(["window{64,0}", "full"])["with 4 first tokens"], ["window{64,4}", "full"])
        costly = {"kl": np.linspace(0.5, 0.65, 16), "recall": np.linspace(8, 9.5, 16), "text_nll": np.linspace(4, 4.15, 16)}
        cheap = {"kl": np.zeros(16), "recall": np.zeros(16), "text_nll": np.full(16, 2.0)}
        for said in (worth_of_first(cheap, costly, "without first tokens", 2.0), worth_of_first(costly, cheap, "with 4 first tokens", 2.0)):
            self.assertRegex(said, r"cost 0.575 \(0.5.* more in KL, 8.75 \(8.* in recall and 103.* % of a text than with them")

    def test_a_model_that_does_not_copy_is_said_to(self):
        random = np.random.default_rng(1)
        self.assertIn("likelier than another one by 9.", own_recall(random.normal(9.1, 0.3, 16)))
        for margins in (random.normal(0.0, 0.2, 16), random.normal(0.05, 0.001, 16)):
            self.assertRegex(own_recall(margins), "does not copy: .* nats .* Recall says nothing")

    def test_documents_are_in_the_models_own_tokens(self):
        about = {"model": {"context": 256, "vocabulary": 256}, "text": {"unit": "word"},
                 "data": {"corpus": "brown", "settings": {"vocabulary": 99}}}
        given = argparse.Namespace(model="nothing", text=None, corpus=None, blocks=["drop"], context=None, cache_context=None, settings=[])
        self.assertEqual(data_of(given, about), {"corpus": "brown", "vocabulary": 99})
        self.assertEqual(problem_of(given, about)["probes"], ["copy{64}", "pairs{32}"])
        given.corpus = "gcide"
        with self.assertRaisesRegex(InputError, "its tokens are those of brown"):
            data_of(given, about)
        self.assertEqual(data_of(given, {**about, "text": {"unit": "byte"}}), {"corpus": "gcide", "tokenizer": "byte"})
        given.corpus, about["data"] = None, {"corpus": "text_file", "settings": {"path": "mine.txt", "train": ""}}
        given.text = "other.txt"
        self.assertRaisesRegex(InputError, "of its own text mine.txt, others than those of --text other.txt", data_of, given, about)
        given.text = "/there/mine.txt"
        self.assertEqual(data_of(given, about), {"corpus": "text_file", "path": "/there/mine.txt", "train": ""})
        given.text = None
        self.assertRaisesRegex(InputError, "mine.txt of its corpus is not here: give data.path=FILE", data_of, given, about)
        given.settings = ["data.path=other.txt"]
        self.assertEqual(data_of(given, about)["path"], "mine.txt")
