"""Mechanisms by kinds of data: what is said, drawn, written or refused, of runs that never were."""

import copy
import csv
import dataclasses
import math
import pathlib

from attnas.analysis import latex
from studies import domains
from attnas.analysis.digest import BadInput
from attnas.analysis.run import Run
from page_fixture import BASELINE, RunFixture
from python_tests import FolderTest, said


class Domains(FolderTest):
    """Four mechanisms and the baseline; a difference is in nats, and shown where p is below 0.05."""

    def run_(self, name: str, differences: list[float], shown: list[bool], control: int | None = None, counts: float = math.inf) -> str:
        path = self.folder / name
        made = RunFixture(path, objectives=1)
        made.retest()
        retest = copy.deepcopy(Run(path).retest)
        for place, (value, is_shown) in enumerate(zip(differences, shown)):
            name = f"dot|sparsemax|none|fixed|bias|0.{place}"
            retest["candidates"][place] |= {"candidate": name, "label": name, "role": "control" if place == control else "listed"}
            retest["candidates"][place]["against_baseline"] |= {"difference": value, "low": value - 0.05, "high": value + 0.05,
                                                                 "p_holm": 0.01 if is_shown else 0.4}
        made.set("retest", retest)
        made.set("count_models", [{"order": order, "valid_nll": counts + 6 - order} for order in range(1, 7)])
        return str(path)

    def table(self, *paths: str) -> domains.Table:
        return domains.Table([domains.read(path) for path in paths])

    def refused(self, why: str, *paths: str) -> None:
        with self.assertRaises(BadInput) as raised:
            self.table(*paths)
        self.assertIn(why, str(raised.exception))

    def two(self) -> tuple[str, str]:
        return (self.run_("english", [-0.1, 0.1, -0.2, 0.02], [True, True, True, False]),
                self.run_("chinese", [-0.1, -0.1, 0.3, 0.01], [True, True, False, False]))

    def test_sorts_mechanisms_by_what_is_shown(self):
        table = self.table(*self.two())
        names = [table.brief(name) for name in table.mechanisms]
        said_ = domains.verdict(table)
        self.assertEqual(said_[0], f"At one learning rate: 4 mechanisms beside {BASELINE} on 2 kinds of data: english and chinese.")
        self.assertEqual(said_[1], f"Better on some and shown to be worse on none: {names[0]} (better on english and chinese) "
                                   f"and {names[2]} (better on english).")
        self.assertEqual(said_[2], f"Better on some and worse on others: {names[1]} (better on chinese and worse on english).")
        self.assertEqual(said_[3], "Worse on some and shown to be better on none: none.")
        self.assertEqual(said_[4], f"Not shown to differ on any: {names[3]}.")

    def test_tells_whether_ranks_are_alike(self):
        alike = [self.run_(name, [-0.2, -0.1, 0.1, 0.2], [True] * 4) for name in ("one", "two")]
        (_, _, tau), = self.table(*alike).taus()
        self.assertEqual(tau.point, 1.0)
        other = self.run_("three", [0.2, 0.1, -0.1, -0.2], [True] * 4)
        (_, _, tau), = self.table(alike[0], other).taus()
        self.assertEqual(tau.point, -1.0)

    def test_compares_with_a_mechanism_too(self):
        table = self.table(*self.two())
        rival, name = table.mechanisms[:2]
        for domain, gains in zip(table.domains, ([0.1, 0.3, 0.2], [0.1])):
            nll = {rival: {0: 1.0, 1: 2.0, 2: 3.0, 7: 9.0}, name: {seed: seed + 1.0 - gain for seed, gain in enumerate(gains)}}
            one = domain.run.evaluations[0]
            domain.run.evaluations = [dataclasses.replace(one, candidate=which, replicate=seed, values={"test_perplexity": math.exp(value)})
                                      for which, found in nll.items() for seed, value in found.items()]
        (found, domain, shown, p, n), = table.besides(table.called(table.brief(rival)))  # of the other domain one seed alone
        self.assertEqual((found, domain.name, n), (name, "english", 3))
        margin = 4.302652729911275 * 0.1 / math.sqrt(3)
        for value, expected in zip(shown, (-0.2, -0.2 - margin, -0.2 + margin)):
            self.assertAlmostEqual(value, 100 * math.expm1(expected), places=9)
        self.assertAlmostEqual(p, 0.0741799, places=6)
        self.assertEqual(len(domains.beside(table, rival).splitlines()), 2)
        tests = list(csv.DictReader(domains.tests(table).splitlines()))
        self.assertEqual([(row["domain"], int(row["replicate"])) for row in tests if row["candidate"] == rival],
                         [(name, seed) for name in ("english", "chinese") for seed in (0, 1, 2, 7)])
        self.assertAlmostEqual(float(next(row["test"] for row in tests if row["candidate"] == name)), 0.9)
        with self.assertRaisesRegex(BadInput, "--beside rope, must be one of dot"):
            table.called("rope")

    def test_names_say_what_is_changed(self):
        base = "model{position_embedding=none}/2*attn{dropout=0,position=rope}"
        for name, short in {"model{position_embedding=none}/2*attn{normalization=sparsemax,dropout=0,position=rope}": "sparsemax",
                            "model{position_embedding=none}/2*attn{normalization=stick_breaking,dropout=0}": "stick_breaking + no rope",
                            "model{position_embedding=none}/2*attn{dropout=0,position=alibi}": "alibi",
                            "model{position_embedding=none}/2*swa{dropout=0,window=16,position=rope}": "swa + window=16",
                            "model{position_embedding=none}/2*gla": "gla", "model{position_embedding=none}/3*gla": None,
                            "dot|softmax|none|fixed|bias|0": None, "no mixer": None, base: None}.items():
            self.assertEqual(domains.changed(name, base), short or name)

    def test_controls_are_apart(self):
        table = self.table(self.run_("a", [-0.1, 0.1, 0.2, 0.3], [True] * 4, control=1),
                           self.run_("b", [-0.1, 0.1, 0.2, 0.3], [True] * 4, control=1))
        self.assertEqual((len(table.mechanisms), len(table.controls)), (3, 1))
        self.assertEqual(table.taus(), [])  # of three mechanisms there is none

    def test_says_where_attention_is_not_needed(self):
        runs = [self.run_(name, [-0.1, difference, 0.2, 0.3], [True, shown, True, True], control=1, counts=counts)
                for name, difference, shown, counts in (("a", 0.1, True, 99.0), ("b", 0.1, False, 99.0), ("c", -0.1, True, 99.0),
                                                        ("d", 0.1, True, 0.0))]
        said_ = domains.verdict(self.table(*runs))
        name = self.table(*runs).domains[0].as_good()
        self.assertEqual(name, [])
        control = self.table(*runs).domains[1].as_good()[0]
        self.assertEqual(said_[1], "The baseline is shown to be ahead of all that does without attention, or with little of it, on a. Not "
                                   f"shown to be worse than it: {control} on b; {control} on c; counts on d. There differences say "
                                   "little of attention.")

    def test_a_mechanism_may_be_missing(self):
        first, second = self.two()
        table = self.table(first, second)
        del table.domains[1].rows[table.mechanisms[0]]
        self.assertIn("better on english)", domains.verdict(table)[1])
        self.assertIn("\u2013", str(domains.numbers(table)[1].parts[0].markdown()))

    def test_marks_ties_in_the_picture(self):
        picture = str(domains.heat(self.table(*self.two())).file())
        self.assertEqual(picture.count(" =</text>"), 3)
        self.assertIn("\u22129.5</text>", picture)  # 100 (e^-0.1 - 1)
        self.assertIn("\u221213.9 to \u22124.9", picture)

    def test_writes_every_cell(self):
        first, second = self.two()
        out = self.folder / "out"
        code, printed, err = said(domains.main, first, second, "-o", out)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("written to", printed)
        rows = list(csv.DictReader((out / "domains.csv").read_text().splitlines()))
        self.assertEqual(len(rows), 8)
        self.assertEqual([row["domain"] for row in rows[:2]], ["english", "chinese"])
        self.assertEqual(float(rows[0]["difference"]), latex.rows(Run(pathlib.Path(first)))[0]["difference"])
        self.assertTrue((out / "heat.svg").read_text().startswith("<svg"))
        self.assertIn("![heat](heat.svg)", (out / "domains.md").read_text())

    def test_refuses_what_is_no_comparison(self):
        first, second = self.two()
        self.refused("1 run given, must be at least 2", first)
        self.refused("must have folders of different names", first, first)
        other = self.folder / "other"
        RunFixture(other, objectives=1)
        self.refused("compares nothing with its baseline, must be a run of nas-train", first, str(other))
        code, out, err = said(domains.main, first, "-o", self.folder / "none")
        self.assertEqual((code, out), (2, ""))
        self.assertFalse((self.folder / "none").exists())
