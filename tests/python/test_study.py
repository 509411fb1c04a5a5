"""Studies in this process, and functions of Python as objectives and algorithms."""

import contextlib
import io
import json
import linecache
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from unittest import mock

from python_tests import FolderTest, ROOT, need

need(program="nas-run")

CONFIGS = ROOT / "configs"

import attnas
import pandas as pd
from attnas import library

try:
    library.core()
except attnas.InputError as error:
    raise unittest.SkipTest(error)

SMOKE = CONFIGS / "smoke.yaml"
# A search that a table answers, in milliseconds.
TABLE = {"name": "table", "objectives": ["perplexity"], "algorithm": {"name": "random_search", "evaluations": 30},
         "problem": {"type": "tabular", "table": str(ROOT / "problems/tables/text.table"), "mode": "mean"}}
SPHERE = {"name": "sphere", "problem": {"type": "sphere", "dimension": 2}, "budget": {"asks": 600}}


def letters(candidate) -> float:
    """As many as the candidate's name has."""
    return len(candidate.name)


class Case(FolderTest):
    """With a folder of its own."""

    def same(self, one: attnas.Run, other: attnas.Run) -> None:
        """Two runs asked for and measured the same."""
        pd.testing.assert_frame_equal(*(run.asks.drop(columns="train_seconds") for run in (one, other)))
        columns = ["id", "candidate", "replicate", "asks", "status", "reason", *one.objectives]
        pd.testing.assert_frame_equal(one.evaluations[columns], other.evaluations[columns])


