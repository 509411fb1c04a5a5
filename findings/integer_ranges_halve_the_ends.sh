#!/usr/bin/env bash
# Nevergrad and Hyperopt: an integer in a range, hp.uniformint's too, is a rounded real number, so that the smallest and the
# largest value are drawn half as often as those between. Of 1 to 4 layers, random search tries 1 and 4 in a sixth of its
# candidates each, 2 and 3 in a third.
#
# Versions: nevergrad 1.0.12, hyperopt 0.3.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     shares of 1, 2, 3, 4 in 20,000 draws: nevergrad 0.17 0.33 0.33 0.17, hyperopt 0.16 0.33 0.34 0.17.
# Source:   nevergrad, parametrization/data.py: set_integer_casting() "through deterministic rounding" within the same bounds;
#           hyperopt, pyll_utils.py: uniformint is quniform with q = 1, in pyll/stochastic.py round(uniform(low, high) / q) * q.
# Advice:   hp.randint(label, low, high + 1) in Hyperopt, ng.p.Choice in Nevergrad, whose shares are even; otherwise a "random
#           search" baseline is not uniform over architectures.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 nevergrad==1.0.12 hyperopt==0.3.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import nevergrad
import numpy
from hyperopt import hp
from hyperopt.pyll.stochastic import sample

print("versions: nevergrad", version("nevergrad"), "hyperopt", version("hyperopt"), "numpy", version("numpy"))
draws = 20000
layers = nevergrad.p.Scalar(lower=1, upper=4).set_integer_casting()
layers.random_state.seed(0)
space, generator = hp.uniformint("layers", 1, 4), numpy.random.default_rng(0)
shares = {
    "nevergrad": numpy.bincount([layers.sample().value for _ in range(draws)], minlength=5)[1:] / draws,
    "hyperopt": numpy.bincount([int(sample(space, rng=generator)) for _ in range(draws)], minlength=5)[1:] / draws,
}
print("expected: each of 1, 2, 3, 4 in a quarter of the draws")
print("seen:", {name: share.round(2).tolist() for name, share in shares.items()})
for share in shares.values():
    if not numpy.allclose(share, [1 / 6, 1 / 3, 1 / 3, 1 / 6], atol=0.02):
        sys.exit("the behaviour has changed")
END
