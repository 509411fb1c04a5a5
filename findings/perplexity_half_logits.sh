#!/usr/bin/env bash
# torchmetrics, torcheval: the perplexity of half-precision logits is computed in half precision. In float16 it is infinite as
# soon as one token has a probability below 3e-8 or, by torchmetrics, a batch's losses add up to 65,520; in bfloat16 it is
# rounded.
#
# Versions: torchmetrics 1.9.0, torcheval 0.0.7, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     512 tokens, one of them with a loss of 18: exact 24.698, in float16 inf, in bfloat16 24.609, by both libraries;
#           32,768 tokens of ordinary losses: exact 24.327, by torchmetrics inf and 24.228. In float32 all are right.
# Source:   _perplexity_update() in torchmetrics/functional/text/perplexity.py and in
#           torcheval/metrics/functional/text/perplexity.py: softmax, then log, then the batch's sum, all in the logits' own
#           type; the state is float32 or float64.
# Advice:   update(logits.float(), targets), also under autocast; an infinite perplexity may be the metric's, not the model's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 torchmetrics==1.9.0 torcheval==0.0.7
"$folder/venv/bin/python" -W ignore - <<'END'
import math
import sys
from importlib.metadata import version

import torch
import torcheval.metrics
import torchmetrics.text

print("versions:", *(f"{name} {version(name)}" for name in ("torchmetrics", "torcheval", "torch", "numpy")))
KINDS = torch.float32, torch.float16, torch.bfloat16
torch.manual_seed(0)


def text(batch, length, words):
    """Logits and targets of a model of a loss of about 3."""
    targets = torch.randint(0, words, (batch, length))
    return torch.randn(batch, length, words) + 1.5 * torch.nn.functional.one_hot(targets, words), targets


def exact(logits, targets):
    """The perplexity of these very logits, computed in double precision."""
    return math.exp(torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), targets.flatten()))


def counted(metric, logits, targets):
    metric.update(logits, targets)
    return float(metric.compute())


rare, rare_targets = text(1, 512, 64)
rare[0, 0, rare_targets[0, 0]] = rare[0, 0].logsumexp(0) - 18
many, many_targets = text(8, 4096, 64)
seen = {
    "one rare token": ([exact(rare.to(kind), rare_targets) for kind in KINDS],
                       [counted(torchmetrics.text.Perplexity(), rare.to(kind), rare_targets) for kind in KINDS],
                       [counted(torcheval.metrics.Perplexity(), rare.to(kind), rare_targets) for kind in KINDS]),
    "many tokens": ([exact(many.to(kind), many_targets) for kind in KINDS],
                    [counted(torchmetrics.text.Perplexity(), many.to(kind), many_targets) for kind in KINDS])}
print("in float32, float16 and bfloat16:")
for name, (want, *got) in seen.items():
    print(f"expected: {name}: nearly the same:", [round(each, 3) for each in want])
    for library, numbers in zip(("torchmetrics", "torcheval"), got):
        print(f"seen: {name}: {library}:", [round(each, 3) for each in numbers])
for want, *got in seen.values():
    if not (max(want) < 1.01 * min(want) and all(
            abs(single - want[0]) < 0.01 and math.isinf(half) and abs(brain - want[2]) > 0.001 for single, half, brain in got)):
        sys.exit("the behaviour has changed")
END
