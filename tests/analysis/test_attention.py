"""Reports about attention: what is read, compared, drawn and said."""

import json
import math
import pathlib
import xml.etree.ElementTree

from attnas.analyse import layer_json, table
from attnas.analysis.commands import attention
import numpy as np
from attnas.analysis import attention_figures as figures
from attnas.analysis.attention import read
from attnas.analysis.digest import BadInput
from scipy import stats
from python_tests import FolderTest, said

SEQUENCES, TOKENS, HEADS = 12, 20, 2


def estimate(values, shown=True) -> dict:
    """As nas-analyse writes it: NaN is null."""
    known = np.array([value for value in values if not math.isnan(value)])
    if not len(known):
        return {"mean": None, "low": None, "high": None, "n": 0, **({"values": [None] * len(values)} if shown else {})}
    margin = (stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known))
              if len(known) > 1 else math.nan)
    found = {"mean": known.mean(), "low": known.mean() - margin, "high": known.mean() + margin, "n": len(known)}
    if shown:
        found["values"] = [None if math.isnan(value) else value for value in values]
    return found


def statistic(heads) -> dict:
    """Of values (H, sequences)."""
    heads = np.asarray(heads, dtype=float)
    return {"layer": estimate(heads.mean(axis=0)), "heads": [estimate(head, shown=False) for head in heads]}


def example(kind: str) -> list:
    """A head's map, rows of i + 1 weights."""
    if kind == "previous":
        return [[0.0] * (i - 1) + [1.0, 0.0] if i else [1.0] for i in range(TOKENS)]
    if kind == "negative":
        return [[-0.5] + [1.5 / i] * i if i else [1.0] for i in range(TOKENS)]
    return [[1.0 / (i + 1)] * (i + 1) for i in range(TOKENS)]


def analysis(label="dot|softmax", shift=0.0, seed=5, **changes) -> dict:
    """Two layers of attention with a gate and one layer that is not looked into, in between."""
    random = np.random.default_rng(seed)

    def about(mean, spread=0.01):
        return mean + spread * random.standard_normal((HEADS, SEQUENCES))

    def layer(index):
        names = {"entropy_ratio": 0.6 + shift, "sink_mass": 0.35 if index else 0.1, "row_mass": 1.0,
                 "light_rows": 0.25 if index else 0.0, "mean_distance": 9.0, "score_sd": 2.0,
                 "previous_token": 0.9 if index == 0 else 0.1, "induction": 0.2}
        spread = {"row_mass": 0.0, "light_rows": 0.0}
        found = {name: statistic(about(mean, spread.get(name, 0.01)))
                 for name, mean in names.items()}
        found["distance_slope"] = statistic(np.full((HEADS, SEQUENCES), math.nan))
        return {"layer": index, "mixer": "attn", "statistics": found,
                "profile": [[None, *(0.3 / n for n in range(1, TOKENS))]] * HEADS,
                "gates": [{"name": "output_gate", "statistics": {"gate_mean": statistic(about(0.7))},
                           "histogram": [[0.0] * 10 + [0.1] * 10] * HEADS}],
                "example": [example("previous"), example("negative" if index else "uniform")]}

    return {"schema": 1, "run": "quickstart", "mechanism": label, "candidate": label,
            "replicate": 0, "weights": "kept", "corpus": "brown", "corpus_hash": "abc",
            "split": "test", "windows": list(range(SEQUENCES)), "token_seed": 1,
            "sequences": SEQUENCES, "length": TOKENS, "first_query": 8, "confidence": 0.95,
            "model": {"nll": estimate(3.0 + shift + 0.1 * random.standard_normal(SEQUENCES)),
                      "in_context_score": estimate(0.5 + 0.1 * random.standard_normal(SEQUENCES))},
            "layers": [layer(0), layer_json(1, {"mixer": "recurrent", "near": 8}), layer(2)], **changes}


def with_a_state(**changes) -> dict:
    """The same with a recurrent layer in the place of the last, whose weights have a scale of their own."""
    found = analysis(**changes)
    layer = found["layers"][2]
    layer["mixer"] = "recurrent"
    del layer["statistics"]["score_sd"]
    random = np.random.default_rng(1)
    for name, mean in {"state_used": 0.31, "half_life": 12.0, "beta_mean": 0.6, "beta_sd": 0.1}.items():
        layer["statistics"][name] = statistic(mean + 0.001 * random.standard_normal((HEADS, SEQUENCES)))
    return found


