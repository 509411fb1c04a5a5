#!/usr/bin/env bash
# lm-eval: word perplexity counts words that are not there. A text that begins or ends with a space or a line's end has a word
# more for each, and an empty line is one word; they cost nothing. Line by line, as the Penn Treebank and WikiText are
# distributed, the perplexity per word falls to a half or a third, and differs between corpora by their layout. Bits per byte
# are right.
#
# Versions: lm-eval 0.4.13, datasets 5.2.0; as of 2026-11-28.
# Seen:     a model that gives each of 1000 words the same probability, lines of 20 words: lines without spaces around them
#           1000; with a space before and a space and a line's end behind (Penn Treebank) 533.7; of those, each followed by an
#           empty line and 1 in 5 a heading (WikiText) 357.9.
# Source:   ConfigurableTask.count_words() in lm_eval/api/task.py: len(re.split(r"\s+", text)), which returns empty strings at
#           the ends. The harness' own wikitext task splits so, too, in preprocess_wikitext.py, but has whole articles as texts.
# Advice:   process_results of the task with len(text.split()); strip texts and drop empty ones; or report bits per byte.
#           Compare word perplexities only with those of the same texts, cut in the same way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lm-eval==0.4.13 datasets==5.2.0
cd "$folder"
export HF_HOME="$folder/cache" HF_HUB_OFFLINE=1
"$folder/venv/bin/python" -W ignore - 2> "$folder/log" <<'END' || { cat "$folder/log" >&2; exit 1; }
import json
import math
import random
import sys
from importlib.metadata import version

import lm_eval
from lm_eval.api.model import LM

print("versions: lm-eval", version("lm-eval"), "datasets", version("datasets"))
WORDS = 1000


class Uniform(LM):
    """Every word of a text is one of WORDS, all equally likely; spaces cost nothing."""

    def loglikelihood_rolling(self, requests, **options):
        return [-math.log(WORDS) * len(request.args[0].split()) for request in requests]

    def loglikelihood(self, requests, **options):
        raise NotImplementedError

    def generate_until(self, requests, **options):
        raise NotImplementedError


def perplexity(name, texts):
    with open(name + ".jsonl", "w") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    task = {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": name + ".jsonl"}},
            "test_split": "test", "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}",
            "metric_list": [{"metric": "word_perplexity", "aggregation": "weighted_perplexity", "higher_is_better": False}]}
    return round(lm_eval.simple_evaluate(Uniform(), tasks=[task])["results"][name]["word_perplexity,none"], 1)


draw = random.Random(0)
lines = [" ".join(f"w{draw.randrange(WORDS)}" for _ in range(20)) for _ in range(100)]
spaced = [f" {line} \n" for line in lines]
articles = [part for number, line in enumerate(spaced)
            for part in ([f" = w{number} = \n", ""] if number % 5 == 0 else []) + [line, ""]]
bare, treebank, wikitext = perplexity("bare", lines), perplexity("treebank", spaced), perplexity("wikitext", articles)
print("expected: a perplexity per word of", WORDS, "as without spaces and empty lines:", bare)
print("seen: spaces around lines:", treebank, "; headings and empty lines, too:", wikitext)
if not (bare == WORDS and treebank == round(WORDS ** (20 / 22), 1) and wikitext < treebank):
    sys.exit("the behaviour has changed")
END
