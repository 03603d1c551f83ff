"""The order of training tasks as a function of seed and epoch alone, so that a resumed run plays the same tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler


class TaskOrder(RepeatSampler):
    """TRL's sampler with an epoch: the n-th epoch has the n-th permutation of the seed, whenever it is asked for.

    TRL's own draws from a generator that starts at the seed again in every process, so that a run that is resumed in
    its third epoch would play the tasks of the first.
    """

    epoch = 0

    @classmethod
    def like(cls, sampler: Any) -> TaskOrder:
        """Return the same sampler (TRL's, with a seed) with an epoch."""
        names = ("data_source", "mini_repeat_count", "batch_size", "repeat_count", "shuffle", "seed")
        return cls(**{name: getattr(sampler, name) for name in names})

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration goes through."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        """Yield dataset indices."""
        if self.shuffle:
            self.generator.manual_seed(self.seed or 0)
            for _ in range(self.epoch):  # Those of earlier epochs: what an uninterrupted run has drawn by now.
                torch.randperm(self.num_samples, generator=self.generator)
        yield from super().__iter__()  # type: ignore[no-untyped-call]


def set_epoch(dataloader: Any, epoch: int) -> None:
    """Tell the sampler underneath a loader its epoch, however many samplers of accelerate are wrapped around it."""
    sampler: Any = getattr(dataloader, "batch_sampler", None)
    while hasattr(sampler, "batch_sampler"):
        sampler = sampler.batch_sampler
    innermost = getattr(sampler, "sampler", None)
    if innermost is not None and hasattr(innermost, "set_epoch"):
        innermost.set_epoch(epoch)
