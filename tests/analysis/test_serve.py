"""nas-model serve: OpenAI's completions over HTTP, and by the openai package where that is installed.

NAS_BIN, or the first argument, is the folder of the programs.
"""

import http.client
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ.get("NAS_BIN") or (sys.argv.pop(1) if len(sys.argv) > 1 else "")).resolve()
SOURCES = pathlib.Path(__file__).resolve().parents[2]
WORDS = ["the", "jury", "said", "that", "it", "was", "done", "by", "nobody", "here"]


def lines(number: int) -> str:
    """Lines of words, of which each follows from the one before."""
    return "".join(" ".join(WORDS[(line + 3 * i) % len(WORDS)] for i in range(18)) + "\n" for line in range(number))


class Serving(unittest.TestCase):
    """One model, one server, requests as a client sends them."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for split, number in (("train", 60), ("valid", 9), ("test", 5)):
            (folder / split).write_text(lines(number), encoding="utf-8")
        data = f"data={{corpus: text_file, vocabulary: 12, train: {folder}/train, valid: {folder}/valid, test: {folder}/test}}"
        cls.model = folder / "toy"
        cls.server = cls.served(folder, data)
        cls.addClassCleanup(cls.server.stdout.close)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        cls.port = cls.port_of(cls.server)
        cls.server.stdout.readline()  # how to end it

    @staticmethod
    def served(folder: pathlib.Path, data: str) -> subprocess.Popen:
        """A server of FOLDER/toy, the baseline of a run."""
        for command in (["nas-run", SOURCES / "configs/smoke.yaml", data, "evaluation.keep_models=1000", "--no-report", "-q",
                         "-o", folder / "run"],
                        ["nas-export", folder / "run", "--format", "pytorch", "--mechanism", "baseline", "-o", folder / "toy"]):
            subprocess.run([BIN / command[0], *command[1:]], check=True, capture_output=True)
        return subprocess.Popen([BIN / "nas-model", "serve", folder / "toy", "--port", "0"], stdout=subprocess.PIPE, text=True)

    @staticmethod
    def port_of(server: subprocess.Popen) -> int:
        return int(re.fullmatch(r"serving toy at http://127\.0\.0\.1:(\d+)/v1\n", server.stdout.readline()).group(1))

    def ask(self, method: str, path: str, body=None, port: int = 0, **headers) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        self.addCleanup(connection.close)
        text = None if body is None else body if isinstance(body, str) else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def complete(self, **fields) -> dict:
        status, text = self.ask("POST", "/v1/completions", {"model": "toy", "prompt": "the jury", "max_tokens": 8, **fields})
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def error(self, status: int, *request, **headers) -> dict:
        found, text = self.ask(*request, **headers)
        self.assertEqual(found, status, text)
        return json.loads(text)["error"]

    def test_models(self):
        listed = json.loads(self.ask("GET", "/v1/models")[1])
        self.assertEqual([model["id"] for model in listed["data"]], ["toy"])
        self.assertEqual(json.loads(self.ask("GET", "/v1/models/toy")[1])["object"], "model")

    def test_a_completion(self):
        answer = self.complete(temperature=0)
        self.assertEqual((answer["object"], answer["model"]), ("text_completion", "toy"))
        choice, = answer["choices"]
        self.assertEqual((choice["index"], choice["finish_reason"], choice["logprobs"]), (0, "length", None))
        self.assertEqual(answer["usage"]["completion_tokens"], 8)
        self.assertEqual(answer["usage"]["total_tokens"], 8 + answer["usage"]["prompt_tokens"])
        greedy = subprocess.run([BIN / "nas-model", "generate", self.model, "--prompt", "the jury", "--tokens", "8", "--greedy"],
                                check=True, capture_output=True, text=True).stdout
        self.assertEqual(" ".join(("the jury" + choice["text"]).split()), " ".join(greedy.split()), "as the program writes it")

    def test_seeds_and_several_choices(self):
        first, again, other = self.complete(n=3), self.complete(n=3), self.complete(n=3, seed=100)
        texts = [choice["text"] for choice in first["choices"]]
        self.assertEqual(texts, [choice["text"] for choice in again["choices"]])
        self.assertNotEqual(texts, [choice["text"] for choice in other["choices"]])
        self.assertGreater(len(set(texts)), 1)
        self.assertEqual(self.complete(seed=2)["choices"][0]["text"], texts[1], "choice i draws by seed + i")
        both = self.complete(prompt=["the", "it was"], n=2)
        self.assertEqual([choice["index"] for choice in both["choices"]], [0, 1, 2, 3])

    def test_what_is_left_out_is_not_drawn(self):
        greedy = self.complete(temperature=0)["choices"][0]["text"]
        self.assertEqual(self.complete(top_k=1, seed=5)["choices"][0]["text"], greedy)
        self.assertEqual(self.complete(top_p=1e-6, seed=5)["choices"][0]["text"], greedy)

    def test_logprobs(self):
        choice, = self.complete(temperature=0, logprobs=3)["choices"]
        found = choice["logprobs"]
        self.assertEqual({len(values) for values in found.values()}, {8})
        for token, own, top in zip(found["tokens"], found["token_logprobs"], found["top_logprobs"]):
            self.assertEqual(own, max(top.values()), token)
            self.assertLessEqual(sum(2.718281828 ** value for value in top.values()), 1.0 + 1e-6)
        self.assertEqual(found["text_offset"], sorted(found["text_offset"]))

    def test_logprobs_of_bytes_have_names_of_their_own(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for split, number in (("train", 60), ("valid", 9), ("test", 5)):
            (folder / split).write_text("\u00e9\u00e8\u20ac\n" * 20 * number, encoding="utf-8")
        data = f"data={{corpus: text_file, tokenizer: byte, train: {folder}/train, valid: {folder}/valid, test: {folder}/test}}"
        server = self.served(folder, data)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        port = self.port_of(server)
        status, text = self.ask("POST", "/v1/completions", {"model": "toy", "prompt": "\u00e9", "max_tokens": 8, "logprobs": 5,
                                                             "temperature": 0}, port=port)
        self.assertEqual(status, 200, text)
        found = json.loads(text)["choices"][0]["logprobs"]
        self.assertEqual({len(top) for top in found["top_logprobs"]}, {5})
        parts = [name for top in found["top_logprobs"] for name in top if name.startswith("bytes:")]
        self.assertTrue(parts)
        for name in parts:
            self.assertRegex(name, r"^bytes:\\x[89a-f][0-9a-f]$")
        self.assertEqual([token in top for token, top in zip(found["tokens"], found["top_logprobs"])], [True] * 8)

    def test_stop(self):
        whole = self.complete(temperature=0)["choices"][0]["text"]
        word = whole.split()[2]
        choice, = self.complete(temperature=0, stop=[word])["choices"]
        self.assertEqual(choice["finish_reason"], "stop")
        self.assertEqual(choice["text"], whole[:whole.index(word)])
        self.assertEqual(self.complete(temperature=0, stop=[])["choices"][0]["text"], whole)

    def test_parts(self):
        fields = {"n": 2, "seed": 3, "stop": "nobody"}
        status, text = self.ask("POST", "/v1/completions", {"model": "toy", "prompt": "the jury", "max_tokens": 8, "stream": True,
                                                             "stream_options": {"include_usage": True}, **fields})
        self.assertEqual(status, 200)
        *events, end, nothing = text.split("\n\n")
        self.assertEqual((end, nothing), ("data: [DONE]", ""))
        parts = [json.loads(event.removeprefix("data: ")) for event in events]
        self.assertEqual(parts[-1]["choices"], [])
        whole = self.complete(**fields)
        self.assertEqual(parts[-1]["usage"], whole["usage"])
        for choice in whole["choices"]:
            own = [one for part in parts for one in part["choices"] if one["index"] == choice["index"]]
            self.assertEqual("".join(one["text"] for one in own), choice["text"])
            self.assertEqual([one["finish_reason"] for one in own], [None] * (len(own) - 1) + [choice["finish_reason"]])

    def test_errors(self):
        good = {"model": "toy", "prompt": "the"}
        self.assertEqual(self.error(404, "POST", "/v1/completions", {**good, "model": "gpt"}),
                         {"message": "model = gpt, must be toy", "type": "invalid_request_error", "param": "model",
                          "code": "model_not_found"})
        self.assertIn("must be a JSON object", self.error(400, "POST", "/v1/completions", "{")["message"])
        self.assertEqual(self.error(400, "POST", "/v1/completions", {**good, "temperature": "hot"})["param"], "temperature")
        self.assertEqual(self.error(400, "POST", "/v1/completions", {**good, "prompt": [1, 2]})["param"], "prompt")
        self.assertIn("only GET", self.error(405, "POST", "/v1/models", good)["message"])
        self.assertIn("no such path", self.error(404, "GET", "/")["message"])
        self.error(415, "POST", "/v1/completions", good, **{"Content-Type": "text/plain"})
        self.error(403, "GET", "/v1/models", Host="evil.example")
        self.assertEqual(self.ask("GET", "/v1/models", Host="LocalHost")[0], 200)
        long = self.error(413, "POST", "/v1/completions", "x" * (1 << 21))
        self.assertEqual((long["type"], long["message"]), ("invalid_request_error", "a request has at most 1048576 bytes"))
        deep = '{"prompt": ' + "[" * 400000 + "]" * 400000 + "}"
        self.assertIn("nested deeper than 16", self.error(400, "POST", "/v1/completions", deep)["message"])

    @unittest.skipUnless(importlib.util.find_spec("openai"), "needs the package openai")
    def test_the_package_openai(self):
        import openai

        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0)
        self.assertEqual([model.id for model in client.models.list()], ["toy"])
        asked = {"model": "toy", "prompt": "the jury", "max_tokens": 8, "seed": 3}
        text = client.completions.create(**asked, extra_body={"top_k": 5}).choices[0].text
        parts = client.completions.create(**asked, extra_body={"top_k": 5}, stream=True)
        self.assertEqual("".join(part.choices[0].text for part in parts), text)
        with self.assertRaises(openai.NotFoundError):
            client.completions.create(**{**asked, "model": "gpt"})
        with self.assertRaises(openai.BadRequestError) as refused:
            client.completions.create(**{**asked, "max_tokens": 10 ** 6})
        self.assertEqual(refused.exception.param, "max_tokens")

    def test_what_heads_look_at_in_a_sentence(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run([BIN / "nas-model", "attention", self.model, "--text", "the jury said", "--text", "it was", "-o", folder],
                       check=True, capture_output=True)
        first, second = json.loads((folder / "attention.json").read_text(encoding="utf-8"))["sentences"]
        self.assertEqual(first["tokens"][-3:], ["the", "jury", "said"])
        self.assertEqual(second["tokens"][-2:], ["it", "was"])
        for layer in first["layers"]:
            for rows in layer["maps"]:
                self.assertEqual([len(row) for row in rows], list(range(1, len(first["tokens"]) + 1)))
                for row in rows:
                    self.assertAlmostEqual(sum(row), 1.0, delta=0.01)
        refused = subprocess.run([BIN / "nas-model", "attention", self.model, "--text", "the " * 50], capture_output=True, text=True)
        self.assertEqual((refused.returncode, "tokens, must have at most 16" in refused.stderr), (2, True))

    def test_signals_end_it(self):
        server = subprocess.Popen([BIN / "nas-model", "serve", self.model, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        server.stdout.readline()
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(timeout=60), 0)

    def test_a_port_in_use_is_refused(self):
        found = subprocess.run([BIN / "nas-model", "serve", self.model, "--port", str(self.port)], capture_output=True, text=True)
        self.assertEqual(found.returncode, 2)
        self.assertIn(f"cannot listen on 127.0.0.1 port {self.port}", found.stderr)


if __name__ == "__main__":
    unittest.main()
