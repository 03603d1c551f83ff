"""``python -m benchmarks.parity [NAME ...] [--against PATH] [--episodes N]``: differences from the originals."""

from __future__ import annotations

import sys

from .running import main

if __name__ == "__main__":
    sys.exit(main())
