"""What is said of a conversion run: statistics of made data whose answer is known, and the page."""

import html
import itertools
import json
import re
import unittest

import numpy as np
from attnas import placement
from attnas.errors import InputError
from page_fixture import BASELINE, RunFixture
from python_tests import FolderTest, said
from test_hostile import MARKUP, Elements

LAYERS, WORD = 12, "window{64,4}"
RECALL = {3: 6.1, 7: 2.6, 5: 0.24, 8: 0.26, 10: 0.2}  # what a layer's recall rests on


def example(documents: int = 8, probes: int = 12) -> dict:
    """Two layers that matter, three that matter alike, and seven that do not; four stay whole
    in half of the bytes."""
    random = np.random.default_rng(11)

    def values(kl, recall):
        return {"kl": (kl * random.gamma(8, 1 / 8, documents)).tolist(), "recall": (recall + 0.3 * random.standard_normal(probes)).tolist()}

    found = {f"{layer}:{WORD}": values(0.002 + 0.001 * layer, RECALL.get(layer, 0.0)) for layer in range(LAYERS)}
    candidates = []
    for name, role, kept, kl, recall in (
            ("teacher", "baseline", range(LAYERS), 0.0, 0.0),
            ("chosen", "choice", (3, 5, 7, 8), 0.07, 0.04),
            ("more", "front", (2, 3, 5, 7, 8, 9), 0.04, 0.02), ("none", "front", (), 0.27, 10.5),
            ("uniform", "control", (2, 5, 8, 11), 0.1, 7.7),
            ("random 1", "control", (0, 3, 6, 9), 0.12, 3.9)):
        if role != "baseline":
            found[name] = values(kl, recall)
        cache = (len(kept) * 512 + (LAYERS - len(kept)) * 68) * 1536
        candidates.append({
            "name": name, "role": role, "label": name, "cache_bytes": cache,
            "cache_share": cache / (LAYERS * 512 * 1536),
            "placement": ["full" if layer in kept else WORD for layer in range(LAYERS)],
            **({"kl": 0.0, "recall": 0.0} if role == "baseline" else {})})
    return {"model": "tiny", "layers": LAYERS, "context": 512, "budget": {"cache": 0.5},
            "blocks": ["full", WORD], "replicates": documents, "values": found,
            "scores": [{"layer": layer, "block": WORD} for layer in range(LAYERS)],
            "candidates": candidates, "verdicts": ["Within 0.1 nats of tiny: shown (e = 240)."]}


