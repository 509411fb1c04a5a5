#!/usr/bin/env bash
# PyTorch on a CPU: set_float32_matmul_precision("medium") allows bfloat16, but with AVX512_BF16 alone products stay float32.
# Only their last digits change, since oneDNN multiplies in place of MKL; bfloat16 matrices do take VDPBF16PS, in half the time.
#
# Versions: torch 2.15.0 (oneDNN 3.13.3), numpy 2.4.6; as of 2026-12-01, on AMD's Zen 4 (AVX512_BF16, no AMX).
# Seen:     512 x 768 by 768 x 768: error 2.5e-7 with "highest" and the same bits with "high"; 3.7e-7 with "medium", by
#           brg_matmul:avx512_core though attr-fpmath:bf16 stands beside it; 2.9e-3 of bfloat16 matrices, by avx512_core_bf16.
# Source:   oneDNN's name for it is bf32, float32 matrices rounded to bfloat16 within a product: its matmul has that for AMX alone.
# Advice:   a rival in bfloat16 is one under autocast or of bfloat16 matrices; say what ONEDNN_VERBOSE=1 says, not the setting.
#           Where there is AMX the same line does round, so that last digits and speed of one program differ by machine. Here
#           ONEDNN_MAX_CPU_ISA keeps AMX out, so that the script says the same on both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch

print("versions:", *(f"{name} {version(name)}" for name in ("torch", "numpy")))
torch.set_num_threads(1)
torch.manual_seed(0)
a, b = torch.randn(512, 768), torch.randn(768, 768)
exact = a.double() @ b.double()


def error(product):
    return ((product.double() - exact).norm() / exact.norm()).item()


errors, products = {}, {}
for precision in ("highest", "high", "medium"):
    torch.set_float32_matmul_precision(precision)
    products[precision] = a @ b
    errors[precision] = error(products[precision])
allowed = torch.backends.mkldnn.matmul.fp32_precision
rounded = error((a.bfloat16() @ b.bfloat16()).float())
print(f"expected: with 'medium' ({allowed} is allowed) the error of bfloat16, {rounded:.0e}")
print("seen:", {precision: f"{size:.1e}" for precision, size in errors.items()})
same = torch.equal(products["highest"], products["high"])
print(f"seen: 'high' has the bits of 'highest': {same}; 'medium':", torch.equal(products["highest"], products["medium"]))
if not (allowed == "bf16" and rounded > 1e-3 and max(errors.values()) < 1e-6 and same):
    sys.exit("the behaviour has changed")
END
