#!/usr/bin/env bash
# datasets: a stream that is shuffled and then split by take() and skip() has fixed halves in the first epoch only. set_epoch(1),
# which Trainer and Accelerate's loaders call, shuffles again before skip(): a third of the validation texts are trained on.
#
# Versions: datasets 5.2.0, pyarrow 26.0.1, numpy 2.4.6; as of 2026-11-28.
# Seen:     1,000 texts in 4 shards, 100 of them for validation, buffer of 100: training on 0, 30 and 35 of the validation
#           texts in epochs 0, 1 and 2, and as many never trained on; split before the shuffle 0, 0 and 0.
# Source:   set_epoch() gives every shuffle of the chain another seed (datasets/iterable_dataset.py); take() and skip() count
#           what comes out of it. The documentation of streaming advised this order (issue 5435 of huggingface/datasets).
#           accelerate/data_loader.py: DataLoaderShard.set_epoch(), at the start of each pass.
# Advice:   take() and skip() first, then shuffle the training part; or split by shards, files or a hash of the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 pyarrow==26.0.1 datasets==5.2.0
cd "$folder"
HF_HOME=$folder "$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import datasets

print("versions:", *(f"{name} {version(name)}" for name in ("datasets", "pyarrow", "numpy")))
COUNT, VALIDATION, EPOCHS = 1000, 100, 3
stream = datasets.Dataset.from_dict({"text": list(range(COUNT))}).to_iterable_dataset(num_shards=4)


def texts(part):
    return {row["text"] for row in part}


def epochs(validation, training):
    """For each epoch: validation texts that are trained on, and texts of neither part."""
    held, counts = texts(validation), []
    for epoch in range(EPOCHS):
        training.set_epoch(epoch)
        trained = texts(training)
        counts.append((len(held & trained), COUNT - len(held | trained)))
    return counts


shuffled = stream.shuffle(seed=0, buffer_size=100)
seen = epochs(shuffled.take(VALIDATION), shuffled.skip(VALIDATION))
before = epochs(stream.take(VALIDATION), stream.skip(VALIDATION).shuffle(seed=0, buffer_size=100))
print("expected: in each epoch no validation text is trained on and no text is left out:", [(0, 0)] * EPOCHS)
print("seen: split before the shuffle:", before)
print("seen: shuffled, then split:", seen)
if not (before == [(0, 0)] * EPOCHS and seen[0] == (0, 0) and all(leaked > 10 and lost == leaked for leaked, lost in seen[1:])):
    sys.exit("the behaviour has changed")
END
