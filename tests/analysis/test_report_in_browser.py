"""The page about a run in a browser: its script runs, marks say what they are, tables sort."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from attnas.analysis import figures
from attnas.analysis.page import Chapter, Columns, Pictures, Report
from attnas.analysis.run import Run
from page_fixture import RunFixture
from attnas.analysis.commands.report import report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    raise unittest.SkipTest("no chromium")

# What a person would do; what they would see ends up in data attributes of the page.
VISIT = """<script>
const root = document.documentElement;
const visible = [...document.querySelectorAll("#front svg")].find((s) => s.clientWidth > 0);
visible.scrollIntoView();
const mark = visible.querySelector("circle.front");
const box = mark.getBoundingClientRect();
const at = {clientX: box.left + box.width / 2 + 3, clientY: box.top + box.height / 2,
            bubbles: true};
visible.dispatchEvent(new PointerEvent("pointermove", at));
root.dataset.tipText = document.getElementById("tip").innerText;
root.dataset.lit = document.querySelectorAll("circle.hot").length;
visible.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
root.dataset.tipHidden = document.getElementById("tip").hidden;
visible.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
root.dataset.stepped = document.getElementById("tip").hidden;
const rows = () => [...document.querySelectorAll("#all tbody tr")];
const third = () => rows().map((row) => Number(row.cells[2].dataset.v));
const button = document.querySelectorAll("#all th button")[2];
button.click();
root.dataset.rising = third().every((v, i, all) => i === 0 || all[i - 1] <= v);
button.click();
root.dataset.falling = third().every((v, i, all) => i === 0 || all[i - 1] >= v);
const input = document.querySelector("input[type=search]");
input.value = "highway softmax";
input.dispatchEvent(new Event("input"));
const left = rows().filter((row) => !row.hidden);
root.dataset.filtered = left.length > 0 && left.length < rows().length &&
  left.every((row) => /highway/.test(row.textContent) && /softmax/.test(row.textContent));
const course = [...document.querySelectorAll("#curves svg")].find((s) => s.clientWidth > 0);
course.scrollIntoView();
const last = [...course.querySelectorAll("circle.c0")].pop().getBoundingClientRect();
course.dispatchEvent(new PointerEvent("pointermove", {clientX: last.left - 4, clientY: last.top - 4,
                                                      bubbles: true}));
root.dataset.course = document.getElementById("tip").innerText;
root.dataset.line = document.querySelectorAll("#curves path.stroke.hot").length;
root.dataset.wide = document.body.scrollWidth <= innerWidth;
</script>"""


class Browser(unittest.TestCase):
    def visit(self, width: int, dark: bool = False, **settings) -> dict[str, str]:
        """Data attributes of the page's root after the visit."""
        with tempfile.TemporaryDirectory() as name:
            fixture = RunFixture(Path(name) / "run", **settings)
            fixture.retest()
            return self.seen(report(Run(Path(name) / "run")), VISIT, width, dark)

    def seen(self, page: str, visit: str, width: int, dark: bool = False) -> dict[str, str]:
        """Data attributes of a page's root after a visit, a script."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "page.html").write_text(page.replace("</body>", visit + "</body>"))
            done = subprocess.run(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                 f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900",
                 f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                 (folder / "page.html").as_uri()],
                capture_output=True, text=True, timeout=120, check=True)
        opening = re.search(r"<html[^>]*>", done.stdout).group(0)
        return dict(re.findall(r'data-([a-z-]+)="([^"]*)"', opening))

    def expect_all_well(self, seen: dict[str, str]) -> None:
        self.assertNotIn("error", seen)
        self.assertGreater(int(seen["marks"]), 400)
        self.assertIn("perplexity", seen["tip-text"])
        self.assertIn("attention_flops (FLOP)", seen["tip-text"])
        self.assertIn("n = 2", seen["tip-text"])
        self.assertRegex(seen["course"], r"perplexity \S+ at step 60\s+mean of 2 seeds")
        self.assertGreater(int(seen["line"]), 1, "its curve lights up")
        self.assertGreater(int(seen["lit"]), 3, "the mechanism lights up in other pictures too")
        self.assertEqual([seen[k] for k in ("tip-hidden", "stepped", "rising", "falling",
                                            "filtered", "wide")],
                         ["true", "false", "true", "true", "true", "true"])

    def test_on_a_desk(self):
        self.expect_all_well(self.visit(1100))

    def test_on_a_phone_in_the_dark(self):
        self.expect_all_well(self.visit(500, dark=True))

    def test_the_difference_stands_beside_a_long_name(self):
        for width, what in ((500, "td .ranged"), (1100, "td:nth-child(5)")):
            with tempfile.TemporaryDirectory() as name:
                fixture = RunFixture(Path(name) / "run")
                fixture.retest()
                retest = dict(Run(Path(name) / "run").retest)
                retest["candidates"] = [{**one, "label": "similarity=additive+normalization=sparsemax+temperature=per_query"}
                                        for one in retest["candidates"]]
                fixture.set("retest", retest)
                seen = self.seen(report(Run(Path(name) / "run")), f"""<script>
                    const box = document.querySelector("#retest {what}").getBoundingClientRect();
                    document.documentElement.dataset.right = box.right;
                    document.documentElement.dataset.inner = innerWidth;
                    </script>""", width)
            self.assertLessEqual(float(seen["right"]), float(seen["inner"]) - 16, what)

    def test_findings_on_a_phone(self):
        """Long names neither widen the page nor become a column of letters."""
        name = "model{position_embedding=none}/2*attn{dropout=0,position=rope,normalization=sparsemax}"
        drawn = figures.intervals(f"Change against {name}, %", "", "%", [figures.Row(name, "c0", 1.0, 0.0, 2.0)])
        page = Report.of_findings("Findings", [name], [
            Chapter("drawn", "Drawn", [Pictures({"drawn.svg": drawn})]),
            Chapter("numbers", "Numbers", [Columns([""] + ["language"] * 6, [[name] + ["+10.2 [+8.6 to +11.9]"] * 6])])], "made")
        with tempfile.TemporaryDirectory() as folder:
            page.write(Path(folder), "findings", {})
            seen = self.seen((Path(folder) / "findings.html").read_text(), """<script>
                document.documentElement.dataset.wide = document.body.scrollWidth <= innerWidth;
                document.documentElement.dataset.named = document.querySelector("#numbers td").clientWidth;
                </script>""", 500)
        self.assertEqual(seen["wide"], "true")
        self.assertGreater(int(seen["named"]), 120)
