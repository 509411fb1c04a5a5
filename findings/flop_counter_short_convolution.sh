#!/usr/bin/env bash
# PyTorch's FlopCounterMode: the backward pass of a depthwise convolution, the short convolution of Mamba and of gated delta nets,
# costs as many times too much as it has channels. A full convolution's is counted rightly: twice its forward pass.
#
# Versions: torch 2.15.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     Conv1d of 4 taps, causal padding, 2 x 100 tokens; (forward, backward) in FLOPs: 64 channels, full 6750208, 13500416;
#           depthwise 105472, 6855680, of which 105472 are the input's gradient and the rest 64 times the weight's; of 256 channels
#           421888 and 108425216.
# Source:   torch/utils/flop_counter.py, conv_backward_flop(): the weight's gradient is counted as a convolution of all channels with
#           all, without its groups.
# Advice:   count short convolutions by formula, 2 x taps x channels x tokens, and twice that backward; compare no training cost of
#           models with and without them by this counter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch.utils.flop_counter import FlopCounterMode

print("versions: torch", version("torch"), "numpy", version("numpy"))


def counted(call):
    with FlopCounterMode(display=False) as mode:
        result = call()
    return mode.get_total_flops(), result


def forward_backward(channels, groups):
    layer = torch.nn.Conv1d(channels, channels, 4, padding=3, groups=groups, bias=False)
    forward, out = counted(lambda: layer(torch.randn(2, channels, 100, requires_grad=True)))
    return forward, counted(lambda: out.sum().backward())[0]


full, depthwise, wide = forward_backward(64, 1), forward_backward(64, 64), forward_backward(256, 256)
print("expected: a backward pass costs twice its forward pass, as of the full convolution:", *full)
print("seen: depthwise, 64 channels", *depthwise, "; 256 channels", *wide)
if not (full[1] == 2 * full[0] and depthwise[1] == 65 * depthwise[0] and wide[1] == 257 * wide[0]):
    sys.exit("the behaviour has changed")
END
