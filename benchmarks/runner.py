"""``run``: a configuration, a folder, and every planned episode in it exactly once.

What is done is skipped, what failed is played again, what is new is appended as it ends. The episodes themselves are
played by a ``Player``, a ``WorkerCrew`` or a ``RayCrew``; the numbers come from ``summary``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from seed_envs.journal import Journal
from seed_envs.preflight import Say, check_folder
from seed_envs.redaction import redact

from .agents.base import Agent, Placement
from .attempts import Attempt, close_log, open_log
from .breaker import Breaker, Stopped
from .config import RunConfig
from .errors import RunFolderInvalid
from .folder import RunFolder
from .heads import read_run
from .identity import check_same, identity
from .plan import Planned
from .player import Emit, Player, utc_now
from .preflight import check_run
from .records import EpisodeRecord, FinishedEpisode, latest
from .setup_run import Prepared, build_agent, prepare
from .summary import count_tokens, summarise
from .versions import describe_software


class Observer(Protocol):
    """Is told how a run goes."""

    def begin(self, total: int) -> None:
        """So many episodes are to be played."""

    def __call__(self, record: EpisodeRecord) -> None:
        """One has ended."""


class Crew(Protocol):
    """Whoever plays the episodes."""

    def play(self, episodes: Iterable[Planned], emit: Emit) -> None:
        """Play all; each goes to ``emit`` as soon as it ends."""

    def close(self) -> None:
        """Release processes and environments."""


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        folder: Where it is.
        summary: Its numbers, as in ``summary.json``.
        outcome: ``complete``, ``incomplete``, ``stopped`` (too many errors) or ``interrupted``.
        reason: Why it stopped itself and what helps, or ``""``.
    """

    folder: RunFolder
    summary: dict[str, Any]
    outcome: str
    reason: str = ""


def start_run(
    config: RunConfig,
    out: Path,
    command: list[str] | None = None,
    observer: Observer | None = None,
    say: Say | None = None,
) -> RunResult:
    """Begin a new run.

    Args:
        config: What is evaluated.
        out: An empty or new folder.
        command: The command line, for the record.
        observer: Is told how it goes.
        say: Is told what the preflight remarks; None skips the preflight.

    Raises:
        RunFolderInvalid: When the folder is in use.
        DataMissing: When the environment's data is not there.
        PreflightFailed: When the run cannot succeed.
    """
    prepared = prepare(config)
    if say is not None:
        check_folder(out, "--out")
    agent = build_agent(config)
    try:
        if say is not None:
            check_run(prepared, agent, say)
        prepared = prepared.with_learned(agent)
        folder = RunFolder(out)
        folder.create({**prepared.describe(agent, command or []), "created": utc_now()})
        return _execute(folder, prepared, agent, observer)
    finally:
        agent.close()


def resume_run(
    out: Path,
    observer: Observer | None = None,
    config: RunConfig | None = None,
    say: Say | None = None,
    accepted: Sequence[str] = (),
) -> RunResult:
    """Continue a run: keep what is scored, play what is missing or failed.

    Args:
        out: Its folder.
        observer: Is told how it goes.
        config: The run's configuration with the passwords that the folder does not hold (see ``give_back``), perhaps
            in another place (see ``moved``).
        say: Is told what the preflight remarks; None skips the preflight, and so does a run with nothing left to play.
        accepted: Fields that were meant to change (see ``identity.check_same``).

    Raises:
        RunFolderInvalid: When the folder holds no run, or tasks, prompt, settings, model or software are no longer
            what they were.
    """
    folder = RunFolder(out)
    prepared = prepare(config or folder.run_config())
    check_identity(folder, prepared)
    agent = build_agent(prepared.config)
    try:
        if say is not None and _todo(folder, prepared):
            check_run(prepared, agent, say)
        return _execute(folder, prepared.with_learned(agent), agent, observer, accepted)
    finally:
        agent.close()


def check_identity(folder: RunFolder, prepared: Prepared) -> None:
    """Refuse to mix results: the tasks and the prompt must be those the run began with."""
    before, now = folder.read_config(), prepared.identity()
    for part, field in (("manifest", "sha256"), ("manifest", "chosen_sha256"), ("prompt", "sha256")):
        if before[part][field] != now[part][field]:
            raise RunFolderInvalid(
                f"{folder.path}: the {part} has changed since the run began ({field} {before[part][field][:12]}..., "
                f"now {now[part][field][:12]}...); start a new run"
            )


