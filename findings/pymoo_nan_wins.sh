#!/usr/bin/env bash
# pymoo: where some candidates have NaN in all objectives, one of them may be all that NSGA-II returns, though most of its last
# population is finite.
#
# Versions: pymoo 0.6.2, moocore 0.3.2, numpy 2.4.6; as of 2026-11-27.
# Seen:     result.F = [[nan nan]]; 18 of the last population's 20 candidates are finite.
# Source:   pymoo/util/nds/non_dominated_sorting.py hands the points to moocore's pareto_rank and is_nondominated, which compare
#           numbers with "<" and know no NaN.
# Advice:   a training run that diverged must reach the algorithm as a large finite number (or as a constraint violation), never
#           as NaN. Check result.F with numpy.isfinite.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pymoo==0.6.2 moocore==0.3.2
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import numpy
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import ElementwiseProblem
from pymoo.optimize import minimize


class Search(ElementwiseProblem):
    """Two objectives; where x[1] is large, training diverges."""

    def __init__(self):
        super().__init__(n_var=2, n_obj=2, xl=0, xu=1)

    def _evaluate(self, x, out):
        out["F"] = [numpy.nan, numpy.nan] if x[1] > 0.7 else [x[0], 1 - x[0] + x[1]]


print("versions: pymoo", version("pymoo"), "moocore", version("moocore"), "numpy", version("numpy"))
result = minimize(Search(), NSGA2(pop_size=20), ("n_gen", 30), seed=1)
finite = int(numpy.isfinite(result.pop.get("F")).all(axis=1).sum())
print("expected: a front of finite points, or an error that NaN is no objective value")
print("seen: result.F =", result.F.tolist(), "while", finite, "of 20 candidates are finite")
if not (numpy.isnan(result.F).all() and finite >= 10):
    sys.exit("the behaviour has changed")
END
