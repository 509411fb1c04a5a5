#!/usr/bin/env bash
# Orbax: a checkpoint manager that keeps the best checkpoints keeps those whose loss is NaN, and deletes the best. After a run
# that diverges nothing is left but NaN; if the loss recovers, what is kept and called best is whatever came after.
#
# Versions: orbax-checkpoint 0.12.8, jax 0.10.2, numpy 2.4.6; as of 2026-11-28.
# Seen:     max_to_keep=1, best_mode="min": losses 0.5, 0.4, 0.3, nan, nan: step 4 is kept and best; 0.4, 0.5, nan, 0.6: step 3.
# Source:   orbax, checkpoint_manager.py and preservation_policy.py sort by best_fn; all comparisons with NaN are false, so that a
#           stable sort leaves NaN where it is, among the newest, and that is the end that is kept.
# Advice:   best_fn=lambda m: m["loss"] if math.isfinite(m["loss"]) else math.inf (-math.inf for best_mode="max"), or do not save
#           a step whose metric is NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 jax==0.10.2 jaxlib==0.10.2 orbax-checkpoint==0.12.8
cd "$folder"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import math
import os
import sys
import tempfile
from importlib.metadata import version

import numpy
import orbax.checkpoint as ocp

print("versions:", *(f"{name} {version(name)}" for name in ("orbax-checkpoint", "jax", "numpy")))
nan = math.nan


def kept(losses, best_fn=lambda metrics: metrics["loss"]):
    """The steps that are left, and the one that is called best."""
    options = ocp.CheckpointManagerOptions(max_to_keep=1, best_fn=best_fn, best_mode="min")
    with ocp.CheckpointManager(tempfile.mkdtemp(dir=os.getcwd()), options=options) as manager:
        for step, loss in enumerate(losses):
            state = {"weights": numpy.full(2, step)}
            manager.save(step, args=ocp.args.StandardSave(state), metrics={"loss": loss})
            manager.wait_until_finished()
        return list(manager.all_steps()), manager.best_step()


diverged, recovered = [0.5, 0.4, 0.3, nan, nan], [0.4, 0.5, nan, 0.6]
seen = kept(diverged), kept(recovered)
replaced = [kept(losses, lambda m: m["loss"] if math.isfinite(m["loss"]) else math.inf) for losses in (diverged, recovered)]
print("expected: of the losses", diverged, "step 2 is kept, of", recovered, "step 0")
print("seen (steps kept, best):", *seen, "; with inf for NaN:", *replaced)
if seen != (([4], 4), ([3], 3)) or replaced != [([2], 2), ([0], 0)]:
    sys.exit("the behaviour has changed")
END
