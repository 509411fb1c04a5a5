"""Whether ranks transfer: numbers against what is known by hand or by simulation, what is said of
them, and what is written or refused."""

import csv
import io
import pathlib

import numpy as np
import pandas as pd
from attnas.analysis import tables, transfer
from studies import transfer as command
from attnas.analysis.statistics import kendall
from fake_tables import cell, functions, write_run, write_table
from scipy import stats
from python_tests import FolderTest, said

NAMES = functions()
FAMILIES = np.array(["|".join(name.split("|")[:2]) for name in NAMES])


def cells(means, seeds=3, noise=0.02, seed=0, first=0, names=None) -> dict:
    """A made-up setting: logarithms of perplexities around means, `seeds` of each or for each."""
    generator = np.random.default_rng(seed)
    counts = np.broadcast_to(seeds, len(means))
    return {(name, first + r): cell(float(np.exp(mean + noise * generator.normal())))
            for name, mean, count in zip(names or NAMES, means, counts) for r in range(count)}


class Settings(FolderTest):
    def table(self, name, made) -> str:
        path = self.folder / f"{name}.table"
        write_table(path, made)
        return str(path)

    def matched(self, first, second, value="nll") -> transfer.Matched:
        return transfer.matched(*(tables.load([self.table(name, made)]) for name, made in
                                  (("first", first), ("second", second))), value)

    def found(self, first, second, top=10) -> transfer.Transfer:
        what = self.matched(first, second)
        return transfer.Transfer(what.sides, top, redraws=400, families=what.families)

    def said(self, first, second, top=10) -> list[str]:
        what = self.matched(first, second)
        return command.verdict(what, transfer.Transfer(what.sides, top, redraws=400, families=what.families))

    def run_script(self, *arguments) -> tuple[int, str, str]:
        return said(command.main, *arguments, "-o", self.folder / "out")


