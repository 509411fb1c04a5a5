"""Digests of version 4: they say what version 3 said, in less memory."""

import json
import tempfile
import tracemalloc
import unittest
from pathlib import Path

from attnas.analysis import columns, digest
from attnas.analysis.commands.report import report
from attnas.analysis.run import Run
from columns_fixture import of_version_4, text_of
from page_fixture import RunFixture


class Columns(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def fixture(self, **more) -> RunFixture:
        return RunFixture(self.folder / "run", **more)

    def rewritten(self, fixture: RunFixture, size: int = 7, lines: bool = True) -> Path:
        """The same digest in version 4."""
        before = json.loads(fixture.file.read_text(encoding="utf-8"))
        fixture.file.write_text(json.dumps(before, sort_keys=True), encoding="utf-8")
        own = of_version_4(before, size)
        file = self.folder / "4" / "results.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text_of(own) if lines else json.dumps(own), encoding="utf-8")
        return file

    def expect_equal(self, fixture: RunFixture, file: Path) -> None:
        before, found = digest.read(fixture.file), digest.read(file)
        for key in before.keys() - {"front", "rejected"}:
            self.assertEqual(found[key], before[key], key)
        self.assertEqual([(own["candidate"], own["reason"]) for own in found["rejected"]],
                         [(own["candidate"], own["reason"]) for own in before["rejected"]])
        self.assertEqual([(own["candidate"], own["knee"], own["values"]) for own in found["front"]],
                         [(own["candidate"], own["knee"], own["values"]) for own in before["front"]])
        self.assertEqual(report(Run(file)), report(Run(fixture.file)))

    def test_they_say_the_same(self):
        for more in ({"objectives": 1}, {"objectives": 3, "replicates": 1}, {"asked": 90}, {"asked": 0}):
            fixture = self.fixture(**more)
            for size, lines in ((7, True), (1000, True), (7, False)):
                with self.subTest(**more, size=size, lines=lines):
                    self.expect_equal(fixture, self.rewritten(fixture, size, lines))

    def test_what_failed_was_rejected_stopped_or_tested_again(self):
        fixture = self.fixture()
        fixture.reject("additive|sigmoid|none|fixed|bias|0.3", "parameters = 5000 > 4100")
        fixture.stop(fixture.asks[3]["evaluations"])
        fixture.retest()
        fixture.set("labels", {fixture.asks[0]["candidate"]: "a name for people", "of no evaluation": "x"})
        fixture.set("truth", {fixture.asks[1]["candidate"]: [81.0, 2.0]})
        self.expect_equal(fixture, self.rewritten(fixture))

    def test_failures_are_told_by_their_evaluations(self):
        fixture = self.fixture()
        own = json.loads(fixture.file.read_text(encoding="utf-8"))
        own["failures"] = [{"mechanism": one["candidate"], "status": one["status"], "reason": one["reason"], "evaluation": one["id"]}
                           for one in own["evaluations"] if not one["usable"]]
        self.assertTrue(own["failures"])
        self.assertEqual(columns.of(of_version_4(own))["failures"], own["failures"])

    def test_of_asks_the_genotype_stays_where_it_is_not_the_name(self):
        fixture = self.fixture(asked=9)
        fixture.asks[4]["genotype"] = "as asked"
        fixture.write()
        found = digest.read(self.rewritten(fixture))
        self.assertEqual([ask["genotype"] for ask in found["asks"]], [ask["genotype"] for ask in fixture.asks])
        self.assertEqual(found["asks"][-1]["genotype"], fixture.asks[-1]["genotype"])
        self.assertEqual([ask["number"] for ask in found["asks"][6:8]], [6, 7])
        with self.assertRaises(IndexError):
            found["asks"][9]

    def test_damage_is_refused(self):
        file = self.rewritten(self.fixture())
        text = file.read_text(encoding="utf-8")
        file.write_text(text[:len(text) // 2], encoding="utf-8")
        with self.assertRaisesRegex(digest.BadInput, "not a digest of a run: "):
            digest.read(file)
        file.write_text(text.replace('"replicate":', '"replicat":'), encoding="utf-8")
        run = Run(file)
        with self.assertRaisesRegex(digest.BadInput, "damaged: KeyError: 'replicate'"):
            run.evaluations  # pylint: disable=pointless-statement
        file.write_text(text.replace('"ranking"', '"rankin"'), encoding="utf-8")
        with self.assertRaisesRegex(digest.BadInput, "not a digest of a run: 'ranking'"):
            digest.read(file)

    def test_reading_takes_a_part_of_the_memory_of_all(self):
        fixture = self.fixture(asked=400, replicates=5)
        file = self.rewritten(fixture, size=20)

        def peak(read) -> int:
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            read()
            return tracemalloc.get_traced_memory()[1]

        whole = peak(lambda: json.loads(fixture.file.read_bytes()))
        tracemalloc.stop()
        found = digest.read(file)
        self.assertLess(peak(lambda: sum(len(each["curve"]) for each in found["evaluations"])), 0.1 * whole)


if __name__ == "__main__":
    unittest.main()
