"""Plays one game at a time with the original engine, in a process of its own.

Started by ``textworld_engine`` as ``python -m seed_envs.alfworld.textworld_child``;
speaks JSON lines over standard input and output.  The original evaluates
Python found in game files, prints, changes ``sys.argv`` and is not safe with
threads: all of that stays in here.  It is no sandbox: play trusted files only.
"""

from __future__ import annotations

import json
import os
import sys
from copy import deepcopy
from functools import lru_cache
from typing import Any, TextIO


def main() -> None:
    """Answer requests until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.argv = sys.argv[:1]
    player = Player(fast="--fast" in os.environ.get("SEED_TEXTWORLD_OPTIONS", ""))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = player.answer(request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        _send(channel, answer)


def _send(channel: TextIO, answer: dict[str, Any]) -> None:
    channel.write(json.dumps(answer) + "\n")
    channel.flush()


class Player:
    """The original engine with the original names for things.

    Args:
        fast: remember parsed templates and queries (about 15 times faster, same texts); off is the original untouched.
    """

    def __init__(self, *, fast: bool = False) -> None:
        if fast:
            remember_parses()
        self._env: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Handle one request.

        Args:
            request: ``{"op": "load", "document": …}``, ``{"op": "reset"}`` or ``{"op": "act", "command": …}``.

        Returns:
            Text, sorted admissible commands, whether the game is won or lost, and the score (0 before the first step).
        """
        if request["op"] == "load":
            self._env = _make(request["document"])
            return _report(self._env.reset())
        if request["op"] == "reset":
            return _report(self._env.reset())
        state, _, _ = self._env.step(request["command"])
        return _report(state)


def _report(state: Any) -> dict[str, Any]:
    return {
        "text": state["feedback"],
        "admissible": state["admissible_commands"],
        "won": bool(state["won"]),
        "lost": bool(state["lost"]),
        "score": state.get("score") or 0,
    }


def _make(document: dict[str, Any]) -> Any:
    from alfworld.agents.utils.misc import Demangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    env = PddlEnv(EnvInfos(won=True, admissible_commands=True))
    env.load(document)
    names = Demangler(game_infos=env._entity_infos)
    for info in env._entity_infos.values():
        info.name = names.demangle_alfred_name(info.id)
    return env


def remember_parses() -> None:
    """Keep what the original parses or translates again and again; its results are not changed."""
    import fast_downward
    import textworld.envs.pddl.textgen as textgen
    from textworld.logic import Rule

    fast_downward.pddl2sas = lru_cache(maxsize=2)(fast_downward.pddl2sas)
    parse = textgen._parse_and_convert
    remembered = lru_cache(maxsize=4096)(lambda text: parse(text, rule_name="symbols"))
    textgen._parse_and_convert = lambda text, rule_name, trace=False: deepcopy(remembered(text))
    textgen.copy_context = _shallow
    query = Rule.parse_conjunctive_query
    Rule.parse_conjunctive_query = staticmethod(lru_cache(maxsize=4096)(query))


def _shallow(context: dict[str, Any]) -> dict[str, Any]:
    """Copies of the two mappings of a context; what they hold is never changed by the original."""
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


if __name__ == "__main__":
    main()