class Numbers(Settings):
    def test_without_a_second_seed_nothing_is_beyond_noise(self):
        made = cells(range(1, 13), seeds=1, noise=0)
        turned = cells(range(12, 0, -1), seeds=1, noise=0)
        alike = cells(range(2, 14), seeds=1, noise=0)
        self.assertIn("is not shown to guide", self.said(made, alike)[0])
        self.assertIn("is not shown to guide", self.said(made, turned)[0])

    def test_few_mechanisms_by_hand(self):
        # Six, two neighbours exchanged: 14 of 15 pairs alike.
        found = self.found(cells([1, 2, 3, 4, 5, 6], noise=0), cells([1, 3, 2, 4, 5, 6], noise=0))
        self.assertAlmostEqual(found.tau.interval.point, 13 / 15)
        self.assertAlmostEqual(found.alike, 14 / 15)
        self.assertAlmostEqual(found.tau.p, stats.kendalltau(
            range(6), [0, 2, 1, 3, 4, 5], method="exact").pvalue)
        self.assertEqual((found.top, found.overlap), (3, (3, 3, 3)))
        self.assertAlmostEqual(found.chance, 1.5)
        self.assertAlmostEqual(found.overlap_p, 1 / 20)
        self.assertEqual([chosen.place.point for chosen in found.chosen], [1, 1])
        # Without noise halves agree wholly, and there is nothing to correct for.
        self.assertEqual(found.sides[0].halves[0].point, 1.0)
        self.assertAlmostEqual(found.ceiling, 1.0)
        self.assertAlmostEqual(found.corrected.point, 13 / 15)

    def test_chosen_in_one_and_judged_in_the_other(self):
        found = self.found(cells([1, 2, 3, 4, 5], noise=0), cells([4, 1, 5, 2, 3], noise=0))
        first, second = found.chosen
        self.assertEqual((first.row, first.place.point, second.row, second.place.point), (0, 4, 1, 2))
        self.assertAlmostEqual(first.loss, 3.0)
        self.assertAlmostEqual(second.loss, 1.0)

    def test_halves_and_correction_recover_what_noise_hides(self):
        # True correlation 0.8, reliabilities of means 0.75 and 5/6: normal, as the correction assumes.
        generator = np.random.default_rng(11)
        a, b = [], []
        for _ in range(12):
            true = generator.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 120)
            sides = [transfer.Side(str(i), true[:, i:i + 1] + generator.normal(0, 1, (120, seeds)))
                     for i, seeds in enumerate((3, 5))]
            a.append([side.halves[1] for side in sides])
            made = transfer.Transfer(sides, 10, redraws=1)
            b.append([made.tau.interval.point, made.corrected.point, made.ceiling])
        np.testing.assert_allclose(np.mean(a, axis=0), [0.75, 5 / 6], atol=0.03)
        rho = np.sqrt(0.75 * 5 / 6)
        expected = [2 / np.pi * np.arcsin(each) for each in (0.8 * rho, 0.8, rho)]
        np.testing.assert_allclose(np.mean(b, axis=0), expected, atol=0.03)

    def test_interval_over_seeds_holds_what_other_seeds_give(self):
        # These very mechanisms measured again: about 95 of 100 intervals hold the expected tau.
        generator = np.random.default_rng(7)
        true = generator.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 60)

        def measured():
            return [transfer.Side("", true[:, i:i + 1] + generator.normal(0, 0.4, (60, 4)))
                    for i in (0, 1)]

        again = [stats.kendalltau(*(side.mean for side in measured())).statistic for _ in range(400)]
        held = []
        for _ in range(60):
            interval = transfer.Transfer(measured(), 10, redraws=100).tau_of_seeds
            self.assertTrue(interval.low < interval.point < interval.high)
            held.append(interval.low <= np.mean(again) <= interval.high)
        self.assertGreater(np.mean(held), 0.85)

    def test_redrawn_means_have_the_spread_of_means(self):
        side = transfer.Side("", np.array([[1.0, 2.0, 6.0], [1.0, 3.0, np.nan], [0.0, 0.0, 0.0]]))
        drawn = side.redrawn(2000, np.random.default_rng(1))
        np.testing.assert_allclose(drawn.var(axis=0), [7 / 3, 2 / 2, 0.0], rtol=0.08)
        np.testing.assert_allclose(drawn.mean(axis=0), [3, 2, 0], atol=0.12)

    def test_unequal_numbers_of_seeds_and_runs_of_a_retest(self):
        path = self.folder / "few.json"
        write_run(path, cells(range(8), seeds=[1, 2, 3, 3, 3, 3, 3, 5], first=1000000))
        read = [tables.load([self.table("many", cells(range(20)))]), tables.load([str(path)])]
        what = transfer.matched(*read, "nll")
        self.assertEqual(what.sides[1].seeds.tolist(), [1, 2, 3, 3, 3, 3, 3, 5])
        found = transfer.Transfer(what.sides, 10)
        self.assertTrue(np.isnan(found.tau_of_seeds.low))
        said = " ".join(command.verdict(what, found))
        self.assertIn("Not every mechanism of few has two seeds", said)
        self.assertIn("few (8, 1 to 5 seeds)", said)

    def test_more_accuracy_is_better(self):
        made = [cells(range(6), seed=i) for i in range(2)]
        for own in made:
            for i, name in enumerate(NAMES[:6]):
                for r in range(3):
                    own[name, r]["curve"][-1]["valid"]["correct"] = 900 - 100 * i
        what = self.matched(*made, value="accuracy")
        self.assertEqual(what.sides[0].order[0], 0)
        self.assertAlmostEqual(what.natural(what.sides[0].mean[0]), 0.9)

    def test_a_failed_training_run_fails_its_mechanism(self):
        broken = cells(range(6))
        broken[NAMES[2], 1] = cell(0.0, status="diverged")
        what = self.matched(cells(range(6)), broken)
        self.assertEqual((len(what.names), what.failed), (5, [NAMES[2]]))
        self.assertIn(f"Left out, since a training run failed in one of the two: {NAMES[2]}.",
                      self.said(cells(range(6)), broken))

    def test_all_divisions_into_halves(self):
        self.assertEqual([len(transfer._divisions(n)) for n in (2, 3, 4, 5, 10, 11)],
                         [1, 3, 3, 10, 126, 126])