class Folder(FolderTest):
    """Each test has a folder of its own."""

    def write(self, name: str, what) -> pathlib.Path:
        """A folder with attention.json."""
        folder = self.folder / name
        folder.mkdir()
        text = what if isinstance(what, str) else json.dumps(what)
        (folder / "attention.json").write_text(text, encoding="utf-8")
        return folder

    def run_main(self, *arguments) -> tuple[int, str, str]:
        """Exit code and what was printed."""
        return said(attention.main, *arguments)


class Reading(Folder):
    def test_layers_heads_and_maps(self):
        found = read(self.write("a", analysis()))
        self.assertEqual([layer.index for layer in found.attention], [0, 2])
        self.assertEqual([layer.mixer for layer in found.layers], ["attn", "recurrent", "attn"])
        first = found.layers[0]
        self.assertEqual(first.maps.shape, (HEADS, TOKENS, TOKENS))
        self.assertTrue((np.triu(first.maps, 1) == 0).all())
        self.assertEqual(first.maps[0][5, 4], 1.0)
        self.assertAlmostEqual(first.maps[1][3, 2], 0.25)
        self.assertTrue(math.isnan(first.profile[0, 0]))
        self.assertTrue(math.isnan(first.statistics["distance_slope"].layer.mean))
        self.assertEqual(first.statistics["sink_mass"].layer.n, SEQUENCES)

    def test_says_what_is_wrong(self):
        with self.assertRaisesRegex(BadInput, "nas-analyse RUN MECHANISM writes one"):
            read(self.folder)
        for name, text in (("a", "{"), ("b", "[]"), ("c", '{"schema": 2, "layers": []}'),
                           ("d", '{"schema": 1, "layers": [{}], "mechanism": "x", "model": {}}')):
            with self.assertRaisesRegex(BadInput, "not an analysis of attention"):
                read(self.write(name, text))


class Drawing(Folder):
    def test_blocks_keep_thin_lines(self):
        weights = np.eye(200, k=-1)
        cells = figures.blocks(weights)
        self.assertEqual(cells.shape, (50, 50))
        self.assertTrue((np.diag(cells) == 1.0).all())
        self.assertEqual(cells[10, 20], 0.0)
        negative = np.zeros((65, 65))
        negative[64, 0] = -0.7
        self.assertEqual(figures.blocks(negative)[32, 0], -0.7)
        small = np.random.default_rng(1).random((5, 5))
        self.assertTrue((figures.blocks(small) == small).all())

    def test_all_pictures_are_files_of_their_own(self):
        self.write("a", analysis())
        code, out, _ = self.run_main(self.folder / "a", "-o", self.folder / "out")
        self.assertEqual(code, 0)
        names = {path.name for path in (self.folder / "out").glob("*.svg")}
        self.assertLessEqual({"maps.svg", "distance_0.svg", "distance_2.svg", "entropy_ratio.svg",
                              "sink_mass.svg", "output_gate_0.svg"}, names)
        self.assertIn(f"{len(names)} pictures", out)
        for path in (self.folder / "out").glob("*.svg"):
            root = xml.etree.ElementTree.fromstring(path.read_text(encoding="utf-8"))
            self.assertGreater(len(list(root.iter())), 8, path)
            self.assertNotIn("nan", path.read_text(encoding="utf-8"), path)


class Pages(Folder):
    def test_one_model(self):
        self.write("a", analysis())
        code, _, err = self.run_main(self.folder / "a")
        self.assertEqual((code, err), (0, ""))
        text = (self.folder / "a" / "attention.md").read_text(encoding="utf-8")
        for words in ("2 of 4 heads give more than 0.3 of their weight to the first token",
                      "of layer 0 looks at the token before with 0.9",
                      "less than 0.4", "25 % of them in layer 2", "Not looked into: layer 1 (near = 8).",
                      "seed 1 of run quickstart, weights kept"):
            self.assertIn(words, text)
        self.assertIn("<svg", (self.folder / "a" / "attention.html").read_text(encoding="utf-8"))
        self.assertIn("not looked into: layer 1 (near = 8)", table(analysis()))

    def test_a_recurrent_layer(self):
        self.write("a", with_a_state())
        code, _, err = self.run_main(self.folder / "a")
        self.assertEqual((code, err), (0, ""))
        text = (self.folder / "a" / "attention.md").read_text(encoding="utf-8")
        for words in ("0 of 2 heads give more than 0.3 of their weight to the first token",
                      "The state of layer 2 uses 0.310 [0.310, 0.310] of its rows and forgets half in 12.0 [12.0, 12.0] tokens.",
                      "mean of the delta rule's gate"):
            self.assertIn(words, text)
        page = (self.folder / "a" / "attention.html").read_text(encoding="utf-8")
        self.assertIn("what they do to values, written as weights", page)
        self.assertNotIn("Queries abstain", text)
        for name in ("state_used.svg", "beta_mean.svg", "distance_2.svg"):
            self.assertTrue((self.folder / "a" / name).is_file(), name)

    def test_says_what_cannot_be_read(self):
        code, _, err = self.run_main(self.folder / "nothing")
        self.assertEqual(code, 2)
        self.assertIn("no such file", err)


