#!/usr/bin/env bash
# BoTorch: ZDT3 lacks the factor g of its second objective. All solutions are near the front: none is above 1 in it, where the
# problem of the cited paper goes up to about 10, and random search comes close to the largest hypervolume. The front is the same.
#
# Versions: botorch 0.18.1, torch 2.15.0, pymoo 0.6.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     1,000 random solutions: second objectives of at most 7.23 by pymoo and 0.99 by BoTorch; hypervolume, of 128.8 at most,
#           105.0 and 116.8. Multiplied with g, BoTorch's values are pymoo's. ZDT1 and ZDT2 are the same in both.
# Source:   botorch/test_functions/multi_objective.py, ZDT3._evaluate_true(): 1 - sqrt(f_0 / g) - f_0 / g * sin(10 pi f_0), which
#           ZDT3 multiplies with g, as ZDT1 and ZDT2 there do.
# Advice:   take ZDT3 from pymoo or write the line oneself; compare no hypervolumes of this ZDT3 with papers or other libraries.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pymoo==0.6.2 torch==2.15.0 botorch==0.18.1
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import torch
from botorch.test_functions.multi_objective import ZDT1, ZDT2, ZDT3
from pymoo.indicators.hv import HV
from pymoo.problems import get_problem

print("versions:", *(f"{name} {version(name)}" for name in ("botorch", "torch", "pymoo", "numpy")))
solutions = torch.rand(1000, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
agree, missing = {}, 0.0
for name, problem in (("zdt1", ZDT1(dim=10)), ("zdt2", ZDT2(dim=10)), ("zdt3", ZDT3(dim=10))):
    true, values = get_problem(name, n_var=10).evaluate(solutions.numpy()), problem(solutions).numpy()
    agree[name] = bool(numpy.allclose(values, true))
g = (1 + 9 * solutions[:, 1:].mean(dim=1)).numpy()
divided = numpy.allclose(values[:, 1] * g, true[:, 1])
print("expected: BoTorch's ZDT1, ZDT2 and ZDT3 are pymoo's; seen:", agree, "; times g ZDT3 is:", divided)
reached = [float(HV(ref_point=[11, 11])(points)) for points in (true, values)]
print(f"largest second objective of 1,000 random solutions: pymoo {true[:, 1].max():.2f}, BoTorch {values[:, 1].max():.2f};",
      f"hypervolume of them, of at most {problem.max_hv:.1f}: pymoo {reached[0]:.1f}, BoTorch {reached[1]:.1f}")
if not (agree == {"zdt1": True, "zdt2": True, "zdt3": False} and divided and values[:, 1].max() < 1 < 5 < true[:, 1].max()):
    sys.exit("the behaviour has changed")
END
