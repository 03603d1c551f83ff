"""The cheap proxy of value alignment: does an episode's mean gate go with its success, within a task?

Mini-batches hold parts of episodes in shuffled order, so gates are summed by episode until a log line is written. The
proxy is biased (a skill was written knowing the outcome); the unbiased estimate is
:mod:`seed_trainer.watching.branching`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from accelerate.utils import gather_object

from seed_trainer.learning.scores import Scores
from seed_trainer.watching.value_alignment import within_group_auc, within_group_correlation

Key = tuple[int, int, int]
"""Process, round and episode."""


class GateProxy:
    """Sums of gates by episode, for all distilled tokens and apart for thinking and action tokens.

    Args:
        process: Number of this process.
        group_size: Episodes per task.
    """

    def __init__(self, process: int, group_size: int) -> None:
        self.process = process
        self.group_size = group_size
        self._sums: dict[str, dict[Key, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
        self._won: dict[Key, float] = {}

    def add(self, scores: Scores, batch: Mapping[str, Any], round_index: int) -> None:
        """Add one mini-batch."""
        gates_BT = scores.gates
        chosen_BT = (scores.mask > 0).to(gates_BT.dtype)
        kinds = {"": chosen_BT}
        if "action_tokens" in batch:
            action_BT = (batch["action_tokens"] > 0).to(gates_BT.dtype)
            kinds |= {"_action": chosen_BT * action_BT, "_think": chosen_BT * (1 - action_BT)}
        keys = [(self.process, round_index, episode) for episode in scores.episode_B.tolist()]
        self._won.update(zip(keys, batch["success"].tolist(), strict=True))
        for kind, mask_BT in kinds.items():
            sums, counts = (gates_BT * mask_BT).sum(-1).tolist(), mask_BT.sum(-1).tolist()
            for key, total, count in zip(keys, sums, counts, strict=True):
                if count:
                    self._sums[kind][key][0] += total
                    self._sums[kind][key][1] += count

    def flush(self) -> dict[str, float]:
        """Return the metrics of everything added on all processes, and start anew; every process has to call it."""
        mine = [
            (kind, key, total / count, self._won[key])
            for kind, episodes in self._sums.items()
            for key, (total, count) in episodes.items()
        ]
        self._sums.clear()
        self._won.clear()
        everyone: list[tuple[str, Key, float, float]] = gather_object(mine)
        metrics: dict[str, float] = {}
        for kind in sorted({entry[0] for entry in everyone}):
            entries = [entry for entry in everyone if entry[0] == kind]
            metrics |= self._metrics(kind, entries)
        return metrics

    def pending(self) -> dict[str, Any]:
        """Return the sums of this process, for a checkpoint; JSON."""
        sums = {kind: list(episodes.items()) for kind, episodes in self._sums.items()}
        return {"sums": sums, "won": list(self._won.items())}

    def restore(self, pending: Mapping[str, Any]) -> None:
        """Take back what :meth:`pending` returned."""
        for kind, episodes in pending["sums"].items():
            self._sums[kind].update({(p, r, e): list(sums) for (p, r, e), sums in episodes})
        self._won = {(p, r, e): won for (p, r, e), won in pending["won"]}

    def _metrics(self, kind: str, entries: Sequence[tuple[str, Key, float, float]]) -> dict[str, float]:
        gates, won = [entry[2] for entry in entries], [entry[3] for entry in entries]
        tasks = [
            (process, round_index, episode // self.group_size) for _, (process, round_index, episode), *_ in entries
        ]
        numbers = {task: number for number, task in enumerate(sorted(set(tasks)))}
        groups = [numbers[task] for task in tasks]
        return {
            f"align/auc{kind}": within_group_auc(gates, won, groups),
            f"align/correlation{kind}": within_group_correlation(gates, won, groups),
        }
