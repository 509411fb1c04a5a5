"""The page of nas-watch in a browser: its script runs under its policy, texts of a run stay texts, and thousands of
evaluations are no burden."""

import re
import shutil
import signal
import subprocess
import unittest
import urllib.request
from pathlib import Path

import digest_file
from attnas.analysis import packages
from python_tests import FolderTest, PROGRAMS, ROOT, need

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None or packages.missing("starlette", "uvicorn"):
    raise unittest.SkipTest("no chromium, or no starlette and uvicorn")
need(program="nas-watch")

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"><b>bold</b>&amp;"


def write_store(file: Path, count: int, validations: int = 10, name: str = HOSTILE) -> None:
    """A finished run of two objectives whose names, labels and reasons are full of markup.

    @param name  what candidates' names begin with.
    """
    facts = {"config": {"name": HOSTILE, "budget": {"evaluations": count}}, "ended_by": f"{HOSTILE} asks",
             "objectives": [{"name": name, "key": name, "unit": "1", "maximise": False, "best": 0, "worst": worst}
                            for name, worst in ((HOSTILE, 100), ("flops", 10))],
             "sessions": [{"environment": {}, "host": HOSTILE, "pid": 1, "started": "2026-01-31T12:00:00Z"}]}
    evaluations, asks = [], []
    for i in range(count):
        values = [20 + i % 977 / 100, i % 641]
        curve = [{"step": 50 * k, "train_nll": 5, "seconds": k, "valid": {"nll": 50 + 40 / k, "tokens": 10}}
                 for k in range(11 - validations, 11)]
        evaluations.append({"id": f"e{i:05d}", "candidate": f"{name}|{i}", "replicate": 0, "status": "ok", "reason": "", "identity": {},
                            "curve": curve, "values": {HOSTILE: values[0], "flops": values[1]}, "measured": {"train_seconds": 2.0}})
        asks.append({"number": i, "batch": i // 10, "genotype": "g", "evaluations": [f"e{i:05d}"], "reused": 0, "fitness": values})
    evaluations[1] |= {"status": "failed", "reason": HOSTILE, "curve": []}
    digest_file.write_store(file, facts, evaluations, asks, [i / count for i in range(count)])


class Browser(FolderTest):
    def setUp(self):
        super().setUp()
        self.watch = None

    def tearDown(self):
        if self.watch:
            self.watch.send_signal(signal.SIGINT)
            self.assertEqual(self.watch.wait(10), 0)
            self.watch.stdout.close()

    def show(self, count: int, **settings) -> str:
        """@return the address of the page of a run."""
        write_store(self.folder / "store.sqlite", count, **settings)
        return self.address()

    def show_runs(self, count: int) -> str:
        """@return the address of the page of so many runs, whose names are markup."""
        for i in range(count):
            folder = self.folder / f"<img src=x onerror=alert(1)>{i}"
            folder.mkdir()
            write_store(folder / "store.sqlite", 8)
        return self.address()

    def address(self) -> str:
        """@return that of nas-watch, which is started here."""
        self.watch = subprocess.Popen([PROGRAMS / "nas-watch", self.folder], stdout=subprocess.PIPE, text=True)
        return re.search(r"http://\S+", self.watch.stdout.readline()).group(0)

    def dom(self, address: str, width: int = 390) -> str:
        """What a page has become in a browser."""
        return subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=4000",
             f"--user-data-dir={self.folder / 'profile'}", f"--window-size={width},900", address],
            capture_output=True, text=True, timeout=120, check=True).stdout

    def copy(self, address: str, script: str, page: str = "watch", data: str = "state.json") -> str:
        """@return the address of a copy of a page, with a script that looks at it: no policy forbids that here."""
        with urllib.request.urlopen(address.replace("/?", f"/{data}?") + "&page=0") as answer:
            state = answer.read().decode().replace("<", r"\u003c")
        before = (f"fetch = async () => ({{ok: true, status: 200, headers: new Map(), "
                  f"json: async () => ({state})}});")
        parts = {"style": "".join((ROOT / path).read_text(encoding="utf-8") for path in (
                     "python/attnas/analysis/picture.css", "python/attnas/analysis/page.css", "python/attnas/watch/watch.css")),
                 "script": before + "".join((ROOT / "python/attnas/watch" / name).read_text(encoding="utf-8")
                                            for name in ("watch_common.js", f"{page}.js")) + script}
        text = (ROOT / f"python/attnas/watch/{page}.html").read_text(encoding="utf-8")
        for name, part in parts.items():
            text = text.replace("{{" + name + "}}", part)
        file = self.folder / "page.html"
        file.write_text(text, encoding="utf-8")
        return file.as_uri()

    def test_texts_of_a_run_are_no_markup(self):
        page = self.dom(self.show(40))
        self.assertNotIn("<img", page)
        self.assertNotIn("<b>bold", page)
        self.assertNotIn("<title>broken", page)
        head = re.search(r"<h1[^>]*>(.*?)</h1>", page).group(1)
        self.assertEqual(head, HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
        self.assertIn("Front: ", page)
        self.assertIn("the best, validation", page)
        rows = re.search(r'id="latest".*?<tbody>(.*?)</tbody>', page, re.S).group(1)
        self.assertEqual(rows.count("<tr>"), 30)
        failures = re.search(r'id="failed".*?<tbody>(.*?)</tbody>', page, re.S).group(1)
        self.assertEqual(failures.count("<tr>"), 1)

    def test_learning_curves_are_drawn_of_one_validation_too(self):
        page = self.copy(self.show(40, validations=1), """setTimeout(() => {
            const {width, height} = byId("curves");
            const inked = byId("curves").getContext("2d").getImageData(0, 0, width, height).data;
            const best = colour("best").match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
            let found = 0;
            for (let i = 0; i < inked.length; i += 4) found += best.every((part, k) => part === inked[i + k]);
            document.body.append(`inked: ${found}`);
        }, 1000);""")
        inked = re.search(r"inked: (\d+)", self.dom(page))
        self.assertGreater(int(inked.group(1)), 10)

    def test_the_loss_of_what_runs_lies_within_the_axes(self):
        page = self.copy(self.show(40), """setTimeout(() => {
            const up = [];
            for (const loss of [11.5, 7, .5]) {
                state.phase = "running";
                const array = {trainings: [{c: 0, replicate: 0}], step: 300, steps: 1000, started: "2026-01-31T12:00:00Z",
                               curve: [[10, 12], [300, loss]]};
                state.at_work = {stage: "training", workers: 1, waiting: 0, arrays: [array]};
                draw();
                up.push(Math.round(marks.get("curves").at(-1).y));
            }
            document.body.append(`up: ${up} of ${byId("curves").clientHeight}.`);
        }, 1000);""")
        found = re.search(r"up: (\d+),(\d+),(\d+) of (\d+)", self.dom(page))
        highest, middle, lowest, height = map(int, found.groups())
        top, bottom = 22, height - 40  # of the frame within the canvas
        self.assertTrue(top < highest < middle < lowest < bottom, found.group(0))

    def test_long_names_stay_in_their_column(self):
        page = self.copy(self.show(4, name="attn{" + "normalization=entmax15," * 20 + "}"), """setTimeout(() => {
            const cells = [...document.querySelectorAll("td:first-child")];
            const wide = cells.filter((cell) => cell.scrollWidth > cell.clientWidth);
            const narrow = cells.filter((cell) => cell.clientWidth < .3 * innerWidth);
            document.body.append(`of ${cells.length}: ${wide.length} too wide, ${narrow.length} too narrow`);
        }, 1000);""")
        for width in (390, 1200):
            self.assertIn("of 5: 0 too wide, 0 too narrow", self.dom(page, width))

    def test_a_list_of_runs_has_rows_and_links_and_no_markup_of_theirs(self):
        address = self.show_runs(3)
        page = self.dom(address)
        self.assertNotIn("<img", page)
        self.assertNotIn("<b>bold", page)
        rows = re.search(r"<tbody>(.*?)</tbody>", page, re.S).group(1)
        self.assertEqual(rows.count("<tr"), 3)
        self.assertIn("8 of 8 training runs", rows)
        self.assertIn("3 runs: 3 finished", page)
        link = re.search(r'href="(run/\d+/\?token=\w+)"', rows).group(1)
        run = self.dom(f"{address.split('?')[0]}{link}")
        self.assertIn("Learning curves", run)
        self.assertRegex(run, r'id="back"><a href="../../\?token=\w+"')

    def test_the_error_of_one_run_wraps_and_leaves_the_columns_of_all_on_the_page(self):
        page = self.copy(self.show_runs(2), """setTimeout(() => {
            const row = {number: 9, run: "damaged", error: `${"a long/path".repeat(40)}: ${"is damaged and ".repeat(30)}`};
            take({...shown, runs: rows.map((one, i) => ({...one, run: `run ${i}`})).concat(row)});
            const {scrollWidth, clientWidth} = document.querySelector("#list .scroll");
            document.body.append(`${document.querySelectorAll("td.reason").length} reason, ${scrollWidth - clientWidth} beyond`);
        }, 1000);""", "watch_list", "runs.json")
        self.assertIn("1 reason, 0 beyond", self.dom(page, 1300))

    def test_ticks_have_as_many_digits_as_tell_them_apart(self):
        page = self.copy(self.show_runs(1), """document.body.append(`ticks: ${[[1.155, 1.1555, 1.156], [1.004, 1.006],
            [14900, 14950], [2783400, 2783405], [0, 0.5, 1], [1e5, 2e5, 1e6]]
            .map((marks) => tickTexts(marks).join(" ")).join("; ")}.`);""",
                         "watch_list", "runs.json")
        self.assertIn("ticks: 1.155 1.1555 1.156; 1.004 1.006; 14900 14950; 2.7834 M 2.783405 M; 0 0.5 1; 100 k 200 k 1 M.",
                      self.dom(page))
