#!/usr/bin/env bash
# mup: an embedding that is tied to the readout with MuSharedReadout, as the README advises, starts with a standard deviation that grows
# with the square root of the width. Activations and logits grow with it, so that learning rates found for a narrow model do not carry over.
#
# Versions: mup 1.0.0, torch 2.15.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     standard deviation of nn.Embedding after set_base_shapes, base width 64, widths 64, 256, 1024, 4096: 1, 1, 1, 1 with MuReadout,
#           and 1, 2, 4, 8 with MuSharedReadout; the logit of a token for itself is 64, 255, 1024, 4095.
# Source:   mup/layer.py, MuReadout._rescale_parameters(): multiplies the weights by sqrt(width / base width), to undo the 1 / sqrt(width)
#           of nn.Linear's initialisation; shared weights have that of nn.Embedding, which does not depend on the width. Upstream: issue
#           55 of microsoft/mup, open since 2023.
# Advice:   initialise the embedding again after set_base_shapes (before the first step), or untie.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 mup==1.0.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from mup import MuReadout, MuSharedReadout, set_base_shapes
from torch import nn

print("versions:", *(f"{name} {version(name)}" for name in ("mup", "torch", "numpy")))


class Model(nn.Module):
    def __init__(self, width, tied):
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.hidden = nn.Linear(width, width, bias=False)
        self.readout = MuSharedReadout(self.embedding.weight, bias=False) if tied else MuReadout(width, 256, bias=False)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        return embedded, self.hidden(embedded), self.readout(embedded)


widths, seen = (64, 256, 1024, 4096), {}
for tied in (False, True):
    for width in widths:
        torch.manual_seed(0)
        model = Model(width, tied)
        set_base_shapes(model, Model(64, tied), delta=Model(128, tied))
        with torch.no_grad():
            embedded, hidden, logits = model(torch.arange(256))
        seen[tied, width] = [round(float(x), 2) for x in (embedded.std(), hidden.std(), logits.diagonal().mean())]
print("expected: embedded tokens and hidden units are as large at any width")
for tied in (False, True):
    print("tied:" if tied else "not tied:", *(f"width {width}: embedded {seen[tied, width][0]}, hidden {seen[tied, width][1]}, "
                                              f"own logit {seen[tied, width][2]};" for width in widths))
if not (all(abs(seen[False, width][0] - 1) < 0.05 for width in widths)
        and all(abs(seen[True, width][0] / (width / 64) ** 0.5 - 1) < 0.05 for width in widths)):
    sys.exit("the behaviour has changed")
END
