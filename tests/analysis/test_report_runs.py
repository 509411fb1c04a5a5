"""Pages of runs of other kinds: names of many genes, listed mechanisms, added and measured objectives, rungs, workers."""

import html
import json
import unittest
from pathlib import Path
from unittest import mock

import page_fixture
from digest_file import said_by, text_of
from page_fixture import BASELINE, PageTest, RunFixture, words_of

from attnas.analysis import latex
from attnas.analysis.commands.report import report
from attnas.analysis.differences import from_baseline
from attnas.analysis.genes import genes
from attnas.analysis.run import Run
from attnas.analysis.sections import retest


class LongNames(PageTest):
    """Mechanisms whose names have more than the paper's six genes."""

    def setUp(self):
        super().setUp()
        self.made = self.fixture()
        space = ["similarity", "normalization", "gating", "temperature", "bias",
                 "attention_dropout"]
        self.names = {name: f"model{{norm=rms}}/2*attn{{{name.replace('|', ',')}}}"
                      for name in self.made.candidates}
        text = self.made.file.read_text(encoding="utf-8")
        for short in sorted(self.names, key=len, reverse=True):
            text = text.replace(json.dumps(short), json.dumps(self.names[short]))
        self.made.file.write_text(text, encoding="utf-8")
        digest = said_by(self.made.file)
        digest["models"] = {
            "genes": [*space, "norm"],
            "choices": {long: [*short.split("|"), "rms"] for short, long in self.names.items()},
            "differences": {long: f"gating={short.split('|')[2]} and so on"
                            for short, long in self.names.items()}}
        self.made.file.write_text(text_of(digest), encoding="utf-8")

    def test_genes_are_those_that_the_digest_says(self):
        run = Run(self.folder)
        found = {gene.name: gene for gene in genes(run)}
        self.assertEqual(list(found), ["similarity", "normalization", "gating", "temperature",
                                       "bias", "attention_dropout"], "norm does not vary")
        best = run.ranking[0]
        short = next(short for short, long in self.names.items() if long == best.name)
        self.assertEqual(found["gating"].raw(best.label), short.split("|")[2])

    def test_keys_of_a_space_are_options_by_their_keys(self):
        digest = said_by(self.made.file)
        digest["record_schema"] = {"genes": [{"name": "similarity", "options": [
            {"key": key, "label": label, "voids": []} for key, label in (
                ("dot", "dot"), ("silu_dot", "multiplicative"), ("additive", "additive"))]}]}
        digest["genes"][0]["options"] = ["multiplicative", "dot", "additive"]
        self.made.file.write_text(text_of(digest), encoding="utf-8")
        found = genes(Run(self.folder))
        self.assertEqual(found[0].options, ("silu_dot", "dot", "additive"))

    def test_a_gene_without_effect_is_not_applicable(self):
        """The window, of which mechanisms with highway and without a gate have none."""
        digest = said_by(self.made.file)
        digest["models"]["genes"].append("slot0.window")
        for number, own in enumerate(digest["models"]["choices"].values()):
            own.append(None if own[2] in ("highway", "none") else ("4", "8")[number % 2])
        digest["genes"].append({"name": "slot0.window", "options": ["4", "8"]})
        self.made.file.write_text(text_of(digest), encoding="utf-8")
        run = Run(self.folder)
        gene = {gene.name: gene for gene in genes(run)}["slot0.window"]
        self.assertEqual(gene.options, ("4", "8"))
        gating = next(own for own in genes(run) if own.name == "gating")
        self.assertEqual({gating.raw(each.label) for each in run.comparable if gene.option(each.label) is not None},
                         {"input_gate", "output_gate"})

    def test_pages_name_what_differs_and_hold_the_whole_name(self):
        run = Run(self.folder)
        best = run.ranking[0]
        page = report(run)
        self.assertIn("and so on", best.brief)
        self.assertIn(best.brief, page)
        self.assertIn(html.escape(best.label), page)
        self.assertIn(f'title="{html.escape(best.label)}"', page)


