#!/usr/bin/env bash
# webdataset: shards are shuffled once. WebDataset(shardshuffle=n) draws a seed when it is made, and shuffles by it anew in each
# epoch, so every epoch has the same order of shards; with with_epoch(samples), or if training stops an epoch early, every epoch
# has the same shards, and the others are never seen.
#
# Versions: webdataset 1.0.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     8 shards, 20 epochs: 1 order, with a seed and without; 20 orders with detshuffle=True, and with a DataPipeline. With
#           epochs of half of the samples, 3 of the 8 shards are not seen in 20 epochs.
# Source:   WebDataset in webdataset/compat.py gives filters.shuffle() the seed, with or without one of the user's; _shuffle() in
#           webdataset/filters.py makes a new generator of it each time. Upstream: pull request 502, open since July 2026.
# Advice:   detshuffle=True, but only without workers or with persistent_workers=True (its count of epochs is the worker's); or
#           DataPipeline(SimpleShardList(urls), shuffle(n), ...), which shuffles anew; or resampled=True for a budget of samples.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 webdataset==1.0.2
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import webdataset

print("versions: webdataset", version("webdataset"), "numpy", version("numpy"))
SHARDS, TEXTS, EPOCHS = 8, 5, 20
urls = [f"{shard}.tar" for shard in range(SHARDS)]
for url in urls:
    with webdataset.TarWriter(url) as writer:
        for text in range(TEXTS):
            writer.write({"__key__": f"{url[0]}_{text}", "txt": "text"})


def orders(dataset):
    """The shards of each epoch in the order in which they come."""
    return [list(dict.fromkeys(sample["__key__"][0] for sample in dataset)) for _ in range(EPOCHS)]


def different(epochs):
    return len({tuple(epoch) for epoch in epochs})


drawn = orders(webdataset.WebDataset(urls, shardshuffle=SHARDS))
given = orders(webdataset.WebDataset(urls, shardshuffle=SHARDS, seed=1))
counted = orders(webdataset.WebDataset(urls, shardshuffle=SHARDS, detshuffle=True))
pipeline = orders(webdataset.DataPipeline(webdataset.SimpleShardList(urls), webdataset.shuffle(SHARDS),
                                          webdataset.tarfile_to_samples()))
half = webdataset.WebDataset(urls, shardshuffle=SHARDS).shuffle(TEXTS).with_epoch(SHARDS * TEXTS // 2)
found = {sample["__key__"][0] for _ in range(EPOCHS) for sample in half}
print("expected: different orders of shards in", EPOCHS, "epochs: about", EPOCHS, "as by detshuffle=True:", different(counted),
      "and by a DataPipeline:", different(pipeline))
print("seen: without a seed", different(drawn), "; with one", different(given))
print("seen: epochs of half of the samples: after", EPOCHS, "epochs", len(found), "of", SHARDS, "shards")
if not (different(drawn) == different(given) == 1 and min(different(counted), different(pipeline)) > EPOCHS // 2
        and len(found) < SHARDS):
    sys.exit("the behaviour has changed")
END