def by_family(effects, within=0.01) -> np.ndarray:
    """Means of all NAMES: an effect for each family in the order of names, and little of their own."""
    _, own = np.unique(FAMILIES, return_inverse=True)
    return np.asarray(effects)[own] + within * np.arange(len(NAMES)) / len(NAMES)


class Families(Settings):
    def test_interval_is_the_jackknifes_without_one_family_each(self):
        generator = np.random.default_rng(4)
        groups = np.repeat(list("abcdefg"), [1, 2, 3, 4, 5, 6, 7])
        a = np.round(2 * generator.normal(size=28)) / 2  # some are equal
        b = np.round(a + generator.normal(size=28))
        tau = stats.kendalltau(a, b).statistic
        pseudo = 7 * tau - 6 * np.array([stats.kendalltau(a[groups != one], b[groups != one]).statistic
                                         for one in "abcdefg"])
        margin = stats.t.ppf(0.975, 6) * pseudo.std(ddof=1) / np.sqrt(7) / (1 - tau**2)
        np.testing.assert_allclose(kendall(a, b, groups=groups),
                                   [tau, *np.tanh(np.arctanh(tau) + [-margin, margin])])
        np.testing.assert_allclose(kendall(a, b, groups=range(28)), kendall(a, b))
        # Of 8 families that are ordered alike wholly, 4 disjoint pairs agree.
        np.testing.assert_allclose(kendall(range(24), range(24), groups=np.repeat(range(8), 3)),
                                   [1, 2 * 0.025 ** (1 / 4) - 1, 1])
        self.assertTrue(np.isnan(kendall(a, b, groups=np.repeat([0, 1, 2], [9, 9, 10]))[1:]).all())

    def test_interval_holds_what_other_families_give(self):
        # 12 families of 8 that hardly vary within: mechanisms are far too sure, families are not.
        generator = np.random.default_rng(8)
        families = np.repeat(range(12), 8)
        found = []
        for _ in range(150):
            effects = generator.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 12)[families]
            a, b = (effects + 0.2 * generator.normal(size=effects.shape)).T
            found.append(transfer.Tau(a, b, families))
        true = np.mean([tau.interval.point for tau in found])
        held = [[low <= true <= high for _, low, high in (tau.interval, tau.of_families)] for tau in found]
        of_mechanisms, of_families = np.mean(held, axis=0)
        self.assertLess(of_mechanisms, 0.75)
        self.assertGreater(of_families, 0.88)

    def test_families_are_those_of_equal_similarity_and_normalization(self):
        def families(names, columns=None):
            columns = columns or ["similarity", "normalization", "gating", "temperature", "bias", "seed"]
            genes = pd.DataFrame([[None] * len(columns)] * len(names), columns=columns, index=names)
            return transfer._families(genes)

        self.assertEqual(families(NAMES).tolist(), FAMILIES.tolist())
        one_each = [NAMES[FAMILIES.tolist().index(family)] for family in sorted({*FAMILIES})]
        self.assertIsNone(families(one_each))
        self.assertEqual(len(np.unique(families([*one_each, NAMES[1]]))), 16)
        five = [name for name, family in zip(NAMES, FAMILIES) if family in sorted({*FAMILIES})[:5]]
        self.assertIsNone(families(five))
        self.assertIsNone(families([f"attn{{window={i}}}" for i in range(40)]))
        self.assertIsNone(families(NAMES, ["mixer", "normalization", "c", "d", "e", "f"]))
        self.assertIsNone(self.matched(cells(range(30)), cells(range(30), seed=1)).families)

    def test_many_mechanisms_of_few_unrelated_families_do_not_guide(self):
        first = np.arange(16.0)
        second = first[np.random.default_rng(0).permutation(16)]
        found = self.found(cells(by_family(first), seeds=2), cells(by_family(second / 5), seeds=2, seed=1))
        self.assertLess(found.tau.p, 0.001)
        self.assertNotEqual(np.sign(found.tau.of_families.low), np.sign(found.tau.of_families.high))
        self.assertEqual((found.tau.sign, found.tau.families), (0, 16))
        self.assertLess(found.corrected.low, found.tau.interval.low)
        words = command.guidance(found)
        self.assertTrue(words.startswith("first is not shown to guide a search on second, and the "))
        self.assertRegex(words, r"\(Kendall's tau \S+ \[\S+, \S+\] over 16 families\)")

    def test_families_ordered_alike_may_guide_and_opposed_ones_mislead(self):
        effects = np.arange(16.0)
        effects[[4, 5]] = effects[[5, 4]]
        first = cells(by_family(np.arange(16.0)), seeds=2)
        for sign, words in ((1, "may guide a search on second, and"), (-1, "misleads a search on second")):
            said = self.said(first, cells(by_family(sign * effects / 5), seeds=2, seed=1))
            self.assertTrue(said[0].startswith(f"first {words}"), said[0])
            self.assertIn("Those of equal similarity and normalization are one family", said[1])

    def test_families_that_all_weigh_the_same_are_no_evidence(self):
        # Tau is below 0 whichever family is left out, and the same.
        sides = [transfer.Side(label, np.repeat(order, 3)[:, None] + 0.01 * np.tile(range(3), 8)[:, None] * turn + np.zeros(2))
                 for label, order, turn in (("a", range(8), 1), ("b", [4, 5, 6, 7, 0, 1, 2, 3], -1))]
        found = transfer.Transfer(sides, 4, redraws=10, families=np.repeat(range(8), 3))
        self.assertLess(found.tau.of_families.point, -0.1)
        self.assertEqual(found.tau.sign, 0)
        self.assertIn("a is not shown to guide a search on b", command.guidance(found))

    def test_too_few_families_of_the_better_half_are_no_evidence(self):
        families = np.repeat(range(6), 4)
        sides = [transfer.Side("", np.arange(24.0)[:, None] + np.zeros(2)) for _ in range(2)]
        half = transfer.Transfer(sides, 4, redraws=1, families=families).better_half[0]
        self.assertEqual((half.sign, half.families), (0, 3))
        self.assertEqual(str(half), "1.00 over 3 families, too few for an interval")

    def test_the_best_that_are_shared_count_by_family(self):
        def found(order, families):
            sides = [transfer.Side("", np.asarray(own, dtype=float)[:, None]) for own in (range(80), order)]
            return transfer.Transfer(sides, 8, redraws=400, families=families)

        same = [*range(80)]
        # All the best of one family, or of eight.
        one, eight = found(same, np.repeat(range(8), 10)), found(same, np.tile(range(8), 10))
        self.assertLess(one.overlap_p, 1e-9)
        self.assertGreater(one.overlap_families_p, 0.1)
        self.assertAlmostEqual(eight.overlap_families_p, 1 / 256)
        self.assertEqual((one.shares, eight.shares), (False, True))
        added = [8 * 0.9**2 + 2 * 0.1**2, *[10 * 0.1**2] * 7]  # 8 of 80 are best: a share of 0.1
        self.assertAlmostEqual(one.overlap_families_p,
                               stats.ttest_1samp(added, 0, alternative="greater").pvalue)
        self.assertFalse(found(same[::-1], np.tile(range(8), 10)).shares)
        self.assertIsNone(found(same, None).overlap_families_p)


