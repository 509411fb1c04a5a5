#!/usr/bin/env bash
# Equinox: rotary embeddings of one size share one table of angles, whatever their theta. The first layer that is called fills
# it, and a layer with another theta rotates by the first one's angles, until a longer text comes: then the table is that
# layer's, also for the first. A model with local layers at 10 000 and global ones at 1 000 000, or a search over theta in one
# process, compares nothing.
#
# Versions: equinox 0.13.8, jax 0.10.2, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     theta 1e6 after 1e4: equal to 1e4, and off by up to 1.35 from 1e6 alone. After a text longer by one token at 1e6, the
#           layer with 1e4 is equal to 1e6. equinox.clear_caches() before each call gives each its own.
# Source:   equinox/nn/_embedding.py, RotaryPositionalEmbedding.__call__: internal_rope_embedding_cache has (embedding_size,
#           dtype) as its key, without theta.
# Advice:   one theta per head size and dtype, or a rotation of your own; clear_caches() between the candidates of a search.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 equinox==0.13.8
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'END'
import sys
from importlib.metadata import version

import equinox
import jax

print("versions:", *(f"{name} {version(name)}" for name in ("equinox", "jax", "numpy")))
x = jax.random.normal(jax.random.key(0), (17, 8))
local, distant = (equinox.nn.RotaryPositionalEmbedding(8, theta=theta) for theta in (1e4, 1e6))


def difference(a, b):
    return round(float(abs(a - b).max()), 2)


def alone(layer):
    equinox.clear_caches()
    return layer(x[:16])


first, second = alone(local), alone(distant)
equinox.clear_caches()
both = local(x[:16]), distant(x[:16])
distant(x)
later = local(x[:16])
seen = {"1e6 after 1e4, from 1e6 alone": difference(both[1], second), "from 1e4 alone": difference(both[1], first),
        "1e4 after a longer text at 1e6, from 1e4 alone": difference(later, first), "from 1e6 alone": difference(later, second)}
print("expected: each layer rotates by its own theta: 0 from itself alone, not 0 from the other")
print("seen:", seen)
if list(map(bool, seen.values())) != [True, False, True, False]:
    sys.exit("the behaviour has changed")
END
