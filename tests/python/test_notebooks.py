"""The notebooks: they hold no outputs, and run, each after the one that it builds on; without torch but that which takes a model."""

import contextlib
import importlib.util
import io
import json
import unittest

from python_tests import FolderTest, ROOT, need

need(program="nas-run")

FOLDER = ROOT / "python" / "notebooks"
SMOKE = ROOT / "configs" / "smoke.yaml"
# What each of them prints.
NOTEBOOKS = {"search.ipynb": "the front over perplexity and attention_flops holds",
             "read.ipynb": "the front over perplexity and attention_flops holds",
             "model.ipynb": r"perplexity [1-4]\.\d+ over 12 tokens\nthe queen \w+ the (king|queen|knight) \n"
                            r"(?s:.+): perplexity 1\d\.\d at first, [2-4]\.\d after \d+ steps"}


def runnable() -> list:
    return [name for name in NOTEBOOKS if name != "model.ipynb" or importlib.util.find_spec("torch")]


class Notebooks(FolderTest):
    def test_are_all_here_without_outputs(self):
        self.assertEqual(sorted(file.name for file in FOLDER.glob("*.ipynb")), sorted(NOTEBOOKS))
        for name in NOTEBOOKS:
            for cell in json.loads((FOLDER / name).read_text())["cells"]:
                self.assertFalse(cell.get("outputs") or cell.get("execution_count"), name)

    def test_run_as_scripts(self):
        for name in runnable():
            cells = json.loads((FOLDER / name).read_text())["cells"]
            names: dict = {}
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as shown:
                for cell in cells:
                    if cell["cell_type"] == "code":
                        exec(compile("".join(cell["source"]), name, "exec"), names)
            self.assertRegex(shown.getvalue(), NOTEBOOKS[name])

    @unittest.skipUnless(all(map(importlib.util.find_spec, ("nbclient", "ipykernel"))),
                         "no Python packages nbclient and ipykernel")
    def test_run_in_a_kernel(self):
        import nbformat

        for name in runnable():
            shown = self.outputs(nbformat.read(FOLDER / name, as_version=4))
            pages = [output for output in shown if "text/html" in output.get("data", ())]
            self.assertTrue(pages, name)
        training = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(
            f"import attnas\nattnas.run('{SMOKE}', output='x', **{{'training.steps': 300}});")])
        line = "".join(output.text for output in self.outputs(training)
                       if output.get("name") == "stdout")
        self.assertRegex(line, r"\r\d+/\d+ asked, ")

    def outputs(self, notebook) -> list:
        """What its cells show."""
        import nbclient

        nbclient.NotebookClient(notebook, timeout=240, startup_timeout=240, kernel_name="python3",
                                resources={"metadata": {"path": self.folder}}).execute()
        return [output for cell in notebook.cells for output in cell.get("outputs", ())]
