"""``python -m benchmarks.speed [NAME ...]``: speed against the originals, as a table and JSON."""

from __future__ import annotations

import sys

from .running import main

if __name__ == "__main__":
    sys.exit(main())
