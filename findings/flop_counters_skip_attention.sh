#!/usr/bin/env bash
# FLOP counters: attention by scaled_dot_product_attention costs nothing by fvcore, thop, ptflops and PyTorch's profiler; the same
# products written as two matmuls are counted by fvcore, ptflops' aten backend and the profiler. A causal one costs as much as a
# full one by the only counter that sees it, FlopCounterMode.
#
# Versions: torch 2.15.0, fvcore 0.1.5.post20221221, thop 0.1.1.post2209072238, ptflops 0.7.5, numpy 2.4.6; as of 2026-11-27.
# Seen:     of 2 products of 2 x 64 x 64 x 16, 262,144 multiply-adds: fused fvcore 0, thop 0, ptflops 0, profiler 0,
#           FlopCounterMode all of them; as matmuls fvcore all, thop 0, ptflops all, profiler all, FlopCounterMode all.
# Source:   each counter's own table of operators: fvcore/nn/flop_count.py, thop/profile.py, ptflops/aten_ops.py,
#           torch/csrc/profiler/util.cpp and torch/utils/flop_counter.py.
# Advice:   count attention by formula or with FlopCounterMode, and say whether a causal mask halves it; never compare a fused
#           with an unfused model by one of the others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 torch==2.15.0 fvcore==0.1.5.post20221221 thop==0.1.1.post2209072238 ptflops==0.7.5
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import logging
import sys
from importlib.metadata import version

logging.disable(logging.WARNING)
import torch
from fvcore.nn import FlopCountAnalysis
from ptflops import get_model_complexity_info
from thop import profile
from torch.profiler import ProfilerActivity
from torch.utils.flop_counter import FlopCounterMode

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "fvcore", "thop", "ptflops", "numpy")))


class Fused(torch.nn.Module):
    causal = False

    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class Causal(Fused):
    causal = True


class Matmuls(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1), -1) @ v


inputs = tuple(torch.randn(1, 2, 64, 16) for _ in range(3))
everything = 2 * 2 * 64 * 64 * 16  # multiply-adds of both products


def counts(model):
    """Multiply-adds by each counter."""
    with FlopCounterMode(display=False) as mode:
        model(*inputs)
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], with_flops=True) as recorded:
        model(*inputs)
    aten = get_model_complexity_info(model, (1,), input_constructor=lambda _: dict(zip("qkv", inputs)), as_strings=False,
                                     print_per_layer_stat=False, backend="aten")
    return {"fvcore": int(FlopCountAnalysis(model, inputs).total()), "thop": int(profile(model, inputs, verbose=False)[0]),
            "ptflops": int(aten[0]), "profiler": sum(e.flops or 0 for e in recorded.key_averages()) // 2,
            "FlopCounterMode": mode.get_total_flops() // 2}


fused, causal, matmuls = counts(Fused()), counts(Causal()), counts(Matmuls())
print("expected:", everything, "by each counter for both, half of it for a causal mask")
print("seen: fused", fused, "causal", causal, "matmuls", matmuls)
blind = {"fvcore": 0, "thop": 0, "ptflops": 0, "profiler": 0, "FlopCounterMode": everything}
if not (fused == causal == blind and matmuls == {name: 0 if name == "thop" else everything for name in blind}):
    sys.exit("the behaviour has changed")
END
