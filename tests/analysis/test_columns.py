"""results.json as the programs write it: tests/data/rungs, a search by rungs with two objectives, and analysis/results/quickstart."""

import json
import math
import pathlib
import tracemalloc

from attnas.analysis import digest
from attnas.analysis.run import Run
from page_fixture import RunFixture
from python_tests import FolderTest, ROOT

RUNGS = ROOT / "tests" / "data" / "rungs"  # results.json, and the canonical export of the same run


def finite(value):
    """JSON with null in the place of texts for what is not finite, as digests have it."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if value in ("nan", "inf", "-inf") else value


class Columns(FolderTest):
    def setUp(self):
        super().setUp()
        self.text = (RUNGS / "results.json").read_text(encoding="utf-8")

    def changed(self, text: str) -> pathlib.Path:
        file = self.folder / "results.json"
        file.write_text(text, encoding="utf-8")
        return file

    def test_records_are_those_of_the_canonical_export(self):
        own = digest.read(RUNGS / "results.json")
        lines = [json.loads(line) for line in (RUNGS / "canonical.jsonl").read_text(encoding="utf-8").splitlines()]
        asked = [line for line in lines if "ask" in line]
        found = [{"ask": ask["number"], **{key: ask[key] for key in ("batch", "genotype", "fitness", "evaluations", "reused")}}
                 for ask in own["asks"]]
        found += [{"ask": ask["number"], "until": ask["step"], **{key: ask[key] for key in ("batch", "genotype", "fitness", "evaluation")}}
                  for ask in own["rung_asks"]]
        self.assertEqual(found, finite(asked))
        self.assertGreater(len(own["rung_asks"]), 0)
        for line, one in zip([line for line in lines if "curve" in line], [*own["evaluations"], *own["paused"]], strict=True):
            identity = {**own["identities"][one["identity"]], "candidate": one["candidate"], "replicate": one["replicate"]}
            self.assertEqual(identity, {**line.pop("identity"), "replicate": one["replicate"]})
            curve = [{key: value for key, value in point.items() if key != "seconds"} for point in one["curve"]]
            self.assertEqual({**{key: one[key] for key in line}, "curve": curve}, finite(line))

    def test_what_follows_from_records_names_them(self):
        for run in (RUNGS, ROOT / "analysis" / "results" / "quickstart"):
            own = digest.read(run / "results.json")
            of = {one["id"]: one["candidate"] for one in own["evaluations"]}
            for one in [*own["ranking"], own["baseline"], *own["controls"], *own["asks"]]:
                self.assertEqual({of[id_] for id_ in one["evaluations"]}, {one["candidate"]})
            for one in [*own["ranking"], own["baseline"]]:
                self.assertEqual(one["mechanism"], own["labels"].get(one["candidate"], one["candidate"]))
            self.assertEqual([own["ranking"][place]["on_front"] for place in own["front"]], [True] * len(own["front"]))
            self.assertEqual(len(own["failures"]), own["counts"]["failures"])
            self.assertEqual([one["number"] for one in own["asks"][-2:]], [one["number"] for one in own["asks"]][-2:])
            with self.assertRaises(IndexError):
                own["asks"][len(own["asks"])]
            plain = own.plain()
            self.assertEqual(plain["ranking"], own["ranking"])
            self.assertEqual(json.loads(json.dumps(plain)), plain)

    def test_other_lines_say_the_same(self):
        self.assertEqual(digest.read(self.changed(json.dumps(json.loads(self.text), indent=2))).plain(),
                         digest.read(RUNGS / "results.json").plain())

    def test_damage_is_refused(self):
        with self.assertRaisesRegex(digest.BadInput, "not a digest of a run: "):
            digest.read(self.changed(self.text[:len(self.text) // 2]))
        run = Run(self.changed(self.text.replace('"replicate":', '"replicat":')))
        with self.assertRaisesRegex(digest.BadInput, "damaged: KeyError: 'replicate'"):
            run.evaluations  # pylint: disable=pointless-statement
        with self.assertRaisesRegex(digest.BadInput, "not a digest of a run: 'ranking'"):
            digest.read(self.changed(self.text.replace('"ranking"', '"rankin"')))
        with self.assertRaisesRegex(digest.BadInput, "not a digest of a run: "):
            digest.read(self.changed(self.text.replace('"records":', '"record":')))

    def test_reading_takes_a_part_of_the_memory_of_all(self):
        own = json.loads(RunFixture(self.folder, asked=400, replicates=5).file.read_bytes())
        block = own["evaluations"][0]
        own["evaluations"] = [{"columns": {key: column[i:i + 20] for key, column in block["columns"].items()},
                               "records": len(column[i:i + 20])}
                              for i in range(0, block["records"], 20) for column in (block["columns"]["id"],)]
        lines = [f'"{key}": ' + ("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in value) + "\n]"
                                 if isinstance(value, list) and value and isinstance(value[0], dict) else json.dumps(value))
                 for key, value in own.items()]
        file = self.changed("{\n" + ",\n".join(lines) + "\n}\n")

        def peak(read) -> int:
            tracemalloc.start()
            read()
            self.addCleanup(tracemalloc.stop)
            return tracemalloc.get_traced_memory()[1]

        whole = peak(lambda: json.loads(file.read_bytes()))
        tracemalloc.stop()
        found = digest.read(file)
        self.assertEqual(math.fsum(1 for _ in found["evaluations"]), block["records"])
        self.assertLess(peak(lambda: sum(len(each["curve"]) for each in found["evaluations"])), 0.1 * whole)
