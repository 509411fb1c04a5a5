#!/usr/bin/env bash
# PyTorch: with one seed the first numbers of randn() depend on how many are drawn. torch.randn(17) begins with other numbers than
# torch.randn(16), and two draws of 8 are not one of 16; rand() has none of this.
#
# Versions: torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-27.
# Seen:     after manual_seed(0): of randn(16) and randn(17) 15 of the first 16 numbers differ, of randn(15) and randn(16) all of
#           the first 15; rand(16) equals rand(17)[:16].
# Source:   ATen/native/cpu/DistributionTemplates.h, normal_fill: from 16 elements on blocks of 16 are transformed at once, the
#           last 16 drawn again where the count is no multiple of 16; below 16 numbers are drawn one after the other.
# Advice:   the same seed is no common random number for models of different widths or numbers of layers: draw each parameter from
#           a generator of its own, seeded by its name, or cut it from a draw of fixed size.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch

print("versions: torch", version("torch"), "numpy", version("numpy"))


def differing(draw, count, more):
    """How many of the first `count` numbers differ where `more` are drawn."""
    torch.manual_seed(0)
    few = draw(count)
    torch.manual_seed(0)
    return int((few != draw(more)[:count]).sum())


normal = {(count, more): differing(torch.randn, count, more) for count, more in ((15, 16), (16, 17), (16, 32))}
uniform = {(count, more): differing(torch.rand, count, more) for count, more in normal}
print("expected: the first n of m numbers do not depend on m: 0 differ")
print("seen (n, m): randn", normal, "rand", uniform)
if not (normal[15, 16] > 10 and normal[16, 17] > 10 and normal[16, 32] == 0 and not any(uniform.values())):
    sys.exit("the behaviour has changed")
END
