"""``engine="textworld"``: the original game engine behind the same interface.

Every text, admissible list and win comes from TextWorld, running in a child
process (see ``textworld_child``); the native engine runs along only to provide
saved states, plans and sub-goals.  Thousands of times slower than the native
engine: a witness, not for training.  Needs the extra ``alfworld``.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine, Reply
from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.quirks import Quirks
from seed_envs.errors import InvalidState, SeedEnvsError, UnknownOption, require

TIMEOUT_SECONDS: Final = 300.0
_PUT_WORDING: Final = re.compile(r'template\s*::\s*"put \{o\} in/on \{r\}"')
"""How a grammar with the older wording (game data 2.1.1) spells the command that puts an object down."""


class TextWorldFailed(SeedEnvsError, RuntimeError):
    """The child process with the original engine failed or did not answer."""


class TextWorldProcess:
    """A child process that plays games with the original engine.

    Args:
        fast: let the child remember parsed templates (same texts, about 15 times faster).

    Raises:
        DependencyMissing: when the extra is not installed.
    """

    def __init__(self, *, fast: bool = False) -> None:
        require("textworld", "alfworld", "the original ALFWorld engine")
        require("alfworld", "alfworld", "the original ALFWorld engine")
        options = {**os.environ, "SEED_TEXTWORLD_OPTIONS": "--fast" if fast else "", "PYTHONWARNINGS": "ignore"}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "seed_envs.alfworld.textworld_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=options,
            text=True,
            encoding="utf-8",
        )

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._child.poll() is None

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Args:
            **request: see ``textworld_child.Player.answer``.

        Returns:
            The answer.

        Raises:
            TextWorldFailed: when the child reports an error, ends, or does not answer in time.
        """
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise TextWorldFailed("the process with the original engine has ended") from error
        ready, _, _ = select.select([child.stdout], [], [], TIMEOUT_SECONDS)
        line = child.stdout.readline() if ready else ""
        if not line:
            self.close()
            raise TextWorldFailed(f"no answer from the original engine to {request['op']!r} (waited or it ended)")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TextWorldFailed(f"the original engine failed: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the child; calling it twice is fine."""
        child = self._child
        if self.alive:
            child.kill()
            child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                stream.close()

    def __del__(self) -> None:
        if hasattr(self, "_child"):
            self.close()


class TextWorldEngine(Engine):
    """One game on the original engine, with the interface of the native one.

    Args:
        game: the same game, compiled.
        document: content of its game file.
        process: the child to play in.
        rules: must be the original's.

    Raises:
        UnknownOption: for repaired quirks, which the original does not have, or another wording than the game file's.
    """

    __slots__ = ("_answer", "_document", "_process")

    def __init__(self, game: Game, document: dict[str, Any], process: TextWorldProcess, rules: Rules) -> None:
        if rules.quirks != Quirks():
            raise UnknownOption("engine='textworld' is the original: it needs quirks='faithful'")
        spoken = "put" if _PUT_WORDING.search(document["grammar"]) else "move"
        if rules.wording != spoken:
            raise UnknownOption(
                f"engine='textworld' speaks as its game files do: {game.game_id!r} needs wording={spoken!r}"
            )
        super().__init__(game, rules)
        self._document = document
        self._process = process
        self._answer: dict[str, Any] = {}

    def reset(self) -> str:
        """See ``Engine.reset``; the text is the original's."""
        super().restore(self.game.start)
        op = {"op": "reset"} if self._answer else {"op": "load", "document": self._document}
        return self._note(self._process.ask(**op))

    def _note(self, answer: dict[str, Any]) -> str:
        self._answer = answer
        self.won = answer["won"]
        return str(answer["text"])

    def admissible(self) -> list[str]:
        """The original's sorted list."""
        return list(self._answer["admissible"])

    def act(self, command: str) -> Reply:
        """See ``Engine.act``; text, validity and win are the original's."""
        valid = command.strip() in self._answer["admissible"]
        super().act(command)
        return Reply(self._note(self._process.ask(op="act", command=command)), valid)

    def restore(self, state: State) -> None:
        """Only the initial state can be jumped to; see :meth:`resume` for others."""
        if state is not self.game.start:
            raise InvalidState("the original engine cannot jump to a state; it plays commands again (see resume)")
        self.reset()

    def resume(self, state: State, commands: Sequence[str]) -> None:
        """See ``Engine.resume``; plays the commands again from the start, at the original's speed."""
        self.reset()
        for command in commands:
            self.act(command)
        if self.state != state:
            raise InvalidState("the saved commands do not lead to the saved state; very long episodes forget commands")