class ListedMechanisms(PageTest):
    """Trained in place of a search."""

    NAME = "cosine|sparsemax|none|fixed|bias|0.1"
    SEEING = "dot|softmax|none|adaptive|bias|0.1"  # rejected before training

    def listed(self) -> RunFixture:
        made = self.fixture(objectives=2, replicates=3, asked=0)
        made.evaluate(self.NAME)
        made.add("none", self.SEEING, 0, "rejected", "sees later tokens", {}, [], {})
        made.set("config", {"name": "fixture", "seed": 42, "mechanisms": [self.NAME, self.SEEING]})
        return made

    def compare(self, made: RunFixture) -> None:
        def record(name: str, role: str, mean: float, differences: list) -> dict:
            found = [{"mean": mean, "standard_error": 0.5, "n": 3, "low": mean - 1,
                      "high": mean + 1},
                     {"mean": 1.75e6, "standard_error": 0.0, "n": 3, "low": 1.75e6, "high": 1.75e6}]
            return {"candidate": name, "label": name, "role": role, "evaluations": [],
                    "search": [], "search_n": 0, "retest": found, "test": found[0],
                    "non_dominated_probability": 0.8, "against_baseline": None,
                    "differences": differences, "rejected": ""}
        difference = {"difference": -3.25, "low": -4.5, "high": -2.0, "p": 0.004, "p_holm": 0.0123,
                      "effect_size": -1.25, "n": 3}
        made.set("retest", {"replicates": 3, "objective": "perplexity", "confidence": 0.95, "probability_split": "test", "candidates": [
            record(self.NAME, "listed", 87.25, [difference, None]),
            record(BASELINE, "baseline", 90.5, [None, None])],
            "verdict": "The listed mechanism is better."})

    def test_the_page_says_the_verdict_and_nothing_of_a_search(self):
        self.compare(self.listed())
        words = self.words()
        self.assertIn("The listed mechanism is better.Every mechanism and the baseline were trained "
                      "on the same 3 seeds, which no search uses", words)
        self.assertIn("perplexityattention_flops (FLOP)test perplexity", words)
        self.assertIn("listed87.251.75 M87.25", words)
        self.assertIn("Better than the baseline? (fixture)", words)
        self.assertIn("perplexity\u22123.25 (\u22124.50 to \u22122.00)p = 0.0123", words)
        self.assertEqual(words.count("95 % interval"), 2)
        self.assertIn("corpus brown, 6 trainings", words)
        self.assertIn("6trainings", words)
        self.assertNotRegex(words, "7 ?trainings")
        self.assertIn("nas-train fixture.yaml --output runs/fixture-train", words)
        for word in ("search progress", "The search", "re-test", "selection bias", "asks"):
            self.assertNotIn(word, words)

    def test_shares_and_rates_have_columns_where_they_say_something(self):
        made = self.listed()
        self.compare(made)
        words = self.words()
        self.assertRegex(words, "Verdict ?At one learning rate: a mechanism may do better at its own")
        for word in ("solved", "median of solved", "Rate:"):
            self.assertNotIn(word, words)
        own = Run(self.folder).retest
        named, baseline = own["candidates"]
        contrast = {**named["differences"][0], "difference": 0.1, "low": 0.05, "high": 0.2, "p_shares": 0.04}
        named |= {"solved": {"count": 2, "of": 3, "low": 0.0943, "high": 0.9916, "median": 84.5}, "learning_rate": 0.016,
                  "rate_at_end": True, "differs": "conv 4", "non_dominated_probability": None, "against_baseline": contrast}
        baseline |= {"solved": {"count": 3, "of": 3, "low": 0.2924, "high": 1.0, "median": 90.25}, "learning_rate": 0.004,
                     "non_dominated_probability": None}
        made.set("retest", own)
        words = self.words()
        self.assertIn("nsolvedrateperplexityattention_flops (FLOP)test perplexitymedian of solvedp of shareseffect size", words)
        self.assertIn("p = 0.01232 of 3 (0.09 to 0.99)0.016 (end)87.251.75 M87.2584.50p = 0.04\u22121.25", words)
        self.assertIn("\u2013\u20133 of 3 (0.29 to 1.00)0.00490.501.75 M90.5090.25\u2013\u2013", words)
        self.assertIn("Clopper-Pearson interval of their share, which intervals of means include. Rate: learning rate, (end) the lowest or "
                      f"the highest that was tried. {self.NAME} differs also in conv 4.", words)
        for word in ("one learning rate", "P(front)"):
            self.assertNotIn(word, words)
        row, _ = latex.rows(Run(self.folder))
        self.assertEqual([row[key] for key in ("solved", "runs", "solved_low", "solved_median", "p_shares", "learning_rate", "rate_at_end",
                                               "differs")], [2, 3, 0.0943, 84.5, 0.04, 0.016, True, "conv 4"])
        table = latex.table(Run(self.folder))
        self.assertIn(r"& Solved & Median of solved & Rate \\", table)
        self.assertIn(r"\textit{+10.52 (5.13 to 22.14)} & 0.012 & 3 & 2 of 3 (0.09 to 0.99) & 84.50 & 0.016 (end) \\", table)
        self.assertIn("Clopper-Pearson", table)

    def test_where_a_control_won_no_mechanism_is_spoken_of(self):
        made = self.listed()
        self.compare(made)
        own = Run(self.folder).retest
        control = {**own["candidates"][0], "role": "control", "label": "window 2"}
        made.set("retest", {**own, "candidates": [own["candidates"][1], control], "voided": True, "until": 0.03,
                            "verdict": "All are trained at one learning rate. A control, window 2, is better."})
        words = self.words()
        self.assertIn("at its own.A control, window 2, is better.The baseline and its controls alone were trained on the same 3 seeds", words)
        self.assertIn("window 2control", words)
        self.assertNotIn("were decided", words)


