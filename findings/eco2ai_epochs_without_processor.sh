#!/usr/bin/env bash
# eco2AI: the energy of an epoch lacks the processor's. new_epoch() asks "top" for its own process's load, once, and waits for
# the answer: a process that waits has no load, and this 0 is taken for the whole epoch. The same holds for stop(), so for
# all of a run that is shorter than measure_period, 10 s by default, and for the end of a longer one.
#
# Versions: eco2ai 0.3.12, pandas 2.3.3, psutil 7.2.2; top of procps-ng 4.0.2; as of 2026-11-28.
# Seen:     6 s of computing, in kWh: start_training(), new_epoch() 5.8e-8, of which the processor 0 and the rest is memory;
#           start() and stop() with a period of 1 s 1.3e-4 to 4e-4, with the default 6e-8, of which the processor 0. (A virtual
#           machine of two cores, 500 W for the processor by eco2AI's table; the figures depend on it, the zeros do not.)
# Source:   eco2ai/tools/tools_cpu.py, get_cpu_percent_linux(): subprocess.run(["top", "-b", "-n1", ...]), in the training's
#           own thread by Tracker.new_epoch() and stop(); calculate_consumption() multiplies by the time since the last call.
# Advice:   start() and stop() with a measure_period far below the run's length; time.process_time() for a check.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
  numpy==2.4.6 pandas==2.3.3 psutil==7.2.2 setuptools==65.5.0 eco2ai==0.3.12
cd "$folder"
top -b -n1 >"$folder/top" # It must be there.
"$folder/venv/bin/python" -W ignore - <<'END'
import sys
import time
from importlib.metadata import version

import eco2ai
import pandas

print("versions:", *(f"{name} {version(name)}" for name in ("eco2ai", "pandas", "psutil")))


def compute():
    """6 s of computing, whatever else the machine does."""
    end = time.monotonic() + 6
    while time.monotonic() < end:
        sum(range(1000))


def energy(period, by_epoch):
    """What is written as the energy of 6 s of computing, in kWh."""
    tracker = eco2ai.Tracker(file_name="energy.csv", alpha_2_code="DE", measure_period=period, ignore_warnings=True)
    tracker.start_training() if by_epoch else tracker.start()
    compute()
    tracker.new_epoch({}) if by_epoch else None
    tracker.stop()
    return float(pandas.read_csv("energy.csv")["power_consumption(kWh)"].iloc[-1])


epoch, often, seldom = energy(1, True), energy(1, False), energy(10, False)
print("expected: about the same energy for the same work")
print(f"seen: new_epoch() {epoch:.1e} kWh; start() and stop(), each second {often:.1e}, with the default of 10 s {seldom:.1e}")
if not (often > 100 * epoch and often > 100 * seldom):
    sys.exit("the behaviour has changed")
END
