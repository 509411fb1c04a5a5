#!/usr/bin/env bash
# rotary-embedding-torch: with xPos, attention from cached keys is not that of the whole text. The method for generation counts
# the decay of a new query from the middle of the new tokens, that of the keys from the middle of all. The longer the text, the
# more the query shrinks: models generate with flatter attention than they were trained with, without an error. Without xPos it is
# exact.
#
# Versions: rotary-embedding-torch 0.9.1, torch 2.15.0, numpy 2.4.6, CPU; as of 2026-11-28.
# Seen:     random queries and keys, the last query's scores from the cache: their deviation is 0.98, 0.95, 0.81, 0.66 of that in
#           the whole text at 32, 128, 512, 2,048 tokens; an attention weight changes by up to 0.02, 0.05, 0.47, 0.38. Without
#           xPos: 1, 0.
# Source:   rotary_embedding_torch/rotary_embedding_torch.py: rotate_queries_with_cached_keys() takes get_scale(seq[-q_len:]), and
#           get_scale() subtracts len(t) // 2 of what it is given, 0 for one token instead of half the text.
# Advice:   rotate all queries and keys by rotate_queries_and_keys() at each step and keep the last query, or do without xPos;
#           compare the scores of a generated token with those of the whole text at the longest length.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 rotary-embedding-torch==0.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import sys
from importlib.metadata import version

import torch
from rotary_embedding_torch import RotaryEmbedding

print("versions:", *(f"{name} {version(name)}" for name in ("rotary-embedding-torch", "torch", "numpy")))


def compare(length, xpos):
    """The last query's scores with all keys, from the cache as parts of those from the whole text: standard deviation, and the
    largest change of an attention weight."""
    torch.manual_seed(0)
    q, k = torch.randn(1, 4, length, 32) * 2, torch.randn(1, 4, length, 32) * 2

    def new():
        return RotaryEmbedding(dim=32, use_xpos=xpos, cache_if_possible=False)

    with torch.no_grad():
        if xpos:
            queries, keys = new().rotate_queries_and_keys(q, k)
        else:
            queries, keys = new().rotate_queries_or_keys(q), new().rotate_queries_or_keys(k)
        whole = queries[:, :, -1:] @ keys.mT / 32 ** 0.5
        queries, keys = new().rotate_queries_with_cached_keys(q[:, :, -1:], k)
        cached = queries @ keys.mT / 32 ** 0.5
    change = (cached.softmax(-1) - whole.softmax(-1)).abs().max()
    return round(float(cached.std() / whole.std()), 2), round(float(change), 2)


lengths = (32, 128, 512, 2048)
plain = {n: compare(n, False) for n in lengths}
seen = {n: compare(n, True) for n in lengths}
print("expected: a query has the scores from the cache that it has in the whole text: (1, 0)")
print("seen (deviation of the scores as part of the right one, largest change of a weight), by length:")
print("      with xPos", seen)
print("      without", plain)
if not (all(part == 1 and change == 0 for part, change in plain.values()) and seen[32][0] > 0.9 and seen[2048][0] < 0.8
        and seen[2048][1] > 0.1):
    sys.exit("the behaviour has changed")
END