class Statistics(unittest.TestCase):
    """On made data."""

    def test_variance_is_that_of_a_mean(self):
        x = [1.0, 4.0, 2.0, 8.0, 5.0]
        means = placement.resampled({"a": {"kl": x, "recall": x}}, ["a"], 40000)["kl"]
        self.assertAlmostEqual(means.mean(), np.mean(x), 1)
        self.assertAlmostEqual(means.var() / (np.var(x, ddof=1) / 5), 1.0, 1)

    def test_what_is_kept(self):
        scores = np.array([[3.0, 1.0, 2.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 5.0, 5.0, 5.0]])
        self.assertEqual(placement.kept_shares(scores, 1).tolist(), [[1, 0, 0, 0], [0.25] * 4, [0, 1 / 3, 1 / 3, 1 / 3]])
        self.assertEqual(placement.kept_shares(scores, 3)[0].tolist(), [1, 0.5, 1, 0.5])
        self.assertEqual(placement.kept_shares(scores, 0).sum(), 0)
        self.assertTrue((placement.kept_shares(scores, 4) == 1).all())

    def test_probability_of_layers_and_of_the_set(self):
        # b loses to a in three of four documents: three drawn ones have at most one of the other
        # in 54 of 64 cases
        values = {"c": {"kl": [9.0] * 4, "recall": [0.0] * 2},
                  "a": {"kl": [1.0, 1.0, 1.0, 0.0], "recall": [0.0] * 2},
                  "b": {"kl": [0.0, 0.0, 0.0, 1.0], "recall": [0.0] * 2},
                  "d": {"kl": [-9.0] * 4, "recall": [0.0] * 2}}
        found = placement.certainty(values, ["b", "c", "d", "a"], 2, resamples=40000)
        self.assertEqual(found["kept"], [1, 3])
        for p, expected in zip(found["probability"], (10 / 64, 1.0, 0.0, 54 / 64)):
            self.assertAlmostEqual(p, expected, 2)
        self.assertAlmostEqual(found["same_set"], 54 / 64, 2)
        equal = placement.certainty({name: values["c"] for name in "ab"}, ["a", "b"], 1)
        self.assertEqual((equal["probability"], equal["same_set"]), ([0.5, 0.5], 0.0))

    def test_documents_and_probes_are_drawn_apart_and_layers_together(self):
        x = np.random.default_rng(3).normal(size=20)
        values = {"a": {"kl": x.tolist(), "recall": (-x).tolist()}, "b": {"kl": (x + 0.01).tolist(), "recall": (-x).tolist()}}
        means = placement.resampled(values, ["a", "b"])
        self.assertGreater((means["kl"] + means["recall"])[:, 0].std(), 0.1)
        found = placement.certainty(values, ["a", "b"], 1)
        self.assertEqual((found["kept"], found["same_set"]), ([1], 1.0))
        self.assertEqual(placement.certainty(values, ["a", "b"], 1, {"recall": -1.0})["same_set"], 0.0)

    def test_cheapest_is_that_of_all(self):
        random = np.random.default_rng(4)
        scores, costs = random.normal(size=(6, 5, 3)), random.integers(0, 9, (5, 3))
        scores[:, 2, 1], costs[2, 1] = np.inf, 9  # is none of that layer's
        for room in (0, 5, 20):
            limit = costs.min(1).sum() + room
            found = placement.cheapest(scores, costs, limit)
            for draw, options in zip(scores, found):
                best = min((each for each in itertools.product(range(3), repeat=5)
                            if costs[range(5), each].sum() <= limit),
                           key=lambda each: draw[range(5), each].sum())
                self.assertEqual(tuple(options), best)

    def test_refusals(self):
        for kl in ([1.0], [1.0, float("nan")], [1.0, 2.0, 3.0]):
            with self.assertRaisesRegex(InputError, "must have 2 finite ones|must have 1"):
                placement.resampled({"a": {"kl": [1.0, 2.0], "recall": [0.0, 0.0]},
                                     "b": {"kl": kl, "recall": [0.0, 0.0]}},
                                    ["a", "b"] if len(kl) > 1 else ["b"])


class Study(RunFixture):
    """The results.json of a run of problem convert: three layers, whose second is needed in three
    of four documents, the third in the other one."""

    COSTS = {"full": (1024, [0.0] * 4, [0.0] * 4, [0.0] * 4),
             "window{64,4}": (68, [0.01] * 4, [0.3, 0.3, 0.3, 0.0], [0.0, 0.0, 0.0, 0.3]),
             "drop": (0, [0.02] * 4, [3.0] * 4, [3.0] * 4)}

    def __init__(self, folder, *placements, **facts):
        super().__init__(folder, asked=0, replicates=4)
        self.further["config"]["problem"] = {"type": "convert", "base": "models/tiny", "blocks": ["window{64,4}", "drop"], "context": 512}
        self.further["facts"] |= {"weights": "c0", "layers": 3, "full_cache_bytes": 3072.0, **facts}
        for name in placements:
            self.answer(name, *self.evaluate(name))
        self.write()

    def evaluate(self, candidate, status="ok", reason=""):
        name = "full 0-2" if candidate == BASELINE else candidate
        words, ids = placement.placed(name), []
        size = sum(self.COSTS[word][0] for word in words.values())
        for replicate in range(4):
            kl = sum(self.COSTS[word][1 + layer][replicate] for layer, word in words.items())
            ids.append(f"{len(self.candidates):04}{replicate:02}" + "f" * 58)
            self.add(ids[-1], name, replicate, status, reason, {
                "kl": kl, "recall": 0.0, "cache_bytes": float(size), "perplexity": kl,
                "attention_flops": float(size)}, [], {"train_seconds": 1.0})
        self.candidates.append(name)
        return ids, [kl, float(size)]


