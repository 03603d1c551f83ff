"""SEED and its relatives on TRL: a policy learns from hindsight skills it writes about its own episodes.

Importing this package loads nothing heavy; :class:`SEEDTrainer` and :class:`SEEDConfig` are imported on first use
(they need the ``train`` extra). It contains no environment: those are :mod:`seed_envs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seed_trainer.settings.config import SEEDConfig
    from seed_trainer.trainer import SEEDTrainer

__all__ = ["SEEDConfig", "SEEDTrainer"]

_LAZY = {"SEEDConfig": "seed_trainer.settings.config", "SEEDTrainer": "seed_trainer.trainer"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
