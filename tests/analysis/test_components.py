"""Importance of components: exact shares, tests, ablations and what is said about them."""

import csv
import io
import itertools
import pathlib
import tempfile
import unittest
import warnings

import numpy as np
from attnas.analysis import factorial, noise, tables
from attnas.analysis.ablations import Study
from attnas.analysis.commands import components
from attnas.analysis.objectives import objective
from attnas.analysis.schema import OLD, schema
from digest_file import said_by, text_of
from fake_tables import OPTIONS, cell, functions, write_run, write_table
from python_tests import FolderTest, said

try:
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm
except ImportError:
    anova_lm = None

SMALL = {"similarity": ["dot", "cosine"], "gating": ["none", "output_gate"], "bias": ["bias", "no_bias"]}


def design(options, names=None) -> factorial.Factorial:
    genes = tables.genes(names or functions(options), schema(None).genes)
    return factorial.Factorial(genes.drop(columns="attention_dropout"), schema(None))


def values_of(names, effect) -> np.ndarray:
    """(f,) of a function of the options by gene."""
    rows = tables.genes(names, schema(None).genes).to_dict("records")
    return np.array([effect(row) for row in rows], dtype=float)


def shares(made, values) -> dict:
    return {effect.term: effect.share.point for effect in factorial.decompose(made, factorial.means(values), 50)}


