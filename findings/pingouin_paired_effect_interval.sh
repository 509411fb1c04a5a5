#!/usr/bin/env bash
# pingouin: the interval of a paired effect size does not know the pairs. compute_effsize(paired=True) divides by the groups' own
# deviation; the standard error in compute_esci(paired=True) is for a division by the differences' deviation. Of an architecture
# that is better on each of ten tasks, p = 1e-10, the interval holds 0; of pairs without correlation, 95% intervals miss 1 of 7.
#
# Versions: pingouin 0.7.0, scipy 1.17.1, numpy 2.4.6, pandas 3.1.1; as of 2026-11-28.
# Seen:     ten tasks: effect 0.11, interval -0.60 to 0.83; by a bootstrap of the pairs 0.09 to 0.17. 1,000 sets of 30 pairs, true
#           effect 0: the 95% interval holds it in 86%, 96% and 100% for correlations of 0, 0.5 and 0.99, with 0.8 in 90%, 97% and
#           100%; that of the effect in units of the differences' deviation (cohen_dz) in 95% or 96% each time.
# Source:   pingouin/effsize.py, compute_esci(): sqrt(1 / n + d ** 2 / (2 * n)); a comment says that results vary slightly from a
#           formula with the correlation. The documentation has the formula, but not for which d.
# Advice:   compute_effsize(paired=True, eftype="cohen_dz") for this interval, and say so; or compute_bootci(func="cohen",
#           paired=True).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 pingouin==0.7.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import numpy
from pingouin import compute_bootci, compute_effsize, compute_esci
from scipy.stats import ttest_rel

print("versions:", *(f"{name} {version(name)}" for name in ("pingouin", "scipy", "numpy", "pandas")))


def interval(first, second, kind="cohen"):
    effect = compute_effsize(first, second, paired=True, eftype=kind)
    return effect, compute_esci(effect, len(first), len(second), paired=True, eftype="cohen", decimals=6)


random = numpy.random.default_rng(0)
base = 0.4 + 0.5 * random.random(10)
better = base + 0.02 + 0.002 * random.standard_normal(10)
p = ttest_rel(better, base).pvalue
effect, (effect_low, effect_high) = interval(better, base)
sampled = compute_bootci(better, base, func="cohen", paired=True, seed=0, decimals=3)
print("expected: an interval above 0 where each of ten tasks is better; bootstrap of the pairs:", *sampled.tolist())
print(f"seen: p {p:.0e}, effect {effect:.2f}, interval {effect_low:.2f} to {effect_high:.2f}")

PAIRS, SETS = 30, 1000
print("expected: a 95% interval holds the true effect in 95%")
shares = {}
for true in (0.0, 0.8):
    for correlation in (0.0, 0.5, 0.99):
        held = numpy.zeros(2)
        for seed in range(SETS):
            common, one, two = numpy.random.default_rng(seed).standard_normal((3, PAIRS))
            own = (1 - correlation) ** 0.5
            groups = [correlation**0.5 * common + own * one + true, correlation**0.5 * common + own * two]
            truths = {"cohen": true, "cohen_dz": true / (2 - 2 * correlation) ** 0.5}
            held += [low <= truth <= high for kind, truth in truths.items() for low, high in (interval(*groups, kind)[1],)]
        shares[true, correlation] = held / SETS
        print(f"seen: effect {true}, correlation {correlation}: {held[0] / SETS:.3f}; of cohen_dz {held[1] / SETS:.3f}")
narrow, wide = ([shares[true, correlation] for true in (0.0, 0.8)] for correlation in (0.0, 0.99))
if not (p < 1e-6 and effect_low < 0 < sampled[0] and max(narrow[0][0], narrow[1][0]) < 0.92 and min(wide[0][0], wide[1][0]) > 0.99
        and all(abs(share[1] - 0.95) < 0.03 for share in shares.values())):
    sys.exit("the behaviour has changed")
END
