#!/usr/bin/env python3
"""The commands of attnas.analysis by their names; the other scripts here are links to this one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from attnas.analysis.__main__ import main

sys.exit(main(Path(__file__).stem, sys.argv[1:]))