class AddedComponents(unittest.TestCase):
    """A normalization that a record describes, squared_relu_norm, and an objective of its own."""

    SCHEMA = {
        "genes": [gene if gene["name"] != "normalization" else
                  {**gene, "options": [{"key": key, "label": key, "voids": ["temperature"]}
                                       for key in ("relu_norm", "squared_relu_norm")]}
                  for gene in OLD["genes"]],
        "objectives": {**OLD["objectives"],
                       "throughput": {"source": "measured", "maximise": True}},
    }
    SPACE = {"normalization": ["softmax", "squared_relu_norm"], "temperature": ["fixed", "learned", "per_query"]}

    def study(self, facts):
        names = functions(self.SPACE, self.SCHEMA)
        cells = {(name, seed): cell(10.0 + i + seed) for i, name in enumerate(names) for seed in range(2)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "small.table"
            write_table(path, cells, facts=facts)
            table = tables.load([str(path)])
            return Study(table, objective(table, "perplexity", None), None)

    def test_what_it_voids_counts_once(self):
        self.assertEqual(len(functions(self.SPACE, self.SCHEMA)), 4)
        study = self.study({"schema": self.SCHEMA})
        self.assertTrue(study.exact)
        self.assertEqual(study.factorial.weights.tolist(), [1, 1, 1, 3])
        self.assertEqual(study.names[study.baseline], "dot|softmax|none|fixed|bias|0")
        self.assertFalse(self.study({}).exact, "a record that says nothing of it")

    def test_its_sense_is_the_recorded_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "small.json"
            made = {(name, 0): cell(10.0) for name in functions(self.SPACE, self.SCHEMA)}
            for own in made.values():
                own["measured"]["throughput"] = {"value": 3.0}
            write_run(path, made, record_schema=self.SCHEMA)
            table = tables.load([str(path)])
        self.assertTrue(objective(table, "throughput", None).maximise)
        self.assertTrue(objective(table, "accuracy", None).maximise)
        self.assertFalse(objective(table, "perplexity", None).maximise)


class Decomposition(unittest.TestCase):
    def test_two_by_two_by_two_by_hand(self):
        # y = 10 + 3 a + 2 b + 1 ab with a, b = +-1: squares 9, 4, 1 of 14.
        names = functions(SMALL)
        sign = {"dot": -1, "cosine": 1, "none": -1, "output_gate": 1}

        def effect(row):
            a, b = sign[row["similarity"]], sign[row["gating"]]
            return 10 + 3 * a + 2 * b + a * b

        effects = factorial.decompose(design(SMALL), factorial.means(values_of(names, effect)[:, None]))
        found = {effect.term: effect.variance for effect in effects}
        self.assertEqual(len(found), 7)
        for term, variance in {("similarity",): 9, ("gating",): 4, ("bias",): 0,
                               ("similarity", "gating"): 1, ("gating", "bias"): 0}.items():
            self.assertAlmostEqual(found[term], variance, msg=term)
        self.assertAlmostEqual(sum(found.values()), 14)
        self.assertTrue(np.isnan(effects[0].p) and np.isnan(effects[0].share.low))

    def test_functions_stand_for_their_combinations(self):
        names = functions()
        made = design(OPTIONS)
        values = np.random.default_rng(1).normal(size=320)
        self.assertTrue(made.complete)
        self.assertEqual((made.combinations, len(names), made.weights.sum()), (384, 320, 384))
        genes = list(made.options)
        full = np.array([values[made.find(dict(zip(genes, options)))] for options in itertools.product(*made.options.values())])
        full = full.reshape([len(own) for own in made.options.values()])
        found = {effect.term: effect.variance for effect in factorial.decompose(made, factorial.means(values[:, None]))}
        self.assertAlmostEqual(sum(found.values()), full.var())
        at = [genes.index("normalization"), genes.index("temperature")]
        others = tuple(i for i in range(5) if i not in at)
        plane = full.mean(axis=others)
        rows, columns = (plane.mean(axis=i, keepdims=True) - plane.mean() for i in (1, 0))
        self.assertAlmostEqual(found["normalization",], (rows**2).mean())
        self.assertAlmostEqual(found["temperature",], (columns**2).mean())
        rest = plane - plane.mean() - rows - columns
        self.assertAlmostEqual(found["normalization", "temperature"], (rest**2).mean())

    @unittest.skipUnless(anova_lm, "statsmodels is not there")
    def test_agrees_with_statsmodels(self):
        random = np.random.default_rng(4)
        names = functions(SMALL)
        values = random.normal(size=(8, 3)) + values_of(names, lambda row: row["gating"] == "none")[:, None]
        data = tables.genes(names, schema(None).genes).loc[np.repeat(names, 3)].assign(y=values.ravel())
        expected = anova_lm(ols("y ~ C(similarity) * C(gating) * C(bias)", data).fit())
        # Without common effects of the seeds, which this model does not know.
        estimate = factorial.means(values)
        noise_of_all = values - values.mean(axis=1, keepdims=True)
        estimate = factorial.Means(values.mean(axis=1), np.full(8, 3), noise_of_all, (noise_of_all**2).sum() / 16, 16)
        for effect in factorial.decompose(design(SMALL), estimate):
            row = expected.loc[":".join(f"C({gene})" for gene in effect.term)]
            self.assertAlmostEqual(effect.f, row["F"])
            self.assertAlmostEqual(effect.p, row["PR(>F)"])
            self.assertAlmostEqual((effect.variance + effect.noise) * 24, row["sum_sq"])

    def test_missing_replicates(self):
        random = np.random.default_rng(5)
        values = random.normal(size=(8, 1)) + np.array([0.0, 3.0, -1.0])
        values[2, 1] = values[5, 0] = np.nan
        estimate = factorial.means(values)
        np.testing.assert_array_equal(estimate.count, [3, 3, 2, 3, 3, 2, 3, 3])
        self.assertEqual(estimate.freedom, 22 - 8 - 2)
        self.assertAlmostEqual(estimate.variance, 0.0)  # mechanism and seed say it all
        full = random.normal(size=(8, 1)) + np.zeros(3)
        np.testing.assert_allclose(factorial.means(full).mean, full[:, 0])


class LeastSquares(unittest.TestCase):
    @unittest.skipUnless(anova_lm, "statsmodels is not there")
    def test_agrees_with_statsmodels(self):
        random = np.random.default_rng(6)
        options = {"similarity": ["dot", "cosine", "additive"], "gating": ["none", "output_gate"],
                   "bias": ["bias", "no_bias"], "normalization": ["softmax", "sparsemax"]}
        names = sorted(random.choice(functions(options), 22, replace=False))
        values = random.normal(size=22)
        data = tables.genes(names, schema(None).genes).assign(y=values)
        terms = " + ".join(["C(similarity)", "C(normalization)", "C(gating)", "C(bias)"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = anova_lm(ols(f"y ~ ({terms}) ** 2", data).fit(), typ=2)
        found = factorial.least_squares(design(options, names), values)
        if found.most == 1:
            expected = anova_lm(ols(f"y ~ {terms}", data).fit(), typ=2)
        self.assertEqual(found.residual_freedom, expected.loc["Residual", "df"])
        for term in found.terms:
            row = expected.loc[":".join(f"C({gene})" for gene in term.term)]
            self.assertEqual(term.freedom, row["df"])
            self.assertAlmostEqual(term.f, row["F"])
            self.assertAlmostEqual(term.p, row["PR(>F)"])

    def test_pairs_and_a_covariate(self):
        names = functions(SMALL)[:7] * 4
        values = values_of(names, lambda row: 1.0 * (row["gating"] == "none"))
        dropout = np.repeat([0.0, 0.1, 0.2, 0.3], 7)
        random = np.random.default_rng(7)
        found = factorial.least_squares(design(SMALL, names), values + 5 * dropout
                                        + 0.01 * random.normal(size=28), {"attention_dropout": dropout})
        self.assertEqual(found.most, 2)
        clear = {term.term for term in found.terms if term.p_holm < 0.001}
        self.assertEqual(clear, {("gating",), ("attention_dropout",)})
        low, high = (found.option_means["gating", option].point for option in ("output_gate", "none"))
        self.assertAlmostEqual(high - low, 1.0, delta=0.02)


class Noise(unittest.TestCase):
    def test_components_by_hand(self):
        # Mechanisms 1 and 3, seeds -1 and +1, nothing else: the residual is 0.
        found = noise.noise(np.array([[0.0, 2.0], [2.0, 4.0]]))
        self.assertAlmostEqual(found.within, np.sqrt(2.0))  # MSW = 4 / 2
        self.assertAlmostEqual(found.paired, 0.0)
        self.assertTrue(np.isnan([found.gain, found.seed_f, found.seed_p]).all())
        self.assertAlmostEqual(found.one_way.point, (4 - 2) / (4 + 2))  # MSB = 4
        self.assertTrue(np.isnan(found.two_way.point))
        self.assertAlmostEqual(found.spearman[0], 1.0)

    def test_noise_that_grows_is_seen(self):
        random = np.random.default_rng(10)
        values = np.arange(1.0, 41.0)[:, None] * (1 + 0.2 * random.normal(size=(40, 3)))
        self.assertGreater(noise.noise(values).growth, 0.4)
        self.assertLess(noise.noise(np.log(values)).growth, 0.35)
        self.assertGreater(noise.noise(-values[:, ::-1], maximised=True).growth, 0.4, "with the values, not with what is minimised")

    def test_too_little(self):
        self.assertIsNone(noise.noise(np.array([[1.0, np.nan], [2.0, 3.0]])))
        random = np.random.default_rng(3)
        raced = 2 * random.normal(size=(40, 1)) + random.normal(size=(40, 5))
        whole = noise.noise(raced[:, :3])
        raced[6:, 3:] = np.nan
        self.assertEqual(noise.noise(raced), whole, "further seeds of the best are left out")
        self.assertIsNone(noise.noise(np.array([[1.0], [2.0]])))

    def test_ranks_among_the_best_agree_less_than_ranks_of_all(self):
        random = np.random.default_rng(4)
        values = 6 * random.random(size=(300, 1)) + random.normal(size=(300, 3))
        among = noise.agreement_among_best(values)
        self.assertEqual(len(among), 3)
        self.assertGreater(noise.noise(values).spearman[1], 0.7)
        self.assertLess(np.mean(among), 0.4)
        # Without noise all seeds rank alike; two seeds leave no pair to compare.
        exact = np.repeat(random.normal(size=(30, 1)), 3, axis=1)
        np.testing.assert_allclose(noise.agreement_among_best(exact), 1.0)
        self.assertEqual(noise.agreement_among_best(exact[:, :2]), [])

    def test_ladder(self):
        final = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
        curve = np.stack([final[::-1], final], axis=2)  # upside down first, right at the end
        seconds = np.broadcast_to([1.0, 4.0], curve.shape)
        first, last = noise.ladder(np.array([10, 40]), curve, seconds, final)
        self.assertEqual((first.step, first.cost, first.tau, first.regret), (10, 0.25, -1.0, 3.0))
        self.assertEqual((last.cost, last.tau, last.regret), (1.0, 1.0, 0.0))

    def test_a_lucky_training_is_judged_by_the_others(self):
        # Each of the two best looks best where it was lucky; the other replicate tells them apart.
        final = np.array([[1.0, 4.0], [3.0, 2.0], [9.0, 9.0]])
        rung, = noise.ladder(np.array([10]), final[..., None], np.ones((3, 2, 1)), final)
        self.assertEqual(rung.regret, 2.0)  # 4 for 2, and 3 for 1
        self.assertAlmostEqual(rung.tau, 1 / 3)

    def test_a_step_that_was_not_reached_counts_as_worst(self):
        final = np.array([[1.0], [2.0], [3.0]])
        curve = np.array([[[np.nan]], [[5.0]], [[6.0]]])
        rung, = noise.ladder(np.array([10]), curve, np.ones_like(curve), final)
        self.assertEqual(rung.regret, 1.0)

    def test_further_seeds_of_the_best_count_nowhere(self):
        random = np.random.default_rng(5)
        final = 2 * random.normal(size=(40, 1)) + random.normal(size=(40, 5))
        curve, seconds = np.stack([final + random.normal(size=final.shape), final], axis=2), np.ones((40, 5, 2))
        raced = np.where((np.arange(40)[:, None] < 6) | (np.arange(5) < 3), final, np.nan)
        self.assertEqual(noise.ladder(np.array([1, 2]), curve, seconds, raced),
                         noise.ladder(np.array([1, 2]), curve[:, :3], seconds[:, :3], final[:, :3]))
        self.assertEqual(noise.splits(raced, raced ** 3), noise.splits(final[:, :3], final[:, :3] ** 3))

    def test_splits(self):
        valid = np.array([[1.0, 2.0], [3.0, 3.5], [5.0, 4.0]])
        found = noise.splits(valid, valid + 1)
        self.assertEqual((found.mechanisms, found.best_is_best), (1.0, True))
        self.assertAlmostEqual(found.luck, 1.0)
        self.assertIsNone(noise.splits(valid, valid * np.nan))


class Program(FolderTest):
    def table(self, cells, write=write_table, name="x.table"):
        write(self.folder / name, cells)
        return str(self.folder / name)

    def cells(self, options=SMALL, seeds=3):
        random = np.random.default_rng(9)
        common = random.normal(size=seeds)

        def value(name):
            return 20 + 2 * ("cosine" in name) - 3 * ("output_gate" in name)

        return {(name, seed): cell(value(name) + common[seed] + 0.1 * random.normal())
                for name in functions(options) for seed in range(seeds)}

    def run_program(self, *arguments):
        code, _, err = said(components.main, *arguments, "-o", self.folder / "out")
        return code, err

    def written(self, name="components.md"):
        return (self.folder / "out" / name).read_text(encoding="utf-8")

    def rows(self, kind):
        return {row["name"]: row for row in csv.DictReader(io.StringIO(self.written("components.csv"))) if row["kind"] == kind}

    def test_a_full_table(self):
        self.assertEqual(self.run_program(self.table(self.cells())), (0, ""))
        share = self.rows("share")
        self.assertAlmostEqual(float(share["gating"]["value"]), 9 / 13, delta=0.02)
        self.assertAlmostEqual(float(share["similarity"]["value"]), 4 / 13, delta=0.02)
        self.assertLess(float(share["gating"]["p_holm"]), 1e-6)
        self.assertGreater(float(share["similarity x gating"]["p_holm"]), 0.05)
        text = self.written()
        self.assertIn("variance of test perplexity over all 8 combinations are those of gating", text)
        self.assertIn("Of its components, it is clearly worse without gating (by", text)
        ablations = {name: float(row["value"]) for name, row in self.rows("ablation").items()}
        for name, difference in ablations.items():
            if "gating" in name:
                self.assertAlmostEqual(difference, 3.0, delta=0.3, msg=name)
        path = list(self.rows("path"))
        self.assertEqual(path[0], "gating output_gate")
        self.assertIn("Pairing by seeds is worth", text)
        for name in ("shares", "main_effects", "ablations", "path", "fidelity", "regret"):
            self.assertIn("</svg>", self.written(f"{name}.svg"))

    def test_further_seeds_of_the_best_are_not_taken_for_seeds_without_noise(self):
        cells = self.cells()
        best = [key for key in cells if "output_gate" in key[0]][:3]
        self.assertEqual(self.run_program(self.table(cells)), (0, ""))
        base = {kind: self.rows(kind) for kind in ("share", "option", "held_out", "icc")}
        self.assertNotIn("seeds that nearly all", self.written())
        self.assertEqual(self.run_program(self.table({**cells, **{(best[0][0], seed): cells[best[0]] for seed in range(3, 9)}},
                                                     name="raced.table")), (0, ""))
        self.assertEqual({kind: self.rows(kind) for kind in base}, base)
        self.assertIn("are of the 3 seeds that nearly all mechanisms have", self.written())

    def test_a_space_too_large_to_list(self):
        random = np.random.default_rng(4)
        genes = ["gating", "attention_dropout", *(f"gene{i}" for i in range(11)), "window"]
        choices, cells = {}, {}
        for number in range(60):
            chosen = ["none" if number == 0 else random.choice(["none", "highway"]), "0.1",
                      *("0" if number == 0 else random.choice(["0", "4"]) for _ in range(11))]
            # What the space fixes reads as its default where it has no effect.
            chosen.append("32" if chosen[2] == "4" else "64")
            name = f"model{{norm=rms}}/2*attn{{{','.join(chosen)}}}"
            choices[name] = chosen
            cells[name, 0] = cell(20 - 3 * (chosen[0] == "highway") + 0.1 * random.normal())
        baseline = next(iter(choices))
        file = self.folder / "s.json"
        write_run(file, cells)
        digest = said_by(file)
        digest["models"] = {"genes": genes, "choices": choices, "differences": {}}
        digest["config"]["space"] = {"window": 32}
        digest["baseline"] = {"candidate": baseline, "evaluations": []}
        file.write_text(text_of(digest), encoding="utf-8")
        self.assertEqual(self.run_program(file), (0, ""))
        text = self.written()
        self.assertIn(f"These options make 4,096 combinations, of which {len(choices)} functions "
                      "have been recorded: there is no exact decomposition, but main effects by "
                      "least squares over the mechanisms that were evaluated, with intervals", text)
        self.assertIn("clearly at work: gating", text)
        self.assertIn("better than the baseline by", text)
        self.assertLess(float(self.rows("type_two")["gating"]["p_holm"]), 1e-6)

    def test_missing_cells_are_named(self):
        cells = self.cells()
        first = next(iter(cells))
        cells[first] = cell(0.0, status="diverged")
        self.assertEqual(self.run_program(self.table(cells)), (0, ""))
        self.assertIn("Cells without a value: 1 of 24", self.written())
        self.assertIn(f"{first[0]}, replicate 0: diverged", self.written("components.html"))
        self.assertEqual(len(self.rows("share")), 7)

    def test_one_replicate_tests_nothing(self):
        self.assertEqual(self.run_program(self.table(self.cells(seeds=1))), (0, ""))
        self.assertIn("There is one value of each mechanism: nothing can be tested", self.written())
        self.assertEqual({row["p"] for row in self.rows("share").values()}, {""})
        self.assertNotIn("tau", self.written().split("## Which")[0])
        self.assertIn("there is one seed, whose luck counts", self.written("fidelity.svg"))

    def test_no_baseline(self):
        cells = {key: own for key, own in self.cells().items() if not key[0].startswith("dot")}
        self.assertEqual(self.run_program(self.table(cells)), (0, ""))
        self.assertIn("The baseline (dot, softmax, none, fixed, bias) has not been recorded", self.written())
        other = "cosine|softmax|none|fixed|bias|0"
        self.assertEqual(self.run_program(self.table(cells), "--baseline", other), (0, ""))
        self.assertTrue(self.rows("ablation"))

    OPTIONS = {"normalization": {"softmax": [], "relu_norm": ["temperature"]}, "pattern": {"full": ["window"], "window": []}}
    SCHEMA = {"genes": [{"name": gene, "paper": gene != "pattern", "options": [{"key": key, "label": key, "voids": voids}
                         for key, voids in options.items()]} for gene, options in OPTIONS.items()]}

    def layers_in_turn(self, without: str = ""):
        """Writes a run over a cycle: in slot 0 a full factorial of 16 combinations, 9 functions; the
        window of 8 gains 3 and relu_norm costs 1; the baseline sees all keys."""
        genes = [f"slot0.{name}" for name in ("normalization", "temperature", "pattern", "window")]
        choices, cells, asks = {}, {}, []
        for normalization, temperature in (("softmax", "fixed"), ("softmax", "learned"), ("relu_norm", None)):
            for pattern, window in (("full", None), ("window", "4"), ("window", "8")):
                name = f"{normalization}{temperature or ''}/{pattern}{window or ''}"
                if name == without:
                    continue
                choices[name] = [normalization, temperature, pattern, window]
                value = 20 - 3 * (window == "8") + (normalization == "relu_norm")
                asks.append((len(asks) // 3, "|".join([normalization, temperature or "learned", pattern, window or "4"]), value))
                for seed in range(2):
                    cells[name, seed] = cell(value + 0.01 * seed)
        file = self.folder / "layers.json"
        write_run(file, cells, asks, record_schema=self.SCHEMA)
        digest = said_by(file)
        names = list(choices)
        digest["models"] = {"genes": genes, "choices": choices, "differences": {name: f"differs{i}" for i, name in enumerate(names)}}
        digest["genes"] = [{"name": gene, "options": []} for gene in genes]
        for ask, name in zip(digest["asks"], names):
            ask["candidate"] = name
        digest["baseline"] = {"candidate": "softmaxfixed/full", "evaluations": []}
        file.write_text(text_of(digest), encoding="utf-8")
        return file

    def test_genes_that_are_not_applicable(self):
        file = self.layers_in_turn()
        table = tables.load([str(file)])
        study = Study(table, objective(table, "perplexity", None), None)
        self.assertTrue(study.exact)
        self.assertEqual(study.factorial.combinations, 16)
        self.assertEqual(study.factorial.weights.sum(), 16)
        self.assertEqual(study.factorial.voided, ["slot0.temperature", "slot0.window"])
        # Of 16 combinations 8 have a window: half of the mean difference of 3 is the main effect.
        self.assertAlmostEqual(study.option_mean("slot0.window", "4").point - study.option_mean("slot0.window", "8").point, 1.5)
        best = study.winners[0]
        self.assertEqual([(each.gene, each.option) for each in best.ablations], [("slot0.pattern", "full")], "the baseline has no window")
        self.assertAlmostEqual(best.ablations[0].difference.point, 3.0)
        self.assertEqual([step.gene for step in study.path], ["slot0.pattern"])
        self.assertEqual(self.run_program(file), (0, ""))
        text = self.written()
        self.assertIn("slot0.temperature and slot0.window are not applicable to mechanisms in which "
                      "other options leave no effect to choose", text)
        self.assertIn("Best mean: differs2 with", text)
        self.assertIn("named by what differs from the baseline softmaxfixed/full.", text)

    def test_functions_of_genes_that_are_not_applicable(self):
        file = self.layers_in_turn(without="relu_norm/full")
        self.assertEqual(self.run_program(file), (0, ""))
        text = self.written()
        self.assertIn("Of 9 functions that these options make, 1 have not been recorded", text)
        self.assertIn("slot0.temperature and slot0.window are not applicable", text)
        self.assertIn("relu_norm|*|full|*", self.written("components.html"))

    def noisy(self, effect, scale=1.0):
        """Seeds that do more to all mechanisms than these differ, whose means differ by less than chance lets them but for one effect."""
        names = functions(SMALL)
        noise_of = np.random.default_rng(4).normal(size=(len(names), 3))
        values = 20 + noise_of - noise_of.mean(axis=1, keepdims=True) + [-3, 0, 3]
        return {(name, seed): cell(scale * (values[i, seed] + effect * ("cosine" in name)))
                for i, name in enumerate(names) for seed in range(3)}

    def test_shares_below_nothing_are_explained(self):
        self.run_program(self.table(self.noisy(effect=0)))
        self.assertIn("over all 8 combinations has no shares: it is no more than the noise's.", self.written())
        self.assertEqual(self.run_program(self.table(self.noisy(effect=2))), (0, ""))
        text = self.written()
        self.assertRegex(text, r"Main effects together: .* below 0 means that none is shown, and then others may exceed 100 %\.")
        self.assertRegex(text, r"none of its variance is shown to be the mechanism's \(ICC -0\.\d\d\)")
        self.run_program(self.table(self.cells()))
        self.assertNotIn("none is shown", self.written())

    def test_values_too_large_to_be_squared_have_a_page_without_warnings(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(self.run_program(self.table(self.noisy(2, 1e200))), (0, ""))
        self.assertEqual([str(each.message) for each in caught], [])
        text = self.written()
        self.assertIn("has no shares: values are too large to be squared.", text)
        self.assertIn("how much of its variance is the mechanism's is not known", text)
        self.assertNotRegex(text, r"never|nan %|\d{30}")

    def test_refusals(self):
        path = self.table(self.cells())
        for arguments, words in (
            ([path, "--objective", "speed"], "no speed; recorded are on the valid split "
             "accuracy, nll, perplexity; on the test split nll, perplexity"),
            ([path, "--objective", "accuracy", "--split", "test"], "no accuracy on the test split"),
            ([path, "--baseline", "x"], "--baseline x: not among the 8 mechanisms"),
            ([self.folder / "no"], "no such file; give a table")):
            code, error = self.run_program(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(words, error)
            self.assertFalse((self.folder / "out").exists())

    def test_nothing_to_compare(self):
        cells = {("dot|softmax|none|fixed|bias|0", seed): cell(10.0) for seed in range(3)}
        code, error = self.run_program(self.table(cells))
        self.assertEqual(code, 2)
        self.assertIn("1 of 1 mechanisms have a test perplexity, and these differ in no gene of a space", error)