class Words(Settings):
    def test_the_same_order_may_guide(self):
        said = self.said(cells(np.arange(40.0)), cells(np.arange(40.0), seed=1))
        self.assertTrue(said[0].startswith(
            "first may guide a search on second, and the other way round: 100 % of all pairs"))

    def test_the_opposite_order_misleads(self):
        said = self.said(cells(np.arange(40.0)), cells(-np.arange(40.0) / 10))
        self.assertTrue(said[0].startswith(
            "first misleads a search on second beyond noise, and the other way round: "))

    def test_unrelated_orders_do_not_guide(self):
        order = np.random.default_rng(3).permutation(40)
        said = self.said(cells(np.arange(40.0)), cells(order / 10))
        self.assertTrue(said[0].startswith(
            "first is not shown to guide a search on second, and the other way round: "))

    def test_what_is_bad_may_transfer_and_what_is_good_not(self):
        # The worse half keeps its order, the better one is opposed.
        made = cells(np.concatenate([np.arange(20)[::-1], np.arange(20, 40)]) / 10)
        found = self.found(cells(np.arange(40.0)), made)
        self.assertLess(found.better_half[0].interval.point, 0)
        self.assertTrue(self.said(cells(np.arange(40.0)), made)[0].startswith(
            "first may say what a search on second can leave out, but not beyond noise what is best "
            "there, and the other way round: "))

    def test_agreement_between_families_is_told_from_that_within_them(self):
        # Families keep their order, mechanisms of one are opposed.
        base = np.repeat(np.arange(8.0), 5)
        inside = np.tile(np.arange(5.0), 8) / 100
        families = np.repeat([f"family {i}" for i in range(8)], 5)
        sides = [transfer.Side("one", (base + inside)[:, None]), transfer.Side("other", (base - inside)[:, None])]
        found = transfer.Transfer(sides, 4, redraws=1, families=families)
        self.assertEqual(found.between.interval.point, 1.0)
        self.assertAlmostEqual(found.within.point, -1.0)
        alike = transfer.Transfer([sides[0], sides[0]], 4, redraws=1, families=families)
        self.assertAlmostEqual(alike.within.point, 1.0)
        mechanisms = transfer.Transfer(sides, 4, redraws=1)
        self.assertIsNone(mechanisms.between)
        self.assertIsNone(mechanisms.within)
        few = transfer.Transfer([transfer.Side(side.label, side.values[:15]) for side in sides], 4, redraws=1,
                                families=families[:15])
        self.assertIsNone(few.within, "three families are too few for an interval")

    def test_what_is_mostly_noise_is_not_corrected(self):
        made = cells(np.arange(40.0) / 40, noise=3.0)
        found = self.found(cells(np.arange(40.0) / 20), made)
        self.assertIsNone(found.corrected)
        self.assertLess(found.ceiling, 0.7)
        self.assertIn("tau is not corrected for it, since noise is more than half of what second "
                      "measured.", " ".join(self.said(cells(np.arange(40.0) / 20), made)))

    def test_ties_at_the_last_place_are_named(self):
        said = self.said(cells([0, 1, 1, 2, 3, 4], noise=0), cells(range(6)), top=2)
        self.assertIn("In first mechanisms of equal mean stand on both sides of place 2: which of "
                      "them count as best is arbitrary.", said)


