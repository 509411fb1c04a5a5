"""The page about a run: what it says, and that nothing from a store becomes markup."""

import html
import json
import math
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree

import page_fixture
from digest_file import said_by
from page_fixture import BASELINE, PageTest

from attnas.analysis.commands.report import report
from python_tests import ROOT
from attnas.analysis.digest import BadInput
from attnas.analysis.run import Run
from attnas.analysis.sections import controls, progress
from attnas.analysis.words import number

SCRIPT = ROOT / "analysis" / "report.py"


class Verdicts(PageTest):
    def test_one_seed_distinguishes_no_mechanisms(self):
        self.fixture(objectives=1, replicates=1)
        words = self.words()
        self.assertRegex(words, r"After 36 trainings the best mechanism is \S+ with perplexity "
                                r"\S+ against \S+ for the baseline \(n = 1 seed each\)\.")
        self.assertIn("With one seed each no two mechanisms can be distinguished; of options, which many mechanisms share, "
                      "analysis/components.py says more. The best of", words)
        self.assertIn("seeds of a mechanismup to 1evaluations", words)
        self.assertIn("re-test the best on held-out seeds (retest in the configuration).", words)

    def test_noise_is_no_difference(self):
        self.fixture(objectives=1, replicates=2, noise=8.0)
        words = self.words()
        self.assertIn("No mechanism is significantly better than the baseline in perplexity", words)
        self.assertNotIn("for the better in perplexity (", words)

    def test_a_clear_difference_is_said_with_its_number_of_seeds(self):
        self.fixture(objectives=1, replicates=5, noise=0.3)
        self.assertRegex(self.words(), r"\d+ mechanisms of \d+ differ from the baseline for the "
                                       r"better in perplexity \(5 seeds each, Holm over \d+ comp")

    def test_the_retest_speaks_first(self):
        self.fixture().retest()
        words = self.words()
        first = words.index("The best mechanism beats the baseline on unseen seeds.")
        self.assertLess(first, words.index("After 72 trainings the front over"))
        self.assertIn("From search to re-test perplexity moved by +1.50 on average over the 4 "
                      "selected mechanisms; 4 of them became worse.", words)
        self.assertIn("The baseline, which nothing selected, moved by +1.50: that much the seeds "
                      "have in common, and 0.00 is what selection adds.", words)
        self.assertIn("P(front), test", words)
        self.assertIn("P(front): the probability that the mechanism is on the front", words)
        self.assertIn("A shift to the worse beyond the baseline's is selection bias", words)
        self.assertIn("the one after it is the search's own, whose scores flatter what it selected.",
                      words)

    def test_ranges_that_hold_no_value_are_named(self):
        perplexity, flops = page_fixture.OBJECTIVES[:2]
        self.fixture().set("objectives", [{**perplexity, "best": 1.0, "worst": 49.0 + 1 / 3},
                                          flops])
        self.assertIn("Every value of perplexity is worse than its range, 1.00 to 49.33, so that "
                      "the hypervolume stays near 0 whatever is found: give the objective a wider one.",
                      self.words())
        picture = progress.pictures(Run(self.folder))["hypervolume"].file("hypervolume")
        self.assertIn(">0.0<", picture)
        self.assertNotIn("\u2212", picture, "no hypervolume is below 0")

    def test_replicates_may_come_to_chance_where_it_is_known(self):
        fixture = self.fixture(objectives=1, replicates=5, noise=0.3)
        page = html.unescape(report(Run(self.folder)))
        ends = [float(each) for each in re.findall(r"95 % interval [\d.]+ to ([\d.]+)", page)]
        self.assertLess(max(ends), 150)
        fixture.set("facts", {**Run(self.folder).facts, "chance": {"accuracy": 0.01, "nll": math.log(500.0), "by": "guessing"}})
        page = html.unescape(report(Run(self.folder)))
        ends = [float(each) for each in re.findall(r"95 % interval [\d.]+ to ([\d.]+)", page)]
        self.assertGreater(min(ends), 0.522 * 500, "0.522 of all may fail where five do not")

    def test_what_constraints_reject_is_neither_trained_nor_failed(self):
        fixture = self.fixture(objectives=1, replicates=2)
        before = Run(self.folder)
        fixture.reject("cosine|relu_norm|highway|fixed|bias|0.29", "flops = 5e+06, must be <= 4e+06")
        run = Run(self.folder)
        self.assertEqual(run.num_searched, before.num_searched)
        self.assertEqual(run.failures, before.failures)
        self.assertEqual(list(run.rejected.values()), ["flops = 5e+06, must be <= 4e+06"])
        words = self.words()
        self.assertIn("1 mechanism rejected by constraints", words)
        self.assertRegex(words, r"1 ?rejected by constraints")

    def test_nothing_evaluated_is_said(self):
        fixture = self.fixture(asked=0)
        for evaluation in fixture.evaluations.values():
            evaluation.update(status="failed", usable=False)
        fixture.write()
        self.assertIn("No mechanism could be evaluated: 2 evaluations failed.", self.words())

    def test_a_baseline_that_failed_is_said_first(self):
        fixture = self.fixture(objectives=1, asked=8, failures=False)
        self.assertIn("Dashed: the baseline.", self.words())
        for status, reason, said in (
                ("diverged", "perplexity = inf, must be finite", "failed, diverged: perplexity = inf, must be finite."),
                ("rejected", "parameters = 4080, must be >= 4200",
                 "was rejected by constraints: parameters = 4080, must be >= 4200.")):
            for id_ in fixture.baseline:
                fixture.evaluations[id_].update(status=status, usable=False, reason=reason)
            for config in (BASELINE, {"mechanism": BASELINE, "tune": False}):
                fixture.set("config", {"baseline": config})
                words = self.words()
                self.assertIn(f"VerdictThe baseline {BASELINE} {said} Nothing is compared with it.", words)
                self.assertNotIn("Dashed: the baseline", words)

    def test_a_stage_after_the_search_that_is_not_finished_is_said(self):
        fixture = self.fixture(objectives=1)
        config = Run(self.folder).config
        goes_on = "The re-test, which trains the best mechanisms and the baseline again on held-out seeds, is not finished"
        for own in ({"replicates": 5, "top": 3}, 5):
            fixture.set("config", {**config, "retest": own})
            words = self.words()
            self.assertIn("The search has ended; its re-test is not finished: the same command continues.", words)
            self.assertIn(f"{goes_on}: the same command continues.", words)
            self.assertIn("the re-test on held-out seeds, which is not finished, will say more.", words)
        fixture.set("at_work", {"arrays": [{"trainings": [{}, {}]}]})
        words = self.words()
        self.assertIn("its re-test is not finished, 2 at work.", words)
        self.assertIn(f"{goes_on}.", words)
        fixture.retest()
        words = self.words()
        self.assertNotIn("not finished", words)
        fixture.set("retest", None)
        fixture.set("config", {**config, "retest": {"replicates": 0}})
        words = self.words()
        self.assertIn("re-test the best on held-out seeds", words)
        self.assertNotIn("not finished", words)

    def test_the_best_value_is_the_one_that_the_search_believes(self):
        fixture = self.fixture(objectives=1, replicates=1, asked=8, failures=False)
        self.assertIn("Green: the best so far. Hollow", self.words())
        first, second = sorted(fixture.asks, key=lambda ask: ask["fitness"])[:2]
        believed = number(second["fitness"][0])
        self.assertNotIn(f"The best perplexity, {believed},", self.words())
        ids, _ = fixture.evaluate(first["candidate"])
        fixture.answer(first["candidate"], ids, [200.0])
        fixture.write()
        words = self.words()
        self.assertIn(f"The best perplexity, {believed}, came at training 9 of 9.", words)
        self.assertIn(f"the best mechanism is {second['candidate']} with perplexity {believed}", words)
        self.assertIn("Green: the best so far, as the search believed by then, where further trainings", words)

    def test_a_search_that_has_not_ended_says_how_far_it_is(self):
        fixture = self.fixture(replicates=1)
        self.assertNotIn("Running", self.words())
        fixture.set("ended_by", None)
        self.assertIn("Running, 40 asks so far; or interrupted, and the same command continues.",
                      self.words())
        fixture.set("config", {"budget": {"evaluations": 93}})
        self.assertIn("Running, 36 of 93 trainings so far", self.words())
        fixture.set("planned_asks", 1200)
        self.assertIn("Running, 40 of 1,200 asks so far", self.words())
        fixture.set("at_work", {"arrays": [{"trainings": [{}, {}]}, {"trainings": [{}]}]})
        self.assertIn("Running, 40 of 1,200 asks so far, 3 at work.", self.words())

    def test_computed_objectives_have_no_noise(self):
        fixture = self.fixture(replicates=1)
        for evaluation in fixture.evaluations.values():
            evaluation["curve"] = []
        fixture.set("objectives", [{**own, "source": "analytic"} for own in fixture.objectives])
        self.assertIn("computed, not measured: there is no noise between seeds", self.words())


