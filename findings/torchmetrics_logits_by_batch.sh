#!/usr/bin/env bash
# torchmetrics: whether scores are logits is decided for each batch. A batch whose logits all lie between 0 and 1 counts as
# probabilities, beside others that go through the sigmoid: accuracy, AUROC and calibration of one model depend on the batch
# size, and are worst for texts evaluated one by one.
#
# Versions: torchmetrics 1.9.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     the same 2,000 logits in batches of 2,000, 2 and 1: AUROC 0.963, 0.945, 0.907, accuracy 0.897, 0.883, 0.853,
#           calibration error 0.142, 0.129, 0.096; of their sigmoids always as in one batch.
# Source:   normalize_logits_if_needed() in torchmetrics/utilities/compute.py, called by update(); documented is that logits
#           are recognized by values outside [0, 1], not that this holds for a batch.
# Advice:   update(logits.sigmoid(), labels), or of softmax, always.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 torchmetrics==1.9.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC, BinaryCalibrationError

print("versions:", *(f"{name} {version(name)}" for name in ("torchmetrics", "torch", "numpy")))
COUNT = 2000
torch.manual_seed(0)
labels = torch.randint(0, 2, (COUNT,))
logits = torch.randn(COUNT) + 1.2 * (2 * labels - 1)


def measured(scores, size):
    """AUROC, accuracy and calibration error of all scores, given in batches of a size."""
    metrics = BinaryAUROC(), BinaryAccuracy(), BinaryCalibrationError()
    for batch, truth in zip(scores.split(size), labels.split(size)):
        for metric in metrics:
            metric.update(batch, truth)
    return [round(float(metric.compute()), 3) for metric in metrics]


sizes = COUNT, 100, 2, 1
of_logits, of_sigmoids = ([measured(scores, size) for size in sizes] for scores in (logits, logits.sigmoid()))
print("expected: AUROC, accuracy and calibration error do not depend on the batch size:", of_sigmoids[0])
for size, numbers, others in zip(sizes, of_logits, of_sigmoids):
    print(f"seen: batches of {size}: logits {numbers}; their sigmoids {others}")
if not (all(each == of_sigmoids[0] for each in (*of_sigmoids, of_logits[0]))
        and of_logits[3][0] < of_logits[2][0] < of_logits[0][0]
        and of_logits[3][1] < of_logits[0][1] - 0.02 and of_logits[3][2] < of_logits[0][2] - 0.02):
    sys.exit("the behaviour has changed")
END