def summarise_folder(folder: RunFolder) -> dict[str, Any]:
    """Compute a run's summary from its files."""
    config = folder.read_config()
    heads = list(read_run(folder))
    kept = latest(heads)
    attempts = folder.attempts()
    seconds = sum(attempt["seconds"] or _seconds_seen(attempt, heads) for attempt in attempts)
    numbers = summarise(kept.values(), config["planned"])
    numbers["tokens"] = count_tokens(heads)  # what was paid for, replaced episodes included
    blind = config["run"].get("blind", "")  # runs of earlier versions are not blind
    return {
        "schema_version": 1,
        "suite": config["run"]["suite"]["name"],
        "agent": config["run"]["agent"]["spec"] + (f" (blind: {blind})" if blind else ""),
        **numbers,
        "superseded_records": len(heads) - len(kept),
        "wall_seconds": round(seconds, 3),
        "episodes_per_second": len(heads) / seconds if seconds else None,
        **{key: config[key] for key in ("manifest", "prompt", "run", "command")},
        "attempts": attempts,
    }


def _seconds_seen(attempt: dict[str, Any], records: list[EpisodeRecord]) -> float:
    """How long an attempt that was killed is known to have run: until its last record."""
    begin = datetime.fromisoformat(attempt["started"])
    mine = [record for record in records if record.attempt == attempt["attempt"] and record.started]
    ends = [(datetime.fromisoformat(record.started) - begin).total_seconds() + record.seconds for record in mine]
    return max([0.0, *ends])  # a clock that was set back gives negative times


def _execute(
    folder: RunFolder, prepared: Prepared, agent: Agent, observer: Observer | None, accepted: Sequence[str] = ()
) -> RunResult:
    """One attempt: lock, play what is not done, write the summary whatever happens."""
    played_with = redact(identity(prepared.config, agent.describe(), describe_software()))
    with Journal(folder.episodes) as journal:
        for earlier in folder.attempts()[-1:]:
            check_same(folder.path, earlier.get("identity", {}), played_with, accepted)
        todo = _todo(folder, prepared)
        attempt, logs = folder.new_attempt()
        log = open_log(logs)
        note = Attempt(logs / "attempt.json", attempt, len(todo), journal.torn_bytes, played_with)
        log.info("attempt %d: %d episodes planned, %d to play", attempt, len(prepared.plan), len(todo))
        if journal.torn_bytes:
            log.warning("cut off %d bytes of a line that was being written when the run ended", journal.torn_bytes)
        if observer is not None:
            observer.begin(len(todo))
        emit = _Recorder(folder, journal, log, prepared, observer, len(todo))
        outcome, reason = "incomplete", ""
        try:
            if todo:
                _play(prepared.config, agent, logs, attempt, todo, emit)
        except Stopped as error:
            outcome, reason = "stopped", str(error)
            log.error("%s", error)
        except KeyboardInterrupt:
            outcome = "interrupted"
            log.warning("interrupted")
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk may be what failed; the error itself is what counts
                note.end("failed", emit.count, f"{type(error).__name__}: {error}")
            log.exception("the run failed")
            raise
        finally:
            close_log(log)
        note.end(outcome, emit.count, reason)
    summary = summarise_folder(folder)
    if summary["complete"]:
        outcome = "complete"
        note.end(outcome, emit.count)
        summary["attempts"][-1]["outcome"] = outcome
    folder.write_summary(summary)
    return RunResult(folder, summary, outcome, reason)


def _todo(folder: RunFolder, prepared: Prepared) -> list[Planned]:
    """The planned episodes without a score."""
    done = {key for key, record in latest(read_run(folder)).items() if record.scored}
    return [planned for planned in prepared.plan if planned.key not in done]


def _play(config: RunConfig, agent: Agent, logs: Path, attempt: int, todo: list[Planned], emit: Emit) -> None:
    crew = _assemble(config, agent, logs, attempt)
    try:
        crew.play(todo, emit)
    finally:
        crew.close()


def _assemble(config: RunConfig, agent: Agent, logs: Path, attempt: int) -> Crew:
    """The crew that fits executor, workers and agent."""
    if config.executor == "ray":
        from .ray_crew import RayCrew

        return RayCrew(config, agent.default_batch, attempt)
    if config.num_workers and agent.placement is Placement.WORKER:
        from .children import WorkerCrew

        return WorkerCrew(config, logs, attempt)
    return Player(config, agent, attempt)


class _Recorder:
    """Stores every finished episode and stops the run at too many errors."""

    def __init__(
        self,
        folder: RunFolder,
        journal: Journal,
        log: logging.Logger,
        prepared: Prepared,
        observer: Observer | None,
        todo: int,
    ) -> None:
        self._folder, self._journal, self._log, self._observer = folder, journal, log, observer
        self._breaker = Breaker(prepared.config, len(prepared.plan), todo)
        self.count = 0

    def __call__(self, finished: FinishedEpisode) -> None:
        record = finished.record
        self._folder.store_images(finished)
        self._journal.append(finished.line)
        self.count += 1
        if not record.scored:
            error = record.error or {"type": "?", "message": ""}
            self._log.error("%s #%d: %s: %s", record.task_id, record.repeat, error["type"], error["message"])
        if self._observer is not None:
            self._observer(record)
        self._breaker.count(record)
