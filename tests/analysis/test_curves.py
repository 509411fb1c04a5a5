"""Learning curves of a run."""

import math
import re
from unittest import mock

import numpy as np
from attnas.analysis.curves import curves, measure
from attnas.analysis.html import plain
from attnas.analysis.run import Run
from attnas.analysis.sections import curves as section
from page_fixture import BASELINE, RunFixture
from python_tests import FolderTest


class CurvesTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder / "run"

    def fixture(self, **settings) -> RunFixture:
        return RunFixture(self.folder, **{"objectives": 1, "replicates": 1, "failures": False,
                                          **settings})

    def run_of(self, ends: list[list[float]], steps=(20, 40, 60)) -> Run:
        """One in which candidates have these perplexities at the steps, the one of the row 0 being
        the baseline."""
        made = self.fixture(asked=0)
        made.evaluations.clear()
        for i, own in enumerate(ends):
            name = BASELINE if i == 0 else f"mechanism {i}"
            made.add(f"id {i}", name, 0, "ok", "", {"perplexity": own[-1]}, [
                {"step": step, "valid": {"tokens": 10, "correct": 1, "nll": 10 * math.log(value)}}
                for step, value in zip(steps, own)], {"train_seconds": 1.0})
            if i == 0:
                made.baseline, made.baseline_fitness = ["id 0"], [own[-1]]
            else:
                made.answer(name, [f"id {i}"], [own[-1]])
        made.write()
        return Run(self.folder)

    def words(self, run: Run) -> str:
        return re.sub(r"\s+", " ", plain(section.section(run).body))

    def test_are_means_over_replicates(self):
        self.fixture(replicates=3)
        run = Run(self.folder)
        known = {curve.label: curve for curve in curves(run)}
        self.assertEqual(list(known), [c.label for c in run.with_baseline(run.ranking)])
        self.assertEqual([c.label for c in known.values() if c.is_baseline], [BASELINE])
        for candidate in run.ranking:
            own = known[candidate.label]
            self.assertEqual((list(own.points), own.replicates), ([20, 40, 60], 3))
            self.assertAlmostEqual(own.end, candidate.values[0])
            self.assertGreater(own.points[20], own.points[40])
        self.assertIn("each the mean of its 3 seeds", self.words(run))

    def test_of_unequal_replicates_end_where_all_have_come(self):
        made = self.fixture(replicates=2)
        made.stop(made.asks[0]["evaluations"][:1])
        own = next(c for c in curves(Run(self.folder)) if c.label == made.asks[0]["candidate"])
        self.assertEqual(list(own.points), [20])

    def test_measure_is_what_the_search_goes_by(self):
        self.fixture()
        run = Run(self.folder)
        self.assertEqual(measure(run).name, "perplexity")
        run.digest["objectives"][0]["key"] = "accuracy"
        self.assertEqual(measure(run).name, "accuracy")

    def test_what_is_not_finite_is_left_out(self):
        made = self.fixture()
        id_ = made.asks[0]["evaluations"][0]
        for point in made.evaluations[id_]["curve"]:
            point["valid"]["nll"] = None
        made.evaluations[made.asks[1]["evaluations"][0]]["curve"][0]["valid"]["nll"] = 1e9
        made.write()
        known = {curve.label: curve for curve in curves(Run(self.folder))}
        self.assertNotIn(made.asks[0]["candidate"], known)
        self.assertEqual(list(known[made.asks[1]["candidate"]].points), [40, 60])

    def test_one_validation_names_the_setting(self):
        run = self.run_of([[99], [98]], steps=(60,))
        self.assertIn("validated at its end alone. training.checkpoints: [20, 40]", self.words(run))
        self.assertEqual(section.pictures(run), {})
        self.assertNotIn("training.checkpoints", self.words(self.run_of([[99], [98]], steps=(1,))))

    def test_without_curves_there_is_no_section(self):
        made = self.fixture()
        for own in made.evaluations.values():
            own["curve"] = []
        made.write()
        self.assertIsNone(section.section(Run(self.folder)))

    def test_stopped_ones_are_drawn(self):
        made = self.fixture()
        made.stop(made.asks[0]["evaluations"])
        run = Run(self.folder)
        picture = section.pictures(run)["curves"].draw(860)
        self.assertEqual(sum("<title>" in part for part in picture.parts), 3 * len(curves(run)) - 2)

    def test_many_mechanisms_are_thinned(self):
        self.fixture()
        run = Run(self.folder)
        with mock.patch.object(section, "MOST_DOTS", 30):
            figure = section.pictures(run)["curves"]
        drawn = sum("<title>" in part for part in figure.draw(360).parts)
        self.assertLessEqual(drawn, 30 + 3 * 6)
        self.assertRegex(figure.caption, r"of \d+ of the \d\d others, evenly by rank, pale")

    def test_marks_lie_on_the_picture(self):
        self.fixture(objectives=2)
        for figure in section.pictures(Run(self.folder)).values():
            for width in (860, 360):
                picture = figure.draw(width)
                places = np.array([[float(v) for v in re.findall(r' c[xy]="([^"]*)"', part)]
                                   for part in picture.parts if part.startswith("<circle")])
                self.assertTrue((places >= 0).all() and (places[:, 0] <= width).all()
                                and (places[:, 1] <= picture.height).all())

    def test_listed_mechanisms_have_curves(self):
        made = self.fixture(replicates=2)
        made.retest()
        ids = [made.asks[0]["evaluations"], made.baseline]
        records = [{**record, "evaluations": own, "candidate": made.evaluations[own[0]]["candidate"]}
                   for record, own in zip([made.further["retest"]["candidates"][i] for i in (0, 4)],
                                          ids)]
        made.asks.clear()
        made.further["config"]["mechanisms"] = ["x"]
        made.set("retest", {**made.further["retest"], "candidates": records})
        known = curves(Run(self.folder))
        self.assertEqual([(curve.is_baseline, curve.replicates) for curve in known],
                         [(False, 2), (True, 2)])
        self.assertEqual(list(section.pictures(Run(self.folder))), ["curves"])
