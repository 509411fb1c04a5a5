#!/usr/bin/env bash
# pandas: DataFrame.corr() leaves pairs with an infinite value out, Series.corr() and DataFrame.corrwith() rank them. A
# predictor that takes diverged architectures (perplexity inf) for the best has a rank correlation of 1 by the one and below 0
# by the others.
#
# Versions: pandas 3.1.1, scipy 1.17.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     eight architectures, the three that diverged are predicted best: DataFrame.corr 1.0 (Spearman and Kendall);
#           Series.corr, corrwith and SciPy -0.49 (Spearman) and -0.19 (Kendall).
# Source:   DataFrame.corr() (pandas/core/frame.py, _libs/algos.pyx) keeps what isfinite keeps, Series.corr() (nancorr() in
#           core/nanops.py) what notna keeps; both are documented to exclude missing values.
# Advice:   scipy.stats, or rank() before corr(); count the finite pairs. Which architectures diverged is part of what a
#           predictor must know.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
"$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import numpy
import pandas
from scipy import stats

print("versions: pandas", version("pandas"), "scipy", version("scipy"), "numpy", version("numpy"))
frame = pandas.DataFrame({"perplexity": [8.2, 9.0, 10.0, 11.0, 12.2, numpy.inf, numpy.inf, numpy.inf],
                          "predicted": [8.0, 8.4, 9.0, 10.0, 11.0, 5.5, 6.0, 7.0]})
measures = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}
seen = {}
for method, measure in measures.items():
    found = (frame.corr(method=method).loc["perplexity", "predicted"],
             frame["perplexity"].corr(frame["predicted"], method=method),
             frame[["perplexity"]].corrwith(frame["predicted"], method=method).item(),
             measure(frame["perplexity"], frame["predicted"]).statistic,
             frame.rank().corr(method=method).loc["perplexity", "predicted"])
    seen[method] = [round(float(value), 2) for value in found]
print("expected: one coefficient, below 0: infinity is the largest perplexity, as for SciPy:",
      *(f"{method} {values[3]}" for method, values in seen.items()))
for method, values in seen.items():
    print("seen:", method, *(f"{name} {value}" for name, value in
                             zip(("DataFrame.corr", "Series.corr", "corrwith", "scipy", "rank().corr"), values)))
if seen != {"spearman": [1.0, -0.49, -0.49, -0.49, -0.49], "kendall": [1.0, -0.19, -0.19, -0.19, -0.19]}:
    sys.exit("the behaviour has changed")
END
