"""The confirmatory claims as one family, each side at a rate of its own."""

import csv
import json
import math
import pathlib

from studies import claims
from attnas.analysis.digest import BadInput
from digest_file import said_by, text_of
from fake_tables import IDENTITY, cell, write_run
from python_tests import FolderTest, said

TUNING, JUDGING = "1", "2"


class Claims(FolderTest):
    """Nll by rate: a side is best at the middle one; judging seeds know none of it."""

    def setUp(self):
        super().setUp()
        self.lines: list[list[str]] = []

    def side(self, name: str, valid: dict[float, float], test: list[float], best: float) -> None:
        """Three seeds at each rate that tunes; those that judge at the best one."""
        for rate, nll in valid.items():
            self.lines += [["task", TUNING, f"{rate:g}", name, str(seed), str(nll + 0.01 * seed), "9", "abc"] for seed in range(3)]
        self.lines += [["task", JUDGING, f"{best:g}", name, str(seed), "9", str(nll), "abc"] for seed, nll in enumerate(test)]

    def claim(self, name: str, *against: str, **more) -> dict:
        return {"claim": f"{name} is lower", "task": "task", "mechanism": name, "against": list(against), "tuning": TUNING,
                "judging": JUDGING} | more

    def family(self, *listed: dict) -> list[dict]:
        return claims.family(list(listed), claims.grouped(self.lines))

    def sides(self) -> None:
        self.side("own", {1e-3: 2.0, 2e-3: 1.0, 4e-3: 2.0}, [1.0, 1.1, 1.2], 2e-3)
        self.side("rival", {1e-3: 2.0, 2e-3: 1.5, 4e-3: 1.2, 8e-3: 3.0}, [1.05, 1.16, 1.26], 4e-3)
        self.side("poor", {1e-3: 4.0, 2e-3: 3.0, 4e-3: 5.0}, [3.0, 3.1, 3.3], 2e-3)

    def test_each_side_has_its_own_rate_and_the_best_of_the_others_is_the_rival(self):
        self.sides()
        row, = self.family(self.claim("own", "poor", "rival"))
        self.assertEqual((row["rate"], row["rival"], row["rival_rate"], row["n"], row["confirmed"]), (2e-3, "rival", 4e-3, 3, "yes"))
        self.assertAlmostEqual(row["difference"], math.expm1(-0.17 / 3))
        self.assertAlmostEqual(row["p"], 0.00344, places=4)  # t -17 of 0.05, 0.06, 0.06 at 2 degrees of freedom
        self.assertEqual(row["claim"], "own is lower")

    def test_a_difference_of_the_wrong_sign_counts_as_p_1_in_holms_correction(self):
        self.sides()
        right, wrong = self.family(self.claim("own", "rival"), self.claim("poor", "own"))
        self.assertLess(wrong["p"], 0.01)
        self.assertEqual((wrong["p_holm"], wrong["confirmed"]), (1.0, "no"))
        self.assertAlmostEqual(right["p_holm"], 2 * right["p"])
        text = claims.table([right, wrong])
        self.assertIn("| own is lower | 0.002, 0.004 | -5.5 % (-6.9 to -4.1) | 3 | 0.003 | 0.007 | stands |", text)
        self.assertRegex(text, r"\| poor is lower .* \| 1.000 \| falls \|")

    def test_nothing_is_confirmed_against_a_rival_that_may_do_better_beyond(self):
        self.sides()
        self.lines = [line for line in self.lines if line[2] != "0.008"]
        row, = self.family(self.claim("own", "rival"))
        self.assertEqual((row["rival_rate"], row["open_rate"], row["p_holm"], row["confirmed"]), (4e-3, True, 1.0, "no"))
        self.assertIn("| 0.002, 0.004 (end) |", claims.table([row]))

    def test_too_few_rates_are_refused(self):
        self.sides()
        with self.assertRaisesRegex(BadInput, "task: absent is tuned at 0 rates"):
            self.family(self.claim("absent", "own"))
        self.lines = [line for line in self.lines if line[2] != "0.001"]
        with self.assertRaisesRegex(BadInput, "own is tuned at 2 rates with 1 sets of seeds, must be at least 3"):
            self.family(self.claim("own", "rival"))

    def test_a_failed_run_makes_its_rate_the_worst_and_judges_nothing(self):
        self.sides()
        self.lines = [[*line[:5], "inf", "inf", "abc"] if line[:5] == ["task", "1", "0.004", "rival", "2"] else line for line in self.lines]
        self.lines += [["task", JUDGING, "0.002", "rival", str(seed), "9", "2", "abc"] for seed in range(3)]
        row, = self.family(self.claim("own", "rival"))
        self.assertEqual(row["rival_rate"], 2e-3)
        self.lines[-1][6] = "inf"
        with self.assertRaisesRegex(BadInput, "task: a training run that judges failed"):
            self.family(self.claim("own", "rival"))

    def test_without_seeds_that_tune_a_claim_is_at_one_rate_and_says_so(self):
        self.sides()
        without = self.claim("own", "poor")
        del without["tuning"]
        row, = self.family(without)
        self.assertEqual(row["claim"], "At one learning rate: own is lower")
        self.lines += [["task", JUDGING, "0.1", "own", "0", "9", "1", "abc"]]
        with self.assertRaisesRegex(BadInput, "own has 2 rates with the seeds 2, must have one"):
            self.family(without)

    def test_what_is_not_judged_is_named_and_a_family_has_at_most_six(self):
        self.sides()
        with self.assertRaisesRegex(BadInput, "0 seeds 3 judge own at 0.002 and rival at 0.004, must be at least 2"):
            self.family(self.claim("own", "rival", judging="3"))
        with self.assertRaisesRegex(BadInput, "7 claims, must be 1 to 6"):
            self.family(*[self.claim("own", "rival")] * 7)
        with self.assertRaisesRegex(BadInput, "0 claims"):
            self.family()

    def test_a_record_of_gates_has_both_kinds_of_seeds(self):
        model = {"candidate": "own", "learning_rate": 0.002, "valid_nll": [1.0, None], "test_nll": [1.5, None],
                 "tuning": [{"learning_rate": 0.001, "valid_nll": [3.0]}]}
        (self.folder / "gates.json").write_text(json.dumps(
            {"gates": [], "config": {"name": "task"}, "identity": {"run_seed": 42}, "revision": "abc", "models": [model]}))
        self.assertEqual(claims.lines_of(str(self.folder / "gates.json")),
                         [["task", "42 tuning", "0.001", "own", "0", "3.0", "nan", "abc"],
                          ["task", "42", "0.002", "own", "1000000", "1.0", "1.5", "abc"],
                          ["task", "42", "0.002", "own", "1000001", "inf", "inf", "abc"]])

    def run_of(self, cells: dict) -> str:
        path = self.folder / "run.json"
        write_run(path, cells, identity={**IDENTITY, "training": {"learning_rate": 0.004}})
        path.write_text(text_of(said_by(path) | {"environment": {"revision": "abc"}}))
        return str(path)

    def test_the_program_adds_runs_to_its_file_and_says_what_is_wrong(self):
        self.sides()
        out, names = self.folder / "out", ["dot|softmax|none|fixed|bias|0", "dot|sparsemax|none|fixed|bias|0"]
        out.mkdir()
        (self.folder / "claims.json").write_text(json.dumps([self.claim("own", "rival")]))
        (out / "trainings.csv").write_text(claims.csv_text(claims.TRAINING, self.lines))
        run = self.run_of({(names[0], 1000000): cell(2.0), (names[1], 1000000): cell(3.0, status="diverged")})
        command = [str(self.folder / "claims.json"), run, "-o", str(out)]
        for _ in range(2):  # what is there already is replaced
            self.assertEqual(said(claims.main, *command)[0], 0)
        with open(out / "trainings.csv", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row[0] == "fake"]
        self.assertEqual(rows, [["fake", "42", "0.004", names[0], "1000000", repr(math.log(2.2)), repr(math.log(2.0)), "abc"],
                                ["fake", "42", "0.004", names[1], "1000000", "inf", "inf", "abc"]])
        with open(out / "claims.csv", encoding="utf-8") as file:
            self.assertEqual([row["confirmed"] for row in csv.DictReader(file)], ["yes"])
        unscored = cell(2.0)
        del unscored["values"]["test_nll"]
        self.run_of({(names[0], 1000000): unscored})
        self.assertIn("the test split was not scored, must be", said(claims.main, *command)[2])
        made = said_by(pathlib.Path(run))
        made["retest"] = {"candidates": [{"learning_rate": 0.1, "evaluations": [one["id"] for one in made["evaluations"]]}]}
        pathlib.Path(run).write_text(text_of(made))
        (self.folder / "broken.json").write_text("[")
        for wrong, why in ((command, "its rows have rates of their own, must be one"),
                           ([str(self.folder / "broken.json"), *command[2:]], "broken.json: ")):
            code, _, errors = said(claims.main, *wrong)
            self.assertEqual(code, 2)
            self.assertIn(why, errors)
        (out / "trainings.csv").write_text("task,other\n")
        self.assertIn("its columns are task, other, must be task, seeds", said(claims.main, *command)[2])
