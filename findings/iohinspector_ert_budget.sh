#!/usr/bin/env bash
# iohinspector: the expected running time (ERT) does not know the budget of a run. One that misses the target counts with the largest
# evaluation number at which any run of the table improved: too little where runs stagnate, too much beside an algorithm that was
# given more.
#
# Versions: iohinspector 0.0.8, ioh 0.3.22, polars 2.1.0, numpy 2.4.6; as of 2026-11-27.
# Seen:     two runs of A with 100 evaluations each, one hits the target at 50: ERT 100 alone, 1050 beside one run of B that hits it
#           at 1,000; of A's evaluations it is 50 + 100 = 150.
# Source:   iohinspector/metrics/fixed_target.py, aggregate_running_time(): failures count as eval_max, which is the maximum of the
#           table's evaluations; manager.py, load(): monotonic=True keeps the rows that improve, not a run's last one.
# Advice:   call it for each algorithm's rows by themselves, with eval_max= its budget.
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

print("versions:", *(f"{name} {version(name)}" for name in ("iohinspector", "ioh", "polars", "numpy")))
ioh.problem.wrap_real_problem(lambda x: float(x[0]), "loss", optimization_type=ioh.OptimizationType.MIN, lb=0, ub=100)
manager = iohinspector.DataManager()


def log(algorithm, runs):
    """Runs of values, written by ioh and read by iohinspector."""
    logger = ioh.logger.Analyzer(root=".", folder_name=algorithm, algorithm_name=algorithm)
    problem = ioh.get_problem("loss", 0, 1, ioh.ProblemClass.REAL)
    problem.attach_logger(logger)
    for run in runs:
        for value in run:
            problem([value])
        problem.reset()
    problem.detach_logger()
    logger.close()
    manager.add_folder(algorithm)


def ert_of_a(**options):
    """Of the target 1."""
    rows = manager.load(include_meta_data=True)
    table = iohinspector.aggregate_running_time(rows, f_min=1.0, f_max=10.0, **options)
    return float(table[(table.algorithm_name == "A") & (table.raw_y == 1.0)].ERT.iloc[0])


log("A", [[10] * 49 + [1] * 51, [10] + [5] * 99])
alone, by_budget = ert_of_a(), ert_of_a(eval_max=100)
log("B", [[10] * 999 + [1]])
beside = ert_of_a()
print("expected: evaluations of A's runs until the target or the end, 50 + 100, by hits, as with eval_max=100:", by_budget)
print("seen: ERT of A alone", alone, "beside B", beside)
if not (alone == 100 and by_budget == 150 and beside == 1050):
    sys.exit("the behaviour has changed")
END
