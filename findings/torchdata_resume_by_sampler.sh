#!/usr/bin/env bash
# torchdata: a resumed StatefulDataLoader shows examples twice and others never, unless it shuffles by shuffle=True. Of other
# samplers without a state of their own it skips as many numbers as were drawn, but of a new permutation, without a warning.
#
# Versions: torchdata 0.11.0, torch 2.15.0, numpy 2.4.6, on the CPU; as of 2026-11-28.
# Seen:     40 of 50 examples, a second epoch interrupted after 12 of them, the same seed: with SubsetRandomSampler 8 twice and
#           8 never, with a generator of its own 9 and 9, with BatchSampler of RandomSampler 6 and 6; with shuffle=True all
#           once.
# Source:   torchdata/stateful_dataloader/stateful_dataloader.py: where the sampler's iterator has no state_dict(), the state is
#           a number of draws, which itertools.islice() leaves out; only torchdata's own RandomSampler saves its generator.
# Advice:   for a part of a corpus, StatefulDataLoader(Subset(corpus, part), shuffle=True); draw weighted samples beforehand,
#           from a generator whose seed is the epoch's number, and give the list as sampler.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 torch==2.15.0 torchdata==0.11.0
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import torch
from torch.utils.data import BatchSampler, RandomSampler, Subset, SubsetRandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader

print("versions:", *(f"{name} {version(name)}" for name in ("torchdata", "torch", "numpy")))
corpus, train = list(range(50)), range(40)


def seeded():
    return torch.Generator().manual_seed(7)


loaders = {
    "shuffle=True of a Subset": lambda: StatefulDataLoader(Subset(corpus, train), batch_size=4, shuffle=True),
    "SubsetRandomSampler": lambda: StatefulDataLoader(corpus, batch_size=4, sampler=SubsetRandomSampler(train)),
    "SubsetRandomSampler, own generator": lambda: StatefulDataLoader(
        corpus, batch_size=4, sampler=SubsetRandomSampler(train, generator=seeded())),
    "BatchSampler of RandomSampler": lambda: StatefulDataLoader(
        corpus, batch_sampler=BatchSampler(RandomSampler(Subset(corpus, train)), 4, drop_last=False))}


def examples(batches):
    return [int(example) for batch in batches for example in batch]


def resumed(make):
    """How often the examples are seen in a second epoch which is interrupted after three of ten batches."""
    torch.manual_seed(0)
    loader = make()
    examples(loader)
    second = iter(loader)
    before = examples(next(second) for _ in range(3))
    state = loader.state_dict()
    torch.manual_seed(0)  # a new process, with the same seed
    loader = make()
    loader.load_state_dict(state)
    after = examples(loader)
    seen = [(before + after).count(example) for example in train]
    return {f"{times} times": seen.count(times) for times in sorted(set(seen))}


print("expected: each of 40 examples once in the epoch")
counts = {name: resumed(make) for name, make in loaders.items()}
for name, each in counts.items():
    print(f"seen: {name}: {each}")
once, *others = counts.values()
if not (once == {"1 times": 40} and all(each.get("0 times", 0) > 4 and each.get("2 times", 0) > 4 for each in others)):
    sys.exit("the behaviour has changed")
END
