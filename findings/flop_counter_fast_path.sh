#!/usr/bin/env bash
# PyTorch's FlopCounterMode: a Transformer costs nothing when it is evaluated. In eval mode without gradients,
# nn.MultiheadAttention and nn.TransformerEncoder take a fast path that is one operation, which the counter has no formula for;
# on the CPU an LSTM always does.
#
# Versions: torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     32 tokens of width 64, FLOPs (training, eval with gradients, eval without): TransformerEncoder of two layers
#           4,456,448 twice, then 0; MultiheadAttention 1,179,648 twice, then 0; LSTM 0 three times, though 2,097,152 are due;
#           GRU 1,572,864 three times.
# Source:   torch/nn/modules/transformer.py and activation.py: torch._transformer_encoder_layer_fwd() and
#           _native_multi_head_attention(); aten::mkldnn_rnn_layer for LSTM. None is in flop_registry of
#           torch/utils/flop_counter.py.
# Advice:   torch.backends.mha.set_fastpath_enabled(False), and for an LSTM torch.backends.mkldnn.flags(enabled=False), while
#           counting.
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
x = torch.randn(2, 16, 64)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
calls = {"TransformerEncoder": (encoder := torch.nn.TransformerEncoder(layer, 2), lambda: encoder(x)),
         "MultiheadAttention": (attention, lambda: attention(x, x, x)),
         "LSTM": (lstm := torch.nn.LSTM(64, 64, batch_first=True), lambda: lstm(x)),
         "GRU": (gru := torch.nn.GRU(64, 64, batch_first=True), lambda: gru(x))}


def counted(module, call):
    """FLOPs of a forward pass in training, in eval mode with gradients, and without."""
    counts = []
    for training, gradients in ((True, True), (False, True), (False, False)):
        module.train(training)
        with torch.set_grad_enabled(gradients), FlopCounterMode(display=False) as mode:
            call()
        counts.append(mode.get_total_flops())
    return counts


seen = {name: counted(*each) for name, each in calls.items()}
torch.backends.mha.set_fastpath_enabled(False)
with torch.backends.mkldnn.flags(enabled=False):
    plain = {name: counted(*each) for name, each in calls.items()}
for name, counts in seen.items():
    print(f"expected: {name}: the same in training and evaluation, as without fast paths: {plain[name]}")
    print(f"seen: {name}: {counts}")
if not (all(len(set(counts)) == 1 and counts[0] > 0 for counts in plain.values()) and plain["LSTM"][0] == 2 * 32 * 128 * 256
        and all(seen[name] == [*plain[name][:2], 0] for name in ("TransformerEncoder", "MultiheadAttention"))
        and seen["LSTM"] == [0, 0, 0] and seen["GRU"] == plain["GRU"]):
    sys.exit("the behaviour has changed")
END