class SentencesTest(FolderTest):
    """Maps with tokens, from which a person chooses."""

    TOKENS = ["\n", "The", "<jury>", "said"]

    def sentence(self, **changes) -> dict:
        maps = [[[1.0], [0.5, 0.5], [0.1, 0.2, 0.7], [0.0, 0.1, 0.8, None]], [[1.0], [1.0, 0.0], [1.0, 0.0, 0.0], [-0.5, 1.0, 0.2, 0.3]]]
        return {"tokens": self.TOKENS, "layers": [{"layer": 1, "maps": maps}], **changes}

    def write(self, **changes) -> pathlib.Path:
        record = {"schema": 1, "mechanism": "m", "candidate": "m", "weights": "of model", "model": {},
                  "layers": [{"layer": 0, "mixer": "none"}, {"layer": 1, "mixer": "attn"}], "sentences": [self.sentence()]}
        (self.folder / "attention.json").write_text(json.dumps({**record, **changes}), encoding="utf-8")
        return self.folder

    def test_a_page_of_sentences_alone(self):
        self.assertEqual(said(attention.main, self.write())[0], 0)
        page = (self.folder / "attention.html").read_text(encoding="utf-8")
        self.assertIn("layer 1, head 1</option>", page)
        self.assertIn("\u21b5 The &lt;jury&gt; said</option>", page)
        data = page.split('type="application/json">')[1].split("</script>")[0]
        self.assertEqual(json.loads(data)[0]["tokens"], ["\u21b5", "The", "<jury>", "said"])
        self.assertNotIn("<jury>", page, "which a browser would take for an element")
        self.assertNotIn("Verdict", page)
        words = (self.folder / "attention.md").read_text(encoding="utf-8")
        self.assertIn("said at <jury> | 0.8", words)
        self.assertIn("said at The | 1", words)

    def test_weights_of_recurrent_layers_are_relative(self):
        folder = self.write(layers=[{"layer": 0, "mixer": "none"}, {"layer": 1, "mixer": "recurrent"}])
        page = attention.report(read(folder), "").html()
        data = page.split('type="application/json">')[1].split("</script>")[0]
        rows = json.loads(data)[0]["heads"][0]["rows"]
        self.assertEqual(rows[1], [0.5, 0.5], "the largest is 1")
        self.assertIn("shares of the largest weight of the head", page)
        small = self.sentence()
        small["layers"][0]["maps"] = [[[0.02 * (weight or 0.0) for weight in row] for row in head]
                                      for head in small["layers"][0]["maps"]]
        folder = self.write(layers=[{"layer": 1, "mixer": "recurrent"}], sentences=[small])
        data = attention.report(read(folder), "").html().split('type="application/json">')[1].split("</script>")[0]
        self.assertEqual(json.loads(data)[0]["heads"][0]["rows"][1], [0.5, 0.5])

    def test_beside_statistics(self):
        record = analysis(sentences=[self.sentence(), self.sentence()])
        (self.folder / "attention.json").write_text(json.dumps(record), encoding="utf-8")
        page = attention.report(read(self.folder), "").html()
        self.assertEqual(page.count("said</option>"), 2)
        self.assertLess(page.index('id="sentences"'), page.index('id="maps"'))

    def test_maps_belong_to_their_tokens(self):
        with self.assertRaisesRegex(BadInput, "not those of its tokens"):
            read(self.write(sentences=[self.sentence(tokens=["a"])]))
