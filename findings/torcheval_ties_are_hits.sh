#!/usr/bin/env bash
# torcheval: the accuracy of the k most likely classes counts every class that ties with them as found. A model whose logits are
# all the same, as with an output layer that starts at zero, has a top-2 accuracy of 1, and half precision raises everybody's.
#
# Versions: torcheval 0.0.7, torchmetrics 1.9.0, torch 2.15.0; as of 2026-11-28.
# Seen:     1000 tokens, random answers, k = 5: logits of 0 have 1.0, in torchmetrics 0.005; NaN the same. Noise has 0.0045 in
#           both; noise of 0.01 around 3 in bfloat16 has 0.0178 in torcheval, 0.0043 in torchmetrics. With k = 1 all have 0.001.
# Source:   _multiclass_accuracy_update() in torcheval/metrics/functional/classification/accuracy.py: k = 1 takes argmax, a
#           larger k counts the logits that are greater than the target's; so do hit_rate and reciprocal_rank.
# Advice:   compute it in float32 from topk(k).indices == target, which has k classes and no more; look at top-1 and the loss,
#           too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 torcheval==0.0.7 torchmetrics==1.9.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torcheval.metrics.functional import multiclass_accuracy
from torchmetrics.functional.classification import multiclass_accuracy as of_torchmetrics

print("versions: torcheval", version("torcheval"), "torchmetrics", version("torchmetrics"), "torch", version("torch"))
TOKENS, COUNT, K = 1000, 4000, 5
torch.manual_seed(0)
target, noise = torch.randint(TOKENS, (COUNT,)), torch.randn(COUNT, TOKENS)
cases = {"noise": noise, "noise in bfloat16": (noise * 0.01 + 3).bfloat16(), "zeros": torch.zeros(COUNT, TOKENS),
         "NaN": torch.full((COUNT, TOKENS), float("nan"))}
seen = {}
for name, logits in cases.items():
    first, found = (round(float(multiclass_accuracy(logits, target, k=k)), 4) for k in (1, K))
    others = round(float(of_torchmetrics(logits, target, num_classes=TOKENS, top_k=K, average="micro")), 4)
    seen[name] = first, found, others
print("expected: who knows nothing finds the answer among", K, "of", TOKENS, "with 0.005; top-1 0.001")
for name, (first, found, others) in seen.items():
    print(f"seen: {name}: top-1 {first}, top-{K} {found}, by torchmetrics {others}")
if not (abs(seen["noise"][1] - 0.005) < 0.003 and seen["noise in bfloat16"][1] > 0.01 and seen["zeros"][1] == seen["NaN"][1] == 1
        and max(others for *_, others in seen.values()) < 0.01):
    sys.exit("the behaviour has changed")
END
