#!/usr/bin/env bash
# datasets: a shuffled stream that is repeated, shuffle().repeat(n), has the same order in each repetition: all epochs of a
# training by steps are the same batches in the same order. Only a loop of epochs with set_epoch() shuffles anew.
# repeat().shuffle() does, too, but mixes the repetitions.
#
# Versions: datasets 5.2.0; as of 2026-11-28.
# Seen:     1000 texts, batches of 10: after shuffle().repeat(3) 100 of 100 batches of the second and third epoch are one of the
#           first, in its place; with set_epoch() 0. A small stream that interleave_datasets() starts again ("all_exhausted")
#           comes in the same order, too. repeat(3).shuffle() repeats 211 texts among the first 1000.
# Source:   RepeatExamplesIterable in datasets/iterable_dataset.py iterates the same shuffled iterable, whose generator is copied
#           for each iteration; the epoch does not change within it. repeat()'s documentation tells of the mixing alone.
# Advice:   a loop over epochs with set_epoch(); or concatenate_datasets() of the stream, shuffled with another seed for each
#           epoch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check datasets==5.2.0
export HF_HOME="$folder/cache" HF_HUB_OFFLINE=1
"$folder/venv/bin/python" -W ignore - <<'END'
import itertools
import sys
from importlib.metadata import version

from datasets import Dataset, concatenate_datasets, interleave_datasets

print("versions: datasets", version("datasets"))
TEXTS, BATCH, EPOCHS = 1000, 10, 3
stream = Dataset.from_dict({"text": list(range(TEXTS))}).to_iterable_dataset(num_shards=4)


def same(epochs):
    """How many batches of the later epochs are those of the first one, in their places."""
    first, *later = ([tuple(epoch[start:start + BATCH]) for start in range(0, TEXTS, BATCH)] for epoch in epochs)
    return [sum(left == right for left, right in zip(first, epoch)) for epoch in later]


def epochs_of(dataset):
    texts = [example["text"] for example in dataset]
    return [texts[start:start + TEXTS] for start in range(0, EPOCHS * TEXTS, TEXTS)]


shuffled, by_epoch = stream.shuffle(seed=0, buffer_size=TEXTS), []
for epoch in range(EPOCHS):
    shuffled.set_epoch(epoch)
    by_epoch.append([example["text"] for example in shuffled])
repeated = epochs_of(stream.shuffle(seed=0, buffer_size=TEXTS).repeat(EPOCHS))
mixed = epochs_of(stream.repeat(EPOCHS).shuffle(seed=0, buffer_size=TEXTS))
joined = epochs_of(concatenate_datasets([stream.shuffle(seed=seed, buffer_size=TEXTS) for seed in range(EPOCHS)]))
long = Dataset.from_dict({"text": [-1] * EPOCHS * TEXTS}).to_iterable_dataset()
both = interleave_datasets([stream.shuffle(seed=0, buffer_size=TEXTS), long], stopping_strategy="all_exhausted")
small = [example["text"] for example in itertools.islice(both, 2 * EPOCHS * TEXTS - 1) if example["text"] >= 0]
again = [small[start:start + TEXTS] for start in range(0, EPOCHS * TEXTS, TEXTS)]
print("expected: a shuffled epoch shares no batch with another, as with set_epoch():", same(by_epoch), "of", TEXTS // BATCH,
      "and with other seeds:", same(joined))
print("seen: shuffle().repeat():", same(repeated), "; interleaved:", same(again), "; texts more than once in the first epoch of",
      "repeat().shuffle():", TEXTS - len(set(mixed[0])))
if not (same(by_epoch) == same(joined) == [0, 0] and same(repeated) == [100, 100] and len(set(mixed[0])) < TEXTS):
    sys.exit("the behaviour has changed")
END