class Studies(FolderTest):
    """Of runs of problem convert."""

    PLACEMENTS = ["window{64,4} 0; full 1-2", "full 0,2; window{64,4} 1", "full 0-1; window{64,4} 2",
                  "drop 0; full 1-2", "full 0-1; drop 2", "full 0,2; drop 1",
                  "full 1; window{64,4} 0,2"]

    def test_study_and_controls(self):
        Study(self.folder / "run", *self.PLACEMENTS)
        Study(self.folder / "uniform", "full 2; window{64,4} 0-1", "full 1; window{64,4} 0,2")
        found = placement.read(self.folder / "run", [self.folder / "uniform"], 0.4)
        self.assertEqual({(one["layer"], one["block"]) for one in found["scores"]},
                         {(0, "window{64,4}"), (1, "window{64,4}"), (2, "window{64,4}"),
                          (0, "drop"), (1, "drop"), (2, "drop")})
        roles = {one["name"]: one["role"] for one in found["candidates"]}
        self.assertEqual((roles["full 1; window{64,4} 0,2"], roles["full 2; window{64,4} 0-1"],
                          roles["full 0-2"]), ("choice", "control", "baseline"))
        choice = placement.chosen_of(found)
        self.assertEqual(choice["placement"], ["window{64,4}", "full", "window{64,4}"])
        self.assertAlmostEqual(choice["cache_share"], (1024 + 2 * 68) / 3072)
        # as above: of three drawn ones at most one is the document in which the third is needed
        for one, expected in zip(found["kept"], (0.0, 54 / 64, 10 / 64)):
            self.assertAlmostEqual(one["probability"], expected, 1)
        self.assertAlmostEqual(found["same_set"], 54 / 64, 1)
        self.assertIn("layer 1 stays whole and 2 become window{64,4}", placement.text(found))
        code, out, err = said(placement.main, self.folder / "run", self.folder / "uniform", "--cache", "40%")
        self.assertEqual((code, "of 1 control with as many bytes" in out), (0, True), err)
        self.assertTrue((self.folder / "run" / "convert.html").is_file())

    def test_what_is_no_partner(self):
        Study(self.folder / "run", *self.PLACEMENTS)
        Study(self.folder / "other", "full 0; drop 1-2", weights="c1")
        RunFixture(self.folder / "attention")
        for words, why in ((["run", "other"], "weights is another one"),
                           (["attention"], "problem is attention, must be convert"),
                           (["run", "--cache", "half"], "--cache half, must be a share")):
            code, _, err = said(placement.main, *(word if word in ("--cache", "half") else self.folder / word for word in words))
            self.assertEqual(code, 2)
            self.assertRegex(err, why)