class Arrivals(PageTest):
    def test_a_run_whose_answers_were_told_as_they_came_says_so(self):
        made = self.fixture(objectives=1)
        self.assertNotIn("as they arrived", self.words())
        config = Run(self.folder).config
        made.set("config", {**config, "algorithm": {**config["algorithm"], "order": "arrival"}})
        self.assertIn("but another one of the same configuration may find something else", self.words())


class Learning(PageTest):
    def test_what_has_to_be_known_is_said_first(self):
        fixture = self.fixture()
        fixture.retest()
        self.assertNotIn("has learned nothing", self.words())
        fixture.set("warnings", ["The baseline has learned nothing: it guesses.", "It is behind a control."])
        self.assertRegex(self.words(), r"Verdict ?At one learning rate: [^.]*\. ?The baseline has learned nothing: it guesses\. ?"
                                       r"It is behind a control\. ?The best mechanism beats the")


class Controls(PageTest):
    def test_controls_are_rows_beside_the_best_and_the_baseline(self):
        fixture = self.fixture()
        self.assertIsNone(controls.section(Run(self.folder)))
        baseline = said_by(fixture.file)["baseline"]
        own = {**baseline, "name": "no mixer", "mechanism": "2*none", "candidate": "2*none",
               "values": {**baseline["values"], "perplexity": 2 * baseline["values"]["perplexity"]}}
        fixture.set("controls", [own])
        body = str(controls.section(Run(self.folder)).body)
        rows = re.findall("<tr>(.*?)</tr>", body, re.DOTALL)
        self.assertEqual([re.findall("<t[dh][^>]*>([^<]*)<", row)[0] for row in rows],
                         ["", "best found", "baseline", "no mixer"])
        self.assertIn("+100.0 %", rows[3])
        self.assertNotIn("Counts of", body)
        fixture.set("count_models", [{"order": 1, "tokens": 614400, "valid_nll": 9.0}, {"order": 5, "tokens": 614400},
                               {"order": 4, "tokens": 614400, "valid_nll": math.log(5.96)}])
        self.assertIn("validation perplexity of 5.96 (order 4)", str(controls.section(Run(self.folder)).body))
        self.assertIn("2*none", rows[3])
        first, *others = said_by(fixture.file)["objectives"]
        fixture.set("objectives", [{**first, "key": "accuracy", "source": "trained"}, *others])
        fixture.set("count_models", [{"order": 2, "tokens": 614400, "valid_nll": 0.1, "valid_accuracy": 0.25},
                               {"order": 3, "tokens": 614400, "valid_nll": 9.0, "valid_accuracy": 0.375}])
        self.assertIn("validation accuracy of 0.375 (order 3)", str(controls.section(Run(self.folder)).body))


