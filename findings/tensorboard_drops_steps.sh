#!/usr/bin/env bash
# TensorBoard: reading a run back gives 10,000 points of a curve at most, drawn at random. Of 25,000 steps the first one and the
# best one are lost, and the minimum of what is read is not the minimum that was written.
#
# Versions: tensorboard 2.21.0, tensorboardX 2.6.5, numpy 2.4.6; as of 2026-11-27.
# Seen:     25,000 points written, 10,000 read; the single lowest loss, at step 12,345, is not among them; the last step is.
# Source:   tensorboard/backend/event_processing/event_accumulator.py, DEFAULT_SIZE_GUIDANCE, and reservoir.py: a reservoir sample
#           with a fixed seed that always keeps the newest point.
# Advice:   EventAccumulator(folder, size_guidance={"scalars": 0}) for analysis; keep results in a table of one's own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 tensorboard==2.21.0 tensorboardX==2.6.5
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

print("versions:", *(f"{name} {version(name)}" for name in ("tensorboard", "tensorboardX", "numpy")))
with SummaryWriter("run") as writer:
    for step in range(25000):
        writer.add_scalar("loss", 0.5 if step == 12345 else 1.0, step)


def read(**options):
    events = EventAccumulator("run", **options)
    events.Reload()
    return events.Scalars("loss")


default, everything = read(), read(size_guidance={"scalars": 0})
print("expected: 25000 points with a minimum of 0.5, as with size_guidance 0:", len(everything), min(e.value for e in everything))
print("seen:", len(default), "points, minimum", min(e.value for e in default), "steps", default[0].step, "to", default[-1].step)
if not (len(everything) == 25000 and len(default) == 10000 and default[-1].step == 24999
        and min(e.value for e in default) == 1.0):
    sys.exit("the behaviour has changed")
END
