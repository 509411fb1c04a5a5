"""The table of placements that nas-compare replays: analysis/studies/packed_placements.py."""

import shutil
import sys
from pathlib import Path

from python_tests import FolderTest, ROOT

sys.path.insert(0, str(ROOT / "analysis" / "studies"))

import packed_placements as own
from attnas.data import packing
from attnas.errors import InputError
from attnas.table import Table

RECORD = ROOT / "analysis/studies/records/placement_table"
HEAD = "seed,placement," + ",".join(f"{measure}_{fidelity}" for fidelity in own.FIDELITIES for measure in ("kl", "recall"))


class Packed(FolderTest):
    def write(self, *rows):
        shutil.copytree(RECORD / "teacher", self.folder / "teacher", dirs_exist_ok=True)
        path = Path(self.folder, "small.csv")
        path.write_text("\n".join([HEAD, *rows]) + "\n")
        return path

    def test_a_row_is_a_cell(self):
        content = own.content_of(self.write("4,01,1,2,3,4,5,6,7,8", "2,01,0,0,0,0,0,0,0.5,0.25", "2,00,0,0,0,0,0,0,0,0"))
        packing.write(content, self.folder / "small.table")
        table = Table(self.folder / "small.table")
        self.assertEqual((len(table), table.mechanisms), (3, ["full|full", "full|gdn{4,1}"]))
        values = table.query("full|gdn{4,1}", 1).values  # seeds in their order
        self.assertEqual([values[name] for name in ("full", "kl", "loss", "loss_F0", "recall_F2")], [1, 7, 15, 3, 6])
        self.assertEqual(table.query("full|gdn{4,1}", 0).values["loss"], 0.75)
        self.assertEqual(len(packing.cells_of(table)), 3)

    def test_rows_of_other_layers_are_refused(self):
        with self.assertRaisesRegex(InputError, "must be a table of"):
            own.content_of(self.write("1,01,1,2,3,4,5,6,7,8", "1,011,1,2,3,4,5,6,7,8"))

    def test_the_shipped_table_is_of_placements(self):
        table = Table(ROOT / "problems/tables/placements.table")
        self.assertEqual((len(table.mechanisms), table.publication["licence"]), (256, "CC0-1.0"))
        whole = table.query("|".join(["full"] * 8), 0).values
        self.assertAlmostEqual(whole["loss"], 0.0, places=6)
        self.assertEqual(whole["full"], 8)