class Pages(PageTest):
    def test_the_command_is_quoted_for_a_shell(self):
        fixture = self.fixture()
        for name in ("modern smoke", "a;b & `c` $d 'e' <f>"):
            fixture.set("config", {**Run(self.folder).config, "name": name})
            (command,) = re.findall(r"<pre>(nas-run .*?)</pre>", report(Run(self.folder)))
            self.assertEqual(shlex.split(html.unescape(command)),
                             ["nas-run", f"{name}.yaml", "--output", f"runs/{name}"])

    def test_nothing_is_loaded_from_elsewhere(self):
        fixture = self.fixture()
        fixture.retest()
        page = report(Run(self.folder))
        self.assertNotRegex(page, r"(?i)https?://|url\(|@import|\ssrc=")
        self.assertFalse([link for link in re.findall(r'href="([^"]*)"', page)
                          if not link.startswith("#")])
        self.assertTrue("default-src 'none'" in html.unescape(page))

    def test_sections_are_in_order_and_only_where_there_is_something(self):
        def keys():
            return re.findall(r'<section id="(\w+)"', report(Run(self.folder)))

        fixture = self.fixture()
        without = ["verdict", "front", "progress", "curves", "replicates", "failures", "mechanisms", "time",
                   "reproducibility"]
        self.assertEqual(keys(), without)
        fixture.retest()
        self.assertEqual(keys(), ["verdict", "retest", *without[1:]], "what fresh seeds say comes first")

    def test_one_objective_is_ranked_and_three_are_paired(self):
        self.fixture(objectives=1)
        self.assertIn('<section id="ranking"', report(Run(self.folder)))
        self.folder = self.folder.parent / "three"
        self.fixture(objectives=3)
        page = report(Run(self.folder))
        for label in ("attention_flops against perplexity", "accuracy against perplexity",
                      "accuracy against attention_flops"):
            self.assertEqual(page.count(f'aria-label="{label}"'), 2, "wide and narrow")

    def test_failures_are_counted_by_reason(self):
        fixture = self.fixture()
        words = self.words()
        states = [evaluation["status"] for evaluation in fixture.evaluations.values()]
        self.assertEqual([states.count(one) for one in ("diverged", "out_of_memory")], [4, 2])
        self.assertIn("6 of 74 evaluations failed.", words)
        self.assertRegex(words, r"diverged\s*the loss is nan.{0,120}4\s*out of memory")

    def test_the_configuration_is_a_file_to_run(self):
        fixture = self.fixture()
        config = fixture.further["config"]
        page = report(Run(self.folder))
        texts = [html.unescape(t) for t in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
        self.assertIn("nas-run fixture.yaml --output runs/fixture", texts)
        lines = next(t for t in texts if t.startswith('"')).strip().split("\n")
        self.assertEqual(json.loads("{" + ",".join(lines) + "}"), config)


class Digest(PageTest):

    def test_a_digest_that_lacks_something_is_refused(self):
        fixture = self.fixture(asked=3)
        text = fixture.file.read_text(encoding="utf-8").replace('"fitness"', '"fit"', 1)
        fixture.file.write_text(text, encoding="utf-8")
        with self.assertRaisesRegex(BadInput, "run: damaged: KeyError: 'fitness'"):
            Run(self.folder).asks  # pylint: disable=expression-not-assigned


class Program(PageTest):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, "-B", SCRIPT, *map(str, arguments)],
                              capture_output=True, text=True, check=False)

    def test_writes_beside_the_store_or_where_told(self):
        self.fixture(asked=10)
        done = self.run_script(self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"written to {self.folder / 'report.html'}\n")
        there = self.folder.parent / "there.html"
        self.assertEqual(self.run_script(self.folder / "results.json", "-o", there).returncode, 0)
        self.assertEqual(there.read_text(), (self.folder / "report.html").read_text())

    def test_pictures_are_files_where_they_are_wanted(self):
        self.fixture(asked=30)
        pictures = self.folder / "new" / "pictures"
        self.assertEqual(self.run_script(self.folder, "--svg", pictures).returncode, 0)
        self.assertEqual(sorted(file.name for file in pictures.iterdir()), [
            "curves.svg", "front.svg", "hypervolume.svg", "progress.svg"])
        for file in pictures.iterdir():
            xml.etree.ElementTree.parse(file)
        front = Run(self.folder).front
        text = (pictures / "front.svg").read_text(encoding="utf-8")
        self.assertIn("1\u00a0" + front[0].label, re.sub(r"</text><text[^>]*>", " ", text))
        done = self.run_script(self.folder, "--svg", self.folder / "report.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("report.html: cannot be written: File exists", done.stderr)

    def test_bad_input_exits_with_2_and_writes_nothing(self):
        done = self.run_script(self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such run; give a run's folder, its store.sqlite or its results.json",
                      done.stderr)
        self.fixture(asked=10)
        done = self.run_script(self.folder, "-o", self.folder / "absent" / "page.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("page.html: cannot be written: No such file", done.stderr)
        done = self.run_script(self.folder, "-o", self.folder / ("x" * 300))  # nor can it be removed
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot be written: File name too long", done.stderr)
        self.assertEqual(list(self.folder.glob("*.html*")), [])
