"""``python -m seed_trainer`` is ``seed-train``."""

import sys

from seed_trainer.cli import main

sys.exit(main())
