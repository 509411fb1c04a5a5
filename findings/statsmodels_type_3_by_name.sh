#!/usr/bin/env bash
# statsmodels: with formulas as they are usually written, an analysis of variance of type III tests each factor at the level of
# the other that comes first in the alphabet. Renaming a level makes a factor significant or not, even in a balanced design.
#
# Versions: statsmodels 0.15.0, pandas 3.1.1, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     losses of 2 similarities x 2 normalizations x 5 seeds; p of the similarity 5e-7 where the normalizations are called
#           "layer" and "rms", 0.77 where the same are called "standard" and "rms"; 2e-5 both times with sum coding.
# Source:   documentation of statsmodels.stats.anova.anova_lm, notes on type III: may depend on the contrast coding. A text
#           column's coding is Treatment, which makes its first level the reference.
# Advice:   write C(x, Sum) for each factor, or take typ=2; pingouin.anova(ss_type=3) codes by sums, and so gives 2e-5 for these
#           losses. Report the coding together with the type.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
import pandas
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

print("versions:", *(f"{name} {version(name)}" for name in ("statsmodels", "pandas", "scipy", "numpy")))
noise = numpy.random.default_rng(0)
table = pandas.DataFrame(
    [
        (similarity, normalization, 3 + 0.1 * (similarity == "dot") * (normalization == "layer") + 0.03 * noise.standard_normal())
        for similarity in ("dot", "cosine")
        for normalization in ("layer", "rms")
        for _ in range(5)
    ],
    columns=["similarity", "normalization", "loss"],
)
renamed = table.replace({"normalization": {"layer": "standard"}})


def p_of_similarity(table, formula, kind):
    result = anova_lm(ols(formula, table).fit(), typ=kind)["PR(>F)"]
    return float(result[[name for name in result.index if "similarity" in name and ":" not in name][0]])


USUAL, SUMS = "loss ~ similarity * normalization", "loss ~ C(similarity, Sum) * C(normalization, Sum)"
usual, coded = [[p_of_similarity(each, formula, 3) for each in (table, renamed)] for formula in (USUAL, SUMS)]
second = [p_of_similarity(each, USUAL, 2) for each in (table, renamed)]
print("expected: a level's name has no influence, and in a balanced design all types agree")
for name, values in (("type III", usual), ("type III, sum coding", coded), ("type II", second)):
    print(f"seen: {name}: p of the similarity with the level called layer {values[0]:.1e}, called standard {values[1]:.1e}")
if not (usual[0] < 1e-4 and usual[1] > 0.5 and max(coded + second) - min(coded + second) < 1e-8 < min(coded) < 1e-3):
    sys.exit("the behaviour has changed")
END