class Script(Settings):
    def test_it_writes_what_it_says(self):
        a = self.table("recall", cells(np.arange(30.0) / 10))
        b = self.table("text", cells(np.arange(30.0) / 5, seeds=2, seed=4))
        code, out, err = self.run_script(a, b, "--value", "test_nll", "--top", "5")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("recall may guide a search on text", out)
        folder = self.folder / "out"
        self.assertEqual({file.name for file in folder.iterdir()},
                         {"transfer.html", "transfer.md", "transfer.csv", "mechanisms.csv",
                          "ranks.svg"})
        rows = {row["name"]: row for row in csv.DictReader(io.StringIO(
            (folder / "transfer.csv").read_text(encoding="utf-8")))}
        self.assertEqual((rows["mechanisms"]["value"], rows["top"]["value"]), ("30", "5"))
        self.assertEqual(rows["tau_mechanisms"]["value"], "1")
        mechanisms = list(csv.DictReader(io.StringIO(
            (folder / "mechanisms.csv").read_text(encoding="utf-8"))))
        self.assertEqual(len(mechanisms), 30)
        self.assertEqual((mechanisms[0]["a_seeds"], mechanisms[0]["b_seeds"]), ("3", "2"))
        self.assertEqual(mechanisms[0]["a_place"], "1")
        text = (folder / "transfer.md").read_text(encoding="utf-8")
        self.assertIn("![ranks](ranks.svg)", text)
        self.assertIn("--top 5", text)
        picture = (folder / "ranks.svg").read_text(encoding="utf-8")
        self.assertEqual(picture.count("<circle"), 30 + 3)

    def test_families_reach_the_page_and_the_numbers(self):
        generator = np.random.default_rng(5)
        a = self.table("a", cells(by_family(generator.normal(size=16)), seeds=2))
        b = self.table("b", cells(by_family(generator.normal(size=16)), seeds=2, seed=1))
        self.assertEqual(self.run_script(a, b)[::2], (0, ""))
        folder = self.folder / "out"
        rows = {row["name"]: row for row in csv.DictReader(io.StringIO(
            (folder / "transfer.csv").read_text(encoding="utf-8")))}
        self.assertEqual(rows["families"]["value"], "16")
        self.assertEqual(rows["tau_families"]["value"], rows["tau_mechanisms"]["value"])
        self.assertLess(float(rows["tau_families"]["low"]), float(rows["tau_mechanisms"]["low"]))
        self.assertGreater(float(rows["better_half_families_a"]["high"]), float(rows["better_half_a"]["high"]))
        self.assertNotEqual(rows["overlap_families_p"]["value"], "")
        text = (folder / "transfer.md").read_text(encoding="utf-8")
        for words in ("| tau, interval over families |", "| tau, interval over mechanisms |", "- Over families",
                      "over families p = "):
            self.assertIn(words, text)

    def test_options_are_left_out(self):
        a = self.table("a", cells(by_family(np.arange(16.0)), seeds=2))
        b = self.table("b", cells(by_family(np.arange(16.0)), seeds=2, seed=1))
        left = [name for name in NAMES if not {"dot", "softmax"} & {*name.split("|")}]
        self.assertTrue(any("silu_dot" in name for name in left))
        code, out, _ = self.run_script(a, b, "--without", "dot", "--without", "softmax", "--without", "dot")
        self.assertEqual(code, 0)
        words = f"the {len(NAMES) - len(left)} mechanisms with dot or softmax"
        out = " ".join(out.replace("\u00a0", " ").split())
        self.assertIn(f"Compared are {len(left)} mechanisms", out)
        self.assertIn(f"of their seeds; left out are {words}. Those of", out)
        text = (self.folder / "out" / "transfer.md").read_text(encoding="utf-8")
        self.assertIn("# a and b, without dot or softmax: do ranks transfer?", text)
        self.assertIn(f"- left out: {words}", text.partition("## How this was made")[2])
        names = [row["mechanism"] for row in csv.DictReader(io.StringIO(
            (self.folder / "out" / "mechanisms.csv").read_text(encoding="utf-8")))]
        self.assertEqual(names, left)

    def test_the_words_of_the_paper_are_options_too(self):
        table = pathlib.Path(__file__).resolve().parents[2] / "problems" / "tables" / "text.table"
        found = [self.run_script(table, "--spread", "3", "--without", word) for word in ("per_query", "adaptive")]
        self.assertEqual(found[0][0], 0, found[0])
        self.assertEqual(found[0], found[1])

    def test_options_are_left_out_of_the_names_to_train(self):
        table = self.table("a", cells(np.arange(9.0)[::-1], noise=0))
        kept = [name for name in NAMES[:9] if "highway" not in name.split("|")]
        code, out, _ = self.run_script(table, "--spread", len(kept), "--without", "highway")
        self.assertEqual((code, out.splitlines()), (0, kept[::-1]))
        code, _, err = self.run_script(table, "--spread", "9", "--without", "highway")
        self.assertEqual(code, 2)
        self.assertIn("without a failure and without highway", err)

    def test_an_option_that_no_mechanism_has_is_refused(self):
        a = self.table("a", cells(range(300), seeds=1))
        b = self.table("b", cells(range(300), seeds=1, seed=1))
        for arguments in ((a, b), (a, "--spread", "3")):
            for option in ("soft", "learnt"):
                code, out, err = self.run_script(*arguments, "--without", "additive", "--without", option)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(f"transfer.py: --without {option}, must be an option of the mechanisms: additive, "
                              "cosine, dot, silu_dot, relu_norm, sigmoid_norm, softmax, sparsemax, highway, ", err)
        every = [part for i in ("additive", "cosine", "dot", "silu_dot") for part in ("--without", i)]
        code, _, err = self.run_script(a, b, *every)
        self.assertEqual(code, 2)
        self.assertIn("0 mechanisms with nll in both and without additive or cosine or dot or silu_dot, must be "
                      "at least 4", err)
        self.assertFalse((self.folder / "out").exists())

    def test_mechanisms_from_all_over_a_ranking(self):
        made = cells(np.arange(9.0)[::-1], noise=0)
        table = self.table("a", made)
        code, out, _ = self.run_script(table, "--spread", "3")
        names = NAMES[:9]
        self.assertEqual((code, out.splitlines()), (0, [names[8], names[4], names[0]]))
        for count in ("1", "10"):
            code, out, err = self.run_script(table, "--spread", count)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"--spread {count}, must be in [2, 9]", err)
        for arguments in ((table,), (table, table, "--spread", "3")):
            with self.assertRaises(SystemExit) as caught:
                self.run_script(*arguments)
            self.assertEqual(caught.exception.code, 2)

    def test_several_runs_stand_for_one_setting(self):
        names = NAMES[:10]
        made = cells(np.arange(10.0) / 5)
        for i, half in enumerate((names[:5], names[5:])):
            write_run(self.folder / f"{i}.json", {key: own for key, own in made.items()
                                                  if key[0] in half})
        both = f"{self.folder / '0.json'},{self.folder / '1.json'}"
        code, out, _ = self.run_script(both, self.table("other", made))
        self.assertEqual(code, 0)
        self.assertIn("Compared are 10 mechanisms", out)

    def test_what_cannot_be_compared_is_refused(self):
        a = self.table("a", cells(range(8)))
        few = self.table("few", cells(range(3)))
        flat = self.table("flat", cells([1] * 8, noise=0))
        self.assertEqual(self.run_script(a, few)[0], 2)
        for second, words in (
                (few, "few.table: 3 mechanisms with nll in both, must be at least 4; of 8 and 3, "),
                (a, f"{a}: holds what {a} does; give two settings"),
                (flat, "flat: nll is the same for all 8 mechanisms: there is no order to compare"),
                (str(self.folder / "none"), "none: no such")):
            code, out, err = self.run_script(a, second)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)
        unscored = cells(range(8))
        for own in unscored.values():
            own["values"].pop("test_nll")
        code, _, err = self.run_script(a, self.table("b", unscored), "--value", "test_nll")
        self.assertEqual(code, 2)
        self.assertIn("b.table: no training run has a test_nll: the test split was not scored", err)
        self.assertFalse((self.folder / "out").exists())
