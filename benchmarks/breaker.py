"""When a run stops itself: too many failed episodes, or many in a row that fail for the same reason.

A dead server, an expired key or a missing package would fail every episode that is left; stopping early keeps hours and
a folder that can be continued.
"""

from __future__ import annotations

import re

from seed_envs.statistics.panels import count_of

from .config import RunConfig
from .records import EpisodeRecord

#: What helps, by the type of the error.
_REMEDIES = {
    "EndpointFailed": "see whether the server still runs; one that has moved is named with --url, a busy one is given "
    "time with --retries and --request-timeout",
    "EndpointRefused": "mend the key, the account or the model's name; a field that the server does not take is left "
    "out with --request-arg KEY=drop in a new run",
    "RetrievalError": "start the search engine again",
    "OutOfMemoryError": "use a smaller --batch-size",
}


class Stopped(Exception):
    """The run ends here; the message says why and what helps."""


class Breaker:
    """Counts failed episodes.

    Args:
        config: Its limits.
        planned: Episodes of the plan.
        todo: Episodes that are to be played now; after the last one there is nothing to stop.
    """

    def __init__(self, config: RunConfig, planned: int, todo: int) -> None:
        limit = config.fail_on_error
        self._limit = None if limit is None else count_of(limit, planned)
        self._most_equal = config.max_equal_failures
        self._left = todo
        self._failed = self._equal = 0
        self._reason: tuple[str, str] | None = None

    def count(self, record: EpisodeRecord) -> None:
        """Take note of an episode.

        Raises:
            Stopped: When a limit is reached.
        """
        self._left -= 1
        if record.scored:
            self._reason = None
            return
        error = record.error or {"type": "?", "message": ""}
        reason = error["type"], re.sub(r"\d+", "#", error["message"])
        self._equal = self._equal + 1 if reason == self._reason else 1
        self._reason = reason
        self._failed += 1
        if self._limit is not None and self._failed >= self._limit:
            raise Stopped(f"{self._failed} episodes failed; --fail-on-error stops the run here")
        if self._equal == self._most_equal and self._left:
            remedy = _REMEDIES.get(error["type"], "mend the cause")
            raise Stopped(
                f"{self._equal} episodes in a row failed for the same reason ({error['type']}: "
                f"{' '.join(error['message'].split())[:200]}): {remedy}, then continue the run (or play on "
                "regardless with --max-equal-failures 0)"
            )