class Pages(FolderTest):
    """Of a run's convert.json."""

    def written(self, run: dict) -> str:
        (self.folder / "convert.json").write_text(json.dumps(run), encoding="utf-8")
        return str(self.folder)

    def test_sentences(self):
        run = placement.read(self.written(example()))
        first, sure, cost = placement.sentences(run)
        self.assertEqual(first, "Of the 12 layers of tiny, layers 3, 5, 7 and 8 stay whole and 8 become "
                                f"{WORD}; the cache is 42 % of what it was.")
        self.assertRegex(sure, r"^Layers 3 and 7 are certain; .*5.* and .* share the other 2 places"
                               r"; with other examples the same set comes again with probability "
                               r"0\.\d\d\.$")
        self.assertRegex(cost, r"It costs 0\.0\d+ \(.*\) in KL and .* in recall; of 2 controls with "
                               r"as many bytes the best, random 1, costs .*: shown to be worse in "
                               r"KL and recall\.")

    def test_candidates_may_have_other_examples(self):
        run = example()
        for name in ("chosen", "uniform"):
            run["values"][name] = {key: own + own for key, own in run["values"][name].items()}
        found = placement.read(self.written(run))
        widths = {one["name"]: one["kl_high"] - one["kl_low"] for one in found["candidates"] if one["role"] != "baseline"}
        self.assertEqual(found["kept"], placement.read(self.written(example()))["kept"])
        self.assertTrue(0 < widths["chosen"] and 0 < widths["random 1"], widths)

    def test_what_is_given_is_not_computed_again(self):
        run = example()
        run["kept"] = [{"layer": 3, "probability": 0.5}, {"layer": 5, "probability": 0.01}]
        run["scores"][3]["kl"] = 0.77
        found = placement.read(self.written(run))
        self.assertEqual((found["kept"], found.get("same_set")), (run["kept"], None))
        self.assertEqual(found["scores"][3]["kl"], 0.77)
        self.assertLess(found["scores"][4]["kl_low"], found["scores"][4]["kl_high"])
        self.assertIn("No layer is certain", placement.sentences(found)[1])
        for one in (run, {**run, "kept": []}):
            one.pop("values", None)
        self.assertIn("recall", placement.html(run))
        run["candidates"] = [one for one in run["candidates"] if one["role"] != "choice"]
        self.assertRegex(placement.sentences(run)[0], "none keeps the budget")
        placement.html(run)

    def test_page_and_text(self):
        folder = self.written(example())
        code, out, _ = said(placement.main, folder)
        self.assertEqual(code, 0)
        page = (self.folder / "convert.html").read_text(encoding="utf-8")
        words = html.unescape(re.sub(r"<[^>]*>", " ", page))
        for sentence in placement.sentences(placement.read(folder)):
            self.assertIn(sentence, out)
            self.assertIn(sentence.split(" stay")[0][:60], words)
        self.assertIn("Within 0.1 nats of tiny: shown", words)
        self.assertNotRegex(page, r"(src|href)=\"(?!#)")
        widths = set(re.findall(r'viewBox="0 0 (\d+) ', page))
        self.assertEqual(widths, {"860", "520", "360"})
        self.assertEqual(page.count("layer 7: " + WORD), 4)  # two bars, drawn twice
        drawn = [float(x) for x in re.findall(r' (?:x|cx)="([-\d.]+)"', page)]
        self.assertTrue(all(0 <= x <= 860 for x in drawn))
        code, out, _ = said(placement.main, folder, "--json", "-o", self.folder / "page.html")
        self.assertEqual(json.loads(out)["choice"]["label"], "chosen")
        self.assertTrue((self.folder / "page.html").is_file())

    def test_texts_of_others(self):
        run = example()
        run["model"] = run["verdicts"][0] = MARKUP
        run["candidates"][1]["label"] = MARKUP
        said(placement.main, self.written(run))
        made = Elements((self.folder / "convert.html").read_text(encoding="utf-8"))
        self.assertEqual((made.names.count("script"), made.code), (1, []))
        self.assertNotIn("img", made.names)

    def test_bad_input(self):
        def changed(key, place, name, value):
            run = example()
            run[key][place][name] = value
            return run

        for run, why in (
                ([], "list indices"), ({"layers": 3}, "has no 'model'"),
                ({**example(), "layers": 0}, "layers = 0, must be"),
                (changed("candidates", 0, "role", "best"), "role = best, must be one of"),
                (changed("candidates", 1, "placement", ["full"]), "has 1 layers, must have 12"),
                (changed("scores", 2, "layer", 12), "scores.2.: layer = 12, must be in 0 to 11"),
                (changed("scores", 2, "kl", "x"), "kl = 'x', must be a number")):
            code, _, err = said(placement.main, self.written(run))
            self.assertEqual(code, 2)
            self.assertRegex(err, why)
            self.assertFalse((self.folder / "convert.html").exists())
        self.assertEqual(said(placement.main, self.folder / "none.json")[0], 2)
