#!/usr/bin/env python3
"""python/attnas/analysis/commands/mixers.py says what it does, and so does --help."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from attnas.analysis.__main__ import main

sys.exit(main(Path(__file__).stem, sys.argv[1:]))
