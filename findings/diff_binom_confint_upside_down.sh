#!/usr/bin/env bash
# diff-binom-confint: the modified Wilson interval of a share that fails once or twice ends below its beginning. Of 19 runs of 20
# that solve a task, it is from 0.764 to 0.001, and holds no share at all; that of 1 of 20 is right.
#
# Versions: diff-binom-confint 0.1.0, scipy 1.17.1, pandas 2.3.3, numpy 2.4.6; as of 2026-11-29.
# Seen:     1 of 20: 0.001 to 0.236, 19 of 20: 0.764 to 0.001, 18 of 20: 0.699 to 0.012, in place of 1 less the ends of 1 and 2 of
#           20; nothing is said. With three failures it is right; of 100, wrong up to three.
# Source:   diff_binom_confint/_binom_confint.py, "modified-wilson" and "modified-newcombe": the upper end is the correction of
#           the failures' share, without the 1 less it.
# Advice:   confint_type="wilson" or "clopper-pearson", or scipy.stats.binomtest(k, n).proportion_ci(); or count failures.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 diff-binom-confint==0.1.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

from diff_binom_confint import compute_confidence_interval

print("versions:", *(f"{name} {version(name)}" for name in ("diff-binom-confint", "scipy", "pandas", "numpy")))


def interval(count, of, kind="modified-wilson"):
    ends = compute_confidence_interval(count, of, confint_type=kind)
    return float(ends.lower_bound), float(ends.upper_bound)


print("expected: the interval of the runs that solve a task is 1 less the ends of that of those that fail")
upside_down = {}
for of in (20, 100):
    for failures in (1, 2, 3, 4):
        low, high = interval(of - failures, of)
        of_failures, wilson = interval(failures, of), interval(of - failures, of, "wilson")
        upside_down[of, failures] = high < low
        print(f"seen: {of - failures} of {of}: {low:.3f} to {high:.3f}; expected {1 - of_failures[1]:.3f} to"
              f" {1 - of_failures[0]:.3f}; wilson {wilson[0]:.3f} to {wilson[1]:.3f}")
if [key for key, wrong in upside_down.items() if wrong] != [(20, 1), (20, 2), (100, 1), (100, 2), (100, 3)]:
    sys.exit("the behaviour has changed")
END
