#!/usr/bin/env bash
# ioh: a candidate's numbers are logged with six decimals, however small they are. A learning rate of 4e-7 is read as 0, 1.6e-6 as
# 2e-6; who evaluates what was logged evaluates something else. The objective's value has ten.
#
# Versions: ioh 0.3.22, iohinspector 0.0.8, polars 2.1.0, numpy 2.4.6; as of 2026-11-28.
# Seen:     learning rates 3e-4, 1.6e-6, 4e-7 and weight decays 1e-8 are read as 0.0003, 2e-06, 0.0 and 0.0; loss 4e-12 as 0.0.
# Source:   IOHexperimenter, include/ioh/logger/flatfile.hpp: positions are formatted by {:f}, so with six decimals. "best" in the
#           JSON file beside the data has all digits, of the best candidate alone.
# Advice:   search over the logarithm of what spans magnitudes, or keep the candidates elsewhere, by evaluation number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 polars==2.1.0 ioh==0.3.22 iohinspector==0.0.8
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
from importlib.metadata import version

import ioh
import iohinspector

print("versions:", *(f"{name} {version(name)}" for name in ("ioh", "iohinspector", "polars", "numpy")))
asked = [([3e-4, 1e-8], 2.5), ([1.6e-6, 1e-8], 1.5), ([4e-7, 1e-8], 4e-12)]
losses = iter([loss for _, loss in asked])
ioh.problem.wrap_real_problem(lambda x: next(losses), "loss", optimization_type=ioh.OptimizationType.MIN, lb=0, ub=1)
problem = ioh.get_problem("loss", 0, 2, ioh.ProblemClass.REAL)
logger = ioh.logger.Analyzer(root=".", folder_name="search", algorithm_name="search", store_positions=True)
problem.attach_logger(logger)
for candidate, _ in asked:
    problem(candidate)
problem.detach_logger()
logger.close()
manager = iohinspector.DataManager()
manager.add_folder("search")
rows = manager.load()
read = [([row["x0"], row["x1"]], row["raw_y"]) for row in rows.to_dicts()]
print("expected: what is read is what was evaluated (learning rate and weight decay, loss):", asked)
print("seen:", read)
if read != [([3e-4, 0.0], 2.5), ([2e-6, 0.0], 1.5), ([0.0, 0.0], 0.0)]:
    sys.exit("the behaviour has changed")
END