class Studies(Case):
    def test_runs_as_the_program_does(self):
        study = attnas.Study(SMOKE, self.folder / "here", seed=7)
        self.assertEqual((study.config["seed"], study.output), (7, self.folder / "here"))
        told = []
        run = study.run(told.append)
        self.same(run, attnas.run(SMOKE, self.folder / "there", progress=False, seed=7))
        last = told[-1]
        self.assertEqual(last["asked"], len(run.asks))
        self.assertEqual(last["best"], run.front.perplexity.min())
        finished = [each["evaluation"]["id"] for each in told if each["evaluation"]]
        self.assertEqual(sorted(finished), sorted(run.evaluations.id))

    def test_listed_mechanisms_have_means_over_their_seeds(self):
        ours, other = (f"dot|{name}|none|fixed|bias|0" for name in ("sparsemax", "relu_norm"))
        rejected = "dot|softmax|none|sequence_mean|bias|0"  # sees later tokens
        run = attnas.Study(SMOKE, self.folder / "listed", mechanisms=[ours, other, rejected],
                           **{"retest.replicates": 2, "retest.tune": False}).run()
        baseline = run.digest["baseline"]["candidate"]
        self.assertIn("6 evaluations, 0 failed>", repr(run))
        running = json.loads((self.folder / "listed/results.json").read_text(encoding="utf-8"))
        running["retest"] = None  # which is made at the end of the list
        (self.folder / "running.json").write_text(json.dumps(running))
        by_seed = run.evaluations[run.evaluations.usable].groupby("candidate").perplexity
        for each in (run, attnas.load(self.folder / "running.json")):
            found = each.candidates.set_index("candidate")
            trained = found[found.n > 0]
            self.assertEqual(set(trained.index[:2]), {ours, other})
            self.assertTrue(trained.perplexity[:2].is_monotonic_increasing)
            self.assertEqual(found.index[2:].tolist(), [baseline, rejected])
            self.assertEqual(found.n.tolist(), [2, 2, 2, 0])
            self.assertEqual(found.status.tolist(), ["ok", "ok", "ok", "rejected"])
            pd.testing.assert_series_equal(trained.perplexity, by_seed.mean(), check_like=True)
            pd.testing.assert_series_equal(trained.perplexity_standard_error, by_seed.sem(), check_like=True, check_names=False)
            self.assertTrue(trained.parameters.notna().all())
            self.assertIn(ours, each._repr_html_())

    def test_a_plan_writes_nothing(self):
        plan = attnas.Study(SMOKE, self.folder / "none").plan(calibrate=False)
        self.assertEqual((plan["asks"], plan["trains"], plan["continues"]), (7, True, False))
        self.assertEqual(len(plan["candidates"]), plan["trainings"])
        self.assertFalse((self.folder / "none").exists())

    def test_mistakes_are_named(self):
        with self.assertRaisesRegex(attnas.InputError, r"^config.*algorithm\.name.*did you mean nsga2"):
            attnas.Study({"algorithm": {"name": "nsga22"}})
        with self.assertRaisesRegex(attnas.InputError, "command line: seed = -1"):
            attnas.Study(SMOKE, seed=-1)
        study = attnas.Study(SMOKE, self.folder / "none", **{"evaluation.device": "cuda:7"})
        with self.assertRaises(attnas.InputError):
            study.run()
        self.assertFalse((self.folder / "none").exists())

    def test_an_interrupt_stops_it_and_the_same_call_continues(self):
        study = attnas.Study(SMOKE, self.folder / "stopped")

        def interrupt(progress):
            if progress["evaluation"] and progress["trained"] == 2:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)  # until it is heard
        with self.assertRaisesRegex(attnas.Stopped, "the same call continues"):
            study.run(interrupt)
        before = attnas.load(self.folder / "stopped").evaluations
        self.assertGreater(len(before), 1)
        run = study.run()
        self.assertTrue(set(before.id) < set(run.evaluations.id))
        self.same(run, attnas.Study(SMOKE, self.folder / "whole").run())

    def test_what_a_listener_raises_ends_it(self):
        study = attnas.Study(SMOKE, self.folder / "x")

        def fail(progress):
            raise ValueError("enough")
        with self.assertRaisesRegex(ValueError, "enough"):
            study.run(fail)
        self.assertGreater(len(study.run().evaluations), 3)
        other = attnas.Study(SMOKE, self.folder / "y")
        with ThreadPoolExecutor(1) as pool:  # which goes on
            result = pool.submit(other.run)
            for place in "abc":
                with self.assertRaisesRegex(ValueError, "enough"):
                    attnas.Study(SMOKE, self.folder / place).run(fail)
            self.assertGreater(len(result.result().evaluations), 3)

    def test_without_the_module_the_text_says_what_to_do(self):
        with mock.patch.dict(sys.modules), mock.patch.object(library, "EXTENSION_SUFFIXES", [".none.so"]):
            sys.modules.pop("attnas._core")
            with self.assertRaisesRegex(attnas.InputError, r"_core\.none\.so.*apt-get install pybind11-dev"):
                attnas.Study(SMOKE)

    def test_torch_may_be_loaded_before_and_after(self):
        first = "import torch; torch.ones(8).sum()"
        second = "import attnas; attnas.Study(*sys.argv[1:]).run()"
        if subprocess.run([sys.executable, "-c", first], capture_output=True).returncode != 0:
            self.skipTest("no PyTorch")
        for place, lines in enumerate(((first, second, first), (second, first, second))):
            done = subprocess.run([sys.executable, "-c", "\n".join(["import sys", *lines]), SMOKE,
                                   self.folder / str(place)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.same(*(attnas.load(self.folder / str(place)) for place in range(2)))


def valley(parameters, seed):
    """Noise of the seed on a parabola, better by another kind."""
    kind = {None: 1, 0.5: 0}[parameters["kind"]]
    return {"loss": (parameters["x"] - 3) ** 2 + kind + seed % 100 / 1000, "unused": 1}


def by_steps(parameters, seed):
    for step in (10, 20, 40):
        steps.append(step)
        yield step, valley(parameters, seed)["loss"] + 10 / step


steps: list = []
SPACE = {"x": (0, 8, "integer"), "kind": [None, 0.5]}


class Functions(Case):
    """attnas.search."""

    def search(self, name, train=valley, parameters=SPACE, **settings):
        return attnas.search(train, parameters, ["loss"], self.folder / name, **{
            "algorithm": {"name": "motpe", "population": 4, "evaluations": 12, "in_flight": 4}, "evaluation.replicates": 2, **settings})

    def test_values_are_what_was_given_and_an_executor_changes_nothing(self):
        seen = []
        run = self.search("here", lambda parameters, seed: seen.append((parameters, seed)) or valley(parameters, seed), version="1")
        self.assertEqual({type(given["x"]) for given, _ in seen}, {int})
        self.assertEqual({given["kind"] for given, _ in seen}, {None, 0.5})
        self.assertEqual(len({seed for _, seed in seen}), 2, "all candidates are compared on the same seeds")
        for pool in ThreadPoolExecutor(3), ProcessPoolExecutor(2):
            with pool:
                self.same(run, self.search(type(pool).__name__, executor=pool, version="1"))

    def test_it_is_what_a_command_comes_to(self):
        script = "import sys; x, kind, seed = sys.argv[1:]; print('loss', (int(x) - 3) ** 2 + (kind == 'None') + int(seed) % 100 / 1000)"
        command = {"type": "command", "command": [sys.executable, "-S", "-c", script, "{x}", "{kind}", "{seed}"],
                   "parameters": ["x = 0 .. 8 integer", "kind = None, 0.5"], "metrics": ["loss = loss ([0-9.]+)"]}
        algorithm = {"name": "random_search", "evaluations": 6}
        run = attnas.Study({"name": "x", "problem": command, "algorithm": algorithm}, self.folder / "command").run()
        mine = self.search("function", algorithm=algorithm, **{"evaluation.replicates": 1})
        self.assertEqual(mine.asks.loss.tolist(), run.asks.loss.tolist())

    def test_the_same_call_goes_on(self):
        calls = []

        def counted(parameters, seed):
            calls.append(seed)
            if len(calls) == 5:
                raise KeyboardInterrupt
            return valley(parameters, seed)
        with self.assertRaises(KeyboardInterrupt):
            self.search("stopped", counted)
        run = self.search("stopped", counted)
        self.assertEqual(len(calls), len(run.evaluations) + 1)
        other = self.search("whole", valley)
        self.assertEqual((run.asks.candidate.tolist(), run.asks.loss.tolist()), (other.asks.candidate.tolist(), other.asks.loss.tolist()))
        with self.assertRaisesRegex(attnas.InputError, "version"):
            self.search("stopped")

    def test_failures(self):
        seen = []

        def fragile(parameters, seed):
            seen.append(parameters["x"])
            if parameters["x"] > 5 and len(seen) > 1:
                raise MemoryError("too wide")
            return {"loss": float("nan") if parameters["x"] > 3 else 1.0}
        run = self.search("fails", fragile)
        told = run.evaluations[["status", "reason"]].value_counts().index.tolist()
        self.assertEqual(sorted(told), [("diverged", "loss = nan, must be finite"), ("failed", "MemoryError: too wide"), ("ok", "")])
        with self.assertRaisesRegex(ZeroDivisionError, "zero"):
            self.search("first", lambda parameters, seed: 1 / 0, version="1")
        self.assertFalse((self.folder / "first").exists())

    def test_rungs_leave_a_function_that_yields(self):
        steps.clear()
        run = self.search("rungs", by_steps, rungs=[20, 40], fidelity={"rungs": [20]}, **{"evaluation.replicates": 1})
        self.assertEqual((steps.count(40), steps.count(20)), (len(run.evaluations), 12 + len(run.evaluations)), "anew to the end")
        self.assertLess(len(run.evaluations), 12)

    def test_mistakes_are_named(self):
        for train, parameters, settings, text in (
                (lambda p, s: "low", SPACE, {}, "x=.*, seed [0-9]+: train returned 'low', must be a number or {name: number}"),
                (lambda p, s: {"los": 1}, SPACE, {}, "train returned los, lacks loss"),
                (lambda p, s: iter(()), SPACE, {}, "yielded nothing"),
                (valley, {"x": (0,)}, {}, r"parameters = x = 0 \.\. .*must be NAME = LOWEST .. HIGHEST"),
                (valley, {"x": (8, 0)}, {}, "must be NAME = LOWEST .. HIGHEST"),
                (valley, {"x": ["a", "a"]}, {}, "must be .lowest, highest. or a list of options that differ as texts"),
                (valley, {"x": "adam"}, {}, "must be .lowest, highest. or a list"),
                (valley, {"seed": (0, 1)}, {}, "have another name"),
                (valley, SPACE, {"rungs": [20, 10]}, "rungs = .*, must be ascending"),
                (valley, SPACE, {"evaluation.time_limit": 5}, "time_limit = 5, must be 0: nothing ends a function")):
            with self.subTest(text), self.assertRaisesRegex(attnas.InputError, text):
                self.search("wrong", train, parameters, version="1", **settings)
            self.assertFalse((self.folder / "wrong").exists())


class Objectives(Case):
    def test_one_by_formula_is_an_objective_as_any_other(self):
        attnas.objective("letters", range=(10, 100), version="1")(letters)
        run = attnas.Study({**TABLE, "objectives": ["perplexity", "letters"]}, self.folder / "x",
                           constraints=["letters <= 45"]).run()
        self.assertIn("rejected", set(run.candidates.status))
        found = run.candidates[run.candidates.status == "ok"]
        self.assertEqual(found.letters.tolist(), [len(name) for name in found.candidate])
        self.assertLessEqual(found.letters.max(), 45)
        self.assertEqual(run.config["objectives"][1]["version"], "1")
        (self.folder / "x" / "results.json").unlink()
        self.same(attnas.load(self.folder / "x"), run)  # by nas-export, which knows no such function

    def test_a_gene_that_no_layer_has_is_none(self):
        def gated(candidate):
            """Whether there are gates."""
            return candidate.genes["gating"] != "none"

        attnas.objective("gated", range=(0, 1), version="1")(gated)
        facts = {"name": "2*none", "genes": {"mixer": "none"}, "parameters": 9, "flops": 9.0, "layers": 2, "width": 8, "heads": 2,
                 "context": 8, "vocabulary": 9, "device": "cpu", "threads": 1}
        self.assertEqual(attnas.functions.value("gated", json.dumps(facts)), 0.0)

    def test_none_has_the_name_of_anything_else_that_is_recorded(self):
        for name in ("status", "id", "steps", "peak_bytes", "test_perplexity", "similarity", "worker", "perplexity"):
            with self.subTest(name), self.assertRaisesRegex(attnas.InputError, f"objective '{name}': .*must have another"):
                attnas.objective(name, version="1")(letters)
        attnas.objective("letters", version="1")(letters)
        with self.assertRaisesRegex(attnas.InputError, "objectives.perplexity.as = letters, must be another name"):
            attnas.Study({**TABLE, "objectives": [{"name": "perplexity", "as": "letters"}]})

    def test_a_run_continues_with_the_same_version_only(self):
        config = {**TABLE, "objectives": ["perplexity", "letters"]}
        attnas.objective("letters", range=(10, 100))(letters)
        version = attnas.Study(config).config["objectives"][1]["version"]
        self.assertRegex(version, "^[0-9a-f]{12}$")
        first = attnas.Study(config, self.folder / "x").run()
        self.same(attnas.Study(config, self.folder / "x").run(), first)
        attnas.objective("letters", range=(10, 100))(lambda candidate: 1 + len(candidate.name))
        with self.assertRaisesRegex(attnas.InputError, f"objectives: .*{version}"):
            attnas.Study(config, self.folder / "x").run()
        with self.assertRaisesRegex(attnas.InputError, f"objectives.letters.version = {version}, must be "):
            attnas.Study(first.config)
        self.assertEqual(attnas.load(self.folder / "x").asks.shape, first.asks.shape)

    def test_a_measured_one_is_called_once_for_each_candidate(self):
        called = []

        @attnas.objective("seen", range=(0, 10), source="measured", unit="s", version="1")
        def seen(candidate):
            called.append(candidate)
            return float("nan") if len(called) == 2 else len(called)
        config = {"extends": str(SMOKE), "name": "x", "objectives": ["perplexity", "seen"],
                  "algorithm": {"name": "nsga2", "population": 8, "generations": 2}, "budget": {"evaluations": 6}}
        run = attnas.Study(config, self.folder).run()
        functions = [each.name.rpartition("|")[0] for each in called]  # without dropout
        self.assertEqual(len(functions), len(set(functions)))
        usable = run.candidates[run.candidates.status == "ok"]
        self.assertEqual(usable.seen.tolist(),
                         [1 + functions.index(name.rpartition("|")[0]) for name in usable.candidate])
        failed = run.evaluations[run.evaluations.status == "failed"]
        self.assertEqual(failed.reason.tolist(), ["objective seen = nan, must be finite"])
        self.assertEqual((called[0].width, called[0].device, called[0].genes["similarity"]),
                         (16, "cpu", called[0].name.split("|")[0]))
        self.same(attnas.Study(config, self.folder).run(), run)
        again = {each.name for each in called[len(functions):]}
        self.assertFalse(again & set(run.evaluations.candidate), "what is recorded is not measured again")

    def test_a_trained_one_sees_the_record(self):
        @attnas.objective("squared", source="trained", range=(0, 1e4), version="1")
        def squared(evaluation):
            return evaluation["values"]["perplexity"] ** 2
        run = attnas.Study(SMOKE, self.folder, objectives=["squared", "perplexity"],
                           algorithm={"name": "nsga2", "population": 8, "generations": 2}).run()
        pd.testing.assert_series_equal(run.front.squared, run.front.perplexity ** 2, check_names=False)

    def test_what_it_raises_ends_the_run_with_its_name(self):
        calls = iter(range(100))

        @attnas.objective("fragile", range=(0, 100), source="measured", version="1")
        def fragile(candidate):
            return 1 / (3 - next(calls))
        study = attnas.Study(SMOKE, self.folder, objectives=["perplexity", "fragile"],
                             algorithm={"name": "nsga2", "population": 8, "generations": 2})
        with self.assertRaisesRegex(attnas.Error, r"objective fragile of \S+: ZeroDivisionError: division") as caught:
            study.run()
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        self.assertGreater(len(study.run().front), 0)
        attnas.objective("fragile", range=(0, 100), source="measured", version="2")(lambda candidate: None)
        other = attnas.Study(SMOKE, self.folder / "other", objectives=["fragile"])
        with self.assertRaisesRegex(attnas.Error, "fragile of .*TypeError"):
            other.run()

    def test_an_interrupt_that_it_raises_is_not_ours(self):
        @attnas.objective("interrupted", range=(0, 100), version="1")
        def interrupted(candidate):
            raise KeyboardInterrupt
        study = attnas.Study(TABLE, self.folder, objectives=["interrupted"])
        with self.assertRaises(KeyboardInterrupt):  # it was waited for without an end
            study.run()
        self.assertEqual(len(attnas.Study(TABLE, self.folder / "next").run().asks), 30)

    def test_arguments_are_checked(self):
        for arguments, text in (({"name": "perplexity"}, "objective 'perplexity': attnas has one"),
                                ({"name": "a b"}, "must be a name of letters"),
                                ({"name": "a", "sense": "least"}, "sense = 'least', must be one of min, max"),
                                ({"name": "a", "source": "guessed"}, "must be one of analytic, measured, trained"),
                                ({"name": "a", "range": (2, 1)}, r"range = \(2, 1\), must be the least and"),
                                ({"name": "a", "version": None}, "must be given a version")):
            with self.subTest(text), self.assertRaisesRegex(attnas.InputError, text):
                attnas.objective(**{"version": "1", **arguments})(eval("lambda candidate: 1.0"))


class Algorithms(Case):
    def test_one_finds_the_best_of_a_table_and_continues(self):
        calls = []

        @attnas.algorithm("climb", objectives="one")
        def climb(search):
            """Goes to the best neighbour until none is better, from twenty random places."""
            calls.append(1)
            for _ in range(20):
                best = search.draw()
                [value] = search.ask([best])
                while True:
                    around = [{**best, gene: option} for gene, options in search.space.items()
                              for option in options if option != best[gene]]
                    values = search.ask(around)
                    if min(values) >= value:
                        break
                    value = min(values)
                    best = around[values.index(value)]
        config = {**TABLE, "algorithm": {"name": "climb", "population": 4}, "budget": {"asks": 20}}
        with self.assertRaisesRegex(attnas.InputError, "climb"):
            attnas.Study(config, objectives=["perplexity", "parameters"])
        stopped = attnas.Study(config, self.folder / "x").run()
        self.assertEqual((len(stopped.asks), stopped.digest["ended_by"]), (20, "20 asks"))
        run = attnas.Study(config, self.folder / "x", **{"budget.asks": 0}).run()
        self.assertEqual(run.digest["ended_by"], "the algorithm's end")
        self.assertEqual(run.asks.iloc[:20].perplexity.tolist(), stopped.asks.perplexity.tolist())
        everything = attnas.Study({**TABLE, "algorithm": {"name": "exhaustive"}}, self.folder / "all").run()
        self.assertEqual(run.front.mechanism.tolist(), everything.front.mechanism.tolist())
        self.assertEqual(len(calls), 2)
        attnas.algorithm("climb", objectives="one", version="2")(climb)
        with self.assertRaisesRegex(attnas.InputError, 'algorithm.version: "[0-9a-f]{12}" -> "2"'):
            attnas.Study(config, self.folder / "x").run()

    def test_real_genes_and_several_objectives(self):
        @attnas.algorithm("drift", version="1")
        def drift(search):
            self.assertTrue(all(isinstance(bounds, tuple) for bounds in search.space.values()))
            best, value = min(search.population, key=lambda own: own[1])
            while True:
                child = {gene: min(max(own + search.random.gauss(0, 0.1 * (hi - lo)), lo), hi)
                         for (gene, own), (lo, hi) in zip(best.items(), search.space.values())}
                [new] = search.ask([child])
                if new < value:
                    best, value = child, new
        run = attnas.Study({**SPHERE, "algorithm": {"name": "drift", "population": 10}}, self.folder / "s").run()
        self.assertLess(run.front.iloc[0][run.objectives[0]], 0.05)
        self.assertEqual(len(run.asks), 600)

        @attnas.algorithm("pairs", objectives="several", version="1")
        def pairs(search):
            self.assertEqual({len(fitness) for _, fitness in search.population}, {2})
            self.assertEqual({len(fitness) for fitness in search.ask([search.draw() for _ in range(5)])}, {2})
        several = attnas.Study({"extends": str(CONFIGS / "nsga2_zdt.yaml"), "name": "z"}, self.folder / "z",
                               algorithm={"name": "pairs", "population": 10})
        self.assertEqual(len(several.run().asks), 15)

    def test_it_is_not_called_for_a_plan(self):
        called = []

        @attnas.algorithm("look", version="1")
        def look(search):
            called.append(len(search.population))
            search.ask([search.draw()])
        settings = {"algorithm": {"name": "look", "population": 3}, "budget": {"evaluations": 5}}
        study = attnas.Study({"extends": [str(CONFIGS / "ga_baseline.yaml")], "name": "x", **settings,
                              **{section: attnas.Study(SMOKE).config[section] for section in ("data", "model", "training")}},
                             self.folder)
        self.assertEqual((study.plan(calibrate=False)["trainings"], called), (5, []))
        self.assertEqual((len(study.run().asks), called), (4, [3]))

    def test_what_cannot_be_asked_is_named(self):
        @attnas.algorithm("wrong", version="1")
        def wrong(search):
            own = search.population[0][0]
            for genotype, text in (({**own, "x": 1}, "unknown gene 'x', known: "),
                                   ({**own, "gating": "strange"}, "gating = .*strange"),
                                   ({**own, "gating": 1}, "gating = 1, must be one of none"),
                                   ({name: own[name] for name in own if name != "gating"}, "gating is missing")):
                with self.assertRaisesRegex(attnas.InputError, text):
                    search.ask([own, genotype])
            kept.append(search)
            raise KeyError("mine")
        kept = []
        study = attnas.Study({**TABLE, "algorithm": {"name": "wrong"}}, self.folder)
        with self.assertRaisesRegex(attnas.Error, "algorithm wrong: KeyError: 'mine'") as caught:
            study.run()
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        with self.assertRaisesRegex(attnas.InputError, "the search has ended"):
            kept[0].ask([])

    def test_an_objective_that_fails_beneath_it_is_what_is_told(self):
        attnas.objective("broken", range=(0, 1), version="1")(lambda candidate: {}["x"])
        attnas.algorithm("random_walk", version="1")(lambda search: search.ask([search.draw()]))
        with self.assertRaisesRegex(attnas.Error, "objective broken of .*KeyError: 'x'"):
            attnas.Study({**TABLE, "objectives": ["broken"], "algorithm": {"name": "random_walk"}}, self.folder).run()


class Loops(Case):
    def test_a_loop_measures_what_the_algorithm_asks_for(self):
        with attnas.AskAndTell(SMOKE, self.folder) as loop:
            for order in loop:
                self.assertIn("parameters", order.values)
                if order.candidate.startswith("additive"):
                    loop.tell(order, status="diverged", reason="as told")
                else:
                    loop.tell(order, {"perplexity": 100 + len(order.candidate)})
            self.assertTrue(loop.ended)
            run = loop.result()
        usable = run.candidates[run.candidates.status == "ok"]
        self.assertEqual(usable.perplexity.tolist(), [100.0 + len(name) for name in usable.candidate])
        self.same(attnas.load(self.folder), run)

    def test_what_is_told_is_kept_and_the_same_call_continues(self):
        config = {"extends": str(SMOKE), "name": "x"}
        with attnas.AskAndTell(config, self.folder) as loop:
            first, second = loop.ask(), loop.ask()
            self.assertIsNone(second, "the baseline is alone")
            loop.put_back(first)
            self.assertEqual(loop.ask().id, first.id)
            with self.assertRaisesRegex(attnas.InputError, "no perplexity was recorded"):
                loop.tell(first)
            with self.assertRaisesRegex(attnas.InputError, 'status = "paused", must be that of an end: its task does not pause'):
                loop.tell(first, {"perplexity": 5.0}, status="paused")
            with self.assertRaisesRegex(attnas.InputError, "unknown status 'fine', known: ok, stopped_early, "):
                loop.tell(first, {"perplexity": 5.0}, status="fine")
            loop.tell(first, {"perplexity": 5.0})
            with self.assertRaisesRegex(attnas.InputError, "must be that of an order that was asked for"):
                loop.tell(first, {"perplexity": 5.0})
        self.assertEqual(attnas.load(self.folder).evaluations.perplexity.tolist(), [5.0])
        with self.assertRaisesRegex(attnas.InputError, "is closed"):
            loop.ask()
        with attnas.AskAndTell(config, self.folder) as loop:
            self.assertNotEqual(loop.ask().id, first.id)

    def test_one_that_is_left_open_ends_with_the_process(self):
        lines = """import sys, attnas
            loop = attnas.AskAndTell(*sys.argv[1:], algorithm={"name": "random_search"}, on_progress=print)
            loop.tell(loop.ask(), {"perplexity": 7.0})"""
        done = subprocess.run([sys.executable, "-c", lines.replace(" " * 12, ""), SMOKE, self.folder],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(attnas.load(self.folder).evaluations.perplexity.tolist(), [7.0])


class Document(Case):
    def test_what_it_shows_runs(self):
        text = (ROOT / "docs" / "python.md").read_text().partition("## In this process")[2]
        text = text.partition("## Attention in PyTorch")[0]
        parts = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(parts), 4)
        (self.folder / "configs").symlink_to(CONFIGS)
        names: dict = {}
        shown = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(shown):
            for part in parts:
                file = pathlib.Path("part.py")  # where the sources of functions are looked for
                file.write_text(part)
                linecache.checkcache()
                exec(compile(part, file.absolute(), "exec"), names)
        self.assertIn("adapter_bytes", shown.getvalue())
        self.assertIn("climb", repr(attnas.load(self.folder / "runs" / "climb")))
