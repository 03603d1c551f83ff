"""``python -m seed_trainer.quickstart`` is ``seed-train quickstart``."""

import sys

from seed_trainer.cli import main

sys.exit(main(["quickstart", *sys.argv[1:]]))
