"""Where metrics go: TRL's lists of values since the last log line, each averaged over processes first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from accelerate.utils import gather_object


@dataclass(frozen=True)
class MetricSink:
    """Appends to the training metrics that TRL averages into its next log line.

    Attributes:
        lists: TRL's ``_metrics["train"]``: values by name.
    """

    lists: dict[str, list[float]]

    def append(self, metrics: Mapping[str, float | None]) -> None:
        """Append the mean over processes; every process has to call it.

        NaN means "not measured here" and appends nothing; None is a rate over nothing and is logged as null.
        """
        everyone: list[dict[str, float | None]] = gather_object([dict(metrics)])
        for name in sorted({name for record in everyone for name in record}):
            values = [record[name] for record in everyone if name in record]
            known = [value for value in values if value is not None and not math.isnan(value)]
            if known:
                self.lists[name].append(sum(known) / len(known))
            elif None in values:
                self.lists[name].append(math.nan)  # TRL writes null when there is nothing else
