#!/usr/bin/env bash
# torchinfo: the multiply-adds of a linear layer do not depend on the length of the sequence. One of 64 x 64 costs the same for 1
# token and for 1,000.
#
# Versions: torchinfo 1.8.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     total_mult_adds = 4096 for inputs of (1, 1, 64) and of (1, 1000, 64); thop counts 4,096 and 4,096,000.
# Source:   torchinfo/layer_info.py, calculate_macs(): a weight's elements times the first dimension of the output, the batch;
#           only convolutions multiply by the other dimensions.
# Advice:   take no multiply-adds of a transformer from torchinfo.summary.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 torchinfo==1.8.0 thop==0.1.1.post2209072238
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
import torchinfo
from thop import profile

print("versions:", *(f"{name} {version(name)}" for name in ("torchinfo", "torch", "thop", "numpy")))


def counted(tokens):
    layer, x = torch.nn.Linear(64, 64, bias=False), torch.randn(1, tokens, 64)
    summary = torchinfo.summary(layer, input_data=x, verbose=0)
    return int(summary.total_mult_adds), int(profile(layer, (x,), verbose=False)[0])


one, thousand = counted(1), counted(1000)
print("expected: a thousand times as many for a thousand tokens: 4096 and 4096000, as by thop:", one[1], thousand[1])
print("seen:", one[0], "and", thousand[0])
if not (one == (4096, 4096) and thousand == (4096, 4096000)):
    sys.exit("the behaviour has changed")
END