class PairedSeeds(unittest.TestCase):
    """The picture that joins equal seeds, by recorded training runs."""

    def setUp(self):
        self.run_ = Run(Path(__file__).parents[2] / "analysis" / "results" / "controls_text")

    def test_a_line_is_a_seed_of_a_mechanism_and_the_baseline(self):
        drawn = retest.pictures(self.run_)["pairs"]
        for width in (860, 360):
            picture = "".join(drawn.draw(width).parts)
            self.assertEqual(picture.count("line2 pair"), 16, "two mechanisms of eight seeds, no control")
            self.assertEqual(picture.count("mark ring"), 16)
            self.assertEqual(picture.count("mark front"), 16)
        self.assertIn("seed 1: ", picture)
        self.assertIn("seed 8: ", picture)
        self.assertIn("</h3>", drawn.html())

    def test_a_mechanism_with_fewer_seeds_is_joined_by_those(self):
        record = self.run_.retest["candidates"][0]
        record["evaluations"] = record["evaluations"][:5]
        self.run_.retest["until"] = 0.03
        drawn = retest.pictures(self.run_)["pairs"]
        self.assertEqual("".join(drawn.draw(860).parts).count("line2 pair"), 13)
        self.assertIn("until each mechanism was decided to 3 %", drawn.caption)
        page = report(self.run_)
        self.assertIn("trained on at most 8 seeds, added until each was decided to 3 %, the same for all, which no search uses", page)
        self.assertIn("Intervals and p hold however often one looks", page)
        self.assertIn(r"anytime-valid $t$-test", latex.table(self.run_))
        self.assertIn(r"within 3\,\% (Lai, 1976)", latex.table(self.run_))


class Measured(PageTest):
    """An objective that is measured once of each mechanism, as latency, named first: all replicates have the one value."""

    def measured(self, objectives):
        measured = {**page_fixture.OBJECTIVES[1], "source": "measured"}
        with mock.patch.object(page_fixture, "OBJECTIVES", [measured, page_fixture.OBJECTIVES[0]]):
            return self.fixture(objectives=objectives)

    def test_alone_it_has_no_p(self):
        made = self.measured(1)
        why = ("Of each mechanism there is one measurement of attention_flops, which its replicates share: how far two measurements "
               "would lie apart is not known, and no p can be given.")
        run = Run(self.folder)
        self.assertEqual(from_baseline(run, 0), [])
        words = words_of(report(run))
        self.assertEqual(words.count(why), 2, "of the verdict and the replicates")
        for wrong in ("significant", "\u221e", "seed each", "Their differences"):
            self.assertNotIn(wrong, words)
        for evaluation in made.evaluations.values():  # as of a problem that trains nothing
            evaluation["curve"] = []
        made.write()
        self.assertIn(why, self.words())


class Rungs(PageTest):
    def test_the_page_says_who_went_on_and_what_that_saved(self):
        made = self.fixture(objectives=1, replicates=1, asked=8, failures=False)
        self.assertNotIn("Rungs", self.words())
        paused = [{"id": f"paused {i}", "curve": [{"step": 20}]} for i in range(24)]
        made.set("rungs", [{"step": 20, "reached": 32, "went_on": 8}])
        made.set("paused", paused)
        words = self.words()
        self.assertIn("steppaused therewent onshare2032825 %", words)
        ended = len({i for ask in Run(self.folder).asks for i in ask.evaluations})
        share = (ended * 60 + 24 * 20) / (60 * (ended + 24))
        self.assertIn(f"24 candidates of {ended + 24} paused for good", words)
        self.assertIn(f"{100 * share:.0f} % of those that all to the end would have taken", words)

    def test_what_ended_outside_the_search_had_paused_in_it(self):
        """The baseline, which the search paused at its first rung and which was trained to the end outside."""
        made = self.fixture(objectives=1, replicates=1, asked=8, failures=False)
        made.set("rungs", [{"step": 20, "reached": 9, "went_on": 0}])
        made.set("paused", [{"id": "paused", "curve": [{"step": 40}]}])
        made.set("rung_asks", [{"evaluation": made.baseline[0], "step": 20}, {"evaluation": "paused", "step": 20}])
        ended = len({i for ask in Run(self.folder).asks for i in ask.evaluations})
        self.assertIn(f"2 candidates of {ended + 2} paused for good. The search took {60 * ended + 60} steps", self.words())
